"""Queries for an endpoint: ready ones, those in files, those built from a schema, and how they are cut into pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.text_formats import parse_yaml
from merkhet.knowledge._iris import full_iri, short_name

COUNT = "merkhetCount"
"""The column in which a count of rows comes back."""
_FOLDER = Path(__file__).parent / "queries"
_DIRECT = "http://www.wikidata.org/prop/direct/"
_PLACEHOLDER = re.compile(r"\{\{([a-z-]+)(!?)\}\}")
_SCHEMA_KEYS = ("properties", "classes", "limit", "languages")
_TOKEN = re.compile(
    r"""
    (?P<skip>\#[^\n\r]*)
  | (?P<text>\"{3}(?:\"{0,2}(?:[^\"\\]|\\.))*\"{3} | '{3}(?:'{0,2}(?:[^'\\]|\\.))*'{3}
            | "(?:[^"\\\n\r]|\\.)*" | '(?:[^'\\\n\r]|\\.)*' | @[A-Za-z]+(?:-[A-Za-z0-9]+)*)
  | (?P<iri><[^<>"{}|^`\\\x00-\x20]*> | (?:[^\W\d_][\w.-]*|_)?:(?:[\w.:-]|%[0-9A-Fa-f]{2}|\\.)*)
  | [?$](?P<variable>\w+)
  | (?P<word>[^\W\d]\w*)
  | (?P<open>[{(\[])
  | (?P<close>[})\]])
  | (?P<star>\*)
  | .
    """,
    re.VERBOSE | re.DOTALL,
)
_OTHER_FORMS = ("CONSTRUCT", "ASK", "DESCRIBE", "INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "WITH")


@dataclass(frozen=True)
class Query:
    """A SELECT query: its name for messages, its text, how many rows are wanted, whether it asks for the predicates."""

    name: str
    text: str
    limit: int | None = None
    asks_predicates: bool = False

    @cached_property
    def parts(self) -> SelectParts:
        """The query taken apart; refuses what is no SELECT query."""
        return parse_select(self.text, self.name)


@dataclass(frozen=True)
class SelectParts:
    """A SELECT query taken apart, so that it can be asked page by page and its rows counted.

    ``variables`` are the selected ones; for ``SELECT *`` all that stand in the query.
    """

    prologue: str
    head: str
    dataset: str
    rest: str
    values: str
    variables: tuple[str, ...]
    ordered: bool
    sliced: bool

    def page(self, limit: int, offset: int, nested: bool = False) -> str:
        """The query for some of its rows in an order that is the same each time.

        ``nested`` sorts inside and cuts outside: Virtuoso sorts no more than 10,000 rows if it has to cut them too.
        """
        slice_ = f"LIMIT {limit} OFFSET {offset}"
        if nested:
            return self._around("SELECT *", self._order(), slice_)
        body = f"{self.head} {self.dataset} {self.rest}".strip()
        return f"{self.prologue}{body}\n{self._order()}\n{slice_}\n{self.values}"

    def count(self) -> str:
        """A query that counts the rows of this one."""
        return self._around(f"SELECT (COUNT(*) AS ?{COUNT})", "", "")

    def _order(self) -> str:
        keys = " ".join(f"?{name}" for name in self.variables)
        if not keys:
            return ""
        return keys if self.ordered else f"ORDER BY {keys}"

    def _around(self, select: str, order: str, slice_: str) -> str:
        # A subquery cannot say FROM: the outer query says it for both.
        inner = f"{self.head} {self.rest}\n{order}\n{self.values}"
        return f"{self.prologue}{select} {self.dataset}\nWHERE {{ {{\n{inner}\n}} }}\n{slice_}"


def parse_select(text: str, name: str) -> SelectParts:
    """Find the parts of a SELECT query; what stands in strings, comments, IRIs and braces is not taken for them."""
    depth = 0
    start = end = -1
    marks: dict[str, int] = {}
    selected: list[str] = []
    everywhere: dict[str, None] = {}
    clause, star = False, False
    dataset: list[tuple[int, int]] = []
    previous = ""
    for token in _TOKEN.finditer(text):
        kind, found = token.lastgroup, token.group()
        word = found.upper() if kind == "word" else ""
        if kind == "skip" or found.isspace():
            continue
        if start < 0:
            if word in _OTHER_FORMS:
                raise InputError(f"{name} is a {word} query; merkhet reads the rows of SELECT queries")
            if word == "SELECT":
                start, clause = token.start(), True
        elif kind == "open":
            clause = clause and found != "{"
            depth += 1
        elif kind == "close":
            depth -= 1
        elif kind == "variable":
            everywhere[token["variable"]] = None
            if clause and (depth == 0 or previous == "AS"):
                selected.append(token["variable"])
        elif depth == 0:
            star = star or (clause and kind == "star")
            clause = clause and word not in ("FROM", "WHERE", "WITH")
            if kind == "iri" and dataset and dataset[-1][1] < 0:
                dataset[-1] = (dataset[-1][0], token.end())
            elif word == "FROM":
                dataset.append((token.start(), -1))
            elif word in ("ORDER", "LIMIT", "OFFSET", "VALUES"):
                marks.setdefault(word, token.start())
        previous = word
        end = token.end()
    if start < 0 or depth != 0 or not everywhere:
        raise InputError(f"{name} is no whole SELECT query; look at its braces and at its first word")
    cut = marks.get("VALUES", end)
    first, after = (dataset[0][0], dataset[-1][1]) if dataset else (cut, cut)
    return SelectParts(
        prologue=text[:start],
        head=text[start:first],
        dataset=text[first:after],
        rest=text[after:cut],
        values=text[cut:end],
        variables=tuple(dict.fromkeys(everywhere if star else selected)),
        ordered="ORDER" in marks,
        sliced="LIMIT" in marks or "OFFSET" in marks,
    )


def bundled_queries() -> dict[str, str]:
    """Name and one line about each ready query."""
    return {path.stem: _first_line(path) for path in sorted(_FOLDER.glob("*.rq"))}


def find_query(given: str) -> tuple[str, str]:
    """Name and text of a query: that of a file, or the ready one called so; refuses what is neither."""
    path = Path(given)
    known = {file.stem: file for file in _FOLDER.glob("*.rq")}
    if given not in known and not path.is_file():
        if path.suffix == ".rq":
            raise InputError(f"there is no query file {path}")
        raise InputError(f"there is no ready query and no query file {given!r}; {did_you_mean(given, known)}")
    return given, _read_text(known.get(given, path))


def fill_query(name: str, text: str, values: Mapping[str, str], predicates: Sequence[str]) -> Iterator[Query]:
    """The query with what was chosen put in its places, once for each predicate if it has a place for one.

    A line with a place for which nothing was chosen is left out; ``{{name!}}`` must be filled, and is refused else.
    """
    places = {place for line in text.splitlines() for place, _ in _places(line)}
    known = ("property", "predicates", "languages", "class", "functional")
    for place in places:
        if place not in known:
            raise InputError(f"{name} has a place {{{{{place}}}}}, which nothing fills; {did_you_mean(place, known)}")
    for option, place in (("class", "class"), ("single-value", "functional")):
        if values.get(place) and place not in places:
            raise InputError(f"{name} has no place for the option {option!r}; leave it out")
    values = {**values, "predicates": " ".join(f"<{iri_of(predicate)}>" for predicate in predicates)}
    if "property" not in places:
        yield Query(name, _fill(name, text, values), asks_predicates="predicates" in places)
        return
    if not predicates:
        raise InputError(f"{name} is asked for one property at a time; say which predicates to import, such as P39")
    for predicate in predicates:
        short = short_name(iri_of(predicate))
        if not re.fullmatch(r"P[1-9]\d*", short):
            raise InputError(f"{name} is about Wikidata, and {predicate!r} is no property of it; write one such as P39")
        yield Query(f"{name} {short}", _fill(name, text, {**values, "property": short}), asks_predicates=True)


def schema_queries(file: Path, predicates: Sequence[str], languages: Sequence[str]) -> Iterator[Query]:
    """The queries for a schema: facts of each property, and names of what they join if languages are chosen.

    A schema is YAML with ``properties``, and if wanted ``classes`` (of the subjects), ``limit`` (facts of a property)
    and ``languages`` (of names). Chosen predicates narrow the properties; chosen languages go before the schema's.
    """
    schema = _read_schema(file)
    classes = [iri_of(text, str(file)) for text in schema["classes"]]
    chosen = {short_name(iri_of(predicate)) for predicate in predicates}
    quoted = ", ".join(f'"{language}"' for language in check_languages(languages or schema["languages"]))
    limit = schema["limit"]
    for given in schema["properties"]:
        iri = iri_of(given, str(file))
        short = short_name(iri)
        if chosen and short not in chosen:
            continue
        wikidata = re.fullmatch(r"P[1-9]\d*", short)
        step = f"<{_DIRECT}{short}>" if wikidata else f"<{iri}>"
        body = f"?subject {step} ?object ."
        if classes:
            # Wikidata says what a thing is by P31, all others by rdf:type.
            kind = f"<{_DIRECT}P31>" if wikidata else "a"
            body += f" ?subject {kind} ?class . VALUES ?class {{ {' '.join(f'<{each}>' for each in classes)} }}"
        name = f"{file.name} {short}"
        facts = f"SELECT DISTINCT ?subject ?predicate ?object WHERE {{ BIND({step} AS ?predicate) {body} }}"
        yield Query(name, facts, limit, asks_predicates=True)
        if quoted:
            cut = f" ORDER BY ?subject ?object LIMIT {limit}" if limit else ""
            joined = f"{{ SELECT DISTINCT ?subject ?object WHERE {{ {body} }}{cut} }}"
            yield Query(f"{name} names", _names_query(joined, iri_of(short), quoted), asks_predicates=True)


def iri_of(name: str, where: str = "") -> str:
    """The IRI of a name that goes into a query; refuses a name that stands for none."""
    iri = full_iri(name)
    if iri is None or re.search(r'[<>"{}|^`\\\x00-\x20]', iri):
        place = f"{where}: " if where else ""
        raise InputError(f"{place}{name!r} stands for no IRI; write P39, Q515, dbo:birthPlace or a whole IRI")
    return iri


def check_languages(languages: Sequence[str]) -> Sequence[str]:
    """The languages as they are; refuses what is no language tag, as it would go into a query."""
    for language in languages:
        if not re.fullmatch(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*", language):
            raise InputError(f"{language!r} is no language; write a tag such as en or zh-hans")
    return languages


def _names_query(joined: str, predicate: str, languages: str) -> str:
    return f"""PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
SELECT DISTINCT ?entity ?label ?alias ?language WHERE {{
  {{ SELECT DISTINCT ?entity WHERE {{
    {{ {joined} BIND(?subject AS ?entity) }}
    UNION {{ {joined} BIND(?object AS ?entity) FILTER(isIRI(?entity)) }}
    UNION {{ BIND(<{predicate}> AS ?entity) }}
  }} }}
  {{ ?entity rdfs:label ?label . FILTER(LANG(?label) IN ({languages})) BIND(LANG(?label) AS ?language) }}
  UNION
  {{ ?entity skos:altLabel ?alias . FILTER(LANG(?alias) IN ({languages})) BIND(LANG(?alias) AS ?language) }}
}}
"""


def _fill(name: str, text: str, values: Mapping[str, str]) -> str:
    lines = []
    for line in text.splitlines():
        places = _places(line)
        for place, needed in places:
            if needed and not values.get(place):
                raise InputError(f"{name} needs the option {place!r}, such as {place}=dbo:City")
        if all(values.get(place) for place, _ in places):
            lines.append(_PLACEHOLDER.sub(lambda found: values[found[1]], line) if places else line)
    return "\n".join(lines)


def _places(line: str) -> list[tuple[str, str]]:
    return [] if line.lstrip().startswith("#") else _PLACEHOLDER.findall(line)


def _first_line(path: Path) -> str:
    with open(path, encoding="utf-8") as handle:
        return handle.readline().lstrip("# ").strip()


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error


def _read_schema(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise InputError(f"there is no file {file}; it should hold a schema with 'properties'")
    given = parse_yaml(_read_text(file), str(file))
    if not isinstance(given, dict):
        raise InputError(f"{file}: a schema is a mapping with the key 'properties', and this is none")
    for key in given:
        if key not in _SCHEMA_KEYS:
            raise InputError(f"{file}: a schema has no key {str(key)!r}; {did_you_mean(str(key), _SCHEMA_KEYS)}")
    schema: dict[str, Any] = {key: given.get(key) or [] for key in ("properties", "classes", "languages")}
    for key, names in schema.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(f"{file}: {key!r} should be a list of texts (put quotes around no and on)")
    if not schema["properties"]:
        raise InputError(f"{file}: 'properties' is missing or empty; name at least one, such as P39 or dbo:birthPlace")
    limit = schema["limit"] = given.get("limit")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise InputError(f"{file}: 'limit' is {limit!r}, and should be a whole number above 0")
    return schema
