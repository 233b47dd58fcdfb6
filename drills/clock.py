"""A clock that jumps by years while commands run, and files that claim to be of another time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq

from drills.jobs import Job, Undisturbeds, job_called, made_by
from drills.stage import Stage, complaints
from drills.wholeness import differences, leftovers

WORKS = ("import", "infer", "ask masked", "pretrain", "memorize", "report")
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


def drill(stage: Stage, undisturbed: Undisturbeds) -> None:
    """Every kind of command under every jump; then runs whose files are of 1970 and of 2099, which nobody minds."""
    library = _compiled(stage)
    for name in WORKS if library else ():
        for jump in JUMPS:
            if not stage.late:
                _under(stage, undisturbed, job_called(name), jump, library)
    for when in (0, 4070908800):
        if not stage.late:
            _dated(stage, undisturbed, job_called("ask masked"), when)


def _compiled(stage: Stage) -> Path | None:
    """The library that lets the clock jump for whatever is started with it."""
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


def _under(stage: Stage, undisturbed: Undisturbeds, job: Job, jump: str, library: Path) -> None:
    place = stage.place("clock")
    job.prepare(undisturbed.materials, place)
    ended = stage.finish(job.arguments, place, {"LD_PRELOAD": str(library), "MERKHET_DRILL_JUMPS": JUMPS[jump]})
    problems = complaints(ended, 0) + differences(undisturbed[job].contents, made_by(job, place)) + leftovers(place)
    problems += _negative(place)
    patience = 10 * undisturbed[job].seconds + 60
    problems += [f"it took {ended.seconds:.0f} s"] if ended.seconds > patience else []
    stage.note("clock", job.kind, f"{job.name}, {jump}", problems, place)


def _negative(place: Path) -> list[str]:
    """Durations below zero in what was written."""
    found = []
    for file in place.rglob("*.json"):
        found += [f"{file.name} has {key} {value}" for key, value in _durations(json.loads(file.read_text()))]
    for file in place.rglob("answers.parquet"):
        if any(seconds is not None and seconds < 0 for seconds in pq.read_table(file)["seconds"].to_pylist()):
            found.append("an answer took less than no time")
    return found


def _durations(content: object) -> list[tuple[str, float]]:
    if isinstance(content, list):
        return [one for part in content for one in _durations(part)]
    if not isinstance(content, dict):
        return []
    own = [
        (key, value)
        for key, value in content.items()
        if ("seconds" in key or "per_second" in key) and isinstance(value, int | float) and value < 0
    ]
    return own + [one for part in content.values() for one in _durations(part)]


def _dated(stage: Stage, undisturbed: Undisturbeds, job: Job, when: int) -> None:
    place = stage.place("clock")
    shutil.copytree(undisturbed[job].place / "run", place / "run")
    for path in (place / "run").rglob("*"):
        os.utime(path, (when, when))
    before = (place / "run" / "log.txt").read_text().count(": begins")
    ended = stage.finish(job.arguments, place)
    problems = complaints(ended, 0) + differences(undisturbed[job].contents, made_by(job, place))
    if (place / "run" / "log.txt").read_text().count(": begins") != before:
        problems.append("something was done again")
    stage.note("clock", "files of a time", f"a finished run whose files are of {1970 if not when else 2099}", problems)
