"""Read-only folders: every command that writes must say so, and a finished run must stay readable."""

from __future__ import annotations

import shutil
from pathlib import Path

from drills.disks import mount_error, small_disk
from drills.jobs import JOBS, References, find_job
from drills.readers import read_with, reading_commands
from drills.stage import Stage, exit_problems

ENOUGH = 256 << 20


def drill(stage: Stage, references: References) -> None:
    """Run every job and every other writing command on a read-only disk, then read a run on it."""
    reason = mount_error(stage.folder / "mounting")
    if reason:
        stage.skip("read_only", f"a tmpfs cannot be mounted ({reason})")
        return
    finished = references[find_job("ask masked")].workdir / "run"
    with small_disk(stage.new_folder("read-only"), ENOUGH) as disk:
        workdir = disk.mount_point
        (workdir / "empty").mkdir()
        for job in JOBS:
            (workdir / job.name.replace(" ", "-")).mkdir()
            job.prepare(references.materials, workdir / job.name.replace(" ", "-"))
        shutil.copytree(finished, workdir / "run")
        shutil.copytree(finished, workdir / "other")
        disk.remount("ro")
        for job in JOBS:
            arguments = [argument.replace("../materials", str(references.materials)) for argument in job.arguments]
            _check_refusal(stage, job.name, arguments, workdir / job.name.replace(" ", "-"))
        for arguments in _writing_commands(workdir):
            _check_refusal(stage, " ".join(arguments[:2]), arguments, workdir)
        elsewhere = stage.new_folder("elsewhere")
        for command in reading_commands(workdir / "run", workdir / "other", elsewhere):
            result = read_with(stage, command, elsewhere)
            stage.record("read_only", "readers", f"merkhet {command[0]} of a run there", exit_problems(result, 0))


def _check_refusal(stage: Stage, name: str, arguments: list[str], workdir: Path) -> None:
    result = stage.finish(arguments, workdir)
    problems = exit_problems(result, 2)
    if not problems and not any(word in result.last_line for word in ("cannot be written", "read-only", "cannot be")):
        problems.append(f"the last line does not say what is wrong: {result.last_line!r}")
    stage.record("read_only", "writers", f"{name}: {result.last_line}", problems)


def _writing_commands(workdir: Path) -> list[list[str]]:
    """Return further commands that write to the read-only disk."""
    empty = workdir / "empty"
    return [
        ["report", str(workdir / "run"), "--predictions"],
        ["tables", str(workdir / "run"), "--out", str(empty / "tables")],
        ["figures", str(workdir / "run"), "--as", "svg", "--out", str(empty / "figures")],
        ["compare", str(workdir / "run"), str(workdir / "other"), "--out", str(empty / "compared.html")],
        ["knowledge", "export", str(workdir / "infer" / "kb.duckdb"), "--out", str(empty / "facts.csv")],
        ["knowledge", "export", str(workdir / "infer" / "kb.duckdb"), "--out", str(empty / "facts")],
        ["build", "quickstart", "--limit", "12", "--out", str(workdir / "new" / "questions")],
    ]
