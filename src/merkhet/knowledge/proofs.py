"""Proof trees that derive inferred facts from stated facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.knowledge.store import KnowledgeBase

_MAX_LISTED = 12


@dataclass(frozen=True)
class Proof:
    """A fact with the proofs of its premises; a stated fact has no premises."""

    fact: Mapping[str, Any]
    premises: tuple[Proof, ...] = ()
    repeated: bool = field(default=False, compare=False)
    """Whether the tree already proves this fact at an earlier position."""

    @property
    def rule(self) -> str | None:
        """The rule that inferred the fact; None for a stated fact."""
        rule: str | None = self.fact["rule"]
        return rule

    def as_dict(self) -> dict[str, Any]:
        """Return the proof tree as nested dictionaries for JSON."""
        tree: dict[str, Any] = {}
        pending = [(self, tree)]
        while pending:
            proof, row = pending.pop()
            row |= {key: value for key, value in proof.fact.items() if value is not None and key != "premises"}
            if proof.premises:
                row["premises"] = [{} for _ in proof.premises]
                pending += zip(proof.premises, row["premises"], strict=True)
        return tree


def find_facts(knowledge: KnowledgeBase, words: Sequence[str]) -> list[dict[str, Any]]:
    """Find facts by id or id prefix, or by the ids or names of subject, predicate and object.

    ``words`` is one fact id, one text ``subject|predicate|object``, or three texts.

    Raises:
        InputError: No fact matches, or several facts match an id prefix.
    """
    if len(words) == 1 and words[0].startswith("f_") and "|" not in words[0]:
        return _find_by_id(knowledge, words[0])
    parts = [part.strip() for part in words[0].split("|")] if len(words) == 1 else list(words)
    if len(parts) != 3:
        raise InputError(
            "a fact is named by its id, or by subject, predicate and object: "
            "merkhet knowledge explain KB Berlin 'capital of' Germany"
        )
    subject, predicate, object = (_matching_entities(knowledge, part) for part in parts)
    rows: list[dict[str, Any]] = knowledge.query(
        "select * from facts where list_contains($s, subject) and list_contains($p, predicate) "
        "and (list_contains($o, object) or list_contains($o, value::varchar) or object = '\"' || $text || '\"' "
        "or value = try_cast($text as double)) order by fact_id",
        {"s": subject, "p": predicate, "o": object, "text": parts[2]},
    ).to_pylist()
    if rows:
        return rows
    reason = _explain_no_match(knowledge, subject, predicate, parts)
    raise InputError(f"{' · '.join(parts)} is neither stated nor inferred here; {reason}")


def prove(knowledge: KnowledgeBase, fact: Mapping[str, Any]) -> Proof:
    """Build the proof tree of a fact; a fact that occurs repeatedly is proved only at its first position.

    The function is iterative because proofs may be deeper than Python's recursion limit.

    Raises:
        InputError: A premise is missing from the knowledge base.
    """
    facts = _fetch_proof_facts(knowledge, fact)
    order: list[tuple[Mapping[str, Any], bool, int]] = []  # Fact, whether it is repeated, depth.
    pending, seen = [(fact, 0)], set()
    while pending:
        node, depth = pending.pop()
        repeated = node["rule"] is not None and node["fact_id"] in seen
        seen.add(node["fact_id"])
        order.append((node, repeated, depth))
        if not repeated:
            pending += [(facts[key], depth + 1) for key in reversed(_premises(node))]
    proofs_at: dict[int, list[Proof]] = {}
    for node, repeated, depth in reversed(order):
        premises = tuple(reversed(proofs_at.pop(depth + 1, [])))
        proofs_at.setdefault(depth, []).append(Proof(node, premises, repeated))
    return proofs_at[0][0]


def _fetch_proof_facts(knowledge: KnowledgeBase, fact: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Fetch all facts of a proof, one query for each level of the tree; return them by id."""
    facts: dict[str, Mapping[str, Any]] = {fact["fact_id"]: fact}
    missing = set(_premises(fact)) - set(facts)
    while missing:
        rows = knowledge.query("select * from facts where fact_id in (select unnest($ids))", {"ids": sorted(missing)})
        fetched = {row["fact_id"]: row for row in rows.to_pylist()}
        absent = sorted(missing - set(fetched))
        if absent:
            raise InputError(
                f"premise {absent[0]} is missing from the knowledge base; infer again: merkhet knowledge infer KB"
            )
        facts |= fetched
        missing = {key for row in fetched.values() for key in _premises(row)} - set(facts)
    return facts


