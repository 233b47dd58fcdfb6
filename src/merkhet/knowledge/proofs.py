"""Why a fact holds: the tree from a conclusion down to what was stated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.knowledge.store import KnowledgeBase

_SHOWN = 12


@dataclass(frozen=True)
class Proof:
    """A fact with the rule it came by and the proofs of its premises; a stated fact has neither."""

    fact: Mapping[str, Any]
    premises: tuple[Proof, ...] = ()
    repeated: bool = field(default=False, compare=False)

    @property
    def rule(self) -> str | None:
        """The rule that gave it; None for what was stated."""
        rule: str | None = self.fact["rule"]
        return rule

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the fact, and its premises in the same form."""
        whole: dict[str, Any] = {}
        waiting = [(self, whole)]
        while waiting:
            proof, row = waiting.pop()
            row |= {key: value for key, value in proof.fact.items() if value is not None and key != "premises"}
            if proof.premises:
                row["premises"] = [{} for _ in proof.premises]
                waiting += zip(proof.premises, row["premises"], strict=True)
        return whole


def find_facts(knowledge: KnowledgeBase, words: Sequence[str]) -> list[dict[str, Any]]:
    """The facts that are meant: by id, the beginning of one, or subject, predicate and object as ids or names.

    Refuses words that fit no fact, saying which part is unknown.
    """
    if len(words) == 1 and words[0].startswith("f_") and "|" not in words[0]:
        return _by_id(knowledge, words[0])
    parts = [part.strip() for part in words[0].split("|")] if len(words) == 1 else list(words)
    if len(parts) != 3:
        raise InputError(
            "a fact is named by its id, or by subject, predicate and object: "
            "merkhet knowledge explain KB Berlin 'capital of' Germany"
        )
    subject, predicate, object = (_entities(knowledge, part) for part in parts)
    rows: list[dict[str, Any]] = knowledge.query(
        "select * from facts where list_contains($s, subject) and list_contains($p, predicate) "
        "and (list_contains($o, object) or list_contains($o, value::varchar) or object = '\"' || $text || '\"' "
        "or value = try_cast($text as double)) order by fact_id",
        {"s": subject, "p": predicate, "o": object, "text": parts[2]},
    ).to_pylist()
    if rows:
        return rows
    raise InputError(
        f"{' · '.join(parts)} is neither stated nor inferred here; {_hint(knowledge, subject, predicate, parts)}"
    )


def prove(knowledge: KnowledgeBase, fact: Mapping[str, Any]) -> Proof:
    """The proof of a fact; what occurs twice is proved at its first place.

    Refuses a proof of which a premise is gone. Proofs may be deep, so nothing here calls itself.
    """
    known = _needed(knowledge, fact)
    order: list[tuple[Mapping[str, Any], bool, int]] = []  # A fact, whether it stood before, and its depth.
    waiting, seen = [(fact, 0)], set()
    while waiting:
        one, depth = waiting.pop()
        repeated = one["rule"] is not None and one["fact_id"] in seen
        seen.add(one["fact_id"])
        order.append((one, repeated, depth))
        if not repeated:
            waiting += [(known[key], depth + 1) for key in reversed(_premises(one))]
    below: dict[int, list[Proof]] = {}
    for one, repeated, depth in reversed(order):
        premises = tuple(reversed(below.pop(depth + 1, [])))
        below.setdefault(depth, []).append(Proof(one, premises, repeated))
    return below[0][0]


