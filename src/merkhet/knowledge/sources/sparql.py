"""Source for SPARQL endpoints: facts and names from bundled queries, query files or schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

from merkhet.core.byte_sizes import parse_size
from merkhet.core.errors import InputError
from merkhet.core.text_formats import short_repr
from merkhet.knowledge._iris import INVERSE as INVERSE_OF
from merkhet.knowledge._iris import TYPE as TYPE_OF
from merkhet.knowledge._iris import short_name
from merkhet.knowledge._sparql_client import USER_AGENT, Endpoint, RequestSettings
from merkhet.knowledge._sparql_paging import PagedQuery
from merkhet.knowledge._sparql_results import Row
from merkhet.knowledge.chunk import Chunk, ChunkBuilder
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources._literals import DAY_PRECISION, STRING, YEAR_PRECISION, date_text, read_literal
from merkhet.knowledge.sources._triple_classifier import (
    ALIAS,
    ENTITY,
    FACT,
    IMPORTS,
    INVERSE,
    NAME,
    OTHER,
    TYPE,
    PredicateUses,
)
from merkhet.knowledge.sparql_queries import (
    Query,
    check_languages,
    fill_template,
    find_query,
    require_iri,
    schema_queries,
)

OPTIONS = (
    *("query", "schema", "endpoint", "class", "single-value"),
    *("page", "retries", "timeout", "wait", "cache", "count", "user-agent", "max-bytes", "key"),
)
_FACT_COLUMNS = ("subject", "predicate", "object", "value")
_OTHER_PREDICATES = "facts of other predicates"
_UNKNOWN_VALUES = "unknown or missing values"
_GENID = "/.well-known/genid/"
_NO_UNIT = "Q199"
_TIME = re.compile(r"\+?(-?)(\d{1,9})(?:-(\d\d)(?:-(\d\d)(?:T[\d:.]*)?)?)?(?:Z|[+-]\d\d:\d\d)?")
_short = lru_cache(100_000)(short_name)
Cell = Mapping[str, str]


def read_endpoint(location: str | Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield facts and names from a SPARQL endpoint, one chunk for each page of result rows.

    If ``location`` is the address of an endpoint, the option ``query`` (a bundled query or a .rq file) or ``schema`` (a
    YAML file with properties) is required. If it is a .rq or .yaml file, the option ``endpoint`` is required.

    A result row is a fact if it has the columns ``subject``, ``predicate``, and ``object`` or ``value``. Optional
    columns are ``unit``, ``start`` and ``end`` or ``point`` (in time), the precision of these dates
    (``startPrecision``: 9 for a year, 10 for a month, 11 for a day), ``subjectLabel``, ``objectLabel``,
    ``subjectKind``, ``objectKind`` and ``domain``. A result row is a name if it has the column ``entity``, and
    ``label`` or ``alias``. Predicates are used as in an RDF file: the objects of rdfs:label and skos:altLabel become
    names, and descriptions and annotations are skipped unless they are selected. IRIs become short names, numbers
    become values, and other literals become quoted texts.

    Options:

    * ``class=dbo:City`` fills the placeholder ``class`` of a query;
    * ``single-value=functional`` fills the placeholder ``functional`` of the query wikidata-constraints;
    * ``page=5000`` is the number of rows per request;
    * ``count=no`` skips counting the rows first, and the comparison with that count at the end;
    * ``retries=5`` is the number of retries;
    * ``wait=1`` is the number of seconds before the first retry; the pause doubles with each further retry;
    * ``timeout=120`` is the maximum number of seconds, and ``max-bytes=2GB`` the maximum size of a response;
    * ``user-agent=...`` is the HTTP user agent;
    * ``key=VARIABLE`` is the environment variable with the login, ``user:password`` or a bearer token;
    * ``cache=refresh`` ignores cached responses, ``cache=no`` also writes none.

    Either all rows are read or none: after a truncated, late or inconsistent response, the rows are requested again in
    smaller pages, or the import ends with an error.
    """
    context.check_options(*OPTIONS)
    address, queries = _resolve_queries(location, context)
    with closing(Endpoint(address, _request_settings(context), context.progress.say)) as endpoint:
        for query in queries:
            rows = _RowReader(endpoint.display_name, query, context)
            paging = PagedQuery(endpoint, query)
            row_count = paging.count()
            label = f"{endpoint.display_name} {query.name}"
            context.progress.start(label, row_count or 0, "rows")
            try:
                for page in paging.read(row_count):
                    yield rows.read_page(page)
                    context.progress.advance(label, len(page))
            finally:
                context.progress.finish(label)
    if endpoint.cache_hits:
        context.progress.say(
            f"{endpoint.display_name}: {endpoint.cache_hits} responses came from the cache; "
            "set cache=refresh to request them again"
        )


