"""The schema of a benchmark as data: domains, relations with paraphrased templates, hierarchies, comparisons, frames.

The grammar of places is that of :mod:`merkhet.questions.templates`: a statement names ``{subject}`` and ``{object}``
exactly once each, and may narrow itself by ``{start}`` or ``{end}``; before a place's name may stand a form, as in
``{a object}``, ``{the subject}``, ``{plural object}``. The place that is asked for becomes the slot. Frames and the
templates of hierarchies and comparisons hold the slot ``[MASK]`` themselves, or get it with the statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merkhet.core import SLOT
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import read_yaml
from merkhet.questions.english import FORMS
from merkhet.questions.templates import PLACEHOLDERS, check_placeholders, refuse_unknown_keys

KNOWLEDGE_TYPES = ("domain-specific", "general", "commonsense")
_RELATION_KEYS = (
    *("about", "domain", "predicate", "subject", "object", "ask", "templates", "scopes", "checking", "completion"),
    *("transitive", "kinship", "shorten", "wrong", "closed", "present"),
)
_HIERARCHY_KEYS = ("about", "domain", "predicate", "aspect", "form", "templates")
_COMPARISON_KEYS = ("about", "domain", "predicate", "form", "apart", "most", "least")
_FRAMES: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "checking": (("statement",), True),
    "choices": (("choices", "statement"), False),
    "distinction": (("members", "aspect"), True),
}
"""The places that each kind of frame must name, and whether it has the slot itself."""


@dataclass(frozen=True)
class Scope:
    """Templates for answers of one kind, used where the answer is not unique without them."""

    kind: str
    templates: tuple[str, ...]


@dataclass(frozen=True)
class Relation:
    """How facts of some predicates are put into words, which places are asked for, and where they belong.

    ``subject`` and ``object`` say what the entities are. ``transitive`` counts every object that a chain of facts
    leads to as right; ``kinship`` names an is-a-like predicate: what is above or below a right answer is never
    offered as a wrong one. ``shorten`` names a place of which only the last word is kept ("Samoan tala").
    ``wrong`` says where wrong names are sought first: ``near`` in the fact's own domain, ``far`` in others (where
    the knowledge is not complete, what is near may be right after all).
    ``present`` says that the templates tell what holds now, so that facts which have ended are not asked about.
    ``closed`` offers choices wherever the relation is reasoned about: what the knowledge says may not be all there is.
    ``checking`` and ``completion`` switch a question kind off; a relation that is only concluded has no completion.
    """

    name: str
    predicates: tuple[str, ...]
    templates: tuple[str, ...]
    asks: tuple[str, ...] = ("object",)
    about: str = ""
    domain: str | None = None
    subject: str = ""
    object: str = ""
    scopes: tuple[Scope, ...] = ()
    transitive: bool = False
    kinship: str | None = None
    shorten: str | None = None
    wrong: str | None = None
    closed: bool = False
    present: bool = False
    checking: bool = True
    completion: bool = True


@dataclass(frozen=True)
class Hierarchy:
    """Who belongs to which category by some predicates, closed upwards; ``aspect`` is what the categories are of."""

    name: str
    predicates: tuple[str, ...]
    aspect: str
    about: str = ""
    domain: str | None = None
    form: str = ""
    templates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Numeric facts that can be compared: sentences that ask for the one with the most, and with the least."""

    name: str
    predicates: tuple[str, ...]
    most: tuple[str, ...]
    least: tuple[str, ...]
    about: str = ""
    domain: str | None = None
    form: str = ""
    apart: float = 0.1


@dataclass(frozen=True)
class BenchmarkSchema:
    """All that turns a knowledge base into a benchmark but for the knowledge."""

    domains: Mapping[str, str]
    relations: Mapping[str, Relation]
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    frames: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def names(self) -> dict[str, str]:
        """What relations, hierarchies and comparisons are called in sentences."""
        parts: Sequence[Mapping[str, Any]] = (self.comparisons, self.hierarchies, self.relations)
        return {name: one.about for part in parts for name, one in part.items()}


def read_benchmark_schema(path: Path) -> BenchmarkSchema:
    """The schema of a YAML file; refuses unknown keys, places, forms and domains, and a sentence without its slot."""
    content = read_yaml(path, "a schema with templates")
    if not isinstance(content, dict):
        raise InputError(f"{path}: a schema is a mapping with 'relations', and this is none")
    refuse_unknown_keys(content, ("domains", "relations", "hierarchies", "comparisons", "frames"), str(path))
    for key, given in content.items():
        if given is not None and not isinstance(given, dict):
            raise InputError(f"{path}: under {key!r} stand names, and not a {type(given).__name__}")
    domains = {str(name): str(kind) for name, kind in (content.get("domains") or {}).items()}
    for name, kind in domains.items():
        if kind not in KNOWLEDGE_TYPES:
            raise InputError(
                f"{path}, domain {name!r}: the knowledge type {kind!r} is none; {did_you_mean(kind, KNOWLEDGE_TYPES)}"
            )
    reader = _Reader(path, domains)
    frames = {str(kind): reader.frame(str(kind), given) for kind, given in (content.get("frames") or {}).items()}
    relations = {str(n): reader.relation(str(n), body) for n, body in (content.get("relations") or {}).items()}
    hierarchies = {
        str(n): reader.hierarchy(str(n), body, "distinction" in frames)
        for n, body in (content.get("hierarchies") or {}).items()
    }
    comparisons = {str(n): reader.comparison(str(n), body) for n, body in (content.get("comparisons") or {}).items()}
    return BenchmarkSchema(domains, relations, hierarchies, comparisons, frames)