def _premises(fact: Mapping[str, Any]) -> list[str]:
    return list(fact["premises"] or []) if fact["rule"] is not None else []


def format_proof(proof: Proof, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a proof tree: one fact per line, premises below their conclusion."""
    yield _line(proof, labels)
    pending = _branches(proof, "")
    while pending:
        node, indent, last = pending.pop()
        yield f"{indent}{'└─ ' if last else '├─ '}{_line(node, labels)}"
        pending += _branches(node, indent + ("   " if last else "│  "))


def _branches(proof: Proof, indent: str) -> list[tuple[Proof, str, bool]]:
    """Return the premises in reverse order, each with its indent and whether it is the last premise."""
    return [(premise, indent, position == 0) for position, premise in enumerate(reversed(proof.premises))]


def _line(proof: Proof, labels: Mapping[str, str]) -> str:
    fact = proof.fact
    if proof.repeated:
        origin = "as above"
    elif proof.rule:
        origin = f"by {proof.rule}"
    else:
        origin = f"stated: {fact['source']}" if fact["source"] else "stated"
    return f"{format_fact(fact, labels)}   [{origin}]"


def format_fact(fact: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Format a fact with its start and end; entities without a label are shown by id."""
    if fact["object"] is not None:
        object_ = labels.get(fact["object"], fact["object"])
    else:
        object_ = f"{fact['value']:.15g}" + (f" {labels.get(fact['unit'], fact['unit'])}" if fact["unit"] else "")
    words = " · ".join(
        [labels.get(fact["subject"], fact["subject"]), labels.get(fact["predicate"], fact["predicate"]), object_]
    )
    if fact["start"] or fact["end"]:
        words += f"  ({fact['start'] or '…'} – {fact['end'] or '…'})"
    return words


def proof_labels(knowledge: KnowledgeBase, proof: Proof, language: str) -> dict[str, str]:
    """Return the labels of the entities in a proof; entities without a label in ``language`` are left out."""
    entities: set[str] = set()
    pending = [proof]
    while pending:
        node = pending.pop()
        entities.update(str(node.fact[key]) for key in ("subject", "predicate", "object", "unit") if node.fact[key])
        pending += node.premises
    rows = knowledge.query(
        "select entity, label from names where language = $l and list_contains($e, entity)",
        {"l": language, "e": sorted(entities)},
    ).to_pylist()
    return {row["entity"]: row["label"] for row in rows}


def _find_by_id(knowledge: KnowledgeBase, prefix: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = knowledge.query(
        "select * from facts where starts_with(fact_id, $id) order by fact_id limit 20", {"id": prefix}
    ).to_pylist()
    if not rows:
        raise InputError(f"there is no fact with the id {prefix}; name its subject, predicate and object instead")
    if len(rows) > 1:
        ids = ", ".join(row["fact_id"] for row in rows[:_MAX_LISTED]) + (", …" if len(rows) > _MAX_LISTED else "")
        raise InputError(f"several facts have an id that begins with {prefix}: {ids}; write the whole id")
    return rows


def _matching_entities(knowledge: KnowledgeBase, words: str) -> list[str]:
    rows = knowledge.query(
        "select entity from names where label = $w or list_contains(aliases, $w) order by entity", {"w": words}
    ).to_pylist()
    return [words, *[row["entity"] for row in rows]]


def _explain_no_match(knowledge: KnowledgeBase, subject: list[str], predicate: list[str], parts: Sequence[str]) -> str:
    predicates = knowledge.query(
        "select distinct predicate from facts where list_contains($s, subject) order by predicate", {"s": subject}
    )["predicate"].to_pylist()
    if not predicates:
        return f"there is no fact about {parts[0]!r}"
    if not set(predicate) & set(predicates):
        return f"{parts[0]!r} has no predicate {parts[1]!r}; {did_you_mean(parts[1], predicates)}"
    objects = knowledge.query(
        "select distinct coalesce(object || coalesce(' (' || label || ')', ''), value::varchar) as o from facts "
        "left join names on entity = object and language = 'en' and label != object "
        "where list_contains($s, subject) and list_contains($p, predicate) order by o",
        {"s": subject, "p": predicate},
    )["o"].to_pylist()
    listed = ", ".join(objects[:_MAX_LISTED]) + (
        f" and {len(objects) - _MAX_LISTED} more" if len(objects) > _MAX_LISTED else ""
    )
    return f"objects of {parts[0]!r} by {parts[1]!r}: {listed}"
