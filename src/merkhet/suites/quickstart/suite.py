"""The quickstart suite: a first look at a model, on the embedded packs or on your own facts."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.schemas import FREQUENCIES, QUESTIONS, make_table, question_id
from merkhet.engine.study import Study
from merkhet.engine.suite import Suite
from merkhet.knowledge.pack_catalog import declared_predicates, embedded_packs
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.templates import Hierarchy, Relation, Schema, default_relation, read_schema
from merkhet.suites.quickstart.options import QuickstartOptions
from merkhet.suites.quickstart.questions.checking import make_checks
from merkhet.suites.quickstart.questions.completion import answer_frequencies, make_completions
from merkhet.suites.quickstart.questions.distinction import make_distinctions
from merkhet.suites.quickstart.questions.named_facts import CachedKnowledge, MakerOptions

TASKS = ("completion", "checking", "distinction")
_DEFAULT_SCHEMA_FILE = Path(__file__).parent / "schema.yaml"


def build(study: Study, home: Path) -> QuestionSet:
    """Build completion, checking and distinction questions from the study's knowledge, up to the limit of each.

    A predicate without templates is worded by its name; the vocabulary of ontologies (rdf:, owl:, …) is skipped.
    """
    schema = _schema(study, home)
    options = MakerOptions("quickstart", study.limit or 400, QuickstartOptions.of(study).choices, study.seed)
    needed = _needed_predicates(study, schema, options.limit)
    if needed:
        questions = _make(study, KnowledgeBase.load(study.knowledge, home, needed), schema, options)
        if _covers(questions, schema, options.limit):
            return questions
    return _make(study, KnowledgeBase.load(study.knowledge, home), schema, options)


def _make(study: Study, knowledge: KnowledgeBase, schema: Schema, options: MakerOptions) -> QuestionSet:
    cached = CachedKnowledge(knowledge)
    predicates = sorted(cached.facts()["predicate"].unique().to_pylist())
    relations = _relations(knowledge, schema, predicates, user_templates=bool(study.options.get("templates")))
    hierarchies: Mapping[str, Hierarchy] = {
        name: hierarchy for name, hierarchy in schema.hierarchies.items() if hierarchy.predicate in predicates
    }
    rows = []
    for task in study.tasks or TASKS:
        if task == "completion":
            rows += make_completions(cached, relations, options)
        elif task == "checking":
            rows += make_checks(cached, relations, options)
        else:
            rows += make_distinctions(cached, hierarchies, options)
    # Two facts may have the same text (homonyms, a city named twice): the question is asked once.
    distinct = {question_id(row): row for row in rows}
    asked = {_relation_name(row) for row in distinct.values() if row["task"] == "completion"}
    asked_relations = {name: hierarchy for name, hierarchy in relations.items() if name in asked}
    return QuestionSet(
        make_table(QUESTIONS, list(distinct.values())),
        facts=cached.facts(),
        frequencies=make_table(FREQUENCIES, answer_frequencies(cached, asked_relations, options.language)),
    )


def _needed_predicates(study: Study, schema: Schema, limit: int) -> tuple[str, ...]:
    """Return the predicates that questions of embedded packs are made from, or nothing where all facts are needed.

    Relations take turns, so a limit of ten questions reaches ten relations. What an embedded pack holds besides is
    never asked. The facts of other sources are all read: any predicate of theirs may become a question.
    """
    packs = embedded_packs()
    if study.options.get("templates") or not all(source in packs for source in study.knowledge):
        return ()
    declared = {name for source in study.knowledge for name in declared_predicates(packs[source])}
    relations = [relation for relation in schema.relations.values() if relation.predicate in declared]
    tasks = study.tasks or TASKS
    asked = [relation for relation in relations if relation.completion][: limit if "completion" in tasks else 0]
    asked += [relation for relation in relations if relation.checking][: limit if "checking" in tasks else 0]
    needed = {relation.predicate for relation in asked} | {relation.kinship for relation in asked if relation.kinship}
    if "distinction" in tasks:
        needed |= {hierarchy.predicate for hierarchy in schema.hierarchies.values() if hierarchy.predicate in declared}
    return tuple(sorted(needed))


def _covers(questions: QuestionSet, schema: Schema, limit: int) -> bool:
    """Tell whether every relation that was loaded for its turn has a question, so that no other would have had it."""
    loaded = set(questions.facts["predicate"].unique().to_pylist())
    rows = questions.questions.select(["task", "template"]).to_pylist()
    for task, may_be_asked in (("completion", _completes), ("checking", _checks)):
        asked_relations = {_relation_name(row) for row in rows if row["task"] == task}
        expected = [
            relation.name
            for relation in schema.relations.values()
            if relation.predicate in loaded and may_be_asked(relation)
        ]
        if asked_relations and not set(expected[:limit]) <= asked_relations:
            return False
    return True


def _completes(relation: Relation) -> bool:
    return relation.completion


def _checks(relation: Relation) -> bool:
    return relation.checking


def _relation_name(row: Mapping[str, Any]) -> str:
    return str(row["template"]).rpartition("/")[0]


def _schema(study: Study, home: Path) -> Schema:
    path = QuickstartOptions.of(study).templates
    return read_schema(home / path) if path else _default_schema()


@functools.cache
def _default_schema() -> Schema:
    return read_schema(_DEFAULT_SCHEMA_FILE)


def _relations(
    knowledge: KnowledgeBase, schema: Schema, predicates: Collection[str], user_templates: bool
) -> dict[str, Relation]:
    relations = {name: relation for name, relation in schema.relations.items() if relation.predicate in predicates}
    unused_predicates = [
        relation.predicate for relation in schema.relations.values() if relation.predicate not in predicates
    ]
    if user_templates and unused_predicates:
        known_predicates = ", ".join(predicates)
        raise InputError(
            f"no fact has the predicate {unused_predicates[0]!r} of the templates (options.templates); there are: "
            f"{known_predicates}"
        )
    worded_predicates = {relation.predicate for relation in schema.relations.values()}
    unworded_predicates = [predicate for predicate in sorted(predicates) if predicate not in worded_predicates]
    if not unworded_predicates:
        return relations
    labels = {name: relation.label for name, relation in knowledge.predicates.items()} | knowledge.labels()
    embedded = _embedded_predicates()
    for predicate in unworded_predicates:
        # The vocabulary of ontologies cannot be asked in these words.
        vocabulary = predicate.startswith(("rdf:", "rdfs:", "owl:", "skos:", "schema:domain", "schema:range"))
        if predicate not in embedded and not vocabulary:
            relations[predicate] = default_relation(predicate, labels.get(predicate) or _words(predicate))
    return relations


@functools.cache
def _embedded_predicates() -> frozenset[str]:
    """Return what embedded packs declare: they have templates for all that is worth asking."""
    return frozenset(name for pack in embedded_packs().values() for name in declared_predicates(pack))


def _words(predicate: str) -> str:
    """Split a predicate's name into words: ``birth place`` for ``dbo:birthPlace`` and ``birth_place``."""
    local = re.split(r"[/#:]", predicate.rstrip("/#:"))[-1] or predicate
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", local).replace("_", " ").replace("-", " ").strip()


