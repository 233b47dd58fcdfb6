"""kmir: memorization, identification and reasoning, built from any knowledge base at the paper's scale."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
from merkhet.questions.makers.make_questions import TASKS, make_benchmark
from merkhet.questions.makers.question_builder import MakerOptions
from merkhet.questions.quality import apply_filters, facts_about_classes, quality_filters, sensitive_words
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.sampling import draw_questions
from merkhet.questions.schema import BenchmarkSchema, read_benchmark_schema
from merkhet.questions.splits import check_splits
from merkhet.suites.kmir.published import FILES, read_published

_HERE = Path(__file__).parent
PACKS = [
    *("physics", "elements", "taxonomy", "medicine", "history", "offices", "law", "military", "music", "film-tv"),
    *("everyday", "countries"),
]
SENSITIVE_CLASSES = (
    *("disputed territory", "ethnic slur", "pornographic film", "pornographic actor", "sex position"),
    *("genocide", "massacre", "terrorist attack"),
)
"""Classes of entities that nothing is asked about, by their names or ids."""
SHARES = {"train": 0.6, "dev": 0.1, "test": 0.3}


def build(study: Study, home: Path, engine: Engine | None = None) -> QuestionSet:
    """Questions of the four types from the study's knowledge, after quality control, split by fact."""
    schema = _schema(study, home)
    options = MakerOptions(
        "kmir",
        seed=study.seed,
        paraphrases=_whole(study, "paraphrases", None),
        checks=_whole(study, "checks", 10_000) or 10_000,
        rounds=_whole(study, "rounds", 4) or 4,
        shares=_shares(study),
        asked=_whole(study, "asked", None),
    )
    own_words = study.options.get("sensitive")
    words = sensitive_words(home / str(own_words) if own_words else None)

    def draw(table: pa.Table) -> pa.Table:
        # Where one split is asked, as many of its questions are drawn later.
        limited = study.limit is not None and study.options.get("split") is None
        return draw_questions(table, study.limit or 0, study.seed) if limited else table

    with scratch_folder("kmir") as folder:
        store = folder / "knowledge.duckdb"
        _gather([_place(place, home) for place in study.knowledge], store)
        given = study.options.get("rules")
        infer(store, declared=read_rules(home / str(given) if given else _HERE / "rules.yaml"), engine=engine)
        with (
            KnowledgeBase.open(store) as knowledge,
            open_tables(knowledge.connection, engine, ("facts", "names")) as tables,
        ):
            concerned = facts_about_classes(knowledge, _classes(study))
            filters = quality_filters(words=words, facts=concerned, tasks=TASKS)

            def control(table: pa.Table) -> tuple[pa.Table, Sequence[Mapping[str, Any]]]:
                return apply_filters(table, filters)

            made = make_benchmark(tables, schema, options, study.tasks, control, draw)
    if not made.questions.num_rows:
        reasons = "; ".join(made.about["remarks"][:3]) or "it holds no facts"
        raise InputError(
            f"no questions can be made of {', '.join(study.knowledge)}: {reasons}. Give your own words for its "
            "predicates with --set options.schema=FILE"
        )
    check_splits(made.questions, made.facts)
    return made


def _gather(places: Sequence[str], store: Path) -> None:
    """The knowledge of all places in one store; one that is alone, and is a store, is copied as it is."""
    first, *others = places
    # What stands in the log beside a store is not in its file yet.
    if not others and first.endswith(STORE_SUFFIX) and not Path(f"{first}.wal").exists():
        with open_database(Path(first), read_only=True):
            shutil.copy(first, store)
    else:
        import_knowledge(places, store)


def _schema(study: Study, home: Path) -> BenchmarkSchema:
    given = study.options.get("schema")
    return read_benchmark_schema(home / str(given)) if given else _own_schema()


@functools.cache
def _own_schema() -> BenchmarkSchema:
    """Read the schema of the embedded packs: a build needs it twice, and it is long."""
    return read_benchmark_schema(_HERE / "schema.yaml")


def _place(place: str, home: Path) -> str:
    return str(home / place) if path_exists(home / place) else place


