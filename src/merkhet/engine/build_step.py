"""Steps that build or read the questions of a run, and write its resolved study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.compute_engines import Engine
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import write_text
from merkhet.core.schemas import QUESTIONS, write_table
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.question_origin import ORIGIN, find_origin, published_files
from merkhet.engine.study import Study
from merkhet.engine.suite import Suite
from merkhet.engine.suite_options import SplitOptions
from merkhet.knowledge.memory_limit import limited_memory
from merkhet.questions.answer_counts import TRAINING_SPLITS, add_unasked_counts, without_asked_training
from merkhet.questions.losses import summarize_losses
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
from merkhet.questions.sampling import add_premise_facts, add_premise_questions, draw_questions
from merkhet.questions.splits import check_splits
from merkhet.questions.training_pairs import find_training_pairs


@dataclass(frozen=True)
class BuildContents:
    """Hashes of the sources that questions are built or read from."""

    suite: str
    """Name of the suite; for a user-defined suite, with the hash of its file."""
    knowledge: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    """Hash of each file that an option of the study names, by option."""
    data: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuildParams:
    """Parameters of the build step."""

    study: Study
    """The study, reduced to the keys that affect its questions."""
    contents: BuildContents


@dataclass(frozen=True)
class BuildRuntime:
    """The suite that builds the questions, and the engine that it uses."""

    suite: Suite
    engine: Engine


@dataclass(frozen=True)
class StudyParams:
    """The resolved study as YAML."""

    yaml: str


def build_questions(context: StepContext[BuildParams, BuildRuntime]) -> None:
    """Write the questions of a study into the run's folder, with training questions in a separate file."""
    with limited_memory(context.runtime.engine.memory):
        _write_asked(context)


def _write_asked(context: StepContext[BuildParams, BuildRuntime]) -> None:
    study, suite = context.params.study, context.runtime.suite
    question_set = make_questions(suite, study, context.home, context.runtime.engine)
    asked, training = select_asked(suite, question_set, study)
    if question_set.about[ORIGIN]["kind"] == "imported":
        asked = replace(asked, questions=_restore_order(asked.questions, question_set.questions))
    if TRAINING_FILE in context.step.outputs:
        write_table(QUESTIONS, training, context.folder / TRAINING_FILE)
    write_questions(asked, context.folder)


def select_asked(suite: Suite, question_set: QuestionSet, study: Study) -> tuple[QuestionSet, pa.Table]:
    """Return the questions to ask with what baselines and controls need, and those of the splits train and dev."""
    asked, training = _split_questions(suite, question_set, study)
    counts = without_asked_training(question_set.frequencies, asked)
    counts = add_unasked_counts(counts, question_set.questions, asked, question_set.facts)
    if question_set.about[ORIGIN]["kind"] != "imported":
        counts = counts.filter(pc.invert(pc.is_in(counts["task"], pa.array(suite.balanced, pa.string()))))
    pairs = question_set.pairs
    if not pairs.num_rows:
        pairs = find_training_pairs(question_set.questions, asked, question_set.entities)
    controls = question_set.controls
    controls = controls.filter(pc.is_in(controls["question_id"], asked["question_id"].combine_chunks()))
    return replace(question_set, questions=asked, frequencies=counts, pairs=pairs, controls=controls), training


def _split_questions(suite: Suite, question_set: QuestionSet, study: Study) -> tuple[pa.Table, pa.Table]:
    """Return the questions to ask, and the questions of the splits train and dev.

    Both tables are reduced to the limits of the study. Without ``options.split``, all questions are asked.
    """
    table, options = question_set.questions, suite.options.of(study)
    empty = table.schema.empty_table()
    if not isinstance(options, SplitOptions) or options.split is None:
        return table, empty
    split = options.split
    asked = table.filter(pc.fill_null(pc.equal(table["split"], split), False))
    if not asked.num_rows:
        splits = sorted({str(name) for name in table["split"].to_pylist()})
        raise InputError(
            f"there are no questions of the split {split!r} (options.split), only of {', '.join(splits)}; "
            f"choose one with --set options.split={splits[0]}"
        )
    if study.limit is not None:
        pool, asked = asked, draw_questions(asked, study.limit, study.seed)
        asked = add_premise_questions(asked, pool, question_set.premise_questions)
        if options.asks_premises:
            asked = add_premise_facts(asked, pool, question_set.premises)
    training_splits = pa.array([name for name in TRAINING_SPLITS if name != split])
    training = table.filter(pc.is_in(table["split"], training_splits)) if study.trains else empty
    if study.trains and study.data is not None and not options.allows_leaks:
        check_splits(
            pa.concat_tables([asked, training]),
            question_set.facts,
            pairs=suite.splits_keep_pairs,
            premises=question_set.about.get("split_by") == "premise",
        )
    if study.learning is not None and study.learning.limit is not None:
        parts = [
            draw_questions(training.filter(pc.equal(training["split"], name)), study.learning.limit, study.seed)
            for name in training_splits.to_pylist()
        ]
        training = pa.concat_tables(parts)
    return asked, training


