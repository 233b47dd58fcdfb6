"""The knowledge base: facts and names of all sources in one DuckDB, asked relationally."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import duckdb
import pyarrow as pa

from gnomon.foundation.tables import FACTS, NAMES, make_table, validate
from gnomon.knowledge.material import Material, Predicate, load_material


class KnowledgeBase:
    """Facts and names in memory. Methods return Arrow tables in a stable order."""

    def __init__(self, materials: Iterable[Material]) -> None:
        gathered = list(materials)
        self.predicates: Mapping[str, Predicate] = {n: p for m in gathered for n, p in m.predicates.items()}
        facts = pa.concat_tables([make_table(FACTS, []), *[m.facts for m in gathered]])
        names = pa.concat_tables([make_table(NAMES, []), *[m.names for m in gathered]])
        self._database = duckdb.connect()
        self._database.register("given_facts", facts)
        self._database.register("given_names", names)
        # The same fact may come from two sources, and the same name from two packs: the first source is kept.
        self._database.execute(
            "create table facts as select * exclude (place) from "
            "(select *, row_number() over (partition by fact_id order by source) as place from given_facts) "
            "where place = 1 order by fact_id"
        )
        self._database.execute(
            "create table names as select * exclude (place) from (select *, row_number() over "
            "(partition by entity, language order by kind nulls last, label) as place from given_names) "
            "where place = 1 order by entity, language"
        )

    @classmethod
    def load(cls, places: Iterable[str], folder: Path | None = None) -> KnowledgeBase:
        """The knowledge of packs, folders and files."""
        return cls([load_material(place, folder) for place in places])

    def facts(self, predicate: str | None = None) -> pa.Table:
        """All facts, or those of a predicate, by id."""
        condition, values = ("", []) if predicate is None else ("where predicate = ?", [predicate])
        found = self._arrow(f"select * from facts {condition} order by fact_id", values)
        return validate(FACTS, found)

    def names(self, language: str = "en") -> pa.Table:
        """Names of entities in a language, by entity."""
        return validate(NAMES, self._arrow("select * from names where language = ? order by entity", [language]))

    def labels(self, language: str = "en") -> dict[str, str]:
        """What each entity is called; an entity without a name is not in it."""
        table = self.names(language)
        return dict(zip(table["entity"].to_pylist(), table["label"].to_pylist(), strict=True))

    def ancestors(self, predicate: str) -> pa.Table:
        """Every (subject, ancestor) pair that follows from a chain of facts of an is-a-like predicate."""
        return self._arrow(
            "with recursive above(subject, ancestor) as ("
            "  select subject, object from facts where predicate = $predicate and object is not null"
            "  union"
            "  select above.subject, facts.object from above join facts"
            "  on facts.subject = above.ancestor and facts.predicate = $predicate and facts.object is not null"
            ") select subject, ancestor from above order by subject, ancestor",
            {"predicate": predicate},
        )

    def count(self) -> dict[str, int]:
        """How many facts each predicate has, largest first."""
        rows = self._database.execute(
            "select predicate, count(*) as n from facts group by predicate order by n desc, predicate"
        ).fetchall()
        return {str(predicate): int(n) for predicate, n in rows}

    def _arrow(self, query: str, values: object) -> pa.Table:
        return self._database.sql(query, params=values).to_arrow_table()
