"""Reader of the published KMIR files ``kmir_{train,dev,test}_cloze.jsonl``."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.core.errors import InputError
from merkhet.core.files import parse_json_object
from merkhet.core.ids import derived_seed
from merkhet.core.schemas import CANDIDATES, QUESTIONS, candidate_set_id, make_table, validate
from merkhet.core.text import counted
from merkhet.questions.question_files import QuestionSet
from merkhet.suites.kmir.shown_choices import claims_choices, find_choices, has_separator

SPLITS = ("train", "dev", "test")
FILES = tuple(f"kmir_{split}_cloze.jsonl" for split in SPLITS)
MAX_CANDIDATES = 100
"""Maximum number of candidates of a question."""

_TASKS = {"complet": "completion", "distinct": "distinction", "check": "checking", "reason": "reasoning"}
_FIELDS = {"qid": "qid", "query": "query", "answer": "answer", "answers": "answer", "reltype": "relType"}
_REPEATED_SLOTS = re.compile(rf"{re.escape(SLOT)}(?:\s*{re.escape(SLOT)})+")
_SLOT_ANY_CASE = re.compile(re.escape(SLOT), re.IGNORECASE)


@dataclass
class _ReadState:
    """Questions and counts collected while reading the files."""

    columns: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    """Columns of the questions table."""
    counts: Counter[str] = field(default_factory=Counter)
    """Number of questions in each split."""
    skipped: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Locations of skipped rows, by reason."""
    places: list[str] = field(default_factory=list)
    """Location of each question."""
    unread: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Locations of questions that announce choices in a form that cannot be read, by task."""
    unknown_types: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of questions for each unknown ``relType`` and the task made from it."""


def read_published(path: Path) -> QuestionSet:
    """Read the questions of one KMIR file, or of a folder with any of the three files.

    A question's id consists of its split and its published id (``test/q17``); the split comes from the file name.
    Adjacent masks become one slot. Rows without an answer or without exactly one slot are skipped; remarks count them.

    Choices that the text of a question shows are its candidates: the four entities of a distinction, and the choices of
    most reasoning questions. Other questions have no candidates. For ranking, the distinct answers of each task are
    divided by a hash into groups of at most 100; the candidates of a question are the group that contains its target.
    In the task checking, they are yes and no.

    Raises:
        InputError: There is no file or no question, or a row has broken JSON, a missing field or a repeated qid.
    """
    files = [path] if path.is_file() else [path / name for name in FILES if (path / name).is_file()]
    if not files:
        raise InputError(f"{path} contains none of {', '.join(FILES)}. Name the folder with KMIR's files with --data.")
    state = _ReadState()
    for file in files:
        _read_file(file, _split(file), state)
    if not state.columns["question_id"]:
        raise InputError(f"{path}: KMIR's files contain no question with one {SLOT} and an answer")
    choices = _read_choices(state)
    candidates, sets = _candidate_sets(state.columns["task"], state.columns["target"], choices)
    count = len(sets)
    table = pa.table(
        {
            **state.columns,
            "suite": ["kmir"] * count,
            "language": ["en"] * count,
            "choices": pa.array(choices, pa.list_(pa.string())),
            "candidate_set": pa.array(sets, pa.string()),
            "facts": pa.array([[]] * count, pa.list_(pa.string())),
        }
    )
    return QuestionSet(validate(QUESTIONS, table), make_table(CANDIDATES, candidates), about=_data_card(state, choices))


def _split(file: Path) -> str:
    splits = [split for split in SPLITS if split in re.split(r"[^a-z]+", file.stem.lower())]
    if len(splits) != 1:
        raise InputError(f"{file} is not one of KMIR's files: {', '.join(FILES)}")
    return splits[0]


