"""Analysis of answer formats: position and letter bias, and agreement between probes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Estimate,
    Figure,
    Line,
    Row,
    Table,
    TableRow,
    estimate,
    make_columns,
)
from merkhet.core.ids import derived_seed
from merkhet.core.text import percent, quote_name
from merkhet.metrics.association import agreement_interval
from merkhet.metrics.metrics import ACCURACY, EXACT, MetricNotApplicableError
from merkhet.metrics.ranks import FloatArray

CHOOSE = "choose"
_LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_POSITIONS = tuple(str(number + 1) for number in range(len(_LETTERS)))
_FEWEST_CHOICES = 20
"""The fewest choices for a sentence about bias."""
_FORMS = {
    "rank": "ranked by likelihood",
    "choose": "chosen by letter",
    "answer": "answered freely",
    "write": "written in the slot",
    "judge": "judged",
}
_EXPLANATION = (
    "The same questions, asked by several probes. Choices are shown in random order, so that the right one is at "
    "every position equally often: a model without position bias chooses each position as often as it is right. Bias "
    "is the total variation distance between chosen and right positions (or letters): the share of choices that would "
    "have to change. Letters follow positions, so that the two biases cannot be separated unless letters were random "
    "too (mixed_letters). Where questions were asked in several orders, “same choice” is the share of questions for "
    "which every order led to the same choice. Agreement of two probes is Cohen’s kappa of right and wrong answers: 1 "
    "is full agreement, 0 is agreement by chance. 95% intervals are over facts. A reply that names no choice counts "
    "as wrong."
)


def forms(inputs: AnalysisInput) -> Analysis | None:
    """Analyse the bias of choices by letter, and the agreement between probes; None without chat models."""
    chat_lines = [line for line in inputs.usable if any(row.get("outcome") for row in inputs.usable[line].values())]
    if not chat_lines:
        return None
    choosing = [line for line in chat_lines if line.probe == CHOOSE and inputs.usable[line]]
    bias_tables, bias_figures = _bias(inputs, choosing)
    agreement_tables, agreement_figure = _agreement_table(inputs)
    tables = [_outcome_table(inputs, chat_lines), *bias_tables, *agreement_tables]
    figures = [*bias_figures, *([agreement_figure] if agreement_figure is not None else [])]
    sentences = (
        *_describe_outcomes(inputs, chat_lines),
        *_describe_bias(inputs, choosing),
        *_describe_agreement(inputs),
    )
    return Analysis(
        "forms", "Answer formats: bias and agreement", _EXPLANATION, tuple(tables), tuple(figures), sentences
    )


def _outcome_table(inputs: AnalysisInput, lines: Sequence[Line]) -> Table:
    rows: list[TableRow] = []
    for line in lines:
        outcomes = Counter(str(row["outcome"]) for row in inputs.usable[line].values())
        count = sum(outcomes.values())
        shares = [outcomes[name] / count for name in ("answered", "no answer", "refused")]
        rows.append((inputs.labels[line], line.probe, count, *shares))
    columns = make_columns("Model", "Probe", "questions:count", "answered:share", "no answer:share", "refused:share")
    return Table("Outcomes of replies.", columns, tuple(rows))


def count_chosen_positions(inputs: AnalysisInput, answers: Sequence[Row]) -> tuple[FloatArray, FloatArray]:
    """Count how often each position was chosen, and how often the right choice was there, over all orders."""
    pairs = [pair for row in answers for pair in zip(row["positions"], row["right_positions"], strict=True)]
    return _count_choices(pairs, max((_choice_count(inputs, row) for row in answers), default=0))


def count_chosen_letters(inputs: AnalysisInput, answers: Sequence[Row]) -> tuple[FloatArray, FloatArray]:
    """Count how often each letter was chosen, and how often it was the right one, over all orders."""
    pairs = [
        (None if letter is None else _LETTERS.index(letter), _LETTERS.index(right))
        for row in answers
        for letter, right in zip(row["letters"], row["right_letters"], strict=True)
    ]
    return _count_choices(pairs, max((_choice_count(inputs, row) for row in answers), default=0))


def _count_choices(pairs: Sequence[tuple[int | None, int]], width: int) -> tuple[FloatArray, FloatArray]:
    chosen, right = np.zeros(width), np.zeros(width)
    for position, gold in pairs:
        if position is not None:
            chosen[position] += 1
            right[gold] += 1
    return chosen, right


def letters_are_shuffled(answers: Sequence[Row]) -> bool:
    """Return whether letters were shuffled independently of positions."""
    return any(
        _LETTERS.index(letter) != position
        for row in answers
        for letter, position in zip(row["right_letters"], row["right_positions"], strict=True)
    )


def _choice_count(inputs: AnalysisInput, row: Row) -> int:
    return int(row["among"] or len(inputs.questions_by_id[row["question_id"]].candidates))


def choice_bias(chosen: FloatArray, right: FloatArray) -> float:
    r"""Measure the bias of choices: the total variation distance between chosen and right positions.

    .. math:: \tfrac{1}{2} \sum_k |c_k - r_k|

    with the shares of choices and of right choices at each position k; in [0, 1], NaN if nothing was chosen.
    """
    if not chosen.sum():
        return float("nan")
    return float(np.abs(chosen / chosen.sum() - right / right.sum()).sum() / 2)


def _bias(inputs: AnalysisInput, lines: Sequence[Line]) -> tuple[list[Table], list[Figure]]:
    rows: list[TableRow] = []
    points: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for line in lines:
        for task, answers in _by_task(inputs, line).items():
            chosen, right = count_chosen_positions(inputs, answers)
            by_letter = count_chosen_letters(inputs, answers)
            count, mixed = int(chosen.sum()), letters_are_shuffled(answers)
            if not count:
                continue
            repeated = [row for row in answers if len(row["positions"]) > 1]
            label = inputs.labels[line]
            at_ends = (_accuracy_at_position(inputs, line, task, position) for position in (0, -1))
            biases = (choice_bias(chosen, right), choice_bias(*by_letter) if mixed else None)
            same_choice = _same_choice_share(inputs, repeated) if repeated else None
            rows.append((label, task, count, *at_ends, *biases, same_choice))
            profiles = [(f"{task}: chosen letters", "letter", by_letter, _LETTERS)]
            if mixed:
                profiles.append((f"{task}: chosen positions", "position", (chosen, right), _POSITIONS))
            for caption, axis, (counts, expected), names in profiles:
                if not points[caption, axis]:
                    points[caption, axis] += _profile_points("the right choice", "", expected, names)
                points[caption, axis] += _profile_points(label, line.model, counts, names)
    if not rows:
        return [], []
    columns = make_columns(
        *("Model", "Task", "choices:count", "accuracy if first:share", "accuracy if last:share"),
        *("position bias:share", "letter bias:share", "same choice:share"),
    )
    figures = [
        Figure("lines", caption, tuple(counts), axis, percent=True, y="share of choices")
        for (caption, axis), counts in points.items()
    ]
    return [Table("Bias for positions and letters.", columns, tuple(rows))], figures


def _profile_points(label: str, model: str, counts: FloatArray, names: Sequence[str]) -> list[Row]:
    """Make the points of a line: the share of choices of each letter or position."""
    total = float(counts.sum())
    return [
        {"x": name, "line": label, "model": model, **vars(Estimate(count / total, n=int(total)))}
        for name, count in zip(names, counts.tolist(), strict=False)
    ]


def _by_task(inputs: AnalysisInput, line: Line) -> dict[str, list[Row]]:
    by_task: dict[str, list[Row]] = defaultdict(list)
    for question_id, row in inputs.usable[line].items():
        by_task[inputs.questions_by_id[question_id].task].append(row)
    return {task: by_task[task] for task in inputs.tasks if task in by_task}


def _accuracy_at_position(inputs: AnalysisInput, line: Line, task: str, position: int) -> Estimate:
    """Compute the accuracy on orders that show the right choice at a position: the first (0) or the last (-1)."""
    values, ids = [], []
    for question_id, row in inputs.usable[line].items():
        if inputs.questions_by_id[question_id].task != task:
            continue
        for chosen, right in zip(row["positions"], row["right_positions"], strict=True):
            if right == (position if position >= 0 else _choice_count(inputs, row) - 1):
                values.append(float(chosen == right))
                ids.append(question_id)
    if not values:
        return Estimate(None)
    return inputs.mean(np.array(values), ids, "forms", task, position)


def _same_choice_share(inputs: AnalysisInput, answers: Sequence[Row]) -> Estimate:
    """Compute the share of questions in which all orders led to the same choice."""
    values = []
    for row in answers:
        # The orders are rotations of one order, so that a choice keeps its distance from the right one.
        width = _choice_count(inputs, row)
        offsets = {
            None if chosen is None else (chosen - right) % width
            for chosen, right in zip(row["positions"], row["right_positions"], strict=True)
        }
        values.append(float(len(offsets) == 1 and None not in offsets))
    ids = [row["question_id"] for row in answers]
    return inputs.mean(np.array(values), ids, "forms", "same choice")


def _lines_by_model(inputs: AnalysisInput) -> dict[str, dict[str, Line]]:
    """Find the first line of each probe, for models that were asked by several probes."""
    by_model: dict[str, dict[str, Line]] = defaultdict(dict)
    for line in inputs.usable:
        if line.probe in _FORMS and inputs.usable[line] and "@" not in line.method:
            by_model[line.model].setdefault(line.probe, line)
    return {model: lines for model, lines in by_model.items() if len(lines) > 1 and model not in inputs.baselines}


def _right_values(inputs: AnalysisInput, line: Line, ids: Sequence[str]) -> FloatArray:
    """Score each answer: accuracy of ranked candidates, or exact match of written text."""
    try:
        return inputs.values(line, ids, ACCURACY)
    except MetricNotApplicableError:
        return inputs.values(line, ids, EXACT)


def _pair_agreements(inputs: AnalysisInput) -> Mapping[tuple[str, str, str], tuple[Estimate, Estimate]]:
    """Compute for each model and pair of probes how often both are right or both wrong, and kappa."""
    agreements = {}
    for model, lines in _lines_by_model(inputs).items():
        for first_probe, second_probe in combinations([probe for probe in _FORMS if probe in lines], 2):
            ids = sorted(inputs.usable[lines[first_probe]].keys() & inputs.usable[lines[second_probe]].keys())
            if len({inputs.clusters[question_id] for question_id in ids}) < 2:
                continue
            first, second = (_right_values(inputs, lines[probe], ids) >= 0.5 for probe in (first_probe, second_probe))
            same = inputs.mean((first == second).astype(np.float64), ids, "forms", first_probe, second_probe)
            seed = derived_seed(inputs.seed, "forms", first_probe, second_probe)
            kappa = agreement_interval(first, second, inputs.cluster_ids(ids), seed=seed)
            agreements[model, first_probe, second_probe] = same, estimate(kappa, len(ids))
    return agreements


def _agreement_table(inputs: AnalysisInput) -> tuple[list[Table], Figure | None]:
    agreements = _pair_agreements(inputs)
    if not agreements:
        return [], None
    rows = tuple(
        (model, f"{_FORMS[first_probe]} – {_FORMS[second_probe]}", same.n, same, kappa)
        for (model, first_probe, second_probe), (same, kappa) in agreements.items()
    )
    columns = make_columns("Model", "Probes", "questions:count", "both right or both wrong:share", "kappa:correlation")
    points = tuple(
        {"x": f"{first_probe} – {second_probe}", "line": model, "model": model, **vars(kappa)}
        for (model, first_probe, second_probe), (_, kappa) in agreements.items()
    )
    caption = "Agreement between probes (Cohen’s kappa)"
    figure = Figure("lines", caption, points, "probes", percent=False, y="kappa", zero=False)
    return [Table("Agreement between probes on the same questions.", columns, rows)], figure


def _describe_outcomes(inputs: AnalysisInput, lines: Sequence[Line]) -> list[str]:
    sentences = []
    for line in lines:
        outcomes = Counter(str(row["outcome"]) for row in inputs.usable[line].values())
        count = sum(outcomes.values())
        verbs = {"no answer": "gave no answer to", "refused": "declined"}
        failures = [f"{verb} {percent(outcomes[name] / count)}" for name, verb in verbs.items() if outcomes[name]]
        if failures:
            sentences.append(
                f"{quote_name(inputs.labels[line])} {' and '.join(failures)} of {count:,} questions ({line.probe})."
            )
    return sentences


def _describe_bias(inputs: AnalysisInput, lines: Sequence[Line]) -> list[str]:
    sentences = []
    for line in lines:
        answers = list(inputs.usable[line].values())
        profiles = [("the letter", count_chosen_letters(inputs, answers), _LETTERS)]
        if letters_are_shuffled(answers):
            profiles.append(("position", count_chosen_positions(inputs, answers), _POSITIONS))
        for kind, (chosen, right), names in profiles:
            if chosen.sum() < _FEWEST_CHOICES:
                continue
            top = int(np.argmax(chosen - right))
            share, expected = chosen[top] / chosen.sum(), right[top] / right.sum()
            if share > 1.5 * expected and choice_bias(chosen, right) > 0.1:
                sentences.append(
                    f"{quote_name(inputs.labels[line])} prefers {kind} {names[top]}: {percent(share)} of its choices, "
                    f"but {percent(expected)} of the right ones."
                )
    return sentences


def _describe_agreement(inputs: AnalysisInput) -> list[str]:
    sentences = []
    for (model, first_probe, second_probe), (_, kappa) in _pair_agreements(inputs).items():
        if kappa.value is not None and kappa.low is not None and kappa.high is not None:
            degree = "hardly more than" if kappa.low <= 0.1 else "more than" if kappa.value < 0.6 else "far more than"
            degree = "less than" if kappa.high < 0 else degree
            sentences.append(
                f"Answers of {quote_name(model)} {_FORMS[first_probe]} and {_FORMS[second_probe]} agree {degree} "
                f"expected by chance (kappa {kappa.value:.2f} [{kappa.low:.2f}, {kappa.high:.2f}])."
            )
    return sentences
