"""Definitions of the inference rules: the six OWL 2 axioms of KMIR, and RDFS rules 2, 3, 5, 7, 9 and 11."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from merkhet.core.errors import InputError, did_you_mean
from merkhet.knowledge import _iris as iris

ROLES: Mapping[str, tuple[str, ...]] = {
    "type": (iris.TYPE, "P31"),
    "subclass": (iris.SUBCLASS, "P279"),
    "subproperty": (iris.SUBPROPERTY, "P1647"),
    "domain": (iris.DOMAIN,),
    "range": (iris.RANGE,),
    "inverse": (iris.INVERSE, "P1696"),
    "equivalent": (iris.EQUIVALENT_PROPERTY, "P1628"),
    "equivalent class": (iris.EQUIVALENT_CLASS, "P1709"),
    "chain": (iris.CHAIN,),
    "disjoint properties": (iris.DISJOINT_PROPERTIES,),
    "disjoint classes": (iris.DISJOINT_CLASSES,),
}
"""The predicates for each kind of axiom (role); a rules file may declare additional predicates."""

PLAIN_WORDS: Mapping[str, tuple[str, ...]] = {
    "type": ("instance of",),
    "subclass": ("subclass of",),
    "subproperty": ("subproperty of",),
    "inverse": ("inverse of",),
}
"""Labels that stand for the predicates of roles in tables of plain words."""

CHARACTERISTICS: Mapping[str, str] = {
    "symmetric": iris.SYMMETRIC,
    "transitive": iris.TRANSITIVE,
    "functional": iris.FUNCTIONAL,
    "inverse functional": iris.INVERSE_FUNCTIONAL,
    "asymmetric": "owl:AsymmetricProperty",
    "irreflexive": "owl:IrreflexiveProperty",
}
"""The OWL class that declares each property characteristic."""


@dataclass(frozen=True)
class Rule:
    """A rule that infers a fact from an axiom and other facts."""

    name: str
    axiom: str
    """The role or characteristic of the axiom that the rule applies."""
    shape: str
    """The name of the query pattern that derives the conclusion; see ``_rule_compiler``."""
    description: str
    alias: str = ""
    """The name of the rule in KMIR."""


RULES: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("symmetric", "symmetric", "turn", "(x p y) → (y p x), p symmetric", "SymmetricOP"),
        Rule("transitive", "transitive", "join", "(x p y), (y p z) → (x p z), p transitive", "TransitiveOP"),
        Rule("equivalent", "equivalent", "swap", "(x p y) ↔ (x q y), p equivalent to q", "EquivalentOP"),
        Rule("inverse", "inverse", "turn swap", "(x p y) ↔ (y q x), p inverse of q", "InverseOP"),
        Rule("chain", "chain", "chain", "(x p y), (y q z) → (x r z), p followed by q is r", "SubOP(OPChain)"),
        Rule("rdfs2", "domain", "subject type", "(x p y) → (x type c), c the domain of p"),
        Rule("rdfs3", "range", "object type", "(x p y) → (y type c), c the range of p"),
        Rule("rdfs5", "subproperty", "close", "subproperty of a subproperty is one too"),
        Rule("rdfs7", "subproperty", "raise", "(x p y) → (x q y), p a subproperty of q", "Sub-relation"),
        Rule("rdfs9", "subclass", "raise type", "(x type c) → (x type d), c a subclass of d"),
        Rule("rdfs11", "subclass", "close", "subclass of a subclass is one too"),
        Rule("equivalent class", "equivalent class", "swap type", "(x type c) ↔ (x type d), c equivalent to d"),
    )
}
_AXIOM_ROLES = ("subproperty", "domain", "range", "inverse", "equivalent", "equivalent class", "chain")
_ALIASES = {rule.alias.lower(): name for name, rule in RULES.items() if rule.alias} | {"subproperty": "rdfs7"}


def axiom_sql(fact: str) -> str:
    """Return an SQL condition for the facts that are axioms about predicates, or come from a rules file.

    Facts about subclasses are knowledge, not axioms.

    Args:
        fact: Name of the table of facts in the query.
    """
    predicates = ", ".join(f"'{name}'" for role in _AXIOM_ROLES for name in ROLES[role])
    types, kinds = (", ".join(f"'{name}'" for name in names) for names in (ROLES["type"], CHARACTERISTICS.values()))
    return (
        f"(coalesce({fact}.source, '') like 'rules/%' or {fact}.predicate in ({predicates}) "
        f"or ({fact}.predicate in ({types}) and {fact}.object in ({kinds})))"
    )


def select_rules(names: Iterable[str]) -> tuple[Rule, ...]:
    """Return the rules whose names or KMIR aliases are in ``names``; all rules if ``names`` is empty.

    Raises:
        InputError: A name is unknown.
    """
    selected = set()
    for name in names:
        key = _ALIASES.get(name.lower(), name.lower())
        if key not in RULES:
            raise InputError(f"there is no rule called {name!r}; {did_you_mean(name, RULES)}")
        selected.add(key)
    return tuple(rule for rule in RULES.values() if not selected or rule.name in selected)
