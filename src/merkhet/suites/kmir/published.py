"""KMIR's own files: ``kmir_{train,dev,test}_cloze.jsonl``, read from where a user has put them."""

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
from merkhet.questions.question_files import QuestionSet

SPLITS = ("train", "dev", "test")
FILES = tuple(f"kmir_{split}_cloze.jsonl" for split in SPLITS)
OFFERED = 100
"""How many candidates a question is asked among, at most."""

_TASKS = {"complet": "completion", "distinct": "distinction", "check": "checking", "reason": "reasoning"}
_FIELDS = {"qid": "qid", "query": "query", "answer": "answer", "answers": "answer", "reltype": "relType"}
_SLOTS = re.compile(rf"{re.escape(SLOT)}(?:\s*{re.escape(SLOT)})+")
_ANY_CASE = re.compile(re.escape(SLOT), re.IGNORECASE)


@dataclass
class _Read:
    """What has been read so far: columns of the questions, and what was left out or is worth a remark."""

    columns: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    counts: Counter[str] = field(default_factory=Counter)
    left_out: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)


def read_published(place: Path) -> QuestionSet:
    """The questions of a folder with any of KMIR's three files, or of one of them.

    A question's id is its split and its official id (``test/q17``), its split is what its file calls itself. Several
    masks in a row are one slot. A row without exactly one slot or without an answer is left out, counted and named;
    broken JSON, a missing field or a qid that a file has twice is refused with its file and row.

    KMIR offers no candidates. So that its questions can be ranked too, the distinct answers of each task are dealt, by
    their content, to groups of at most 100, and a question's candidates are those of its target's group: the target
    and up to 99 answers of other questions of its task. In checking they are yes and no.
    """
    files = [place] if place.is_file() else [place / name for name in FILES if (place / name).is_file()]
    if not files:
        raise InputError(
            f"{place} holds none of {', '.join(FILES)}. Name the folder that has KMIR's files with --data."
        )
    read = _Read()
    for file in files:
        _read_file(file, _split(file), read)
    if not read.columns["question_id"]:
        raise InputError(f"{place}: KMIR's files hold no question with one {SLOT} and an answer")
    candidates, sets = _candidate_sets(read.columns["task"], read.columns["target"])
    count = len(sets)
    table = pa.table(
        {
            **read.columns,
            "suite": ["kmir"] * count,
            "language": ["en"] * count,
            "candidate_set": sets,
            "facts": pa.array([[]] * count, pa.list_(pa.string())),
        }
    )
    return QuestionSet(validate(QUESTIONS, table), make_table(CANDIDATES, candidates), about=_about(read))


def _split(file: Path) -> str:
    found = [split for split in SPLITS if split in re.split(r"[^a-z]+", file.stem.lower())]
    if len(found) != 1:
        raise InputError(f"{file} is none of KMIR's files; they are called {', '.join(FILES)}")
    return found[0]


def _read_file(file: Path, split: str, read: _Read) -> None:
    rows: dict[str, int] = {}
    columns = read.columns
    with open(file, "rb") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            where = f"{file}, row {number}"
            row = _parse(line, where)
            if row["qid"] in rows:
                raise InputError(
                    f"{where}: the qid {row['qid']} is there already, in row {rows[row['qid']]}. Remove one."
                )
            rows[row["qid"]] = number
            prompt = _SLOTS.sub(SLOT, _ANY_CASE.sub(SLOT, row["query"]))
            slots = prompt.count(SLOT)
            if slots != 1:
                read.left_out[f"no {SLOT}" if slots == 0 else f"{SLOT} in several places"].append(where)
                continue
            if not row["answer"]:
                read.left_out["no answer"].append(where)
                continue
            columns["question_id"].append(f"{split}/{row['qid']}")
            columns["task"].append(_task(row["relType"], read))
            columns["prompt"].append(prompt)
            columns["answers"].append(row["answer"])
            columns["target"].append(row["answer"][0])
            columns["split"].append(split)
            read.counts[split] += 1


