"""Reader of OntoProbe's published files: statements, classes and properties."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.files import parse_json_object
from merkhet.core.text_formats import parse_json
from merkhet.suites.ontoprobe.questions.ontology_statements import SPLIT_SIZE, Statement, Statements
from merkhet.suites.ontoprobe.questions.property_patterns import make_pattern, resolve_patterns

MEMORIZING = {
    "TP": "type.jsonl",
    "SCO": "subClassOf.jsonl",
    "SPO": "subPropertyOf.jsonl",
    "DM": "domain.jsonl",
    "RG": "range.jsonl",
}
CLASSES, PROPERTIES = "class.json", "property.json"
FILES = (*(f"memorizing/{name}" for name in MEMORIZING.values()), f"ontology/{CLASSES}", f"ontology/{PROPERTIES}")
"""Files of the published folder; each may also be in the folder itself."""

_REMEDY = "Name the folder that has OntoProbe's memorizing/type.jsonl … with --data."


_Rows = Mapping[str, Sequence[tuple[str, tuple[str, ...]]]]
"""Subject and gold answers of each row, by task."""


@dataclass
class _Contents:
    """Contents of the files read so far."""

    statements: list[Statement] = field(default_factory=list)
    patterns: dict[str, str] = field(default_factory=dict)
    """First pattern of each property."""
    other_patterns: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Further patterns of a property, which are not used."""
    remarks: list[str] = field(default_factory=list)

    def add_pattern(self, label: str, text: str) -> None:
        """Keep the first pattern of a property, and note others."""
        if self.patterns.setdefault(label, text) != text:
            self.other_patterns[label].add(text)


def read_published_statements(folder: Path, patterns: Mapping[str, Mapping[str, str]] | None = None) -> Statements:
    """Read the statements of a folder with any of OntoProbe's five files of memorizing tasks.

    Classes and properties come from their own files, or from the rows if these are missing. Of each file the first ten
    rows are train, the next ten dev, the rest test. Irregular data are kept and remarked: repeated rows, instances with
    different classes in two rows, gold answers that are no candidates, properties with two patterns.

    Args:
        patterns: Patterns of properties by label, which replace published ones.

    Raises:
        InputError: If the folder has none of the files, or a file is broken; the message names the file and the row.
    """
    paths = {task: _find(folder, f"memorizing/{name}") for task, name in MEMORIZING.items()}
    if not any(paths.values()):
        raise InputError(f"{folder} holds none of {', '.join(MEMORIZING.values())}. {_REMEDY}")
    contents = _Contents()
    properties = _read_properties(_find(folder, f"ontology/{PROPERTIES}"), contents)
    rows = {task: _read_rows(path, task, contents) for task, path in paths.items() if path}
    classes = _read_classes(_find(folder, f"ontology/{CLASSES}"), rows, contents)
    if properties is None:
        properties = list(contents.patterns)
        if properties:
            contents.remarks.append(
                f"There is no {PROPERTIES}: the {len(properties)} properties are those that the rows name."
            )
    listed_labels = _match_by_pattern(rows, properties, contents)
    for task, task_rows in rows.items():
        for index, (subject, golds) in enumerate(task_rows):
            split = "train" if index < SPLIT_SIZE else "dev" if index < 2 * SPLIT_SIZE else "test"
            contents.statements.append(Statement(task, listed_labels.get(subject, subject), golds, split))
    _remark_on_rows(contents, classes, properties)
    published = {label: {"pattern": text} for label, text in contents.patterns.items() if label in properties}
    return Statements(
        statements=tuple(contents.statements),
        classes=tuple(classes),
        properties=tuple(properties),
        patterns=resolve_patterns(properties, {**published, **(patterns or {})}),
        remarks=tuple(contents.remarks),
    )


def _find(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder / Path(name).name):
        if path.is_file():
            return path
    return None


def _read_rows(path: Path, task: str, contents: _Contents) -> list[tuple[str, tuple[str, ...]]]:
    """Return the subject and gold answers of each row; add patterns of properties to the contents."""
    rows = []
    with open(path, "rb") as handle:
        for number, line in enumerate(handle, 1):
            if line.strip():
                where = f"{path}, row {number}"
                row = parse_json_object(line, where)
                if set(row) != {"uuu", "xxx"}:
                    raise InputError(f"{where}: a row must have 'uuu' and 'xxx', got {', '.join(row) or 'nothing'}")
                rows.append((_subject(row["uuu"], task, where, contents), _golds(row["xxx"], task, where, contents)))
    if not rows:
        raise InputError(f"{path} holds no rows. Fetch the file anew, or remove it.")
    return rows


def _subject(cell: Any, task: str, where: str, contents: _Contents) -> str:
    if task in ("TP", "SCO"):
        return _text(cell, "'uuu'", where)
    if not isinstance(cell, dict) or len(cell) != 1:
        raise InputError(f"{where}: 'uuu' must be one property with its pattern, got {cell!r}")
    return _add_patterns(cell, "'uuu'", where, contents)[0]


def _golds(cell: Any, task: str, where: str, contents: _Contents) -> tuple[str, ...]:
    if task == "SPO" and isinstance(cell, dict):
        golds = _add_patterns(cell, "'xxx'", where, contents)
    elif isinstance(cell, list) and task != "SPO":
        golds = [_text(gold, "'xxx'", where) for gold in cell]
    else:
        kind = "properties with their patterns" if task == "SPO" else "a list"
        raise InputError(f"{where}: 'xxx' must be {kind}, got {cell!r}")
    if not golds:
        raise InputError(f"{where}: 'xxx' is empty; every row needs a right answer")
    return tuple(dict.fromkeys(golds))


