"""``merkhet.run`` and ``merkhet.build``: the whole way in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merkhet.core.compute_engines import building_engine
from merkhet.core.errors import InputError
from merkhet.core.files import refuse_foreign_folder
from merkhet.core.progress import Progress, SilentProgress
from merkhet.engine.distribute.asking_engine import asking_engine
from merkhet.engine.executor import execute
from merkhet.engine.plan import Plan, Step
from merkhet.engine.planning import plain_plan
from merkhet.engine.resolve_study import Request, ResolvedStudy, memorizes, resolve_study
from merkhet.engine.run_folder import Run
from merkhet.questions.question_files import QuestionSet, read_questions, write_questions

if TYPE_CHECKING:
    from merkhet.engine.distribute.shards import ShardRun


def run(
    what: str,
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
) -> Run:
    """Run a suite or a study and return the finished run.

    ``models`` may be names, folders, mappings or loaded models. ``out`` is the run's folder (``runs/<suite>`` by
    default): called again with the same folder, what has not changed is reused. ``engines`` say where it is done
    (``spark``, ``ray``, or the address of a cluster); on Ray by so many ``workers`` of so many ``cores`` each. Building
    uses at most so much ``memory`` (``4GB``), and the disk for the rest.
    """
    where = str(data) if data is not None else None
    given = (tuple(settings), tuple(engines), workers, cores, memory)
    resolved = resolve_study(Request(what, where, knowledge, models, tasks, limit, seed, *given))
    folder = Path(out) if out is not None else Path("runs") / resolved.suite.name
    _execute(resolved, _plan(resolved, command or f"merkhet.run({what!r}, …)"), folder, progress)
    return Run(folder)


def run_shard(
    what: str,
    shard: str,
    *,
    out: str | Path | None = None,
    progress: Progress | None = None,
    command: str | None = None,
    **given: Any,
) -> ShardRun:
    """Ask one shard of a suite or study (``3/8``), with the options that :func:`run` has.

    Make all questions and ask this shard's share of them; ``merge_runs`` merges the shards. ``out`` is
    ``runs/<suite>-shard-3-of-8`` by default.
    """
    from merkhet.engine.distribute.shards import ShardRun, parse_shard, refuse_other_shard, shard_plan

    share = parse_shard(shard)
    if given.get("data") is not None:
        given["data"] = str(given["data"])
    resolved = resolve_study(Request(what, **given))
    usual = Path("runs") / f"{resolved.suite.name}-shard-{share.number}-of-{share.of}"
    folder = Path(out) if out is not None else usual
    refuse_other_shard(folder, share)
    command = command or f"merkhet.run_shard({what!r}, {shard!r}, …)"
    plan = shard_plan(_plan(resolved, command), share, resolved.study.model_dump(), resolved.home, command)
    _execute(resolved, plan, folder, progress)
    return ShardRun(folder, share)


def _plan(resolved: ResolvedStudy, command: str) -> Plan:
    make_plan = resolved.suite.memorizing if memorizes(resolved.study) else None
    return (make_plan or plain_plan)(resolved, command)


def _execute(resolved: ResolvedStudy, plan: Plan, folder: Path, progress: Progress | None) -> None:
    watcher = progress or SilentProgress()

    def after(step: Step) -> None:
        lines: list[str] = []
        if step.name == "build":
            lines = _told(resolved, read_questions(folder))
        elif step.name in ("facts", "sets"):
            from merkhet.suites.lama_tk.memory_sets import told

            lines = told(folder, step.name)
        for line in lines:
            watcher.say(line)

    with asking_engine(resolved.asks_on, plan, resolved.home, watcher):
        execute(plan, folder, resolved.home, watcher, after)
    if resolved.study.report == "none":  # A report of an earlier start tells of other scores.
        (folder / "report.html").unlink(missing_ok=True)


def build(
    what: str,
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
) -> QuestionSet:
    """Make the questions of a suite or study and write them to a folder that ``run(..., data=folder)`` reads.

    ``engine`` is what makes them (``spark``, or the address of a cluster), with at most so much ``memory``.
    """
    from merkhet.engine.build_step import make_questions
    from merkhet.questions.data_card import write_card

    folder = Path(out)
    refuse_foreign_folder(folder, "card.json")
    if data is not None and folder.resolve() == Path(data).resolve():
        raise InputError(f"{folder} is where the questions come from. Choose another folder with --out.")
    building_engine(engine, memory)
    where = str(data) if data is not None else None
    engines = (engine,) if engine else ()
    request = Request(what, where, knowledge, (), tasks, limit, seed, tuple(settings), engines, memory=memory)
    resolved = resolve_study(request, with_models=False)
    questions = make_questions(resolved.suite, resolved.study, resolved.home, resolved.engines.build)
    # The card first: it marks the folder as one that may be written anew if this process does not get to the end.
    write_card(_card(resolved, questions), folder)
    write_questions(questions, folder)
    return questions


def _told(resolved: ResolvedStudy, questions: QuestionSet) -> list[str]:
    """What is said when the questions are there: how many they are, what has none, what is odd in data of others."""
    empty = questions.about.get("empty_domains") or ()
    told = [_headline(resolved, questions)]
    told += [f"No facts, and so no questions: {', '.join(empty)}"] if empty else []
    foreign = resolved.study.data is not None and "filters" not in questions.about
    return told + list(questions.about.get("remarks") or ())[:3] if foreign else told


def _headline(resolved: ResolvedStudy, questions: QuestionSet) -> str:
    count, facts = questions.questions.num_rows, questions.facts.num_rows
    baselines = sum(model.kind == "baseline" for model in resolved.models)
    parts = [f"{count:,} questions" + (f" from {facts:,} facts" if facts else "")]
    parts.append(_counted(len(resolved.models) - baselines, "model"))
    if baselines:
        parts.append(_counted(baselines, "baseline"))
    return f"{resolved.suite.name}: {', '.join(parts)}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _card(resolved: ResolvedStudy, questions: QuestionSet) -> dict[str, Any]:
    from merkhet.questions.data_card import make_card

    study = resolved.study
    names = resolved.suite.names(study, resolved.home)
    knowledge = study.knowledge if study.data is None else []
    return make_card(questions, suite=resolved.suite.name, seed=study.seed, knowledge=knowledge, names=names)
