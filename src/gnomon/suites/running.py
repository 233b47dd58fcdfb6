"""``gnomon.run`` and ``gnomon.build``: the whole way in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gnomon.foundation import InputError, Progress, SilentProgress, refuse_foreign_folder
from gnomon.questions import QuestionSet, read_questions, write_questions
from gnomon.questions.card import make_card, write_card
from gnomon.runs import Run, Step, execute
from gnomon.runs.memory_sets import told
from gnomon.suites.building import make_questions
from gnomon.suites.planning import plain_plan
from gnomon.suites.resolving import Request, ResolvedStudy, memorizes, resolve_study


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
) -> Run:
    """Run a suite or a study and return the finished run.

    ``models`` may be names, folders, mappings or loaded models. ``out`` is the run's folder (``runs/<suite>`` by
    default): called again with the same folder, what has not changed is reused.
    """
    request = Request(
        what, str(data) if data is not None else None, knowledge, models, tasks, limit, seed, tuple(settings)
    )
    resolved = resolve_study(request)
    folder = Path(out) if out is not None else Path("runs") / resolved.suite.name
    watcher = progress or SilentProgress()
    make_plan = resolved.suite.memorizing if memorizes(resolved.study) else None
    plan = (make_plan or plain_plan)(resolved, command or f"gnomon.run({what!r}, …)")

    def after(step: Step) -> None:
        lines = _told(resolved, read_questions(folder)) if step.name == "build" else []
        for line in told(folder, step.name) if step.name in ("facts", "sets") else lines:
            watcher.say(line)

    execute(plan, folder, resolved.home, watcher, after)
    return Run(folder)


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
) -> QuestionSet:
    """Make the questions of a suite or study and write them to a folder that ``run(..., data=folder)`` reads."""
    folder = Path(out)
    refuse_foreign_folder(folder, "card.json")
    if data is not None and folder.resolve() == Path(data).resolve():
        raise InputError(f"{folder} is where the questions come from. Choose another folder with --out.")
    request = Request(what, str(data) if data is not None else None, knowledge, (), tasks, limit, seed, tuple(settings))
    resolved = resolve_study(request, with_models=False)
    questions = make_questions(resolved.suite, resolved.study, resolved.home)
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
    study = resolved.study
    names = resolved.suite.names(study, resolved.home)
    knowledge = study.knowledge if study.data is None else []
    return make_card(questions, suite=resolved.suite.name, seed=study.seed, knowledge=knowledge, names=names)
