"""SPARQL queries from bundled files, user files or schemas."""

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
from merkhet.knowledge._select_query import SelectParts, parse_select

_FOLDER = Path(__file__).parent / "queries"
_DIRECT = "http://www.wikidata.org/prop/direct/"
_PLACEHOLDER = re.compile(r"\{\{([a-z-]+)(!?)\}\}")
_SCHEMA_KEYS = ("properties", "classes", "limit", "languages")


@dataclass(frozen=True)
class Query:
    """A SELECT query with the number of rows to read."""

    name: str
    """The name of the query in messages."""
    text: str
    limit: int | None = None
    """The number of rows to read; None for all."""
    asks_predicates: bool = False
    """Whether the query already returns only the selected predicates."""
    predicates: tuple[str, ...] = ()
    """Predicates that the query asks for by name, so that they are not skipped as descriptions or annotations."""

    @cached_property
    def parts(self) -> SelectParts:
        """The clauses of the query, parsed from ``text``.

        Raises:
            InputError: The text is not a SELECT query.
        """
        return parse_select(self.text, self.name)


def bundled_queries() -> dict[str, str]:
    """Return the descriptions of the bundled queries by name; a description is the first line of its file."""
    return {path.stem: _read_text(path).splitlines()[0].lstrip("# ").strip() for path in sorted(_FOLDER.glob("*.rq"))}


def find_query(name: str) -> tuple[str, str]:
    """Return the name and text of the bundled query or query file called ``name``."""
    path = Path(name)
    bundled = {file.stem: file for file in _FOLDER.glob("*.rq")}
    if name not in bundled and not path.is_file():
        if path.suffix == ".rq":
            raise InputError(f"there is no query file {path}; check the path")
        raise InputError(f"there is neither a bundled query nor a query file {name!r}; {did_you_mean(name, bundled)}")
    return name, _read_text(bundled.get(name, path))


def fill_template(name: str, text: str, values: Mapping[str, str], predicates: Sequence[str]) -> Iterator[Query]:
    """Yield the query of a template with its placeholders filled.

    A template with the placeholder ``{{property}}`` gives one query for each predicate. A line whose placeholder has no
    value is left out; a placeholder with an exclamation mark (``{{class!}}``) requires a value.

    Raises:
        InputError: A placeholder is unknown, or a required value is missing.
    """
    placeholders = {placeholder for line in text.splitlines() for placeholder, _ in _placeholders(line)}
    known = ("property", "predicates", "languages", "class", "functional")
    for placeholder in placeholders:
        if placeholder not in known:
            raise InputError(
                f"{name} has an unknown placeholder {{{{{placeholder}}}}}; {did_you_mean(placeholder, known)}"
            )
    for option, placeholder in (("class", "class"), ("single-value", "functional")):
        if values.get(placeholder) and placeholder not in placeholders:
            raise InputError(f"{name} has no placeholder for the option {option!r}; omit the option")
    values = {**values, "predicates": " ".join(f"<{require_iri(predicate)}>" for predicate in predicates)}
    if "property" not in placeholders:
        yield Query(name, _fill_lines(name, text, values), asks_predicates="predicates" in placeholders)
        return
    if not predicates:
        raise InputError(f"{name} reads one property at a time; name the predicates to import, such as P39")
    for predicate in predicates:
        short = short_name(require_iri(predicate))
        if not re.fullmatch(r"P[1-9]\d*", short):
            raise InputError(
                f"{name} reads Wikidata, and {predicate!r} is not a Wikidata property; use an id such as P39"
            )
        yield Query(f"{name} {short}", _fill_lines(name, text, {**values, "property": short}), asks_predicates=True)


