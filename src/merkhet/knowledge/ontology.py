"""Ontology of a knowledge base: its named classes, instances and properties, and their hierarchies."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from merkhet.core.errors import InputError, did_you_mean
from merkhet.knowledge._ontology_terms import (
    CLASS,
    INSTANCE,
    PROPERTY,
    Ancestry,
    Noun,
    Terms,
    ancestor_distances,
    examples,
    instance_name,
    make_terms,
)
from merkhet.knowledge.rules.rulebook import ROLES
from merkhet.knowledge.store import KnowledgeBase

PREDICATES: Mapping[str, tuple[str, ...]] = {
    "type": (*ROLES["type"], "instance-of", "instance of"),
    "subclass": (*ROLES["subclass"], "is-a", "is a", "subclass-of", "subclass of"),
    "equivalent class": ROLES["equivalent class"],
    "subproperty": (*ROLES["subproperty"], "subproperty-of", "subproperty of"),
    "domain": (*ROLES["domain"], "schema:domainIncludes", "domain"),
    "range": (*ROLES["range"], "schema:rangeIncludes", "range"),
}
"""The predicates for each role, such as ``subclass``, in RDFS, OWL, schema.org, Wikidata, WordNet and the packs."""

_VOCABULARY = ("rdf:", "rdfs:", "owl:", "xsd:")
# Root classes contain everything and are never an answer: Thing in schema.org, entity in Wikidata and WordNet.
_ROOT_CLASSES = {"schema:Thing", "Q35120", "wordnet:00001740-n"}
_DATATYPES = {"rdfs:Datatype", "schema:DataType"}
_ANNOTATION_PROPERTIES = {"owl:AnnotationProperty", "owl:OntologyProperty"}
# WordNet's verbs form a hierarchy too, but nothing is an instance of a verb.
_VERB = re.compile(r"wordnet:\d{8}-v")
_ALTERNATIVE_PREDICATES = ("schema:domainIncludes", "schema:rangeIncludes")

_NAME = Noun("name", "names")
_TERM = Noun("class or property", "classes or properties")
_VERB_NOUN = Noun("verb", "verbs")


@dataclass(frozen=True)
class Ontology:
    """Named classes, instances and properties of a knowledge base, with their hierarchies.

    Entities have their ids from the knowledge base. The order of entries does not depend on the import order.
    """

    classes: Mapping[str, str]
    """Class ids and names. Names are unique regardless of case, since they are answer candidates."""
    superclasses: Mapping[str, tuple[str, ...]]
    """All superclasses of each class, sorted by distance, then by name."""
    instances: Mapping[str, tuple[str, ...]]
    """The most specific stated types of each instance."""
    types: Mapping[str, tuple[str, ...]]
    """All types of each instance, the most specific first."""
    instance_names: Mapping[str, str]
    """Instance ids and names."""
    properties: Mapping[str, str]
    """Property ids and names. Names are unique regardless of case."""
    superproperties: Mapping[str, tuple[str, ...]]
    """All superproperties of each property, sorted by distance, then by name."""
    domains: Mapping[str, tuple[str, ...]]
    """The stated domain classes of each property; properties without a domain are missing."""
    ranges: Mapping[str, tuple[str, ...]]
    """The stated range classes of each property; properties without a range are missing."""
    equivalents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For a class or property, the others with the same meaning, which are equally correct answers."""
    alternatives: frozenset[tuple[str, str]] = frozenset()
    """Pairs (``"domain"`` or ``"range"``, property) whose classes are alternatives (``schema:domainIncludes``)."""
    ambiguous: frozenset[str] = frozenset()
    """Classes and properties whose name is shared: they are valid answers, but no question asks about them."""
    remarks: tuple[str, ...] = ()
    """Remarks on irregularities, with counts of the classes, properties and instances that are left out."""


