"""Summary of a report: what was asked of which models, and who scores highest."""

from __future__ import annotations

from typing import Any

from merkhet.reports import formatting as fmt
from merkhet.reports._answer_outcomes import Outcomes
from merkhet.reports._methods_section import AskedCounts, count_asked
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import LOWER_IS_BETTER, Scoreboard, ScoreCell, ScoreColumn, Series

_MAX_LEADERS = 8
_MAX_SENTENCES = 14
_MAX_SENTENCE, _MAX_NAME = 800, 80


def tiles(data: ReportData, board: Scoreboard, outcomes: Outcomes) -> list[tuple[str, str]]:
    """Count questions, facts, tasks, models and baselines for the tiles on top of the report."""
    count = count_asked(data)
    models = {line.model for line in outcomes.series}
    baselines = models & data.baselines()
    numbers = [(fmt.count(count.questions), "question" if count.questions == 1 else "questions")]
    if count.facts:
        numbers.append((fmt.count(count.facts), "fact" if count.facts == 1 else "facts"))
    tasks = len(set(outcomes.tasks) | {column.task for column in board.columns})
    numbers += [(str(tasks), "task" if tasks == 1 else "tasks")]
    # A model that was trained under several conditions has one name per condition, and so has a baseline.
    base_of = {model.get("name"): model.get("base") or model.get("name") for model in data.record.get("models") or ()}
    model_count = len({base_of.get(name, name) for name in models - baselines})
    numbers.append((str(model_count), "model" if model_count == 1 else "models"))
    if model_count < len(models - baselines):
        numbers.append((str(len(models - baselines) // model_count), "conditions"))
    if baselines:
        number = len({base_of.get(name, name) for name in baselines})
        numbers.append((str(number), "baseline" if number == 1 else "baselines"))
    return numbers


def summary(data: ReportData, board: Scoreboard, numbers: list[tuple[str, str]]) -> dict[str, Any]:
    """Collect the summary: what was asked, the leader of each headline score, and the findings."""
    sentences = [_truncate(fmt.printable(text), _MAX_SENTENCE) for text in data.findings.get("sentences") or ()]
    leaders = [_leader_sentence(column, board, data) for column in board.columns]
    leaders = [text for text in leaders if text]
    return {
        "asked": _asked_sentence(count_asked(data), {name: number for number, name in numbers}),
        "leaders": leaders[:_MAX_LEADERS],
        "more_leaders": max(0, len(leaders) - _MAX_LEADERS),
        "sentences": sentences[:_MAX_SENTENCES],
        "more": sentences[_MAX_SENTENCES:],
    }


def _asked_sentence(count: AskedCounts, numbers: dict[str, str]) -> str:
    if not count.questions:
        return ""
    models = [f"{numbers[name]} {name}" for name in ("model", "models", "baseline", "baselines") if name in numbers]
    models = [text for text in models if not text.startswith("0 ")]
    if not models:
        return f"{fmt.count(count.questions)} questions were made, and nobody has answered them yet."
    subjects = " and ".join(models)
    verb = "were" if len(models) > 1 or not models[0].startswith("1 ") else "was"
    facts = f" about {fmt.count(count.facts)} {'fact' if count.facts == 1 else 'facts'}" if count.facts else ""
    tasks = list(count.tasks)
    names = f": {', '.join(tasks)}" if 1 < len(tasks) <= 12 else f" ({tasks[0]})" if len(tasks) == 1 else ""
    in_tasks = f" in {len(tasks)} {'task' if len(tasks) == 1 else 'tasks'}{names}" if tasks else ""
    plural = "question" if count.questions == 1 else "questions"
    return f"{subjects} {verb} asked {fmt.count(count.questions)} {plural}{facts}{in_tasks}."


def _leader_sentence(column: ScoreColumn, board: Scoreboard, data: ReportData) -> str:
    """Name the models with the best value of a score, with interval, chance and the best baseline."""
    best = sorted(board.best.get(column, ()), key=board.series.index)
    baselines = data.baselines()
    if not best:
        return ""
    best_cell = board.cells[best[0], column]
    models_scored = [line for line in board.series if line.model not in baselines and _has_value(board, line, column)]
    names = " and ".join(_truncate(line.label, _MAX_NAME) for line in best)
    if not models_scored:
        names = f"the {'baseline' if len(best) == 1 else 'baselines'} {names}"
    if len(best) > 3:
        names = f"{len(best)} models alike"
    elif len(models_scored) > len(best):
        models = len({line.model for line in models_scored})
        field = f"{models} models" if models == len(models_scored) else f"{len(models_scored)} ways of asking"
        field += f" {models} models" if 1 < models < len(models_scored) else ""
        names += f", the best of {field}" if len(best) == 1 else f", alike and best of {field}"
    references = []
    chances = board.chances(column)
    if chances:
        references.append(f"chance {_percent_text(column, fmt.value_range(chances, percent=column.percent))}")
    baseline_lines = [line for line in board.series if line.model in baselines - {leader.model for leader in best}]
    scored_baselines = [(line, board.cells[line, column]) for line in baseline_lines if _has_value(board, line, column)]
    if scored_baselines:
        sign = -1 if column.metric in LOWER_IS_BETTER else 1
        line, cell = max(scored_baselines, key=lambda pair: sign * (pair[1].value or 0.0))
        name = _truncate(line.label, _MAX_NAME)
        references.append(f"baseline {name} {_score_text(column, cell, interval=False)}")
    aside = f" ({', '.join(references)})" if references else ""
    return f"{column.label}: {_score_text(column, best_cell)} by {names}{aside}."


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _has_value(board: Scoreboard, line: Series, column: ScoreColumn) -> bool:
    cell = board.cells.get((line, column))
    return cell is not None and cell.value is not None


def _score_text(column: ScoreColumn, cell: ScoreCell, *, interval: bool = True) -> str:
    text = _percent_text(column, fmt.score(cell.value, percent=column.percent))
    ends = fmt.interval(cell.low, cell.high, percent=column.percent) if interval else ""
    return f"{text} {ends}".strip()


def _percent_text(column: ScoreColumn, text: str) -> str:
    return f"{text}%" if column.percent and text != fmt.DASH else text
