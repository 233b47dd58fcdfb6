"""Starter schemas: a schema of questions for any knowledge base, to be edited by its owner."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from merkhet.core.dates import say_date
from merkhet.core.errors import InputError
from merkhet.core.files import path_exists, write_text
from merkhet.core.text import counted
from merkhet.knowledge.predicate_labels import humanize
from merkhet.knowledge.sources.conceptnet import SURFACE
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.template_suggestions import category_noun, sentence_templates, superlatives

_VOCABULARY = ("rdfs:", "owl:", "skos:", "schema:domainIncludes", "schema:rangeIncludes", "schema:inverseOf")
_TYPES = frozenset({"rdf:type", "P31", "instance of", "instance-of", "is a", "is-a", "type", "IsA"})
_CLASSES = frozenset({"rdfs:subClassOf", "P279", "subclass of", "subclass-of"})
_FEWEST_MEMBERS = 3
"""Number of members that a category of a hierarchy needs for a question."""
_SINGLE_SHARE = 0.8
"""Share of subjects with one object that the predicate of a hierarchy needs."""
_MOST_SURFACES = 4
_SURFACE_SHARE = 0.02
"""Share of a predicate's surface texts that a pattern needs to become a template."""
_CODE = re.compile(r"[PQ]\d+|_:.*", re.IGNORECASE)
_HEAD = """\
# A starter schema: what is asked about {name}, and in which words. Edit it, then build the questions{command}
# A template is a true sentence. {{the subject}} adds "the" where a name needs it, {{a object}} adds "a" or "an".
# Lines with "review:" are guesses from the data; a commented line takes effect without its "# ".
"""
_FRAMES = """\
frames:  # sentences around statements and lists
  checking:
    - 'Is the statement "{statement}" true? [MASK].'
    - 'Is it true or not, yes or no: {statement} [MASK].'
  choices:
    - "Choose one of {choices}: {statement}"
  distinction:
    - "Among {members}, [MASK] is the outlier in terms of the {aspect}."
    - "Which of {members} differs from the others in terms of the {aspect}? [MASK]."
"""


@dataclass(frozen=True)
class _Predicate:
    """What the stated facts say about a predicate."""

    name: str
    label: str
    facts: int
    subjects: int
    objects: int
    numbers: int
    """Number of facts with a number."""
    texts: int
    """Number of facts with a literal other than a date."""
    dates: int
    """Number of facts whose object is a date with a day or a month."""
    single_objects: int
    """Number of subjects with one object."""
    single_subjects: int
    """Number of objects with one subject."""
    lower_objects: int
    """Number of objects whose label begins with a small letter."""
    chained: int
    """Number of objects that are also subjects of the predicate."""
    mirrored: int
    """Number of facts that are also stated in the other direction."""
    categories: int
    """Number of objects with enough subjects for a question on a category."""
    timed: int
    """Number of facts with a start."""
    units: tuple[str, ...] = ()
    subject_kinds: tuple[str, ...] = ()
    object_kinds: tuple[str, ...] = ()
    surfaces: tuple[str, ...] = ()
    """Templates from the surface texts of the source, the most frequent first."""
    key: str = field(default="", compare=False)

    @property
    def has_categories(self) -> bool:
        """Whether the objects divide nearly all subjects into categories, at least two of which have enough members."""
        is_divided = self.single_objects >= _SINGLE_SHARE * self.subjects
        return is_divided and self.categories > 1 and not self.mirrored

    @property
    def named(self) -> int:
        """Number of facts whose object has a name."""
        return self.facts - self.numbers - self.texts


@dataclass(frozen=True)
class StarterSchema:
    """The text of a starter schema, and the numbers of its entries."""

    text: str
    relations: int
    hierarchies: int
    comparisons: int
    left_out: tuple[str, ...]
    """Predicates without names or numbers to ask about."""

    @property
    def reviews(self) -> int:
        """Number of lines that are marked for review."""
        return self.text.count("# review:")


