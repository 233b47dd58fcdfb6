"""The KMIR suite: memorization, identification and reasoning."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from merkhet.core.compute_engines import Engine
from merkhet.core.errors import InputError
from merkhet.core.files import path_exists, scratch_folder
from merkhet.engine.study import Study
from merkhet.engine.suite import Suite
from merkhet.knowledge.database import open_database
from merkhet.knowledge.engines.open_engine import open_tables
from merkhet.knowledge.rules.fixpoint import infer
from merkhet.knowledge.rules.rule_files import read_rules
from merkhet.knowledge.source_lookup import STORE_SUFFIX
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import import_knowledge
from merkhet.questions.balance import balance_filter, common_answer_filter
from merkhet.questions.losses import summarize_losses
from merkhet.questions.makers.make_questions import OPTIONAL_TASKS, TASKS, make_benchmark
from merkhet.questions.makers.open_book import OPEN_BOOK
from merkhet.questions.makers.question_builder import MakerOptions
from merkhet.questions.quality import facts_about_classes, quality_filters, sensitive_words
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.sampling import draw_questions
from merkhet.questions.schema import Schema, read_schema
from merkhet.questions.splits import check_splits
from merkhet.suites.kmir.analyses.question_types import question_types
from merkhet.suites.kmir.options import KmirOptions
from merkhet.suites.kmir.published import FILES, read_published

_FOLDER = Path(__file__).parent
PACKS = [
    *("physics", "elements", "taxonomy", "medicine", "history", "offices", "law", "military", "music", "film-tv"),
    *("everyday", "countries"),
]

_LARGEST_SHARE, _SMALLEST_SHARE = 0.15, 0.05
"""Bounds of a domain's share of the questions."""
_RELATION_SHARES = {
    "completion": 0.12,
    "checking": 0.03,
    "distinction": 0.06,
    "reasoning/open": 0.06,
    "reasoning/choices": 0.06,
}
"""Largest share of a relation of one domain in the questions of a task, or of one form of a task."""


def build(study: Study, home: Path, engine: Engine | None = None) -> QuestionSet:
    """Build questions of the four KMIR tasks from the study's knowledge, filter them, and split them.

    Raises:
        InputError: No question can be made, or an option is invalid.
    """
    options = KmirOptions.of(study)
    schema = _schema(options, home)
    maker_options = MakerOptions(
        "kmir",
        seed=study.seed,
        paraphrases=options.paraphrases,
        checks=options.checks,
        rounds=options.rounds,
        shares=options.splits,
        asked=options.asked,
        evidence=options.evidence,
        split_by=options.split_by,
        distinct_names=True,
    )
    tasks = _tasks_to_make(study.tasks, options.books)
    words = sensitive_words(home / options.sensitive if options.sensitive else None)

    def draw(table: pa.Table) -> pa.Table:
        return draw_questions(table, study.limit or 0, study.seed)

    with scratch_folder("kmir") as folder:
        store = folder / "knowledge.duckdb"
        _copy_or_import([_resolve_path(source, home) for source in study.knowledge], store)
        rules = read_rules(home / options.rules if options.rules else _FOLDER / "rules.yaml")
        infer(store, declared=rules, engine=engine)
        with (
            KnowledgeBase.open(store) as knowledge,
            open_tables(knowledge.connection, engine, ("facts", "names")) as tables,
        ):
            maker_options = replace(maker_options, complete=knowledge.complete_predicates())
            sensitive_facts = facts_about_classes(knowledge, options.classes)
            filters = (
                *quality_filters(
                    words=words,
                    facts=sensitive_facts,
                    tasks=(*TASKS, *OPTIONAL_TASKS, OPEN_BOOK),
                    revealing=(OPEN_BOOK,),
                ),
            )
            is_balanced = list(study.knowledge) == PACKS if options.balance is None else options.balance
            if is_balanced:
                filters += (
                    common_answer_filter(),
                    balance_filter(_RELATION_SHARES, _LARGEST_SHARE, _SMALLEST_SHARE, study.seed),
                )
            # If the study asks only one split, that split is sampled later.
            is_limited = study.limit is not None and options.split is None
            benchmark = make_benchmark(tables, schema, maker_options, tasks, filters, draw if is_limited else None)
    if not benchmark.questions.num_rows:
        told = [summarize_losses(benchmark.about), *benchmark.about["remarks"]]
        reasons = "; ".join([text for text in told if text][:3]) or "it holds no facts"
        raise InputError(
            f"no questions can be made of {', '.join(study.knowledge)}: {reasons}. Add templates for its predicates "
            "with --set options.schema=FILE"
        )
    check_splits(benchmark.questions, benchmark.facts, premises=options.split_by == "premise")
    return benchmark


def _tasks_to_make(tasks: Sequence[str], books: Sequence[str]) -> tuple[str, ...]:
    """Return the tasks to make questions for; ``books`` says whether reasoning is asked closed-book, open-book or both.

    A study that names the task ``open-book`` gets it in any case.
    """
    asked = dict.fromkeys(tasks or TASKS)
    if "reasoning" in asked and "open" in books:
        asked[OPEN_BOOK] = None
    if "closed" not in books:
        asked.pop("reasoning", None)
    return tuple(asked)


