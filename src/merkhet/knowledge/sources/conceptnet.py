"""Source for ConceptNet assertions (5.7, CSV), with weight and licence."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from merkhet.core.strict_json import decode_json
from merkhet.knowledge.chunk import Chunk, ChunkBuilder
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext, read_lines

_CONCEPT = "/c/"
_RELATION = "/r/"
_SURFACE = "surfaceText"
SURFACE = "surface"
"""Name of the detail with the surface text of a fact as a template."""
_MARKED = re.compile(r"\[\[(.*?)\]\]")


def read_assertions(path: Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield the facts and names of an assertions file such as ``conceptnet-assertions-5.7.0.csv.gz``.

    A line has five cells: the URIs of the assertion, its relation, its start and end concept, and JSON. The id of a
    concept is its URI without ``/c/``: ``en/cat``, or ``en/cat/n/wn/animal`` for a word sense. The name of a concept is
    its word (``cat``) in the language of the URI. The predicate is the relation without ``/r/``; predicates may be
    selected with or without ``/r/``. Weight, dataset and licence become details, and so does the surface text, such as
    "[[a cat]] is a kind of [[an animal]]", if its marked phrases are the words of the two concepts: the start concept
    is then marked ``{subject}`` and the end ``{object}``, with their forms (``{a subject} is a kind of {a object}``).

    Both concepts must be in the selected languages; with the option ``across=yes``, one concept is enough. The option
    ``weight`` sets the minimum weight. Assertions with a lower weight, and assertions that do not link two concepts
    (/r/ExternalURL), are counted as skipped. A line without five cells, with invalid JSON, or with a missing or
    negative weight is a bad row.
    """
    context.check_options("across", "weight")
    across, minimum = context.choice("across", "no", "yes") == "yes", context.number("weight", 0)
    relations = {name.removeprefix(_RELATION) for name in context.predicates}
    builder, named = ChunkBuilder("conceptnet"), set[str]()
    for number, line in read_lines(path, context):
        if not line:
            continue
        where = f"{path}:{number}"
        cells = line.split("\t")
        if len(cells) != 5 or not cells[1].startswith(_RELATION):
            context.reject(where, "five cells are expected (assertion, /r/Relation, start, end, JSON)")
            continue
        _, relation, start, end, info = cells
        predicate = relation[len(_RELATION) :]
        if relations and predicate not in relations:
            continue
        if not (start.startswith(_CONCEPT) and end.startswith(_CONCEPT)):
            context.count_skipped("assertions that do not link two concepts, such as external links")
            continue
        if not _languages_match(start, end, across, context):
            continue
        try:
            weight, details = _parse_info(info)
            ends = [_parse_concept(uri) for uri in (start, end)]
        except ValueError as error:
            context.reject(where, str(error))
            continue
        if weight < minimum:
            context.count_skipped(f"assertions with a weight below {minimum:g}")
            continue
        (subject, subject_label, _), (object_, object_label, _) = ends
        surface = surface_template(text, subject_label, object_label) if (text := details.pop(_SURFACE, "")) else None
        if surface:
            details[SURFACE] = surface
        builder.add_fact(where, subject, predicate, object_, details=details)
        for entity, label, language in ends:
            # A name is added once per chunk: a set of all concepts would need too much memory.
            if entity not in named:
                named.add(entity)
                builder.add_name(entity, label, language)
        if len(builder) >= ROWS_IN_CHUNK:
            named.clear()
            yield builder.flush()
    if len(builder):
        yield builder.flush()


def _languages_match(start: str, end: str, across: bool, context: ReadContext) -> bool:
    if not context.languages:
        return True
    matches = [uri.split("/", 3)[2] in context.languages for uri in (start, end)]
    if any(matches) and not all(matches) and not across:
        context.count_skipped("assertions across languages (across=yes keeps them)")
    return any(matches) if across else all(matches)


def _parse_info(text: str) -> tuple[float, dict[str, str]]:
    """Parse the JSON of an assertion; return its weight and details.

    Raises:
        ValueError: The JSON, the weight, the dataset or the licence is invalid.
    """
    try:
        info = decode_json(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON ({error})") from error
    weight = info.get("weight") if isinstance(info, dict) else None
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
        raise ValueError("the JSON has no 'weight' that is a number")
    if weight < 0:
        raise ValueError(f"the weight {weight} is negative")
    details = {name: str(info[name]) for name in ("dataset", "license") if info.get(name)}
    if not "".join(details.values()).isascii():
        raise ValueError("the dataset or the license is not ASCII text")
    surface = {_SURFACE: info[_SURFACE]} if isinstance(info.get(_SURFACE), str) else {}
    return weight, {"weight": str(weight), **details, **surface}


def surface_template(text: str, subject: str, object_: str) -> str | None:
    """Turn a surface text into a template such as ``{a subject} is a kind of {a object}``.

    Returns:
        None unless the text marks two phrases that are the labels of the concepts, with an article at most.
    """
    parts = _MARKED.split(text.strip())
    if len(parts) != 5 or any(mark in part for part in parts[::2] for mark in "[]{}*"):
        return None
    before, first, between, second, after = parts
    labels = {"subject": subject, "object": object_}
    for first_field, second_field in (("subject", "object"), ("object", "subject")):
        one = _placeholder(first, first_field, labels[first_field])
        other = _placeholder(second, second_field, labels[second_field])
        if one and other:
            return f"{before}{one}{between}{other}{after}"
    return None


def _placeholder(phrase: str, field: str, label: str) -> str | None:
    """Return the placeholder that stands for a marked phrase; None if the phrase is not the label."""
    article, _, rest = phrase.strip().partition(" ")
    if phrase.strip().casefold() == label.casefold():
        return f"{{{field}}}"
    if rest.casefold() == label.casefold() and article.lower() in ("a", "an", "the"):
        return f"the {{{field}}}" if article.lower() == "the" else f"{{a {field}}}"
    return None


def _parse_concept(uri: str) -> tuple[str, str, str]:
    """Return the id, word and language of the concept with a given URI."""
    entity = uri[len(_CONCEPT) :].rstrip("/")
    language, _, rest = entity.partition("/")
    label = rest.partition("/")[0].replace("_", " ").strip()
    if not language or not label:
        raise ValueError(f"{uri!r} is not a concept such as /c/en/cat")
    return entity, label, language
