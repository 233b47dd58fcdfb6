"""Analysis of answer formats: position and letter bias, and agreement between probes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from string import ascii_uppercase

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
from merkhet.core.text import counted, percent, quote_name
from merkhet.metrics.association import agreement_interval
from merkhet.metrics.bootstrap import paired_difference
from merkhet.metrics.corrections import SIGNIFICANCE_LEVEL
from merkhet.metrics.metrics import ACCURACY, EXACT
from merkhet.metrics.ranks import FloatArray

CHOOSE = "choose"
_LETTER, _POSITION = "letter", "position"
_CHOICE_NAMES = {
    _LETTER: ascii_uppercase,
    _POSITION: tuple(str(number + 1) for number in range(len(ascii_uppercase))),
}
_FEWEST_CHOICES = 20
"""Minimum number of choices that a model must have made for a sentence about its bias."""
_FORMS = {
    "rank": "ranked by likelihood",
    "choose": "chosen by letter",
    "answer": "answered freely",
    "write": "written in the slot",
    "judge": "judged",
}
Part = tuple[list[Table], list[Figure], list[str]]
"""Tables, figures and sentences of one section of the analysis."""
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
    """Analyse outcomes, position and letter bias, and agreement between probes; None without chat models."""
    chat_lines = [line for line in inputs.usable if any(row.get("outcome") for row in inputs.usable[line].values())]
    if not chat_lines:
        return None
    choosing = [line for line in chat_lines if line.probe == CHOOSE and inputs.usable[line]]
    parts = (_outcomes(inputs, chat_lines), _bias(inputs, choosing), _agreement(inputs))
    tables = [table for part in parts for table in part[0]]
    figures = [figure for part in parts for figure in part[1]]
    sentences = [sentence for part in parts for sentence in part[2]]
    title = "Answer formats: bias and agreement"
    return Analysis("forms", title, _EXPLANATION, tuple(tables), tuple(figures), tuple(sentences))


def _outcomes(inputs: AnalysisInput, lines: Sequence[Line]) -> Part:
    rows: list[TableRow] = []
    sentences = []
    for line in lines:
        outcomes = Counter(str(row["outcome"]) for row in inputs.usable[line].values())
        count = sum(outcomes.values())
        shares = {name: outcomes[name] / count for name in ("answered", "no answer", "refused")}
        rows.append((inputs.labels[line], line.probe, count, *shares.values()))
        verbs = {"no answer": "gave no answer to", "refused": "declined"}
        failures = [f"{verb} {percent(shares[name])}" for name, verb in verbs.items() if shares[name]]
        if failures:
            sentences.append(
                f"{quote_name(inputs.labels[line])} {' and '.join(failures)} of {counted(count, 'question')} "
                f"({line.probe})."
            )
    columns = make_columns("Model", "Probe", "questions:count", "answered:share", "no answer:share", "refused:share")
    return [Table("Outcomes of replies.", columns, tuple(rows))], [], sentences


def count_choices(inputs: AnalysisInput, answers: Sequence[Row], kind: str) -> tuple[FloatArray, FloatArray]:
    """Count how often each position (or letter) was chosen and how often it was right, over all orders of choices."""
    width = max((_choice_count(inputs, row) for row in answers), default=0)
    chosen, right = np.zeros(width), np.zeros(width)
    for row in answers:
        for choice, gold in zip(row[f"{kind}s"], row[f"right_{kind}s"], strict=True):
            if choice is not None:
                chosen[_choice_index(choice)] += 1
                right[_choice_index(gold)] += 1
    return chosen, right


def _choice_index(choice: int | str) -> int:
    return ascii_uppercase.index(choice) if isinstance(choice, str) else choice


def _shown_kinds(answers: Sequence[Row]) -> tuple[str, ...]:
    """Return the biases to report: letters, and also positions if letters were shuffled independently."""
    shuffled = any(
        ascii_uppercase.index(letter) != position
        for row in answers
        for letter, position in zip(row["right_letters"], row["right_positions"], strict=True)
    )
    return (_LETTER, _POSITION) if shuffled else (_LETTER,)


def _choice_count(inputs: AnalysisInput, row: Row) -> int:
    return int(row["among"] or len(inputs.questions_by_id[row["question_id"]].candidates))


def choice_bias(chosen: FloatArray, right: FloatArray) -> float:
    r"""Measure the bias of choices: the total variation distance between chosen and right positions.

    .. math:: \tfrac{1}{2} \sum_k |c_k - r_k|

    with the share c of choices and the share r of right choices at each position k. In [0, 1]; NaN if nothing was
    chosen.
    """
    if not chosen.sum():
        return float("nan")
    return float(np.abs(chosen / chosen.sum() - right / right.sum()).sum() / 2)


def _bias(inputs: AnalysisInput, lines: Sequence[Line]) -> Part:
    rows, sentences = [], []
    points: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for line in lines:
        sentences += _describe_bias(inputs, line)
        by_task: dict[str, list[Row]] = defaultdict(list)
        for question_id, row in inputs.usable[line].items():
            by_task[inputs.questions_by_id[question_id].task].append(row)
        for task in (task for task in inputs.tasks if task in by_task):
            answers, shown = by_task[task], _shown_kinds(by_task[task])
            counts = {kind: count_choices(inputs, answers, kind) for kind in (_POSITION, _LETTER)}
            count = int(counts[_POSITION][0].sum())
            if not count:
                continue
            label = inputs.labels[line]
            at_ends = (_accuracy_at_position(inputs, answers, task, position) for position in (0, -1))
            letter_bias = choice_bias(*counts[_LETTER]) if _POSITION in shown else None
            same_choice = _same_choice_share(inputs, [row for row in answers if len(row["positions"]) > 1])
            rows.append((label, task, count, *at_ends, choice_bias(*counts[_POSITION]), letter_bias, same_choice))
            for kind in shown:
                chosen, right = counts[kind]
                profile = points[f"{task}: chosen {kind}s", kind]
                profile += [] if profile else _profile_points("the right choice", "", right, kind)
                profile += _profile_points(label, line.model, chosen, kind)
    if not rows:
        return [], [], sentences
    columns = make_columns(
        *("Model", "Task", "choices:count", "accuracy if first:share", "accuracy if last:share"),
        *("position bias:share", "letter bias:share", "same choice:share"),
    )
    figures = [
        Figure("lines", caption, tuple(profile), kind, percent=True, y="share of choices")
        for (caption, kind), profile in points.items()
    ]
    return [Table("Bias for positions and letters.", columns, tuple(rows))], figures, sentences


def _profile_points(label: str, model: str, counts: FloatArray, kind: str) -> list[Row]:
    """Make the data points of a figure's line: the share of choices of each letter or position."""
    total = float(counts.sum())
    return [
        {"x": name, "line": label, "model": model, **vars(Estimate(count / total, n=int(total)))}
        for name, count in zip(_CHOICE_NAMES[kind], counts.tolist(), strict=False)
    ]


