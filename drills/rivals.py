"""Several processes, among them readers, on one folder or one knowledge base at once."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from drills.integrity import differences, leftovers
from drills.jobs import Job, References, find_job, output_hashes
from drills.stage import CommandResult, Stage, exit_problems

WRITERS = ("ask masked", "import", "import more", "infer", "build", "memorize")
TIMES = 3


def drill(stage: Stage, references: References) -> None:
    """Run two to four writers at once, several times each; then readers beside a writer."""
    for name in WRITERS:
        for attempt in range(TIMES):
            if not stage.late:
                _writers(stage, references, find_job(name), attempt)
    _readers(stage, references)


def _writers(stage: Stage, references: References, job: Job, attempt: int) -> None:
    expected = references[job]
    workdir = stage.new_folder("rivals")
    job.prepare(references.materials, workdir)
    draw = stage.draw("rivals", job.name, attempt)
    running = []
    for _ in range(draw.randint(2, 4)):
        running.append(stage.start(job.arguments, workdir))
        # At the first attempt all start at once, later ones while others are at work.
        time.sleep(draw.random() * expected.seconds / 2 if attempt else 0.0)
    results = [result.wait() or result.kill() for result in running]
    problems = [problem for result in results for problem in _refused_or_done(result)]
    if all(result.code for result in results):
        problems.append("none of them got through")
    problems += differences(expected.content_hashes, output_hashes(job, workdir))
    rerun = stage.finish(job.arguments, workdir)
    problems += (
        exit_problems(rerun, 0) + differences(expected.content_hashes, output_hashes(job, workdir)) + leftovers(workdir)
    )
    codes = ", ".join(str(result.code) for result in results)
    stage.record("rivals", job.kind, f"{len(results)} × {job.name} (exit codes {codes})", problems, workdir)


def _refused_or_done(result: CommandResult) -> list[str]:
    problems = exit_problems(result, 0, 2)
    if result.code == 2 and not any(word in result.last_line for word in ("another merkhet", "in use")):
        problems.append(f"the refusal says {result.last_line!r}")
    return problems


def _readers(stage: Stage, references: References) -> None:
    """Read a finished run while the same command remakes parts of it."""
    job = find_job("ask masked")
    expected = references[job]
    commands = (
        ("report", "run", "--out", "elsewhere.html"),
        ("compare", "run", "other", "--out", "elsewhere.html"),
        ("tables", "run", "--out", "tables"),
        ("figures", "run", "--as", "svg", "--out", "figures"),
    )
    for number, command in enumerate(commands):
        if stage.late:
            return
        workdir = stage.new_folder("rivals")
        for name in ("run", "other"):
            shutil.copytree(expected.workdir / "run", workdir / name)
        _remove_outputs(workdir / "run")
        writer = stage.start(job.arguments, workdir)
        time.sleep(stage.draw("readers", number).random() * expected.seconds / 2)
        read = stage.finish(command, workdir)
        problems = exit_problems(read, 0, 2)
        wrote = writer.wait() or writer.kill()
        problems += exit_problems(wrote, 0) + differences(expected.content_hashes, output_hashes(job, workdir))
        stage.record(
            "rivals", "readers", f"merkhet {command[0]} beside a run (exit code {read.code})", problems, workdir
        )


def _remove_outputs(run: Path) -> None:
    """Remove outputs, so that a restart has work to do."""
    for name in ("scores.parquet", "findings.json"):
        (run / name).unlink()