def read_ontology(
    knowledge: KnowledgeBase,
    language: str = "en",
    *,
    predicates: Mapping[str, Sequence[str]] | None = None,
    identifiers: bool = True,
) -> Ontology:
    """Read the ontology of a knowledge base from its stated facts; inferred facts are ignored.

    A class or property without a name is left out, but its children keep its ancestors. Root classes (owl:Thing),
    datatypes and the vocabulary of RDF and OWL are not classes of the ontology.

    Args:
        knowledge: The knowledge base.
        language: The language of the names.
        predicates: Additional predicates for the roles in ``PREDICATES``, such as ``{"type": ["occupation"]}``.
        identifiers: Whether readable identifiers replace missing names (``soccer player`` for ``dbo:SoccerPlayer``).

    Raises:
        InputError: No class has a superclass, or a role is unknown.
    """
    return _Reader(knowledge, language, predicates or {}, identifiers).read()


class _Reader:
    """A reader that builds an ``Ontology`` from the facts of each role."""

    def __init__(
        self, knowledge: KnowledgeBase, language: str, predicates: Mapping[str, Sequence[str]], identifiers: bool
    ) -> None:
        self._roles = _merge_roles(predicates)
        self._language = language
        self._identifiers = identifiers
        self._remarks: list[str] = []
        self._facts_by_role, self._alternative_ends = self._read_facts(knowledge)
        self._labels = self._read_labels(knowledge)

    def read(self) -> Ontology:
        class_ids, property_ids = self._classes_and_properties()
        parents_of = self._direct_parents("subclass", class_ids)
        for child, parents in self._facts_by_role["equivalent class"].items():
            for parent in parents & class_ids if child in class_ids else ():
                parents_of[child].add(parent)
                parents_of[parent].add(child)
        ancestry = Ancestry(sorted(class_ids), parents_of)
        if not any(ancestry.ancestors.values()):
            predicates = ", ".join(self._roles["subclass"])
            raise InputError(
                f"there is no class hierarchy: no class has a superclass (by the predicates {predicates}). "
                "Import an ontology, or set the predicates of the role 'subclass'"
            )
        uses: dict[str, int] = defaultdict(int)
        for parents in (*parents_of.values(), *self._facts_by_role["type"].values()):
            for parent in parents:
                uses[parent] += 1
        classes = self._make_terms(CLASS, ancestry, uses, _is_class_kind)
        property_ancestry = Ancestry(sorted(property_ids), self._direct_parents("subproperty", property_ids))
        properties = self._make_terms(PROPERTY, property_ancestry, {}, _is_property_kind)
        instances, types, instance_names = self._read_instances(class_ids, property_ids, ancestry, classes)
        domains = self._domains_or_ranges("domain", properties, classes)
        ranges = self._domains_or_ranges("range", properties, classes)
        return Ontology(
            classes=classes.names,
            superclasses=classes.ancestors,
            instances=instances,
            types=types,
            instance_names=instance_names,
            properties=properties.names,
            superproperties=properties.ancestors,
            domains=domains,
            ranges=ranges,
            equivalents={**classes.equivalents, **properties.equivalents},
            alternatives=self._find_alternatives(domains, ranges),
            ambiguous=classes.ambiguous | properties.ambiguous,
            remarks=tuple(self._remarks),
        )

    def _read_facts(self, knowledge: KnowledgeBase) -> tuple[dict[str, dict[str, set[str]]], set[tuple[str, str]]]:
        """Read the facts as role → subject → objects, and the (role, property) pairs whose classes are alternatives."""
        role_of = {predicate: role for role, predicates in self._roles.items() for predicate in predicates}
        rows = knowledge.query(
            "select distinct predicate, subject, object from facts where list_contains($predicates, predicate) "
            "and object is not null and rule is null and not is_literal(object)",
            {"predicates": list(role_of)},
        )
        facts: dict[str, dict[str, set[str]]] = {role: defaultdict(set) for role in PREDICATES}
        alternative_ends = set()
        columns = (rows[name].to_pylist() for name in ("predicate", "subject", "object"))
        for predicate, subject, object_ in zip(*columns, strict=True):
            role = role_of[predicate]
            facts[role][subject].add(object_)
            if predicate in _ALTERNATIVE_PREDICATES:
                alternative_ends.add((role, subject))
        return facts, alternative_ends

    def _read_labels(self, knowledge: KnowledgeBase) -> dict[str, str]:
        selected = "from facts where list_contains($predicates, predicate) and object is not null"
        rows = knowledge.query(
            "select entity, label from names where language = $language and entity in "
            f"(select subject {selected} union select object {selected})",
            {
                "language": self._language,
                "predicates": [predicate for predicates in self._roles.values() for predicate in predicates],
            },
        )
        return dict(zip(rows["entity"].to_pylist(), rows["label"].to_pylist(), strict=True))

    def _classes_and_properties(self) -> tuple[set[str], set[str]]:
        """Return the ids of classes and the ids of properties, without RDF vocabulary and datatypes."""
        types = self._facts_by_role["type"]
        subclasses, subproperties = self._facts_by_role["subclass"], self._facts_by_role["subproperty"]
        used = {entity for child, parents in subproperties.items() for entity in (child, *parents)}
        used |= {entity for role in ("domain", "range") for entity in self._facts_by_role[role]}
        declared = {entity for entity, kinds in types.items() if any(map(_is_property_kind, kinds))}
        classes = {entity for entity, kinds in types.items() if any(map(_is_class_kind, kinds))}
        # A declaration outweighs a use: a misspelt superproperty may be the id of a class.
        properties = {entity for entity in declared | (used - classes) if not is_vocabulary(entity)}
        classes |= {entity for child, parents in subclasses.items() for entity in (child, *parents)}
        # A metaclass, whose instances are classes or properties, is not a class of this ontology.
        classes |= {
            kind
            for entity, kinds in types.items()
            if entity not in classes and entity not in properties
            for kind in kinds
        }
        datatypes = {
            entity
            for entity in classes | set(types)
            if entity in _DATATYPES
            or types.get(entity, set()) & _DATATYPES
            or any(types.get(parent, set()) & _DATATYPES for parent in ancestor_distances([entity], subclasses))
        }
        classes = {entity for entity in classes - properties - datatypes if not is_vocabulary(entity)}
        verbs = sorted(entity for entity in classes if _VERB.fullmatch(entity))
        self._add_remark(verbs, _VERB_NOUN.are, "not classes")
        return classes.difference(verbs), properties

    def _direct_parents(self, role: str, entities: set[str]) -> dict[str, set[str]]:
        """Return the direct parents of each entity within ``entities``, without self-loops."""
        links: dict[str, set[str]] = defaultdict(set)
        for child, parents in self._facts_by_role[role].items():
            if child in entities:
                links[child] |= {parent for parent in parents & entities if parent != child}
        return links

    def _make_terms(
        self, noun: Noun, ancestry: Ancestry, uses: Mapping[str, int], is_declaration: Callable[[str], bool]
    ) -> Terms:
        declared = {entity for entity, kinds in self._facts_by_role["type"].items() if any(map(is_declaration, kinds))}
        terms = make_terms(noun, ancestry, self._labels, self._language, self._identifiers, uses, declared)
        self._remarks.extend(terms.remarks)
        return terms

    def _read_instances(
        self, class_ids: set[str], property_ids: set[str], ancestry: Ancestry, classes: Terms
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]], dict[str, str]]:
        """Return direct types, all types, and names, each by instance, for the instances of named classes."""
        stated_types = {
            entity: frozenset(kinds & class_ids)
            for entity, kinds in self._facts_by_role["type"].items()
            if kinds & class_ids and not is_vocabulary(entity)
        }
        terms = sorted(entity for entity in stated_types if entity in class_ids or entity in property_ids)
        types = {kinds: _resolve_types(kinds, ancestry, classes) for kinds in set(stated_types.values())}
        named: dict[str, list[str]] = defaultdict(list)
        nameless, untyped = [], []
        for entity in sorted(stated_types.keys() - set(terms)):
            name = instance_name(entity, self._labels.get(entity)) if self._identifiers else self._labels.get(entity)
            if not name:
                nameless.append(entity)
            elif not types[stated_types[entity]][0]:
                untyped.append(entity)
            else:
                named[name].append(entity)
        names, ambiguous = {}, []
        for name, owners in named.items():
            if len({types[stated_types[owner]] for owner in owners}) == 1:
                names[owners[0]] = name
            else:
                ambiguous.append(name)
        duplicates = sum(map(len, named.values())) - len(names) - sum(len(named[name]) for name in ambiguous)
        self._add_remark(terms, _TERM.are, "typed like instances, but not used as instances")
        self._add_remark(nameless, INSTANCE.have, "no name: left out")
        self._add_remark(untyped, INSTANCE.have, "no type with a name: left out")
        self._add_remark(ambiguous, _NAME.are, "of instances of different types: these are left out")
        if duplicates:
            self._remarks.append(f"{INSTANCE.have(duplicates)} the name and the types of another one: left out.")
        if not names:
            self._remarks.append("No class has an instance: nothing can be asked about types.")
        names = {entity: names[entity] for entity in sorted(names)}
        direct = {entity: types[stated_types[entity]][0] for entity in names}
        return direct, {entity: types[stated_types[entity]][1] for entity in names}, names

    def _domains_or_ranges(self, role: str, properties: Terms, classes: Terms) -> dict[str, tuple[str, ...]]:
        """Return each property's domain or range classes, sorted by name; add remarks on properties without any."""
        classes_of: dict[str, tuple[str, ...]] = {}
        foreign = []
        for entity in properties.names:
            stated = self._facts_by_role[role].get(entity, set())
            named = {classes.representatives[kind] for kind in stated if kind in classes.representatives}
            if named:
                classes_of[entity] = tuple(sorted(named, key=classes.sort_key))
            elif stated:
                foreign.append(entity)
        missing = len(properties.names) - len(classes_of) - len(foreign)
        if missing:
            self._remarks.append(f"{PROPERTY.have(missing)} no {role}.")
        self._add_remark(foreign, PROPERTY.have, f"a {role} that is a datatype, a root class or unknown")
        return classes_of

    def _find_alternatives(self, *ends: Mapping[str, tuple[str, ...]]) -> frozenset[tuple[str, str]]:
        alternatives = frozenset(
            (role, entity)
            for role, properties in zip(("domain", "range"), ends, strict=True)
            for entity in properties
            if len(self._facts_by_role[role][entity]) > 1 and (role, entity) in self._alternative_ends
        )
        affected = sorted({entity for _, entity in alternatives})
        self._add_remark(affected, PROPERTY.have, "alternative domains or ranges")
        return alternatives

    def _add_remark(self, entities: Sequence[str], count_phrase: Callable[[int], str], statement: str) -> None:
        if entities:
            self._remarks.append(f"{count_phrase(len(entities))} {statement} ({examples(entities)}).")


