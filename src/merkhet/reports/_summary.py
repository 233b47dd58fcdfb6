"""Summary of a report: what was asked of which models, and which models score highest."""

from __future__ import annotations

from typing import Any

from merkhet.core import text as fmt
from merkhet.reports._answer_outcomes import Outcomes
from merkhet.reports._methods_section import count_asked
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import LOWER_IS_BETTER, Scoreboard, ScoreColumn

_MAX_LEADERS, _MAX_NAMED = 8, 3
_MAX_SENTENCES, _MAX_SENTENCE, _MAX_NAME = 14, 800, 80


def count_run(data: ReportData, board: Scoreboard, outcomes: Outcomes) -> dict[str, Any]:
    """Count questions, facts, tasks, models, baselines and the trained conditions of each model."""
    asked = count_asked(data)
    # A model that was trained under several conditions has one name per condition, and so has a baseline.
    base_of = {model.get("name"): model.get("base") or model.get("name") for model in data.record.get("models") or ()}
    names = {line.model for line in outcomes.series}
    models, baselines = names - data.baselines(), names & data.baselines()
    model_count = len({base_of.get(name, name) for name in models})
    return {
        "questions": asked.questions,
        "facts": asked.facts,
        "asked_tasks": list(asked.tasks),
        "tasks": len(set(outcomes.tasks) | {column.task for column in board.columns}),
        "models": model_count,
        "baselines": len({base_of.get(name, name) for name in baselines}),
        "conditions": len(models) // model_count if model_count else 1,
    }


def summarize(data: ReportData, board: Scoreboard) -> dict[str, Any]:
    """Collect the leader of each headline score, and the findings."""
    sentences = [fmt.truncate(fmt.printable(text), _MAX_SENTENCE) for text in data.findings.get("sentences") or ()]
    leaders = [_leader(column, board, data.baselines()) for column in board.columns if board.best.get(column)]
    return {
        "leaders": leaders[:_MAX_LEADERS],
        "more_leaders": max(0, len(leaders) - _MAX_LEADERS),
        "sentences": sentences[:_MAX_SENTENCES],
        "more_sentences": sentences[_MAX_SENTENCES:],
    }


def _leader(column: ScoreColumn, board: Scoreboard, baselines: frozenset[str]) -> dict[str, Any]:
    best = sorted(board.best[column], key=board.series.index)
    scored = [line for line in board.series if (cell := board.cells.get((line, column))) and cell.value is not None]
    model_lines = [line for line in scored if line.model not in baselines]
    leading = {line.model for line in best}
    sign = -1 if column.metric in LOWER_IS_BETTER else 1
    baseline = max(
        (line for line in scored if line.model in baselines - leading),
        key=lambda line: sign * (board.cells[line, column].value or 0.0),
        default=None,
    )
    return {
        "column": column,
        "cell": board.cells[best[0], column],
        # No names if too many models share the best value.
        "names": [fmt.truncate(line.label, _MAX_NAME) for line in best] if len(best) <= _MAX_NAMED else [],
        "tied": len(best),
        "is_baseline": not model_lines,
        "lines": len(model_lines),
        "models": len({line.model for line in model_lines}),
        "chances": board.chances(column),
        "baseline": "" if baseline is None else fmt.truncate(baseline.label, _MAX_NAME),
        "baseline_value": None if baseline is None else board.cells[baseline, column].value,
    }
