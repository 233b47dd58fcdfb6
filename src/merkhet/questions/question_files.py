"""Question sets as folders: what ``merkhet build`` writes, and what people write by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from merkhet.core.errors import InputError
from merkhet.core.files import write_json
from merkhet.core.records import Question, questions_from_rows
from merkhet.core.schemas import (
    CANDIDATES,
    ENTITIES,
    FACTS,
    FREQUENCIES,
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
"""The questions of a run that models learn from, or that are shown as examples."""
ABOUT_FILE = "about.json"
"""What a question set says about itself, beside its tables."""

_OF_A_QUESTION = [
    "question_id",
    "task",
    "prompt",
    "answers",
    "target",
    "choices",
    "candidate_set",
    "language",
    "template",
    "words",
]


@dataclass(frozen=True)
class QuestionSet:
    """Questions with their candidate sets, the facts they come from, and how often each answer is right (or none).

    ``entities`` are the names in each question, where its maker tells; ``premises`` say of a question what of its
    premises it shows, and which questions decide whether a model knows the others. ``about`` is what the data card
    says besides counts: filters with what each left out, how ambiguous templates are, sources, remarks.
    """

    questions: pa.Table
    candidates: pa.Table = field(default_factory=lambda: make_table(CANDIDATES, []))
    facts: pa.Table = field(default_factory=lambda: make_table(FACTS, []))
    frequencies: pa.Table = field(default_factory=lambda: make_table(FREQUENCIES, []))
    about: Mapping[str, Any] = field(default_factory=dict)
    entities: pa.Table = field(default_factory=lambda: make_table(ENTITIES, []))
    premises: pa.Table = field(default_factory=lambda: make_table(PREMISES, []))

    def candidate_sets(self) -> dict[str, tuple[str, ...]]:
        """The candidates of each set."""
        return {row["candidate_set"]: tuple(row["candidates"]) for row in self.candidates.to_pylist()}

    def as_questions(self) -> list[Question]:
        """The questions as objects, candidates in place."""
        return questions_from_rows(self.questions.select(_OF_A_QUESTION).to_pylist(), self.candidate_sets())

    def by_id(self) -> dict[str, Question]:
        """The questions as objects, by their ids."""
        return {question.question_id: question for question in self.as_questions()}

    def clusters(self) -> dict[str, str]:
        """The fact that each question stands and falls with; a question without one stands alone."""
        rows = self.questions.select(["question_id", "qset", "facts"]).to_pylist()
        return {row["question_id"]: row["qset"] or (row["facts"] or [row["question_id"]])[0] for row in rows}


def write_questions(questions: QuestionSet, folder: Path) -> None:
    """Write questions.parquet, and candidates, facts, frequencies and what is said about them beside it."""
    write_json(folder / ABOUT_FILE, dict(questions.about))
    write_table(FREQUENCIES, questions.frequencies, folder / "frequencies.parquet")
    write_table(ENTITIES, questions.entities, folder / "entities.parquet")
    write_table(PREMISES, questions.premises, folder / "premises.parquet")
    write_table(CANDIDATES, questions.candidates, folder / "candidates.parquet")
    write_table(FACTS, questions.facts, folder / "facts.parquet")
    write_table(QUESTIONS, questions.questions, folder / "questions.parquet")


def read_questions(place: Path) -> QuestionSet:
    """The questions of a folder (questions.parquet or .jsonl, with candidates and facts beside it), or of one file.

    A hand-written question may leave out its target (the first answer) and its choices: it is then asked among all
    the answers of its task in the file. Refuses a question whose target is no answer or not among its candidates, and
    one that has a candidate twice.
    """
    file = find_question_file(place)
    shared: dict[str, tuple[str, ...]] = {}
    questions = read_table(QUESTIONS, file, complete=lambda rows: _complete(rows, shared))
    own = make_table(CANDIDATES, [{"candidate_set": name, "candidates": list(texts)} for name, texts in shared.items()])
    if not questions.num_rows:
        raise InputError(f"{file} holds no questions")
    candidates = pa.concat_tables([own, _beside(file, CANDIDATES)])
    facts, frequencies, entities, premises = (_beside(file, kind) for kind in (FACTS, FREQUENCIES, ENTITIES, PREMISES))
    about = _read_json(file.parent / ABOUT_FILE)
    found = QuestionSet(questions, candidates, facts, frequencies, about, entities, premises)
    _refuse_wrong_candidates(found, file)
    return found


def _refuse_wrong_candidates(found: QuestionSet, file: Path) -> None:
    """Refuse the first question whose target is not offered or not right, or to which something is offered twice."""
    sets = found.candidate_sets()
    distinct = {name: frozenset(texts) for name, texts in sets.items()}
    columns = (found.questions[name].to_pylist() for name in ("target", "answers", "choices", "candidate_set"))
    for row, (target, answers, choices, named) in enumerate(zip(*columns, strict=True)):
        if named is not None and named not in sets:
            found.as_questions()  # Says which set is not there.
        offered = choices if named is None else sets[named]
        different = frozenset(choices) if named is None else distinct[named]
        if target not in different:
            raise InputError(f"{_row(file, row)}: the target {target!r} is not among the candidates. Add it.")
        if target not in answers:
            raise InputError(f"{_row(file, row)}: the target {target!r} is not among the answers. Add it.")
        if len(different) < len(offered):
            twice = Counter(offered).most_common(1)[0][0]
            raise InputError(f"{_row(file, row)}: the candidate {twice!r} is there twice. Remove one.")


def _row(file: Path, row: int) -> str:
    """The place of a row in its file: blank lines of JSON lines are counted."""
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


def _beside(file: Path, kind: TableKind) -> pa.Table:
    for path in companion_paths(file, kind):
        if path.is_file():
            return read_table(kind, path)
    return make_table(kind, [])


def companion_paths(file: Path, *kinds: TableKind) -> list[Path]:
    """Where the other tables of a question set may stand."""
    wanted = kinds or (CANDIDATES, FACTS, FREQUENCIES, ENTITIES, PREMISES)
    return [file.parent / f"{kind.name}{ending}" for kind in wanted for ending in (".parquet", ".jsonl")]


def read_card(folder: Path) -> dict[str, Any]:
    """The card that was written beside the questions, if there is one."""
    return _read_json(folder / "card.json")


def _read_json(file: Path) -> dict[str, Any]:
    found = parse_json(file.read_bytes(), str(file), "Make it again, or remove it.") if file.is_file() else {}
    return found if isinstance(found, dict) else {}


def find_question_file(place: Path) -> Path:
    """The file of questions at a place; refuses a place without one."""
    if place.is_file():
        return place
    if not place.is_dir():
        raise InputError(
            f"there is no folder or file {place}; --data names what 'merkhet build' wrote, or your questions"
        )
    for name in QUESTION_FILES:
        if (place / name).is_file():
            return place / name
    raise InputError(f"{place} holds no questions.parquet or questions.jsonl; 'merkhet build' writes one")