def _read_file(file: Path, split: str, state: _ReadState) -> None:
    rows: dict[str, int] = {}
    columns = state.columns
    with open(file, "rb") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            where = f"{file}, row {number}"
            row = _parse(line, where)
            if row["qid"] in rows:
                raise InputError(f"{where}: duplicate qid {row['qid']}, first in row {rows[row['qid']]}. Remove one.")
            rows[row["qid"]] = number
            prompt = _REPEATED_SLOTS.sub(SLOT, _SLOT_ANY_CASE.sub(SLOT, row["query"]))
            slots = prompt.count(SLOT)
            if slots != 1:
                state.skipped[f"no {SLOT}" if slots == 0 else f"{SLOT} in several places"].append(where)
                continue
            if not row["answer"]:
                state.skipped["no answer"].append(where)
                continue
            columns["question_id"].append(f"{split}/{row['qid']}")
            columns["task"].append(_task(row["relType"], state))
            columns["prompt"].append(prompt)
            columns["answers"].append(row["answer"])
            columns["target"].append(row["answer"][0])
            columns["split"].append(split)
            state.places.append(where)
            state.counts[split] += 1


def _parse(line: bytes, where: str) -> dict[str, Any]:
    """Parse the fields qid, query, relType and answer of a row, and ignore other fields.

    The answer becomes a list of distinct texts; the other fields become texts.
    """
    content = parse_json_object(line, where)
    known: dict[str, Any] = {}
    for key, value in content.items():
        name = _FIELDS.get(re.sub(r"[^a-z]", "", key.lower()))
        if name and value is not None:
            known[name] = value
    for name in ("qid", "query", "relType"):
        if not isinstance(known.get(name), str | int) or not str(known[name]).strip():
            raise InputError(
                f"{where}: {name!r} must be a non-empty text in every row of KMIR, got {known.get(name)!r}"
            )
        known[name] = str(known[name]).strip()
    answers = known.get("answer", [])
    answers = answers if isinstance(answers, list) else [answers]
    if any(isinstance(answer, list | dict) for answer in answers):
        raise InputError(f"{where}: 'answer' must be a list of texts, got {answers!r}")
    texts = (str(answer).strip() for answer in answers if answer is not None)
    known["answer"] = list(dict.fromkeys(text for text in texts if text))
    return known


def _task(kind: str, state: _ReadState) -> str:
    """Return the task of a ``relType`` by its distinctive word; an unknown ``relType`` becomes a separate task."""
    lower = kind.lower()
    for part, task in _TASKS.items():
        if part in lower:
            return task
    slug = re.sub(r"[^a-z0-9]+", "-", lower).strip("-") or "other"
    state.unknown_types[kind, slug] += 1
    return slug


def _read_choices(state: _ReadState) -> list[list[str] | None]:
    """Read the choices that each question shows; of several right answers, the target becomes one that is shown.

    Names that contain a comma or an "and" are known from the answers of all questions.
    """
    columns = state.columns
    prompts, tasks, answers = columns["prompt"], columns["task"], columns["answers"]
    names = {answer for texts in answers for answer in texts if has_separator(answer)}
    choices: list[list[str] | None] = []
    for index, (prompt, task, right) in enumerate(zip(prompts, tasks, answers, strict=True)):
        announced = task == "distinction" or (task != "checking" and claims_choices(prompt))
        shown = None
        if announced or task == "reasoning":
            shown = find_choices(prompt, right) or (find_choices(prompt, right, names) if names and announced else None)
        if shown is None:
            choices.append(None)
            if announced:
                state.unread[task].append(state.places[index])
        else:
            choices.append(list(shown))
            columns["target"][index] = next(answer for answer in right if answer in shown)
    return choices


