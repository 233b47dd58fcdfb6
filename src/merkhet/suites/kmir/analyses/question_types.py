"""Models by question types with their parameters and training corpora: the paper's Table 4."""

from __future__ import annotations

from collections.abc import Mapping

from merkhet.analysis.types import Analysis, AnalysisInput, Column, Estimate, Line, Table, TableRow
from merkhet.core.schemas import SCORES
from merkhet.core.text import join_names, metric_label
from merkhet.metrics.metrics import Metric

OPEN, CHOICES = "open", "with choices"
_FORMS = {OPEN: "open", CHOICES: "choices"}
"""Value of the group ``form`` in the scores, by the name of the form in the table."""
_EXPLANATION = (
    "The headline score of each model on each question type, with 95% bootstrap intervals over facts. Question types "
    "that have both open questions and questions with choices are also shown apart, because guessing scores much more "
    "with choices. The first row is the score of guessing. Parameters are counted in the loaded model; the training "
    "corpus is what the study says ('corpus' of a model)."
)


def question_types(inputs: AnalysisInput) -> Analysis | None:
    """Tabulate the scores of each model by question type, and by form where a type has several forms."""
    lines = [line for line in inputs.usable if inputs.usable[line]]
    if not lines:
        return None
    forms = _question_forms(inputs)
    columns = [(task, form) for task in inputs.tasks for form in (None, *_shown_forms(inputs, forms, task))]
    metrics = {task: inputs.metric(task, lines[0]) for task in inputs.tasks}
    share = all(inputs.metric(task, line).share for task in inputs.tasks for line in lines)
    names = list(dict.fromkeys(metric_label(metric.name) for metric in metrics.values()))
    rows: list[TableRow] = [("guessing", None, None, *(_chance(inputs, *column, metrics) for column in columns))]
    for line in lines:
        model = inputs.models.get(line.model)
        cells = (_score(inputs, line, task, form, forms) for task, form in columns)
        rows.append((inputs.labels[line], model.size if model else None, model.corpus if model else None, *cells))
    heads = (Column("Model"), Column("parameters"), Column("training corpus"))
    kinds = (
        Column(task if form is None else f"{task}, {form}", "share" if share else "number") for task, form in columns
    )
    return Analysis(
        "question-types",
        "Models by question types",
        _EXPLANATION,
        (Table(f"{join_names(names)} of models by question types.", (*heads, *kinds), tuple(rows)),),
    )


def _question_forms(inputs: AnalysisInput) -> dict[str, str]:
    """Return the form of each question, by question id."""
    return {row["question_id"]: OPEN if row["choices"] is None else CHOICES for row in inputs.questions}


def _shown_forms(inputs: AnalysisInput, forms: Mapping[str, str], task: str) -> list[str]:
    """Return the forms of a task's questions in order; empty if all have the same form."""
    present = {forms[row["question_id"]] for row in inputs.questions if row["task"] == task}
    return [form for form in _FORMS if form in present] if len(present) > 1 else []


def _score(inputs: AnalysisInput, line: Line, task: str, form: str | None, forms: Mapping[str, str]) -> Estimate | None:
    ids = [name for name in inputs.counted_ids(line, task) if form is None or forms[name] == form]
    # The seeds of the table of scores give the same intervals.
    seed_parts = (task, "", "") if form is None else (task, "form", _FORMS[form])
    return inputs.score(line, ids, inputs.metric(task, line), *seed_parts) if ids else None


def _chance(inputs: AnalysisInput, task: str, form: str | None, metrics: Mapping[str, Metric]) -> float | None:
    """Return the chance level of a task, or of its questions of one form, from the scores of the run."""
    for row in inputs.scores:
        groups = {name: value for name, value in row.items() if name not in SCORES.schema.names and value is not None}
        wanted = {} if form is None else {"form": _FORMS[form]}
        if (
            row["task"] == task
            and row["metric"] == metrics[task].name
            and groups == wanted
            and row["chance"] is not None
        ):
            return float(row["chance"])
    return None
