"""Data cards of question sets: counts, filters, ambiguity, review, sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.files import write_json, write_text
from merkhet.questions.question_files import QuestionSet


def make_card(
    questions: QuestionSet, *, suite: str, seed: int, knowledge: Sequence[str], names: Mapping[str, str]
) -> dict[str, Any]:
    """Return the card of a question set: its ``about`` and its counts."""
    return {
        **questions.about,
        "suite": suite,
        "seed": seed,
        "knowledge": list(knowledge),
        "names": dict(names),
        **count_questions(questions),
    }


def count_questions(questions: QuestionSet) -> dict[str, Any]:
    """Count questions and facts, by task, by domain, and by split if there are splits."""
    table = questions.questions
    counts: dict[str, Any] = {
        "facts": questions.facts.num_rows,
        "questions": table.num_rows,
        "by_task": _counts(table["task"]),
        "by_domain": _counts(table["domain"]),
    }
    if table["split"].null_count < table.num_rows:
        counts["by_split"] = _counts(table["split"])
    return counts


def write_card(card: Mapping[str, Any], folder: Path) -> None:
    """Write card.json for programs and CARD.md for people."""
    write_json(folder / "card.json", card)
    write_text(folder / "CARD.md", card_markdown(card))


def card_markdown(card: Mapping[str, Any]) -> str:
    """Format the card as Markdown; empty sections are left out."""
    lines = [f"# {card.get('suite', 'Questions')}: data card", ""]
    lines += [f"{card.get('questions', 0):,} questions from {card.get('facts', 0):,} facts."]
    if card.get("knowledge"):
        lines += [f"Knowledge: {', '.join(map(str, card['knowledge']))}."]
    if "seed" in card:
        lines += [f"Seed: {card['seed']}."]
    lines += [""]
    for title, key in (("Tasks", "by_task"), ("Domains", "by_domain"), ("Splits", "by_split")):
        if card.get(key):
            total = sum(card[key].values())
            counts = _in_order(card[key], card.get("domains", ()) if key == "by_domain" else ())
            rows = [(name, f"{count:,}", f"{count / total:.1%}") for name, count in counts]
            lines += _section(title, _table((title[:-1].lower(), "questions", "share"), rows))
    lines += _section("Domains without questions", _items(card.get("empty_domains")))
    lines += _section("Filters", _filters(card.get("filters") or ()))
    lines += _section("Answers of templates", _ambiguity(card.get("ambiguity") or ()))
    lines += _section("Review", _review(card.get("review") or {}))
    lines += _section("Sources", _items(card.get("sources")))
    lines += _section("Remarks", _items(card.get("remarks")))
    return "\n".join(lines).rstrip("\n") + "\n"


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    entries = pc.value_counts(column)
    pairs = zip(entries.field("values").to_pylist(), entries.field("counts").to_pylist(), strict=True)
    return dict(sorted((str(value), count) for value, count in pairs))


def _in_order(counts: Mapping[str, int], order: Sequence[str]) -> list[tuple[str, int]]:
    positions = {name: position for position, name in enumerate(order)}
    return sorted(counts.items(), key=lambda pair: (positions.get(pair[0], len(positions)), pair[0]))


def _filters(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tabulate the filters in the order they were applied, with a column per task: before → after."""
    if not steps:
        return []
    tasks = list(dict.fromkeys(str(step["task"]) for step in steps))
    by_filter: dict[str, dict[str, tuple[int, int]]] = {}
    for step in steps:
        by_filter.setdefault(str(step["filter"]), {})[str(step["task"])] = (step["before"], step["after"])
    rows = []
    for name, counts in by_filter.items():
        removed = sum(before - after for before, after in counts.values())
        cells = [f"{counts[task][0]:,} → {counts[task][1]:,}" if task in counts else "" for task in tasks]
        rows.append((name, *cells, f"{removed:,}"))
    return _table(("filter", *tasks, "left out"), rows)


def _ambiguity(templates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tabulate how often a template's sentence has several right answers, and how such questions were treated."""
    if not templates:
        return []
    columns = [key for key in templates[0] if any(template.get(key) is not None for template in templates)]
    rows = [[_number(template.get(key)) for key in columns] for template in templates]
    return _table([column.replace("_", " ") for column in columns], rows)


def _review(review: Mapping[str, Any]) -> list[str]:
    return _items(f"{key.replace('_', ' ')}: {_number(value)}" for key, value in review.items())


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list):
        return ", ".join(map(_number, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str("" if value is None else value)


def _section(title: str, content: list[str]) -> list[str]:
    return [f"## {title}", "", *content, ""] if content else []


def _items(texts: Iterable[Any] | None) -> list[str]:
    return [f"- {_plain(text)}" for text in texts or ()]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines]


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text: Any) -> str:
    return " ".join(str(text).split())
