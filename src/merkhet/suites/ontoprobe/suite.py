"""The suite ontoprobe: knowledge of an ontology, and reasoning with RDFS rules."""

from __future__ import annotations

from collections.abc import Mapping
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
from merkhet.suites.ontoprobe.analyses.premise_effects import CONTROL, SETTINGS, premises
from merkhet.suites.ontoprobe.analyses.prompt_effects import prompting
from merkhet.suites.ontoprobe.analyses.task_scores import memorizing
from merkhet.suites.ontoprobe.options import (
    CHOICE,
    MEMORIZING,
    PREDISPOSITION,
    PROMPT_KINDS,
    RULES,
    SOFT_TEMPLATE_TASKS,
    OntoprobeOptions,
)
from merkhet.suites.ontoprobe.plan import asking_steps
from merkhet.suites.ontoprobe.published import FILES, TASK_FILES, read_published_statements
from merkhet.suites.ontoprobe.questions import make_ontology_questions
from merkhet.suites.ontoprobe.questions.ontology_prompts import OntologyOptions
from merkhet.suites.ontoprobe.questions.ontology_statements import Statements, gather_statements
from merkhet.suites.ontoprobe.questions.property_patterns import read_patterns

TASKS = (*MEMORIZING, *RULES, *CHOICE)
TASK_NAMES = {
    "TP": "types of instances",
    "SCO": "superclasses",
    "SPO": "superproperties",
    "DM": "domains of properties",
    "RG": "ranges of properties",
}
MASKED_METHODS = [f"{masks}-{pooling}" for masks in ("multiple", "single") for pooling in ("mean", "max", "first")]


def build(study: Study, home: Path) -> QuestionSet:
    """Make questions from the ontology in the study's knowledge; the ontology needs no instances."""
    options = OntoprobeOptions.of(study)
    with KnowledgeBase.load(study.knowledge, home) as knowledge:
        ontology = read_ontology(knowledge, predicates=options.predicates)
    statements = gather_statements(
        ontology, seed=study.seed, instances_per_class=options.instances, patterns=_patterns(options, home)
    )
    question_set = _questions(study, statements, ", ".join(study.knowledge))
    if not question_set.questions.num_rows:
        raise InputError(
            f"no questions can be made from {', '.join(study.knowledge)}: {' '.join(statements.remarks[:3])}"
        )
    question_set = apply_limits(question_set, study)
    if options.compat is None:
        check_splits(question_set.questions, question_set.facts, pairs=False)
    return question_set


def _questions(study: Study, statements: Statements, source: str) -> QuestionSet:
    options = OntoprobeOptions.of(study)
    asked = set(study.tasks or TASKS)
    needed = {task.removesuffix("-choice") for task in asked}
    if study.learning is not None and any("soft" in kind for kind in options.reasoning):
        needed |= {task for rule in RULES if rule in needed for task in SOFT_TEMPLATE_TASKS[rule]}
    reasoning = [kind for kind in options.reasoning if study.learning is not None or "soft" not in kind]
    combined = [kind.split("-") for kind in reasoning]
    templates = {*options.templates, *(template for template, _ in combined)}
    if study.learning is None:
        templates -= {"soft"}
    question_set = make_ontology_questions(
        statements,
        OntologyOptions(
            tasks=[task for task in MEMORIZING if task in needed],
            rules=[rule for rule in RULES if rule in needed],
            templates=[kind for kind in PROMPT_KINDS if kind in templates],
            conjunctions=[kind for kind in PROMPT_KINDS if any(kind == conjunction for _, conjunction in combined)],
            choice=any(task in asked for task in CHOICE),
            premises=options.premises,
            seed=study.seed,
            compat=options.compat,
            source=source,
        ),
    )
    # The questions combine all templates with all conjunctions: keep the combinations that the options name.
    questions = question_set.questions
    kinds = pc.replace_substring_regex(pc.fill_null(questions["template"], ""), pattern="^[^/]*/", replacement="")
    is_reasoning = pc.is_in(questions["task"], pa.array([*RULES, PREDISPOSITION]))
    predisposition_kinds = {template for template, _ in combined}
    is_named = pc.is_in(kinds, pa.array([*reasoning, *predisposition_kinds]))
    return replace(question_set, questions=questions.filter(pc.or_(pc.invert(is_reasoning), is_named)))


