"""Sentences on comparisons of models: verdicts on pairs, order of models, power and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from merkhet.analysis.differences import (
    ComparisonRow,
    count_facts,
    detectable_difference,
    facts_needed,
    format_difference,
    format_range,
    format_size,
    is_equal,
    is_significant,
    is_small_group,
    orient_to,
    swap_models,
)
from merkhet.analysis.finding_types import FEW_QUESTIONS
from merkhet.core.text import counted, finite_or_none, join_names, join_some, metric_label, quote_name
from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL

AHEAD, MIXED, ALIKE, NEVER = "ahead", "mixed", "alike", "not compared"
WEAK = 0.1
"""Detectable difference above which a comparison without a significant difference is weak."""
FEW_FACTS = 30
_MOST_NAMED = 6
_MOST_PAIRS = 10
_FEW_PAIRS = 3
_MOST_TALLIED = 12
_SIGNS = "> significantly ahead, ≈ no significant difference"
_NO_ORDER = "no consistent order"

TaskNames = Mapping[tuple[str, str], str]
"""Names of pairs of task and metric."""
Relations = Mapping[frozenset[str], tuple[str, str]]
"""Relation of each pair of models, and the better model if the relation is AHEAD."""


@dataclass(frozen=True)
class PairVerdict:
    """Verdict from all comparisons of two models."""

    model: str
    other: str
    relation: str
    """AHEAD (``model`` is ahead of ``other``), MIXED or ALIKE."""
    sentence: str
    weak: bool
    """Whether any comparison without a significant difference has low power."""


@dataclass(frozen=True)
class Verdict:
    """Verdict on all models."""

    sentences: tuple[str, ...]
    order: str | None
    """Order of the models; None with a single pair or a reference model."""
    pairs: tuple[PairVerdict, ...]


def give_verdict(
    comparisons: Sequence[ComparisonRow], reference: str | None = None, verb: str = "knows more"
) -> Verdict:
    """Summarize comparisons over whole tasks in a verdict.

    Args:
        reference: Model that all others are compared with, if not all pairs are compared.
        verb: Predicate of the better model in sentences.
    """
    by_pair: dict[frozenset[str], list[ComparisonRow]] = {}
    for row in comparisons:
        by_pair.setdefault(frozenset((row["model"], row["other"])), []).append(row)
    names = task_names(comparisons)
    pairs = tuple(_judge_pair(of_pair, names, verb) for of_pair in by_pair.values())
    order = None
    if len(pairs) < 2:
        sentences = [pair.sentence for pair in pairs]
    elif reference is not None:
        sentences = [_summarize_against(pairs, reference), *(pair.sentence for pair in pairs[:_MOST_NAMED])]
    else:
        models = list(dict.fromkeys(row[side] for row in comparisons for side in ("model", "other")))
        order = _rank_models(
            models, {frozenset((pair.model, pair.other)): (pair.relation, pair.model) for pair in pairs}
        )
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
    """Describe the groups of questions in which models differ significantly, largest differences first."""
    if not groups:
        return [f"By {column}, nothing can be compared: no group has questions about two facts that two models share."]
    significant = sorted(filter(is_significant, groups), key=lambda row: -abs(row["difference"]))
    readable = [row for row in groups if not is_small_group(row)]
    small = _count_small_groups(len(groups) - len(readable))
    if not readable:
        return [f"By {column}, no group has {FEW_QUESTIONS} facts that two models share, so there is no verdict."]
    if not significant and len(readable) == 1:
        return [f"By {column}, the only difference that could be tested is not significant.", *small]
    if not significant:
        return [f"By {column}, none of {len(readable):,} differences is significant after correction.", *small]
    one_pair = len({frozenset((row["model"], row["other"])) for row in groups}) == 1
    names = task_names(groups)
    by_pair: dict[tuple[str, str], list[str]] = {}
    for row in significant:
        better = row if row["difference"] > 0 else swap_models(row)
        task = "" if len(names) == 1 else f" in {_task(better, names)}"
        text = f"{better['group']}{task} ({format_difference(better)})"
        by_pair.setdefault((better["model"], better["other"]), []).append(text)
    differences = counted(len(readable), "difference")
    verb = "is" if len(significant) == 1 else "are"
    sentences = [
        f"By {column}, {len(significant):,} of {differences} {verb} significant (q < {SIGNIFICANCE_LEVEL}).",
        *small,
    ]
    for (model, other), parts in list(by_pair.items())[:_MOST_NAMED]:
        behind = "" if one_pair else f" of {quote_name(other)}"
        sentences.append(f"{quote_name(model)} is ahead{behind} on {join_some(parts, _MOST_NAMED)}.")
    return sentences


def _count_small_groups(number: int) -> list[str]:
    if not number:
        return []
    verb = "is" if number == 1 else "are"
    return [f"{counted(number, 'more difference')} {verb} about fewer than {FEW_QUESTIONS} facts: there is no verdict."]


def _judge_pair(comparisons: Sequence[ComparisonRow], names: TaskNames, verb: str) -> PairVerdict:
    """Give the verdict on one pair of models; the model that is ahead more often comes first."""
    rows = [orient_to(row, comparisons[0]["model"]) for row in comparisons]
    ahead, behind, alike = _split_by_side(rows)
    if len(behind) > len(ahead) or (not ahead and not behind and sum(row["difference"] for row in rows) < 0):
        rows = [swap_models(row) for row in rows]
        ahead, behind, alike = _split_by_side(rows)
    model, other = quote_name(rows[0]["model"]), quote_name(rows[0]["other"])
    rest = f"; on {_join_tasks(alike, names)} they do not differ significantly{_describe_power(alike)}" if alike else ""
    if ahead and behind:
        relation = MIXED
        behind_swapped = [swap_models(row) for row in behind]
        sentence = (
            f"Mixed: {model} is ahead on {_join_differences(ahead, names)}, {other} on "
            f"{_join_differences(behind_swapped, names)}{rest}. Which of them {verb} depends on the task."
        )
    elif ahead:
        relation = AHEAD
        nowhere = " and not behind on any task" if alike else ""
        sentence = f"{model} {verb} than {other}: it is ahead on {_join_differences(ahead, names)}{nowhere}{rest}."
    elif all(map(is_equal, rows)):
        relation = ALIKE
        tasks = _join_tasks(rows, names)
        sentence = f"{model} and {other} do not differ: they score the same on every question of {tasks}."
    else:
        relation = ALIKE
        power = _describe_power(rows).strip(" ()")
        tail = f"; {power}" if power else ""
        sentence = f"{model} and {other} do not differ significantly on {_join_differences(rows, names)}{tail}."
    return PairVerdict(rows[0]["model"], rows[0]["other"], relation, sentence, any(map(_is_weak, rows)))


def _split_by_side(
    rows: Sequence[ComparisonRow],
) -> tuple[list[ComparisonRow], list[ComparisonRow], list[ComparisonRow]]:
    """Split comparisons by whether the first model is significantly ahead, behind, or neither."""
    ahead = [row for row in rows if is_significant(row) and row["difference"] > 0]
    behind = [row for row in rows if is_significant(row) and row["difference"] < 0]
    return ahead, behind, [row for row in rows if row not in ahead and row not in behind]


def _describe_power(rows: Sequence[ComparisonRow]) -> str:
    """Describe the difference that the tests of all ``rows`` can detect; empty if it is unknown."""
    sizes = [size for row in rows if row.get("share", True) and (size := detectable_difference(row)) is not None]
    if not sizes or len(sizes) < len(rows) or max(sizes) >= 1.0:
        return ""
    return f" (80% power to detect a difference of {format_size(max(sizes))} points)"


def _summarize_against(pairs: Sequence[PairVerdict], reference: str) -> str:
    """Summarize in one sentence which models are ahead of or behind the reference model."""
    parts: dict[str, list[str]] = {"ahead": [], "behind": [], "mixed": [], "no significant difference": []}
    for pair in pairs:
        first = pair.model != reference
        side = "ahead" if first else "behind"
        parts[{MIXED: "mixed", ALIKE: "no significant difference"}.get(pair.relation, side)].append(
            quote_name(pair.model if first else pair.other)
        )
    clauses = [f"{position}: {join_names(models)}" for position, models in parts.items() if models]
    return f"Compared with {quote_name(reference)}, {'; '.join(clauses)}."


def _rank_models(models: Sequence[str], relations: Relations) -> str:
    """Return an order such as ``A > B ≈ C``; list the pairs instead if the relations are not consistent."""
    wins = {name: sum(pair == (AHEAD, name) for pair in relations.values()) for name in models}
    ranked = sorted(models, key=lambda name: -wins[name])
    for first, second in combinations(ranked, 2):
        relation, better = relations.get(frozenset((first, second)), (NEVER, ""))
        if relation != (ALIKE if wins[first] == wins[second] else AHEAD) or (relation == AHEAD and better != first):
            return f"{_NO_ORDER}; {_list_pairs(ranked, relations)}"
    levels: dict[int, list[str]] = {}
    for name in ranked:
        levels.setdefault(wins[name], []).append(quote_name(name))
    return " > ".join(" ≈ ".join(level) for level in levels.values())


def _list_pairs(ranked: Sequence[str], relations: Relations) -> str:
    pairs = list(combinations(ranked, 2))
    if len(pairs) > _MOST_PAIRS:
        return _count_wins(ranked, relations)
    by_relation: dict[str, list[str]] = {AHEAD: [], ALIKE: [], MIXED: [], NEVER: []}
    for first, second in pairs:
        relation, better = relations.get(frozenset((first, second)), (NEVER, ""))
        names = (second, first) if relation == AHEAD and better != first else (first, second)
        sign = {AHEAD: " > ", ALIKE: " ≈ "}.get(relation, " and ")
        by_relation[relation].append(sign.join(map(quote_name, names)))
    prefixes = {AHEAD: "", ALIKE: "", MIXED: "mixed: ", NEVER: "not compared: "}
    return "; ".join(prefixes[relation] + "; ".join(texts) for relation, texts in by_relation.items() if texts)


def _count_wins(ranked: Sequence[str], relations: Relations) -> str:
    """Return, for each model, how many models it is ahead of and behind; used if there are too many pairs to list."""
    won, lost = Counter[str](), Counter[str]()
    for pair, (relation, better) in relations.items():
        if relation == AHEAD:
            won[better] += 1
            lost.update(pair - {better})
    order = sorted(ranked, key=lambda name: (-won[name], lost[name]))
    parts = [f"{quote_name(name)} {won[name]} and {lost[name]}" for name in order]
    counts = join_some(parts, _MOST_TALLIED) if len(parts) > _MOST_TALLIED else ", ".join(parts)
    return f"numbers of models that each is ahead of and behind: {counts}"


def _rank_by_task(models: Sequence[str], comparisons: Sequence[ComparisonRow], names: TaskNames) -> list[str]:
    """Rank the models on each task; empty if there is only one task."""
    if len(names) < 2:
        return []
    tasks_by_order: dict[str, list[str]] = {}
    for key, name in names.items():
        relations: dict[frozenset[str], tuple[str, str]] = {}
        for row in comparisons:
            if (row["task"], row["metric"]) == key:
                better = row["model"] if row["difference"] > 0 else row["other"]
                relation = (AHEAD, better) if is_significant(row) else (ALIKE, "")
                relations[frozenset((row["model"], row["other"]))] = relation
        compared_models = [model for model in models if any(model in pair for pair in relations)]
        tasks_by_order.setdefault(_rank_models(compared_models, relations), []).append(name)
    orders = list(tasks_by_order.items())[:_MOST_NAMED]
    return [f"On {join_some(tasks, _MOST_NAMED)}: {order}." for order, tasks in orders]


def _is_weak(row: ComparisonRow) -> bool:
    """Return whether a comparison shows no significant difference and has low power."""
    if not row.get("share", True) or is_significant(row) or is_equal(row):
        return False
    return (detectable_difference(row) or 0.0) > WEAK


def _warn_of_weakness(comparisons: Sequence[ComparisonRow], names: TaskNames, pairs: int) -> list[str]:
    weak = [row for row in comparisons if _is_weak(row)]
    if not weak:
        return []
    sizes = format_range([format_size(size) for size in sorted(detectable_difference(row) or 1.0 for row in weak)])
    facts = format_range([f"{count:,}" for count in sorted(map(count_facts, weak))])
    noun = "fact" if facts == "1" else "facts"
    sentence = (
        f"Comparisons without a significant difference have little power: with {facts} {noun}, true differences below "
        f"{sizes} points are often missed."
    )
    largest = max(weak, key=lambda row: abs(row["difference"]))
    needed = facts_needed(largest)
    if needed is not None and needed > count_facts(largest):
        between = f"between {quote_name(largest['model'])} and {quote_name(largest['other'])} " if pairs > 1 else ""
        sentence += (
            f" Detecting a difference as large as the one observed {between}on {_task(largest, names)} "
            f"({format_size(abs(largest['difference']))} points) takes about {counted(_round_up(needed), 'fact')}."
        )
    return [sentence]


def _warn_of_correction(comparisons: Sequence[ComparisonRow], names: TaskNames) -> list[str]:
    """Report differences that are significant only before correction."""
    uncorrected = [
        row
        for row in comparisons
        if (p := finite_or_none(row.get("p_raw"))) is not None and p < SIGNIFICANCE_LEVEL and not is_significant(row)
    ]
    if not uncorrected:
        return []
    which = f"{len(uncorrected)} of {counted(len(comparisons), 'difference')} ({_join_tasks(uncorrected, names)})"
    verb = "is" if len(uncorrected) == 1 else "are"
    return [f"{which} {verb} significant only before correction for the number of comparisons."]


def _warn_of_few_facts(comparisons: Sequence[ComparisonRow], names: TaskNames) -> list[str]:
    few = [row for row in comparisons if is_significant(row) and count_facts(row) < FEW_FACTS]
    if not few:
        return []
    facts = format_range([str(count) for count in sorted(map(count_facts, few))])
    verb = "difference on {} rests" if len(few) == 1 else "differences on {} rest"
    subject = verb.format(_join_tasks(few, names))
    return [f"The significant {subject} on {facts} facts: ask about more facts before you rely on it."]


def task_names(comparisons: Iterable[ComparisonRow]) -> dict[tuple[str, str], str]:
    """Return a name for each pair of task and metric: the task, followed by the metric if the task has several."""
    keys = dict.fromkeys((row["task"], row["metric"]) for row in comparisons)
    tasks = [task for task, _ in keys]
    return {
        (task, metric): task if tasks.count(task) == 1 else f"{task} {metric_label(metric)}" for task, metric in keys
    }


def _task(row: ComparisonRow, names: TaskNames) -> str:
    return names[row["task"], row["metric"]]


def _join_tasks(rows: Sequence[ComparisonRow], names: TaskNames) -> str:
    return join_some(list(dict.fromkeys(_task(row, names) for row in rows)), _MOST_NAMED)


def _join_differences(rows: Sequence[ComparisonRow], names: TaskNames) -> str:
    ordered = sorted(rows, key=lambda row: -row["difference"])
    return join_some([f"{_task(row, names)} ({format_difference(row)})" for row in ordered], _MOST_NAMED)


def _round_up(number: int) -> int:
    """Round up to two significant digits, the precision of the estimate."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step
