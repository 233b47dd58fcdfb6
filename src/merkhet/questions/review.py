"""Review by people: a sample of the questions as a sheet to be filled in, and its verdicts read back."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import read_csv_rows, write_text
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.sense_text import bracketed_words, fill_word

COLUMNS = (
    "question_id",
    "task",
    "domain",
    "template",
    "prompt",
    "answers",
    "choices",
    "facts",
    "verdict",
    "remark",
)
VERDICTS = ("good", "bad", "unsure")
_BETWEEN = " | "
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Sheet:
    """A filled-in sheet: its name, and the verdict on each question that has one."""

    name: str
    verdicts: Mapping[str, str]


@dataclass(frozen=True)
class Agreement:
    """How far two sheets agree on the questions that both judge.

    .. math:: \\kappa = (p_o - p_e) / (1 - p_e)

    for the observed and the expected share of equal verdicts. In [-1, 1]; 0 is what independent judges with the same
    habits would reach, 1 is full agreement. None where no question is on both sheets.
    """

    first: str
    second: str
    questions: int
    kappa: float | None


@dataclass(frozen=True)
class Review:
    """What the sheets say: how many questions are judged how, which are left out, and which templates are poor."""

    judged: Mapping[str, int]
    left_out: tuple[str, ...]
    poor_templates: tuple[str, ...]
    agreements: tuple[Agreement, ...]


def draw_sample(found: QuestionSet, count: int, seed: int) -> list[dict[str, str]]:
    """Rows of a sheet: so many questions, spread over tasks and in each over relations as evenly as there are some.

    Drawn by the seed and the questions' ids, whatever their order.
    """
    table = found.questions.append_column("row", pa.array(range(found.questions.num_rows), pa.int64()))
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
    with duckdb.connect() as connection:
        connection.register("questions", table.select(["row", "task", "template", "question_id"]))
        rows = connection.sql(query, params={"seed": str(seed), "count": count}).to_arrow_table()["row"]
    chosen = found.questions.take(rows).to_pylist()
    words = _facts_in_words(found.facts, {fact for row in chosen for fact in row["facts"] or ()})
    return [_sheet_row(row, words) for row in chosen]


def _sheet_row(row: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, str]:
    texts = {column: row.get(column) or "" for column in ("question_id", "task", "domain", "template", "prompt")}
    facts = [words[fact] for fact in row["facts"] or () if fact in words]
    lists = {"answers": row["answers"], "choices": row["choices"] or (), "facts": facts}
    senses = bracketed_words(row)
    texts["prompt"] = fill_word(texts["prompt"], senses)
    cells = {name: _BETWEEN.join(fill_word(part, senses) for part in parts) for name, parts in lists.items()}
    return texts | cells | {"verdict": "", "remark": ""}


def _facts_in_words(facts: pa.Table, wanted: set[str]) -> dict[str, str]:
    own = facts.filter(pc.is_in(facts["fact_id"], pa.array(sorted(wanted), pa.string())))
    found = {}
    for fact in own.to_pylist():
        value = fact["object"] if fact["object"] is not None else f"{fact['value']:g} {fact['unit'] or ''}".strip()
        when = f" ({fact['start'] or ''}–{fact['end'] or ''})" if fact["start"] or fact["end"] else ""
        found[fact["fact_id"]] = f"{fact['subject']} {fact['predicate']} {value}{when}"
    return found


def write_sheet(rows: Sequence[Mapping[str, str]], path: Path, title: str) -> None:
    """Write a sheet as a table for spreadsheets (.csv) or as a page for a browser (.html), by the file's ending."""
    if path.suffix == ".csv":
        write_text(path, sheet_csv(rows))
    elif path.suffix in (".html", ".htm"):
        from merkhet.questions._review_page import render_sheet

        write_text(path, render_sheet(rows, title))
    else:
        raise InputError(f"{path}: a review sheet is a .csv or an .html file. Give --out such an ending.")


