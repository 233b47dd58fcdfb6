"""quickstart: a first look at what a model knows, on the embedded packs or on your own facts."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from gnomon.foundation import InputError
from gnomon.foundation.tables import FREQUENCIES, QUESTIONS, make_table, question_id
from gnomon.knowledge import KnowledgeBase, declared_predicates, embedded_packs
from gnomon.questions import (
    Hierarchy,
    MakerOptions,
    QuestionSet,
    Relation,
    Schema,
    answer_frequencies,
    default_relation,
    make_checks,
    make_completions,
    make_distinctions,
    read_schema,
)
from gnomon.runs import Study
from gnomon.suites.suite import Suite

TASKS = ("completion", "checking", "distinction")
_OWN_SCHEMA = Path(__file__).parent / "schema.yaml"


def build(study: Study, home: Path) -> QuestionSet:
    """Completion, checking and distinction questions from the study's knowledge, as many of each as the limit says.

    A predicate without templates is worded by its name; only what an ontology says of its own terms is left out.
    """
    knowledge = KnowledgeBase.load(study.knowledge, home)
    schema = _schema(study, home)
    relations = _relations(knowledge, schema, own=bool(study.options.get("templates")))
    options = MakerOptions("quickstart", study.limit or 400, _choices(study), study.seed)
    hierarchies: Mapping[str, Hierarchy] = {
        name: one for name, one in schema.hierarchies.items() if one.predicate in knowledge.count()
    }
    rows = []
    for task in study.tasks or TASKS:
        if task == "completion":
            rows += make_completions(knowledge, relations, options)
        elif task == "checking":
            rows += make_checks(knowledge, relations, options)
        else:
            rows += make_distinctions(knowledge, hierarchies, options)
    # Two facts may read the same (homonyms, a city named twice): the question is asked once.
    distinct = {question_id(row): row for row in rows}
    return QuestionSet(
        make_table(QUESTIONS, list(distinct.values())),
        facts=knowledge.facts(),
        frequencies=make_table(FREQUENCIES, answer_frequencies(knowledge, relations, options.language)),
    )


def names(study: Study, home: Path) -> Mapping[str, str]:
    """What relations and hierarchies are called in sentences."""
    schema = _schema(study, home)
    called = {name: one.about for name, one in schema.hierarchies.items()}
    return called | {name: one.about for name, one in schema.relations.items()}


def _schema(study: Study, home: Path) -> Schema:
    given = study.options.get("templates")
    return read_schema(home / str(given)) if given else _own_schema()


@functools.cache
def _own_schema() -> Schema:
    return read_schema(_OWN_SCHEMA)


def _relations(knowledge: KnowledgeBase, schema: Schema, own: bool) -> dict[str, Relation]:
    counts = knowledge.count()
    relations = {name: one for name, one in schema.relations.items() if one.predicate in counts}
    missing = [one.predicate for one in schema.relations.values() if one.predicate not in counts]
    if own and missing:
        raise InputError(
            f"the templates are for the predicate {missing[0]!r}, and no fact has it; there are: {', '.join(counts)}"
        )
    worded = {one.predicate for one in schema.relations.values()}
    labels = {name: one.label for name, one in knowledge.predicates.items()} | knowledge.labels()
    unasked = _embedded_predicates()
    for predicate in sorted(counts):
        # What an ontology says of its own terms is nothing to ask about in these words.
        vocabulary = predicate.startswith(("rdf:", "rdfs:", "owl:", "skos:", "schema:domain", "schema:range"))
        if predicate not in worded and predicate not in unasked and not vocabulary:
            relations[predicate] = default_relation(predicate, labels.get(predicate) or _words(predicate))
    return relations


@functools.cache
def _embedded_predicates() -> frozenset[str]:
    """Return what embedded packs declare: they have templates for all that is worth asking."""
    return frozenset(name for pack in embedded_packs().values() for name in declared_predicates(pack))


def _words(predicate: str) -> str:
    """A predicate's name as words: ``birth place`` for ``dbo:birthPlace`` and ``birth_place``."""
    local = re.split(r"[/#:]", predicate.rstrip("/#:"))[-1] or predicate
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", local).replace("_", " ").replace("-", " ").strip()


def _choices(study: Study) -> int:
    choices = study.options.get("choices", 10)
    if not isinstance(choices, int) or choices < 2:
        raise InputError(f"quickstart: choices is {choices!r}, and should be a whole number from 2 on")
    return choices


SUITE = Suite(
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
    options={
        "choices": "how many candidates a completion question has (10)",
        "templates": "a YAML file with your own templates",
    },
    file_options=("templates",),
    names=names,
    methods=(
        "In completion, one name of a fact is left out and chosen among names that stand in the same place of other "
        "facts of the relation, none of which is right for the sentence. In checking, a true statement and one with "
        "such a wrong name are equally frequent. In distinction, three of four names share a category and the fourth "
        "is in no way in it; its place is balanced."
    ),
)
