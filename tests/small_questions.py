"""Small question folders of every suite, each made once per test run, and what a run asks of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import merkhet
from merkhet.engine.build_step import make_questions, select_asked
from merkhet.engine.study import make_study
from merkhet.questions.question_files import QuestionSet
from merkhet.suites import SUITES

KNOWLEDGE = {"quickstart": ["elements"], "kmir": ["elements"], "ontoprobe": ["ontology"], "lama-tk": ["offices"]}
SETTINGS = {"ontoprobe": ["options.premises=5", "learning=null"], "lama-tk": ["options.candidates=8"]}
TASKS = {"ontoprobe": ["SCO", "SPO", "rdfs9", "SCO-choice"]}
LIMITS = {"kmir": 60, "lama-tk": 60}


def small_questions(made_once: Callable[..., Path], suite: str) -> Path:
    """Return the folder of a suite's small question set."""

    def build(folder: Path) -> None:
        given = {"tasks": TASKS.get(suite, ()), "limit": LIMITS.get(suite), "settings": SETTINGS.get(suite, ())}
        merkhet.build(suite, knowledge=KNOWLEDGE.get(suite, ()), out=folder, **given)

    return made_once(f"questions-{suite}", build)


def asked_questions(suite_name: str, folder: Path, limit: int | None) -> QuestionSet:
    """Return what a run of the suite on the questions in ``folder`` asks, with its answer counts."""
    suite = SUITES.get(suite_name)
    options = {"split": "test"} if "split" in suite.options.names() else {}
    study = make_study({"suite": suite_name, "data": str(folder), "limit": limit, "options": options}, "a test")
    return select_asked(suite, make_questions(suite, study, Path()), study)[0]
