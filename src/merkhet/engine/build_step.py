"""The steps that build: questions made by a suite, or read from a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.compute_engines import Engine
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import write_text
from merkhet.core.schemas import QUESTIONS, write_table
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.study import Study
from merkhet.engine.suite import Suite
from merkhet.questions.question_files import (
    ABOUT_FILE,
    QUESTION_FILES,
    TRAINING_FILE,
    QuestionSet,
    companion_paths,
    find_question_file,
    read_questions,
    write_questions,
)
from merkhet.questions.sampling import add_premise_questions, draw_questions
from merkhet.questions.splits import check_splits


@dataclass(frozen=True)
class BuildContents:
    """Hashes of what questions are made from."""

    suite: str
    """Name of the suite, with the hash of its file where it is a user's own."""
    knowledge: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    """Hash of each file that an option names."""
    data: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuildParams:
    """The study as far as its questions depend on it, and the content of all that they are made from."""

    study: Study
    contents: BuildContents


@dataclass(frozen=True)
class BuildRuntime:
    """The suite that builds, and the engine it builds on."""

    suite: Suite
    engine: Engine


@dataclass(frozen=True)
class StudyParams:
    """The resolved study as YAML."""

    yaml: str


def build_questions(context: StepContext[BuildParams, BuildRuntime]) -> None:
    """Build the questions of a study and write them into the run: those to ask, and those to train on."""
    study, suite = context.params.study, context.runtime.suite
    found = make_questions(suite, study, context.home, context.runtime.engine)
    asked, training = _divided(suite, found, study)
    if TRAINING_FILE in context.step.outputs:
        write_table(QUESTIONS, training, context.folder / TRAINING_FILE)
    write_questions(replace(found, questions=asked), context.folder)


def _divided(suite: Suite, found: QuestionSet, study: Study) -> tuple[pa.Table, pa.Table]:
    """The questions to be asked, and those of the splits train and dev that are not; at most as many as is wanted."""
    table, wanted = found.questions, study.options.get("split")
    nothing = table.schema.empty_table()
    if wanted is None:
        return table, nothing
    asked = table.filter(pc.fill_null(pc.equal(table["split"], str(wanted)), False))
    if not asked.num_rows:
        splits = sorted({str(split) for split in table["split"].to_pylist()})
        raise InputError(
            f"there are no questions of the split {wanted!r}; there are: {', '.join(splits)}. "
            f"Choose one with --set options.split={splits[0]}"
        )
    if study.limit is not None:
        asked = add_premise_questions(draw_questions(asked, study.limit, study.seed), asked, found.premises)
    others = pa.array([name for name in ("train", "dev") if name != wanted])
    training = table.filter(pc.is_in(table["split"], others)) if study.trains else nothing
    # What follows a published code follows its leaks too.
    leaks = study.options.get("leaks") or study.options.get("compat")
    if study.trains and study.data is not None and not leaks:
        check_splits(pa.concat_tables([asked, training]), found.facts, pairs=suite.splits_keep_pairs)
    if study.learning is not None and study.learning.limit is not None:
        parts = [
            draw_questions(training.filter(pc.equal(training["split"], name)), study.learning.limit, study.seed)
            for name in others.to_pylist()
        ]
        training = pa.concat_tables(parts)
    return asked, training


def write_study(context: StepContext[StudyParams, Nothing]) -> None:
    """Write the resolved study."""
    write_text(context.folder / "study.yaml", context.params.yaml)


def make_questions(suite: Suite, study: Study, home: Path, engine: Engine | None = None) -> QuestionSet:
    """The questions of a study: read from its data where it has some, else made by the suite."""
    if study.data is None:
        questions = suite.build_on_engine(study, home, engine)
    else:
        questions = apply_limits(_read_data(suite, study, home), study)
    if not questions.questions.num_rows:
        raise InputError(f"{suite.name} has made no questions from {', '.join(study.knowledge) or 'no knowledge'}")
    return questions


def data_files(suite: Suite, place: Path) -> list[Path]:
    """All the files that the questions at a place are read from; refuses a place without questions."""
    published = _published_files(suite, place)
    if published:
        return published
    file = find_question_file(place)
    return [path for path in (file, *companion_paths(file), file.parent / ABOUT_FILE) if path.is_file()]


def _read_data(suite: Suite, study: Study, home: Path) -> QuestionSet:
    place = home / str(study.data)
    if _published_files(suite, place):
        return suite.read_published(place, study, home)
    return read_questions(place)


def _published_files(suite: Suite, place: Path) -> list[Path]:
    """The suite's published files at a place, unless it holds questions in merkhet's own form.

    A file alone may be known by a pattern (``*.tsv``), those of a folder by their names.
    """
    if any((place / name).is_file() for name in QUESTION_FILES):
        return []
    alone = place.is_file() and any(fnmatch(place.name, Path(name).name) for name in suite.published)
    candidates = [place] if alone else [place / name for name in suite.published]
    return [path for path in candidates if path.is_file()]


def apply_limits(found: QuestionSet, study: Study) -> QuestionSet:
    """The tasks asked for, and of each task as many questions as the limit says, chosen by their ids.

    Where something is learned, the questions for that are not counted, and those of other tasks stay: what is learned
    for one may be needed by another.
    """
    table = found.questions
    tasks = set(table["task"].to_pylist())
    for task in study.tasks:
        if task not in tasks:
            given = study.data or ", ".join(study.knowledge)
            raise InputError(f"{given} has no questions of the task {task!r}; {did_you_mean(task, tasks)}")
    for_learning = pc.fill_null(pc.is_in(table["split"], pa.array(["train", "dev"])), False)
    kept = table.filter(for_learning) if study.trains else table.slice(0, 0)
    asked = every = table.filter(pc.invert(for_learning)) if study.trains else table
    if study.tasks:
        asked = add_premise_questions(
            asked.filter(pc.is_in(asked["task"], pa.array(study.tasks))), every, found.premises
        )
    if study.limit is not None and study.options.get("split") is None:
        asked = add_premise_questions(draw_questions(asked, study.limit, study.seed), every, found.premises)
    return replace(found, questions=pa.concat_tables([asked, kept]))
