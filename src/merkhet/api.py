"""The Python interface: functions that run a suite, build its questions, or run a memorizing study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merkhet.core.compute_engines import choose_build_engine
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import refuse_foreign_folder
from merkhet.core.progress import Progress
from merkhet.engine.resolve_study import Request, ResolvedStudy, resolve_study
from merkhet.engine.run_folder import Run
from merkhet.engine.run_study import run_study, run_study_shard
from merkhet.engine.study import apply_setting, read_study
from merkhet.questions.question_files import QuestionSet, write_questions
from merkhet.suites import SUITES

if TYPE_CHECKING:
    from merkhet.engine.distribute.shards import ShardRun

_SUITE_FOLDERS = Path(__file__).parent / "suites"


def run(
    suite_or_study: str,
    *,
    data: str | Path | None = None,
    knowledge: Sequence[str] = (),
    models: Sequence[Any] = (),
    tasks: Sequence[str] = (),
    limit: int | None = None,
    seed: int | None = None,
    settings: Sequence[str] = (),
    out: str | Path | None = None,
    progress: Progress | None = None,
    command: str | None = None,
    engines: Sequence[str] = (),
    workers: int | None = None,
    cores: int | None = None,
    memory: str | None = None,
    trust: bool = False,
) -> Run:
    """Run a suite or a study and return the finished run.

    A second call with the same ``out`` reuses the results of steps that have not changed.

    Args:
        suite_or_study: Name of a suite, or a study file.
        data: Path of questions, or of published files of the suite. By default the suite builds its questions.
        knowledge: Knowledge packs, folders or tables of facts to build questions from.
        models: Names, folders, mappings or loaded models.
        tasks: Tasks to ask; all tasks if empty.
        limit: Maximum number of facts or items per task; all questions about a drawn one are asked.
        seed: Random seed.
        settings: ``key=value`` changes to the study.
        out: Folder of the run, ``runs/<suite>`` by default.
        progress: Object that shows progress; no output if None.
        command: Command line to record in ``run.json``.
        engines: Engines that build and ask questions: ``spark``, ``ray``, or the address of a cluster.
        workers: Number of workers on Ray.
        cores: CPU cores of each worker.
        memory: Memory limit while building questions, such as ``4GB``; data beyond the limit is kept on disk.
        trust: Whether a study file may run foreign code and send keys; see ``docs/study.md``. What it does is printed
            on standard error, and remembered for the same study and code.

    Raises:
        InputError: An argument or the study is invalid, or the study needs ``trust``.
    """
    data_path = str(data) if data is not None else None
    engine_options = (tuple(settings), tuple(engines), workers, cores, memory, trust)
    request = Request(suite_or_study, data_path, knowledge, models, tasks, limit, seed, *engine_options)
    command = command or f"merkhet.run({suite_or_study!r}, …)"
    return run_study(request, SUITES, out=out, progress=progress, command=command)


def run_shard(
    suite_or_study: str,
    shard: str,
    *,
    out: str | Path | None = None,
    progress: Progress | None = None,
    command: str | None = None,
    **options: Any,
) -> ShardRun:
    """Build all questions of a suite or study, and ask those of one shard.

    Args:
        shard: Number of the shard and number of shards, such as ``3/8``. ``merge_runs`` merges the finished shards.
        out: Folder of the shard; by default ``runs/<suite>-shard-3-of-8`` for the shard ``3/8``.
        options: Further arguments of :func:`run`.
    """
    if options.get("data") is not None:
        options["data"] = str(options["data"])
    request = Request(suite_or_study, **options)
    command = command or f"merkhet.run_shard({suite_or_study!r}, {shard!r}, …)"
    return run_study_shard(request, SUITES, shard, out=out, progress=progress, command=command)


def memorize(
    study: str,
    *,
    data: str | Path | None = None,
    knowledge: Sequence[str] = (),
    models: Sequence[Any] = (),
    seed: int | None = None,
    settings: Sequence[str] = (),
    out: str | Path | None = None,
    progress: Progress | None = None,
    command: str | None = None,
    trust: bool = False,
) -> Run:
    """Run a study in which models are trained to memorize facts and then asked for them.

    Args:
        study: Name of an embedded study (storage, boundary, implicit), or a study file.
        data: Table or folder of facts with start and end times.
        knowledge: Knowledge packs, folders or tables of facts.
        models: Names, folders or mappings of the models to train.
        seed: Random seed.
        settings: ``key=value`` changes to the study.
        out: Folder of the run, ``runs/<study>`` by default.
        progress: Object that shows progress; no output if None.
        command: Command line to record in ``run.json``.
        trust: Whether a study file may run foreign code, as in :func:`run`.

    Raises:
        InputError: The study does not exist, or its learner is not ``memorize``.
    """
    from merkhet.training import MEMORIZE

    studies = embedded_studies()
    if study not in studies and not study.endswith((".yaml", ".yml")):
        raise InputError(f"there is no memorizing study {study!r}; {did_you_mean(study, studies)}, or name a file")
    file = studies.get(study, Path(study))
    content = read_study(file)
    for setting in settings:
        apply_setting(content, setting)
    learning = content.get("learning")
    learner = learning.get("learner") if isinstance(learning, dict) else learning
    if learner != MEMORIZE:
        raise InputError(f"{file} does not memorize: learning.learner is {learner!r}; use 'merkhet run'")
    return run(
        str(file),
        data=data,
        knowledge=knowledge,
        models=models,
        seed=seed,
        settings=settings,
        out=out if out is not None else Path("runs") / file.stem,
        progress=progress,
        command=command or f"merkhet.memorize({study!r}, …)",
        trust=trust,
    )


def embedded_studies() -> dict[str, Path]:
    """Return the file of each study that comes with a suite, by the study's name."""
    return {path.stem: path for path in sorted(_SUITE_FOLDERS.glob("*/studies/*.yaml"))}


