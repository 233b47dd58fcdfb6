"""Whether it matters how one asks: bias for places and letters, and agreement between ways of asking."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Column,
    Estimate,
    Figure,
    Line,
    Row,
    Table,
    TableRow,
    estimate,
    percent,
    quote_name,
)
from merkhet.core.ids import derived_seed
from merkhet.metrics.association import agreement_interval
from merkhet.metrics.bootstrap import clustered_interval
from merkhet.metrics.metrics import ACCURACY, EXACT, MetricNotApplicableError
from merkhet.metrics.ranks import FloatArray

CHOOSE = "choose"
_LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_PLACES = tuple(str(number + 1) for number in range(len(_LETTERS)))
_ENOUGH = 20
"""Of fewer choices nothing is said about bias."""
_FORMS = {
    "rank": "ranked by likelihood",
    "choose": "chosen by letter",
    "answer": "answered freely",
    "write": "written in the slot",
    "judge": "judged",
}
_EXPLANATION = (
    "The same questions, asked in several ways. Choices are shown in an order that is drawn, so that the right one "
    "stands at every place equally often: a model without a bias for places chooses each as often as it is right "
    "there. Pull is the share of its choices that would have to move to another place, or letter, for that (total "
    "variation distance). Letters go with places, so that the two likings cannot be told apart, unless letters were "
    "drawn too (mixed_letters). Where questions were asked in several orders, “same choice” is the share of them in "
    "which every order led to the same choice. Agreement of two ways is Cohen’s kappa over questions of right against "
    "wrong: 1 is full agreement, 0 is what their scores alone would give. 95% intervals are over facts. A reply that "
    "names no choice is no answer, and counts as wrong."
)


def forms(given: AnalysisInput) -> Analysis | None:
    """Bias of what was chosen by letter, and agreement between ways of asking; None where no model was talked to."""
    spoken = [line for line in given.usable if any(row.get("outcome") for row in given.usable[line].values())]
    if not spoken:
        return None
    choosing = [line for line in spoken if line.probe == CHOOSE and given.usable[line]]
    bias, places = _bias(given, choosing)
    agreement, figure = _agreement(given)
    tables = [_outcomes(given, spoken), *bias, *agreement]
    figures = [*places, *([figure] if figure is not None else [])]
    sentences = (*_said_of_outcomes(given, spoken), *_said_of_bias(given, choosing), *_said_of_forms(given))
    return Analysis(
        "forms", "Ways of asking: bias and agreement", _EXPLANATION, tuple(tables), tuple(figures), sentences
    )


def _outcomes(given: AnalysisInput, lines: Sequence[Line]) -> Table:
    rows: list[TableRow] = []
    for line in lines:
        found = Counter(str(row["outcome"]) for row in given.usable[line].values())
        count = sum(found.values())
        shares = [found[name] / count for name in ("answered", "no answer", "refused")]
        rows.append((given.labels[line], line.probe, count, *shares))
    columns = (
        *(Column("Model"), Column("Way"), Column("questions", "count")),
        *(Column(name, "share") for name in ("answered", "no answer", "refused")),
    )
    return Table("What replies came to.", columns, tuple(rows))


def count_chosen_positions(given: AnalysisInput, answers: Sequence[Row]) -> tuple[FloatArray, FloatArray]:
    """How often each place was chosen, and how often the right choice stood there, over all orders of answers."""
    pairs = [pair for row in answers for pair in zip(row["positions"], row["right_positions"], strict=True)]
    return _counted(pairs, max((_width(given, row) for row in answers), default=0))


def count_chosen_letters(given: AnalysisInput, answers: Sequence[Row]) -> tuple[FloatArray, FloatArray]:
    """How often each letter was chosen, and how often it was the right one, over all orders of answers."""
    pairs = [
        (None if letter is None else _LETTERS.index(letter), _LETTERS.index(right))
        for row in answers
        for letter, right in zip(row["letters"], row["right_letters"], strict=True)
    ]
    return _counted(pairs, max((_width(given, row) for row in answers), default=0))


def _counted(pairs: Sequence[tuple[int | None, int]], width: int) -> tuple[FloatArray, FloatArray]:
    chosen, right = np.zeros(width), np.zeros(width)
    for place, gold in pairs:
        if place is not None:
            chosen[place] += 1
            right[gold] += 1
    return chosen, right


def letters_are_shuffled(answers: Sequence[Row]) -> bool:
    """Whether letters were drawn, so that they do not go with places."""
    return any(
        _LETTERS.index(letter) != place
        for row in answers
        for letter, place in zip(row["right_letters"], row["right_positions"], strict=True)
    )


def _width(given: AnalysisInput, row: Row) -> int:
    """How many choices were shown."""
    return int(row["among"] or len(given.questions_by_id[row["question_id"]].candidates))


def choice_bias(chosen: FloatArray, right: FloatArray) -> float:
    r"""The share of choices that would have to move for places to be chosen as often as they are right.

    .. math:: \tfrac{1}{2} \sum_k |c_k - r_k|

    with the shares of choices and of right choices at each place k; in [0, 1], NaN where nothing was chosen.
    """
    if not chosen.sum():
        return float("nan")
    return float(np.abs(chosen / chosen.sum() - right / right.sum()).sum() / 2)


def _bias(given: AnalysisInput, lines: Sequence[Line]) -> tuple[list[Table], list[Figure]]:
    rows: list[TableRow] = []
    drawn: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for line in lines:
        for task, answers in _by_task(given, line).items():
            chosen, right = count_chosen_positions(given, answers)
            by_letter = count_chosen_letters(given, answers)
            count, mixed = int(chosen.sum()), letters_are_shuffled(answers)
            if not count:
                continue
            several = [row for row in answers if len(row["positions"]) > 1]
            label = given.labels[line]
            rows.append(
                (
                    *(label, task, count, _at(given, line, task, 0), _at(given, line, task, -1)),
                    *(choice_bias(chosen, right), choice_bias(*by_letter) if mixed else None),
                    _same(given, several) if several else None,
                )
            )
            ways = [(f"{task}: letters that are chosen", "letter", by_letter, _LETTERS)]
            if mixed:
                ways.append((f"{task}: places that are chosen", "place", (chosen, right), _PLACES))
            for caption, axis, (own, expected), names in ways:
                if not drawn[caption, axis]:
                    drawn[caption, axis] += _profile("the right choice", "", expected, names)
                drawn[caption, axis] += _profile(label, line.model, own, names)
    if not rows:
        return [], []
    columns = (
        *(Column("Model"), Column("Task"), Column("choices", "count")),
        *(Column("right if it is first", "share"), Column("right if it is last", "share")),
        *(Column("pull of places", "share"), Column("pull of letters", "share"), Column("same choice", "share")),
    )
    figures = [
        Figure("lines", caption, tuple(own), axis, percent=True, y="share of choices")
        for (caption, axis), own in drawn.items()
    ]
    return [Table("Bias for places and letters.", columns, tuple(rows))], figures


def _profile(label: str, model: str, counts: FloatArray, names: Sequence[str]) -> list[Row]:
    """How often each letter or place is chosen, as a line."""
    total = float(counts.sum())
    return [
        {"x": name, "line": label, "model": model, **vars(Estimate(count / total, n=int(total)))}
        for name, count in zip(names, counts.tolist(), strict=False)
    ]


def _by_task(given: AnalysisInput, line: Line) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for name, row in given.usable[line].items():
        found[given.questions_by_id[name].task].append(row)
    return {task: found[task] for task in given.tasks if task in found}


def _at(given: AnalysisInput, line: Line, task: str, place: int) -> Estimate:
    """How often the choice is right where the right one is shown at a place: the first, or the last (-1)."""
    values, ids = [], []
    for name, row in given.usable[line].items():
        if given.questions_by_id[name].task != task:
            continue
        for chosen, right in zip(row["positions"], row["right_positions"], strict=True):
            if right == (place if place >= 0 else _width(given, row) - 1):
                values.append(float(chosen == right))
                ids.append(name)
    if not values:
        return Estimate(None)
    seed = derived_seed(given.seed, "forms", task, place)
    return estimate(clustered_interval(np.array(values), given.cluster_ids(ids), seed=seed), len(values))


def _same(given: AnalysisInput, answers: Sequence[Row]) -> Estimate:
    """The share of questions in which all orders led to the same choice, as far as the places tell."""
    values = []
    for row in answers:
        # The orders are one order turned on, so that a choice keeps its distance from the right one.
        width = _width(given, row)
        away = {
            None if chosen is None else (chosen - right) % width
            for chosen, right in zip(row["positions"], row["right_positions"], strict=True)
        }
        values.append(float(len(away) == 1 and None not in away))
    ids = [row["question_id"] for row in answers]
    seed = derived_seed(given.seed, "forms", "same choice")
    return estimate(clustered_interval(np.array(values), given.cluster_ids(ids), seed=seed), len(values))


def _lines_by_model(given: AnalysisInput) -> dict[str, dict[str, Line]]:
    """The first line of each way that a model was asked in; models that were asked in several."""
    found: dict[str, dict[str, Line]] = defaultdict(dict)
    for line in given.usable:
        if line.probe in _FORMS and given.usable[line] and "@" not in line.method:
            found[line.model].setdefault(line.probe, line)
    return {model: lines for model, lines in found.items() if len(lines) > 1 and model not in given.baselines}


def _right(given: AnalysisInput, line: Line, ids: Sequence[str]) -> FloatArray:
    """Whether each answer is right: the top of what was ranked, or what was written, word by word."""
    try:
        return given.values(line, ids, ACCURACY)
    except MetricNotApplicableError:
        return given.values(line, ids, EXACT)


def _pairs(given: AnalysisInput) -> Mapping[tuple[str, str, str], tuple[Estimate, Estimate]]:
    """Of each model and pair of ways: how often both are right or both wrong, and kappa."""
    found = {}
    for model, lines in _lines_by_model(given).items():
        for one, other in combinations([name for name in _FORMS if name in lines], 2):
            ids = sorted(given.usable[lines[one]].keys() & given.usable[lines[other]].keys())
            if len({given.clusters[name] for name in ids}) < 2:
                continue
            first, second = (_right(given, lines[name], ids) >= 0.5 for name in (one, other))
            seed = derived_seed(given.seed, "forms", one, other)
            clusters = given.cluster_ids(ids)
            alike = clustered_interval((first == second).astype(np.float64), clusters, seed=seed)
            kappa = agreement_interval(first, second, clusters, seed=seed)
            found[model, one, other] = estimate(alike, len(ids)), estimate(kappa, len(ids))
    return found


def _agreement(given: AnalysisInput) -> tuple[list[Table], Figure | None]:
    found = _pairs(given)
    if not found:
        return [], None
    rows = tuple(
        (model, f"{_FORMS[one]} – {_FORMS[other]}", alike.n, alike, kappa)
        for (model, one, other), (alike, kappa) in found.items()
    )
    columns = (
        *(Column("Model"), Column("Ways"), Column("questions", "count")),
        *(Column("both right or both wrong", "share"), Column("kappa", "correlation")),
    )
    drawn = tuple(
        {"x": f"{one} – {other}", "line": model, "model": model, **vars(kappa)}
        for (model, one, other), (_, kappa) in found.items()
    )
    caption = "Agreement between ways of asking (Cohen’s kappa)"
    figure = Figure("lines", caption, drawn, "ways", percent=False, y="kappa", zero=False)
    return [Table("Agreement between ways of asking, on the same questions.", columns, rows)], figure


def _said_of_outcomes(given: AnalysisInput, lines: Sequence[Line]) -> list[str]:
    said = []
    for line in lines:
        found = Counter(str(row["outcome"]) for row in given.usable[line].values())
        count = sum(found.values())
        lost = [f"{name} to {percent(found[name] / count)}" for name in ("no answer", "refused") if found[name]]
        if lost:
            lost = [
                text.replace("no answer to", "gave no answer to").replace("refused to", "declined") for text in lost
            ]
            said.append(f"{quote_name(given.labels[line])} {' and '.join(lost)} of {count:,} questions ({line.probe}).")
    return said


def _said_of_bias(given: AnalysisInput, lines: Sequence[Line]) -> list[str]:
    said = []
    for line in lines:
        answers = list(given.usable[line].values())
        ways = [("the letter", count_chosen_letters(given, answers), _LETTERS)]
        ways += [("place", count_chosen_positions(given, answers), _PLACES)] if letters_are_shuffled(answers) else []
        for what, (chosen, right), names in ways:
            if chosen.sum() < _ENOUGH:
                continue
            top = int(np.argmax(chosen - right))
            share, expected = chosen[top] / chosen.sum(), right[top] / right.sum()
            if share > 1.5 * expected and choice_bias(chosen, right) > 0.1:
                said.append(
                    f"{quote_name(given.labels[line])} is drawn to {what} {names[top]}: {percent(share)} of its "
                    "choices, "
                    f"where it is the right one in {percent(expected)}."
                )
    return said


def _said_of_forms(given: AnalysisInput) -> list[str]:
    said = []
    for (model, one, other), (_, kappa) in _pairs(given).items():
        if kappa.value is not None and kappa.low is not None and kappa.high is not None:
            known = "hardly more than" if kappa.low <= 0.1 else "more than" if kappa.value < 0.6 else "far more than"
            known = "less than" if kappa.high < 0 else known
            said.append(
                f"What {quote_name(model)} gets right {_FORMS[one]} and {_FORMS[other]} agrees {known} chance would "
                "have it "
                f"(kappa {kappa.value:.2f} [{kappa.low:.2f}, {kappa.high:.2f}])."
            )
    return said
