"""ConceptNet's assertions: the tab-separated file of ConceptNet 5, with a weight and a licence for every edge."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

from merkhet.core.errors import InputError
from merkhet.knowledge.chunk import Chunk, ChunkBuilder
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext, read_lines

_CONCEPT = "/c/"
_RELATION = "/r/"


def read_assertions(place: Path, context: ReadContext) -> Iterator[Chunk]:
    """Assertions of conceptnet-assertions-5.7.0.csv.gz: assertion, relation, start and end as URIs, then JSON.

    A concept's id is its URI without ``/c/``: ``en/cat``, and ``en/cat/n/wn/animal`` for a sense of it; its name is the
    word (``cat``) in the language of the URI. The predicate is the relation without ``/r/``, and may be asked for
    either way. Weight, dataset and licence are kept with the fact.

    Both ends must be in the languages asked for; with the option ``across=yes`` one is enough. The option ``weight``
    leaves out and counts what weighs less. Ends that are no concepts (/r/ExternalURL) are left out and counted.
    Refused are lines without five cells, JSON that is none, and weights that are missing or negative.
    """
    context.check_options("across", "weight")
    across, least = _across(context), _least_weight(context)
    wanted = {name.removeprefix(_RELATION) for name in context.predicates}
    builder, named = ChunkBuilder("conceptnet"), set[str]()
    for number, line in read_lines(place, context):
        if not line:
            continue
        where = f"{place}:{number}"
        cells = line.split("\t")
        if len(cells) != 5 or not cells[1].startswith(_RELATION):
            context.reject(where, "five cells are expected (assertion, /r/Relation, start, end, JSON)")
            continue
        _, relation, start, end, about = cells
        predicate = relation[len(_RELATION) :]
        if wanted and predicate not in wanted:
            continue
        if not (start.startswith(_CONCEPT) and end.startswith(_CONCEPT)):
            context.count_skipped("assertions about what is no concept, such as links to other sites")
            continue
        if not _wanted_languages(start, end, across, context):
            continue
        try:
            weight, details = _about(about)
            ends = [_concept(uri) for uri in (start, end)]
        except ValueError as error:
            context.reject(where, str(error))
            continue
        if weight < least:
            context.count_skipped(f"assertions that weigh less than {least:g}")
            continue
        (subject, *_), (object_, *_) = ends
        builder.add_fact(where, subject, predicate, object_, details=details)
        for entity, label, language in ends:
            # A concept has many assertions; its name is given once a chunk, so that no list of all concepts is kept.
            if entity not in named:
                named.add(entity)
                builder.add_name(entity, label, language)
        if len(builder) >= ROWS_IN_CHUNK:
            named.clear()
            yield builder.flush()
    if len(builder):
        yield builder.flush()


def _across(context: ReadContext) -> bool:
    given = context.option("across", "no")
    if given not in ("yes", "no"):
        raise InputError(f"the option 'across' is yes or no, and was given as {given!r}")
    return given == "yes"


def _least_weight(context: ReadContext) -> float:
    given = context.option("weight", "0")
    try:
        least = float(given)
    except ValueError:
        least = math.nan
    if not math.isfinite(least):
        raise InputError(f"the option 'weight' is a number such as 1.0, and was given as {given!r}")
    return least


def _wanted_languages(start: str, end: str, across: bool, context: ReadContext) -> bool:
    if not context.languages:
        return True
    wanted = [uri.split("/", 3)[2] in context.languages for uri in (start, end)]
    if any(wanted) and not all(wanted) and not across:
        context.count_skipped("assertions with one end in another language (across=yes keeps them)")
    return any(wanted) if across else all(wanted)


def _about(text: str) -> tuple[float, dict[str, str]]:
    """The weight, and the details kept with the fact; refuses JSON that does not say them."""
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON ({error})") from error
    weight = about.get("weight") if isinstance(about, dict) else None
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
        raise ValueError("the JSON has no 'weight' that is a number")
    if weight < 0:
        raise ValueError(f"the weight {weight} is negative")
    details = {name: str(about[name]) for name in ("dataset", "license") if about.get(name)}
    if not "".join(details.values()).isascii():
        raise ValueError("the dataset or the license is no plain name")
    return weight, {"weight": str(weight), **details}


def _concept(uri: str) -> tuple[str, str, str]:
    """A concept's id, its word and its language."""
    entity = uri[len(_CONCEPT) :].rstrip("/")
    language, _, rest = entity.partition("/")
    label = rest.partition("/")[0].replace("_", " ").strip()
    if not language or not label:
        raise ValueError(f"{uri!r} is no concept such as /c/en/cat")
    return entity, label, language
