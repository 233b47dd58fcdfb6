"""Verdicts in words from paired comparisons, with their statistical power."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from merkhet.analysis.difference_text import (
    ComparisonRow,
    count_facts,
    detectable_difference,
    facts_needed,
    finite_or_none,
    format_difference,
    format_size,
    is_clear,
    is_equal,
    orient_to,
    swap_models,
    task_names,
)
from merkhet.core.text import join_names, join_some, quote_name
from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL

AHEAD, MIXED, ALIKE, NEVER = "ahead", "mixed", "alike", "not compared"
WEAK = 0.1
"""A comparison without a clear difference is weak if even a difference of this size would be missed."""
FEW_FACTS = 30
_MOST_NAMED = 6
_MOST_PAIRS = 10
_FEW_PAIRS = 3
_MOST_TALLIED = 12
_SIGNS = "> clearly ahead, ≈ not told apart"

TaskNames = Mapping[tuple[str, str], str]
"""The name of each pair of task and metric."""
Relations = Mapping[frozenset[str], tuple[str, str]]
"""The relation of each pair of models, with the model that is ahead if it is AHEAD."""


@dataclass(frozen=True)
class PairVerdict:
    """The verdict of all comparisons of two models."""

    model: str
    other: str
    relation: str
    """AHEAD (``model`` is ahead of ``other``), MIXED or ALIKE."""
    sentence: str
    weak: bool
    """Whether a comparison without a clear difference had too little power to find one."""


@dataclass(frozen=True)
class Verdict:
    """The verdict over all models."""

    sentences: tuple[str, ...]
    order: str | None
    """The order of the models, if there are more than two."""
    pairs: tuple[PairVerdict, ...]


def give_verdict(
    comparisons: Sequence[ComparisonRow], reference: str | None = None, verb: str = "knows more"
) -> Verdict:
    """Word a verdict from comparisons over whole tasks.

    Args:
        reference: Compare all other models with this one only.
        verb: The predicate of the better model.
    """
    by_pair: dict[frozenset[str], list[ComparisonRow]] = {}
    for comparison in comparisons:
        by_pair.setdefault(frozenset((comparison["model"], comparison["other"])), []).append(comparison)
    names = task_names(comparisons)
    pairs = tuple(_judge_pair(of_pair, names, verb) for of_pair in by_pair.values())
    order = None
    if len(pairs) < 2:
        sentences = [pair.sentence for pair in pairs]
    elif reference is not None:
        sentences = [_summarize_against(pairs, reference), *(pair.sentence for pair in pairs[:_MOST_NAMED])]
    else:
        models = list(dict.fromkeys(comparison[side] for comparison in comparisons for side in ("model", "other")))
        relations = {frozenset((pair.model, pair.other)): (pair.relation, pair.model) for pair in pairs}
        order = _rank_models(models, relations)
        signs = f" ({_SIGNS})" if " > " in order or " ≈ " in order else ""
        sentences = [f"Which model {verb}: {order}{signs}.", *_rank_by_task(models, comparisons, names)]
        if len(pairs) <= _FEW_PAIRS:
            sentences += [pair.sentence for pair in pairs]
    sentences += [
        *_warn_of_weakness(comparisons, names, len(pairs)),
        *_warn_of_correction(comparisons, names),
        *_warn_of_few_facts(comparisons, names),
    ]
    return Verdict(tuple(sentences), order, pairs)


def summarize_groups(groups: Sequence[ComparisonRow], column: str) -> list[str]:
    """Word in which groups the models differ, largest differences first."""
    if not groups:
        return [
            f"By {column} there is nothing to compare: no group has questions about two facts that two models share."
        ]
    clear = sorted(filter(is_clear, groups), key=lambda comparison: -abs(comparison["difference"]))
    if not clear and len(groups) == 1:
        return [f"By {column}, the only difference that could be tested is not clear."]
    if not clear:
        return [f"By {column}, no difference is clear among {len(groups):,} (corrected for their number)."]
    one_pair = len({frozenset((comparison["model"], comparison["other"])) for comparison in groups}) == 1
    names = task_names(groups)
    by_pair: dict[tuple[str, str], list[ComparisonRow]] = {}
    for comparison in clear:
        better = comparison if comparison["difference"] > 0 else swap_models(comparison)
        by_pair.setdefault((better["model"], better["other"]), []).append(better)
    sentences = [f"By {column}, {len(clear):,} of {len(groups):,} differences are clear (q < {SIGNIFICANCE_LEVEL})."]
    for (model, other), of_pair in list(by_pair.items())[:_MOST_NAMED]:
        behind = "" if one_pair else f" of {quote_name(other)}"
        parts = []
        for comparison in of_pair:
            task = "" if len(names) == 1 else f" in {names[comparison['task'], comparison['metric']]}"
            parts.append(f"{comparison['group']}{task} ({format_difference(comparison)})")
        sentences.append(f"{quote_name(model)} is ahead{behind} on {join_some(parts, _MOST_NAMED)}.")
    return sentences


def _judge_pair(comparisons: Sequence[ComparisonRow], names: TaskNames, verb: str) -> PairVerdict:
    """Judge one pair, with the model that is ahead more often first."""
    comparisons = [orient_to(comparison, comparisons[0]["model"]) for comparison in comparisons]
    ahead, behind, alike = _split_by_side(comparisons)
    if len(behind) > len(ahead) or (
        not ahead and not behind and sum(comparison["difference"] for comparison in comparisons) < 0
    ):
        comparisons = [swap_models(comparison) for comparison in comparisons]
        ahead, behind, alike = _split_by_side(comparisons)
    model, other = quote_name(comparisons[0]["model"]), quote_name(comparisons[0]["other"])
    rest = f"; on {_join_tasks(alike, names)} the two cannot be told apart{_describe_power(alike)}" if alike else ""
    if ahead and behind:
        relation = MIXED
        behind_swapped = [swap_models(comparison) for comparison in behind]
        sentence = (
            f"Mixed: {model} is ahead on {_join_differences(ahead, names)}, {other} on "
            f"{_join_differences(behind_swapped, names)}{rest}. "
            f"Which of them {verb} depends on the task."
        )
    elif ahead:
        relation = AHEAD
        nowhere = " and not behind anywhere" if alike else ""
        sentence = f"{model} {verb} than {other}: it is ahead on {_join_differences(ahead, names)}{nowhere}{rest}."
    else:
        relation = ALIKE
        sentence = _describe_tie(comparisons, model, other, names)
    return PairVerdict(
        comparisons[0]["model"], comparisons[0]["other"], relation, sentence, any(map(_is_weak, comparisons))
    )


def _split_by_side(
    comparisons: Sequence[ComparisonRow],
) -> tuple[list[ComparisonRow], list[ComparisonRow], list[ComparisonRow]]:
    """Split comparisons into those where the first model is clearly ahead, clearly behind, and neither."""
    clear = [comparison for comparison in comparisons if is_clear(comparison)]
    return (
        [comparison for comparison in clear if comparison["difference"] > 0],
        [comparison for comparison in clear if comparison["difference"] < 0],
        [comparison for comparison in comparisons if not is_clear(comparison) or comparison["difference"] == 0],
    )


def _describe_tie(comparisons: Sequence[ComparisonRow], model: str, other: str, names: TaskNames) -> str:
    if all(map(is_equal, comparisons)):
        return (
            f"{model} and {other} cannot be told apart: they score the same on every question of "
            f"{_join_tasks(comparisons, names)}."
        )
    power = _describe_power(comparisons).strip(" ()")
    tail = f"; {power}" if power else ""
    return f"{model} and {other} cannot be told apart on {_join_differences(comparisons, names)}{tail}."


def _describe_power(comparisons: Sequence[ComparisonRow]) -> str:
    """Word the difference that would have been found on any of these tasks."""
    sizes = [
        smallest
        for comparison in comparisons
        if comparison.get("share", True) and (smallest := detectable_difference(comparison)) is not None
    ]
    if not sizes or len(sizes) < len(comparisons) or max(sizes) >= 1.0:
        return ""
    return f" (a difference of {format_size(max(sizes))} points or more would probably have shown)"


def _summarize_against(pairs: Sequence[PairVerdict], reference: str) -> str:
    """Sum up in one sentence which models are ahead of and behind the reference."""
    parts: dict[str, list[str]] = {}
    for pair in pairs:
        first = pair.model != reference
        position = {MIXED: "mixed", ALIKE: "not told apart from it"}.get(
            pair.relation, "ahead of it" if first else "behind it"
        )
        parts.setdefault(position, []).append(quote_name(pair.model if first else pair.other))
    order = ("ahead of it", "behind it", "mixed", "not told apart from it")
    clauses = [f"{position}: {join_names(parts[position])}" for position in order if position in parts]
    return f"Against {quote_name(reference)}, {'; '.join(clauses)}."


def _rank_models(models: Sequence[str], relations: Relations) -> str:
    """Write ``A > B ≈ C`` if the relations form such an order; else list the pairs, as ALIKE is not transitive."""
    wins = {
        name: sum(relation_and_winner == (AHEAD, name) for relation_and_winner in relations.values()) for name in models
    }
    ranked = sorted(models, key=lambda name: -wins[name])
    for first, second in combinations(ranked, 2):
        relation, better = relations.get(frozenset((first, second)), (NEVER, ""))
        if relation != (ALIKE if wins[first] == wins[second] else AHEAD) or (relation == AHEAD and better != first):
            return _list_pairs(ranked, relations)
    levels: dict[int, list[str]] = {}
    for name in ranked:
        levels.setdefault(wins[name], []).append(quote_name(name))
    return " > ".join(" ≈ ".join(level) for level in levels.values())


def _list_pairs(ranked: Sequence[str], relations: Relations) -> str:
    pairs_by_relation: dict[str, list[str]] = {AHEAD: [], ALIKE: [], MIXED: [], NEVER: []}
    for first, second in combinations(ranked, 2):
        relation, better = relations.get(frozenset((first, second)), (NEVER, ""))
        names = (
            [quote_name(first), quote_name(second)]
            if relation != AHEAD or better == first
            else [quote_name(second), quote_name(first)]
        )
        pairs_by_relation[relation].append({AHEAD: " > ", ALIKE: " ≈ "}.get(relation, " and ").join(names))
    if sum(map(len, pairs_by_relation.values())) > _MOST_PAIRS:
        return _count_wins(ranked, relations)
    prefixes = {MIXED: "mixed: ", NEVER: "not compared: "}
    parts = [
        f"{prefixes.get(relation, '')}{'; '.join(pairs)}" for relation, pairs in pairs_by_relation.items() if pairs
    ]
    return f"there is no single order; {'; '.join(parts)}"


def _count_wins(ranked: Sequence[str], relations: Relations) -> str:
    """Count for each model how many it is ahead of, and behind; for too many pairs to list."""
    won, lost = Counter[str](), Counter[str]()
    for pair, (relation, better) in relations.items():
        if relation == AHEAD:
            won[better] += 1
            lost[next(name for name in pair if name != better)] += 1
    order = sorted(ranked, key=lambda name: (-won[name], lost[name]))
    parts = [f"{quote_name(name)} {won[name]} and {lost[name]}" for name in order]
    counts = join_some(parts, _MOST_TALLIED) if len(parts) > _MOST_TALLIED else ", ".join(parts)
    return f"there is no single order; each is clearly ahead of, and behind, so many others: {counts}"


def _rank_by_task(models: Sequence[str], comparisons: Sequence[ComparisonRow], names: TaskNames) -> list[str]:
    """Rank the models on each task, if there are several."""
    if len(names) < 2:
        return []
    tasks_by_order: dict[str, list[str]] = {}
    for key, name in names.items():
        relations: dict[frozenset[str], tuple[str, str]] = {}
        for comparison in comparisons:
            if (comparison["task"], comparison["metric"]) == key:
                better = comparison["model"] if comparison["difference"] > 0 else comparison["other"]
                relations[frozenset((comparison["model"], comparison["other"]))] = (
                    (AHEAD, better) if is_clear(comparison) else (ALIKE, "")
                )
        compared_models = [model for model in models if any(model in pair for pair in relations)]
        tasks_by_order.setdefault(_rank_models(compared_models, relations), []).append(name)
    return [
        f"On {join_some(tasks, _MOST_NAMED)}: {order}." for order, tasks in list(tasks_by_order.items())[:_MOST_NAMED]
    ]


def _is_weak(comparison: ComparisonRow) -> bool:
    """Tell whether a comparison found no difference and had little power to find one."""
    return (
        comparison.get("share", True)
        and not is_clear(comparison)
        and not is_equal(comparison)
        and (detectable_difference(comparison) or 0.0) > WEAK
    )


def _warn_of_weakness(comparisons: Sequence[ComparisonRow], names: TaskNames, pairs: int) -> list[str]:
    weak = [comparison for comparison in comparisons if _is_weak(comparison)]
    if not weak:
        return []
    sizes = [
        format_size(smallest) for smallest in sorted(detectable_difference(comparison) or 1.0 for comparison in weak)
    ]
    facts = [f"{count:,}" for count in sorted(map(count_facts, weak))]
    sentence = (
        f"The comparison is weak where it finds nothing: with {_format_range(facts)} facts, true differences below "
        f"{_format_range(sizes)} points are easily missed."
    )
    largest = max(weak, key=lambda comparison: abs(comparison["difference"]))
    needed = facts_needed(largest)
    if needed is not None and needed > count_facts(largest):
        between = f"between {quote_name(largest['model'])} and {quote_name(largest['other'])} " if pairs > 1 else ""
        sentence += (
            f" To find a difference as large as the one seen {between}on {names[largest['task'], largest['metric']]} "
            f"({format_size(abs(largest['difference']))} points), some {_round_up(needed):,} facts are needed."
        )
    return [sentence]


def _warn_of_correction(comparisons: Sequence[ComparisonRow], names: TaskNames) -> list[str]:
    """Report differences that are significant only without correction."""
    uncorrected = []
    for comparison in comparisons:
        raw_p = finite_or_none(comparison.get("p_raw"))
        if raw_p is not None and raw_p < SIGNIFICANCE_LEVEL and not is_clear(comparison):
            uncorrected.append(comparison)
    if not uncorrected:
        return []
    which = f"{len(uncorrected)} of {len(comparisons)} differences ({_join_tasks(uncorrected, names)})"
    is_are = "is" if len(uncorrected) == 1 else "are"
    return [f"{which} would be clear alone, and {is_are} not after correction for the number of comparisons."]


def _warn_of_few_facts(comparisons: Sequence[ComparisonRow], names: TaskNames) -> list[str]:
    few = [comparison for comparison in comparisons if is_clear(comparison) and count_facts(comparison) < FEW_FACTS]
    if not few:
        return []
    facts = _format_range([str(count) for count in sorted(map(count_facts, few))])
    return [f"What is clear on {_join_tasks(few, names)} rests on {facts} facts: ask about more before you rely on it."]


def _join_tasks(comparisons: Sequence[ComparisonRow], names: TaskNames) -> str:
    return join_some(
        list(dict.fromkeys(names[comparison["task"], comparison["metric"]] for comparison in comparisons)), _MOST_NAMED
    )


def _join_differences(comparisons: Sequence[ComparisonRow], names: TaskNames) -> str:
    ordered = sorted(comparisons, key=lambda comparison: -comparison["difference"])
    return join_some(
        [
            f"{names[comparison['task'], comparison['metric']]} ({format_difference(comparison)})"
            for comparison in ordered
        ],
        _MOST_NAMED,
    )


def _format_range(sizes: Sequence[str]) -> str:
    return sizes[0] if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"


def _round_up(number: int) -> int:
    """Round up to two significant digits; the estimate has no more."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step