def _accuracy_at_position(inputs: AnalysisInput, answers: Sequence[Row], task: str, position: int) -> Estimate:
    """Compute the accuracy when the right choice is shown first (``position`` 0) or last (-1)."""
    values, ids = [], []
    for row in answers:
        for chosen, right in zip(row["positions"], row["right_positions"], strict=True):
            if right == (position if position >= 0 else _choice_count(inputs, row) - 1):
                values.append(float(chosen == right))
                ids.append(row["question_id"])
    return inputs.mean(np.array(values), ids, "forms", task, position) if values else Estimate(None)


def _same_choice_share(inputs: AnalysisInput, answers: Sequence[Row]) -> Estimate | None:
    """Compute the share of questions for which all orders led to the same choice; None without questions."""
    values = []
    for row in answers:
        # The orders are rotations of one order, so a choice keeps its distance from the right choice.
        width = _choice_count(inputs, row)
        offsets = {
            None if chosen is None else (chosen - right) % width
            for chosen, right in zip(row["positions"], row["right_positions"], strict=True)
        }
        values.append(float(len(offsets) == 1 and None not in offsets))
    ids = [row["question_id"] for row in answers]
    return inputs.mean(np.array(values), ids, "forms", "same choice") if answers else None


def _describe_bias(inputs: AnalysisInput, line: Line) -> list[str]:
    sentences = []
    answers = list(inputs.usable[line].values())
    for kind in _shown_kinds(answers):
        chosen, right = count_choices(inputs, answers, kind)
        if chosen.sum() < _FEWEST_CHOICES:
            continue
        top = int(np.argmax(chosen - right))
        share, expected = chosen[top] / chosen.sum(), right[top] / right.sum()
        is_large = share > 1.5 * expected and choice_bias(chosen, right) > 0.1
        if is_large and _bias_p_value(inputs, answers, kind, top) * len(chosen) < SIGNIFICANCE_LEVEL:
            name = f"{'the letter' if kind == _LETTER else kind} {_CHOICE_NAMES[kind][top]}"
            sentences.append(
                f"{quote_name(inputs.labels[line])} prefers {name}: {percent(share)} of its choices, but "
                f"{percent(expected)} of the right ones."
            )
    return sentences


