"""Origin of the questions of a study: made by a suite, published with a suite's paper, or imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from merkhet.engine.study import Study
from merkhet.engine.suite import Suite
from merkhet.engine.suite_card import QuestionOrigin
from merkhet.questions.question_files import QUESTION_FILES, find_question_file, read_about, read_questions

ORIGIN = "origin"
"""Key of the origin in about.json."""
_MAX_FILES = 5


def find_origin(suite: Suite, study: Study, home: Path) -> QuestionOrigin:
    """Find the origin of a study's questions without reading the questions.

    Questions in a folder of ``merkhet build`` or of a run have the origin that its about.json records. Other files of
    questions are imported.

    Raises:
        InputError: There are no questions at the path that the study names.
    """
    if study.data is None:
        return _describe_suite(suite, "made")
    path = home / study.data
    published = published_files(suite, path)
    if published:
        names = [file.name for file in published]
        more = f" and {len(names) - _MAX_FILES} more" if len(names) > _MAX_FILES else ""
        return _describe_suite(suite, "published", ", ".join(names[:_MAX_FILES]) + more)
    file = find_question_file(path)
    about = read_about(file)
    recorded = _recorded_origin(about) if file.name in QUESTION_FILES else None
    if recorded is not None:
        return recorded
    return QuestionOrigin("imported", _find_title(about, path), source=path.resolve().name)


def find_splits(path: Path) -> frozenset[str]:
    """Return the names of the splits in a file or folder of imported questions."""
    return frozenset(read_questions(path).questions["split"].drop_null().unique().to_pylist())


def published_files(suite: Suite, path: Path) -> list[Path]:
    """List the suite's published files at a path; an empty list if the path holds questions in merkhet's format.

    A path to a single file may match a pattern such as ``*.tsv``. In a folder, files are found by their exact names.
    """
    if any((path / name).is_file() for name in QUESTION_FILES):
        return []
    is_single_file = path.is_file() and any(fnmatch(path.name, Path(name).name) for name in suite.published)
    candidates = [path] if is_single_file else [path / name for name in suite.published]
    return [file for file in candidates if file.is_file()]


def _describe_suite(suite: Suite, kind: Literal["made", "published"], source: str = "") -> QuestionOrigin:
    methods = suite.methods if kind == "made" else suite.published_methods.replace("{methods}", suite.methods)
    return QuestionOrigin(kind, suite.title, suite.name, source, suite.about, methods, suite.citations)


def _recorded_origin(about: Mapping[str, Any]) -> QuestionOrigin | None:
    try:
        return TypeAdapter(QuestionOrigin).validate_python(about[ORIGIN])
    except (KeyError, ValidationError):
        return None


def _find_title(about: Mapping[str, Any], path: Path) -> str:
    """Return the title in about.json, or one that is derived from the name of the file or folder."""
    title = about.get("title")
    if isinstance(title, str) and title.strip():
        return " ".join(title.split())
    name = path.resolve().name
    words = re.sub(r"[\s_-]+", " ", Path(name).stem if path.is_file() else name).strip() or "Questions"
    return words[:1].upper() + words[1:]
