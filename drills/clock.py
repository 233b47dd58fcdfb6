"""Clocks that jump by years while commands run, and files with dates in the past or future."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq

from drills.integrity import differences, leftovers
from drills.jobs import Job, References, find_job, output_hashes
from drills.stage import Stage, exit_problems

JOB_NAMES = ("import", "infer", "ask masked", "pretrain", "memorize", "report")
JUMPS = {
    "back by three years": "1:-94608000",
    "forward by fifty years": "1:1577880000",
    "to and fro by hours, every half second": ",".join(f"{0.5 * n}:{(-1) ** n * 7200 * n}" for n in range(1, 60)),
}
_SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

/* MERKHET_DRILL_JUMPS is "AFTER:SECONDS,…": so long after the process began, the clock is off by so much. */
static int (*real)(clockid_t, struct timespec *);
static double begun = -1;

static double seconds_of(clockid_t clock) {
    struct timespec now;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    real(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static long long jumped(void) {
    const char *place = getenv("MERKHET_DRILL_JUMPS");
    double since;
    long long off = 0;
    if (begun < 0) begun = seconds_of(CLOCK_MONOTONIC);
    since = seconds_of(CLOCK_MONOTONIC) - begun;
    while (place && *place) {
        char *end;
        double after = strtod(place, &end);
        if (*end != ':') break;
        long long by = strtoll(end + 1, &end, 10);
        if (since >= after) off = by;
        place = *end == ',' ? end + 1 : end;
    }
    return off;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, now);
    if (!done && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += jumped();
    return done;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec found;
    int done = clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return done;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}
"""


def drill(stage: Stage, references: References) -> None:
    """Run every kind of command under every jump, then restart runs whose files are dated 1970 and 2099."""
    library = _compile_library(stage)
    for name in JOB_NAMES if library else ():
        for jump in JUMPS:
            if not stage.late:
                _run_under_jump(stage, references, find_job(name), jump, library)
    for timestamp in (0, 4070908800):
        if not stage.late:
            _restart_dated(stage, references, find_job("ask masked"), timestamp)


def _compile_library(stage: Stage) -> Path | None:
    """Compile the library that makes the clock of a process jump."""
    source, library = stage.folder / "clock.c", stage.folder / "clock.so"
    source.write_text(_SHIM)
    try:
        command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        stage.skip("clock", "there is no C compiler (cc) to make a clock that jumps")
        return None
    if done.returncode:
        stage.skip("clock", f"a clock that jumps cannot be made ({done.stderr.strip()})")
        return None
    return library


def _run_under_jump(stage: Stage, references: References, job: Job, jump: str, library: Path) -> None:
    workdir = stage.new_folder("clock")
    job.prepare(references.materials, workdir)
    result = stage.finish(job.arguments, workdir, {"LD_PRELOAD": str(library), "MERKHET_DRILL_JUMPS": JUMPS[jump]})
    problems = (
        exit_problems(result, 0)
        + differences(references[job].content_hashes, output_hashes(job, workdir))
        + leftovers(workdir)
    )
    problems += _negative_durations(workdir)
    patience = 10 * references[job].seconds + 60
    problems += [f"it took {result.seconds:.0f} s"] if result.seconds > patience else []
    stage.record("clock", job.kind, f"{job.name}, {jump}", problems, workdir)


def _negative_durations(workdir: Path) -> list[str]:
    """Report negative durations in the outputs."""
    problems = []
    for file in workdir.rglob("*.json"):
        problems += [f"{file.name} has {key} {value}" for key, value in _find_negative(json.loads(file.read_text()))]
    for file in workdir.rglob("answers.parquet"):
        if any(seconds is not None and seconds < 0 for seconds in pq.read_table(file)["seconds"].to_pylist()):
            problems.append("an answer took less than no time")
    return problems


def _find_negative(content: object) -> list[tuple[str, float]]:
    if isinstance(content, list):
        return [duration for part in content for duration in _find_negative(part)]
    if not isinstance(content, dict):
        return []
    durations = [
        (key, value)
        for key, value in content.items()
        if ("seconds" in key or "per_second" in key) and isinstance(value, int | float) and value < 0
    ]
    return durations + [duration for part in content.values() for duration in _find_negative(part)]


def _restart_dated(stage: Stage, references: References, job: Job, timestamp: int) -> None:
    workdir = stage.new_folder("clock")
    shutil.copytree(references[job].workdir / "run", workdir / "run")
    for path in (workdir / "run").rglob("*"):
        os.utime(path, (timestamp, timestamp))
    steps_begun = (workdir / "run" / "log.txt").read_text().count(": begins")
    result = stage.finish(job.arguments, workdir)
    problems = exit_problems(result, 0) + differences(references[job].content_hashes, output_hashes(job, workdir))
    if (workdir / "run" / "log.txt").read_text().count(": begins") != steps_begun:
        problems.append("something was done again")
    stage.record(
        "clock", "files of a time", f"a finished run whose files are of {1970 if not timestamp else 2099}", problems
    )
