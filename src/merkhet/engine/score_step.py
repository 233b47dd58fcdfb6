"""Steps that collect the answers of all models, score them and write the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison import Condition
from merkhet.analysis.finding_text import render
from merkhet.analysis.finding_types import Finding, Kind, Verdict
from merkhet.analysis.findings import summarize_findings
from merkhet.analysis.training_text import ONE_TRAINING
from merkhet.core.errors import InputError
from merkhet.core.files import write_json
from merkhet.core.ids import content_id
from merkhet.core.schemas import ANSWERS, SCORES, read_table, write_table
from merkhet.core.text import join_names
from merkhet.engine.headline import HeadlinePlan, asked_tasks, choose_headline
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.run_files import CONTROL_SCORES, read_json, read_premise_labels
from merkhet.engine.shared_tables import run_tables
from merkhet.engine.suite_card import ScoringRule
from merkhet.engine.training_answers import read_repeated
from merkhet.metrics.metrics import Metric, get_metric
from merkhet.metrics.paraphrases import Wording
from merkhet.metrics.score_table import score_answers
from merkhet.questions.answer_counts import BALANCED, NO_COUNTS
from merkhet.questions.question_files import QuestionSet

FINDING_GROUPS = ("relation", "domain")
"""Columns whose groups findings describe."""
_FIXED_KEYS = (
    *("model", "suite", "task", "probe", "method", "metric"),
    *("value", "low", "high", "n", "unusable", "chance", "adjusted"),
)


@dataclass(frozen=True)
class ScoreParams:
    """Parameters of the step that scores answers."""

    suite: str
    metrics: tuple[str, ...]
    identities: tuple[str, ...]
    """Names of the metrics. The name of a user-defined metric includes the hash of its file."""
    groups: tuple[tuple[str, ...], ...]
    """Columns that scores are grouped by. An entry of several columns groups by their combination."""
    seed: int
    scoring: ScoringRule


@dataclass(frozen=True)
class FindingsParams:
    """Parameters of the step that writes the findings."""

    headline: HeadlinePlan
    metrics: Mapping[str, str]
    """Name of each metric in the study, by its name in the table of scores."""
    identities: tuple[str, ...]
    baselines: tuple[str, ...]
    seed: int
    scoring: ScoringRule
    names: Mapping[str, str]
    """Readable names of relations, by relation."""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    """Training condition of each model; empty if models are not trained under conditions."""
    remarks: tuple[str, ...] = ()
    """Sentences that are appended to the findings."""
    counting: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tasks of each baseline that answers by answer counts, by its name; no tasks means all."""
    balanced: tuple[str, ...] = ()
    """Tasks whose right answers are equally frequent by design."""
    trained: tuple[str, ...] = ()
    """Names of the models that the run trains."""

    def headline_metrics(self, questions: pa.Table, scores: pa.Table, home: Path) -> list[tuple[str, Metric]]:
        """Return the task and the loaded metric of each headline score."""
        headline = choose_headline(self.headline, asked_tasks(questions), scores)
        return [(entry.task, get_metric(self.metrics[entry.metric], home)) for entry in headline]


def collect_answers(context: StepContext[Nothing, Nothing]) -> None:
    """Concatenate the answers of all models into answers.parquet, in the order of the asking steps.

    Raises:
        InputError: No model was asked a question.
    """
    answers = pa.concat_tables([read_table(ANSWERS, context.folder / name) for name in context.step.inputs])
    if not answers.num_rows and run_tables(context.folder).question_set.frequencies.num_rows == 0:
        raise InputError(f"no frequency baseline can be asked: {NO_COUNTS}; name another model (--model)")
    write_table(ANSWERS, answers, context.folder / context.step.outputs[0])


