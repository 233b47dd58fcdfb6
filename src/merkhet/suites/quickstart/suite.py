"""The quickstart suite: a first look at a model, on the embedded packs or on your own facts."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from merkhet.core.errors import InputError
from merkhet.engine.study import Study
from merkhet.engine.suite import Suite
from merkhet.knowledge.engines.open_engine import open_tables
from merkhet.knowledge.pack_catalog import declared_predicates, embedded_packs
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.makers.make_questions import make_benchmark
from merkhet.questions.makers.question_builder import MakerOptions
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.schema import Schema, default_relation, read_schema
from merkhet.suites.quickstart.options import QuickstartOptions, read_options

TASKS = ("completion", "checking", "distinction")
_VOCABULARY = ("rdf:", "rdfs:", "owl:", "skos:", "schema:domain", "schema:range")
"""Prefixes of predicates of ontologies, which default templates cannot word."""


def build(study: Study, home: Path) -> QuestionSet:
    """Build completion, checking and distinction questions from the study's knowledge, up to the limit of each.

    A predicate without templates is worded by its label.
    """
    options = read_options(study)
    schema = _schema(options, home)
    with KnowledgeBase.load(study.knowledge, home, _needed_predicates(study, options, schema)) as knowledge:
        schema = _complete_schema(knowledge, schema, user_templates=options.templates is not None)
        maker_options = MakerOptions(
            "quickstart", study.seed, choices=options.choices, limit=study.limit or 400, distinct_names=True
        )
        with open_tables(knowledge.connection, None, ("facts", "names")) as tables:
            return make_benchmark(tables, schema, maker_options, study.tasks or TASKS)


def _needed_predicates(study: Study, options: QuickstartOptions, schema: Schema) -> tuple[str, ...]:
    """Return the predicates with templates if all knowledge is embedded; otherwise nothing, as all are needed."""
    if options.templates or not set(study.knowledge) <= set(embedded_packs()):
        return ()
    return tuple(sorted(schema.predicates()))


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
    """Add relations for the predicates without templates, unless an embedded pack declares them."""
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
        return _schema(read_options(study), home).names()


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
    options={
        "choices": "how many candidates a completion question has (10)",
        "templates": "a YAML file with your own templates",
    },
    file_options=("templates",),
    methods=(
        "In completion, one name of a fact is left out and chosen among names that stand in the same place of other "
        "facts of the relation, none of which is right for the sentence. In checking, a true statement and one with "
        "such a wrong name are equally frequent. In distinction, three of four names share a category and the fourth "
        "is in no way in it; its place is balanced."
    ),
)
