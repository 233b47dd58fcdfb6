"""Numbers that describe imported questions: their files, tasks, choices, right answers and clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core import text as fmt
from merkhet.reports.report_data import ReportData

_IMPORTED, _PUBLISHED = "imported", "published"
_HAND_WRITTEN = "own"
"""Value of the column suite in questions that name no suite."""
_MAX_TASKS = 20


def only_imported(data: ReportData) -> bool:
    """Return whether all questions were made elsewhere."""
    return {origin["kind"] for origin in data.suite.get("origins") or ()} == {_IMPORTED}


def imported_sources(data: ReportData) -> list[str]:
    """Return the names of the files and folders of imported questions."""
    return _sources(data, _IMPORTED)


def published_files(data: ReportData) -> list[str]:
    """Return the names of the published files that questions were read from."""
    return _sources(data, _PUBLISHED)


def describe_imports(data: ReportData) -> list[dict[str, Any]]:
    """Describe imported questions in numbers; the list is empty if there are none.

    The questions of several files are described together. If other questions were asked too, only the files are named.
    """
    sources = fmt.join_names([fmt.printable(source) for source in imported_sources(data)])
    if not sources:
        return []
    if not only_imported(data):
        return [{"source": sources, "tasks": []}]
    questions = data.questions
    clusters = [qset or (facts or [None])[0] for qset, facts in _rows(questions, "qset", "facts")]
    named = [cluster for cluster in clusters if cluster is not None]
    return [
        {
            "source": sources,
            "unknown_maker": set(questions["suite"].unique().to_pylist()) != {_HAND_WRITTEN},
            "default_language": set(questions["language"].unique().to_pylist()) == {"en"},
            "tasks": _describe_tasks(questions, data.candidates),
            "clusters": len(set(named)),
            "unclustered": len(clusters) - len(named),
        }
    ]


def _sources(data: ReportData, kind: str) -> list[str]:
    return [str(origin["source"]) for origin in data.suite.get("origins") or () if origin["kind"] == kind]


def _describe_tasks(questions: pa.Table, candidates: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    tasks = []
    for name in questions["task"].unique().to_pylist()[:_MAX_TASKS]:
        table = questions.filter(pc.equal(questions["task"], name))
        rows = _rows(table, "choices", "candidate_set", "answers")
        offered = [candidates.get(shared) or () if choices is None else choices for choices, shared, _ in rows]
        right = [len(set(texts) & set(answers)) for texts, (_, _, answers) in zip(offered, rows, strict=True)]
        tasks.append(
            {
                "name": fmt.printable(name),
                "questions": table.num_rows,
                "own": table.num_rows - table["choices"].null_count,
                "shared": len({shared for _, shared, _ in rows if shared is not None}),
                "choices": [min(map(len, offered)), max(map(len, offered))],
                "right": [min(right), max(right)],
            }
        )
    return tasks


def _rows(table: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in columns), strict=True))