def write_scores(context: StepContext[ScoreParams, Nothing]) -> None:
    """Score the answers, and write the scores to scores.parquet and scores.json."""
    params = context.params
    tables = run_tables(context.folder)
    scoring = params.scoring
    columns = [name for group in params.groups for name in group]
    columns = list(dict.fromkeys([*columns, *filter(None, [scoring.average_over])]))
    metrics = [get_metric(name, context.home) for name in params.metrics]
    table = score_answers(
        params.suite,
        tables.questions,
        question_groups(tables.question_set, columns, scoring.statements),
        tables.clusters,
        tables.answers,
        metrics,
        seed=params.seed,
        groups_by_model={key: {"premises": label} for key, label in read_premise_labels(context).items()},
        group_sets=tuple(dict.fromkeys([*params.groups, *((name,) for name in filter(None, [scoring.average_over]))])),
        average_over=scoring.average_over,
        unusable_is_wrong=scoring.unusable_is_wrong,
        cluster_prompts=scoring.statements,
        wordings=question_wordings(tables.question_set, scoring.distinct_templates),
    )
    write_table(SCORES, table, context.folder / "scores.parquet")
    write_json(context.folder / "scores.json", score_objects(table))


def write_findings(context: StepContext[FindingsParams, Nothing]) -> None:
    """Write findings.json: comparisons of the models, and sentences about the scores."""
    params = context.params
    tables = run_tables(context.folder)
    scores = read_table(SCORES, context.folder / "scores.parquet")
    repeated = read_repeated(context.folder, context.step.inputs)
    analyses = read_json(context.folder / "analyses.json") if "analyses.json" in context.step.inputs else []
    controls = read_json(context.folder / CONTROL_SCORES) if CONTROL_SCORES in context.step.inputs else {}
    remarks = list(params.remarks)
    if params.conditions:  # Sentences about the effects of conditions come from the analyses.
        remarks = [*unrendered_sentences(analyses), *remarks]
    if params.trained and not repeated:
        remarks.append(ONE_TRAINING)
    findings = summarize_findings(
        scores=scores.to_pylist(),
        answers=tables.answers,
        questions=tables.questions,
        clusters=tables.clusters,
        headline=params.headline_metrics(tables.question_set.questions, scores, context.home),
        about=params.names,
        baselines=set(params.baselines),
        seed=params.seed,
        classes=question_classes(tables.question_set, params.scoring.average_over),
        unusable_is_wrong=params.scoring.unusable_is_wrong,
        statements=params.scoring.statements,
        conditions=params.conditions,
        trained=params.trained,
        repeated=repeated,
        groups=question_groups(tables.question_set, FINDING_GROUPS, params.scoring.statements),
        more=[
            *(Finding.from_json(row) for row in controls.get("findings") or ()),
            *analysis_findings(analyses),
            *(Finding(Kind.REMARK, Verdict.NONE, reason=text) for text in remarks),
        ],
        left_out=describe_missing_counts(tables.question_set, params.counting, params.balanced),
    )
    write_json(context.folder / "findings.json", findings)