def _bias_p_value(inputs: AnalysisInput, answers: Sequence[Row], kind: str, choice: int) -> float:
    """Test whether a position (or letter) is chosen more or less often than it is right, paired by choice."""
    pairs = [
        (row["question_id"], float(_choice_index(chosen) == choice), float(_choice_index(gold) == choice))
        for row in answers
        for chosen, gold in zip(row[f"{kind}s"], row[f"right_{kind}s"], strict=True)
        if chosen is not None
    ]
    ids, is_chosen, is_right = zip(*pairs, strict=True)
    seed = derived_seed(inputs.seed, "forms", "bias", kind)
    return paired_difference(np.array(is_chosen), np.array(is_right), inputs.cluster_ids(ids), seed=seed).p


def _lines_by_model(inputs: AnalysisInput) -> dict[str, dict[str, Line]]:
    """Return each model's first method of each probe, for models that were asked by several probes."""
    by_model: dict[str, dict[str, Line]] = defaultdict(dict)
    for line in inputs.usable:
        if line.probe in _FORMS and inputs.usable[line] and "@" not in line.method:
            by_model[line.model].setdefault(line.probe, line)
    return {model: lines for model, lines in by_model.items() if len(lines) > 1 and model not in inputs.baselines}


def _agreement(inputs: AnalysisInput) -> Part:
    """Compute, for each model and pair of probes, how often both are right or both wrong, and Cohen's kappa."""
    rows, points, sentences = [], [], []
    for model, lines in _lines_by_model(inputs).items():
        for probes in combinations([probe for probe in _FORMS if probe in lines], 2):
            pair = [lines[probe] for probe in probes]
            ids = sorted(inputs.usable[pair[0]].keys() & inputs.usable[pair[1]].keys())
            if len({inputs.clusters[question_id] for question_id in ids}) < 2:
                continue
            first, second = (inputs.right_probabilities(line, ids, (ACCURACY, EXACT)) >= 0.5 for line in pair)
            same = inputs.mean((first == second).astype(np.float64), ids, "forms", *probes)
            seed = derived_seed(inputs.seed, "forms", *probes)
            kappa = estimate(agreement_interval(first, second, inputs.cluster_ids(ids), seed=seed), len(ids))
            forms_of_pair = [_form_name(inputs, line) for line in pair]
            rows.append((model, " – ".join(forms_of_pair), same.n, same, kappa))
            points.append({"x": " – ".join(probes), "line": model, "model": model, **vars(kappa)})
            if kappa.value is not None and kappa.low is not None and kappa.high is not None:
                sentences.append(
                    f"Answers of {quote_name(model)} {' and '.join(forms_of_pair)} agree {_degree(kappa)} expected by "
                    f"chance (kappa {kappa.value:.2f} [{kappa.low:.2f}, {kappa.high:.2f}])."
                )
    if not rows:
        return [], [], []
    columns = make_columns("Model", "Probes", "questions:count", "both right or both wrong:share", "kappa:correlation")
    caption = "Agreement between probes (Cohen’s kappa)"
    figure = Figure("lines", caption, tuple(points), "probes", percent=False, y="kappa", zero=False)
    return [Table("Agreement between probes on the same questions.", columns, tuple(rows))], [figure], sentences


def _form_name(inputs: AnalysisInput, line: Line) -> str:
    """Name the probe of a line, and its method if the model was asked by several methods of the probe."""
    methods = {other.method for other in inputs.usable if (other.model, other.probe) == (line.model, line.probe)}
    return f"{_FORMS[line.probe]}{f' (method {line.method})' if len(methods) > 1 else ''}"


def _degree(kappa: Estimate) -> str:
    if (kappa.high or 0.0) < 0:
        return "less than"
    if (kappa.low or 0.0) <= 0:
        return "no more and no less, as far as can be shown, than"
    if (kappa.low or 0.0) <= 0.1:
        return "hardly more than"
    return "more than" if (kappa.value or 0.0) < 0.6 else "far more than"
