"""Statistics of a knowledge base."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from merkhet.knowledge import _iris as iris
from merkhet.knowledge.database import count_rows, sql_literals
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.rules._contradictions import find_cycles
from merkhet.knowledge.rules.rulebook import ROLES
from merkhet.knowledge.store import KnowledgeBase

_CLASSES = ("owl:Class", "rdfs:Class")
_PROPERTIES = ("owl:ObjectProperty", "owl:DatatypeProperty", "rdf:Property", "owl:AnnotationProperty")
_AXIOMS = ("subclass", "subproperty", "domain", "range", "inverse", "equivalent", "equivalent class", "chain")


def describe(store: Path, *, top: int = 15) -> dict[str, Any]:
    """Summarize a knowledge base: counts, ``top`` most frequent predicates, imports, last inference and cycles."""
    with KnowledgeBase.open(store) as knowledge:
        counts = knowledge.query(
            "select count(*) as facts, count(*) filter (rule is null) as stated, count(*) filter (rule is not null) as "
            'inferred, count(value) as numbers, count(*) filter ("start" is not null or "end" is not null) as timed, '
            "count(distinct subject) as subjects, count(distinct predicate) as predicates from facts"
        ).to_pylist()[0]
        by_rule = knowledge.query(
            "select rule, count(*) as n from facts where rule is not null group by rule order by n desc, rule"
        ).to_pylist()
        predicates = knowledge.query(
            "select predicate, count(*) as facts, count(*) filter (rule is not null) as inferred, "
            "count(distinct subject) as subjects, count(distinct object) as objects from facts "
            "group by predicate order by facts desc, predicate"
        ).to_pylist()
        languages = knowledge.query(
            "select language, count(*) as names, sum(len(aliases))::bigint as aliases from names "
            "group by language order by names desc, language"
        ).to_pylist()
        return {
            "store": str(store),
            "bytes": store.stat().st_size,
            **counts,
            "by_rule": {row["rule"]: row["n"] for row in by_rule},
            "ontology": _ontology(knowledge),
            "top_predicates": predicates[:top],
            "languages": languages,
            "shared_labels": count_rows(
                knowledge.connection, "(select label from names group by language, label having count(*) > 1)"
            ),
            "imports": [row | {"left_out": json.loads(row["left_out"])} for row in knowledge.imports().to_pylist()],
            "inference": _inference(knowledge, counts["stated"]),
            "cycles": find_cycles(DuckTables(knowledge.connection), [*ROLES["subclass"], *ROLES["subproperty"]]),
        }


def _ontology(knowledge: KnowledgeBase) -> dict[str, int]:
    typed = f"select distinct subject from facts where predicate = '{iris.TYPE}' and object in"
    sources = {
        "classes": f"({typed} ({sql_literals(*_CLASSES)}))",
        "properties": f"({typed} ({sql_literals(*_PROPERTIES)}))",
        **{role: f"facts where predicate in ({sql_literals(*ROLES[role])}) and rule is null" for role in _AXIOMS},
    }
    counts = {name: count_rows(knowledge.connection, source) for name, source in sources.items()}
    return {name: count for name, count in counts.items() if count}


def _inference(knowledge: KnowledgeBase, stated: int) -> dict[str, Any] | None:
    rows = knowledge.query("select * from inferences").to_pylist()
    if not rows:
        return None
    row: dict[str, Any] = rows[0]
    return row | {"rules": json.loads(row["rules"]), "stale": row["stated"] != stated}