def write_starter_schema(store: Path, out: Path, language: str = "en", *, command: str = "") -> StarterSchema:
    """Write a starter schema for a knowledge base.

    Args:
        command: The command that builds questions with the schema, for a comment at its top.

    Raises:
        InputError: The file exists, or the knowledge base has no facts to ask about.
    """
    if path_exists(out):
        raise InputError(f"{out} exists. Name another file, so that no edited schema is lost.")
    with KnowledgeBase.open(store) as knowledge:
        schema = make_starter_schema(knowledge, language, store=store, command=command)
    write_text(out, schema.text)
    return schema


def make_starter_schema(
    knowledge: KnowledgeBase, language: str = "en", *, store: Path = Path("KB"), command: str = ""
) -> StarterSchema:
    """Make a starter schema for a knowledge base.

    Each predicate with named objects becomes a relation with templates from its label, or from the surface texts of
    ConceptNet. Each predicate with numbers becomes a comparison, and each predicate that divides its subjects into
    categories a hierarchy. Guesses on completeness are commented lines.

    Args:
        command: The command that builds questions with the schema, for a comment at its top.

    Raises:
        InputError: No predicate has names or numbers.
    """
    predicates = _with_keys(_read_predicates(knowledge, language))
    relations = [predicate for predicate in predicates if predicate.named]
    comparisons = [predicate for predicate in predicates if predicate.numbers >= 4]
    hierarchies = [predicate for predicate in relations if predicate.has_categories]
    if not relations and not comparisons:
        raise InputError(f"{store} has no stated facts with names or numbers to ask about")
    left_out = tuple(p.name for p in predicates if p not in relations and p not in comparisons)
    domains = [row["domain"] for row in knowledge.query(_DOMAINS).to_pylist()]
    own_domain = _slug(store.stem) or "knowledge"
    lines = [_HEAD.format(name=store.stem, command=f":\n#   {command}" if command else ".")]
    lines += ["domains:  # review: each is general, domain-specific or commonsense"]
    lines += [f"  {_yaml(name)}: domain-specific" for name in domains or [own_domain]]
    domain = None if domains else own_domain
    if relations:
        lines += ["relations:", *(line for predicate in relations for line in _relation(predicate, domain))]
    if hierarchies:
        lines += ["hierarchies:  # categories and their members, for questions on the odd one out"]
        lines += [line for predicate in hierarchies for line in _hierarchy(predicate, domain)]
    if comparisons:
        lines += ["comparisons:  # numbers, for questions on the highest and lowest"]
        lines += [line for predicate in comparisons for line in _comparison(predicate, domain)]
    lines += [_FRAMES.rstrip()]
    lines += [f"# Not asked, because the objects have no names: {', '.join(left_out)}"] if left_out else []
    return StarterSchema("\n".join(lines) + "\n", len(relations), len(hierarchies), len(comparisons), left_out)


_DOMAINS = "select distinct domain from facts where rule is null and domain is not null order by domain"
_STATED = "rule is null and coalesce(source, '') not like 'rules/%'"


def _read_predicates(knowledge: KnowledgeBase, language: str) -> list[_Predicate]:
    values = {"language": language, "fewest": _FEWEST_MEMBERS}
    rows = knowledge.query(_COUNTS, values).to_pylist()
    labels = {row["name"]: row["label"] for row in knowledge.query(_LABELS, {"language": language}).to_pylist()}
    dates = _date_counts(knowledge)
    found = []
    for row in rows:
        name = row.pop("name")
        if name.startswith(_VOCABULARY) and name not in _CLASSES:
            continue
        for key in ("units", "subject_kinds", "object_kinds"):
            row[key] = tuple(row[key] or ())
        label, count = labels.get(name) or humanize(name), dates.get(name, 0)
        found.append(_Predicate(name=name, label=label, dates=count, surfaces=_surfaces(knowledge, name), **row))
    return found