def build(
    suite_or_study: str,
    *,
    out: str | Path,
    data: str | Path | None = None,
    knowledge: Sequence[str] = (),
    tasks: Sequence[str] = (),
    limit: int | None = None,
    seed: int | None = None,
    settings: Sequence[str] = (),
    engine: str | None = None,
    memory: str | None = None,
    trust: bool = False,
) -> QuestionSet:
    """Build the questions of a suite or study, and write them to a folder for ``run(..., data=folder)``.

    Code that only asking needs, such as probes, metrics and models, is not imported.

    Args:
        suite_or_study: Name of a suite, or a study file.
        out: Folder for the questions.
        data: Path of existing questions, or of published files of the suite, to read instead of building.
        knowledge: Knowledge packs, folders or tables of facts to build questions from.
        tasks: Tasks to build; all tasks if empty.
        limit: Maximum number of facts or items per task; all questions about a drawn one are asked.
        seed: Random seed.
        settings: ``key=value`` changes to the study.
        engine: ``duckdb``, ``spark``, or the address of a cluster.
        memory: Memory limit, such as ``4GB``; data beyond the limit is kept on disk.
        trust: Whether the suite and the sources of a study file may be foreign code, as in :func:`run`.
    """
    from merkhet.engine.build_step import make_questions
    from merkhet.knowledge.memory_limit import limited_memory
    from merkhet.questions.data_card import write_card

    folder = Path(out)
    refuse_foreign_folder(folder, "card.json")
    if data is not None and folder.resolve() == Path(data).resolve():
        raise InputError(f"{folder} is the folder of the source questions; choose another folder with --out")
    choose_build_engine(engine, memory)
    data_path = str(data) if data is not None else None
    engines = (engine,) if engine else ()
    request = Request(
        suite_or_study,
        data_path,
        knowledge,
        (),
        tasks,
        limit,
        seed,
        tuple(settings),
        engines,
        memory=memory,
        trust=trust,
    )
    resolved = resolve_study(request, SUITES, with_models=False)
    with limited_memory(resolved.engines.build.memory):
        questions = make_questions(resolved.suite, resolved.study, resolved.home, resolved.engines.build)
    # The card is written first. If this process is killed, the card shows that the folder may be overwritten.
    write_card(_card(resolved, questions), folder)
    write_questions(questions, folder)
    return questions


def _card(resolved: ResolvedStudy, questions: QuestionSet) -> dict[str, Any]:
    from merkhet.engine.planning import relation_names
    from merkhet.questions.data_card import make_card

    study = resolved.study
    knowledge = study.knowledge if study.data is None else []
    names = relation_names(resolved)
    return make_card(questions, suite=resolved.suite.name, seed=study.seed, knowledge=knowledge, names=names)
