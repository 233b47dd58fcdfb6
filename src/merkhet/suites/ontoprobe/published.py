"""OntoProbe's own files: statements with their splits, classes and properties, read from where a user has put them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.files import parse_json_object
from merkhet.core.text_formats import parse_json
from merkhet.suites.ontoprobe.questions.ontology_statements import FEW, Statement, Statements
from merkhet.suites.ontoprobe.questions.property_patterns import Pattern, make_pattern, patterns_for

MEMORIZING = {
    "TP": "type.jsonl",
    "SCO": "subClassOf.jsonl",
    "SPO": "subPropertyOf.jsonl",
    "DM": "domain.jsonl",
    "RG": "range.jsonl",
}
CLASSES, PROPERTIES = "class.json", "property.json"
FILES = (*(f"memorizing/{name}" for name in MEMORIZING.values()), f"ontology/{CLASSES}", f"ontology/{PROPERTIES}")
"""What the published folder holds; each file may also stand in the folder itself."""

_SOUGHT = "Name the folder that has OntoProbe's memorizing/type.jsonl … with --data."


@dataclass
class _Read:
    """What has been read: statements, a pattern of each property, and where things were odd."""

    statements: list[Statement] = field(default_factory=list)
    patterns: dict[str, str] = field(default_factory=dict)
    several: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    remarks: list[str] = field(default_factory=list)

    def add_pattern(self, label: str, text: str) -> None:
        """Keep the first pattern of a property, and note others."""
        if self.patterns.setdefault(label, text) != text:
            self.several[label].add(text)


def published_files(folder: Path) -> list[Path]:
    """The files of OntoProbe that a folder holds, in it or in memorizing/ and ontology/."""
    return [path for name in FILES if (path := _find(folder, name)) is not None]


def read_published_statements(folder: Path, patterns: Mapping[str, Mapping[str, str]] | None = None) -> Statements:
    """The statements of a folder with any of OntoProbe's five files, classes and properties beside them or guessed.

    Of each file the first ten rows are train, the next ten dev, the rest test. ``patterns`` replace published ones.
    What is odd in the data is kept and remarked: rows that are there twice, instances with different classes in two
    rows, right answers that are no candidates, properties with two patterns. Refuses a broken file in one line that
    names it and the row.
    """
    places = {task: _find(folder, f"memorizing/{name}") for task, name in MEMORIZING.items()}
    if not any(places.values()):
        raise InputError(f"{folder} holds none of {', '.join(MEMORIZING.values())}. {_SOUGHT}")
    read = _Read()
    listed = _properties(_find(folder, f"ontology/{PROPERTIES}"), read)
    rows = {task: _rows(path, task, read) for task, path in places.items() if path}
    classes = _classes(_find(folder, f"ontology/{CLASSES}"), rows, read)
    if listed is None:
        listed = list(read.patterns)
        if listed:
            read.remarks.append(f"There is no {PROPERTIES}: the {len(listed)} properties are those that the rows name.")
    renamed = _renamed(rows, listed, read)
    for task, found in rows.items():
        for number, (subject, golds) in enumerate(found):
            split = "train" if number < FEW else "dev" if number < 2 * FEW else "test"
            read.statements.append(Statement(task, renamed.get(subject, subject), golds, split))
    _remark_on_rows(read, classes, listed)
    words = {label: {"pattern": text} for label, text in read.patterns.items() if label in listed}
    return Statements(
        statements=tuple(read.statements),
        classes=tuple(classes),
        properties=tuple(listed),
        patterns=_with_users(listed, words, patterns),
        remarks=tuple(read.remarks),
    )


def _with_users(
    properties: Sequence[str], published: Mapping[str, Mapping[str, str]], users: Mapping[str, Mapping[str, str]] | None
) -> dict[str, Pattern]:
    return patterns_for(properties, {**published, **(users or {})})


def _find(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder / Path(name).name):
        if path.is_file():
            return path
    return None


def _rows(path: Path, task: str, read: _Read) -> list[tuple[str, tuple[str, ...]]]:
    """Subject and right answers of each row, patterns of properties put aside."""
    found = []
    with open(path, "rb") as handle:
        for number, line in enumerate(handle, 1):
            if line.strip():
                where = f"{path}, row {number}"
                row = parse_json_object(line, where)
                if set(row) != {"uuu", "xxx"}:
                    raise InputError(
                        f"{where}: a row has 'uuu' and 'xxx', and this one has {', '.join(row) or 'nothing'}"
                    )
                found.append((_subject(row["uuu"], task, where, read), _golds(row["xxx"], task, where, read)))
    if not found:
        raise InputError(f"{path} holds no rows. Fetch the file anew, or remove it.")
    return found


def _subject(given: Any, task: str, where: str, read: _Read) -> str:
    if task in ("TP", "SCO"):
        return _text(given, "'uuu'", where)
    if not isinstance(given, dict) or len(given) != 1:
        raise InputError(f"{where}: 'uuu' is {given!r}, and should be one property with its pattern")
    return _keep_patterns(given, "'uuu'", where, read)[0]


def _golds(given: Any, task: str, where: str, read: _Read) -> tuple[str, ...]:
    if task == "SPO" and isinstance(given, dict):
        found = _keep_patterns(given, "'xxx'", where, read)
    elif isinstance(given, list) and task != "SPO":
        found = [_text(one, "'xxx'", where) for one in given]
    else:
        raise InputError(f"{where}: 'xxx' is {given!r}, and should be {'properties' if task == 'SPO' else 'a list'}")
    if not found:
        raise InputError(f"{where}: 'xxx' is empty; every row has a right answer")
    return tuple(dict.fromkeys(found))


def _keep_patterns(given: Mapping[str, Any], what: str, where: str, read: _Read) -> list[str]:
    for label, text in given.items():
        try:
            make_pattern(_text(text, what, where))
        except InputError as error:
            raise InputError(f"{where}: {error}" if where not in str(error) else str(error)) from error
        read.add_pattern(label, text)
    return list(given)


def _text(given: Any, what: str, where: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InputError(f"{where}: {what} is {given!r}, and should be a text")
    return given.strip()


def _list(path: Path) -> list[dict[str, Any]]:
    content = parse_json(path.read_bytes(), str(path), "Fetch the file anew.")
    if not isinstance(content, list) or not content:
        raise InputError(f"{path} should hold a list of objects")
    for number, one in enumerate(content, 1):
        if not isinstance(one, dict) or not isinstance(one.get("rdfs:label"), str):
            raise InputError(f"{path}, row {number}: there is no text at 'rdfs:label'. Fetch the file anew.")
    return content


def _classes(path: Path | None, rows: Mapping[str, Sequence[tuple[str, tuple[str, ...]]]], read: _Read) -> list[str]:
    """The labels of class.json in its order; without it all classes that the rows name."""
    if path is not None:
        return list(dict.fromkeys(one["rdfs:label"] for one in _list(path)))
    found: dict[str, None] = {}
    for task, some in rows.items():
        if task != "SPO":
            for subject, golds in some:
                found.update(dict.fromkeys(golds))
                if task == "SCO":
                    found[subject] = None
    if found:
        read.remarks.append(f"There is no {CLASSES}: the {len(found):,} classes to choose from are those in the rows.")
    return sorted(found)


def _properties(path: Path | None, read: _Read) -> list[str] | None:
    """The labels of property.json and of the superproperties named there; patterns are put aside."""
    if path is None:
        return None
    content = _list(path)
    for number, one in enumerate(content, 1):
        where = f"{path}, row {number}"
        own = {one["rdfs:label"]: one["pattern"]} if one.get("pattern") else {}
        _keep_patterns(own, "'pattern'", where, read)
    for number, one in enumerate(content, 1):
        above = one.get("rdfs:subPropertyOf") or {}
        if not isinstance(above, dict):
            raise InputError(f"{path}, row {number}: 'rdfs:subPropertyOf' is {above!r}, and should be properties")
        _keep_patterns(above, "'rdfs:subPropertyOf'", f"{path}, row {number}", read)
    labels = [one["rdfs:label"] for one in content]
    return list(dict.fromkeys([*labels, *(name for one in content for name in one.get("rdfs:subPropertyOf") or {})]))


def _renamed(
    rows: Mapping[str, Sequence[tuple[str, tuple[str, ...]]]], listed: Sequence[str], read: _Read
) -> dict[str, str]:
    """Subjects that are no property of the list, as the one that has their pattern; told in a remark."""
    by_pattern = {read.patterns[label]: label for label in reversed(listed) if label in read.patterns}
    found = {}
    for task in ("SPO", "DM", "RG"):
        for subject, _ in rows.get(task, ()):
            if subject not in listed and read.patterns[subject] in by_pattern:
                found[subject] = by_pattern[read.patterns[subject]]
    if found:
        pairs = ", ".join(f"{one!r} is called {other!r}" for one, other in sorted(found.items()))
        read.remarks.append(
            f"{len(found)} properties of the rows are not in {PROPERTIES}; by their patterns they are known there by "
            f"another label, which is used: {pairs}."
        )
    return found


def _remark_on_rows(read: _Read, classes: Sequence[str], properties: Sequence[str]) -> None:
    """Say what is odd in the rows: repeats, subjects with different answers, answers that are no candidates."""
    by_task: dict[str, list[Statement]] = defaultdict(list)
    for one in read.statements:
        by_task[one.task].append(one)
    for task, found in by_task.items():
        name = MEMORIZING[task]
        repeated = len(found) - len({(one.subject, one.golds) for one in found})
        if repeated:
            read.remarks.append(f"{repeated} rows of {name} are repeated; each is asked once.")
        answers: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for one in found:
            answers[one.subject].add(one.golds)
        several = sum(len(golds) > 1 for golds in answers.values())
        if several:
            who = f"{several} subjects of {name} have" if several > 1 else f"One subject of {name} has"
            read.remarks.append(f"{who} two rows with different right answers; both are asked as published.")
        known = set(properties if task == "SPO" else classes)
        foreign = Counter(gold for one in found for gold in one.golds if gold not in known)
        if foreign:
            listed = ", ".join(repr(gold) for gold in sorted(foreign))
            read.remarks.append(
                f"{len(foreign)} right {'answers' if len(foreign) > 1 else 'answer'} of {name}, in "
                f"{foreign.total()} rows, cannot be chosen, as they are not in the list of candidates: {listed}."
            )
    for label, texts in sorted(read.several.items()):
        read.remarks.append(
            f"The property {label!r} has several patterns; {read.patterns[label]!r} is used, not "
            f"{', '.join(map(repr, sorted(texts)))}."
        )