def write_study(context: StepContext[StudyParams, Nothing]) -> None:
    """Write the resolved study to study.yaml."""
    write_text(context.folder / "study.yaml", context.params.yaml)


def make_questions(suite: Suite, study: Study, home: Path, engine: Engine | None = None) -> QuestionSet:
    """Read the questions of a study from its ``data``, or let the suite build them if ``data`` is None.

    The metadata of the questions record their origin.

    Raises:
        InputError: There are no questions.
    """
    if study.data is None:
        questions = suite.build_on_engine(study, home, engine)
    else:
        all_questions = _read_data(suite, study, home)
        questions = apply_limits(all_questions, study)
    if not questions.questions.num_rows:
        losses = summarize_losses(questions.about)
        raise InputError(
            f"{suite.name} builds no questions from {', '.join(study.knowledge) or 'no knowledge'}; choose other "
            "knowledge or other options" + (f". {losses}" if losses else "")
        )
    origin = find_origin(suite, study, home)
    if study.data is not None and origin.kind == "imported":
        questions = replace(questions, questions=_restore_order(questions.questions, all_questions.questions))
    return replace(questions, about={**questions.about, ORIGIN: origin.as_json()})


def _restore_order(sample: pa.Table, questions: pa.Table) -> pa.Table:
    """Sort a sample of questions as the file that they were read from."""
    positions = pc.index_in(sample["question_id"], questions["question_id"].combine_chunks())
    return sample.take(pc.sort_indices(positions))


def data_files(suite: Suite, path: Path) -> list[Path]:
    """List the files at a path that questions are read from.

    Raises:
        InputError: There are no questions at the path.
    """
    published = published_files(suite, path)
    if published:
        return published
    main_file = find_question_file(path)
    return [file for file in (main_file, *companion_paths(main_file), main_file.parent / ABOUT_FILE) if file.is_file()]


def _read_data(suite: Suite, study: Study, home: Path) -> QuestionSet:
    path = home / str(study.data)
    if published_files(suite, path):
        return suite.read_published(path, study, home)
    questions = read_questions(path)
    if find_question_file(path).name not in QUESTION_FILES and ORIGIN in questions.about:
        return replace(questions, about={})  # The metadata belong to the folder's own questions.
    return questions


def apply_limits(question_set: QuestionSet, study: Study) -> QuestionSet:
    """Reduce questions to the tasks of a study, and draw at most ``study.limit`` items per task.

    If the study trains, all training questions are kept, whatever their task, because models may learn from them.

    Raises:
        InputError: A task of the study has no questions.
    """
    table = question_set.questions
    tasks = set(table["task"].to_pylist())
    for task in study.tasks:
        if task not in tasks:
            source = study.data or ", ".join(study.knowledge)
            raise InputError(f"{source} has no questions of the task {task!r}; {did_you_mean(task, tasks)}")
    is_training = pc.fill_null(pc.is_in(table["split"], pa.array(TRAINING_SPLITS)), False)
    training = table.filter(is_training) if study.trains else table.slice(0, 0)
    asked = askable = table.filter(pc.invert(is_training)) if study.trains else table
    if study.tasks:
        asked = add_premise_questions(
            asked.filter(pc.is_in(asked["task"], pa.array(study.tasks))), askable, question_set.premise_questions
        )
    if study.limit is not None and SplitOptions.of(study).split is None:
        asked = draw_questions(asked, study.limit, study.seed)
        asked = add_premise_questions(asked, askable, question_set.premise_questions)
    counts = add_unasked_counts(question_set.frequencies, table, asked, question_set.facts)
    return replace(question_set, questions=pa.concat_tables([asked, training]), frequencies=counts)
