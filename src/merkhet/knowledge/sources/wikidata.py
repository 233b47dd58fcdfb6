"""Source for Wikidata JSON dumps: statements become facts, labels and aliases become names."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from merkhet.core.errors import InputError
from merkhet.core.strict_json import decode_json
from merkhet.knowledge._iris import predicate_name, short_name
from merkhet.knowledge.chunk import Chunk, ChunkBuilder
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext, read_blocks
from merkhet.knowledge.sources._literals import YEAR_PRECISION, date_text
from merkhet.knowledge.sources.quadruples import starts_after

_OPTIONS = {"rank": ("all", "best"), "names": ("all", "used"), "literals": ("no", "yes")}
_ENTITY = re.compile(r"[QPL][1-9]\d*")
_PROPERTY = re.compile(r"P[1-9]\d*")
_TIME = re.compile(r"([+-]?)(\d+)-(\d\d)-(\d\d)T")
_ID = re.compile(rb'"id":\s*"([QPL][1-9]\d*)"')
_CLAIMS = b'"claims":'
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89aAbB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89aAbB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
_START, _END, _POINT = "P580", "P582", "P585"
_JULIAN = "Q1985786"
# Links to equivalent classes or properties in other ontologies; their values are IRIs.
_EQUIVALENCE_LINKS = ("P1628", "P1709", "P2235", "P2236")
_TEXTS = ("string", "monolingualtext")
_LITERAL_TEXTS = ("external-id", "url")
# The language code for names that are the same in all languages.
_DEFAULT_LANGUAGE = "mul"


class _Value(NamedTuple):
    object: str | None = None
    value: float | None = None
    unit: str | None = None
    julian: bool = False


class _Fact(NamedTuple):
    predicate: str
    value: _Value
    start: str | None
    end: str | None
    details: dict[str, str]


def read_dump(path: Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield the facts and names of a dump, which may be compressed (.gz, .bz2, .xz or .zst).

    A dump is a JSON list with one entity per line; the brackets may be missing. Entities and predicates keep their ids
    (Q42, P39, L7). The value of a statement is converted by its type:

    * an entity becomes the object of the fact;
    * a quantity becomes a value and the id of its unit;
    * a date becomes a quoted text up to its precision (``"1957-03-15"``); a year BC has a minus (-0043 is 43 BC);
    * a text becomes ``"text"`` or ``"texte"@fr``;
    * a link to an equivalent class or property in another ontology (P1628, P1709) becomes the short name of its IRI.

    The qualifiers P580 and P582 become start and end; without them, P585 becomes both. Other qualifiers, a preferred
    rank and the number of references become details.

    Deprecated statements, unknown and missing values, dates coarser than a year, coordinates and media are counted as
    skipped. A line without an entity, or a statement with an end before its start, is a bad row. A dump that ends early
    raises InputError even if bad rows are skipped. Options:

    * ``rank=best`` reads only the preferred statements of a property if it has any; ``rank=all`` (the default) reads
      statements of normal rank too;
    * ``names=used`` reads only the names of entities that occur in a fact as subject, predicate, object or unit. The
      file is read twice, and the ids of these entities are kept in memory. ``names=all`` (the default) reads the names
      of every entity, which suits an excerpt of a dump;
    * ``literals=yes`` also reads URLs and external ids, which are skipped by default.

    If an entity has no label in a selected language, the label for all languages (``mul``) is used.
    """
    context.check_options(*_OPTIONS)
    options = {name: context.choice(name, *choices) for name, choices in _OPTIONS.items()}
    predicates = [predicate_name(predicate) for predicate in context.predicates]
    for predicate in predicates:
        if not _PROPERTY.fullmatch(predicate):
            raise InputError(f"{predicate!r} is not a Wikidata property; use an id such as P39")
    statements = _StatementReader(
        context, predicates, best=options["rank"] == "best", literals=options["literals"] == "yes"
    )
    builder = ChunkBuilder("wikidata")
    mentioned_ids: set[str] | None = set() if options["names"] == "used" else None
    for number, line in _entity_lines(path, context):
        where = f"{path}:{number}"
        has_facts = statements.may_match(line)
        if not has_facts and mentioned_ids is not None:
            continue
        try:
            entity = _parse(line) if has_facts else _parse_names(line)
            subject = _entity_id(entity)
            facts = statements.read(entity, where) if has_facts else []
            names = list(_entity_names(entity, context)) if mentioned_ids is None else []
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            context.reject(where, _describe_error(error))
            continue
        for predicate, (object_, value, unit, _), start, end, details in facts:
            builder.add_fact(
                where, subject, predicate, object_, value=value, unit=unit, start=start, end=end, details=details
            )
            if mentioned_ids is not None:
                mentioned = (subject, predicate, object_, unit)
                mentioned_ids.update(name for name in mentioned if name and _ENTITY.fullmatch(name))
        for language, label, aliases in names:
            builder.add_name(subject, label, language, aliases)
        if len(builder) >= ROWS_IN_CHUNK:
            yield builder.flush()
    if mentioned_ids:
        yield from _read_used_names(mentioned_ids, path, context, builder)
    if len(builder):
        yield builder.flush()


