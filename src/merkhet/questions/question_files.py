"""Question sets in memory, and their files, which are built by merkhet or written by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.errors import FaultList, InputError, did_you_mean
from merkhet.core.files import write_json
from merkhet.core.records import Question, QuestionTable, questions_from_rows, right_candidates
from merkhet.core.schemas import (
    CANDIDATES,
    CONTROLS,
    ENTITIES,
    FACTS,
    FREQUENCIES,
    PAIRS,
    PREMISE_QUESTIONS,
    PREMISES,
    QUESTIONS,
    TableKind,
    candidate_set_id,
    make_table,
    read_table,
    write_table,
)
from merkhet.core.text_formats import parse_json

QUESTION_FILES = ("questions.parquet", "questions.jsonl")
TRAINING_FILE = "training.parquet"
"""File of the questions of a run that models are trained on or that serve as few-shot examples."""
ABOUT_FILE = "about.json"
"""File with the metadata of a question set, in the folder of its tables."""

_QUESTION_COLUMNS = [
    *("question_id", "task", "prompt", "answers", "target", "choices"),
    *("candidate_set", "language", "template", "words"),
]
_COMPANIONS = (CANDIDATES, FACTS, FREQUENCIES, ENTITIES, PREMISES, PREMISE_QUESTIONS, PAIRS, CONTROLS)


@dataclass(frozen=True)
class QuestionSet:
    """Table of questions with the other tables that belong to it."""

    questions: pa.Table
    candidates: pa.Table = field(default_factory=lambda: make_table(CANDIDATES, []))
    """Candidate sets by id, to which questions refer."""
    facts: pa.Table = field(default_factory=lambda: make_table(FACTS, []))
    """Facts from which the questions are made."""
    frequencies: pa.Table = field(default_factory=lambda: make_table(FREQUENCIES, []))
    """Frequency of each answer, by task and relation."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Content of the data card except counts: filters, ambiguity of templates, sources, remarks."""
    entities: pa.Table = field(default_factory=lambda: make_table(ENTITIES, []))
    """Names of entities in each question, if the question maker records them."""
    premises: pa.Table = field(default_factory=lambda: make_table(PREMISES, []))
    """Stated facts at the bottom of the proof of each reasoning question."""
    premise_questions: pa.Table = field(default_factory=lambda: make_table(PREMISE_QUESTIONS, []))
    """Premises shown in each question, and ids of the questions that test whether a model knows its premises."""
    pairs: pa.Table = field(default_factory=lambda: make_table(PAIRS, []))
    """Names in the statements that training questions ask a verdict on, and whether the statements hold."""
    controls: pa.Table = field(default_factory=lambda: make_table(CONTROLS, []))
    """Prompts of control questions, which lack what a question is about."""

    def candidate_sets(self) -> dict[str, tuple[str, ...]]:
        """Return the candidates of each candidate set, by the id of the set."""
        return {row["candidate_set"]: tuple(row["candidates"]) for row in self.candidates.to_pylist()}

    def as_questions(self) -> list[Question]:
        """Return the questions as :class:`Question` objects with their candidates."""
        columns = [self.questions[name].to_pylist() for name in _QUESTION_COLUMNS]
        rows = (dict(zip(_QUESTION_COLUMNS, values, strict=True)) for values in zip(*columns, strict=True))
        return questions_from_rows(rows, self.candidate_sets(), self.entity_names())

    def entity_names(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the entities in each question whose maker records them, by question id."""
        asked = self.entities.filter(
            pc.is_in(self.entities["question_id"], self.questions["question_id"].combine_chunks())
        )
        columns = (asked[name].to_pylist() for name in ("question_id", "entities"))
        return {question_id: tuple(names) for question_id, names in zip(*columns, strict=True)}

    def right_counts(self) -> list[int]:
        """Return the number of right candidates of each question; of right answers if none is a candidate."""
        names = ("answers", "choices", "candidate_set")
        sets = {name: frozenset(texts) for name, texts in self.candidate_sets().items()}
        return [
            len(right_candidates(answers, (choices or ()) if name is None else sets.get(name, ())))
            for answers, choices, name in zip(*(self.questions[name].to_pylist() for name in names), strict=True)
        ]

    def by_id(self) -> QuestionTable:
        """Return a table of questions by id, which creates :class:`Question` objects only when needed."""
        return QuestionTable(self.questions, self.as_questions)

    def clusters(self) -> dict[str, str]:
        """Return the cluster id of each question: its ``qset``, else its first fact, else its question id."""
        columns = (self.questions[name].to_pylist() for name in ("question_id", "qset", "facts"))
        return {name: qset or (facts or [name])[0] for name, qset, facts in zip(*columns, strict=True)}


def write_questions(questions: QuestionSet, folder: Path) -> None:
    """Write all tables and the metadata of a question set into a folder."""
    write_json(folder / ABOUT_FILE, dict(questions.about))
    for kind in (*_COMPANIONS, QUESTIONS):
        write_table(kind, getattr(questions, kind.name), folder / f"{kind.name}.parquet")


def read_questions(path: Path) -> QuestionSet:
    """Read a question set.

    A hand-written question may omit ``target``, which defaults to the first answer. Without ``choices`` and
    ``candidate_set``, its candidates are all answers of its task in the file.

    Args:
        path: A folder with questions.parquet or questions.jsonl and the other tables, or a file of questions.

    Raises:
        InputError: There is no question, a target is not among its answers or candidates, or a candidate occurs twice.
    """
    file = find_question_file(path)
    shared: dict[str, tuple[str, ...]] = {}
    questions = read_table(QUESTIONS, file, complete=lambda rows: _complete(rows, shared))
    implied = make_table(
        CANDIDATES, [{"candidate_set": name, "candidates": list(texts)} for name, texts in shared.items()]
    )
    if not questions.num_rows:
        raise InputError(f"{file} holds no questions")
    tables = {kind.name: _read_companion(file, kind) for kind in _COMPANIONS}
    tables["candidates"] = pa.concat_tables([implied, tables["candidates"]])
    question_set = QuestionSet(questions, about=read_about(file), **tables)
    _refuse_wrong_candidates(question_set, file)
    return question_set


def _refuse_wrong_candidates(questions: QuestionSet, file: Path) -> None:
    """Raise an error if targets are not among their candidates and answers, or if candidates occur twice."""
    faults = FaultList()
    repeating: set[str | None] = set()
    """Candidate sets with a repeated candidate; each is a fault of the first question that uses it."""
    sets = questions.candidate_sets()
    distinct = {name: frozenset(texts) for name, texts in sets.items()}
    columns = (questions.questions[name].to_pylist() for name in ("target", "answers", "choices", "candidate_set"))
    for row, (target, answers, choices, set_name) in enumerate(zip(*columns, strict=True)):
        where = partial(_row_location, file, row)
        if set_name is not None and set_name not in sets:
            known = did_you_mean(set_name, sets)
            faults.add(
                f"{where()}: uses the candidate set {set_name!r}, which is not in the table of candidates; {known}"
            )
            continue
        offered = choices if set_name is None else sets[set_name]
        different = frozenset(choices) if set_name is None else distinct[set_name]
        if target not in different:
            faults.add(f"{where()}: the target {target!r} is not among the candidates. Add it.")
        if target not in answers:
            faults.add(f"{where()}: the target {target!r} is not among the answers. Add it.")
        if len(different) < len(offered) and (set_name is None or set_name not in repeating):
            repeating.add(set_name)
            twice = Counter(offered).most_common(1)[0][0]
            faults.add(f"{where()}: the candidate {twice!r} occurs twice. Remove one.")
    faults.refuse()


def _row_location(file: Path, row: int) -> str:
    """Return the file and the row number for an error message; in a .jsonl file, blank lines are counted."""
    if file.suffix == ".jsonl":
        with open(file, "rb") as handle:
            row = [number for number, line in enumerate(handle) if line.strip()][row]
    return f"{file}, row {row + 1}"


def _complete(rows: list[dict[str, Any]], shared: dict[str, tuple[str, ...]]) -> None:
    by_task: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        answers = row.get("answers")
        if isinstance(answers, str):
            answers = row["answers"] = [answers]
        if isinstance(answers, list):
            row.setdefault("target", answers[0] if answers else "")
            by_task[str(row["task"])].update(str(answer) for answer in answers)
    sets = {task: candidate_set_id(task, sorted(texts)) for task, texts in by_task.items()}
    for row in rows:
        task = str(row["task"])
        if "choices" not in row and "candidate_set" not in row and task in sets:
            row["candidate_set"] = sets[task]
            shared[row["candidate_set"]] = tuple(sorted(by_task[task]))


def _read_companion(file: Path, kind: TableKind) -> pa.Table:
    for path in companion_paths(file, kind):
        if path.is_file():
            return read_table(kind, path)
    return make_table(kind, [])


def companion_paths(file: Path, *kinds: TableKind) -> list[Path]:
    """Return the possible paths of the tables beside a file of questions, for all ``kinds`` if none is given."""
    return [file.parent / f"{kind.name}{ending}" for kind in kinds or _COMPANIONS for ending in (".parquet", ".jsonl")]


def read_about(file: Path) -> dict[str, Any]:
    """Read the metadata beside a file of questions; return an empty dictionary if there are none."""
    return _read_json(file.parent / ABOUT_FILE)


def read_card(folder: Path) -> dict[str, Any]:
    """Read the data card of a folder; return an empty dictionary if there is none."""
    return _read_json(folder / "card.json")


def _read_json(file: Path) -> dict[str, Any]:
    content = parse_json(file.read_bytes(), str(file), "Make it again, or remove it.") if file.is_file() else {}
    return content if isinstance(content, dict) else {}


def find_question_file(path: Path) -> Path:
    """Return ``path`` if it is a file; if it is a folder, the questions.parquet or questions.jsonl in it."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise InputError(
            f"there is no folder or file {path}; --data must name a folder of 'merkhet build', or a file of questions"
        )
    for name in QUESTION_FILES:
        if (path / name).is_file():
            return path / name
    raise InputError(f"{path} holds no questions.parquet or questions.jsonl; 'merkhet build' writes one")
