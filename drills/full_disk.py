"""Full disks: a tmpfs that is too small for a command, then enlarged for its restart."""

from __future__ import annotations

from pathlib import Path

from drills.disks import PAGE, disk_usage, mount_error, small_disk
from drills.integrity import broken_files, differences, final_files, leftovers
from drills.jobs import JOBS, Job, References, output_hashes
from drills.stage import CommandResult, Stage, exit_problems

SHARES = (0.02, 0.35, 0.8)
"""Sizes of the disk, as shares of the room that the command needs in addition to its inputs."""
ENOUGH = 256 << 20


def drill(stage: Stage, references: References) -> None:
    """Run every job on disks of several sizes, then jobs that need the temporary folder on a full one."""
    reason = mount_error(stage.folder / "mounting")
    if reason:
        stage.skip("full_disk", f"a tmpfs cannot be mounted ({reason})")
        return
    for job in JOBS:
        for share in SHARES:
            if not stage.late:
                _fill(stage, references, job, share)
    _fill_temporary(stage, references)


def _fill(stage: Stage, references: References, job: Job, share: float) -> None:
    expected = references[job]
    workdir = stage.new_folder("full")
    inputs = stage.new_folder("before")
    job.prepare(references.materials, inputs)
    input_bytes = disk_usage(inputs)
    size = input_bytes + PAGE + int(share * max(0, disk_usage(expected.workdir) - input_bytes))
    with small_disk(workdir, ENOUGH) as disk:
        job.prepare(references.materials, workdir)
        old = {file: file.read_bytes() for file in final_files(workdir)}
        disk.remount(f"size={size}")
        result = stage.finish(job.arguments, workdir, {"TMPDIR": str(workdir)} if share == SHARES[0] else {})
        problems = _check_full_message(result) if result.code else []
        problems += exit_problems(result, 0, 2) + broken_files(workdir)
        problems += [
            f"half-written: {problem}"
            for problem in leftovers(workdir)
            if "/work" not in problem and ".wal" not in problem
        ]
        if job.output.endswith(".duckdb") is False:
            problems += [
                f"{file.name} was there before, and has changed"
                for file, content in old.items()
                if result.code and (not file.is_file() or file.read_bytes() != content) and file.name != "log.txt"
            ]
        disk.remount(f"size={ENOUGH}")
        rerun = stage.finish(job.arguments, workdir)
        problems += [f"with room again: {problem}" for problem in exit_problems(rerun, 0)]
        problems += differences(expected.content_hashes, output_hashes(job, workdir)) + leftovers(workdir)
    stage.record("full_disk", job.kind, f"{job.name} with {size >> 10} KiB (exit code {result.code})", problems)


def _check_full_message(result: CommandResult) -> list[str]:
    full = "disk is full" in result.last_line
    return [] if full else [f"the last line does not say that the disk is full: {result.last_line!r}"]


def _fill_temporary(stage: Stage, references: References) -> None:
    """Fill the temporary folder of a build, and of processes that train together."""
    for name, size, arguments in (
        ("build kmir", 64 << 10, ("build", "kmir", "--knowledge", "countries", "--limit", "20", "--out", "questions")),
        ("memorize by two", 2 * PAGE, ("memorize", "../materials/together.yaml", "--out", "run", "--quiet")),
    ):
        workdir = stage.new_folder("full")
        temporary: Path = stage.new_folder("temporary")
        with small_disk(temporary, size):
            result = stage.finish(arguments, workdir, {"TMPDIR": str(temporary)})
        problems = exit_problems(result, 2) + _check_full_message(result)
        if name == "build kmir" and any(workdir.iterdir()):
            problems.append("something was written although nothing could be built")
        stage.record("full_disk", "TMPDIR", f"{name} with {size >> 10} KiB for temporary files", problems, workdir)
