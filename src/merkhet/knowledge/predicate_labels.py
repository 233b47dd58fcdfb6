"""Lookup of predicates by label: "birth place" stands for ``dbo:birthPlace`` if it is its label."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import duckdb

from merkhet.knowledge._iris import full_iri, predicate_spellings
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.source_reader import ReadContext


def find_predicates(connection: duckdb.DuckDBPyConnection, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Find the predicates of a knowledge base that each text stands for.

    Returns:
        The predicates of each text: those with this id, in any spelling; without any, those with this label or alias,
        regardless of case. A text that stands for none is mapped to itself.
    """
    rows = connection.execute(
        """select distinct predicate, null from facts union all
        select entity, unnest(list_prepend(label, coalesce(aliases, []))) from names
        where entity in (select predicate from facts)
        union all select name, label from predicates"""
    ).fetchall()
    ids = {name for name, label in rows if label is None}
    labels = [(name, label) for name, label in rows if label is not None and name in ids]
    return resolve_predicates(texts, ids, labels)


def resolve_predicates(
    texts: Iterable[str], ids: Iterable[str], labels: Iterable[tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    """Map each text to the predicates it stands for, given all ids, and pairs of id and label."""
    known = set(ids)
    by_label: dict[str, set[str]] = {}
    for name, label in labels:
        by_label.setdefault(_normalize(label), set()).add(name)
    found = {}
    for text in texts:
        named = sorted(known & predicate_spellings(text)) or sorted(by_label.get(_normalize(text), ()))
        found[text] = tuple(named) or (text,)
    return found


def find_terms(
    connection: duckdb.DuckDBPyConnection, predicates: Sequence[str], classes: Sequence[str]
) -> dict[str, str]:
    """Find the predicates and classes that the labels in a rules file stand for.

    An entity without facts other than its declaration can be a predicate, too: conclusions may have a new predicate.

    Returns:
        The id of each text that is no id in the facts, and the label of exactly one predicate or class.
    """
    texts = list(dict.fromkeys([*predicates, *classes]))
    used = {
        name
        for column in ("predicate", "subject", "object")
        for (name,) in connection.execute(
            f"select distinct {column} from facts where list_contains($texts, {column})", {"texts": texts}
        ).fetchall()
    }
    rows = connection.execute(
        r"""with told as (select subject, object from facts where not regexp_matches(predicate, '^(rdfs?|owl|skos):'))
        select entity, label, entity in (select subject from told) or entity in (select object from told) as is_told
        from names where list_contains(list_transform($texts, lambda t: lower(t)), lower(label))""",
        {"texts": texts},
    ).fetchall()
    new_predicates = [(entity, label) for entity, label, is_told in rows if not is_told]
    known = find_predicates(connection, predicates)
    by_kind = (
        (
            predicates,
            {**resolve_predicates(predicates, (), new_predicates), **{k: v for k, v in known.items() if v != (k,)}},
        ),
        (classes, resolve_predicates(classes, (), [(entity, label) for entity, label, _ in rows])),
    )
    found: dict[str, str] = {}
    for named, ids_by_text in by_kind:
        for text in named:
            ids = ids_by_text[text]
            if text not in used and len(ids) == 1 and ids[0] != text:
                found.setdefault(text, ids[0])
    return found


def select_by_label(context: ReadContext, read: Callable[[ReadContext], Iterator[Chunk]]) -> None:
    """Add to a context the ids of the predicates that it selects by label.

    The source is read once more for its names, if a selected predicate is not an IRI.

    Args:
        read: Function that reads the whole source.
    """
    texts = [text for text in context.predicates if full_iri(text) is None]
    if not texts:
        return
    wanted = {_normalize(text) for text in texts}
    ids: set[str] = set()
    labels: list[tuple[str, str]] = []
    for chunk in read(ReadContext(options=context.options, skip_bad=True)):
        ids.update(chunk.facts["predicate"].unique().to_pylist())
        labels += [(name, declared.label) for name, declared in chunk.predicates.items()]
        for row in chunk.names.select(["entity", "label", "aliases"]).to_pylist():
            named = (label for label in (row["label"], *(row["aliases"] or ())) if label)
            labels += [(row["entity"], label) for label in named if _normalize(label) in wanted]
    found = resolve_predicates(texts, ids, ((name, label) for name, label in labels if name in ids))
    context.predicate_ids |= {name for names in found.values() for name in names}


def humanize(name: str) -> str:
    """Return the words of a predicate's id: ``dbo:birthPlace`` is "birth place"."""
    local = re.split(r"[/#:]", name.rstrip("/#"))[-1]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-]+", " ", local).split()
    return " ".join(word if word.isupper() else word.lower() for word in words)


def _normalize(label: str) -> str:
    return " ".join(label.split()).casefold()