def _copy_or_import(sources: Sequence[str], store: Path) -> None:
    """Import all sources into one knowledge store; a single source that already is a store is copied."""
    first, *more_sources = sources
    # A store with a write-ahead log must be imported, because its file is incomplete.
    if not more_sources and first.endswith(STORE_SUFFIX) and not Path(f"{first}.wal").exists():
        with open_database(Path(first), read_only=True):
            shutil.copy(first, store)
    else:
        import_knowledge(sources, store)


def _schema(options: KmirOptions, home: Path) -> Schema:
    return read_schema(home / options.schema_file) if options.schema_file else _default_schema()


@functools.cache
def _default_schema() -> Schema:
    """Read the default schema; the result is cached, because the file is long and a build needs it twice."""
    return read_schema(_FOLDER / "schema.yaml")


def _resolve_path(source: str, home: Path) -> str:
    return str(home / source) if path_exists(home / source) else source


class Kmir(Suite):
    """KMIR suite, which builds its questions with DuckDB or Spark."""

    builds_on_engines = True

    def build_on_engine(self, study: Study, home: Path, engine: Engine | None) -> QuestionSet:
        """Build the questions on ``engine``; None uses DuckDB in this process."""
        return build(study, home, engine)

    def asked_tasks(self, study: Study) -> tuple[str, ...]:
        """Return the tasks of a study; open-book questions are asked if the study names them."""
        return _tasks_to_make(study.tasks, KmirOptions.of(study).books)

    def read_published(self, place: Path, study: Study, home: Path) -> QuestionSet:
        """Read the published KMIR files."""
        return read_published(place)

    def relation_names(self, study: Study, home: Path) -> Mapping[str, str]:
        """Return the display names of relations, hierarchies and comparisons."""
        return _schema(KmirOptions.of(study), home).names()


SUITE = Kmir(
    name="kmir",
    title="KMIR: what a model memorizes, identifies and can reason about",
    about="triple completion, entity distinction, statement checking and predicate reasoning over eleven domains",
    build=build,
    tasks=(*TASKS, OPEN_BOOK),
    optional_tasks=OPTIONAL_TASKS,
    headline=tuple((task, "f1") for task in (*TASKS, OPEN_BOOK)),
    named_headline=tuple((task, "f1") for task in OPTIONAL_TASKS),
    defaults={
        "knowledge": PACKS,
        "models": ["smollm2-135m", "minilm-mlm", "frequency", "longest", "overlap", "random"],
        "probes": ["rank", "write"],
        "metrics": ["f1", "exact", "accuracy"],
        "groups": ["domain", "relation", "rule", "nearness", "form"],
        "options": {},
    },
    run_defaults={"limit": 200},
    options=KmirOptions,
    published=FILES,
    balanced=("checking", "distinction"),
    analyses=(
        *(question_types, "consistency", "conclusions", "domains", "distribution", "compression", "cooccurrence"),
        "learning",
    ),
    methods=(
        "Questions are made from facts by paraphrased templates, in the manner of KMIR. Completion leaves out one "
        "name of a fact; its answer is unique in the knowledge, if necessary by an added scope phrase. Distinction "
        "shows three members of a category and an outlier; no category in the knowledge singles out another of the "
        "four, and the outlier’s position is balanced. Checking asks whether a statement is true; true and corrupted "
        "statements are equally frequent, and a corrupted one is neither stated nor inferred. Reasoning asks for "
        "conclusions by one of six OWL 2 axioms that are not stated: as an open question if the answer is unique, "
        "otherwise among four choices, three of which are verified to be wrong. Comparison asks which of four has the "
        "highest or lowest value of a measured property. Relation, if it is asked, masks the words between two names; "
        "a wrong phrase has another value as its only one, or stands between names of other kinds. The candidates of "
        "an open question are all answers of the relation. F1 is word F1: texts are lower-cased, ASCII punctuation and "
        "articles are dropped, and the bag of words is compared with that of the nearest right answer. A tuned model "
        "is trained on each question type separately, with the questions of the training split; no fact occurs in two "
        "splits, and unless the study splits by fact, no conclusion has a premise in another split. Open-book "
        "questions show the premises of the conclusion among those of two others, which share no name with it."
    ),
    published_methods=(
        "The questions, their right answers and their splits are those of KMIR's published files. Choices that the "
        "text of a question shows are its candidates. The right answers of the other questions of each task are "
        "divided by a hash into lists of at most 100; a question is ranked among the list that has its right answer, "
        "a statement between yes and no. F1 is word F1: texts are lower-cased, ASCII punctuation and articles are "
        "dropped, and the bag of words is compared with that of the nearest right answer."
    ),
    citations=(
        """@misc{gao2022kmir,
  author = {Gao, Daniel and Jia, Yantao and Li, Lei and Fu, Chengzhen and Dou, Zhicheng and Jiang, Hao and Zhang, Xinyu
    and Chen, Lei and Cao, Zhao},
  title = {{KMIR}: A Benchmark for Evaluating Knowledge Memorization, Identification and Reasoning Abilities of Language
    Models},
  note = {arXiv:2202.13529},
  year = {2022}
}""",
    ),
)
