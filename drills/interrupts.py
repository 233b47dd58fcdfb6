"""SIGINT, SIGTERM and SIGHUP at random moments, to the process or its group, then the same command again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from drills.integrity import broken_files, differences, leftovers
from drills.jobs import JOBS, TOGETHER, Job, References, output_hashes
from drills.stage import CommandResult, RunningCommand, Stage, exit_problems, kill_orphans, print_line
from merkhet.core.interrupts import LINE

TIMES = 60
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
QUESTION_SECONDS = 0.1
"""Seconds until the chat endpoint replies."""
MAX_SECONDS = 20.0
"""Maximum seconds from the signal to the end, on a busy machine. Workers have some seconds to end."""
RESUMED = 3
"""One in so many interrupted commands is started again and compared with the undisturbed one."""
SUSPICIOUS = ("Traceback", "Exception ignored", "Query interrupted", "Error", "error in", "Fatal", "terminate called")
_TRIPLES = 12_000


def drill(stage: Stage, references: References, times: int = TIMES) -> None:
    """Interrupt all jobs, ``times`` times in total."""
    with _caught_signals(), _all_jobs(references.materials) as jobs:
        durations = Durations(stage, references)
        moments = [(number, jobs[number % len(jobs)]) for number in range(times)]
        for job in jobs:
            durations[job]
        with ThreadPoolExecutor(stage.jobs) as pool:
            for done in [pool.submit(_interrupt, stage, references, durations, job, number) for number, job in moments]:
                done.result()


@dataclass
class Durations:
    """Seconds of each command in a new process, from its first line of code to its end."""

    stage: Stage
    references: References
    imports: dict[str, float] = field(default_factory=dict)
    """Seconds that a new process takes longer than one that has loaded the libraries, by kind of command."""

    def __getitem__(self, job: Job) -> float:
        if job.kind not in self.imports:
            self.imports[job.kind] = max(0.0, self._measure(job) - self.references[job].seconds)
        return self.references[job].seconds + self.imports[job.kind]

    def _measure(self, job: Job) -> float:
        workdir = self.stage.new_folder("timed")
        job.prepare(self.references.materials, workdir)
        running = self.stage.start(job.arguments, workdir, _environment(workdir), fresh=True)
        _await_handlers(running)
        began = time.monotonic()
        result = running.wait()
        if result is None or result.code:
            raise SystemExit(f"the job {job.name} fails undisturbed: {result and result.output}")
        print_line(f"{job.name}: {time.monotonic() - began:.1f} s in a new process")
        shutil.rmtree(workdir, ignore_errors=True)
        return time.monotonic() - began


def _interrupt(stage: Stage, references: References, durations: Durations, job: Job, number: int) -> None:
    """Interrupt a job once, and check what it leaves; sometimes run it again."""
    if stage.late:
        return
    draw = stage.draw("interrupts", job.name, number)
    expected = references[job]
    for _ in range(10):
        workdir = stage.new_folder("interrupted")
        job.prepare(references.materials, workdir)
        sent, is_for_group = draw.choice(SIGNALS), draw.random() < 0.5
        moment = draw.random() * durations[job]
        running = stage.start(job.arguments, workdir, _environment(workdir), fresh=True)
        _await_handlers(running)
        if running.wait(moment) is None:
            break
        shutil.rmtree(workdir, ignore_errors=True)
    else:
        return
    send = os.killpg if is_for_group else os.kill
    send(running.process.pid, sent)
    began = time.monotonic()
    result = running.wait(MAX_SECONDS)
    took = time.monotonic() - began
    description = f"{job.name}: {sent.name} to the {'group' if is_for_group else 'process'} at {moment:.2f} s"
    if result is None:
        running.kill()
        stage.record("interrupts", job.kind, description, [f"still runs after {MAX_SECONDS:g} s"], workdir)
        return
    if result.code == 0 and LINE not in result.output:
        description += ", as it ended"
        problems = exit_problems(result, 0)
    else:
        problems = interrupt_problems(result, sent)
    orphans = kill_orphans(running.mark, 1.0)
    problems += [f"{len(orphans)} processes went on"] if orphans else []
    problems += [f"at the interrupt: {problem}" for problem in broken_files(workdir)]
    problems += unfinished_files(workdir)
    if not problems and number % RESUMED == 0:
        description += ", resumed"
        rerun = stage.finish(job.arguments, workdir, _environment(workdir))
        problems += exit_problems(rerun, 0) + leftovers(workdir)
        problems += differences(expected.content_hashes, output_hashes(job, workdir))
    stage.record("interrupts", job.kind, f"{description}, {took:.2f} s to the end", problems, workdir)


def interrupt_problems(result: CommandResult, sent: signal.Signals) -> list[str]:
    """Return what is wrong with the end of a command: its exit code, or anything but progress and a line."""
    problems = exit_problems(result, 128 + sent)
    if result.output.count(LINE) != 1 or not result.output.endswith(LINE):
        problems.append(f"the line is not the last one: {result.output[-500:]!r}")
    return problems + [
        f"{word!r} in the output: {result.output[-2000:]}" for word in SUSPICIOUS if word in result.output
    ]


def unfinished_files(workdir: Path) -> list[str]:
    """Return the temporary files and folders of an ended command; its work folders, from which it resumes, may stay."""
    hidden = [path for path in workdir.rglob(".*") if path.name.endswith((".tmp", ".part", ".importing"))]
    # Torch's own cache is no temporary folder.
    temporary = [path for path in (workdir / "tmp").glob("*") if path.name.startswith(("merkhet-", "torchelastic_"))]
    return [f"{path.relative_to(workdir)} is left over" for path in (*hidden, *temporary)]


def _environment(workdir: Path) -> dict[str, str]:
    """Give a command its own temporary folder and cache."""
    (workdir / "tmp").mkdir(exist_ok=True)
    return {"TMPDIR": str(workdir / "tmp"), "MERKHET_CACHE": str(workdir / "cache")}


def _await_handlers(running: RunningCommand, seconds: float = 60.0) -> None:
    """Wait until a command catches SIGTERM, which it does from its first line of code."""
    deadline = time.monotonic() + seconds
    while running.process.poll() is None and time.monotonic() < deadline:
        try:
            status = Path(f"/proc/{running.process.pid}/status").read_text()
        except OSError:
            return
        caught = int(status.partition("SigCgt:")[2].split()[0], 16)
        if caught >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.001)


@contextmanager
def _caught_signals() -> Iterator[None]:
    """Let commands inherit no ignored signal, as those of a shell in the background do."""
    ignored = [number for number in SIGNALS if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def _all_jobs(materials: Path) -> Iterator[list[Job]]:
    """Yield all jobs, with larger imports, two processes that train together, and servers on loopback to ask."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from chat_servers import ScriptedServer, completion, running

    facts = [(f"http://x.org/e{n}", f"http://x.org/p{n % 9}", f"http://x.org/e{n * 7 % 5000}") for n in range(_TRIPLES)]
    triples = "".join(f"<{subject}> <{predicate}> <{value}> .\n" for subject, predicate, value in facts)
    (materials / "facts.nt").write_text(triples * 4)
    (materials / "facts.csv").write_text(
        "subject,predicate,object\n" + "".join(f"{','.join(fact)}\n" for fact in facts)
    )
    query = "select ?subject ?predicate ?object where { ?subject ?predicate ?object }"
    (materials / "facts.rq").write_text(query)
    imports = [_import_job(name, f"../materials/facts.{name}") for name in ("csv", "nt")]

    def reply(body: dict[str, object], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        time.sleep(QUESTION_SECONDS)
        return 200, {}, completion("A")

    with ExitStack() as stack:
        chat = stack.enter_context(running(ScriptedServer(reply)))
        arguments = ("run", "quickstart", "--limit", "30", "--model", f"chat:tester@{chat.endpoint}")
        jobs = [
            *JOBS,
            TOGETHER,
            *imports,
            Job("ask chat", "ask", (*arguments, "--out", "run", "--quiet"), "run", _nothing),
        ]
        if oxigraph := shutil.which("oxigraph", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"):
            address = stack.enter_context(_sparql_endpoint(oxigraph, triples.encode()))
            options = ("--set", f"endpoint={address}", "--set", "page=1000")
            jobs.append(_import_job("endpoint", "../materials/facts.rq", *options))
        yield jobs


@contextmanager
def _sparql_endpoint(oxigraph: str, triples: bytes) -> Iterator[str]:
    """Start an Oxigraph server with some triples on a free port, and yield the address of its endpoint."""
    from listening import listening_port

    process = subprocess.Popen(
        [oxigraph, "serve", "--bind", "127.0.0.1:0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        server = f"http://127.0.0.1:{listening_port(process)}"
        headers = {"Content-Type": "application/n-triples"}
        request = urllib.request.Request(f"{server}/store?default", triples, headers, method="POST")
        urllib.request.urlopen(request, timeout=120).close()
        yield f"{server}/query"
    finally:
        process.terminate()
        process.wait()


def _import_job(name: str, location: str, *options: str) -> Job:
    arguments = ("knowledge", "import", location, *options, "--into", "kb.duckdb", "--quiet")
    return Job(f"import {name}", "build", arguments, "kb.duckdb", _nothing)


def _nothing(materials: Path, workdir: Path) -> None:
    """Leave the working directory empty."""