_COUNTS = f"""
with stated as (select * from facts where {_STATED}),
labels as (select entity, min(label) as label, min(kind) as kind from names where language = $language group by entity),
pairs as (
    select f.predicate, f.subject, f.object, f.start, f.value, f.unit,
        coalesce(b.label, nullif(
            regexp_extract(f.object, '^"([+-]?[0-9]{{1,9}}-[0-9]{{2}}(-[0-9]{{2}})?)"$', 1), '')) as o_label,
        b.kind as o_kind, a.kind as s_kind
    from stated f left join labels a on a.entity = f.subject left join labels b on b.entity = f.object
),
by_subject as (
    select predicate, subject, count(distinct object) as n from pairs where o_label is not null group by all
),
by_object as (
    select predicate, object, any_value(o_label) as label, count(distinct subject) as n from pairs
    where o_label is not null group by all
)
select p.predicate as name, count(*) as facts, count(distinct p.subject) as subjects,
    count(distinct p.object) filter (p.o_label is not null) as objects,
    count(*) filter (p.value is not null and p.object is null) as numbers,
    count(*) filter (p.object is not null and p.o_label is null) as texts,
    (select count(*) from by_subject s where s.predicate = p.predicate and s.n = 1) as single_objects,
    (select count(*) from by_object o where o.predicate = p.predicate and o.n = 1) as single_subjects,
    (select count(*) from by_object o where o.predicate = p.predicate
        and left(o.label, 1) != upper(left(o.label, 1))) as lower_objects,
    (select count(*) from by_object o where o.predicate = p.predicate
        and exists (select 1 from by_subject s where s.predicate = o.predicate and s.subject = o.object)) as chained,
    (select count(*) from pairs a semi join pairs b on a.predicate = b.predicate and a.subject = b.object
        and a.object = b.subject where a.predicate = p.predicate) as mirrored,
    (select count(*) from by_object o where o.predicate = p.predicate and o.n >= $fewest) as categories,
    count(p.start) as timed,
    list(distinct p.unit order by p.unit) filter (p.unit is not null) as units,
    list(distinct p.s_kind order by p.s_kind) filter (p.s_kind is not null) as subject_kinds,
    list(distinct p.o_kind order by p.o_kind) filter (p.o_kind is not null) as object_kinds
from pairs p group by p.predicate order by facts desc, name
"""
_LABELS = """
select entity as name, min(label) as label from names
where language = $language and entity in (select distinct predicate from facts) group by entity
union all
select name, label from predicates where label != name and name not in (
    select entity from names where language = $language)
"""


def _date_counts(knowledge: KnowledgeBase) -> dict[str, int]:
    """Return the number of facts whose object is a date with a day or a month, by predicate."""
    counts: dict[str, int] = {}
    query = f"select predicate, object, count(*) as n from facts where {_STATED} and object is not null group by all"
    for row in knowledge.query(query + " having regexp_matches(object, '[0-9]-[0-9]|^\"?-[0-9]')").to_pylist():
        if say_date(row["object"].strip('"')):
            counts[row["predicate"]] = counts.get(row["predicate"], 0) + row["n"]
    return counts


def _surfaces(knowledge: KnowledgeBase, predicate: str) -> tuple[str, ...]:
    """Return the most frequent templates from the surface texts of a predicate's facts."""
    rows = knowledge.query(
        "select d.text as text, count(*) as n from details d join facts f using (fact_id) "
        "where d.name = $detail and f.predicate = $predicate group by d.text order by n desc, d.text",
        {"detail": SURFACE, "predicate": predicate},
    ).to_pylist()
    least = _SURFACE_SHARE * sum(row["n"] for row in rows)
    texts = [row["text"] for row in rows if row["n"] >= least][:_MOST_SURFACES]
    return tuple(text if text.endswith((".", "!")) else f"{text}." for text in texts)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _with_keys(predicates: Sequence[_Predicate]) -> list[_Predicate]:
    """Give each predicate a key that is unique in the schema."""
    keys: set[str] = set()
    keyed = []
    for predicate in predicates:
        key = base = _slug(predicate.label) or _slug(predicate.name) or "relation"
        number = 2
        while key in keys:
            key, number = f"{base}-{number}", number + 1
        keys.add(key)
        keyed.append(replace(predicate, key=key))
    return keyed


