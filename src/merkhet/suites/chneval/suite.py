"""chneval: what a model knows of a language and, in its texts, of the world; Chinese first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from merkhet.engine.build_step import limited
from merkhet.engine.study import Study
from merkhet.engine.suite import Suite
from merkhet.questions.question_files import QuestionSet
from merkhet.suites.chneval.build import gather
from merkhet.suites.chneval.options import FILES as FILE_OPTIONS
from merkhet.suites.chneval.options import HELP, is_paper
from merkhet.suites.chneval.published import FILES
from merkhet.suites.chneval.published import read_published as read_files
from merkhet.suites.chneval.questions.question_rows import (
    CLASSES,
    COMMONSENSE,
    ENCYCLOPEDIA,
    SEMANTIC,
    SYNTACTIC,
    TASKS,
    question_set,
)

LONGEST = 128
"""How many tokens of a cloze the published program takes."""


def build(study: Study, home: Path) -> QuestionSet:
    """Questions from texts, sense-tagged sentences, pairs and triples; of the embedded ones where none are given."""
    return limited(question_set(gather(study, home), seed=study.seed), study)


def read_published(place: Path, study: Study, _home: Path) -> QuestionSet:
    """Questions from ChnEval's own files."""
    found = question_set(read_files(place, paper=is_paper(study.options)), seed=study.seed)
    return replace(found, about={key: value for key, value in found.about.items() if key != "filters"})


def _defaults_for(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the released code does: words are masked where senses are compared, ties are wrong, k is 20 for syntax."""
    if not is_paper(options):
        return {}
    masked = {"masked": ["masked"], "causal": ["word"], "encoder": ["word"]}
    return {
        "probes": ["fill", "rank", {"probe": "compare", "methods": masked}],
        "metrics": ["strict-accuracy", "p@1", "p@10", "p@20"],
    }


def _model_settings(study: Study) -> Mapping[str, Any]:
    return {"special_tokens": False, "longest": LONGEST} if is_paper(study.options) else {}


def _scoring(study: Study) -> Mapping[str, Any]:
    return {"average_over": "domain", "unusable_is_wrong": not is_paper(study.options)}


_ALL_LAYERS = {kind: ["word@all"] for kind in ("masked", "causal", "encoder")}

SUITE = Suite(
    name="chneval",
    title="Knowledge of Chinese",
    about="function words, word senses, commonsense and encyclopedic facts in Chinese sentences",
    build=build,
    tasks=TASKS,
    headline=(
        (SYNTACTIC, "p@1"),
        (SYNTACTIC, "p@10"),
        (SEMANTIC, "accuracy"),
        (COMMONSENSE, "p@1"),
        (COMMONSENSE, "p@10"),
        (ENCYCLOPEDIA, "p@1"),
        (ENCYCLOPEDIA, "p@10"),
    ),
    defaults={
        "probes": ["fill", "rank", {"probe": "compare", "methods": _ALL_LAYERS}],
        "metrics": ["accuracy", "p@1", "p@10"],
        "groups": ["domain"],
        "options": {},
    },
    run_defaults={"models": ["minilm-mlm", "frequency", "word-overlap", "random"]},
    options=HELP,
    file_options=FILE_OPTIONS,
    names=lambda study, home: CLASSES,
    analyses=("classes", "lengths", "layers", "objectives", "extrinsic"),
    told=("classes", "lengths", "layers", "objectives", "extrinsic"),
    main_methods=("mask", "multiple-mean", "sum", "word", "masked", "count", "uniform", "overlap"),
    published=FILES,
    read_published=read_published,
    defaults_for=_defaults_for,
    model_settings=_model_settings,
    scoring=_scoring,
    splits_keep_pairs=False,
    methods=(
        "Clozes leave one word out of a sentence: a function word, or a name of a fact of commonsense or of an "
        "encyclopedia. Their candidates are the answers of the class, words of several tokens as a whole. Word senses "
        "are asked by triples of usages of a word, of which two share a sense; equal similarities count one half."
    ),
    citations=(
        """@misc{wang2020chneval,
  author = {Wang, Zhiruo and Hu, Renfen},
  title = {Intrinsic Knowledge Evaluation on {Chinese} Language Models},
  note = {arXiv:2011.14277},
  year = {2020}
}""",
    ),
)