def _needed(knowledge: KnowledgeBase, fact: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """All facts of a proof by their ids, fetched level by level."""
    known: dict[str, Mapping[str, Any]] = {fact["fact_id"]: fact}
    wanted = set(_premises(fact)) - set(known)
    while wanted:
        rows = knowledge.query("select * from facts where fact_id in (select unnest($ids))", {"ids": sorted(wanted)})
        found = {row["fact_id"]: row for row in rows.to_pylist()}
        gone = sorted(wanted - set(found))
        if gone:
            raise InputError(
                f"the premise {gone[0]} is gone from the knowledge base; infer anew: merkhet knowledge infer KB"
            )
        known |= found
        wanted = {key for row in found.values() for key in _premises(row)} - set(known)
    return known


def _premises(fact: Mapping[str, Any]) -> list[str]:
    return list(fact["premises"] or []) if fact["rule"] is not None else []


def format_proof(proof: Proof, labels: Mapping[str, str]) -> Iterator[str]:
    """The tree as text, one fact a line, premises below their conclusion."""
    yield _line(proof, labels)
    waiting = _branches(proof, "")
    while waiting:
        one, indent, last = waiting.pop()
        yield f"{indent}{'└─ ' if last else '├─ '}{_line(one, labels)}"
        waiting += _branches(one, indent + ("   " if last else "│  "))


def _branches(proof: Proof, indent: str) -> list[tuple[Proof, str, bool]]:
    """The premises, the first one last, each with how far it stands in and whether none stands below it."""
    return [(one, indent, place == 0) for place, one in enumerate(reversed(proof.premises))]


def _line(proof: Proof, labels: Mapping[str, str]) -> str:
    fact = proof.fact
    if proof.repeated:
        why = "as above"
    elif proof.rule:
        why = f"by {proof.rule}"
    else:
        why = f"stated: {fact['source']}" if fact["source"] else "stated"
    return f"{format_fact(fact, labels)}   [{why}]"


def format_fact(fact: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """A fact in words: names where there are any, and when it held."""
    if fact["object"] is not None:
        end = labels.get(fact["object"], fact["object"])
    else:
        end = f"{fact['value']:.15g}" + (f" {labels.get(fact['unit'], fact['unit'])}" if fact["unit"] else "")
    words = " · ".join(
        [labels.get(fact["subject"], fact["subject"]), labels.get(fact["predicate"], fact["predicate"]), end]
    )
    if fact["start"] or fact["end"]:
        words += f"  ({fact['start'] or '…'} – {fact['end'] or '…'})"
    return words


def proof_labels(knowledge: KnowledgeBase, proof: Proof, language: str) -> dict[str, str]:
    """What the entities of a proof are called; what has no name in the language is not in it."""
    found: set[str] = set()
    waiting = [proof]
    while waiting:
        one = waiting.pop()
        found.update(str(one.fact[key]) for key in ("subject", "predicate", "object", "unit") if one.fact[key])
        waiting += one.premises
    rows = knowledge.query(
        "select entity, label from names where language = $l and list_contains($e, entity)",
        {"l": language, "e": sorted(found)},
    ).to_pylist()
    return {row["entity"]: row["label"] for row in rows}


def _by_id(knowledge: KnowledgeBase, beginning: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = knowledge.query(
        "select * from facts where starts_with(fact_id, $id) order by fact_id limit 20", {"id": beginning}
    ).to_pylist()
    if not rows:
        raise InputError(f"there is no fact with the id {beginning}")
    if len(rows) > 1:
        shown = ", ".join(row["fact_id"] for row in rows[:_SHOWN]) + (", …" if len(rows) > _SHOWN else "")
        raise InputError(f"several facts have an id that begins with {beginning}: {shown}")
    return rows


def _entities(knowledge: KnowledgeBase, words: str) -> list[str]:
    rows = knowledge.query(
        "select entity from names where label = $w or list_contains(aliases, $w) order by entity", {"w": words}
    ).to_pylist()
    return [words, *[row["entity"] for row in rows]]


def _hint(knowledge: KnowledgeBase, subject: list[str], predicate: list[str], parts: Sequence[str]) -> str:
    about = knowledge.query(
        "select distinct predicate from facts where list_contains($s, subject) order by predicate", {"s": subject}
    )["predicate"].to_pylist()
    if not about:
        return f"nothing is said of {parts[0]!r}"
    if not set(predicate) & set(about):
        return f"nothing is said of {parts[0]!r} by {parts[1]!r}; {did_you_mean(parts[1], about)}"
    others = knowledge.query(
        "select distinct coalesce(object || coalesce(' (' || label || ')', ''), value::varchar) as o from facts "
        "left join names on entity = object and language = 'en' and label != object "
        "where list_contains($s, subject) and list_contains($p, predicate) order by o",
        {"s": subject, "p": predicate},
    )["o"].to_pylist()
    shown = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
    return f"what is said of {parts[0]!r} by {parts[1]!r}: {shown}"
