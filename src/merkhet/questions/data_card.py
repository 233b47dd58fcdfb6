"""Data cards of question sets: counts, filters, ambiguity, review and sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from merkhet.core.files import write_json, write_text
from merkhet.core.templating import render_text
from merkhet.core.text import counted
from merkhet.questions.losses import by_reason, read_losses
from merkhet.questions.quality import count_values
from merkhet.questions.question_files import QuestionSet

_NO_VALUE = "None"
"""Name under which questions without a domain are counted."""
Line = str | Sequence[str]
"""Item of a list in a card, or cells of a table row; the first row of a table is its header."""


def make_card(
    questions: QuestionSet, *, suite: str, seed: int, knowledge: Sequence[str], names: Mapping[str, str]
) -> dict[str, Any]:
    """Return the data card of a question set: its ``about``, its origin, and counts."""
    return {
        **questions.about,
        "suite": suite,
        "seed": seed,
        "knowledge": list(knowledge),
        "names": dict(names),
        **count_questions(questions),
    }


def count_questions(questions: QuestionSet) -> dict[str, Any]:
    """Count the facts and the questions of a set, in total, by task, by domain, and by split if it has splits."""
    table = questions.questions
    counts: dict[str, Any] = {
        "facts": questions.facts.num_rows,
        "questions": table.num_rows,
        "by_task": _counts(table["task"]),
        "by_domain": _counts(table["domain"]),
    }
    for column in ("evidence", "nearness"):
        if table[column].null_count < table.num_rows:
            counts[f"by_{column}"] = _counts(table[column].drop_null())
    if table["split"].null_count < table.num_rows:
        counts["by_split"] = _counts(table["split"])
    return counts


def write_card(card: Mapping[str, Any], folder: Path) -> None:
    """Write a data card as ``card.json`` for programs and ``CARD.md`` for people."""
    write_json(folder / "card.json", card)
    write_text(folder / "CARD.md", card_markdown(card))


def card_markdown(card: Mapping[str, Any]) -> str:
    """Format a data card as Markdown, without empty sections."""
    origin = card.get("origin") or {}
    is_imported = origin.get("kind") == "imported"
    sections: dict[str, Sequence[Line]] = {}
    for title, key in (("Tasks", "by_task"), ("Domains", "by_domain"), ("Splits", "by_split")):
        counts = _in_order(card.get(key) or {}, card.get("domains", ()) if key == "by_domain" else ())
        total = sum(count for _, count in counts)
        rows = [(_cell(name), f"{count:,}", f"{count / total:.1%}") for name, count in counts]
        named = [name for name, _ in counts] != [_NO_VALUE]
        sections[title] = [(title[:-1].lower(), "questions", "share"), *rows] if rows and named else []
    sections["Domains without questions"] = list(map(str, card.get("empty_domains") or ()))
    sections["Losses"] = _losses(card)
    sections["Evidence of wrong options"] = _evidence(card.get("evidence") or (), card.get("by_nearness") or {})
    sections["Filters"] = _filters(card.get("filters") or ())
    sections["Answers of templates"] = _ambiguity(card.get("ambiguity") or ())
    sections["Control prompts"] = _controls(card.get("controls") or ())
    review = card.get("review") or {}
    sections["Review"] = [f"{key.replace('_', ' ')}: {_number(value)}" for key, value in review.items()]
    sections["Sources"] = list(map(str, card.get("sources") or ()))
    sections["Remarks"] = list(map(str, card.get("remarks") or ()))
    return render_text(
        *("merkhet.questions", "pages", "card.md.j2"),
        title=origin["title"] if is_imported else card.get("suite", "Questions"),
        imported=origin["source"] if is_imported else None,
        questions=card.get("questions", 0),
        facts=card.get("facts", 0),
        knowledge=card.get("knowledge") or (),
        seed=card.get("seed"),
        sections=sections,
    )


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return dict(sorted((str(value), count) for value, count in count_values(column).items()))


def _in_order(counts: Mapping[str, int], order: Sequence[str]) -> list[tuple[str, int]]:
    positions = {name: position for position, name in enumerate(order)}
    return sorted(counts.items(), key=lambda pair: (positions.get(pair[0], len(positions)), pair[0]))


def _filters(steps: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Tabulate the filters in their order of application, with the counts before → after for each task."""
    tasks = list(dict.fromkeys(str(step["task"]) for step in steps))
    by_filter: dict[str, dict[str, tuple[int, int]]] = {}
    for step in steps:
        by_filter.setdefault(str(step["filter"]), {})[str(step["task"])] = (step["before"], step["after"])
    lines: list[Line] = [("filter", *map(_cell, tasks), "left out")] if steps else []
    for name, counts in by_filter.items():
        removed = sum(before - after for before, after in counts.values())
        cells = [f"{counts[task][0]:,} → {counts[task][1]:,}" if task in counts else "" for task in tasks]
        lines.append((_cell(name), *cells, f"{removed:,}"))
    return lines


def _losses(card: Mapping[str, Any]) -> list[Line]:
    """Tabulate what gave no question, task by task, with reasons; the rows of a task add up to its total."""
    lines: list[Line] = []
    for account in read_losses(card):
        task = _cell(account.task)
        lines.append((task, f"{account.total:,}", f"{account.what} with a template", "", ""))
        lines.append((task, f"{account.askable:,}", "give a question", "", ""))
        for loss in by_reason(account.losses):
            reason = loss.reason + (" (as the study asks)" if loss.intended else "")
            lines.append(
                (task, f"{loss.count:,}", _cell(reason), _cell(loss.relation), _cell("; ".join(loss.examples)))
            )
    return [("task", "number", "reason", "relations", "examples"), *lines] if lines else []


def _evidence(counts: Sequence[Mapping[str, Any]], by_nearness: Mapping[str, int]) -> list[Line]:
    """Tabulate relations and facts by the evidence of wrong options, and questions by their nearness."""
    lines: list[Line] = [
        (row["evidence"], f"{row['relations']:,}", f"{row['facts']:,}", "asked" if row["asked"] else "not asked")
        for row in counts
    ]
    lines += [(f"nearness: {name}", "", "", counted(count, "question")) for name, count in by_nearness.items()]
    return [("evidence", "relations", "facts", "questions"), *lines] if lines else []


def _ambiguity(templates: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Tabulate how often a template's sentence has several right answers, and how such questions were treated."""
    columns = [key for key in (templates or [{}])[0] if any(template.get(key) is not None for template in templates)]
    rows: list[Line] = [[_cell(_number(template.get(key))) for key in columns] for template in templates]
    return [[_cell(column.replace("_", " ")) for column in columns], *rows] if rows else []


def _controls(counts: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Tabulate how many questions have a prompt of a control, and why others have none."""
    rows: list[Line] = [
        (
            *(_cell(str(row["control"])), _cell(str(row["task"])), f"{row['questions']:,}", f"{row['made']:,}"),
            _cell("; ".join(f"{count:,}: {reason}" for reason, count in row["missing"].items())),
        )
        for row in counts
    ]
    return [("control", "task", "questions", "with a prompt", "without one"), *rows] if rows else []


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list):
        return ", ".join(map(_number, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str("" if value is None else value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
