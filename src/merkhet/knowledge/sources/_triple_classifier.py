"""Classification of RDF triples as facts, names, ontology axioms or skipped triples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import FACTS, NAMES
from merkhet.knowledge import _iris as iris
from merkhet.knowledge.chunk import DETAILS_SCHEMA, Chunk, columns_table
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext
from merkhet.knowledge.sources._literals import Literal, read_literal
from merkhet.knowledge.sources._owl_axioms import BlankNodeAxioms

_NAMES = {"rdfs:label", "skos:prefLabel", "schema:name", "foaf:name"}
_ALIASES = {"skos:altLabel", "schema:alternateName", "foaf:nick"}
_DESCRIPTIONS = {
    *(
        "rdfs:comment",
        "schema:description",
        "dcterms:description",
        "dc:description",
        "dcterms:abstract",
        "dbo:abstract",
    ),
    *("skos:definition", "skos:note", "skos:scopeNote", "skos:editorialNote", "skos:historyNote", "skos:example"),
    "obo:IAO_0000115",
}
_ANNOTATIONS = {
    *("rdfs:seeAlso", "rdfs:isDefinedBy", "owl:versionInfo", "owl:versionIRI", "owl:priorVersion", "owl:deprecated"),
    *("owl:backwardCompatibleWith", "owl:incompatibleWith", "skos:hiddenLabel", "schema:source", "schema:image"),
    *("foaf:depiction", "foaf:thumbnail", "foaf:img", "foaf:isPrimaryTopicOf", "foaf:page", "dbo:thumbnail"),
}
_ANNOTATION_PREFIXES = ("prov:", "dbo:wikiPage")
_NEEDS_ENTITY = {
    *(iris.TYPE, iris.SUBCLASS, iris.SUBPROPERTY, iris.DOMAIN, iris.RANGE, iris.INVERSE, iris.EQUIVALENT_PROPERTY),
    *(iris.EQUIVALENT_CLASS, iris.DISJOINT_CLASSES, iris.DISJOINT_PROPERTIES, iris.CHAIN),
}
_SCHEMA_INVERSE = "schema:inverseOf"
_MAX_CACHED_USES = 100_000

FACT, ENTITY, TYPE, INVERSE = "fact", "fact between entities", "type", "inverse"
NAME, ALIAS, IMPORTS = "name", "alias", "imports"
OTHER = "other predicates"
"""The use of the triples of predicates that are not selected."""
_OTHER_LANGUAGES = "texts in other languages"
_FACT_ROW = ("subject", "predicate", "object", "graph", "line")
_NUMBER_ROW = ("subject", "predicate", "value", "unit", "graph", "line")
_NAME_ROW = ("entity", "language", "label", "aliases")


class PredicateUses(dict[str, str]):
    """The uses of the triples of predicates, the same for files and endpoints; a use is found when it is looked up.

    Any use but the constants of this module is a kind of triple that is counted as skipped.

    Args:
        selected: The predicates to read; empty for all but descriptions and annotations.
        filters: Whether predicates that are not selected are left out, if some are selected.
    """

    def __init__(self, selected: Iterable[str], filters: bool = True) -> None:
        super().__init__()
        self._selected = {iris.predicate_name(predicate) for predicate in selected}
        self._filters = filters and bool(self._selected)
        self._object_properties: set[str] = set()

    def __missing__(self, predicate: str) -> str:
        if len(self) >= _MAX_CACHED_USES:
            self.clear()
        use = self[predicate] = self._find(predicate)
        return use

    def accepts(self, predicate: str) -> bool:
        """Check whether the selection includes a predicate."""
        return not self._filters or predicate in self._selected

    def declare_object_property(self, predicate: str) -> None:
        """Use the triples of a predicate as facts between entities from now on."""
        self._object_properties.add(predicate)
        self.pop(predicate, None)

    def _find(self, predicate: str) -> str:
        if predicate in _NAMES or predicate in _ALIASES:
            return NAME if predicate in _NAMES else ALIAS
        if predicate in (iris.TYPE, "owl:imports", _SCHEMA_INVERSE):
            return {iris.TYPE: TYPE, _SCHEMA_INVERSE: INVERSE}.get(predicate, IMPORTS)
        if predicate not in self._selected:
            if predicate in _DESCRIPTIONS:
                return "descriptions"
            if predicate in _ANNOTATIONS or predicate.startswith(_ANNOTATION_PREFIXES):
                return "annotations"
            if self._filters:
                return OTHER
        return ENTITY if predicate in _NEEDS_ENTITY or predicate in self._object_properties else FACT


class TripleClassifier:
    """A classifier that collects triples as facts and names.

    ``flush`` returns the collected facts and names as a chunk. ``finish`` adds the axioms with blank nodes at the end.
    """

    def __init__(self, path: Path, context: ReadContext) -> None:
        self._path = path
        self._context = context
        self._language = context.option("language", "en").lower()
        self._languages = {language.lower() for language in context.languages}
        self._uses = PredicateUses(context.selected_predicates)
        self._axioms = BlankNodeAxioms(context)
        self._headers: set[str] = set()
        self._reset()

    def _reset(self) -> None:
        # The cells of all rows are in one flat list, which is the fastest to fill and to slice.
        self.facts: list[Any] = []
        self._numbers: list[Any] = []
        self._names: list[Any] = []

    def __len__(self) -> int:
        collected = ((self.facts, _FACT_ROW), (self._numbers, _NUMBER_ROW), (self._names, _NAME_ROW))
        return sum(len(flat) // len(row) for flat, row in collected)

    def add(self, subject: str, predicate: str, object: str | Literal, graph: str | None = None, line: int = 0) -> None:
        """Classify a triple; a line number of 0 means that the line is unknown.

        A literal where an entity is expected, an invalid number and an invalid date are bad rows.
        """
        is_entity = type(object) is str
        if subject[0] == "_" or (is_entity and object[0] == "_"):
            self._axioms.add(subject, predicate, object)
            return
        use = self._uses[predicate]
        if use is FACT and is_entity:
            self.facts.extend((subject, predicate, object, graph, line))
        elif use is NAME or use is ALIAS:
            self._add_name(subject, object, use is ALIAS)
        elif use is FACT:
            self._add_literal(subject, predicate, object, graph, line)  # type: ignore[arg-type]
        elif use is TYPE or use is ENTITY or use is INVERSE:
            if not isinstance(object, str):
                location = self._describe_location(subject, predicate, f'"{object[0]}"', line)
                self._context.reject(location, f"a literal where an entity is expected ({predicate})")
                return
            if use is TYPE:
                self._declare(subject, object)
            predicate = iris.INVERSE if use is INVERSE else predicate
            if not self._uses.accepts(predicate):
                self._context.count_skipped(OTHER)
            else:
                self.facts.extend((subject, predicate, object, graph, line))
        else:
            if use is IMPORTS:
                self._context.progress.say(f"{self._path.name}: imports are not followed: {object}")
            self._context.count_skipped("annotations" if use is IMPORTS else use)

    def is_plain(self, predicate: str) -> bool:
        """Check whether triples of a predicate whose object is an entity can be appended to ``facts`` unchanged."""
        return self._uses[predicate] is FACT

    def flush(self) -> Chunk:
        """Return the collected facts and names as a chunk; facts and names of ontology headers are skipped."""
        facts, graphs, lines = self._fact_columns()
        names = columns_table(NAMES.schema, _columns(_NAME_ROW, self._names))
        if self._headers:
            headers = pa.array(sorted(self._headers), pa.string())
            fact_mask = pc.invert(pc.is_in(facts["subject"], headers)).combine_chunks()
            name_mask = pc.invert(pc.is_in(names["entity"], headers))
            dropped = (
                facts.num_rows
                + names.num_rows
                - pc.sum(fact_mask, min_count=0).as_py()
                - pc.sum(name_mask, min_count=0).as_py()
            )
            if dropped:
                self._context.count_skipped("annotations", dropped)
                lines = [line for line, keep in zip(lines, fact_mask.to_pylist(), strict=True) if keep]
                facts, graphs, names = facts.filter(fact_mask), graphs.filter(fact_mask), names.filter(name_mask)
        self._reset()
        return Chunk(facts, names, details=_graph_details(facts, graphs), where=self._row_locations(facts, lines))

    def finish(self) -> Iterator[Chunk]:
        """Yield the remaining facts and names, and the axioms with blank nodes."""
        for subject, predicate, object in self._axioms.facts(str(self._path)):
            if not self._uses.accepts(predicate):
                self._context.count_skipped(OTHER)
                continue
            self.facts.extend((subject, predicate, object, None, 0))
            if len(self) >= ROWS_IN_CHUNK:
                yield self.flush()
        if len(self):
            yield self.flush()

    def _fact_columns(self) -> tuple[pa.Table, pa.Array, list[int]]:
        """Return the facts, their graphs and their line numbers; facts with numeric values come last."""
        facts = _columns(_FACT_ROW, self.facts)
        numbers = _columns(_NUMBER_ROW, self._numbers)
        graphs = facts.pop("graph") + numbers.pop("graph")
        lines = facts.pop("line") + numbers.pop("line")
        tables = [columns_table(FACTS.schema, columns) for columns in (facts, numbers)]
        table = pa.concat_tables(tables)
        source = pa.repeat(pa.scalar(self._path.name, pa.string()), table.num_rows)
        table = table.set_column(table.column_names.index("source"), FACTS.schema.field("source"), source)
        return table, pa.array(graphs, pa.string()), lines

    def _add_name(self, entity: str, text: str | Literal, alias: bool) -> None:
        if isinstance(text, str):
            self._context.count_skipped("names that are not texts")
            return
        name, language = text[0].strip(), text[2] or self._language
        if self._languages and language not in self._languages:
            self._context.count_skipped(_OTHER_LANGUAGES)
        elif not name:
            self._context.count_skipped("empty names")
        else:
            self._names.extend((entity, language, None if alias else name, [name] if alias else []))

    def _add_literal(self, subject: str, predicate: str, literal: Literal, graph: str | None, line: int) -> None:
        if subject in self._headers:
            self._context.count_skipped("annotations")
            return
        if self._languages and literal[2] and literal[2] not in self._languages:
            self._context.count_skipped(_OTHER_LANGUAGES)
            return
        try:
            object, value, unit = read_literal(literal)
        except ValueError as error:
            self._context.reject(self._describe_location(subject, predicate, f'"{literal[0]}"', line), str(error))
            return
        if object is not None:
            self.facts.extend((subject, predicate, object, graph, line))
        elif value is not None:
            self._numbers.extend((subject, predicate, value, unit, graph, line))

    def _declare(self, subject: str, kind: str) -> None:
        if kind == "owl:Ontology":
            self._headers.add(subject)
        elif kind == "owl:ObjectProperty":
            self._uses.declare_object_property(subject)

    def _describe_location(self, subject: str, predicate: str, object: str | None, line: int) -> str:
        if line:
            return f"{self._path}:{line}"
        text = " ".join(f"{subject} {predicate} {object}".split())
        return f"{self._path}: {text if len(text) <= 200 else text[:197] + '...'}"

    def _row_locations(self, facts: pa.Table, lines: list[int]) -> Callable[[int], str]:
        def where(row: int) -> str:
            columns = ("subject", "predicate", "object")
            subject, predicate, object = (facts[name][row].as_py() for name in columns)
            return self._describe_location(subject, predicate, object or facts["value"][row].as_py(), lines[row])

        return where


def _columns(names: tuple[str, ...], flat: list[Any]) -> dict[str, list[Any]]:
    return {name: flat[start :: len(names)] for start, name in enumerate(names)}


def _graph_details(facts: pa.Table, graphs: pa.Array) -> pa.Table:
    """Return the graphs of facts as details, since a graph is not part of the fact id."""
    if graphs.null_count == len(graphs):
        return DETAILS_SCHEMA.empty_table()
    has_graph = pc.is_valid(graphs)
    facts, graphs = facts.filter(has_graph), graphs.filter(has_graph)
    columns = [facts[name] for name in DETAILS_SCHEMA.names if name in FACTS.schema.names]
    return pa.Table.from_arrays(
        [*columns, pa.array(["graph"] * len(graphs), pa.string()), graphs], schema=DETAILS_SCHEMA
    )