def analysis_findings(analyses: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Return the findings of analyses that belong to the run: those on its design."""
    findings = (Finding.from_json(row) for analysis in analyses for row in analysis.get("findings") or ())
    return [finding for finding in findings if finding.kind is Kind.DESIGN]


def unrendered_sentences(analyses: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences of analyses that are not rendered from their findings on the design."""
    return [
        text
        for analysis in analyses
        for rendered in [render(analysis_findings([analysis]))]
        for text in analysis["sentences"]
        if text not in rendered
    ]


def describe_missing_counts(
    question_set: QuestionSet, counting: Mapping[str, Sequence[str]], balanced: Sequence[str] = ()
) -> list[str]:
    """Name the tasks that baselines are not asked, because there are no answers to count.

    Args:
        counting: Tasks of each baseline that answers by answer counts, by its name; no tasks means all.
        balanced: Tasks whose right answers are equally frequent by design.
    """
    questions = question_set.questions
    asked = questions.filter(pc.is_null(questions["words"]))["task"].unique().to_pylist()
    counted = set(question_set.frequencies["task"].to_pylist())
    sentences = []
    for name, chosen in counting.items():
        tasks = [task for task in asked if not chosen or task in chosen]
        missing = [task for task in tasks if task not in counted]
        by_design = [task for task in missing if task in balanced]
        others = [task for task in missing if task not in balanced]
        if by_design:
            sentences.append(f"{name} is not asked {join_names(by_design)}: {BALANCED}.")
        if others:
            of_tasks = "" if others == tasks else f" of {join_names(others)}"
            sentences.append(f"{name} is left out{of_tasks}: {NO_COUNTS}.")
    return sentences


def question_classes(question_set: QuestionSet, column: str | None) -> dict[str, str]:
    """Return the class of each question, which is its value in ``column``; empty if ``column`` is None.

    Classes are needed for scores that are means over classes.
    """
    if column is None:
        return {}
    rows = question_set.questions.select(["question_id", column]).to_pylist()
    return {row["question_id"]: str(row[column]) for row in rows}


def question_wordings(question_set: QuestionSet, distinct_templates: Sequence[str] = ()) -> dict[str, Wording]:
    """Return what each question asks and its template, by question id; questions without a template are left out.

    Questions about the same facts with the same masked part and the same answers are paraphrases of each other, except
    in the tasks ``distinct_templates``.
    """
    names = ("question_id", "template", "task", "qset", "target", "answers", "facts")
    columns = (question_set.questions[name].to_pylist() for name in names)
    return {
        name: Wording(content_id("w", task, qset, facts, target, sorted(answers), _masked_part(template)), template)
        for name, template, task, qset, target, answers, facts in zip(*columns, strict=True)
        if template is not None and (qset or facts) and task not in distinct_templates
    }


def score_objects(table: pa.Table) -> list[dict[str, Any]]:
    """Encode each row of the table of scores as a JSON object.

    Group columns and spreads over paraphrases without a value are left out.
    """
    return [
        {key: row.get(key) for key in _FIXED_KEYS if key in row}
        | {key: value for key, value in row.items() if key not in _FIXED_KEYS and value is not None}
        for row in table.to_pylist()
    ]


def question_groups(
    question_set: QuestionSet, columns: Sequence[str], statements: bool = False
) -> dict[str, Mapping[str, str | None]]:
    """Return the value of each group column for each question, by question id.

    Some columns are derived from the task, template, answers and choices of the question. The template of a statement
    is named ``relation/template/mask/cardinality``, and each of these four is a column. Questions with equal values
    share one mapping.

    Args:
        columns: Group columns; a question without a value has None.
        statements: Whether the questions are memorized statements.
    """
    table = question_set.questions
    known = [name for name in columns if name in table.column_names]
    names = ("question_id", "task", "template", *known)
    if statements:
        counts = pc.list_value_length(table["answers"]).to_pylist()
    else:
        counts = question_set.right_counts() if "conflict" in columns else [1] * table.num_rows
    has_choices = pc.is_valid(table["choices"]).to_pylist()
    shared: dict[tuple[Any, ...], Mapping[str, str | None]] = {}
    groups = {}
    for question_id, *values, count, offered in zip(
        *(table[name].to_pylist() for name in names), counts, has_choices, strict=True
    ):
        key = (*values, count > 1, offered)
        if key not in shared:
            task, template, *row = values
            group = dict(zip(known, row, strict=True)) | _derived_groups(task, template, count > 1, statements)
            group["form"] = "choices" if offered else "open"
            shared[key] = {name: group.get(name) for name in columns}
        groups[question_id] = shared[key]
    return groups


def _masked_part(template: str | None) -> str | None:
    """Return the masked part of a fact, such as ``start``, which some templates have in their name."""
    parts = (template or "").split("/")
    return parts[2] if len(parts) in (3, 4) else None


def _derived_groups(task: str, template: str | None, conflict: bool, statements: bool) -> dict[str, str | None]:
    parts = (template or "").split("/")
    derived = {
        "relation": parts[0] if template else task,
        "mask": _masked_part(template),
        "conflict": "yes" if conflict else "no",
    }
    return derived | ({"template": parts[1], "cardinality": parts[3] or None} if statements and len(parts) == 4 else {})
