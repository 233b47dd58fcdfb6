"""Spread of a score over paraphrases of its questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MIN_ITEMS = 10
"""Minimum number of items of which a spread is computed; the spread of fewer is mostly chance."""
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


class Wording(NamedTuple):
    """What a question asks and in which words: questions with equal items are paraphrases of each other."""

    item: str
    template: str


class WordingSpread(NamedTuple):
    """Standard deviation of a score over wordings, and the number of items that it is computed from."""

    sd: float
    items: int


class _Family(NamedTuple):
    """Templates that are compared, and the items that were asked in all of them, as indices."""

    templates: tuple[int, ...]
    items: IntArray


class PairedWordings:
    """Items of a set of questions that were asked in several wordings.

    Templates that share an item are alternatives, such as the paraphrases of one relation. Of each set of alternatives,
    those templates are compared that most items were asked in, by these items alone.

    Args:
        ids: Question ids. Answers refer to them by index.
        wordings: Item and template by question id; a question without a template has none.
    """

    def __init__(self, ids: Sequence[str], wordings: Mapping[str, Wording]) -> None:
        items: dict[str, int] = {}
        templates: dict[str, int] = {}
        pairs = [
            (items.setdefault(known.item, len(items)), templates.setdefault(known.template, len(templates)))
            if (known := wordings.get(name))
            else (-1, -1)
            for name in ids
        ]
        self.item, self.template = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        self.template_count = len(templates)
        names = sorted(templates)
        self.order = {templates[name]: rank for rank, name in enumerate(names)}

    def spread(self, codes: IntArray, values: FloatArray, classes: IntArray | None = None) -> WordingSpread | None:
        r"""Compute the standard deviation of a score over wordings.

        .. math:: \mathrm{sd} = \sqrt{\sum_f \mathrm{var}_{t \in f} \sum_{i \in f} w_i v_{it}}

        The sum is over families f of alternative templates, t is a template of a family, i an item that was asked in
        all of them, v its value and w its weight, 1 divided by the number of items. This is the standard deviation of
        the score if each family of questions is asked in one of its templates, drawn at random. With one family, it is
        the standard deviation of the scores by template.

        Args:
            codes: Index of each answered question in ``ids``.
            values: Value of each answered question; an item with a value that is not finite is left out.
            classes: Class of each question, if the score is a mean over classes.

        Returns:
            None if fewer than ``MIN_ITEMS`` items were asked in several wordings.
        """
        worded = self.item[codes] >= 0
        if not worded.any():
            return None
        item, template, value = self.item[codes][worded], self.template[codes][worded], values[worded]
        key, pair = np.unique(item * self.template_count + template, return_inverse=True)
        with np.errstate(invalid="ignore"):
            means = np.bincount(pair, value) / np.bincount(pair)
        unusable = set((key[~np.isfinite(means)] // self.template_count).tolist())
        value_of = dict(zip(key.tolist(), means.tolist(), strict=True))
        templates_of: dict[int, list[int]] = defaultdict(list)
        for code in key.tolist():
            templates_of[code // self.template_count].append(code % self.template_count)
        families = [
            family._replace(items=np.array([item for item in family.items.tolist() if item not in unusable]))
            for family in self._families(templates_of)
        ]
        compared = [item for family in families for item in family.items.tolist()]
        if len(compared) < MIN_ITEMS:
            return None
        weight = dict.fromkeys(compared, 1 / len(compared))
        if classes is not None:
            class_of = dict(zip(item.tolist(), classes[worded].tolist(), strict=True))
            sizes = np.unique([class_of[name] for name in compared], return_counts=True)
            size_of = dict(zip(*(part.tolist() for part in sizes), strict=True))
            weight = {name: 1 / (len(size_of) * size_of[class_of[name]]) for name in compared}
        variance = 0.0
        for family in families:
            scores = [
                sum(weight[name] * value_of[name * self.template_count + template] for name in family.items.tolist())
                for template in family.templates
            ]
            variance += float(np.var(scores, ddof=1))
        return WordingSpread(float(np.sqrt(variance)), len(compared))

    def _families(self, templates_of: Mapping[int, Sequence[int]]) -> list[_Family]:
        """Find the alternative templates, and choose those to compare with their items."""
        items_of: dict[frozenset[int], list[int]] = defaultdict(list)
        for item, names in templates_of.items():
            if len(names) > 1:
                items_of[frozenset(names)].append(item)
        components: list[tuple[set[int], list[frozenset[int]]]] = []
        for templates in items_of:
            linked = [component for component in components if not component[0].isdisjoint(templates)]
            members = {*templates, *(template for members, _ in linked for template in members)}
            sets = [templates, *(entry for _, entries in linked for entry in entries)]
            components = [component for component in components if component not in linked] + [(members, sets)]
        families = []
        for _, sets in components:
            count = {chosen: sum(len(items_of[other]) for other in sets if other >= chosen) for chosen in sets}
            ranks = {chosen: sorted(self.order[template] for template in chosen) for chosen in sets}
            best = min(sets, key=lambda chosen: (-count[chosen] * (len(chosen) - 1), -len(chosen), ranks[chosen]))
            items = sorted(item for other in sets if other >= best for item in items_of[other])
            families.append(_Family(tuple(sorted(best, key=self.order.__getitem__)), np.array(items, dtype=np.int64)))
        return families
