"""The steps that score: answers of all models in one table, then scores, then what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from merkhet.analysis.findings import summarize_findings
from merkhet.core.files import write_json
from merkhet.core.records import Question
from merkhet.core.schemas import ANSWERS, SCORES, read_table, write_table
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.run_files import read_premise_labels
from merkhet.engine.suite_card import HeadlineScore, ScoringRule
from merkhet.metrics.metrics import Metric, get_metric
from merkhet.metrics.score_table import score_answers, scoring_rows
from merkhet.questions.question_files import QuestionSet, read_questions

_ALWAYS = (
    *("model", "suite", "task", "probe", "method", "metric"),
    *("value", "low", "high", "n", "unusable", "chance", "adjusted"),
)


@dataclass(frozen=True)
class ScoreParams:
    """How answers are scored."""

    suite: str
    metrics: tuple[str, ...]
    identities: tuple[str, ...]
    """Names of the metrics, with the hash of the file where a metric is a user's own."""
    groups: tuple[str, ...]
    """Columns that scores are grouped by, one at a time."""
    seed: int
    scoring: ScoringRule


@dataclass(frozen=True)
class FindingsParams:
    """What the findings of a run are about."""

    headline: tuple[HeadlineScore, ...]
    metrics: Mapping[str, str]
    """Names of metrics as the study has them, by the names that scores have."""
    identities: tuple[str, ...]
    baselines: tuple[str, ...]
    seed: int
    scoring: ScoringRule
    names: Mapping[str, str]
    """Plain names of relations."""

    def headline_metrics(self, home: Path) -> list[tuple[str, Metric]]:
        """Load the headline's metrics."""
        return [(entry.task, get_metric(self.metrics[entry.metric], home)) for entry in self.headline]


def collect_answers(context: StepContext[Nothing, Nothing]) -> None:
    """Put the answers of all models into answers.parquet, in the order of the study."""
    parts = [read_table(ANSWERS, context.folder / name) for name in context.step.inputs]
    write_table(ANSWERS, pa.concat_tables(parts), context.folder / context.step.outputs[0])


def write_scores(context: StepContext[ScoreParams, Nothing]) -> None:
    """Score the answers; write scores.parquet and scores.json, which are the same for the same answers."""
    params = context.params
    found = read_questions(context.folder)
    questions = found.by_id()
    rows = found.questions.to_pylist()
    wanted = list(dict.fromkeys([*params.groups, *filter(None, [params.scoring.average_over])]))
    groups = {row["question_id"]: group_values(row, questions[row["question_id"]], wanted) for row in rows}
    answers = scoring_rows(read_table(ANSWERS, context.folder / "answers.parquet"))
    metrics = [get_metric(name, context.home) for name in params.metrics]
    table = score_answers(
        params.suite,
        questions,
        groups,
        found.clusters(),
        answers,
        metrics,
        seed=params.seed,
        groups_by_model={place: {"premises": value} for place, value in read_premise_labels(context).items()},
        average_over=params.scoring.average_over,
        unusable_is_wrong=params.scoring.unusable_is_wrong,
    )
    write_table(SCORES, table, context.folder / "scores.parquet")
    write_json(context.folder / "scores.json", score_objects(table))


def write_findings(context: StepContext[FindingsParams, Nothing]) -> None:
    """Write findings.json: what the scores say in words, and the models compared."""
    params = context.params
    found = read_questions(context.folder)
    findings = summarize_findings(
        scores=read_table(SCORES, context.folder / "scores.parquet").to_pylist(),
        answers=scoring_rows(read_table(ANSWERS, context.folder / "answers.parquet")),
        questions=found.by_id(),
        clusters=found.clusters(),
        headline=params.headline_metrics(context.home),
        about=params.names,
        baselines=set(params.baselines),
        seed=params.seed,
        classes=question_classes(found, params.scoring.average_over),
        unusable_is_wrong=params.scoring.unusable_is_wrong,
    )
    write_json(context.folder / "findings.json", findings)


def question_classes(found: QuestionSet, column: str | None) -> dict[str, str]:
    """The class of each question over which scores are averaged; none where they are not."""
    if column is None:
        return {}
    rows = found.questions.select(["question_id", column]).to_pylist()
    return {row["question_id"]: str(row[column]) for row in rows}


def score_objects(table: pa.Table) -> list[dict[str, Any]]:
    """Rows of a table of scores as JSON objects: group columns only where the row has one."""
    return [
        {key: row.get(key) for key in _ALWAYS if key in row}
        | {key: value for key, value in row.items() if key not in _ALWAYS and value is not None}
        for row in table.to_pylist()
    ]


def group_values(row: Mapping[str, Any], question: Question, wanted: Sequence[str]) -> dict[str, str | None]:
    """What a question is grouped by: columns of its row, and what is worked out of the question."""
    worked_out = {
        "relation": question.relation,
        "mask": _mask(question.template),
        "conflict": "yes" if len(question.answers) > 1 else "no",
    }
    return {name: worked_out[name] if name in worked_out else row[name] for name in wanted}


def _mask(template: str | None) -> str | None:
    """What of a fact is left out, where the template says so: the last of ``relation/template/mask``."""
    parts = (template or "").split("/")
    return parts[2] if len(parts) == 3 else None
