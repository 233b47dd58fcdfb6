"""What paired comparisons say in words: which model knows more, where two cannot be told apart, how weak that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from merkhet.analysis.difference_text import (
    Compared,
    amount,
    detectable,
    facts_behind,
    facts_needed,
    finite,
    from_side,
    is_clear,
    is_equal,
    size,
    some_of,
    task_names,
    turned,
)
from merkhet.analysis.types import listed, told
from merkhet.metrics.corrections import CLEAR

AHEAD, MIXED, ALIKE, NEVER = "ahead", "mixed", "alike", "not compared"
WEAK = 0.1
"""Where a difference of so many points would not show, a comparison that finds none says little."""
FEW_FACTS = 30
_MOST_NAMED = 6
_MOST_PAIRS = 10
_FEW_PAIRS = 3
_MOST_TALLIED = 12
_SIGNS = "> clearly ahead, ≈ not told apart"

Places = Mapping[tuple[str, str], str]
Relations = Mapping[frozenset[str], tuple[str, str]]
"""Of each pair, AHEAD and which model is, or MIXED, or ALIKE."""


@dataclass(frozen=True)
class PairVerdict:
    """What all comparisons of two models say: ``model`` is ahead of ``other``, or it is mixed, or they are alike."""

    model: str
    other: str
    relation: str
    sentence: str
    weak: bool


@dataclass(frozen=True)
class Verdict:
    """The whole in words: ``sentences`` to be read first, the ``order`` of the models if there are more than two."""

    sentences: tuple[str, ...]
    order: str | None
    pairs: tuple[PairVerdict, ...]


def give_verdict(comparisons: Sequence[Compared], reference: str | None = None, verb: str = "knows more") -> Verdict:
    """Say what comparisons over whole tasks tell; with a ``reference`` the others are told of against it alone."""
    by_pair: dict[frozenset[str], list[Compared]] = {}
    for one in comparisons:
        by_pair.setdefault(frozenset((one["model"], one["other"])), []).append(one)
    names = task_names(comparisons)
    pairs = tuple(_pair(own, names, verb) for own in by_pair.values())
    order = None
    if len(pairs) < 2:
        said = [pair.sentence for pair in pairs]
    elif reference is not None:
        said = [_against(pairs, reference), *(pair.sentence for pair in pairs[:_MOST_NAMED])]
    else:
        models = list(dict.fromkeys(one[side] for one in comparisons for side in ("model", "other")))
        order = _order(models, {frozenset((one.model, one.other)): (one.relation, one.model) for one in pairs})
        signs = f" ({_SIGNS})" if " > " in order or " ≈ " in order else ""
        said = [f"Which model {verb}: {order}{signs}.", *_orders_by_task(models, comparisons, names)]
        if len(pairs) <= _FEW_PAIRS:
            said += [pair.sentence for pair in pairs]
    said += [*_weakness(comparisons, names, len(pairs)), *_uncorrected(comparisons, names), *_few(comparisons, names)]
    return Verdict(tuple(said), order, pairs)


def say_groups(groups: Sequence[Compared], column: str) -> list[str]:
    """In which groups the models differ, the largest differences first."""
    if not groups:
        return [
            f"By {column} there is nothing to compare: no group has questions about two facts that two models share."
        ]
    clear = sorted(filter(is_clear, groups), key=lambda one: -abs(one["difference"]))
    if not clear and len(groups) == 1:
        return [f"By {column}, the only difference that could be tested is not clear."]
    if not clear:
        return [f"By {column}, no difference is clear among {len(groups):,} (corrected for their number)."]
    one_pair = len({frozenset((one["model"], one["other"])) for one in groups}) == 1
    names = task_names(groups)
    by_pair: dict[tuple[str, str], list[Compared]] = {}
    for found in clear:
        better = found if found["difference"] > 0 else turned(found)
        by_pair.setdefault((better["model"], better["other"]), []).append(better)
    said = [f"By {column}, {len(clear):,} of {len(groups):,} differences are clear (q < {CLEAR})."]
    for (model, other), own in list(by_pair.items())[:_MOST_NAMED]:
        behind = "" if one_pair else f" of {told(other)}"
        parts = []
        for one in own:
            task = "" if len(names) == 1 else f" in {names[one['task'], one['metric']]}"
            parts.append(f"{one['group']}{task} ({amount(one)})")
        said.append(f"{told(model)} is ahead{behind} on {some_of(parts, _MOST_NAMED)}.")
    return said


def _pair(own: Sequence[Compared], names: Places, verb: str) -> PairVerdict:
    """The verdict on one pair, from the side of the model that is ahead of the other, or more often so."""
    own = [from_side(one, own[0]["model"]) for one in own]
    ahead, behind, alike = _parted(own)
    if len(behind) > len(ahead) or (not ahead and not behind and sum(one["difference"] for one in own) < 0):
        own = [turned(one) for one in own]
        ahead, behind, alike = _parted(own)
    model, other = told(own[0]["model"]), told(own[0]["other"])
    rest = f"; on {_tasks(alike, names)} the two cannot be told apart{_would_show(alike)}" if alike else ""
    if ahead and behind:
        relation = MIXED
        against = [turned(one) for one in behind]
        said = (
            f"Mixed: {model} is ahead on {_amounts(ahead, names)}, {other} on {_amounts(against, names)}{rest}. "
            f"Which of them {verb} depends on the task."
        )
    elif ahead:
        relation = AHEAD
        nowhere = " and not behind anywhere" if alike else ""
        said = f"{model} {verb} than {other}: it is ahead on {_amounts(ahead, names)}{nowhere}{rest}."
    else:
        relation = ALIKE
        said = _cannot_tell(own, model, other, names)
    return PairVerdict(own[0]["model"], own[0]["other"], relation, said, any(map(_is_weak, own)))


def _parted(own: Sequence[Compared]) -> tuple[list[Compared], list[Compared], list[Compared]]:
    """Where the first model is clearly ahead, where it is behind, and the rest."""
    clear = [one for one in own if is_clear(one)]
    return (
        [one for one in clear if one["difference"] > 0],
        [one for one in clear if one["difference"] < 0],
        [one for one in own if not is_clear(one) or one["difference"] == 0],
    )


def _cannot_tell(own: Sequence[Compared], model: str, other: str, names: Places) -> str:
    if all(map(is_equal, own)):
        return (
            f"{model} and {other} cannot be told apart: they score the same on every question of {_tasks(own, names)}."
        )
    shown = _would_show(own).strip(" ()")
    tail = f"; {shown}" if shown else ""
    return f"{model} and {other} cannot be told apart on {_amounts(own, names)}{tail}."


def _would_show(own: Sequence[Compared]) -> str:
    """The size of a difference that would have been found on any of these tasks."""
    known = [found for one in own if one.get("share", True) and (found := detectable(one)) is not None]
    if not known or len(known) < len(own) or max(known) >= 1.0:
        return ""
    return f" (a difference of {size(max(known))} points or more would probably have shown)"


def _against(pairs: Sequence[PairVerdict], reference: str) -> str:
    """Where the others stand to the reference, in one sentence."""
    parts: dict[str, list[str]] = {}
    for pair in pairs:
        first = pair.model != reference
        where = {MIXED: "mixed", ALIKE: "not told apart from it"}.get(
            pair.relation, "ahead of it" if first else "behind it"
        )
        parts.setdefault(where, []).append(told(pair.model if first else pair.other))
    order = ("ahead of it", "behind it", "mixed", "not told apart from it")
    said = [f"{where}: {listed(parts[where])}" for where in order if where in parts]
    return f"Against {told(reference)}, {'; '.join(said)}."


def _order(models: Sequence[str], relations: Relations) -> str:
    """``A > B ≈ C`` where that is all there is to say; else the pairs, for not being told apart does not carry over."""
    wins = {name: sum(found == (AHEAD, name) for found in relations.values()) for name in models}
    ranked = sorted(models, key=lambda name: -wins[name])
    for one, other in combinations(ranked, 2):
        relation, better = relations.get(frozenset((one, other)), (NEVER, ""))
        if relation != (ALIKE if wins[one] == wins[other] else AHEAD) or (relation == AHEAD and better != one):
            return _in_pairs(ranked, relations)
    levels: dict[int, list[str]] = {}
    for name in ranked:
        levels.setdefault(wins[name], []).append(told(name))
    return " > ".join(" ≈ ".join(level) for level in levels.values())


def _in_pairs(ranked: Sequence[str], relations: Relations) -> str:
    said: dict[str, list[str]] = {AHEAD: [], ALIKE: [], MIXED: [], NEVER: []}
    for one, other in combinations(ranked, 2):
        relation, better = relations.get(frozenset((one, other)), (NEVER, ""))
        names = [told(one), told(other)] if relation != AHEAD or better == one else [told(other), told(one)]
        said[relation].append({AHEAD: " > ", ALIKE: " ≈ "}.get(relation, " and ").join(names))
    if sum(map(len, said.values())) > _MOST_PAIRS:
        return _tally(ranked, relations)
    before = {MIXED: "mixed: ", NEVER: "not compared: "}
    parts = [f"{before.get(kind, '')}{'; '.join(some)}" for kind, some in said.items() if some]
    return f"there is no single order; {'; '.join(parts)}"


def _tally(ranked: Sequence[str], relations: Relations) -> str:
    """What is left to say of very many pairs: how many models each one is ahead of, and behind."""
    won, lost = Counter[str](), Counter[str]()
    for pair, (relation, better) in relations.items():
        if relation == AHEAD:
            won[better] += 1
            lost[next(name for name in pair if name != better)] += 1
    order = sorted(ranked, key=lambda name: (-won[name], lost[name]))
    parts = [f"{told(name)} {won[name]} and {lost[name]}" for name in order]
    said = some_of(parts, _MOST_TALLIED) if len(parts) > _MOST_TALLIED else ", ".join(parts)
    return f"there is no single order; each is clearly ahead of, and behind, so many others: {said}"


def _orders_by_task(models: Sequence[str], comparisons: Sequence[Compared], names: Places) -> list[str]:
    """The order on each task, where there are several."""
    if len(names) < 2:
        return []
    found: dict[str, list[str]] = {}
    for place, name in names.items():
        relations: dict[frozenset[str], tuple[str, str]] = {}
        for one in comparisons:
            if (one["task"], one["metric"]) == place:
                better = one["model"] if one["difference"] > 0 else one["other"]
                relations[frozenset((one["model"], one["other"]))] = (AHEAD, better) if is_clear(one) else (ALIKE, "")
        there = [model for model in models if any(model in pair for pair in relations)]
        found.setdefault(_order(there, relations), []).append(name)
    return [f"On {some_of(tasks, _MOST_NAMED)}: {order}." for order, tasks in list(found.items())[:_MOST_NAMED]]


def _is_weak(one: Compared) -> bool:
    """Whether a comparison that found nothing could hardly have found anything."""
    return one.get("share", True) and not is_clear(one) and not is_equal(one) and (detectable(one) or 0.0) > WEAK


def _weakness(comparisons: Sequence[Compared], names: Places, pairs: int) -> list[str]:
    weak = [one for one in comparisons if _is_weak(one)]
    if not weak:
        return []
    sizes = [size(least) for least in sorted(detectable(one) or 1.0 for one in weak)]
    facts = [f"{count:,}" for count in sorted(map(facts_behind, weak))]
    said = (
        f"The comparison is weak where it finds nothing: with {_span(facts)} facts, true differences below "
        f"{_span(sizes)} points are easily missed."
    )
    seen = max(weak, key=lambda one: abs(one["difference"]))
    needed = facts_needed(seen)
    if needed is not None and needed > facts_behind(seen):
        between = f"between {told(seen['model'])} and {told(seen['other'])} " if pairs > 1 else ""
        said += (
            f" To find a difference as large as the one seen {between}on {names[seen['task'], seen['metric']]} "
            f"({size(abs(seen['difference']))} points), some {_rounded(needed):,} facts are needed."
        )
    return [said]


def _uncorrected(comparisons: Sequence[Compared], names: Places) -> list[str]:
    """What would be called clear, had nothing else been compared."""
    alone = []
    for one in comparisons:
        raw = finite(one.get("p_raw"))
        if raw is not None and raw < CLEAR and not is_clear(one):
            alone.append(one)
    if not alone:
        return []
    what = f"{len(alone)} of {len(comparisons)} differences ({_tasks(alone, names)})"
    is_are = "is" if len(alone) == 1 else "are"
    return [f"{what} would be clear alone, and {is_are} not after correction for the number of comparisons."]


def _few(comparisons: Sequence[Compared], names: Places) -> list[str]:
    few = [one for one in comparisons if is_clear(one) and facts_behind(one) < FEW_FACTS]
    if not few:
        return []
    facts = _span([str(count) for count in sorted(map(facts_behind, few))])
    return [f"What is clear on {_tasks(few, names)} rests on {facts} facts: ask about more before you rely on it."]


def _tasks(own: Sequence[Compared], names: Places) -> str:
    return some_of(list(dict.fromkeys(names[one["task"], one["metric"]] for one in own)), _MOST_NAMED)


def _amounts(own: Sequence[Compared], names: Places) -> str:
    ordered = sorted(own, key=lambda one: -one["difference"])
    return some_of([f"{names[one['task'], one['metric']]} ({amount(one)})" for one in ordered], _MOST_NAMED)


def _span(sizes: Sequence[str]) -> str:
    return sizes[0] if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"


def _rounded(number: int) -> int:
    """Upward to two digits: more are not known."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step
