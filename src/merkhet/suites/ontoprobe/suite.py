"""ontoprobe: does a model know an ontology, and does it see what follows from it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.errors import InputError
from merkhet.engine.build_step import apply_limits
from merkhet.engine.resolve_study import ResolvedStudy
from merkhet.engine.study import Study
from merkhet.engine.suite import AskingSteps, Suite
from merkhet.knowledge.ontology import read_ontology
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.splits import check_splits
from merkhet.suites.ontoprobe.analyses.premise_effects import premises
from merkhet.suites.ontoprobe.analyses.prompt_effects import prompting
from merkhet.suites.ontoprobe.analyses.task_scores import memorizing
from merkhet.suites.ontoprobe.options import (
    CHOICE,
    HELP,
    LEARNED_FOR,
    MEMORIZING,
    PREDISPOSITION,
    RULES,
    WAYS,
    read_options,
)
from merkhet.suites.ontoprobe.plan import asking_steps
from merkhet.suites.ontoprobe.published import FILES, read_published_statements
from merkhet.suites.ontoprobe.published import MEMORIZING as PUBLISHED_TASKS
from merkhet.suites.ontoprobe.questions import OntologyOptions, make_ontology_questions
from merkhet.suites.ontoprobe.questions.ontology_statements import Statements, gather_statements
from merkhet.suites.ontoprobe.questions.property_patterns import read_patterns

NAMES = {
    "TP": "types of instances",
    "SCO": "superclasses",
    "SPO": "superproperties",
    "DM": "domains of properties",
    "RG": "ranges of properties",
}
SIX = [f"{masks}-{pooling}" for masks in ("multiple", "single") for pooling in ("mean", "max", "first")]


def build(study: Study, home: Path) -> QuestionSet:
    """Questions from the study's knowledge: any ontology, with or without instances."""
    options = read_options(study)
    with KnowledgeBase.load(study.knowledge, home) as knowledge:
        ontology = read_ontology(knowledge, predicates=_predicates(study))
    statements = gather_statements(
        ontology, seed=study.seed, instances_per_class=options.instances, patterns=_patterns(study, home)
    )
    made = _questions(study, statements, ", ".join(study.knowledge))
    if not made.questions.num_rows:
        raise InputError(
            f"no questions can be made of {', '.join(study.knowledge)}: {' '.join(statements.remarks[:3])}"
        )
    made = apply_limits(made, study)
    if options.compat is None:
        check_splits(made.questions, made.facts, pairs=False)
    return made


def _read_published(place: Path, study: Study, home: Path) -> QuestionSet:
    folder = place if place.is_dir() else place.parent
    if folder.name == "memorizing" and (folder.parent / "ontology").is_dir():
        folder = folder.parent
    statements = read_published_statements(folder, _patterns(study, home))
    if place.is_file():
        task = next((task for task, name in PUBLISHED_TASKS.items() if name == place.name), None)
        statements = replace(statements, statements=tuple(one for one in statements.statements if one.task == task))
    return _questions(study, statements, "OntoProbe")


def _questions(study: Study, statements: Statements, source: str) -> QuestionSet:
    options = read_options(study)
    wanted = set(study.tasks or (*MEMORIZING, *RULES, *CHOICE))
    own = {task.removesuffix("-choice") for task in wanted}
    if study.learning is not None and any("soft" in kind for kind in options.reasoning):
        own |= {task for rule in RULES if rule in own for task in LEARNED_FOR[rule]}
    reasoning = [kind for kind in options.reasoning if study.learning is not None or "soft" not in kind]
    combined = [kind.split("-") for kind in reasoning]
    templates = {*options.templates, *(template for template, _ in combined)}
    if study.learning is None:
        templates -= {"soft"}
    made = make_ontology_questions(
        statements,
        OntologyOptions(
            tasks=[task for task in MEMORIZING if task in own],
            rules=[rule for rule in RULES if rule in own],
            templates=[way for way in WAYS if way in templates],
            conjunctions=[way for way in WAYS if any(way == conjunction for _, conjunction in combined)],
            choice=any(task in wanted for task in CHOICE),
            premises=options.premises,
            seed=study.seed,
            compat=options.compat,
            source=source,
        ),
    )
    # Of templates and conjunctions only those that were asked for together.
    table = made.questions
    kinds = pc.replace_substring_regex(pc.fill_null(table["template"], ""), pattern="^[^/]*/", replacement="")
    reasoned = pc.is_in(table["task"], pa.array([*RULES, PREDISPOSITION]))
    alone = {template for template, _ in combined}
    kept = pc.or_(pc.invert(reasoned), pc.is_in(kinds, pa.array([*reasoning, *alone])))
    return replace(made, questions=table.filter(kept))


