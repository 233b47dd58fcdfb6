"""A knowledge base read as an ontology: classes, instances and properties with names, and what stands above what."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from merkhet.core.errors import InputError, did_you_mean
from merkhet.knowledge._class_hierarchy import Ancestry, steps_above
from merkhet.knowledge._ontology_terms import CLASS, INSTANCE, PROPERTY, Noun, Terms, examples, make_terms
from merkhet.knowledge._term_labels import instance_name
from merkhet.knowledge.rules.rulebook import ROLES
from merkhet.knowledge.store import KnowledgeBase

PREDICATES: Mapping[str, tuple[str, ...]] = {
    "type": (*ROLES["type"], "instance-of", "instance of"),
    "subclass": (*ROLES["subclass"], "is-a", "is a", "subclass-of", "subclass of"),
    "equivalent class": ROLES["equivalent class"],
    "subproperty": (*ROLES["subproperty"], "subproperty-of", "subproperty of"),
    "domain": (*ROLES["domain"], "schema:domainIncludes"),
    "range": (*ROLES["range"], "schema:rangeIncludes"),
}
"""Which predicates say what of an ontology: those of RDFS and OWL, schema.org, Wikidata, WordNet and the packs."""

_VOCABULARY = ("rdf:", "rdfs:", "owl:", "xsd:")
# What everything belongs to is no answer: entity in Wikidata and WordNet.
_EVERYTHING = {"schema:Thing", "Q35120", "wordnet:00001740-n"}
_DATATYPES = {"rdfs:Datatype", "schema:DataType"}
_ANNOTATING = {"owl:AnnotationProperty", "owl:OntologyProperty"}
# The verbs of WordNet stand in a hierarchy too, but nothing is a breathe.
_VERB = re.compile(r"wordnet:\d{8}-v")
_ANY_OF = ("schema:domainIncludes", "schema:rangeIncludes")

_NAME = Noun("name", "names")
_TERM = Noun("class or property", "classes or properties")
_WORD = Noun("verb", "verbs")


@dataclass(frozen=True)
class Ontology:
    """What questions about an ontology are made of. Ids are those of the knowledge base, orders depend on nothing else.

    ``classes`` and ``properties`` have a name each, and no two of one sort the same one but for the case of letters:
    names are what a model chooses from. ``superclasses`` and ``superproperties`` hold all that stands above, the
    nearest first, then by name; every class and property has an entry. ``instances`` are the finest types that were
    stated of each, ``types`` all that follow, the finest first. ``domains`` and ``ranges`` are the classes that were
    stated, if any; where several were stated as alternatives (``schema:domainIncludes``), ("domain", property) is in
    ``alternatives`` too. ``equivalents`` are the other classes or properties that mean the same, which are neither
    above nor below: right where the one is right. ``ambiguous`` are classes and properties whose name others had too:
    right as an answer, but not to be asked about. ``remarks`` say what is odd and what was left out.
    """

    classes: Mapping[str, str]
    superclasses: Mapping[str, tuple[str, ...]]
    instances: Mapping[str, tuple[str, ...]]
    types: Mapping[str, tuple[str, ...]]
    instance_names: Mapping[str, str]
    properties: Mapping[str, str]
    superproperties: Mapping[str, tuple[str, ...]]
    domains: Mapping[str, tuple[str, ...]]
    ranges: Mapping[str, tuple[str, ...]]
    equivalents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    alternatives: frozenset[tuple[str, str]] = frozenset()
    ambiguous: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()


def read_ontology(
    knowledge: KnowledgeBase,
    language: str = "en",
    *,
    predicates: Mapping[str, Sequence[str]] | None = None,
    identifiers: bool = True,
) -> Ontology:
    """The ontology that a knowledge base holds, by what was stated in it; inferred facts are not looked at.

    ``predicates`` names further ones for a key of ``PREDICATES`` ({"type": ["occupation"]}). A class or property
    without a name in the language is called by its identifier where that can be read (``soccer player`` for
    ``dbo:SoccerPlayer``) unless ``identifiers`` is false; one that cannot be named is left out, and what stands above
    it still stands above what is below it. owl:Thing and its like, datatypes and the words of RDF and OWL are no
    classes. Refuses a knowledge base in which no class stands above another one, and an unknown key.
    """
    return _Reader(knowledge, language, predicates or {}, identifiers).read()


class _Reader:
    """The facts of an ontology by what they say, and the steps from them to an ``Ontology``."""

    def __init__(
        self, knowledge: KnowledgeBase, language: str, predicates: Mapping[str, Sequence[str]], identifiers: bool
    ) -> None:
        self._roles = _roles(predicates)
        self._language = language
        self._identifiers = identifiers
        self._remarks: list[str] = []
        self._said, self._any_of = self._facts(knowledge)
        self._labels = self._names(knowledge)

    def read(self) -> Ontology:
        """All steps in their order."""
        class_ids, property_ids = self._sorted_out()
        links = self._links("subclass", class_ids)
        for low, highs in self._said["equivalent class"].items():
            for high in highs & class_ids if low in class_ids else ():
                links[low].add(high)
                links[high].add(low)
        ancestry = Ancestry(sorted(class_ids), links)
        if not any(ancestry.above.values()):
            looked_for = ", ".join(self._roles["subclass"])
            raise InputError(
                "there is no class hierarchy in this knowledge: no class has a superclass "
                f"({looked_for} were looked for). Import an ontology, or say which predicate of yours is 'subclass'"
            )
        used: dict[str, int] = defaultdict(int)
        for highs in (*links.values(), *self._said["type"].values()):
            for high in highs:
                used[high] += 1
        classes = self._terms(CLASS, ancestry, used, _is_class_kind)
        lines = Ancestry(sorted(property_ids), self._links("subproperty", property_ids))
        properties = self._terms(PROPERTY, lines, {}, _is_property_kind)
        instances, types, names = self._instances(class_ids, property_ids, ancestry, classes)
        domains = self._ends("domain", properties, classes)
        ranges = self._ends("range", properties, classes)
        return Ontology(
            classes=classes.names,
            superclasses=classes.above,
            instances=instances,
            types=types,
            instance_names=names,
            properties=properties.names,
            superproperties=properties.above,
            domains=domains,
            ranges=ranges,
            equivalents={**classes.equivalents, **properties.equivalents},
            alternatives=self._alternatives(domains, ranges),
            ambiguous=classes.ambiguous | properties.ambiguous,
            remarks=tuple(self._remarks),
        )

    def _facts(self, knowledge: KnowledgeBase) -> tuple[dict[str, dict[str, set[str]]], set[tuple[str, str]]]:
        """Role -> subject -> objects, and which domains and ranges (role, property) are alternatives."""
        role_of = {predicate: role for role, found in self._roles.items() for predicate in found}
        rows = knowledge.query(
            "select distinct predicate, subject, object from facts where list_contains($predicates, predicate) "
            "and object is not null and rule is null and not starts_with(object, '\"')",
            {"predicates": list(role_of)},
        )
        said: dict[str, dict[str, set[str]]] = {role: defaultdict(set) for role in PREDICATES}
        any_of = set()
        columns = (rows[name].to_pylist() for name in ("predicate", "subject", "object"))
        for predicate, subject, object_ in zip(*columns, strict=True):
            role = role_of[predicate]
            said[role][subject].add(object_)
            if predicate in _ANY_OF:
                any_of.add((role, subject))
        return said, any_of

    def _names(self, knowledge: KnowledgeBase) -> dict[str, str]:
        chosen = "from facts where list_contains($predicates, predicate) and object is not null"
        rows = knowledge.query(
            "select entity, label from names where language = $language and entity in "
            f"(select subject {chosen} union select object {chosen})",
            {"language": self._language, "predicates": [one for found in self._roles.values() for one in found]},
        )
        return dict(zip(rows["entity"].to_pylist(), rows["label"].to_pylist(), strict=True))

    def _sorted_out(self) -> tuple[set[str], set[str]]:
        """The ids of classes and of properties, without the words of the vocabulary and without datatypes."""
        types = self._said["type"]
        subclasses, subproperties = self._said["subclass"], self._said["subproperty"]
        stated = {one for low, highs in subproperties.items() for one in (low, *highs)}
        stated |= {one for role in ("domain", "range") for one in self._said[role]}
        declared = {one for one, kinds in types.items() if any(map(_is_property_kind, kinds))}
        classes = {one for one, kinds in types.items() if any(map(_is_class_kind, kinds))}
        # A declaration outweighs a use: a misspelt superproperty may well be the name of a class.
        properties = {one for one in declared | (stated - classes) if not is_vocabulary(one)}
        classes |= {one for low, highs in subclasses.items() for one in (low, *highs)}
        # What only classes and properties are instances of (metaclasses) is no class of this ontology's things.
        classes |= {
            kind for one, kinds in types.items() if one not in classes and one not in properties for kind in kinds
        }
        datatypes = {
            one
            for one in classes | set(types)
            if one in _DATATYPES
            or types.get(one, set()) & _DATATYPES
            or any(types.get(high, set()) & _DATATYPES for high in steps_above([one], subclasses))
        }
        classes = {one for one in classes - properties - datatypes if not is_vocabulary(one)}
        verbs = sorted(one for one in classes if _VERB.fullmatch(one))
        self._tell(verbs, _WORD.are, "no classes")
        return classes.difference(verbs), properties

    def _links(self, role: str, among: set[str]) -> dict[str, set[str]]:
        """Who stands directly above whom, among these alone; nobody stands above himself."""
        links: dict[str, set[str]] = defaultdict(set)
        for low, highs in self._said[role].items():
            if low in among:
                links[low] |= {high for high in highs & among if high != low}
        return links

    def _terms(self, noun: Noun, ancestry: Ancestry, used: Mapping[str, int], declares: Callable[[str], bool]) -> Terms:
        declared = {entity for entity, kinds in self._said["type"].items() if any(map(declares, kinds))}
        terms = make_terms(noun, ancestry, self._labels, self._language, self._identifiers, used, declared)
        self._remarks.extend(terms.remarks)
        return terms

    def _instances(
        self, class_ids: set[str], property_ids: set[str], ancestry: Ancestry, classes: Terms
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]], dict[str, str]]:
        """Direct types, all types and names of what is an instance of a class with a name."""
        given = {
            one: frozenset(kinds & class_ids)
            for one, kinds in self._said["type"].items()
            if kinds & class_ids and not is_vocabulary(one)
        }
        terms = sorted(one for one in given if one in class_ids or one in property_ids)
        found = {kinds: _types(kinds, ancestry, classes) for kinds in set(given.values())}
        named: dict[str, list[str]] = defaultdict(list)
        nameless, untyped = [], []
        for one in sorted(given.keys() - set(terms)):
            name = instance_name(one, self._labels.get(one)) if self._identifiers else self._labels.get(one)
            if not name:
                nameless.append(one)
            elif not found[given[one]][0]:
                untyped.append(one)
            else:
                named[name].append(one)
        names, unclear = {}, []
        for name, owners in named.items():
            if len({found[given[owner]] for owner in owners}) == 1:
                names[owners[0]] = name
            else:
                unclear.append(name)
        same = sum(map(len, named.values())) - len(names) - sum(len(named[name]) for name in unclear)
        self._tell(terms, _TERM.are, "typed like instances, and not taken for any")
        self._tell(nameless, INSTANCE.have, "no name: left out")
        self._tell(untyped, INSTANCE.have, "no type with a name: left out")
        self._tell(unclear, _NAME.are, "of instances of different types: these are left out")
        if same:
            self._remarks.append(f"{INSTANCE.have(same)} the name and the types of another one: left out.")
        if not names:
            self._remarks.append("No class has an instance: nothing can be asked about types.")
        names = {one: names[one] for one in sorted(names)}
        direct = {one: found[given[one]][0] for one in names}
        return direct, {one: found[given[one]][1] for one in names}, names

    def _ends(self, role: str, properties: Terms, classes: Terms) -> dict[str, tuple[str, ...]]:
        """The classes that are a domain or range of each property, by name; what is no class is counted."""
        ends: dict[str, tuple[str, ...]] = {}
        foreign = []
        for one in properties.names:
            stated = self._said[role].get(one, set())
            known = {classes.kept[high] for high in stated if high in classes.kept}
            if known:
                ends[one] = tuple(sorted(known, key=classes.order))
            elif stated:
                foreign.append(one)
        without = len(properties.names) - len(ends) - len(foreign)
        if without:
            self._remarks.append(f"{PROPERTY.have(without)} no {role}.")
        self._tell(foreign, PROPERTY.have, f"a {role} that is no class but a datatype, everything or unknown")
        return ends

    def _alternatives(self, *ends: Mapping[str, tuple[str, ...]]) -> frozenset[tuple[str, str]]:
        found = frozenset(
            (role, one)
            for role, known in zip(("domain", "range"), ends, strict=True)
            for one in known
            if len(self._said[role][one]) > 1 and (role, one) in self._any_of
        )
        concerned = sorted({one for _, one in found})
        self._tell(concerned, PROPERTY.have, "several domains or ranges of which any may hold")
        return found

    def _tell(self, found: Sequence[str], counted: Callable[[int], str], rest: str) -> None:
        if found:
            self._remarks.append(f"{counted(len(found))} {rest} ({examples(found)}).")


def is_vocabulary(entity: str) -> bool:
    """Whether an id is a word of RDF or OWL, a datatype of XML Schema, or the class of everything."""
    return entity.startswith(_VOCABULARY) or entity in _EVERYTHING


def _roles(further: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    for role, given in further.items():
        if role not in PREDICATES:
            raise InputError(f"an ontology has no {role!r} to name predicates for; {did_you_mean(role, PREDICATES)}")
        if isinstance(given, str):
            raise InputError(f"the predicates for {role!r} should be a list, such as [{given!r}]")
    taken = {predicate: role for role, given in further.items() for predicate in given}
    return {
        role: tuple(dict.fromkeys([*(one for one in known if taken.get(one, role) == role), *further.get(role, ())]))
        for role, known in PREDICATES.items()
    }


def _is_class_kind(kind: str) -> bool:
    return kind in ("owl:Class", "rdfs:Class")


def _is_property_kind(kind: str) -> bool:
    if kind in _ANNOTATING:
        return False
    return kind == "rdf:Property" or (kind.startswith("owl:") and kind.endswith("Property"))


def _types(stated: Collection[str], ancestry: Ancestry, classes: Terms) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The finest of the stated types and all types that follow, as classes with names, the finest first."""
    # From the finest ones: whatever else was stated stands above them.
    steps = steps_above(ancestry.lowest(stated), ancestry.parents)
    known = {one for one in steps if one in classes.kept}
    direct = ancestry.lowest(known & set(stated)) or ancestry.lowest(known)
    finest = sorted(direct, key=lambda one: (-len(ancestry.above[one]), classes.order(classes.kept[one])))
    first = tuple(dict.fromkeys(classes.kept[one] for one in finest))
    return first, tuple(dict.fromkeys((*first, *classes.nearest_first(steps))))
