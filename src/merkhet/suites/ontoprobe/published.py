"""Reader of OntoProbe's published files: statements, classes and properties."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.files import parse_json_object
from merkhet.core.text import counted
from merkhet.core.text_formats import parse_json
from merkhet.suites.ontoprobe.questions.ontology_statements import Statement, Statements, split_at
from merkhet.suites.ontoprobe.questions.property_patterns import make_pattern, resolve_patterns

TASK_FILES = {
    "TP": "type.jsonl",
    "SCO": "subClassOf.jsonl",
    "SPO": "subPropertyOf.jsonl",
    "DM": "domain.jsonl",
    "RG": "range.jsonl",
}
CLASSES, PROPERTIES = "class.json", "property.json"
FILES = (*(f"memorizing/{name}" for name in TASK_FILES.values()), f"ontology/{CLASSES}", f"ontology/{PROPERTIES}")
"""Paths in the published folder. The files may also be together in one folder without subfolders."""


def read_published_statements(folder: Path, patterns: Mapping[str, Mapping[str, str]] | None = None) -> Statements:
    """Read statements from a folder that has at least one of OntoProbe's five files of memorizing tasks.

    Classes and properties come from class.json and property.json, or from the task files if these two are missing. In
    each task file, the first ten rows are train, the next ten dev, the rest test. Irregular data are kept and reported
    in remarks: repeated rows, subjects with different answers in two rows, gold answers that are not candidates, and
    properties with two patterns.

    Args:
        patterns: Patterns of properties by label; they replace published patterns.

    Raises:
        InputError: If the folder has no task file, or a file is invalid; the message names the file and the row.
    """
    return _PublishedFiles(folder).statements(patterns or {})


class _PublishedFiles:
    """Contents of the files read so far, with remarks on irregular data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.patterns: dict[str, str] = {}
        """First pattern of each property."""
        self.other_patterns: dict[str, set[str]] = defaultdict(set)
        """Further patterns of each property, which are reported but not used."""
        self.rows: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        """Subject and gold answers of each row, by task."""
        self.remarks: list[str] = []

    def statements(self, patterns: Mapping[str, Mapping[str, str]]) -> Statements:
        """Read all files and return the statements."""
        paths = {task: path for task, name in TASK_FILES.items() if (path := self._find(f"memorizing/{name}"))}
        if not paths:
            raise InputError(
                f"{self.folder} has none of {', '.join(TASK_FILES.values())}. Name the folder that has OntoProbe's "
                "memorizing/type.jsonl … with --data."
            )
        listed = self._read_properties()
        self.rows = {task: self._read_rows(path, task) for task, path in paths.items()}
        classes = self._read_classes()
        properties = list(self.patterns) if listed is None else listed
        if listed is None and properties:
            self.remarks.append(
                f"There is no {PROPERTIES}: the properties are those that the rows name ({len(properties):,})."
            )
        listed_labels = self._match_by_pattern(properties)
        statements: list[Statement] = []
        for task, rows in self.rows.items():
            task_statements = [
                Statement(task, listed_labels.get(subject, subject), golds, split_at(index))
                for index, (subject, golds) in enumerate(rows)
            ]
            self._remark_on_rows(task_statements, TASK_FILES[task], properties if task == "SPO" else classes)
            statements += task_statements
        for label, texts in sorted(self.other_patterns.items()):
            self.remarks.append(
                f"The property {label!r} has several patterns; {self.patterns[label]!r} is used, not "
                f"{', '.join(map(repr, sorted(texts)))}."
            )
        published = {label: {"pattern": text} for label, text in self.patterns.items() if label in properties}
        return Statements(
            statements=tuple(statements),
            classes=tuple(classes),
            properties=tuple(properties),
            patterns=resolve_patterns(properties, {**published, **patterns}),
            remarks=tuple(self.remarks),
        )

    def _find(self, name: str) -> Path | None:
        paths = (self.folder / name, self.folder / Path(name).name)
        return next((path for path in paths if path.is_file()), None)

    def _read_rows(self, path: Path, task: str) -> list[tuple[str, tuple[str, ...]]]:
        rows = []
        with open(path, "rb") as handle:
            for number, line in enumerate(handle, 1):
                if line.strip():
                    where = f"{path}, row {number}"
                    row = parse_json_object(line, where)
                    if set(row) != {"uuu", "xxx"}:
                        raise InputError(f"{where}: a row must have 'uuu' and 'xxx', got {', '.join(row) or 'nothing'}")
                    rows.append((self._subject(row["uuu"], task, where), self._golds(row["xxx"], task, where)))
        if not rows:
            raise InputError(f"{path} has no rows. Download the file again, or remove it.")
        return rows

    def _subject(self, cell: Any, task: str, where: str) -> str:
        if task in ("TP", "SCO"):
            return _text(cell, "'uuu'", where)
        if not isinstance(cell, dict) or len(cell) != 1:
            raise InputError(f"{where}: 'uuu' must be one property with its pattern, got {cell!r}")
        return self._add_patterns(cell, "'uuu'", where)[0]

    def _golds(self, cell: Any, task: str, where: str) -> tuple[str, ...]:
        if task == "SPO" and isinstance(cell, dict):
            golds = self._add_patterns(cell, "'xxx'", where)
        elif isinstance(cell, list) and task != "SPO":
            golds = [_text(gold, "'xxx'", where) for gold in cell]
        else:
            kind = "properties with their patterns" if task == "SPO" else "a list"
            raise InputError(f"{where}: 'xxx' must be {kind}, got {cell!r}")
        if not golds:
            raise InputError(f"{where}: 'xxx' is empty; every row needs a right answer")
        return tuple(dict.fromkeys(golds))

    def _add_patterns(self, patterns: Mapping[str, Any], key: str, where: str) -> list[str]:
        """Store the first pattern of each property, note different patterns, and return the property labels."""
        for label, cell in patterns.items():
            _text(cell, key, where)
            try:
                make_pattern(cell.strip())
            except InputError as error:
                raise InputError(f"{where}: {error}") from error
            if self.patterns.setdefault(label, cell) != cell:
                self.other_patterns[label].add(cell)
        return list(patterns)

    def _read_classes(self) -> list[str]:
        """Return the class labels in class.json; without this file, return the sorted classes of the task files."""
        path = self._find(f"ontology/{CLASSES}")
        if path is not None:
            return list(dict.fromkeys(entry["rdfs:label"] for entry in _read_labelled(path)))
        classes = {gold for task, rows in self.rows.items() if task != "SPO" for _, golds in rows for gold in golds}
        classes |= {subject for subject, _ in self.rows.get("SCO", ())}
        if classes:
            self.remarks.append(
                f"There is no {CLASSES}: the candidates are the classes of the rows ({len(classes):,})."
            )
        return sorted(classes)

    def _read_properties(self) -> list[str] | None:
        """Return the labels of the properties in property.json and their superproperties; None without this file."""
        path = self._find(f"ontology/{PROPERTIES}")
        if path is None:
            return None
        entries = _read_labelled(path)
        for number, entry in enumerate(entries, 1):
            pattern = {entry["rdfs:label"]: entry["pattern"]} if entry.get("pattern") else {}
            self._add_patterns(pattern, "'pattern'", f"{path}, row {number}")
        labels = [entry["rdfs:label"] for entry in entries]
        for number, entry in enumerate(entries, 1):
            where, parents = f"{path}, row {number}", entry.get("rdfs:subPropertyOf") or {}
            if not isinstance(parents, dict):
                raise InputError(
                    f"{where}: 'rdfs:subPropertyOf' must be properties with their patterns, got {parents!r}"
                )
            labels += self._add_patterns(parents, "'rdfs:subPropertyOf'", where)
        return list(dict.fromkeys(labels))

    def _match_by_pattern(self, properties: list[str]) -> dict[str, str]:
        """Map each subject that is not a listed property to the listed property with the same pattern.

        Add a remark on the mapped subjects.
        """
        by_pattern = {self.patterns[label]: label for label in reversed(properties) if label in self.patterns}
        matches = {}
        for task in ("SPO", "DM", "RG"):
            for subject, _ in self.rows.get(task, ()):
                if subject not in properties and self.patterns[subject] in by_pattern:
                    matches[subject] = by_pattern[self.patterns[subject]]
        if matches:
            pairs = ", ".join(f"{subject!r} is called {label!r}" for subject, label in sorted(matches.items()))
            self.remarks.append(
                f"{counted(len(matches), 'property of the rows is', 'properties of the rows are')} not in {PROPERTIES}"
                f", but a property with the same pattern is, whose label is used: {pairs}."
            )
        return matches

    def _remark_on_rows(self, statements: list[Statement], name: str, candidates: list[str]) -> None:
        """Add remarks on repeated rows, subjects with different answers, and answers that are not candidates."""
        answers: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for statement in statements:
            answers[statement.subject].add(statement.golds)
        repeated = len(statements) - sum(map(len, answers.values()))
        if repeated:
            self.remarks.append(
                f"{counted(repeated, f'row of {name} is', f'rows of {name} are')} repeated; each is asked once."
            )
        conflicting = sum(len(golds) > 1 for golds in answers.values())
        if conflicting:
            subjects = f"{conflicting} subjects of {name} have" if conflicting > 1 else f"One subject of {name} has"
            self.remarks.append(f"{subjects} two rows with different right answers; both are asked as published.")
        known = set(candidates)
        unlisted = Counter(gold for statement in statements for gold in statement.golds if gold not in known)
        if unlisted:
            labels = ", ".join(repr(gold) for gold in sorted(unlisted))
            self.remarks.append(
                f"{counted(len(unlisted), 'right answer')} of {name}, in {counted(unlisted.total(), 'row')}, cannot be "
                f"chosen: missing from the list of candidates ({labels})."
            )


def _text(cell: Any, key: str, where: str) -> str:
    if not isinstance(cell, str) or not cell.strip():
        raise InputError(f"{where}: {key} must be text, got {cell!r}")
    return cell.strip()


def _read_labelled(path: Path) -> list[dict[str, Any]]:
    """Read a JSON list of objects and check that each object has a label."""
    content = parse_json(path.read_bytes(), str(path), "Download the file again.")
    if not isinstance(content, list) or not content:
        raise InputError(f"{path} must be a list of objects. Download the file again.")
    for number, entry in enumerate(content, 1):
        if not isinstance(entry, dict) or not isinstance(entry.get("rdfs:label"), str):
            raise InputError(f"{path}, row {number}: there is no text at 'rdfs:label'. Download the file again.")
    return content
