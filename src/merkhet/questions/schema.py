"""Question schemas: domains, relations with paraphrased templates, hierarchies, comparisons and frames.

Templates use the placeholders of :mod:`merkhet.questions.templates`. A template of a relation contains ``{subject}``
and ``{object}`` exactly once, and may contain ``{start}`` and ``{end}``. A form may precede the placeholder's name:
``{a object}``, ``{the subject}``, ``{plural object}``. In a question, the slot ``[MASK]`` replaces the asked
placeholder. Templates of hierarchies and comparisons contain the slot explicitly. A frame contains the slot, or
surrounds a statement that contains it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merkhet.core import SLOT
from merkhet.core.errors import FaultList, InputError, did_you_mean
from merkhet.core.files import read_yaml
from merkhet.core.text import counted
from merkhet.questions.english import FORMS, default_template
from merkhet.questions.templates import (
    DATE_FORM,
    PLACEHOLDERS,
    TIMES,
    check_placeholders,
    placeholder_names,
    refuse_unknown_keys,
)

_SECTIONS = ("domains", "relations", "hierarchies", "comparisons", "frames", "disjoint")
KNOWLEDGE_TYPES = ("domain-specific", "general", "commonsense")
_RELATION_KEYS = (
    *("about", "domain", "predicate", "subject", "object", "ask", "templates", "scopes", "checking", "completion"),
    *("transitive", "kinship", "shorten", "closed", "present", "complete", "functional"),
)
_HIERARCHY_KEYS = ("about", "domain", "predicate", "aspect", "form", "templates", "complete", "functional", "farthest")
_COMPARISON_KEYS = ("about", "domain", "predicate", "form", "apart", "most", "least")
_FRAMES: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "checking": (("statement",), True),
    "choices": (("choices", "statement"), False),
    "distinction": (("members", "aspect", "category"), True),
}
"""Placeholders of each kind of frame, and whether the frame itself contains the slot."""
_OPTIONAL_PLACEHOLDERS = {"aspect", "category"}
NEARNESS = ("sibling", "cousin", "kind", "relation")
"""Nearness of a distractor to the right answer, from near to far."""
PLACES = ("object", "subject", "both")
"""Values of ``complete``: the fields of which the knowledge states every true name."""


@dataclass(frozen=True)
class Scope:
    """Templates that narrow the answer to one kind of entity, for facts that would otherwise have several answers."""

    kind: str
    templates: tuple[str, ...]


@dataclass(frozen=True)
class Relation:
    """Templates for the facts of some predicates, and settings of the questions about them."""

    name: str
    predicates: tuple[str, ...]
    templates: tuple[str, ...]
    asks: tuple[str, ...] = ("object",)
    """Placeholders that questions ask for."""
    about: str = ""
    """Display name of the relation."""
    domain: str | None = None
    subject: str = ""
    """Description of the subjects."""
    object: str = ""
    """Description of the objects."""
    scopes: tuple[Scope, ...] = ()
    transitive: bool = False
    """Whether the relation is transitive: objects that a chain of facts reaches are right answers, too."""
    kinship: str | None = None
    """Predicate like is-a. By it, ancestors and descendants of a right answer are excluded as distractors."""
    shorten: str | None = None
    """Placeholder whose names are shortened to their last word: "Samoan tala" to "tala"."""
    complete: str | None = None
    """Field of which the knowledge states every true name, as evidence that other names are wrong.

    ``object``: of each subject with a fact, all objects. ``subject``: of each object with a fact, all subjects.
    ``both``: both of these."""
    functional: bool = False
    """Whether a subject has only one object; the knowledge then states all objects of a subject."""
    closed: bool = False
    """Whether all reasoning questions offer choices, because the knowledge may be incomplete."""
    present: bool = False
    """Whether the templates are in the present tense; then facts that have ended are not asked about."""
    completion: bool = True
    """Whether completion questions are made; false for relations that have only inferred facts."""
    checking: bool = True
    """Whether checking questions are made; in schema files, the default is the value of ``completion``."""


@dataclass(frozen=True)
class Hierarchy:
    """Categories and their members, given by some predicates.

    Members of a category are also members of its ancestors. ``aspect`` describes the categories, as in "chemical
    category".
    """

    name: str
    predicates: tuple[str, ...]
    aspect: str = ""
    about: str = ""
    domain: str | None = None
    form: str = ""
    templates: tuple[str, ...] = ()
    complete: str | None = None
    """As for a relation; ``object`` means that all categories of a member are stated."""
    functional: bool = False
    farthest: str = "relation"
    """Nearness that an outlier must have at least: ``sibling``, ``cousin``, ``kind`` or ``relation`` (any).

    Where names tell the category, as those of persons tell their country, only near outliers ask for knowledge."""


@dataclass(frozen=True)
class DisjointClasses:
    """Classes without common members, as evidence that a member of one is no member of another."""

    groups: tuple[tuple[str, ...], ...] = ()
    """Lists of class names; the classes of a list are disjoint."""
    below: tuple[str, ...] = ()
    """Names of classes whose direct subclasses are disjoint, unless the knowledge states a common member."""


@dataclass(frozen=True)
class Comparison:
    """Numeric facts to compare, with templates that ask for the highest (``most``) and lowest (``least``) value.

    ``apart`` is the minimum relative difference between the best two values.
    """

    name: str
    predicates: tuple[str, ...]
    most: tuple[str, ...]
    least: tuple[str, ...]
    about: str = ""
    domain: str | None = None
    form: str = ""
    apart: float = 0.1


@dataclass(frozen=True)
class Schema:
    """Schema of questions: the relations, hierarchies, comparisons and frames that turn facts into questions."""

    domains: Mapping[str, str]
    relations: Mapping[str, Relation]
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    frames: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    verdicts: tuple[str, str] = ("yes", "no")
    """Answers to a true and to a false statement."""
    disjoint: Mapping[str, DisjointClasses] = field(default_factory=dict)
    """Disjoint classes, by the predicate that leads from a member or subclass to its class."""

    def predicates(self) -> set[str]:
        """Return the predicates of all facts that questions use, including the kinship predicates of relations."""
        sections: Sequence[Mapping[str, Any]] = (self.comparisons, self.hierarchies, self.relations)
        used = {predicate for section in sections for entry in section.values() for predicate in entry.predicates}
        return used | {relation.kinship for relation in self.relations.values() if relation.kinship}

    def names(self) -> dict[str, str]:
        """Return the display name of each relation, hierarchy and comparison, by its key in the schema."""
        sections: Sequence[Mapping[str, Any]] = (self.comparisons, self.hierarchies, self.relations)
        return {name: entry.about for section in sections for name, entry in section.items()}


def default_relation(predicate: str, label: str) -> Relation:
    """Return a relation for a predicate without templates, with a template made from its label."""
    return Relation(predicate, (predicate,), (default_template(label),), about=label)


def read_schema(path: Path) -> Schema:
    """Read a schema from a YAML file.

    Raises:
        InputError: Keys, placeholders, forms or domains are unknown, or slots are missing; all are named.
    """
    content = read_yaml(path, "a schema with templates")
    if not isinstance(content, dict):
        raise InputError(f"{path}: a schema must be a mapping with 'relations' or 'hierarchies'")
    faults = FaultList()
    with faults.collect():
        refuse_unknown_keys(content, (*_SECTIONS, "verdicts"), str(path))
    sections: dict[str, dict[str, Any]] = {}
    for key in _SECTIONS:
        section = content.get(key) or {}
        if not isinstance(section, dict):
            faults.add(f"{path}: {key!r} must be a mapping of names, got a {type(section).__name__}")
            section = {}
        sections[key] = {str(name): body for name, body in section.items()}
    domains = {name: str(kind) for name, kind in sections["domains"].items()}
    for name, kind in domains.items():
        if kind not in KNOWLEDGE_TYPES:
            faults.add(
                f"{path}, domain {name!r}: unknown knowledge type {kind!r}; {did_you_mean(kind, KNOWLEDGE_TYPES)}"
            )
    verdicts = content.get("verdicts", ["yes", "no"])
    if not isinstance(verdicts, list) or len(verdicts) != 2 or not all(isinstance(word, str) for word in verdicts):
        faults.add(f'{path}: \'verdicts\' must be two words such as ["true", "false"], got {verdicts!r}')
        verdicts = ["yes", "no"]
    reader = _Reader(path, domains)

    def read_all(section: str, read: Callable[..., Any], *others: Any) -> dict[str, Any]:
        entries = {}
        for name, body in sections[section].items():
            with faults.collect():
                entries[name] = read(name, body, *others)
        return entries

    frames = read_all("frames", reader.frame)
    # A faulty frame is no reason to miss it in the hierarchies.
    known_frames = dict.fromkeys(sections["frames"], ()) | frames
    relations = read_all("relations", reader.relation)
    hierarchies = read_all("hierarchies", reader.hierarchy, known_frames)
    comparisons = read_all("comparisons", reader.comparison)
    disjoint = read_all("disjoint", reader.disjoint_classes)
    faults.refuse()
    return Schema(domains, relations, hierarchies, comparisons, frames, (verdicts[0], verdicts[1]), disjoint)


@dataclass(frozen=True)
class _Reader:
    path: Path
    domains: Mapping[str, str]

    def relation(self, name: str, body: Any) -> Relation:
        where = f"{self.path}, relation {name!r}"
        body = self._body(body, _RELATION_KEYS, where)
        faults = FaultList()
        asks: tuple[str, ...] = ()
        with faults.collect():
            asks = _names(body.get("ask", "object"), "ask", where)
        for ask in asks:
            if ask not in PLACEHOLDERS:
                faults.add(f"{where}: 'ask' is {ask!r}; {did_you_mean(ask, PLACEHOLDERS)}")
        if body.get("shorten") not in (None, "subject", "object"):
            hint = did_you_mean(str(body["shorten"]), ("subject", "object"))
            faults.add(f"{where}: 'shorten' is {body['shorten']!r}; {hint}")
        complete, functional = None, False
        with faults.collect():
            complete, functional = _completeness(body, where)
        templates: tuple[str, ...] = ()
        with faults.collect():
            templates = _statements(body.get("templates"), where)
        for ask in asks if templates else ():
            if ask in TIMES and any(f"{{{DATE_FORM} {ask}}}" in template for template in templates):
                faults.add(f"{where}: {{{DATE_FORM} {ask}}} cannot be asked for; write {{{ask}}}, which is the year")
            if ask in PLACEHOLDERS and not any(ask in placeholder_names(template) for template in templates):
                faults.add(f"{where}: 'ask' is {ask!r}, but no template names {{{ask}}}")
        scopes = []
        scope_list = body.get("scopes") or []
        if not isinstance(scope_list, list):
            faults.add(f"{where}: 'scopes' must be a list of mappings such as {{kind: city, templates: [...]}}")
            scope_list = []
        for scope in scope_list:
            if not isinstance(scope, dict) or set(scope) != {"kind", "templates"}:
                faults.add(f"{where}: a scope must have a 'kind' and 'templates', got {scope!r}")
                continue
            with faults.collect():
                texts = _statements(scope["templates"], f"{where}, scope {scope['kind']}")
                scopes.append(Scope(str(scope["kind"]), texts))
        predicates: tuple[str, ...] = ()
        with faults.collect():
            predicates = _names(body.get("predicate", name), "predicate", where)
        faults.refuse()
        return Relation(
            name=name,
            predicates=predicates,
            templates=templates,
            asks=asks,
            about=str(body.get("about", name)),
            domain=body.get("domain"),
            subject=str(body.get("subject", "")),
            object=str(body.get("object", "")),
            scopes=tuple(scopes),
            transitive=bool(body.get("transitive")),
            kinship=body.get("kinship"),
            shorten=body.get("shorten"),
            complete=complete,
            functional=functional,
            closed=bool(body.get("closed")),
            present=bool(body.get("present")),
            checking=bool(body.get("checking", body.get("completion", True))),
            completion=bool(body.get("completion", True)),
        )

    def hierarchy(self, name: str, body: Any, frames: Mapping[str, tuple[str, ...]]) -> Hierarchy:
        where = f"{self.path}, hierarchy {name!r}"
        body = self._body(body, _HIERARCHY_KEYS, where)
        templates: tuple[str, ...] = ()
        if body.get("templates"):
            templates = _framed(body["templates"], *_FRAMES["distinction"], where)
            for template in templates:
                if not _OPTIONAL_PLACEHOLDERS & set(placeholder_names(template)):
                    raise InputError(f"{where}: {template!r} must name {{category}} or {{aspect}}")
        elif "distinction" not in frames:
            raise InputError(f"{where} has no templates; write some, or write frames for 'distinction'")
        if not body.get("aspect") and any("{aspect}" in text for text in templates or frames["distinction"]):
            raise InputError(f"{where} has no 'aspect'; say what its categories are of, as in 'chemical category'")
        complete, functional = _completeness(body, where)
        farthest = str(body.get("farthest", NEARNESS[-1]))
        if farthest not in NEARNESS:
            raise InputError(f"{where}: 'farthest' is {farthest!r}; {did_you_mean(farthest, NEARNESS)}")
        return Hierarchy(
            name=name,
            predicates=_names(body.get("predicate", name), "predicate", where),
            aspect=str(body.get("aspect") or ""),
            about=str(body.get("about", name)),
            domain=body.get("domain"),
            form=_form(body, where),
            templates=templates,
            complete=complete,
            functional=functional,
            farthest=farthest,
        )

    def comparison(self, name: str, body: Any) -> Comparison:
        where = f"{self.path}, comparison {name!r}"
        body = self._body(body, _COMPARISON_KEYS, where)
        if not body.get("most") and not body.get("least"):
            raise InputError(f"{where} has no templates; write some under 'most' or 'least'")
        apart = body.get("apart", 0.1)
        if not isinstance(apart, int | float) or apart < 0:
            raise InputError(f"{where}: 'apart' must be a share such as 0.1, got {apart!r}")
        most, least = (
            _framed(body[key], ("members",), True, where) if body.get(key) else () for key in ("most", "least")
        )
        return Comparison(
            name=name,
            predicates=_names(body.get("predicate", name), "predicate", where),
            most=most,
            least=least,
            about=str(body.get("about", name)),
            domain=body.get("domain"),
            form=_form(body, where),
            apart=float(apart),
        )

    def disjoint_classes(self, predicate: str, body: Any) -> DisjointClasses:
        where = f"{self.path}, disjoint classes of {predicate!r}"
        if not isinstance(body, dict):
            raise InputError(f"{where}: write lists of class names under 'groups', or class names under 'below'")
        refuse_unknown_keys(body, ("groups", "below"), where)
        groups = body.get("groups") or []
        if not isinstance(groups, list) or not all(isinstance(group, list) and len(group) > 1 for group in groups):
            raise InputError(f"{where}: 'groups' must be lists of at least two class names")
        below = body.get("below") or []
        return DisjointClasses(
            tuple(_names(group, "groups", where) for group in groups),
            _names(below, "below", where) if below else (),
        )

    def frame(self, kind: str, templates: Any) -> tuple[str, ...]:
        where = f"{self.path}, frames"
        if kind not in _FRAMES:
            raise InputError(f"{where}: there are no frames for {kind!r}; {did_you_mean(kind, _FRAMES)}")
        return _framed(templates, *_FRAMES[kind], f"{where} for {kind!r}")

    def _body(self, body: Any, keys: tuple[str, ...], where: str) -> dict[str, Any]:
        if not isinstance(body, dict):
            raise InputError(f"{where} has no templates; write at least one under 'templates'")
        refuse_unknown_keys(body, keys, where)
        domain = body.get("domain")
        if domain is not None and str(domain) not in self.domains:
            raise InputError(
                f"{where}: the domain {domain!r} is not declared; {did_you_mean(str(domain), self.domains)}"
            )
        if not isinstance(domain, str | None) or not isinstance(body.get("kinship"), str | None):
            raise InputError(f"{where}: 'domain' and 'kinship' must be names; write them in quotes")
        return body


def _statements(value: Any, where: str) -> tuple[str, ...]:
    templates = _texts(value, where)
    faults = FaultList()
    for template in templates:
        with faults.collect():
            if SLOT in template:
                raise InputError(f"{where}: {template!r} has a slot; write the asked placeholder, as in {{object}}")
            check_placeholders(template, PLACEHOLDERS, {"subject", "object"}, where)
    faults.refuse()
    return templates


def _framed(value: Any, placeholders: tuple[str, ...], has_slot: bool, where: str) -> tuple[str, ...]:
    """Return templates that surround a list or a statement, after checking their placeholders and slots."""
    templates = _texts(value, where)
    required = set(placeholders) - _OPTIONAL_PLACEHOLDERS
    faults = FaultList()
    for template in templates:
        with faults.collect():
            check_placeholders(template, placeholders, required, where)
            for name in sorted({*required, "aspect"}):
                if name in placeholder_names(template) and f"{{{name}}}" not in template:
                    raise InputError(
                        f"{where}: {template!r} must write {{{name}}} plainly, without an article before it"
                    )
            if template.count(SLOT) != int(has_slot):
                how = "exactly once" if has_slot else "nowhere, because the statement contains it"
                raise InputError(
                    f"{where}: {template!r} has {counted(template.count(SLOT), 'slot')}; write {SLOT} {how}"
                )
    faults.refuse()
    return templates


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not value:
        raise InputError(f"{where} has no templates; write at least one under 'templates'")
    if not isinstance(value, list) or not all(isinstance(text, str) and text.strip() for text in value):
        raise InputError(f"{where}: 'templates' must be a list of sentences")
    return tuple(dict.fromkeys(value))


def _names(value: Any, key: str, where: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"{where}: {key!r} must be a name or a list of names, got {value!r}")
    return tuple(dict.fromkeys(names))


def _completeness(body: Mapping[str, Any], where: str) -> tuple[str | None, bool]:
    """Return ``complete`` and ``functional`` of a relation or hierarchy."""
    complete, functional = body.get("complete"), body.get("functional", False)
    if complete is not None and complete not in PLACES:
        raise InputError(f"{where}: 'complete' is {complete!r}; {did_you_mean(str(complete), PLACES)}")
    if not isinstance(functional, bool):
        raise InputError(f"{where}: 'functional' must be true or false, got {functional!r}")
    return complete, functional


def _form(body: Mapping[str, Any], where: str) -> str:
    form = body.get("form", "")
    if not isinstance(form, str) or form not in FORMS:
        raise InputError(f"{where}: 'form' is {form!r}; {did_you_mean(str(form), [name for name in FORMS if name])}")
    return form