def _whole(study: Study, key: str, usual: int | None) -> int | None:
    given = study.options.get(key, usual)
    if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 1):
        raise InputError(f"kmir: {key} is {given!r}, and should be a whole number from 1 on")
    return given


def _classes(study: Study) -> list[str]:
    given = study.options.get("classes", list(SENSITIVE_CLASSES))
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise InputError(f"kmir: classes is {given!r}, and should be a list of classes whose members are left out")
    return given


def _shares(study: Study) -> Mapping[str, float]:
    given = study.options.get("splits", SHARES)
    if not isinstance(given, dict) or not all(isinstance(share, int | float) for share in given.values()):
        raise InputError(f"kmir: splits is {given!r}, and should be shares such as {{train: 0.6, dev: 0.1, test: 0.3}}")
    return {str(name): float(share) for name, share in given.items()}


class Kmir(Suite):
    """The KMIR suite; builds its questions with DuckDB or Spark."""

    builds_on_engines = True

    def build_on_engine(self, study: Study, home: Path, engine: Engine | None) -> QuestionSet:
        """Build the questions as a relational plan of the engine."""
        return build(study, home, engine)

    def read_published(self, place: Path, study: Study, home: Path) -> QuestionSet:
        """Read KMIR's own files."""
        return read_published(place)

    def relation_names(self, study: Study, home: Path) -> Mapping[str, str]:
        """Return the names of relations, hierarchies and comparisons."""
        return _schema(study, home).names()


SUITE = Kmir(
    name="kmir",
    title="KMIR: what a model memorizes, identifies and can reason about",
    about="triple completion, entity distinction, statement checking and predicate reasoning over ten domains",
    build=build,
    tasks=TASKS,
    headline=tuple((task, "f1") for task in TASKS),
    defaults={
        "knowledge": PACKS,
        "models": ["smollm2-135m", "minilm-mlm", "frequency", "random"],
        "probes": ["rank", "write"],
        "metrics": ["f1", "exact", "accuracy"],
        "groups": ["domain", "relation", "rule"],
        "options": {},
    },
    run_defaults={"limit": 400},
    options={
        "schema": "a YAML file with your own domains, relations and templates",
        "rules": "a YAML file with your own rules, by which reasoning questions follow",
        "sensitive": "a YAML file with further sensitive words",
        "classes": "classes of entities that nothing is asked about, by name or id (some sensitive ones)",
        "paraphrases": "how many templates a fact gets at most for each place asked for (all)",
        "checks": "how many statements are checked, half of them false (10,000)",
        "rounds": "how often categories and numbers are grouped anew for distinction and comparison (4)",
        "split": "the split whose questions are asked (test)",
        "leaks": "true: learn from given data although facts or prompts straddle its splits (they are refused)",
        "asked": "how many facts questions are made of (all; 100,000 where there are over two million)",
        "splits": "shares of the facts by split ({train: 0.6, dev: 0.1, test: 0.3})",
    },
    file_options=("schema", "rules", "sensitive"),
    published=FILES,
    analyses=("consistency", "domains", "distribution", "compression", "cooccurrence"),
    methods=(
        "Questions were made from facts by paraphrased templates, in the manner of KMIR. Completion leaves one name"
        " of a fact out, where the answer is unique in the knowledge or a scope phrase makes it so. Distinction "
        "shows three of a category and one that is not in it; no other reading of the four exists in the knowledge,"
        " and the place of the odd one is balanced. Checking asks of a true or a corrupted statement whether it is "
        "true, each as often; a corrupted one is neither stated nor follows by the rules. Reasoning asks for what "
        "follows by one of six OWL 2 axioms and was not stated, openly where the answer is unique and else among "
        "four choices, of which three are verified to be wrong; comparison asks which of four has the most or the "
        "least of something measured. The candidates of an open question are all answers of the relation. F1 is "
        "word F1: lower case, ASCII punctuation and articles dropped, bags of words compared with the nearest right "
        "answer. A tuned model has learned each question type by itself from the training split; facts never "
        "straddle splits."
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