def _parse(line: bytes, where: str) -> dict[str, Any]:
    """The four fields of a row as texts, the answer as a list of distinct texts; further fields are left aside."""
    content = parse_json_object(line, where)
    known: dict[str, Any] = {}
    for key, value in content.items():
        name = _FIELDS.get(re.sub(r"[^a-z]", "", key.lower()))
        if name and value is not None:
            known[name] = value
    for name in ("qid", "query", "relType"):
        if not isinstance(known.get(name), str | int) or not str(known[name]).strip():
            raise InputError(
                f"{where}: {name!r} is {known.get(name)!r}, and should be a text; every row of KMIR has one"
            )
        known[name] = str(known[name]).strip()
    answers = known.get("answer", [])
    answers = answers if isinstance(answers, list) else [answers]
    if any(isinstance(answer, list | dict) for answer in answers):
        raise InputError(f"{where}: 'answer' is {answers!r}, and should be a list of texts")
    texts = (str(answer).strip() for answer in answers if answer is not None)
    known["answer"] = list(dict.fromkeys(text for text in texts if text))
    return known


def _task(kind: str, read: _Read) -> str:
    """The task of a relType by the word that tells it apart; one that is not known is a task of its own."""
    lower = kind.lower()
    for part, task in _TASKS.items():
        if part in lower:
            return task
    slug = re.sub(r"[^a-z0-9]+", "-", lower).strip("-") or "other"
    read.unknown[kind, slug] += 1
    return slug


def _candidate_sets(tasks: Sequence[str], targets: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Groups of the answers of each task, and the name of each question's group."""
    answers: dict[str, set[str]] = defaultdict(set)
    for task, target in zip(tasks, targets, strict=True):
        answers[task].add(target)
    rows, names = [], {}
    for task, texts in sorted(answers.items()):
        if task == "checking" and {text.lower() for text in texts} <= {"yes", "no"}:
            texts = texts | ({"yes", "no"} if all(text.islower() for text in texts) else {"Yes", "No"})
        drawn = sorted(texts, key=lambda text: (derived_seed("kmir candidates", text), text))
        groups = -(-len(drawn) // OFFERED)
        for number in range(groups):
            members = sorted(drawn[number::groups])
            name = candidate_set_id(task, members)
            rows.append({"candidate_set": name, "candidates": members})
            names.update(dict.fromkeys(((task, text) for text in members), name))
    return rows, [names[key] for key in zip(tasks, targets, strict=True)]


def _about(read: _Read) -> dict[str, Any]:
    return {
        "sources": [
            "KMIR, the published questions, CC BY-NC-SA 4.0: "
            + ", ".join(f"{count:,} from {split}" for split, count in read.counts.items())
        ],
        "remarks": [*_swapped(read.counts), *_left_out(read), *_unknown(read)],
    }


def _swapped(counts: Mapping[str, int]) -> list[str]:
    kept = "The files' own names are kept as splits."
    if counts.get("dev", 0) > counts.get("train", 0) > 0:
        return [
            f"The names train and dev look swapped: the file called dev holds {counts['dev']:,} questions and the one "
            f"called train {counts['train']:,}, and users of the data train on the one called dev. {kept}"
        ]
    if ("dev" in counts) != ("train" in counts):
        return [
            "The names train and dev look swapped in the published data: the file called dev is the large one, and "
            f"users of the data train on it. {kept}"
        ]
    return []


def _left_out(read: _Read) -> list[str]:
    return [
        f"Rows with {reason}, which were left out: {len(places):,}; the first is {_public(places[0])}."
        for reason, places in sorted(read.left_out.items())
    ]


def _public(where: str) -> str:
    """A place in a file without the path of somebody's machine."""
    path, _, row = where.rpartition(", row ")
    return f"{Path(path).name}, row {row}"


def _unknown(read: _Read) -> list[str]:
    return [
        f"{count:,} {'question has' if count == 1 else 'questions have'} the relType {kind!r}, which is none of KMIR's "
        f"four; in the suite it is the task {task!r}."
        for (kind, task), count in sorted(read.unknown.items())
    ]