@dataclass(frozen=True)
class _Reader:
    path: Path
    domains: Mapping[str, str]

    def relation(self, name: str, body: Any) -> Relation:
        where = f"{self.path}, relation {name!r}"
        body = self._body(body, _RELATION_KEYS, where)
        asks = _names(body.get("ask", "object"), "ask", where)
        for ask in asks:
            if ask not in PLACEHOLDERS:
                raise InputError(f"{where}: 'ask' names {ask!r}; {did_you_mean(ask, PLACEHOLDERS)}")
        if body.get("shorten") not in (None, "subject", "object"):
            raise InputError(f"{where}: 'shorten' is {body['shorten']!r}, and should be subject or object")
        if body.get("wrong") not in (None, "near", "far"):
            raise InputError(f"{where}: 'wrong' is {body['wrong']!r}, and should be near or far")
        templates = _statements(body.get("templates"), where)
        scopes = []
        given = body.get("scopes") or []
        if not isinstance(given, list):
            raise InputError(f"{where}: 'scopes' is a list of such as {{kind: city, templates: [...]}}")
        for scope in given:
            if not isinstance(scope, dict) or set(scope) != {"kind", "templates"}:
                raise InputError(f"{where}: a scope has a 'kind' and 'templates', and this is {scope!r}")
            scopes.append(Scope(str(scope["kind"]), _statements(scope["templates"], f"{where}, scope {scope['kind']}")))
        return Relation(
            name=name,
            predicates=_names(body.get("predicate", name), "predicate", where),
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
            wrong=body.get("wrong"),
            closed=bool(body.get("closed")),
            present=bool(body.get("present")),
            checking=bool(body.get("checking", True)),
            completion=bool(body.get("completion", True)),
        )

    def hierarchy(self, name: str, body: Any, has_frames: bool) -> Hierarchy:
        where = f"{self.path}, hierarchy {name!r}"
        body = self._body(body, _HIERARCHY_KEYS, where)
        if not body.get("aspect"):
            raise InputError(f"{where} has no 'aspect'; say what its categories are of, as in 'chemical category'")
        templates: tuple[str, ...] = ()
        if body.get("templates"):
            templates = _framed(body["templates"], *_FRAMES["distinction"], where)
        elif not has_frames:
            raise InputError(f"{where} has no templates; write some, or write frames for 'distinction'")
        return Hierarchy(
            name=name,
            predicates=_names(body.get("predicate", name), "predicate", where),
            aspect=str(body["aspect"]),
            about=str(body.get("about", name)),
            domain=body.get("domain"),
            form=_form(body, where),
            templates=templates,
        )

    def comparison(self, name: str, body: Any) -> Comparison:
        where = f"{self.path}, comparison {name!r}"
        body = self._body(body, _COMPARISON_KEYS, where)
        if not body.get("most") and not body.get("least"):
            raise InputError(f"{where} has no templates; write some under 'most' or 'least'")
        apart = body.get("apart", 0.1)
        if not isinstance(apart, int | float) or apart < 0:
            raise InputError(f"{where}: 'apart' is {apart!r}, and should be a share such as 0.1")
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

    def frame(self, kind: str, given: Any) -> tuple[str, ...]:
        where = f"{self.path}, frames"
        if kind not in _FRAMES:
            raise InputError(f"{where}: there are no frames for {kind!r}; {did_you_mean(kind, _FRAMES)}")
        return _framed(given, *_FRAMES[kind], f"{where} for {kind!r}")

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
            raise InputError(f"{where}: 'domain' and 'kinship' are names; write them in quotes")
        return body


def _statements(given: Any, where: str) -> tuple[str, ...]:
    templates = _texts(given, where)
    for template in templates:
        if SLOT in template:
            raise InputError(f"{where}: {template!r} has a slot; write the place that is asked for, as in {{object}}")
        check_placeholders(template, PLACEHOLDERS, {"subject", "object"}, where)
    return templates


def _framed(given: Any, wanted: tuple[str, ...], has_slot: bool, where: str) -> tuple[str, ...]:
    """Sentences around a list or a statement: their places, and exactly one slot."""
    templates = _texts(given, where)
    for template in templates:
        check_placeholders(template, wanted, set(wanted) - {"aspect"}, where)
        if template.count(SLOT) != int(has_slot):
            how = "exactly once" if has_slot else "nowhere: the statement brings it"
            raise InputError(f"{where}: {template!r} has {template.count(SLOT)} slots; write {SLOT} {how}")
    return templates


def _texts(given: Any, where: str) -> tuple[str, ...]:
    if not given:
        raise InputError(f"{where} has no templates; write at least one under 'templates'")
    if not isinstance(given, list) or not all(isinstance(text, str) and text.strip() for text in given):
        raise InputError(f"{where}: 'templates' is a list of sentences")
    return tuple(dict.fromkeys(given))


def _names(given: Any, key: str, where: str) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"{where}: {key!r} is a name or a list of names, and this is {given!r}")
    return tuple(dict.fromkeys(names))


def _form(body: Mapping[str, Any], where: str) -> str:
    form = body.get("form") or ""
    if not isinstance(form, str) or form not in FORMS:
        raise InputError(f"{where}: 'form' is {form!r}; {did_you_mean(str(form), [name for name in FORMS if name])}")
    return str(form)
