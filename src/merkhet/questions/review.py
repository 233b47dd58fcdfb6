"""Human review: sheets with sampled questions, and verdicts from filled-in sheets."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.delimited_text import read_csv_rows
from merkhet.core.errors import FaultList, InputError, did_you_mean
from merkhet.core.files import write_text
from merkhet.core.ids import digest
from merkhet.core.templating import render_page
from merkhet.core.text import counted, show_hidden
from merkhet.knowledge.memory_limit import open_in_memory
from merkhet.questions.quality import filter_counts
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.sense_text import bracketed_words, fill_word

_TEXT_COLUMNS = ("question_id", "task", "domain", "template", "prompt")
COLUMNS = (*_TEXT_COLUMNS, "answers", "choices", "facts", "verdict", "remark")
VERDICTS = ("good", "bad", "unsure")
_SEPARATOR = " | "
_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Sheet:
    """Filled-in review sheet: its name, and its verdicts by question id."""

    name: str
    verdicts: Mapping[str, str]


@dataclass(frozen=True)
class Agreement:
    """Cohen's kappa of two review sheets on the questions that both of them judge.

    .. math:: \\kappa = (p_o - p_e) / (1 - p_e)

    Here, :math:`p_o` is the observed and :math:`p_e` the expected share of equal verdicts. Kappa is in [-1, 1]: 0 is
    chance agreement given the judges' marginal distributions, 1 is full agreement. It is None if the sheets have no
    judged question in common.
    """

    first: str
    second: str
    questions: int
    kappa: float | None


@dataclass(frozen=True)
class Review:
    """Combined verdicts of all review sheets."""

    judged: Mapping[str, int]
    """Number of questions with each verdict."""
    left_out: tuple[str, ...]
    """Ids of rejected questions."""
    poor_templates: tuple[str, ...]
    """Templates of which more than half of the judged questions are rejected."""
    agreements: tuple[Agreement, ...]


def draw_sample(questions: QuestionSet, count: int, seed: int) -> list[dict[str, str]]:
    """Sample ``count`` questions for a review sheet, spread evenly over tasks and their relations.

    The sample depends on the seed and the ids of the questions, not on their order.
    """
    table = questions.questions.append_column("row", pa.array(range(questions.questions.num_rows), pa.int64()))
    query = """
        with drawn as (
            select row, task, split_part(coalesce(template, ''), '/', 1) as relation, question_id,
                md5($seed || chr(31) || question_id) as lot
            from questions
        ), in_relation as (
            select *, row_number() over (partition by task, relation order by lot, question_id) as turn from drawn
        ), in_task as (
            select *, row_number() over (partition by task order by turn, lot, question_id) as place from in_relation
        ), sample as (
            select row, task, lot, question_id from in_task order by place, lot, question_id limit $count
        )
        select row from sample order by task, lot, question_id
    """
    with open_in_memory() as connection:
        connection.register("questions", table.select(["row", "task", "template", "question_id"]))
        rows = connection.sql(query, params={"seed": str(seed), "count": count}).to_arrow_table()["row"]
    sample = questions.questions.take(rows).to_pylist()
    fact_texts = _fact_texts(questions.facts, {fact for row in sample for fact in row["facts"] or ()})
    return [_sheet_row(row, fact_texts) for row in sample]


def _sheet_row(row: Mapping[str, Any], fact_texts: Mapping[str, str]) -> dict[str, str]:
    """Return the cells of a question, in which hidden characters are visible: names may hold anything."""
    texts = {column: row.get(column) or "" for column in _TEXT_COLUMNS}
    facts = [fact_texts[fact] for fact in row["facts"] or () if fact in fact_texts]
    lists = {"answers": row["answers"], "choices": row["choices"] or (), "facts": facts}
    senses = bracketed_words(row)
    texts["prompt"] = fill_word(texts["prompt"], senses)
    cells = {name: _SEPARATOR.join(fill_word(part, senses) for part in parts) for name, parts in lists.items()}
    shown = {name: show_hidden(text) for name, text in (texts | cells).items()}
    return shown | {"verdict": "", "remark": ""}


def _fact_texts(facts: pa.Table, ids: set[str]) -> dict[str, str]:
    selected = facts.filter(pc.is_in(facts["fact_id"], pa.array(sorted(ids), pa.string())))
    texts = {}
    for fact in selected.to_pylist():
        value = fact["object"] if fact["object"] is not None else f"{fact['value']:g} {fact['unit'] or ''}".strip()
        when = f" ({fact['start'] or ''}–{fact['end'] or ''})" if fact["start"] or fact["end"] else ""
        texts[fact["fact_id"]] = f"{fact['subject']} {fact['predicate']} {value}{when}"
    return texts


def write_sheet(rows: Sequence[Mapping[str, str]], path: Path, title: str) -> None:
    """Write a review sheet as a table (.csv) or as a page for a browser (.html), by the suffix of ``path``."""
    if path.suffix == ".csv":
        write_text(path, sheet_csv(rows))
    elif path.suffix in (".html", ".htm"):
        write_text(path, render_sheet(rows, title))
    else:
        raise InputError(f"{path}: a review sheet must be a .csv or .html file. Choose such a suffix for --out.")


def render_sheet(rows: Sequence[Mapping[str, str]], title: str) -> str:
    """Render a review sheet as a self-contained HTML page on which reviewers can save their verdicts as CSV.

    Data is escaped, and the page's content security policy forbids network access and foreign scripts. The browser
    stores the verdicts under a key derived from the sheet's content.
    """
    return render_page(
        *("merkhet.questions", "pages", "review.html.j2", "review.css", "review.js"),
        title=title,
        columns=json.dumps(COLUMNS),
        verdicts=VERDICTS,
        shown=("answers", "choices", "facts"),
        key=digest([dict(row) for row in rows])[:20],
        rows=[{**row, "cells": json.dumps(dict(row), ensure_ascii=False)} for row in rows],
    )


def sheet_csv(rows: Sequence[Mapping[str, str]]) -> str:
    """Format a review sheet as CSV for spreadsheet programs, with a UTF-8 byte order mark and escaped formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_escape_formula(row[column]) for column in COLUMNS])
    return "\ufeff" + text.getvalue()