def _add_patterns(patterns: Mapping[str, Any], key: str, where: str, contents: _Contents) -> list[str]:
    """Add patterns to the contents and return the labels of their properties."""
    for label, text in patterns.items():
        try:
            make_pattern(_text(text, key, where))
        except InputError as error:
            raise InputError(f"{where}: {error}" if where not in str(error) else str(error)) from error
        contents.add_pattern(label, text)
    return list(patterns)


def _text(cell: Any, key: str, where: str) -> str:
    if not isinstance(cell, str) or not cell.strip():
        raise InputError(f"{where}: {key} must be text, got {cell!r}")
    return cell.strip()


def _read_labelled(path: Path) -> list[dict[str, Any]]:
    """Read a JSON list of objects with a label each."""
    content = parse_json(path.read_bytes(), str(path), "Fetch the file anew.")
    if not isinstance(content, list) or not content:
        raise InputError(f"{path} must hold a list of objects. Fetch the file anew.")
    for number, entry in enumerate(content, 1):
        if not isinstance(entry, dict) or not isinstance(entry.get("rdfs:label"), str):
            raise InputError(f"{path}, row {number}: there is no text at 'rdfs:label'. Fetch the file anew.")
    return content


def _read_classes(path: Path | None, rows: _Rows, contents: _Contents) -> list[str]:
    """Return the labels of class.json in its order; without the file, all classes of the rows."""
    if path is not None:
        return list(dict.fromkeys(entry["rdfs:label"] for entry in _read_labelled(path)))
    classes: dict[str, None] = {}
    for task, task_rows in rows.items():
        if task != "SPO":
            for subject, golds in task_rows:
                classes.update(dict.fromkeys(golds))
                if task == "SCO":
                    classes[subject] = None
    if classes:
        contents.remarks.append(
            f"There is no {CLASSES}: the {len(classes):,} classes to choose from are those in the rows."
        )
    return sorted(classes)


def _read_properties(path: Path | None, contents: _Contents) -> list[str] | None:
    """Return the labels of property.json and of its superproperties; add patterns to the contents."""
    if path is None:
        return None
    entries = _read_labelled(path)
    for number, entry in enumerate(entries, 1):
        pattern = {entry["rdfs:label"]: entry["pattern"]} if entry.get("pattern") else {}
        _add_patterns(pattern, "'pattern'", f"{path}, row {number}", contents)
    for number, entry in enumerate(entries, 1):
        parents = entry.get("rdfs:subPropertyOf") or {}
        if not isinstance(parents, dict):
            raise InputError(
                f"{path}, row {number}: 'rdfs:subPropertyOf' must be properties with their patterns, got {parents!r}"
            )
        _add_patterns(parents, "'rdfs:subPropertyOf'", f"{path}, row {number}", contents)
    labels = [entry["rdfs:label"] for entry in entries]
    parents_of_all = (label for entry in entries for label in entry.get("rdfs:subPropertyOf") or {})
    return list(dict.fromkeys([*labels, *parents_of_all]))


def _match_by_pattern(rows: _Rows, properties: Sequence[str], contents: _Contents) -> dict[str, str]:
    """Map subjects that are no listed property to the listed one with the same pattern; remark on them."""
    by_pattern = {contents.patterns[label]: label for label in reversed(properties) if label in contents.patterns}
    matches = {}
    for task in ("SPO", "DM", "RG"):
        for subject, _ in rows.get(task, ()):
            if subject not in properties and contents.patterns[subject] in by_pattern:
                matches[subject] = by_pattern[contents.patterns[subject]]
    if matches:
        pairs = ", ".join(f"{subject!r} is called {label!r}" for subject, label in sorted(matches.items()))
        contents.remarks.append(
            f"{len(matches)} properties of the rows are not in {PROPERTIES}; by their patterns they are known there by "
            f"another label, which is used: {pairs}."
        )
    return matches


def _remark_on_rows(contents: _Contents, classes: Sequence[str], properties: Sequence[str]) -> None:
    """Remark on repeated rows, subjects with different answers, and answers that are no candidates."""
    by_task: dict[str, list[Statement]] = defaultdict(list)
    for statement in contents.statements:
        by_task[statement.task].append(statement)
    for task, statements in by_task.items():
        name = MEMORIZING[task]
        repeated = len(statements) - len({(statement.subject, statement.golds) for statement in statements})
        if repeated:
            contents.remarks.append(f"{repeated} rows of {name} are repeated; each is asked once.")
        answers: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for statement in statements:
            answers[statement.subject].add(statement.golds)
        conflicting = sum(len(golds) > 1 for golds in answers.values())
        if conflicting:
            subjects = f"{conflicting} subjects of {name} have" if conflicting > 1 else f"One subject of {name} has"
            contents.remarks.append(f"{subjects} two rows with different right answers; both are asked as published.")
        candidates = set(properties if task == "SPO" else classes)
        unlisted = Counter(gold for statement in statements for gold in statement.golds if gold not in candidates)
        if unlisted:
            labels = ", ".join(repr(gold) for gold in sorted(unlisted))
            contents.remarks.append(
                f"{len(unlisted)} right {'answers' if len(unlisted) > 1 else 'answer'} of {name}, in "
                f"{unlisted.total()} rows, cannot be chosen, as they are not in the list of candidates: {labels}."
            )
    for label, texts in sorted(contents.other_patterns.items()):
        contents.remarks.append(
            f"The property {label!r} has several patterns; {contents.patterns[label]!r} is used, not "
            f"{', '.join(map(repr, sorted(texts)))}."
        )