def _patterns(study: Study, home: Path) -> Mapping[str, Mapping[str, str]] | None:
    given = study.options.get("patterns")
    return read_patterns(home / str(given)) if given else None


def _predicates(study: Study) -> Mapping[str, Sequence[str]] | None:
    given = study.options.get("predicates")
    if given is not None and not isinstance(given, dict):
        raise InputError("the option predicates is a mapping, as in {type: [rdf:type], subclass: [is a]}")
    return given


class OntoProbe(Suite):
    """OntoProbe, with soft prompts and premises."""

    trains_itself = True

    def read_published(self, place: Path, study: Study, home: Path) -> QuestionSet:
        """Read OntoProbe's own files."""
        return _read_published(place, study, home)

    def relation_names(self, study: Study, home: Path) -> Mapping[str, str]:
        """Return the names of tasks."""
        return {**NAMES, **{f"{task}-choice": f"{text} (multiple choice)" for task, text in NAMES.items()}}

    def model_settings(self, study: Study) -> Mapping[str, Any]:
        """Tokenize candidates without their sentence under ``compat: paper``, as the published code does."""
        return {"candidates": "apart"} if read_options(study).compat == "paper" else {}

    def asking_steps(self, resolved: ResolvedStudy) -> AskingSteps:
        """Ask by manual and soft templates, and label premises by the model's own ranks."""
        return asking_steps(resolved)


SUITE = OntoProbe(
    name="ontoprobe",
    title="OntoProbe: do models know and understand an ontology?",
    about=(
        "Whether a model knows the types of instances, the superclasses of classes, and the superproperties, domains "
        "and ranges of properties; and whether it sees what follows from them by six RDFS rules, of things it has never"
        " heard of."
    ),
    build=build,
    tasks=(*MEMORIZING, *RULES, *CHOICE),
    headline=tuple((task, "mrr") for task in MEMORIZING),
    named_headline=tuple((f"{task}-choice", "accuracy") for task in MEMORIZING),
    main_methods=("multiple-mean",),
    told=("premises",),
    defaults={
        "knowledge": ["ontology"],
        "models": ["minilm-mlm", "train-frequency"],
        "probes": [{"probe": "rank", "methods": {"masked": SIX, "causal": ["mean"]}}],
        "learning": {"learner": "soft"},
        "metrics": ["r@1", "r@5", "mrr_a", "mrr", "accuracy"],
        "groups": ["template"],
        "options": {},
    },
    options=HELP,
    file_options=("patterns",),
    published=(*FILES, *(Path(name).name for name in FILES)),
    splits_keep_pairs=False,
    analyses=(memorizing, premises, prompting),
    methods=(
        "Statements of an ontology were asked as cloze sentences over closed lists: all classes, or all "
        "properties. Soft templates are three learned input embeddings; the model itself stays as it is, and what "
        "they learn from is not asked. In reasoning, pseudowords stand for what the hypothesis is about: input "
        "embeddings at half the distance of the nearest word from the mask's, ten pairs of them unless the study "
        "says otherwise, averaged. A premise stands in the text (EX), is known to this very model (IM: the "
        "better half by its own reciprocal rank; the middle one of an odd number counts as known), or neither "
        "(NO). As a control a first premise about something else is given (OT): whoever ranks its answer as high "
        "merely repeats what was read. The baseline train-frequency has the mean of 20 orders of what it guesses."
    ),
    citations=(
        """@inproceedings{wu2023ontological,
  author = {Wu, Weiqi and Jiang, Chengyue and Jiang, Yong and Xie, Pengjun and Tu, Kewei},
  title = {Do {PLMs} Know and Understand Ontological Knowledge?},
  booktitle = {Proceedings of the 61st Annual Meeting of the Association for Computational Linguistics},
  url = {https://aclanthology.org/2023.acl-long.173},
  year = {2023}
}""",
    ),
)