def _escape_formula(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA_PREFIXES) else text


def _unescape_formula(text: str) -> str:
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA_PREFIXES) else text


def read_sheet(path: Path, known: frozenset[str]) -> Sheet:
    """Read the verdicts of a filled-in review sheet; skip rows without a verdict.

    Columns may be delimited by commas, semicolons or tabs.

    Args:
        known: Ids of all questions.

    Raises:
        InputError: A column is missing, a question or verdict is unknown, or a question occurs twice.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}; --verdicts must name a filled-in review sheet")
    rows = read_csv_rows(path, COLUMNS)
    try:
        columns = [cell.strip().lower() for cell in next(rows, [])]
        for name in ("question_id", "verdict"):
            if name not in columns:
                raise InputError(f"{path}: there is no column {name!r}; a review sheet has {', '.join(COLUMNS)}")
        indices = columns.index("question_id"), columns.index("verdict")
        verdicts: dict[str, str] = {}
        ids = {show_hidden(question): question for question in known}
        faults = FaultList()
        for row in rows:
            cells = [*row, *[""] * len(columns)]
            question, verdict = (_unescape_formula(cells[index].strip()) for index in indices)
            if question or verdict:
                question = question if question in known else ids.get(question, question)
                with faults.collect():
                    _add_verdict(question, verdict.lower(), f"{path}, row {rows.line_num}", known, verdicts)
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV file: {error}") from error
    faults.refuse()
    return Sheet(path.name, {question: verdict for question, verdict in verdicts.items() if verdict})


def _add_verdict(question: str, verdict: str, where: str, known: frozenset[str], verdicts: dict[str, str]) -> None:
    if question not in known:
        raise InputError(f"{where}: there is no question {question!r} in the folder. Use a sheet of these questions.")
    if question in verdicts:
        raise InputError(f"{where}: the question {question} occurs twice. Remove one.")
    if verdict and verdict not in VERDICTS:
        raise InputError(f"{where}: the verdict is {verdict!r}; {did_you_mean(verdict, VERDICTS)}")
    verdicts[question] = verdict


def combine_verdicts(questions: QuestionSet, sheets: Sequence[Sheet], min_judged: int = 3) -> Review:
    """Combine the verdicts of several review sheets.

    A question is rejected if it is marked bad at least once, and at least as often as good. A template is poor if at
    least ``min_judged`` of its questions are judged good or bad, and more than half of these are rejected.
    """
    marks: dict[str, Counter[str]] = defaultdict(Counter)
    for sheet in sheets:
        for question, verdict in sheet.verdicts.items():
            marks[question][verdict] += 1
    verdicts = {question: _majority(counts) for question, counts in marks.items()}
    judged = Counter(verdicts.values())
    left_out = tuple(sorted(question for question, verdict in verdicts.items() if verdict == "bad"))
    ids = pa.array(sorted(verdicts), pa.string())
    rows = questions.questions.filter(pc.is_in(questions.questions["question_id"], ids))
    by_template: dict[str, Counter[str]] = defaultdict(Counter)
    for question, template in zip(rows["question_id"].to_pylist(), rows["template"].to_pylist(), strict=True):
        if template is not None:
            by_template[template][verdicts[question]] += 1
    poor = [
        template
        for template, counts in by_template.items()
        if counts["good"] + counts["bad"] >= min_judged and counts["bad"] > counts["good"]
    ]
    agreements = tuple(_agreement(first, second) for first, second in combinations(sheets, 2))
    return Review({verdict: judged[verdict] for verdict in VERDICTS}, left_out, tuple(sorted(poor)), agreements)


def _majority(counts: Counter[str]) -> str:
    if counts["bad"] and counts["bad"] >= counts["good"]:
        return "bad"
    return "good" if counts["good"] else "unsure"


def _agreement(first: Sheet, second: Sheet) -> Agreement:
    both = first.verdicts.keys() & second.verdicts.keys()
    pairs = [(first.verdicts[question], second.verdicts[question]) for question in both]
    return Agreement(first.name, second.name, len(pairs), _kappa(pairs))


def _kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    if not pairs:
        return None
    observed = sum(first == second for first, second in pairs) / len(pairs)
    firsts, seconds = Counter(first for first, _ in pairs), Counter(second for _, second in pairs)
    expected = sum(firsts[verdict] * seconds[verdict] for verdict in VERDICTS) / len(pairs) ** 2
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)


def apply_review(questions: QuestionSet, review: Review) -> QuestionSet:
    """Drop the rejected questions, and record them in the data card as filter ``review``."""
    table = questions.questions
    accepted = table.filter(pc.invert(pc.is_in(table["question_id"], pa.array(review.left_out, pa.string()))))
    if not accepted.num_rows:
        raise InputError("the review leaves no question: all of them are marked bad")
    about = {
        **questions.about,
        "filters": [*questions.about.get("filters", ()), *filter_counts("review", table, accepted)],
        "review": {
            **{f"judged_{verdict}": count for verdict, count in review.judged.items()},
            "poor_templates": list(review.poor_templates),
            "agreement": [
                f"{pair.first} and {pair.second}: kappa {pair.kappa:.2f} on {counted(pair.questions, 'question')}"
                for pair in review.agreements
                if pair.kappa is not None
            ],
        },
    }
    return replace(questions, questions=accepted, about=about)