class Quickstart(Suite):
    """Quickstart, for any predicates."""

    def relation_names(self, study: Study, home: Path) -> Mapping[str, str]:
        """Return the names that the schema gives to relations."""
        schema = _schema(study, home)
        names = {name: entry.about for name, entry in schema.hierarchies.items()}
        return names | {name: entry.about for name, entry in schema.relations.items()}


SUITE = Quickstart(
    name="quickstart",
    title="Quickstart: what a model knows of elements, countries, offices and everyday things",
    about="a first look at a model's knowledge: completion, statement checking and distinction",
    build=build,
    tasks=TASKS,
    headline=(("completion", "r@1"), ("checking", "accuracy"), ("distinction", "accuracy")),
    defaults={
        "knowledge": ["elements", "countries", "offices", "taxonomy"],
        "models": ["smollm2-135m", "minilm-mlm", "frequency", "random"],
        "probes": ["rank"],
        "metrics": ["accuracy", "r@1", "r@5", "mrr", "f1"],
        "limit": 400,
        "options": {},
    },
    options=QuickstartOptions,
    methods=(
        "In completion, one name of a fact is left out and chosen among names that stand in the same place of other "
        "facts of the relation, none of which is right for the sentence. In checking, a true statement and one with "
        "such a wrong name are equally frequent. In distinction, three of four names share a category and the fourth "
        "is in no way in it; its place is balanced."
    ),
)