def sheet_csv(rows: Sequence[Mapping[str, str]]) -> str:
    """The sheet as CSV that spreadsheets open as they should: marked as UTF-8, and no text taken for a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_guarded(row[column]) for column in COLUMNS])
    return "\ufeff" + text.getvalue()


def _guarded(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


def _unguarded(text: str) -> str:
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def read_sheet(path: Path, known: frozenset[str]) -> Sheet:
    """The verdicts of a filled-in sheet; refuses an unknown question or verdict, or a question twice, by its row.

    Rows without a verdict are left aside. Commas, semicolons or tabs may stand between cells.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}; --verdicts names a review sheet that was filled in")
    rows = read_csv_rows(path)
    try:
        columns = [cell.strip().lower() for cell in next(rows, [])]
        for name in ("question_id", "verdict"):
            if name not in columns:
                raise InputError(f"{path}: there is no column {name!r}; a review sheet has {', '.join(COLUMNS)}")
        places = columns.index("question_id"), columns.index("verdict")
        verdicts: dict[str, str] = {}
        for row in rows:
            cells = [*row, *[""] * len(columns)]
            question, verdict = (_unguarded(cells[place].strip()) for place in places)
            if question or verdict:
                _take(question, verdict.lower(), f"{path}, row {rows.line_num}", known, verdicts)
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV file: {error}") from error
    return Sheet(path.name, {question: verdict for question, verdict in verdicts.items() if verdict})


def _take(question: str, verdict: str, where: str, known: frozenset[str], verdicts: dict[str, str]) -> None:
    if question not in known:
        raise InputError(f"{where}: there is no question {question!r} in the folder. Is the sheet of other questions?")
    if question in verdicts:
        raise InputError(f"{where}: the question {question} is there twice. Remove one.")
    if verdict and verdict not in VERDICTS:
        raise InputError(f"{where}: the verdict is {verdict!r}; {did_you_mean(verdict, VERDICTS)}")
    verdicts[question] = verdict


def combine_verdicts(found: QuestionSet, sheets: Sequence[Sheet], least: int = 3) -> Review:
    """What the sheets say together.

    A question is left out if it is marked bad at least as often as good. A template is poor if at least ``least`` of
    its questions are judged good or bad, and more than half of these are left out.
    """
    marks: dict[str, Counter[str]] = defaultdict(Counter)
    for sheet in sheets:
        for question, verdict in sheet.verdicts.items():
            marks[question][verdict] += 1
    verdicts = {question: _together(given) for question, given in marks.items()}
    judged = Counter(verdicts.values())
    left_out = tuple(sorted(question for question, verdict in verdicts.items() if verdict == "bad"))
    ids = pa.array(sorted(verdicts), pa.string())
    rows = found.questions.filter(pc.is_in(found.questions["question_id"], ids))
    by_template: dict[str, Counter[str]] = defaultdict(Counter)
    for question, template in zip(rows["question_id"].to_pylist(), rows["template"].to_pylist(), strict=True):
        if template is not None:
            by_template[template][verdicts[question]] += 1
    poor = [
        template
        for template, given in by_template.items()
        if given["good"] + given["bad"] >= least and given["bad"] > given["good"]
    ]
    agreements = tuple(_agreement(first, second) for first, second in combinations(sheets, 2))
    return Review({verdict: judged[verdict] for verdict in VERDICTS}, left_out, tuple(sorted(poor)), agreements)


def _together(given: Counter[str]) -> str:
    if given["bad"] and given["bad"] >= given["good"]:
        return "bad"
    return "good" if given["good"] else "unsure"


def _agreement(first: Sheet, second: Sheet) -> Agreement:
    both = sorted(first.verdicts.keys() & second.verdicts.keys())
    return Agreement(
        first.name, second.name, len(both), _kappa([(first.verdicts[q], second.verdicts[q]) for q in both])
    )


def _kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    if not pairs:
        return None
    observed = sum(one == other for one, other in pairs) / len(pairs)
    ones, others = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    expected = sum(ones[verdict] * others[verdict] for verdict in VERDICTS) / len(pairs) ** 2
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)


def apply_review(found: QuestionSet, review: Review) -> QuestionSet:
    """The questions without those that the review leaves out, which the card counts as the filter ``review``."""
    table = found.questions
    kept = table.filter(pc.invert(pc.is_in(table["question_id"], pa.array(review.left_out, pa.string()))))
    if not kept.num_rows:
        raise InputError("the review leaves no question: all of them are marked bad")
    before, after = Counter(table["task"].to_pylist()), Counter(kept["task"].to_pylist())
    steps = [
        {"filter": "review", "task": task, "before": before[task], "after": after[task]} for task in sorted(before)
    ]
    about = {
        **found.about,
        "filters": [*found.about.get("filters", ()), *steps],
        "review": {
            **{f"judged_{verdict}": count for verdict, count in review.judged.items()},
            "poor_templates": list(review.poor_templates),
            "agreement": [
                f"{one.first} and {one.second}: kappa {one.kappa:.2f} on {one.questions:,} questions"
                for one in review.agreements
                if one.kappa is not None
            ],
        },
    }
    return replace(found, questions=kept, about=about)
