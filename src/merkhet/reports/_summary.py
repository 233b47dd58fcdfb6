"""The summary that stands first: who was asked what, who scores highest and how sure that is."""

from __future__ import annotations

from typing import Any

from merkhet.reports import formatting as show
from merkhet.reports._answer_outcomes import Outcomes
from merkhet.reports._methods_section import Asked, asked
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import LOWER_IS_BETTER, Cell, Column, Scoreboard, Series

_MOST_LEADERS = 8
_MOST_SENTENCES = 14
_LONGEST, _LONGEST_NAME = 800, 80


def tiles(data: ReportData, board: Scoreboard, judged: Outcomes) -> list[tuple[str, str]]:
    """The run in numbers: questions, facts, tasks, models, baselines."""
    count = asked(data)
    models = {line.model for line in judged.series}
    baselines = models & data.baselines()
    found = [(show.count(count.questions), "question" if count.questions == 1 else "questions")]
    if count.facts:
        found.append((show.count(count.facts), "fact" if count.facts == 1 else "facts"))
    tasks = len(set(judged.tasks) | {column.task for column in board.columns})
    found += [(str(tasks), "task" if tasks == 1 else "tasks")]
    # A model that stores under several conditions has a name for each, and so has the baseline.
    base = {model.get("name"): model.get("base") or model.get("name") for model in data.record.get("models") or ()}
    own = len({base.get(name, name) for name in models - baselines})
    found.append((str(own), "model" if own == 1 else "models"))
    if own < len(models - baselines):
        found.append((str(len(models - baselines) // own), "conditions"))
    if baselines:
        number = len({base.get(name, name) for name in baselines})
        found.append((str(number), "baseline" if number == 1 else "baselines"))
    return found


def summary(data: ReportData, board: Scoreboard, numbers: list[tuple[str, str]]) -> dict[str, Any]:
    """What was asked of whom, the highest of each headline score, and the run's findings in words."""
    sentences = [_short(show.printable(text), _LONGEST) for text in data.findings.get("sentences") or ()]
    leaders = [_leader(column, board, data) for column in board.columns]
    leaders = [text for text in leaders if text]
    return {
        "asked": _asked_sentence(asked(data), {name: number for number, name in numbers}),
        "leaders": leaders[:_MOST_LEADERS],
        "more_leaders": max(0, len(leaders) - _MOST_LEADERS),
        "sentences": sentences[:_MOST_SENTENCES],
        "more": sentences[_MOST_SENTENCES:],
    }


def _asked_sentence(count: Asked, numbers: dict[str, str]) -> str:
    if not count.questions:
        return ""
    models = [f"{numbers[name]} {name}" for name in ("model", "models", "baseline", "baselines") if name in numbers]
    models = [text for text in models if not text.startswith("0 ")]
    if not models:
        return f"{show.count(count.questions)} questions were made, and nobody has answered them yet."
    who = " and ".join(models)
    were = "were" if len(models) > 1 or not models[0].startswith("1 ") else "was"
    facts = f" about {show.count(count.facts)} {'fact' if count.facts == 1 else 'facts'}" if count.facts else ""
    tasks = list(count.tasks)
    names = f": {', '.join(tasks)}" if 1 < len(tasks) <= 12 else f" ({tasks[0]})" if len(tasks) == 1 else ""
    of = f" in {len(tasks)} {'task' if len(tasks) == 1 else 'tasks'}{names}" if tasks else ""
    plural = "question" if count.questions == 1 else "questions"
    return f"{who} {were} asked {show.count(count.questions)} {plural}{facts}{of}."


def _leader(column: Column, board: Scoreboard, data: ReportData) -> str:
    """Who has the best value of a score, with its interval, chance and the best baseline."""
    best = sorted(board.best.get(column, ()), key=board.series.index)
    baselines = data.baselines()
    if not best:
        return ""
    found = board.cells[best[0], column]
    others = [line for line in board.series if line.model not in baselines and _known(board, line, column)]
    names = " and ".join(_short(line.label, _LONGEST_NAME) for line in best)
    if not others:
        names = f"the {'baseline' if len(best) == 1 else 'baselines'} {names}"
    if len(best) > 3:
        names = f"{len(best)} models alike"
    elif len(others) > len(best):
        models = len({line.model for line in others})
        what = f"{models} models" if models == len(others) else f"{len(others)} ways of asking"
        what += f" {models} models" if 1 < models < len(others) else ""
        names += f", the best of {what}" if len(best) == 1 else f", alike and best of {what}"
    beside = []
    chances = board.chances(column)
    if chances:
        beside.append(f"chance {_percent(column, show.span(chances, percent=column.percent))}")
    stand_ins = [line for line in board.series if line.model in baselines - {one.model for one in best}]
    known = [(line, board.cells[line, column]) for line in stand_ins if _known(board, line, column)]
    if known:
        sign = -1 if column.metric in LOWER_IS_BETTER else 1
        line, cell = max(known, key=lambda pair: sign * (pair[1].value or 0.0))
        name = _short(line.label, _LONGEST_NAME)
        beside.append(f"baseline {name} {_score(column, cell, interval=False)}")
    aside = f" ({', '.join(beside)})" if beside else ""
    return f"{column.label}: {_score(column, found)} by {names}{aside}."


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _known(board: Scoreboard, line: Series, column: Column) -> bool:
    cell = board.cells.get((line, column))
    return cell is not None and cell.value is not None


def _score(column: Column, cell: Cell, *, interval: bool = True) -> str:
    text = _percent(column, show.score(cell.value, percent=column.percent))
    ends = show.interval(cell.low, cell.high, percent=column.percent) if interval else ""
    return f"{text} {ends}".strip()


def _percent(column: Column, text: str) -> str:
    return f"{text}%" if column.percent and text != show.DASH else text