def _resolve_queries(location: str | Path, context: ReadContext) -> tuple[str, list[Query]]:
    address, query, schema = (context.option(name) for name in ("endpoint", "query", "schema"))
    if str(location).startswith(("http://", "https://")):
        if address:
            raise InputError("the location is already an endpoint; the option 'endpoint' is for query files")
        address = str(location)
    elif query or schema:
        raise InputError(f"{location} is already a query; omit the option {'query' if query else 'schema'!r}")
    elif not address:
        raise InputError(f"{location} is a query; name the endpoint with the option endpoint=https://...")
    elif Path(location).suffix in (".yaml", ".yml"):
        schema = str(location)
    else:
        query = str(location)
    if bool(query) == bool(schema):
        raise InputError(
            "the endpoint needs exactly one of query=FILE.rq, query=NAME of a ready query such as wikidata-facts, "
            "and schema=FILE.yaml"
        )
    languages = ", ".join(f'"{language}"' for language in check_languages(context.languages))
    chosen_class, single_value = context.option("class"), context.option("single-value")
    if single_value not in ("", "functional"):
        raise InputError(f"the option 'single-value' must be 'functional', got {single_value!r}")
    if schema:
        if chosen_class or single_value:
            raise InputError("the options 'class' and 'single-value' are for queries; a schema has 'classes'")
        return address, list(schema_queries(Path(schema), context.predicates, context.languages))
    values = {
        "languages": languages,
        "class": f"<{require_iri(chosen_class)}>" if chosen_class else "",
        "functional": "owl:FunctionalProperty" if single_value else "",
    }
    return address, list(fill_template(*find_query(query), values, context.predicates))


def _request_settings(context: ReadContext) -> RequestSettings:
    agent = context.option("user-agent", USER_AGENT)
    if not agent.strip() or not agent.isascii() or not agent.isprintable():
        raise InputError("the option 'user-agent' must be one line of ASCII text")
    return RequestSettings(
        page=int(context.number("page", 5000, 2, integer=True)),
        retries=int(context.number("retries", 5, 0, integer=True)),
        timeout=context.number("timeout", 120, 0.001),
        max_bytes=parse_size("the option 'max-bytes'", context.option("max-bytes", "2GB")),
        wait=context.number("wait", 1, 0),
        cache=context.choice("cache", "yes", "no", "refresh"),
        count=context.choice("count", "yes", "no") == "yes",
        user_agent=agent,
        key=context.option("key"),
    )