def _patterns(options: OntoprobeOptions, home: Path) -> Mapping[str, Mapping[str, str]] | None:
    return read_patterns(home / options.patterns) if options.patterns else None


class OntoProbe(Suite):
    """The OntoProbe suite, which learns soft prompts and labels premises."""

    trains_itself = True

    def read_published(self, place: Path, study: Study, home: Path) -> QuestionSet:
        """Read questions from OntoProbe's published files; ``place`` is their folder, or the file of one task."""
        folder = place if place.is_dir() else place.parent
        if folder.name == "memorizing" and (folder.parent / "ontology").is_dir():
            folder = folder.parent
        published = read_published_statements(folder, _patterns(OntoprobeOptions.of(study), home))
        if place.is_file():
            of_file = (statement for statement in published.statements if TASK_FILES[statement.task] == place.name)
            published = replace(published, statements=tuple(of_file))
        return _questions(study, published, "OntoProbe")

    def relation_names(self, study: Study, home: Path) -> Mapping[str, str]:
        """Return a readable name for each task."""
        return {**TASK_NAMES, **{f"{task}-choice": f"{text} (multiple choice)" for task, text in TASK_NAMES.items()}}

    def model_settings(self, study: Study) -> Mapping[str, Any]:
        """Return model settings; under ``compat: paper``, candidates are tokenized without their sentence."""
        return {"candidates": "apart"} if OntoprobeOptions.of(study).compat == "paper" else {}

    def asking_steps(self, resolved: ResolvedStudy) -> AskingSteps:
        """Plan the steps that ask with manual and soft templates, and the step that labels premises.

        Questions of other makers are asked as in other suites.
        """
        return super().asking_steps(resolved) if resolved.has_own_questions else asking_steps(resolved)


SUITE = OntoProbe(
    name="ontoprobe",
    title="OntoProbe: do models know and understand an ontology?",
    about=(
        "Knowledge of the types of instances, the superclasses of classes, and the superproperties, domains and ranges "
        "of properties; and reasoning with them by six RDFS rules, about made-up words."
    ),
    build=build,
    tasks=TASKS,
    headline=tuple((task, "mrr") for task in MEMORIZING),
    named_headline=tuple((f"{task}-choice", "accuracy") for task in MEMORIZING),
    main_methods=("multiple-mean",),
    group_order={"premises": (*SETTINGS, CONTROL)},
    printed_analyses=("premises",),
    defaults={
        "knowledge": ["ontology"],
        "models": ["minilm-mlm", "train-frequency"],
        "probes": [{"probe": "rank", "methods": {"masked": MASKED_METHODS, "causal": ["mean"]}}],
        "learning": {"learner": "soft"},
        "metrics": ["r@1", "r@5", "mrr_a", "mrr", "accuracy"],
        "groups": ["template"],
        "options": {},
    },
    options=OntoprobeOptions,
    published=(*FILES, *(Path(name).name for name in FILES)),
    splits_keep_pairs=False,
    analyses=(memorizing, premises, prompting),
    methods=(
        "Statements of an ontology are asked as cloze sentences over closed lists of candidates: all classes, or all "
        "properties. Soft templates are three learned input embeddings; the model's weights are frozen, and training "
        "questions are not asked. In reasoning, pseudowords stand for the subjects of the hypothesis: input embeddings "
        "at half the distance of the nearest word from the mask's embedding. Scores are averaged over ten pairs of "
        "pseudowords, unless the study sets another number. A premise is in the text (EX), known to the model (IM: the "
        "better half by the model's reciprocal rank; the middle premise of an odd number counts as known), or neither "
        "(NO). As a control, the first premise is about something else (OT): a model that ranks the answer of that "
        "premise as high repeats what it has read. The baseline train-frequency averages over 20 random orders of the "
        "candidates that are no training answers."
    ),
    published_methods=(
        "The statements, their right answers and their splits are those of OntoProbe's published files. {methods}"
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
