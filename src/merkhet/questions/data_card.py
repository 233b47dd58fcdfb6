"""The card of a question set: what is in it, what was left out and why, where it comes from."""

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
    """The card's content: what the question set says about itself, and its questions counted."""
    return {
        **questions.about,
        "suite": suite,
        "seed": seed,
        "knowledge": list(knowledge),
        "names": dict(names),
        **count_questions(questions),
    }


def count_questions(questions: QuestionSet) -> dict[str, Any]:
    """How many questions and facts there are, by task, by domain, and by split where there are splits."""
    table = questions.questions
    found: dict[str, Any] = {
        "facts": questions.facts.num_rows,
        "questions": table.num_rows,
        "by_task": _counts(table["task"]),
        "by_domain": _counts(table["domain"]),
    }
    if table["split"].null_count < table.num_rows:
        found["by_split"] = _counts(table["split"])
    return found


def write_card(card: Mapping[str, Any], folder: Path) -> None:
    """Write card.json for programs and CARD.md for people."""
    write_json(folder / "card.json", card)
    write_text(folder / "CARD.md", card_markdown(card))


def card_markdown(card: Mapping[str, Any]) -> str:
    """The card as Markdown: sections only for what the card has something to say about."""
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
    found = pc.value_counts(column)
    pairs = zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True)
    return dict(sorted((str(value), count) for value, count in pairs))


def _in_order(counts: Mapping[str, int], order: Sequence[str]) -> list[tuple[str, int]]:
    known = {name: place for place, name in enumerate(order)}
    return sorted(counts.items(), key=lambda pair: (known.get(pair[0], len(known)), pair[0]))


def _filters(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line a filter in the order they were applied, one column a task: before → after."""
    if not steps:
        return []
    tasks = list(dict.fromkeys(str(step["task"]) for step in steps))
    by_filter: dict[str, dict[str, tuple[int, int]]] = {}
    for step in steps:
        by_filter.setdefault(str(step["filter"]), {})[str(step["task"])] = (step["before"], step["after"])
    rows = []
    for name, found in by_filter.items():
        gone = sum(before - after for before, after in found.values())
        cells = [f"{found[task][0]:,} → {found[task][1]:,}" if task in found else "" for task in tasks]
        rows.append((name, *cells, f"{gone:,}"))
    return _table(("filter", *tasks, "left out"), rows)


def _ambiguity(templates: Sequence[Mapping[str, Any]]) -> list[str]:
    """How often a template's sentence has several right answers, and what became of such questions."""
    if not templates:
        return []
    columns = [key for key in templates[0] if any(one.get(key) is not None for one in templates)]
    rows = [[_number(one.get(key)) for key in columns] for one in templates]
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
