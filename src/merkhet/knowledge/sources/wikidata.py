"""Wikidata's JSON dump, one entity a line: statements as facts, labels and aliases as names."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from merkhet.core.errors import InputError, did_you_mean
from merkhet.knowledge._iris import short_name
from merkhet.knowledge.chunk import Chunk, ChunkBuilder
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext, read_blocks
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
_YEAR, _MONTH, _DAY = 9, 10, 11
# Links to the same class or property elsewhere: part of the ontology, and so IRIs rather than texts.
_LINKS = ("P1628", "P1709", "P2235", "P2236")
_TEXTS = ("string", "monolingualtext")
_MORE_TEXTS = ("external-id", "url")
# What every language falls back to; a name that is the same everywhere stands only there.
_ANY_LANGUAGE = "mul"


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


def read_dump(place: Path, context: ReadContext) -> Iterator[Chunk]:
    """Facts and names of a dump (.json, or one entity a line without the brackets; .gz, .bz2 or .zst of it).

    Entities and predicates are known by their ids (Q42, P39, L7). Values that are entities become objects, quantities
    a value and the id of its unit, dates a quoted text at their precision (``"1957-03-15"``), texts ``"text"`` or
    ``"texte"@fr``, and links to the same class or property elsewhere (P1628, P1709) the name of that IRI. The
    qualifiers P580 and P582, or else P585 for both, become start and end; the other qualifiers, the rank if preferred
    and the number of references are kept with the fact. Years BC are as Wikidata writes them: -0043 is 43 BC.

    Left out and counted: deprecated statements, values that are unknown or none, dates coarser than a year,
    coordinates, media, and, unless ``literals=yes``, URLs and external ids. Refused: a line that is no entity, an end
    before its start. A dump that ends early is refused with ``skip_bad`` too. Options:

    * ``rank=best`` keeps only the preferred statements where a property of an entity has any (``all``: both);
    * ``names=used`` gives names only for entities that a kept fact speaks of, as subject, predicate, object or unit:
      the file is read twice and the ids of these are held in memory. ``names=all`` (the default) gives those of every
      entity in the file: right for a slice, and much for a full dump of which some predicates are wanted;
    * ``literals=yes`` keeps URLs and external ids too.

    A language that was asked for and in which an entity has no label gets the one for all languages (``mul``).
    """
    context.check_options(*_OPTIONS)
    chosen = {name: context.option(name, known[0]) for name, known in _OPTIONS.items()}
    for name, given in chosen.items():
        if given not in _OPTIONS[name]:
            raise InputError(f"the option {name!r} cannot be {given!r}; {did_you_mean(given, _OPTIONS[name])}")
    for predicate in context.predicates:
        if not _PROPERTY.fullmatch(predicate):
            raise InputError(f"{predicate!r} is no property of Wikidata; say its id, such as P39")
    statements = _Statements(context, best=chosen["rank"] == "best", literals=chosen["literals"] == "yes")
    builder = ChunkBuilder("wikidata")
    used: set[str] | None = set() if chosen["names"] == "used" else None
    for number, line in _entity_lines(place, context):
        where = f"{place}:{number}"
        wanted = statements.may_be_in(line)
        if not wanted and used is not None:
            continue
        try:
            entity = _parse(line) if wanted else _parse_names(line)
            subject = _known_id(entity)
            facts = statements.of(entity, where) if wanted else []
            names = list(_names(entity, context)) if used is None else []
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            context.reject(where, _reason(error))
            continue
        for one in facts:
            object_, value, unit, _ = one.value
            builder.add_fact(
                where,
                subject,
                one.predicate,
                object_,
                value=value,
                unit=unit,
                start=one.start,
                end=one.end,
                details=one.details,
            )
            if used is not None:
                spoken_of = (subject, one.predicate, object_, unit)
                used.update(name for name in spoken_of if name and _ENTITY.fullmatch(name))
        for language, label, aliases in names:
            builder.add_name(subject, label, language, aliases)
        if len(builder) >= ROWS_IN_CHUNK:
            yield builder.flush()
    if used:
        yield from _names_of(used, place, context, builder)
    if len(builder):
        yield builder.flush()


def _names_of(used: set[str], place: Path, context: ReadContext, builder: ChunkBuilder) -> Iterator[Chunk]:
    again = ReadContext(languages=context.languages, skip_bad=True, progress=context.progress)
    for _, line in _entity_lines(place, again):
        found = _ID.search(line.partition(_CLAIMS)[0])
        if found and found[1].decode() not in used:
            continue
        try:
            entity = _parse_names(line)
            if _known_id(entity) not in used:
                continue
            names = list(_names(entity, context))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # It was refused or counted when its statements were read.
            continue
        for language, label, aliases in names:
            builder.add_name(entity["id"], label, language, aliases)
        if len(builder) >= ROWS_IN_CHUNK:
            yield builder.flush()


def _entity_lines(path: Path, context: ReadContext) -> Iterator[tuple[int, bytes]]:
    """The lines that hold entities, without the comma at their end; refuses a dump without its closing bracket."""
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
                # One line behind: where a dump ends early, its last line is no bad row but the place of the break.
                if last:
                    yield last
                last = number, line
    if is_open:
        raise InputError(
            f"{path}: the dump ends early, at line {last[0] if last else 1}: there is no ']' at its end. "
            "Nothing was imported. Fetch it anew."
        )
    if last:
        yield last


def _parse(line: bytes) -> Any:
    entity = json.loads(line.decode())
    if b"\\ud" in line.lower() and _LONE_SURROGATE.search(line):
        json.dumps(entity, ensure_ascii=False).encode()
    return entity


def _parse_names(line: bytes) -> Any:
    """The entity, without its statements where these come after the names, as they do in a dump."""
    head, found, _ = line.partition(_CLAIMS)
    if found and line.endswith(b"}"):
        try:
            entity = _parse(head.rstrip(b", \t") + b"}")
            if "id" in entity and "labels" in entity and "aliases" in entity:
                return entity
        except ValueError:
            pass
    return _parse(line)


def _known_id(entity: Any) -> str:
    if not isinstance(entity, dict) or not isinstance(entity.get("id"), str):
        raise ValueError("the line is no entity with an id")
    name: str = entity["id"]
    if not _ENTITY.fullmatch(name):
        raise ValueError(f"{name!r} is no id of an item, a property or a lexeme")
    return name


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg} at column {error.colno})"
    if isinstance(error, UnicodeDecodeError):
        return f"the text is not UTF-8 (byte {error.start + 1} of the line)"
    if isinstance(error, UnicodeEncodeError):
        return "the text holds half of a character"
    if type(error) is ValueError:
        return str(error)
    return f"the entity is not as a dump has it ({type(error).__name__}: {error})"


def _names(entity: Mapping[str, Any], context: ReadContext) -> Iterator[tuple[str, str | None, list[str]]]:
    # What is empty is written as [] in the dump, and lexemes have lemmas.
    labels = entity.get("labels") or entity.get("lemmas") or {}
    aliases = entity.get("aliases") or {}
    for language in context.languages or dict.fromkeys((*labels, *aliases)):
        label = labels.get(language) or (labels.get(_ANY_LANGUAGE) if context.languages else None)
        others = aliases.get(language) or (aliases.get(_ANY_LANGUAGE, ()) if context.languages else ())
        texts = [one["value"] for one in others]
        text = label["value"] if label else None
        if not all(isinstance(one, str) for one in ([text] if label else []) + texts):
            raise ValueError(f"a name in {language!r} is no text")
        if label or texts:
            yield language, text, texts


class _Statements:
    """The facts that an entity's statements say, of the kinds that were asked for."""

    def __init__(self, context: ReadContext, best: bool, literals: bool) -> None:
        self._context = context
        self._best = best
        self._texts = (*_TEXTS, *_MORE_TEXTS) if literals else _TEXTS
        self._wanted = frozenset(context.predicates)
        numbers = "|".join(predicate[1:] for predicate in context.predicates)
        self._mark = re.compile(f'P(?:{numbers})"'.encode()) if numbers else None

    def may_be_in(self, line: bytes) -> bool:
        """Whether a wanted property is named anywhere in the line: quick, and enough to leave out most lines."""
        return self._mark is None or self._mark.search(line) is not None

    def of(self, entity: Mapping[str, Any], where: str) -> list[_Fact]:
        """All facts of the entity that were asked for; what is left out is counted."""
        facts = []
        for predicate, statements in (entity.get("claims") or {}).items():
            if self._wanted and predicate not in self._wanted:
                continue
            kept = [one for one in statements if one["rank"] != "deprecated"]
            self._context.count_skipped("deprecated statements", len(statements) - len(kept))
            preferred = [one for one in kept if one["rank"] == "preferred"] if self._best else []
            if preferred:
                self._context.count_skipped("statements below the best rank", len(kept) - len(preferred))
            for statement in preferred or kept:
                value = self._value(predicate, statement["mainsnak"])
                if isinstance(value, str):
                    self._context.count_skipped(value)
                elif fact := self._fact(entity["id"], predicate, value, statement, where):
                    facts.append(fact)
        return facts

    def _value(self, predicate: str, snak: Mapping[str, Any]) -> _Value | str:
        """What the statement says, or what kind of thing it is that is left out."""
        if snak["snaktype"] != "value":
            return "values that are unknown or none"
        kind, value = snak["datavalue"]["type"], snak["datavalue"]["value"]
        # Old dumps and some exports do not say the datatype of a snak.
        datatype = snak.get("datatype") or kind
        if kind == "wikibase-entityid":
            name = _entity_name(value)
            return _Value(name) if _ENTITY.fullmatch(name) else f"values of kind {datatype}"
        if kind == "quantity":
            amount = float(value["amount"])
            if not math.isfinite(amount):
                raise ValueError(f"the amount {value['amount']!r} of {predicate} is no number that can be compared")
            unit = None if value["unit"] == "1" else short_name(value["unit"])
            return _Value(value=amount, unit=unit)
        if kind == "time":
            time = _time(value)
            return _Value(f'"{time}"', julian=_is_julian(value)) if time else "dates coarser than a year"
        if predicate in _LINKS and datatype in ("url", "string"):
            return _Value(short_name(value))
        if datatype not in self._texts:
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
        held = {name: self._times(qualifiers.get(name, ())) for name in (_START, _END, _POINT)}
        has_span = bool(held[_START] or held[_END])
        start, end = (next(iter(held[name if has_span else _POINT]), None) for name in (_START, _END))
        if start and end and starts_after(start, end):
            self._context.reject(where, f'end {end} is before start {start} for "{subject} {predicate}"')
            return None
        spent = (_START, _END) if has_span else (_POINT,)
        for name, snaks in qualifiers.items():
            if name in spent and any(_is_julian(_content(snak)) for snak in snaks):
                details["calendar"] = "julian"
            # A second start of the same statement is kept beside the first rather than lost.
            if name not in spent or len(held[name]) != 1:
                texts = [text for snak in snaks if (text := _qualifier_text(snak))]
                if texts:
                    details[name] = "|".join(texts)
        return _Fact(predicate, value, start, end, details)

    def _times(self, snaks: Any) -> list[str]:
        values = [_content(snak) for snak in snaks]
        times = [_time(value) for value in values if value]
        self._context.count_skipped("dates coarser than a year, of qualifiers", times.count(None))
        return [time for time in times if time]