class _RowReader:
    """A reader of the result rows of a query as facts and names."""

    def __init__(self, address: str, query: Query, context: ReadContext) -> None:
        self._context, self._query = context, query
        self._location = f"{address}, {query.name}"
        self._builder = ChunkBuilder(address)
        self._seen: set[tuple[object, ...]] = set()
        self._row_number = 0
        # Only a query without a placeholder for predicates may return others; the predicates of a query with one may be
        # its subjects (wikidata-subproperties).
        self._uses = PredicateUses((*context.predicates, *query.predicates), filters=not query.asks_predicates)
        self._headers: set[str] = set()
        self._languages = {language.lower() for language in context.languages}
        columns = set(query.parts.variables)
        self._has_facts = {"subject", "predicate"} <= columns and bool(columns & {"object", "value"})
        self._has_names = "entity" in columns and bool(columns & {"label", "alias"})
        if not self._has_facts and not self._has_names:
            needed = ("entity", "label") if columns & {"entity", "label", "alias"} else _FACT_COLUMNS[:3]
            missing = next(name for name in needed if name not in columns)
            raise InputError(
                f"{query.name} has no column ?{missing}; facts need ?subject ?predicate ?object, "
                "names need ?entity and ?label or ?alias"
            )

    def read_page(self, page: list[Row]) -> Chunk:
        """Return the facts and names of a page; errors locate a bad row by its number in the query result."""
        self._seen.clear()
        self._find_headers(page)
        for row in page:
            self._row_number += 1
            where = f"{self._location}, row {self._row_number}"
            try:
                _check_cells(row)
                if self._has_names and "entity" in row:
                    self._read_names(row)
                    if not any(name in row for name in _FACT_COLUMNS):
                        continue
                if not self._has_facts:
                    if "entity" not in row:
                        raise ValueError("?entity is empty")
                    continue
                self._read_fact(where, row)
            except ValueError as error:
                self._context.reject(where, str(error))
        return self._builder.flush()

    def _read_names(self, row: Row) -> None:
        entity = self._entity(row, "entity")
        if not entity:
            return
        if "label" not in row and "alias" not in row:
            self._context.count_skipped("entities without a name")
        self._add_name(entity, row.get("label"))
        self._add_name(entity, row.get("alias"), alias=True)

    def _read_fact(self, where: str, row: Row) -> None:
        subject, predicate = self._entity(row, "subject"), self._entity(row, "predicate")
        if not subject or not predicate:
            return
        if subject in self._headers:
            self._context.count_skipped("annotations")
            return
        use = self._uses[predicate]
        if use in (NAME, ALIAS):
            self._read_name(subject, row, alias=use == ALIAS)
            return
        predicate = INVERSE_OF if use == INVERSE else predicate
        if use not in (FACT, ENTITY, TYPE, INVERSE) or not self._uses.accepts(predicate):
            skipped = {OTHER: _OTHER_PREDICATES, IMPORTS: "annotations"}.get(use, use)
            self._context.count_skipped(skipped if use not in (TYPE, INVERSE) else _OTHER_PREDICATES)
            return
        object_value_unit = self._object(row)
        if object_value_unit is None:
            return
        object_, value, unit = object_value_unit
        if use != FACT and (object_ is None or object_.startswith('"')):
            raise ValueError(f"a literal where an entity is expected ({predicate})")
        if use == TYPE and object_ == "owl:ObjectProperty":
            self._uses.declare_object_property(subject)
        start, end = self._time(row, "start"), self._time(row, "end")
        if not start and not end:
            start = end = self._time(row, "point")
        self._add_name(subject, row.get("subjectLabel"), kind=row.get("subjectKind"))
        if object_ and not object_.startswith('"'):
            self._add_name(object_, row.get("objectLabel"), kind=row.get("objectKind"))
        key = (subject, predicate, object_, value, unit, start, end)
        if key not in self._seen:
            self._seen.add(key)
            domain = row["domain"]["value"].strip() or None if "domain" in row else None
            self._builder.add_fact(
                where, subject, predicate, object_, value=value, unit=unit, start=start, end=end, domain=domain
            )

    def _find_headers(self, page: list[Row]) -> None:
        """Remember the headers of ontologies, whose facts are annotations."""
        for row in page:
            kinds = [row.get(column) for column in ("subject", "predicate", "object")]
            if all(isinstance(cell, dict) and cell.get("type") == "uri" for cell in kinds):
                subject, predicate, object_ = (_short(str(cell.get("value"))) for cell in kinds if cell)
                if predicate == TYPE_OF and object_ == "owl:Ontology":
                    self._headers.add(subject)

    def _read_name(self, entity: str, row: Row, alias: bool) -> None:
        """Read the object of a triple such as (x, rdfs:label, y) as a name."""
        cell = row.get("object")
        if cell is None or not _is_literal(cell):
            self._context.count_skipped("names that are not texts")
        elif not cell["value"].strip():
            self._context.count_skipped("empty names")
        else:
            self._add_name(entity, cell, alias)

    def _entity(self, row: Row, column: str) -> str | None:
        """Return the short name of the IRI in a column; None for other nodes, counted as skipped.

        Raises:
            ValueError: The column is empty or has a literal.
        """
        cell = row.get(column)
        if cell is None:
            raise ValueError(f"?{column} is empty")
        if cell["type"] == "uri":
            if not cell["value"]:
                raise ValueError(f"?{column} is an empty IRI")
            if _GENID not in cell["value"]:
                return _short(cell["value"])
            self._context.count_skipped(_UNKNOWN_VALUES)
        elif cell["type"] == "bnode":
            self._context.count_skipped("rows with blank nodes")
        elif cell["type"] == "triple":
            self._context.count_skipped("statements about statements")
        else:
            raise ValueError(f"?{column} is the literal {short_repr(cell['value'])}, and an IRI is expected")
        return None

    def _object(self, row: Row) -> tuple[str | None, float | None, str | None] | None:
        """Return the object, value and unit of a row; None for a row that is not imported, counted as skipped."""
        cell = row.get("object")
        if "value" in row:
            if cell is not None:
                raise ValueError("the row has both an ?object and a ?value")
            return None, _read_value(row["value"]), self._unit(row)
        if cell is None or not _is_literal(cell):
            entity = self._entity(row, "object")
            return None if entity is None else (entity, None, None)
        if "objectPrecision" in row:
            time = self._time(row, "object")
            return (f'"{time}"', None, None) if time else None
        language = _language(cell)
        if language and self._languages and language not in self._languages:
            self._context.count_skipped("texts in other languages")
            return None
        object_, value, unit = read_literal((cell["value"], cell.get("datatype") or STRING, language))
        return object_, value, (self._unit(row) or unit) if value is not None else None

    def _unit(self, row: Row) -> str | None:
        cell = row.get("unit")
        unit = None if cell is None or cell["type"] == "bnode" else cell["value"]
        if cell is not None and unit and cell["type"] == "uri":
            unit = _short(unit)
        return None if unit == _NO_UNIT else unit or None

    def _time(self, row: Row, column: str) -> str | None:
        """Return the date in a column up to its precision; None if it is missing, unknown or coarser than a year."""
        cell = row.get(column)
        if cell is None:
            return None
        if not _is_literal(cell):
            self._context.count_skipped("unknown dates of qualifiers")
            return None
        match = _TIME.fullmatch(cell["value"].strip())
        precision = row.get(f"{column}Precision", {}).get("value", str(DAY_PRECISION))
        if not match or not precision.isdigit():
            raise ValueError(
                f"?{column} is {short_repr(cell['value'])}, which is not a date (1957, 1957-03 or 1957-03-15)"
            )
        if int(precision) < YEAR_PRECISION:
            self._context.count_skipped(
                "dates coarser than a year" if column == "object" else "dates of qualifiers coarser than a year"
            )
            return None
        sign, year, month, day = match.groups()
        return date_text(sign, year, month, day, int(precision))

    def _add_name(self, entity: str, cell: Cell | None, alias: bool = False, kind: Cell | None = None) -> None:
        # Wikidata's label service returns the id if there is no label.
        if cell is None or cell["value"].strip() in ("", entity):
            return
        if not _is_literal(cell):
            raise ValueError(f"the name of {entity} is {short_repr(cell['value'])}, and a text is expected")
        text, language = cell["value"].strip(), _language(cell) or "en"
        if self._languages and language not in self._languages:
            self._context.count_skipped("texts in other languages")
            return
        kind_name = kind["value"].strip() or None if kind else None
        key = (entity, text, language, alias, kind_name)
        if key not in self._seen:
            self._seen.add(key)
            self._builder.add_name(entity, None if alias else text, language, [text] if alias else (), kind_name)


def _check_cells(row: Row) -> None:
    """Raise ValueError unless each cell has a type and a value, and all its texts are valid Unicode."""
    for column, cell in row.items():
        if not isinstance(cell, dict) or not isinstance(cell.get("type"), str):
            raise ValueError(f"?{column} is not a cell with a type and a value")
        if cell["type"] == "triple":
            continue
        texts: list[Any] = [cell.get("value"), cell.get("datatype") or "", cell.get("xml:lang") or ""]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"?{column} is not a cell with a type and a value")
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            raise ValueError(f"?{column} contains a lone surrogate") from None


def _read_value(cell: Cell) -> float:
    if _is_literal(cell):
        # Some endpoints give a number as plain text.
        number = cell.get("datatype") in (None, STRING) and re.fullmatch(
            r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", cell["value"]
        )
        value = (
            float(cell["value"]) if number else read_literal((cell["value"], cell.get("datatype") or STRING, None))[1]
        )
        if value is not None:
            return value
    raise ValueError(f"?value is {short_repr(cell['value'])}, which is not a number")


def _is_literal(cell: Cell) -> bool:
    return cell["type"] in ("literal", "typed-literal")


def _language(cell: Cell) -> str | None:
    return (cell.get("xml:lang") or "").lower() or None