def _candidate_sets(
    tasks: Sequence[str], targets: Sequence[str], choices: Sequence[Sequence[str] | None]
) -> tuple[list[dict[str, Any]], list[str | None]]:
    """Divide the answers of each task's questions without choices into candidate sets.

    Returns:
        The sets, and the set id of each question; None for a question with choices.
    """
    answers: dict[str, set[str]] = defaultdict(set)
    for task, target, shown in zip(tasks, targets, choices, strict=True):
        if shown is None:
            answers[task].add(target)
    rows, set_ids = [], {}
    for task, texts in sorted(answers.items()):
        if task == "checking" and {text.lower() for text in texts} <= {"yes", "no"}:
            texts = texts | ({"yes", "no"} if all(text.islower() for text in texts) else {"Yes", "No"})
        ordered = sorted(texts, key=lambda text: (derived_seed("kmir candidates", text), text))
        groups = -(-len(ordered) // MAX_CANDIDATES)
        for number in range(groups):
            members = sorted(ordered[number::groups])
            set_id = candidate_set_id(task, members)
            rows.append({"candidate_set": set_id, "candidates": members})
            set_ids.update(dict.fromkeys(((task, text) for text in members), set_id))
    keys = zip(tasks, targets, choices, strict=True)
    return rows, [set_ids[task, target] if shown is None else None for task, target, shown in keys]


def _data_card(state: _ReadState, choices: Sequence[Sequence[str] | None]) -> dict[str, Any]:
    return {
        "sources": [
            "KMIR, the published questions, CC BY-NC-SA 4.0: "
            + ", ".join(f"{count:,} from {split}" for split, count in state.counts.items())
        ],
        "remarks": [
            *_remark_swapped_splits(state.counts),
            *_remark_choices(state, choices),
            *_remark_skipped(state),
            *_remark_unknown_types(state),
        ],
    }


def _remark_choices(state: _ReadState, choices: Sequence[Sequence[str] | None]) -> list[str]:
    """Say how many questions show choices, what a guess among them scores, and which choices could not be read."""
    columns = state.columns
    guesses: dict[str, list[float]] = defaultdict(list)
    for task, answers, shown in zip(columns["task"], columns["answers"], choices, strict=True):
        guesses[task].append(sum(text in answers for text in shown) / len(shown) if shown else 0.0)
    remarks = []
    for task, shares in guesses.items():
        if any(shares):
            count = sum(share > 0 for share in shares)
            remarks.append(
                f"Choices in the text: {count:,} of {counted(len(shares), f'{task} question')}. A guess among them is "
                f"right in {100 * sum(shares) / len(shares):.2f}% of all, if no open question is guessed."
            )
    for task, places in sorted(state.unread.items()):
        remarks.append(
            f"Choices that could not be read: {counted(len(places), f'{task} question')}, ranked like open ones; the "
            f"first is {_strip_folder(places[0])}."
        )
    return remarks


def _remark_swapped_splits(counts: Mapping[str, int]) -> list[str]:
    splits_note = "The files' own names are kept as splits."
    if counts.get("dev", 0) > counts.get("train", 0) > 0:
        return [
            f"The names train and dev look swapped: the file called dev holds {counts['dev']:,} questions and the one "
            f"called train {counts['train']:,}, and users of the data train on the one called dev. {splits_note}"
        ]
    if ("dev" in counts) != ("train" in counts):
        return [
            "The names train and dev look swapped in the published data: the file called dev is the large one, and "
            f"users of the data train on it. {splits_note}"
        ]
    return []


def _remark_skipped(state: _ReadState) -> list[str]:
    return [
        f"Rows left out ({reason}): {len(locations):,}; the first is {_strip_folder(locations[0])}."
        for reason, locations in sorted(state.skipped.items())
    ]


def _strip_folder(where: str) -> str:
    """Remove the folder from the location of a row (``folder/file, row 3``)."""
    file_path, _, row = where.rpartition(", row ")
    return f"{Path(file_path).name}, row {row}"


def _remark_unknown_types(state: _ReadState) -> list[str]:
    return [
        f"{count:,} {'question has' if count == 1 else 'questions have'} the relType {kind!r}, which is none of KMIR's "
        f"four; in the suite it is the task {task!r}."
        for (kind, task), count in sorted(state.unknown_types.items())
    ]