def _relation(predicate: _Predicate, domain: str | None) -> Iterator[str]:
    """Yield the lines of a relation."""
    named_subjects, named_objects = predicate.subjects, predicate.objects
    is_single = predicate.single_objects == named_subjects
    is_unique = predicate.single_subjects == named_objects
    yield f"  {_yaml(predicate.key)}:"
    if predicate.name != predicate.key:
        yield f"    predicate: {_yaml(predicate.name)}"
    if predicate.label != predicate.key:
        yield f"    about: {_yaml(predicate.label)}"
    if domain:
        yield f"    domain: {_yaml(domain)}"
    for side, kinds in (("subject", predicate.subject_kinds), ("object", predicate.object_kinds)):
        if len(kinds) == 1:
            yield f"    {side}: {_yaml(kinds[0])}"
    if is_unique:
        yield "    ask: [object, subject]"
    dated = predicate.dates > predicate.named / 2
    templates = list(predicate.surfaces) or sentence_templates(
        predicate.label,
        is_type=predicate.name in _TYPES or predicate.label in _TYPES,
        is_class=predicate.name in _CLASSES or predicate.label in _CLASSES,
        single=is_single,
        dated=dated,
        common=predicate.lower_objects > named_objects / 2,
    )
    note = "  # review: the label is a code" if _CODE.fullmatch(predicate.label) else "  # review: read each aloud once"
    yield f"    templates:{'' if predicate.surfaces else note}"
    yield from (f"      - {json.dumps(template, ensure_ascii=False)}" for template in templates)
    if predicate.timed:
        yield "    # {start} and {end} are years, {date start} and {date end} days, as in 'from {start} to {end}'"
    yield from _completeness(predicate, is_single, is_unique)


def _completeness(predicate: _Predicate, is_single: bool, is_unique: bool) -> Iterator[str]:
    """Yield commented lines on completeness, functionality, transitivity and symmetry."""
    subjects = counted(predicate.subjects, "subject")
    several = predicate.subjects - predicate.single_objects
    if is_single:
        yield f"    # functional: true  # review: each of {subjects} has one object in this data"
    if is_unique and predicate.objects > 1:
        objects = counted(predicate.objects, "object")
        both = "" if is_single else f"; 'both' if all objects of the {several:,} subjects with several are listed, too"
        yield f"    # complete: subject  # review: each of {objects} has one subject in this data{both}"
    elif not is_single:
        yield f"    # complete: object  # review: {several:,} of {subjects} have several objects; are all listed?"
    if predicate.mirrored > predicate.named / 2:
        yield "    # review: facts are stated in both directions; declare 'symmetric' in a rules file (options.rules)"
    elif predicate.chained and not predicate.mirrored:
        yield f"    # transitive: true  # review: {counted(predicate.chained, 'object')} have an object, too"


def _hierarchy(predicate: _Predicate, domain: str | None) -> Iterator[str]:
    yield f"  {_yaml(predicate.key)}:"
    yield f"    predicate: {_yaml(predicate.name)}"
    aspect = "kind" if predicate.name in _TYPES | _CLASSES else category_noun(predicate.label, humanize(predicate.name))
    note = f"{predicate.categories:,} with {_FEWEST_MEMBERS} members or more"
    yield f"    aspect: {_yaml(aspect)}  # review: as in 'in terms of the {aspect}'; categories: {note}"
    if domain:
        yield f"    domain: {_yaml(domain)}"


def _comparison(predicate: _Predicate, domain: str | None) -> Iterator[str]:
    yield f"  {_yaml(predicate.key)}:"
    if predicate.name != predicate.key:
        yield f"    predicate: {_yaml(predicate.name)}"
    yield f"    about: {_yaml(predicate.label)}"
    if domain:
        yield f"    domain: {_yaml(domain)}"
    yield "    apart: 0.1  # review: least relative difference between the best two values"
    if len(predicate.units) > 1:
        yield f"    # review: several units: {', '.join(predicate.units)}"
    noun = category_noun(predicate.label, humanize(predicate.name))
    for key, word in zip(("most", "least"), superlatives(noun), strict=True):
        yield f"    {key}:"
        yield f"      - {_yaml(f'Which of the following has the {word} {noun}: {{members}}? [MASK].')}"
        yield f"      - {_yaml(f'Of {{members}}, the one with the {word} {noun} is [MASK].')}"


def _yaml(text: str) -> str:
    """Write a text as a YAML scalar: plain if it is a simple name, otherwise in quotation marks."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9 _-]*[A-Za-z0-9]|[A-Za-z]", text)
    if plain and text.lower() not in ("yes", "no", "true", "false", "null", "on", "off", "y", "n"):
        return text
    return json.dumps(text, ensure_ascii=False)
