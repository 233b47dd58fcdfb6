"""Source for temporal facts encoded as numbers, the format of YAGO11k and Wikidata12k."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from merkhet.core.dates import date_problem
from merkhet.core.errors import InputError
from merkhet.core.text import counted
from merkhet.knowledge.chunk import Chunk, ChunkBuilder, Predicate
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext, read_lines

SPLITS = ("train", "valid", "test")
_DATE = re.compile(r"(-?)([0-9#]+)-([0-9#]{2})-([0-9#]{2})")
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def read_quadruples(folder: Path, context: ReadContext) -> Iterator[Chunk]:
    r"""Yield the facts of train.txt, valid.txt and test.txt, and the names of their entities.

    A line has five cells: the numbers of subject, relation and object, the start and the end. The dictionaries
    ``entity2id.txt`` and ``relation2id.txt`` have lines with ``<Name>``, a tab and the number. The id of an entity is
    its name without the angle brackets. Its label, in English, is the name with decoded escapes (``\u0022``, ``%22``)
    and spaces for underscores. The name of the file (``train``) becomes the detail ``split`` of its facts.

    A date has ``#`` for unknown digits: ``1986-##-##`` is a year, ``####-##-##`` is an unknown date. A date coarser
    than a year (``19##-##-##``) is counted as skipped, but its fact is kept. A fact with an unknown number, an invalid
    date, or an end before its start is a bad row. There are no options.
    """
    context.check_options()
    files = [folder / f"{split}.txt" for split in SPLITS]
    if not any(file.is_file() for file in files):
        raise InputError(f"{folder} holds no facts; there should be train.txt, valid.txt or test.txt")
    entities = _read_dictionary(folder / "entity2id.txt", context)
    relations = _read_dictionary(folder / "relation2id.txt", context)
    declared = {
        name: Predicate(name, _WORD_BOUNDARY.sub(" ", _decode_label(name)).lower()) for name in relations.values()
    }
    yield Chunk(predicates={name: predicate for name, predicate in declared.items() if context.wants_predicate(name)})
    builder = ChunkBuilder(folder.name)
    if context.wants_language("en"):
        for entity in entities.values():
            builder.add_name(entity, _decode_label(entity))
            if len(builder) >= ROWS_IN_CHUNK:
                yield builder.flush()
    for file in files:
        for number, line in read_lines(file, context) if file.is_file() else ():
            if line.strip():
                _add_fact(builder, context, f"{file}:{number}", line.split("\t"), entities, relations, file.stem)
            if len(builder) >= ROWS_IN_CHUNK:
                yield builder.flush()
    if len(builder):
        yield builder.flush()


def starts_after(start: str, end: str) -> bool:
    """Check whether ``start`` is after ``end``, compared at the coarser precision: 1957 is not after 1957-03."""
    pairs = list(zip(_time_parts(start), _time_parts(end), strict=False))
    return [first for first, _ in pairs] > [second for _, second in pairs]


def _time_parts(time: str) -> list[int]:
    year, *rest = time.lstrip("-").split("-")
    return [-int(year) if time.startswith("-") else int(year), *map(int, rest)]


def _read_dictionary(path: Path, context: ReadContext) -> dict[str, str]:
    names: dict[str, str] = {}
    for number, line in read_lines(path, context):
        cells = line.split("\t")
        name = cells[0].strip().removeprefix("<").removesuffix(">")
        key = cells[1].strip() if len(cells) > 1 else ""
        if not line.strip():
            continue
        if not name or not key.isdecimal():
            context.reject(f"{path}:{number}", f"expected a name, a tab and a number, got {line[:60]!r}")
        elif names.get(key, name) != name:
            context.reject(f"{path}:{number}", f"{key} is the number of both {names[key]!r} and {name!r}")
        else:
            names[key] = name
    return names


def _add_fact(
    builder: ChunkBuilder,
    context: ReadContext,
    where: str,
    cells: list[str],
    entities: dict[str, str],
    relations: dict[str, str],
    split: str,
) -> None:
    if len(cells) != 5:
        context.reject(where, f"expected subject, relation, object, start and end, got {counted(len(cells), 'cell')}")
        return
    subject, relation, object_, *dates = (cell.strip() for cell in cells)
    unknown = next((key for key in (subject, object_) if key not in entities), None)
    if unknown is not None or relation not in relations:
        kind, key = ("relation", relation) if unknown is None else ("entity", unknown)
        context.reject(where, f"there is no {kind} {key!r} in {kind}2id.txt")
        return
    predicate = relations[relation]
    if not context.wants_predicate(predicate):
        return
    try:
        start, end = (_parse_date(date, context) for date in dates)
    except ValueError as error:
        context.reject(where, str(error))
        return
    if start and end and starts_after(start, end):
        statement = f"{entities[subject]} {predicate} {entities[object_]}"
        context.reject(where, f'end {end} is before start {start} for "{statement}"')
        return
    builder.add_fact(
        where, entities[subject], predicate, entities[object_], start=start, end=end, details={"split": split}
    )


def _parse_date(date: str, context: ReadContext) -> str | None:
    """Return the known part of a date (1986 for ``1986-##-##``); None if the year is unknown or incomplete."""
    match = _DATE.fullmatch(date)
    if not match:
        raise ValueError(f"{date!r} is not a date such as 1986-##-## or 1986-05-23")
    sign, year, month, day = match.groups()
    if not year.strip("#"):
        return None
    if "#" in year:
        context.count_skipped("dates coarser than a year")
        return None
    time = f"{sign}{int(year):04d}"
    if "#" in month:
        return time
    problem = date_problem(int(year), month, None if "#" in day else day, before_christ=bool(sign))
    if problem:
        raise ValueError(f"{date!r} is not a valid date: {problem}")
    return f"{time}-{month}" if "#" in day else f"{time}-{month}-{day}"


def _decode_label(name: str) -> str:
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)
    with suppress(UnicodeDecodeError):
        text = unquote(text, errors="strict")
    return text.replace("_", " ").strip()
