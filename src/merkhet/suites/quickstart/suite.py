"""The quickstart suite: a first test of a model's knowledge, on the embedded packs or on the user's facts."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from merkhet.core.errors import InputError
from merkhet.core.text import counted, join_some
from merkhet.engine.study import Study
from merkhet.engine.suite import Suite
from merkhet.knowledge.engines.open_engine import open_tables
from merkhet.knowledge.pack_catalog import declared_predicates, embedded_packs
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.makers.make_questions import make_benchmark
from merkhet.questions.makers.question_builder import MakerOptions
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.schema import Relation, Schema, default_relation, read_schema
from merkhet.suites.quickstart.options import QuickstartOptions

TASKS = ("completion", "checking", "distinction")
_VOCABULARY = ("rdf:", "rdfs:", "owl:", "skos:", "schema:domain", "schema:range")
"""Prefixes of ontology predicates, for which no default templates are made."""

_DEFAULT_LIMIT = 400
_DISTINCTIONS_PER_ROUND = 300
"""Expected number of distinction questions from one random grouping of the members of categories."""


def build(study: Study, home: Path) -> QuestionSet:
    """Build completion, checking and distinction questions from the study's knowledge, up to the limit of each task.

    Sentences for a predicate without templates are made from its label.
    """
    options = QuickstartOptions.of(study)
    schema = _schema(options, home)
    if options.templates is None and set(study.knowledge) <= set(embedded_packs()):
        limited = _limit_relations(study, schema)
        questions = _make(study, home, options, limited, tuple(sorted(limited.predicates())))
        if _covers(questions, limited, study):
            return _remark_limited(questions, limited, _present_relations(study, schema))
        return _make(study, home, options, schema, tuple(sorted(schema.predicates())))
    return _make(study, home, options, schema)


def _make(
    study: Study, home: Path, options: QuickstartOptions, schema: Schema, predicates: Sequence[str] = ()
) -> QuestionSet:
    """Make questions from the facts of ``predicates``, or of all predicates if it is empty."""
    with KnowledgeBase.load(study.knowledge, home, predicates) as knowledge:
        if not predicates:
            schema = _complete_schema(knowledge, schema, user_templates=options.templates is not None)
        maker_options = MakerOptions(
            "quickstart",
            study.seed,
            rounds=math.ceil(_limit(study) / _DISTINCTIONS_PER_ROUND),
            choices=options.choices,
            limit=_limit(study),
            distinct_names=True,
            near=_near_predicates(study, options, schema, knowledge),
            evidence=options.evidence,
            complete=knowledge.complete_predicates(),
        )
        if predicates:
            # Embedded packs are so small that threads and join optimization cost more than they save.
            knowledge.connection.execute("set threads = 1")
            knowledge.connection.execute("set disabled_optimizers = 'join_order,statistics_propagation'")
        with open_tables(knowledge.connection, None, ("facts", "names")) as tables:
            return make_benchmark(tables, schema, maker_options, study.tasks or TASKS)


def _near_predicates(
    study: Study, options: QuickstartOptions, schema: Schema, knowledge: KnowledgeBase
) -> tuple[str, ...]:
    """Return the predicates of the relations within the limit, so that others need not be read; empty for all."""
    if options.templates is not None:
        return ()
    stated = set(knowledge.count())
    present = [relation for relation in schema.relations.values() if stated & set(relation.predicates)]
    return tuple(sorted(_limited_schema(study, schema, present).predicates()))


def _limit(study: Study) -> int:
    return study.limit or _DEFAULT_LIMIT


def _limit_relations(study: Study, schema: Schema) -> Schema:
    """Return a schema without the relations that get no question within the limit.

    Questions are made from the relations in turn, so a small limit reaches only the first relations.
    """
    return _limited_schema(study, schema, _present_relations(study, schema))


def _limited_schema(study: Study, schema: Schema, present: Sequence[Relation]) -> Schema:
    """Return a schema with the relations of ``present`` that are within the limit of each task."""
    reached = {
        relation.name
        for task in study.tasks or TASKS
        if task != "distinction"
        for relation in [relation for relation in present if getattr(relation, task)][: _limit(study)]
    }
    relations = {name: relation for name, relation in schema.relations.items() if name in reached}
    hierarchies = schema.hierarchies if "distinction" in (study.tasks or TASKS) else {}
    return replace(schema, relations=relations, hierarchies=hierarchies)


def _present_relations(study: Study, schema: Schema) -> list[Relation]:
    """Return the relations that have facts in the embedded packs of a study."""
    packs = embedded_packs()
    declared = {name for source in study.knowledge for name in declared_predicates(packs[source])}
    return [relation for relation in schema.relations.values() if declared & set(relation.predicates)]


def _remark_limited(questions: QuestionSet, limited: Schema, present: Sequence[Relation]) -> QuestionSet:
    """Add a remark if the limit leaves out relations, whose facts are in no account."""
    left_out = [relation.name for relation in present if relation.name not in limited.relations]
    if not left_out:
        return questions
    remark = f"beyond the limit: nothing is asked about {counted(len(left_out), 'relation')} ({join_some(left_out, 5)})"
    about = {**questions.about, "remarks": [*questions.about["remarks"], remark]}
    return replace(questions, about=about)


def _covers(questions: QuestionSet, schema: Schema, study: Study) -> bool:
    """Return whether every relation of a limited schema has a question in every task.

    If not, relations outside the limited schema are needed to reach the limit.
    """
    rows = questions.questions.select(["task", "template"]).to_pylist()
    asked = {(row["task"], row["template"].rpartition("/")[0]) for row in rows}
    return all(
        (task, relation.name) in asked
        for task in study.tasks or TASKS
        if task != "distinction"
        for relation in [relation for relation in schema.relations.values() if getattr(relation, task)][: _limit(study)]
    )


def _schema(options: QuickstartOptions, home: Path) -> Schema:
    default = _default_schema()
    if options.templates is None:
        return default
    schema = read_schema(home / options.templates)
    if "checking" in schema.frames:
        return schema
    return replace(schema, frames={**default.frames, **schema.frames}, verdicts=default.verdicts)


@functools.cache
def _default_schema() -> Schema:
    return read_schema(Path(__file__).parent / "schema.yaml")


def _complete_schema(knowledge: KnowledgeBase, schema: Schema, *, user_templates: bool) -> Schema:
    """Add default relations for predicates without templates, except for predicates that an embedded pack declares."""
    predicates = sorted(knowledge.count())
    worded = {predicate for relation in schema.relations.values() for predicate in relation.predicates}
    if user_templates and (unused := sorted(worded - set(predicates))):
        raise InputError(
            f"no fact has the predicate {unused[0]!r} of the templates (options.templates); there are: "
            f"{', '.join(predicates)}"
        )
    unworded = [name for name in predicates if name not in worded and not name.startswith(_VOCABULARY)]
    unworded = [name for name in unworded if name not in _embedded_predicates()] if unworded else []
    if not unworded:
        return schema
    labels = {name: declared.label for name, declared in knowledge.predicates.items()} | knowledge.labels()
    added = {name: default_relation(name, labels.get(name) or _words(name)) for name in unworded}
    return replace(schema, relations={**schema.relations, **added})


@functools.cache
def _embedded_predicates() -> frozenset[str]:
    """Return the predicates that embedded packs declare; they need no default templates."""
    return frozenset(name for pack in embedded_packs().values() for name in declared_predicates(pack))


def _words(predicate: str) -> str:
    """Split a predicate's name into words: ``birth place`` for ``dbo:birthPlace`` and ``birth_place``."""
    local = re.split(r"[/#:]", predicate.rstrip("/#:"))[-1] or predicate
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", local).replace("_", " ").replace("-", " ").strip()


class Quickstart(Suite):
    """Quickstart suite, for facts with any predicates."""

    def relation_names(self, study: Study, home: Path) -> Mapping[str, str]:
        """Return the display names of relations in the schema."""
        return _schema(QuickstartOptions.of(study), home).names()


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
        "limit": _DEFAULT_LIMIT,
        "options": {},
    },
    options=QuickstartOptions,
    balanced=("checking", "distinction"),
    methods=(
        "Completion leaves out one name of a fact; the distractors are names of other facts of the relation that are "
        "wrong in the sentence. Checking asks equally many true statements and statements with such a wrong name. "
        "Distinction shows three members of a category and an outlier that is not a member; the outlier's position is "
        "balanced."
    ),
)