def _content(snak: Mapping[str, Any]) -> Any:
    return snak["datavalue"]["value"] if snak["snaktype"] == "value" else None


def _entity_name(value: Mapping[str, Any]) -> str:
    if "id" in value:
        return str(value["id"])
    # Dumps of 2017 and before have numbers only.
    return {"item": "Q", "property": "P", "lexeme": "L"}[value["entity-type"]] + str(value["numeric-id"])


def _is_julian(value: Any) -> bool:
    return bool(value) and str(value.get("calendarmodel", "")).endswith(_JULIAN)


def _time(value: Mapping[str, Any]) -> str | None:
    """A date at its precision; None for one coarser than a year."""
    if value["precision"] < _YEAR:
        return None
    found = _TIME.match(value["time"])
    if not found or not int(found[2]):
        raise ValueError(f"{value['time']!r} is no date")
    sign, year, month, day = found.groups()
    parts = [("-" if sign == "-" else "") + f"{int(year):04d}"]
    # 1957-00-00 is a year whatever precision stands beside it.
    if value["precision"] >= _MONTH and month != "00":
        parts.append(month)
        if value["precision"] >= _DAY and day != "00":
            parts.append(day)
    return "-".join(parts)


def _qualifier_text(snak: Mapping[str, Any]) -> str:
    """A qualifier's value as plain text; coordinates have none."""
    if snak["snaktype"] != "value":
        return "unknown" if snak["snaktype"] == "somevalue" else "none"
    kind, value = snak["datavalue"]["type"], snak["datavalue"]["value"]
    if kind == "wikibase-entityid":
        return _entity_name(value)
    if kind == "quantity":
        amount = value["amount"].removeprefix("+")
        return amount if value["unit"] == "1" else f"{amount} {short_name(value['unit'])}"
    if kind == "time":
        return _time(value) or ""
    if kind == "monolingualtext":
        return str(value["text"])
    return value if isinstance(value, str) else ""
