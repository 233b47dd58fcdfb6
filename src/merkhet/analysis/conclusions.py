"""Accuracy on conclusions whose premises a model knows, and on others; closed book against open book."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from merkhet.analysis.resampled_means import RESAMPLES, estimate_from_draws
from merkhet.analysis.types import Analysis, AnalysisInput, Estimate, Line, Table, TableRow, estimate, make_columns
from merkhet.core.ids import derived_seed
from merkhet.core.text import counted, difference, percent
from merkhet.metrics.bootstrap import clustered_interval, resampled_sums
from merkhet.metrics.ranks import FloatArray
from merkhet.models.protocol import RANDOM_PREFIX

ALL_AXIOMS = "all axioms"
STRATA = ("rare", "middle", "frequent")
_KNOWN, _OTHER = "known", "other"
_CLOSED, _OPEN, _COMPLETION, _COMPARISON = "reasoning", "open-book", "completion", "comparison"
Cell = tuple[str, str]
"""Axiom and stratum of popularity."""
_CERTAIN = 1.0 - 1e-9
_EXPLANATION = (
    "A premise is a stated fact at the bottom of a conclusion's proof. A model knows it if it answers all completion "
    "questions about it right, with the same probe and method; it knows the premises of a conclusion if it knows each "
    "of them. Conclusions with a premise that was not asked are left out. Right answers to closed-book questions are "
    "compared within strata of popularity: for each axiom, the conclusions are divided into three equal parts by how "
    "many stated facts name the subject, times how many name the object. Differences of strata are averaged with the "
    "weights a·b / (a + b) of a questions with known premises and b others. Intervals (95% bootstrap) draw clusters of "
    "conclusions: those that share their most widely used premise. The control is the untrained model of the same "
    "shape if the run has one, else a baseline; it answers the same questions, divided by what the model knows, so its "
    "difference shows how much easier the first group is without any knowledge of these facts. A difference is an "
    "association: what else makes a premise known may also make the conclusion known."
)
_COLUMNS = make_columns(
    *("Model", "Axiom", "conclusions:count", "premises known:share", "right if known:share", "right if not:share"),
    *("difference in strata:points", "Control", "control’s difference:points", "difference to control:points"),
)
_STRATUM_COLUMNS = make_columns(
    *("Model", "Axiom", "popularity", "known:count", "right if known:share", "not known:count", "right if not:share"),
    "difference:points",
)
_BOOK_COLUMNS = make_columns("Model", "Axiom", "n:count", "closed book:share", "open book:share", "difference:points")


@dataclass(frozen=True)
class _Conclusions:
    """Closed-book questions about conclusions whose premises were all asked."""

    axiom: Mapping[str, str]
    """Axiom of each question, by id."""
    premises: Mapping[str, tuple[str, ...]]
    stratum: Mapping[str, str]
    cluster: Mapping[str, int]
    """Number of the cluster of each question: its most widely used premise."""
    about: Mapping[str, tuple[str, ...]]
    """Completion questions about each premise."""


def conclusions(inputs: AnalysisInput) -> Analysis | None:
    """Compare right answers on conclusions with known premises with others; None without conclusions or completions."""
    tasks = set(inputs.tasks)
    if not inputs.premises or _CLOSED not in tasks | {_OPEN}:
        return None
    tables, sentences = _compare_books(inputs)
    if {_CLOSED, _COMPLETION} <= tasks:
        collected = _collect(inputs)
        if collected.axiom:
            made = [_compare_line(inputs, collected, line) for line in inputs.usable if not _is_control(inputs, line)]
            rows = [row for of_line, _, _ in made for row in of_line]
            strata = [row for _, of_line, _ in made for row in of_line]
            sentences = [*(text for _, _, texts in made for text in texts), *sentences]
            if rows:
                tables = [
                    Table("Conclusions by whether the model knows their premises.", _COLUMNS, tuple(rows)),
                    Table("The same by stratum of popularity.", _STRATUM_COLUMNS, tuple(strata), aside=True),
                    *tables,
                ]
        else:
            sentences = [
                "The completion questions of the premises were not asked: ask without a limit, or with "
                "options.premise_questions=true.",
                *sentences,
            ]
    if not tables and not sentences:
        return None
    title = "Conclusions: whose premises the model knows, and others"
    return Analysis("conclusions", title, _EXPLANATION, tuple(tables), sentences=tuple(sentences))


def _is_control(inputs: AnalysisInput, line: Line) -> bool:
    return line.model in inputs.baselines or _is_untrained(inputs, line)


def _is_untrained(inputs: AnalysisInput, line: Line) -> bool:
    return line.model.startswith(RANDOM_PREFIX) and line.model not in inputs.trained


def find_control(inputs: AnalysisInput, line: Line) -> Line | None:
    """Return the control of a line: the untrained model of the same shape, else another untrained one or a baseline.

    Controls with the same probe and method are preferred, and baselines that do not choose at random.
    """

    def rank(other: Line) -> tuple[bool, bool, bool, bool]:
        same_shape = other.model == f"{RANDOM_PREFIX}{line.model.removesuffix(', tuned')}"
        untrained = _is_untrained(inputs, other)
        asked_alike = (other.probe, other.method) == (line.probe, line.method)
        return not same_shape, not untrained, not asked_alike, other.model == "random"

    controls = [other for other in inputs.usable if _is_control(inputs, other)]
    return min(controls, key=rank) if controls else None


def _collect(inputs: AnalysisInput) -> _Conclusions:
    """Collect the closed-book questions about conclusions whose premises all have completion questions."""
    about: dict[str, list[str]] = defaultdict(list)
    for row in inputs.questions:
        if row["task"] == _COMPLETION and len(row["facts"] or ()) == 1:
            about[row["facts"][0]].append(row["question_id"])
    axiom, premises, fact = {}, {}, {}
    for row in inputs.questions:
        if row["task"] == _CLOSED and row["rule"] not in (None, _COMPARISON) and row["question_id"] in inputs.premises:
            below = tuple(name for name, _ in inputs.premises[row["question_id"]])
            if all(name in about for name in below):
                question_id = row["question_id"]
                axiom[question_id], premises[question_id], fact[question_id] = row["rule"], below, row["facts"][0]
    uses = Counter(
        name for below in dict(zip(fact.values(), premises.values(), strict=True)).values() for name in below
    )
    hubs = {question_id: min(below, key=lambda name: (-uses[name], name)) for question_id, below in premises.items()}
    numbers = {name: number for number, name in enumerate(sorted(set(hubs.values())))}
    return _Conclusions(
        axiom,
        premises,
        _strata(popularity(inputs, set(fact.values())), axiom, fact),
        {question_id: numbers[name] for question_id, name in hubs.items()},
        {name: tuple(ids) for name, ids in about.items()},
    )


def popularity(inputs: AnalysisInput, conclusions: set[str]) -> dict[str, int]:
    """Return the popularity of conclusions: stated facts that name the subject, times those that name the object."""
    named: Counter[str] = Counter()
    ends = {}
    for row in inputs.facts:
        names = (row["subject"], row["object"])
        if row["fact_id"] in conclusions:
            ends[row["fact_id"]] = names
        if row.get("rule") is None:
            named.update({name for name in names if name is not None})
    return {name: (1 + named[subject]) * (1 + named[object_]) for name, (subject, object_) in ends.items()}


def _strata(values: Mapping[str, int], axiom: Mapping[str, str], fact: Mapping[str, str]) -> dict[str, str]:
    """Divide the conclusions of each axiom into three parts by popularity; equal values stay together."""
    by_axiom: dict[str, dict[str, int]] = defaultdict(dict)
    for question_id, name in axiom.items():
        by_axiom[name][fact[question_id]] = values.get(fact[question_id], 0)
    bounds = {name: np.quantile(list(of.values()), (1 / 3, 2 / 3)) for name, of in by_axiom.items()}
    return {
        question_id: STRATA[int(np.searchsorted(bounds[name], values.get(fact[question_id], 0), side="left"))]
        for question_id, name in axiom.items()
    }


def known_premises(inputs: AnalysisInput, line: Line, about: Mapping[str, Sequence[str]]) -> dict[str, bool]:
    """Return whether a model knows each premise: all answered completion questions about it are right.

    Premises without an answered question are missing.
    """
    answers = inputs.usable[line]
    answered = {name: [one for one in ids if one in answers] for name, ids in about.items()}
    asked = [one for ids in answered.values() for one in ids]
    right = dict(zip(asked, inputs.right_probabilities(line, asked).tolist(), strict=True)) if asked else {}
    return {name: all(right[one] >= _CERTAIN for one in ids) for name, ids in answered.items() if ids}


def _compare_line(
    inputs: AnalysisInput, collected: _Conclusions, line: Line
) -> tuple[list[TableRow], list[TableRow], list[str]]:
    """Return the rows of both tables and the sentence of one model, probe and method."""
    needed = {name for below in collected.premises.values() for name in below}
    known = known_premises(inputs, line, {name: collected.about[name] for name in needed})
    status = {
        question_id: _KNOWN if all(known[name] for name in below) else _OTHER
        for question_id, below in collected.premises.items()
        if question_id in inputs.usable[line] and all(name in known for name in below)
    }
    if not status:
        return [], [], []
    control = find_control(inputs, line)
    sides = {"model": line} | ({"control": control} if control else {})
    groups: dict[Cell, dict[str, list[str]]] = defaultdict(lambda: {_KNOWN: [], _OTHER: []})
    for question_id, group in status.items():
        groups[collected.axiom[question_id], collected.stratum[question_id]][group].append(question_id)
    numbers = {
        side: _Resamples(inputs, of, groups, collected.cluster, derived_seed(inputs.seed, "conclusions", line.model))
        for side, of in sides.items()
    }
    axioms = sorted({axiom for axiom, _ in groups})
    rows: list[TableRow] = []
    for axiom in [*axioms, *([ALL_AXIOMS] if len(axioms) > 1 else [])]:
        cells = [cell for cell in groups if axiom in (cell[0], ALL_AXIOMS)]
        ids = [one for cell in cells for group in groups[cell].values() for one in group]
        known_ids, other_ids = ([one for cell in cells for one in groups[cell][group]] for group in (_KNOWN, _OTHER))
        apart = {side: of.difference(cells) for side, of in numbers.items()}
        own, others = (apart.get(side) for side in ("model", "control"))
        rows.append(
            (
                inputs.labels[line],
                axiom,
                len({inputs.clusters[one] for one in ids}),
                len(known_ids) / len(ids),
                *(numbers["model"].mean(some) for some in (known_ids, other_ids)),
                _estimate(own, len(ids)),
                inputs.labels[control] if control else None,
                _estimate(others, len(ids)),
                _estimate(None if own is None or others is None else own - others, len(ids)),
            )
        )
    strata: list[TableRow] = [
        (
            inputs.labels[line],
            *(axiom, stratum),
            *(part for ids in groups[axiom, stratum].values() for part in (len(ids), numbers["model"].mean(ids))),
            _estimate(numbers["model"].difference([(axiom, stratum)]), None),
        )
        for axiom in axioms
        for stratum in STRATA
        if (axiom, stratum) in groups
    ]
    return rows, strata, [_sentence(rows[-1])]


class _Resamples:
    """Sums of right answers by stratum and group, for one line and for bootstrap resamples of clusters.

    Lines with the same seed and clusters share the resamples, which makes their differences paired.
    """

    def __init__(
        self,
        inputs: AnalysisInput,
        line: Line,
        groups: Mapping[Cell, Mapping[str, Sequence[str]]],
        cluster: Mapping[str, int],
        seed: int,
    ) -> None:
        self.seed, self.cluster = seed, cluster
        columns = [(cell, group, ids) for cell, of in groups.items() for group, ids in of.items()]
        rows = {name: row for row, name in enumerate(sorted({cluster[one] for *_, ids in columns for one in ids}))}
        sums = np.zeros((len(rows), 2 * len(columns)))
        self.clusters: dict[tuple[Cell, str], set[int]] = {}
        self.right: dict[str, float] = {}
        for place, (cell, group, ids) in enumerate(columns):
            answered = [one for one in ids if one in inputs.usable[line]]
            right = inputs.right_probabilities(line, answered) if answered else np.zeros(0)
            self.right.update(zip(answered, right.tolist(), strict=True))
            own = [rows[cluster[one]] for one in answered]
            np.add.at(sums, (own, 2 * place), right)
            np.add.at(sums, (own, 2 * place + 1), 1.0)
            self.clusters[cell, group] = set(own)
        drawn = [resampled_sums(sums, seed=seed, resamples=RESAMPLES)] if len(rows) > 1 else []
        totals = np.concatenate([sums.sum(axis=0)[None, :], *drawn])
        self.sums = {column[:2]: totals[:, 2 * place] for place, column in enumerate(columns)}
        self.counts = {column[:2]: totals[:, 2 * place + 1] for place, column in enumerate(columns)}

    def mean(self, ids: Sequence[str]) -> Estimate | None:
        """Estimate the share of right answers; None without answers."""
        answered = [one for one in ids if one in self.right]
        if not answered:
            return None
        values = np.array([self.right[one] for one in answered])
        clusters = np.array([self.cluster[one] for one in answered], dtype=np.int64)
        return estimate(clustered_interval(values, clusters, seed=self.seed), len(answered))

    def difference(self, cells: Sequence[Cell]) -> FloatArray | None:
        r"""Return the difference of both groups within strata, and that of each resample.

        .. math:: \sum_s w_s (\bar k_s - \bar u_s) / \sum_s w_s, \quad w_s = a_s b_s / (a_s + b_s)

        with the numbers a of questions with known premises and b of others. A stratum without one of the groups does
        not count. None if no stratum counts; there are no resamples if a group has only one cluster.
        """
        total = weights = np.zeros(1)
        compared: dict[str, set[int]] = {_KNOWN: set(), _OTHER: set()}
        for cell in cells:
            first, second = (self.counts[cell, group] for group in (_KNOWN, _OTHER))
            if not (first[0] and second[0]):
                continue
            for group, names in compared.items():
                names |= self.clusters[cell, group]
            both = (first > 0) & (second > 0)
            means = [
                np.divide(self.sums[cell, group], self.counts[cell, group], out=np.zeros(len(both)), where=both)
                for group in (_KNOWN, _OTHER)
            ]
            weight = np.divide(first * second, first + second, out=np.zeros(len(both)), where=both)
            total, weights = total + weight * (means[0] - means[1]), weights + weight
        if not weights[0]:
            return None
        apart: FloatArray = np.divide(total, weights, out=np.full(len(total), np.nan), where=weights > 0)
        if min(map(len, compared.values())) < 2:
            apart[1:] = np.nan
        return apart


def _estimate(draws: FloatArray | None, n: int | None) -> Estimate | None:
    return None if draws is None else estimate_from_draws(draws, n)


def _sentence(row: TableRow) -> str:
    model, _, count, share, known, other, apart, control, control_apart, _ = row
    assert isinstance(count, int) and isinstance(share, float)
    start = f"{model} knows all premises of {percent(share)} of the questions on {counted(count, 'conclusion')}"
    if not (isinstance(apart, Estimate) and isinstance(known, Estimate) and isinstance(other, Estimate)):
        return f"{start}: too few to compare."
    assert apart.value is not None and known.value is not None and other.value is not None
    interval = (
        "" if apart.low is None or apart.high is None else f" [{difference(apart.low)}, {difference(apart.high)}]"
    )
    text = (
        f"{start}. Of these it has {percent(known.value)} right, of the others {percent(other.value)}; within strata "
        f"of popularity the difference is {difference(apart.value)}{interval} points"
    )
    if isinstance(control_apart, Estimate) and control_apart.value is not None:
        text += f", and {difference(control_apart.value)} for {control} on the same questions"
    return f"{text}."


def _compare_books(inputs: AnalysisInput) -> tuple[list[Table], list[str]]:
    """Compare closed-book and open-book answers to the same prompts; empty without open-book questions."""
    pairs: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    rules = {}
    for row in inputs.questions:
        if row["task"] in (_CLOSED, _OPEN) and row["rule"] is not None and row["question_id"] in inputs.premises:
            key = (row["qset"] or "", row["template"] or "", row["target"])
            pairs[key][row["task"]] = row["question_id"]
            rules[row["question_id"]] = row["rule"]
    both = [(of[_CLOSED], of[_OPEN]) for of in pairs.values() if len(of) == 2]
    rows: list[TableRow] = []
    sentences = []
    for line, answers in inputs.usable.items():
        answered = [pair for pair in both if all(one in answers for one in pair)]
        axioms = sorted({rules[first] for first, _ in answered})
        for axiom in [*axioms, *([ALL_AXIOMS] if len(axioms) > 1 else [])]:
            chosen = [pair for pair in answered if axiom in (rules[pair[0]], ALL_AXIOMS)]
            sides = [[pair[place] for pair in chosen] for place in range(2)]
            right = [inputs.right_probabilities(line, ids) for ids in sides]
            seeds = ("books", *vars(line).values(), axiom)
            means = [inputs.mean(values, ids, *seeds) for values, ids in zip(right, sides, strict=True)]
            apart = inputs.mean(right[1] - right[0], sides[0], *seeds, "difference")
            rows.append((inputs.labels[line], axiom, len(chosen), *means, apart))
        if answered and line.model not in inputs.baselines:
            closed, opened = (
                float(np.mean(inputs.right_probabilities(line, [pair[place] for pair in answered])))
                for place in range(2)
            )
            sentences.append(
                f"{inputs.labels[line]} has {percent(closed)} of {counted(len(answered), 'question')} right with "
                f"closed book and {percent(opened)} with the premises in the text."
            )
    caption = "The same questions with closed book and open book."
    return ([Table(caption, _BOOK_COLUMNS, tuple(rows))] if rows else []), sentences