def _read_used_names(
    mentioned_ids: set[str], path: Path, context: ReadContext, builder: ChunkBuilder
) -> Iterator[Chunk]:
    name_context = ReadContext(languages=context.languages, skip_bad=True, progress=context.progress)
    for _, line in _entity_lines(path, name_context):
        match = _ID.search(line.partition(_CLAIMS)[0])
        if match and match[1].decode() not in mentioned_ids:
            continue
        try:
            entity = _parse_names(line)
            if _entity_id(entity) not in mentioned_ids:
                continue
            names = list(_entity_names(entity, context))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # The line was already rejected or counted when its statements were read.
            continue
        for language, label, aliases in names:
            builder.add_name(entity["id"], label, language, aliases)
        if len(builder) >= ROWS_IN_CHUNK:
            yield builder.flush()


def _entity_lines(path: Path, context: ReadContext) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and texts of the lines with entities, without trailing commas.

    Raises:
        InputError: The dump has no closing bracket.
    """
    is_open = False
    last: tuple[int, bytes] | None = None
    for first, lines in read_blocks(path, context):
        for number, line in enumerate(lines, first):
            line = line.rstrip(b", \t\r")
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line in (b"[", b"]"):
                is_open = line == b"["
            elif line:
                # Yield one line late: the last line of a truncated dump is not a bad row but the point of truncation.
                if last:
                    yield last
                last = number, line
    if is_open:
        raise InputError(
            f"{path}: the dump ends early, at line {last[0] if last else 1}: there is no ']' at its end. "
            "Nothing was imported. Download it again."
        )
    if last:
        yield last


def _parse(line: bytes) -> Any:
    entity = decode_json(line.decode())
    if b"\\ud" in line.lower() and _LONE_SURROGATE.search(line):
        json.dumps(entity, ensure_ascii=False).encode()
    return entity


def _parse_names(line: bytes) -> Any:
    """Parse an entity without its statements if they follow the names, as is usual in a dump."""
    head, separator, _ = line.partition(_CLAIMS)
    if separator and line.endswith(b"}"):
        try:
            entity = _parse(head.rstrip(b", \t") + b"}")
            if "id" in entity and "labels" in entity and "aliases" in entity:
                return entity
        except ValueError:
            pass
    return _parse(line)


def _entity_id(entity: Any) -> str:
    if not isinstance(entity, dict) or not isinstance(entity.get("id"), str):
        raise ValueError("the line is not an entity with an id")
    name: str = entity["id"]
    if not _ENTITY.fullmatch(name):
        raise ValueError(f"{name!r} is not the id of an item, a property or a lexeme")
    return name


def _describe_error(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg} at column {error.colno})"
    if isinstance(error, UnicodeDecodeError):
        return f"the text is not UTF-8 (byte {error.start + 1} of the line)"
    if isinstance(error, UnicodeEncodeError):
        return "the text contains a lone surrogate"
    if type(error) is ValueError:
        return str(error)
    return f"the entity does not have the structure of a dump ({type(error).__name__}: {error})"


def _entity_names(entity: Mapping[str, Any], context: ReadContext) -> Iterator[tuple[str, str | None, list[str]]]:
    # The dump writes an empty mapping as [], and lexemes have lemmas.
    labels = entity.get("labels") or entity.get("lemmas") or {}
    aliases = entity.get("aliases") or {}
    for language in context.languages or dict.fromkeys((*labels, *aliases)):
        label = labels.get(language) or (labels.get(_DEFAULT_LANGUAGE) if context.languages else None)
        entries = aliases.get(language) or (aliases.get(_DEFAULT_LANGUAGE, ()) if context.languages else ())
        texts = [entry["value"] for entry in entries]
        text = label["value"] if label else None
        if not all(isinstance(name, str) for name in ([text] if label else []) + texts):
            raise ValueError(f"a name in {language!r} is not a text")
        if label or texts:
            yield language, text, texts


class _StatementReader:
    """A reader of the statements of an entity as facts."""

    def __init__(self, context: ReadContext, predicates: Sequence[str], best: bool, literals: bool) -> None:
        self._context = context
        self._best_rank_only = best
        self._text_datatypes = (*_TEXTS, *_LITERAL_TEXTS) if literals else _TEXTS
        self._selected = frozenset(predicates)
        numbers = "|".join(predicate[1:] for predicate in predicates)
        self._property_pattern = re.compile(f'P(?:{numbers})"'.encode()) if numbers else None

    def may_match(self, line: bytes) -> bool:
        """Check quickly, without parsing, whether a line may mention a selected property."""
        return self._property_pattern is None or self._property_pattern.search(line) is not None

    def read(self, entity: Mapping[str, Any], where: str) -> list[_Fact]:
        """Return the facts of an entity for the selected properties; other values are counted as skipped."""
        facts = []
        for predicate, statements in (entity.get("claims") or {}).items():
            if self._selected and predicate not in self._selected:
                continue
            current = [statement for statement in statements if statement["rank"] != "deprecated"]
            self._context.count_skipped("deprecated statements", len(statements) - len(current))
            preferred = (
                [statement for statement in current if statement["rank"] == "preferred"] if self._best_rank_only else []
            )
            if preferred:
                self._context.count_skipped("statements below the best rank", len(current) - len(preferred))
            for statement in preferred or current:
                value = self._value(predicate, statement["mainsnak"])
                if isinstance(value, str):
                    self._context.count_skipped(value)
                elif fact := self._fact(entity["id"], predicate, value, statement, where):
                    facts.append(fact)
        return facts

    def _value(self, predicate: str, snak: Mapping[str, Any]) -> _Value | str:
        """Return the value of a statement, or the name under which the statement is counted as skipped."""
        if snak["snaktype"] != "value":
            return "unknown or missing values"
        kind, value = snak["datavalue"]["type"], snak["datavalue"]["value"]
        # Old dumps and some exports lack the datatype of a snak.
        datatype = snak.get("datatype") or kind
        if kind == "wikibase-entityid":
            name = _entity_name(value)
            return _Value(name) if _ENTITY.fullmatch(name) else f"values of kind {datatype}"
        if kind == "quantity":
            amount = float(value["amount"])
            if not math.isfinite(amount):
                raise ValueError(f"the amount {value['amount']!r} of {predicate} is not finite")
            unit = None if value["unit"] == "1" else short_name(value["unit"])
            return _Value(value=amount, unit=unit)
        if kind == "time":
            time = _parse_time(value)
            return _Value(f'"{time}"', julian=_is_julian(value)) if time else "dates coarser than a year"
        if predicate in _EQUIVALENCE_LINKS and datatype in ("url", "string"):
            return _Value(short_name(value))
        if datatype not in self._text_datatypes:
            return f"values of kind {datatype}"
        if kind == "string":
            return _Value(f'"{value}"')
        if not self._context.wants_language(value["language"]):
            return "texts in other languages"
        return _Value(f'"{value["text"]}"@{value["language"]}')

    def _fact(
        self, subject: str, predicate: str, value: _Value, statement: Mapping[str, Any], where: str
    ) -> _Fact | None:
        details = {}
        if statement["rank"] == "preferred":
            details["rank"] = "preferred"
        if references := statement.get("references"):
            details["references"] = str(len(references))
        if value.julian:
            details["calendar"] = "julian"
        qualifiers = statement.get("qualifiers")
        if not qualifiers:
            return _Fact(predicate, value, None, None, details)
        times = {qualifier: self._times(qualifiers.get(qualifier, ())) for qualifier in (_START, _END, _POINT)}
        has_span = bool(times[_START] or times[_END])
        start, end = (next(iter(times[qualifier if has_span else _POINT]), None) for qualifier in (_START, _END))
        if start and end and starts_after(start, end):
            self._context.reject(where, f'end {end} is before start {start} for "{subject} {predicate}"')
            return None
        time_qualifiers = (_START, _END) if has_span else (_POINT,)
        for qualifier, snaks in qualifiers.items():
            if qualifier in time_qualifiers and any(_is_julian(_snak_value(snak)) for snak in snaks):
                details["calendar"] = "julian"
            # A statement with several starts or ends keeps all of them as details.
            if qualifier not in time_qualifiers or len(times[qualifier]) != 1:
                texts = [text for snak in snaks if (text := _qualifier_text(snak))]
                if texts:
                    details[qualifier] = "|".join(texts)
        return _Fact(predicate, value, start, end, details)

    def _times(self, snaks: Any) -> list[str]:
        values = [_snak_value(snak) for snak in snaks]
        times = [_parse_time(value) for value in values if value]
        self._context.count_skipped("dates of qualifiers coarser than a year", times.count(None))
        return [time for time in times if time]


def _snak_value(snak: Mapping[str, Any]) -> Any:
    return snak["datavalue"]["value"] if snak["snaktype"] == "value" else None


def _entity_name(value: Mapping[str, Any]) -> str:
    if "id" in value:
        return str(value["id"])
    # Dumps up to 2017 have numbers only.
    return {"item": "Q", "property": "P", "lexeme": "L"}[value["entity-type"]] + str(value["numeric-id"])


def _is_julian(value: Any) -> bool:
    return bool(value) and str(value.get("calendarmodel", "")).endswith(_JULIAN)


def _parse_time(value: Mapping[str, Any]) -> str | None:
    """Return a date up to its precision; None if it is coarser than a year."""
    if value["precision"] < YEAR_PRECISION:
        return None
    match = _TIME.match(value["time"])
    if not match or not int(match[2]):
        raise ValueError(f"{value['time']!r} is not a date")
    sign, year, month, day = match.groups()
    return date_text(sign, year, month, day, value["precision"], julian=_is_julian(value))


def _qualifier_text(snak: Mapping[str, Any]) -> str:
    """Return the value of a qualifier as text; empty for coordinates and for dates coarser than a year."""
    if snak["snaktype"] != "value":
        return "unknown" if snak["snaktype"] == "somevalue" else "none"
    kind, value = snak["datavalue"]["type"], snak["datavalue"]["value"]
    if kind == "wikibase-entityid":
        return _entity_name(value)
    if kind == "quantity":
        amount = value["amount"].removeprefix("+")
        return amount if value["unit"] == "1" else f"{amount} {short_name(value['unit'])}"
    if kind == "time":
        return _parse_time(value) or ""
    if kind == "monolingualtext":
        return str(value["text"])
    return value if isinstance(value, str) else ""
