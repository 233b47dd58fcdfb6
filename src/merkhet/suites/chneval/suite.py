"""The suite chneval: knowledge of a language, mainly Chinese, and of facts stated in its texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from merkhet.engine.build_step import apply_limits
from merkhet.engine.study import Study
from merkhet.engine.suite import Suite
from merkhet.engine.suite_card import ScoringRule
from merkhet.questions.question_files import QuestionSet
from merkhet.suites.chneval.build import draft_questions
from merkhet.suites.chneval.options import ChnevalOptions
from merkhet.suites.chneval.published import FILES
from merkhet.suites.chneval.published import read_published as read_files
from merkhet.suites.chneval.questions.question_rows import (
    CLASSES,
    COMMONSENSE,
    ENCYCLOPEDIA,
    SEMANTIC,
    SYNTACTIC,
    TASKS,
    make_question_set,
)

PAPER_MAX_TOKENS = 128
"""Maximum number of tokens of a cloze in the published code."""


def build(study: Study, home: Path) -> QuestionSet:
    """Make questions from the study's texts, sense-tagged sentences, pairs and triples, or from the embedded files."""
    return apply_limits(make_question_set(draft_questions(study, home), seed=study.seed), study)


class ChnEval(Suite):
    """The ChnEval suite; ``compat: paper`` reproduces the released code."""

    def read_published(self, place: Path, study: Study, home: Path) -> QuestionSet:
        """Read questions from ChnEval's published files."""
        questions = make_question_set(read_files(place, paper=ChnevalOptions.of(study).is_paper), seed=study.seed)
        return replace(questions, about={key: value for key, value in questions.about.items() if key != "filters"})

    def relation_names(self, study: Study, home: Path) -> Mapping[str, str]:
        """Return a readable name for each word class."""
        return CLASSES

    def defaults_for(self, study: Study) -> Mapping[str, Any]:
        """Return the paper's probes and metrics under ``compat: paper``, else nothing.

        Senses are compared on masked words, ties count as wrong, and p@20 is added for function words.
        """
        if not ChnevalOptions.of(study).is_paper:
            return {}
        masked = {"masked": ["masked"], "causal": ["word"], "encoder": ["word"]}
        return {
            "probes": ["fill", "rank", {"probe": "compare", "methods": masked}],
            "metrics": ["strict-accuracy", "p@1", "p@10", "p@20"],
        }

    def model_settings(self, study: Study) -> Mapping[str, Any]:
        """Return the paper's model settings under ``compat: paper``: no special tokens, and a maximum cloze length."""
        return {"special_tokens": False, "longest": PAPER_MAX_TOKENS} if ChnevalOptions.of(study).is_paper else {}

    def scoring(self, study: Study) -> ScoringRule:
        """Return the scoring rule: average over word classes, and count unusable questions as wrong.

        Under ``compat: paper``, unusable questions are left out.
        """
        return ScoringRule(average_over="domain", unusable_is_wrong=not ChnevalOptions.of(study).is_paper)


_ALL_LAYERS = {kind: ["word@all"] for kind in ("masked", "causal", "encoder")}

SUITE = ChnEval(
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
    options=ChnevalOptions,
    analyses=("classes", "lengths", "layers", "objectives", "extrinsic"),
    printed_analyses=("classes", "lengths", "layers", "objectives", "extrinsic"),
    main_methods=("mask", "multiple-mean", "sum", "word", "masked", "count", "uniform", "overlap"),
    published=FILES,
    splits_keep_pairs=False,
    methods=(
        "Clozes leave one word out of a sentence: a function word, or a name of a fact of commonsense or of an "
        "encyclopedia. The candidates of a cloze are all answers of its class; a word of several tokens is scored as a "
        "whole. Word senses are asked by triples of usages of a word, two of which share a sense; equal similarities "
        "count one half."
    ),
    published_methods="The sentences and their right answers are those of ChnEval's published files. {methods}",
    citations=(
        """@misc{wang2020chneval,
  author = {Wang, Zhiruo and Hu, Renfen},
  title = {Intrinsic Knowledge Evaluation on {Chinese} Language Models},
  note = {arXiv:2011.14277},
  year = {2020}
}""",
    ),
)