def schema_queries(file: Path, predicates: Sequence[str], languages: Sequence[str]) -> Iterator[Query]:
    """Yield the queries for a schema file: one for the facts of each property, one for the names of their entities.

    A schema is a YAML file with ``properties``, and optionally ``classes`` (of the subjects), ``limit`` (maximum number
    of facts per property) and ``languages`` (of names). Without languages, there are no queries for names.
    ``predicates`` selects properties of the schema; ``languages`` overrides the languages of the schema.
    """
    schema = _read_schema(file)
    classes = [require_iri(text, str(file)) for text in schema["classes"]]
    selected = {short_name(require_iri(predicate)) for predicate in predicates}
    quoted = ", ".join(f'"{language}"' for language in check_languages(languages or schema["languages"]))
    limit = schema["limit"]
    for property_name in schema["properties"]:
        iri = require_iri(property_name, str(file))
        short = short_name(iri)
        if selected and short not in selected:
            continue
        wikidata = re.fullmatch(r"P[1-9]\d*", short)
        step = f"<{_DIRECT}{short}>" if wikidata else f"<{iri}>"
        body = f"?subject {step} ?object ."
        if classes:
            # Wikidata states types by P31, all others by rdf:type.
            kind = f"<{_DIRECT}P31>" if wikidata else "a"
            body += f" ?subject {kind} ?class . VALUES ?class {{ {' '.join(f'<{each}>' for each in classes)} }}"
        name = f"{file.name} {short}"
        facts = f"SELECT DISTINCT ?subject ?predicate ?object WHERE {{ BIND({step} AS ?predicate) {body} }}"
        yield Query(name, facts, limit, asks_predicates=True, predicates=(short,))
        if quoted:
            cut = f" ORDER BY ?subject ?object LIMIT {limit}" if limit else ""
            joined = f"{{ SELECT DISTINCT ?subject ?object WHERE {{ {body} }}{cut} }}"
            yield Query(f"{name} names", _names_query(joined, require_iri(short), quoted), asks_predicates=True)


def require_iri(name: str, where: str = "") -> str:
    """Return the IRI of a short name; raise InputError if the name has no IRI that a query may contain."""
    iri = full_iri(name)
    if iri is None or re.search(r'[<>"{}|^`\\\x00-\x20]', iri):
        location = f"{where}: " if where else ""
        raise InputError(f"{location}{name!r} is not an IRI; use P39, Q515, dbo:birthPlace or a full IRI")
    return iri


def check_languages(languages: Sequence[str]) -> Sequence[str]:
    """Return ``languages`` unchanged; raise InputError if a language tag is invalid."""
    for language in languages:
        if not re.fullmatch(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*", language):
            raise InputError(f"{language!r} is not a language tag; use one such as en or zh-hans")
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


def _fill_lines(name: str, text: str, values: Mapping[str, str]) -> str:
    lines = []
    for line in text.splitlines():
        placeholders = _placeholders(line)
        for placeholder, needed in placeholders:
            if needed and not values.get(placeholder):
                raise InputError(f"{name} needs the option {placeholder!r}, such as {placeholder}=dbo:City")
        if all(values.get(placeholder) for placeholder, _ in placeholders):
            lines.append(_PLACEHOLDER.sub(lambda match: values[match[1]], line) if placeholders else line)
    return "\n".join(lines)


def _placeholders(line: str) -> list[tuple[str, str]]:
    return [] if line.lstrip().startswith("#") else _PLACEHOLDER.findall(line)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error


def _read_schema(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"there is no schema file {path}; check the path")
    content = parse_yaml(_read_text(path), str(path))
    if not isinstance(content, dict):
        raise InputError(f"{path}: a schema must be a mapping with the key 'properties'")
    for key in content:
        if key not in _SCHEMA_KEYS:
            raise InputError(f"{path}: a schema has no key {str(key)!r}; {did_you_mean(str(key), _SCHEMA_KEYS)}")
    schema: dict[str, Any] = {key: content.get(key) or [] for key in ("properties", "classes", "languages")}
    for key, names in schema.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(f"{path}: {key!r} must be a list of texts (put quotes around no and on)")
    if not schema["properties"]:
        raise InputError(f"{path}: 'properties' is missing or empty; name at least one, such as P39 or dbo:birthPlace")
    limit = schema["limit"] = content.get("limit")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise InputError(f"{path}: 'limit' must be an integer ≥ 1, got {limit!r}")
    return schema