def is_vocabulary(entity: str) -> bool:
    """Check whether an entity is a root class or a term of RDF, OWL or XML Schema."""
    return entity.startswith(_VOCABULARY) or entity in _ROOT_CLASSES


def _merge_roles(additional: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    for role, names in additional.items():
        if role not in PREDICATES:
            raise InputError(f"an ontology has no role {role!r}; {did_you_mean(role, PREDICATES)}")
        if isinstance(names, str):
            raise InputError(f"the predicates for {role!r} must be a list, such as [{names!r}]")
    claimed = {predicate: role for role, names in additional.items() for predicate in names}
    return {
        role: tuple(
            dict.fromkeys(
                [
                    *(predicate for predicate in standard if claimed.get(predicate, role) == role),
                    *additional.get(role, ()),
                ]
            )
        )
        for role, standard in PREDICATES.items()
    }


def _is_class_kind(kind: str) -> bool:
    return kind in ("owl:Class", "rdfs:Class")


def _is_property_kind(kind: str) -> bool:
    if kind in _ANNOTATION_PROPERTIES:
        return False
    return kind == "rdf:Property" or (kind.startswith("owl:") and kind.endswith("Property"))


def _resolve_types(
    stated: Collection[str], ancestry: Ancestry, classes: Terms
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the most specific stated types, and all types, as tuples of named classes, the most specific first."""
    # All other stated types are ancestors of the most specific ones.
    distances = ancestor_distances(ancestry.most_specific(stated), ancestry.parents)
    named = {kind for kind in distances if kind in classes.representatives}
    direct = ancestry.most_specific(named & set(stated)) or ancestry.most_specific(named)
    by_depth = sorted(
        direct, key=lambda kind: (-len(ancestry.ancestors[kind]), classes.sort_key(classes.representatives[kind]))
    )
    direct_names = tuple(dict.fromkeys(classes.representatives[kind] for kind in by_depth))
    return direct_names, tuple(dict.fromkeys((*direct_names, *classes.nearest_first(distances))))
