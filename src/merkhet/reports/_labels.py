"""Short labels that keep the part in which they differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from rich.cells import cell_len

Measure = Callable[[str], float]
"""Function from a text to its width."""
_PARTS = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]|[^\W\d_]+|\d+|.", re.DOTALL)
"""Letters of a word, digits of a number, or one other character."""
_ELLIPSIS = "…"


def shorten_labels(labels: Iterable[str], width: float, measure: Measure = cell_len) -> dict[str, str]:
    """Shorten the labels of one figure or table to ``width``, so that distinct labels stay distinct.

    An ellipsis replaces what labels have in common; the parts in which a label differs from the others are kept. Labels
    that differ in more than fits get a number at the end.

    Args:
        labels: All labels that are shown together.
        measure: Width of a text; by default, in terminal cells.

    Returns:
        The short text by label. A label that fits is unchanged.
    """
    return dict(_shorten_labels(tuple(dict.fromkeys(labels)), width, measure))


@lru_cache(maxsize=256)
def _shorten_labels(labels: tuple[str, ...], width: float, measure: Measure) -> tuple[tuple[str, str], ...]:
    short = {label: label for label in labels if measure(label) <= width}
    if len(short) == len(labels):
        return tuple(short.items())
    taken = set(short.values())
    parts_of = {label: _PARTS.findall(label) for label in labels}
    regions_of = {
        label: [_differing_region(parts, other) for name, other in parts_of.items() if name != label]
        for label, parts in parts_of.items()
    }
    kept_of = {label: _critical_parts(parts, regions_of[label], width, measure) for label, parts in parts_of.items()}
    varying = {parts_of[label][index] for label, kept in kept_of.items() for index in kept}
    for label, parts in parts_of.items():
        if label in short:
            continue
        kept = kept_of[label]
        if not kept and regions_of[label]:  # A part is too long: keep its letters from the first one that differs.
            start = len("".join(parts[: min(regions_of[label], key=len).start]))
            start += _common_letters(label[start:], [name[start:] for name in labels if name != label])
            parts = list(label)
            kept = _fitting_parts(parts, range(start, len(parts)), set(), width, measure)
        also_varying = [index for index, part in enumerate(parts) if part in varying and part.isalnum()]
        for index in also_varying:
            kept |= _fitting_parts(parts, range(index, index + 1), kept, width, measure)
        text = _join(parts, _fill(parts, kept, width, measure))
        short[label] = text if text not in taken else _number(label, taken, width, measure)
        taken.add(short[label])
    return tuple((label, short[label]) for label in labels)


def _critical_parts(parts: Sequence[str], regions: Sequence[range], width: float, measure: Measure) -> set[int]:
    """Return the parts that tell a label from all others, beginning with the most similar ones."""
    kept: set[int] = set()
    for region in sorted(regions, key=lambda region: (len(region), region.start)):
        if kept.isdisjoint(region):
            kept |= _fitting_parts(parts, region, kept, width, measure)
    return kept


def _differing_region(parts: Sequence[str], other: Sequence[str]) -> range:
    """Return the indices of the parts between the common start and the common end of two labels; never empty."""
    shorter = min(len(parts), len(other))
    start = next((index for index in range(shorter) if parts[index] != other[index]), shorter)
    end = next((size for size in range(shorter - start) if parts[-1 - size] != other[-1 - size]), shorter - start)
    stop = len(parts) - end
    if start < stop:
        return range(start, stop)
    # The other label has additional parts: keep the neighbours of the place where they are missing.
    return range(max(0, start - 1), min(len(parts), start + 1))


def _fitting_parts(parts: Sequence[str], region: range, kept: set[int], width: float, measure: Measure) -> set[int]:
    """Return the longest start of a region that fits beside the parts kept so far."""
    fitting: set[int] = set()
    for index in region:
        if measure(_join(parts, kept | fitting | {index})) > width:
            break
        fitting.add(index)
    return fitting


def _fill(parts: Sequence[str], kept: set[int], width: float, measure: Measure) -> set[int]:
    """Add parts from the start, around the kept ones and from the end, in turn, until the label is full."""
    kept = set(kept)
    while True:
        first_gap = next((index for index in range(len(parts)) if index not in kept), None)
        if first_gap is None:
            return kept
        last_gap = next(index for index in reversed(range(len(parts))) if index not in kept)
        before_kept = next(
            (index - 1 for index in sorted(kept, reverse=True) if index and index - 1 not in kept), last_gap
        )
        added = False
        for index in (first_gap, before_kept, last_gap):
            if index not in kept and measure(_join(parts, kept | {index})) <= width:
                kept.add(index)
                added = True
        if not added:
            return kept


def _join(parts: Sequence[str], kept: set[int]) -> str:
    """Join the kept parts, with an ellipsis for each gap."""
    texts: list[str] = []
    for index, part in enumerate(parts):
        if index in kept:
            texts.append(part)
        elif not texts or texts[-1] is not _ELLIPSIS:
            texts.append(_ELLIPSIS)
    return "".join(texts)


def _common_letters(text: str, others: Sequence[str]) -> int:
    """Return the length of the longest common start of ``text`` and any of ``others``."""
    longest = 0
    for other in others:
        size = next((index for index, pair in enumerate(zip(text, other, strict=False)) if len(set(pair)) > 1), None)
        longest = max(longest, min(len(text), len(other)) if size is None else size)
    return min(longest, max(0, len(text) - 1))


def _number(label: str, taken: set[str], width: float, measure: Measure) -> str:
    """Shorten a label to its start and a number that makes it unique."""
    number = 2
    while True:
        end = f"{_ELLIPSIS}#{number}"
        kept = label
        while kept and measure(kept + end) > width:
            kept = kept[:-1]
        if kept + end not in taken:
            return kept + end
        number += 1
