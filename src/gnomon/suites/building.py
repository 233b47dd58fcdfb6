"""The steps that build: questions made by a suite, or read from a folder."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from gnomon.foundation import InputError, derived_seed, did_you_mean, write_text
from gnomon.questions import QuestionSet, read_questions, write_questions
from gnomon.runs import StepContext, Study, make_study
from gnomon.suites.suite import Suite


def build(context: StepContext) -> None:
    """Make the questions of a study and write them into the run."""
    from gnomon.suites import SUITES

    study = make_study(context.params["study"], "study")
    write_questions(make_questions(SUITES.get(study.suite, context.home), study, context.home), context.folder)


def write_study(context: StepContext) -> None:
    """Write the resolved study."""
    write_text(context.folder / "study.yaml", context.params["yaml"])


def make_questions(suite: Suite, study: Study, home: Path) -> QuestionSet:
    """The questions of a study: read from its data where it has some, else made by the suite."""
    if study.data is None:
        questions = suite.build(study, home)
    else:
        questions = _limited(read_questions(home / study.data), study)
    if not questions.questions.num_rows:
        raise InputError(f"{suite.name} has made no questions from {', '.join(study.knowledge) or 'no knowledge'}")
    return questions


def _limited(found: QuestionSet, study: Study) -> QuestionSet:
    """The tasks asked for, and of each task as many questions as the limit says, chosen by their ids."""
    table = found.questions
    tasks = set(table["task"].to_pylist())
    for task in study.tasks:
        if task not in tasks:
            raise InputError(f"{study.data} has no questions of the task {task!r}; {did_you_mean(task, tasks)}")
    if study.tasks:
        table = table.filter(pc.is_in(table["task"], pa.array(study.tasks)))
    if study.limit is not None:
        rows: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for row, (task, identity) in enumerate(
            zip(table["task"].to_pylist(), table["question_id"].to_pylist(), strict=True)
        ):
            rows[task].append((derived_seed(study.seed, identity), row))
        kept = sorted(row for drawn in rows.values() for _, row in sorted(drawn)[: study.limit])
        table = table.take(kept)
    return replace(found, questions=table)
