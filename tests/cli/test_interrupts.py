"""Signals end a command at once, with one line, its exit code, and nothing left behind."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from chat_servers import ScriptedServer, completion, running
from small_packs import small_pack

from merkhet.core.interrupts import LINE

sys.path.insert(0, str(Path(__file__).parents[2]))

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
START = """
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # Jobs in the background ignore some.
    signal.signal(number, signal.SIG_DFL)
from merkhet.core import interrupts
interrupts.install()
me = os.getpid()
"""
MOMENTS = {
    "at work": "os.kill(me, number); time.sleep(60)",
    "in an import that is optional": """
import builtins
real = builtins.__import__
def interrupted(name, *rest, **more):
    if name == "optional":
        os.kill(me, number)
    return real(name, *rest, **more)
builtins.__import__ = interrupted
try:
    import optional
except BaseException:
    print("the import has failed")
""",
    "in a destructor": """
class Freed:
    def __del__(self):
        os.kill(me, number)
Freed()
""",
    "in native code that does not return": """
import ctypes
signal.pthread_sigmask(signal.SIG_BLOCK, {number})  # Another thread receives the signal, and nothing wakes this one.
os.kill(me, number)
ctypes.CDLL(None).sleep(60)
""",
    "in a query": """
import duckdb, threading
threading.Timer(0.2, os.kill, (me, number)).start()
try:
    duckdb.execute("select sum(hash(a.range + b.range)) from range(1000000000) a, range(1000000000) b").fetchall()
except Exception as error:  # "Query interrupted"
    print(error)
""",
    "in a library with handlers of its own": """
def interrupted(*_):
    raise KeyboardInterrupt
signal.signal(number, interrupted)
try:
    os.kill(me, number)
    time.sleep(60)
except KeyboardInterrupt:
    pass
time.sleep(60)
""",
    "while another signal ends the process": """
interrupts.before_exit.append(lambda: [os.kill(me, other) for other in interrupts.SIGNALS])
os.kill(me, number); time.sleep(60)
""",
    "while other threads print": """
import threading
def chatter():
    while True:
        os.write(2, b"progress\\n")
for _ in range(3):
    threading.Thread(target=chatter, daemon=True).start()
interrupts.before_exit.append(lambda: time.sleep(0.05))
os.kill(me, number); time.sleep(60)
""",
    "in the last exit function": """
import atexit
atexit.register(os.kill, me, number)
""",
}
"""Python code that receives the signal ``number`` at a moment that is hard to handle."""


def run_python(code: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **options)


def test_signals_end_the_process_at_any_moment_with_one_line() -> None:
    for case, (moment, code) in enumerate(MOMENTS.items()):
        number = SIGNALS[case % len(SIGNALS)]
        done = run_python(f"{START}\nnumber = {int(number)}\n{code}")
        said = done.stderr.replace("progress\n", "")
        assert (done.returncode, done.stdout, said) == (128 + number, "", LINE), (moment, number, done)


@pytest.mark.parametrize("number", SIGNALS)
def test_children_and_temporary_files_end_with_the_process(tmp_path: Path, number: int) -> None:
    code = f"""{START}
import subprocess
from pathlib import Path
from merkhet.core.files import atomic_path, removed_at_interrupt, scratch_folder
grandchild = "import subprocess, sys, time; subprocess.Popen(['sleep', '600']); print(1, flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", grandchild], stdout=subprocess.PIPE)
child.stdout.readline()
with scratch_folder("test") as folder, atomic_path(Path("table")) as path, removed_at_interrupt(Path("staging")):
    for file in (folder / "spilled", path):
        file.write_text("half")
    Path("staging").mkdir()
    os.kill(me, {int(number)})
    time.sleep(60)
"""
    mark = f"merkhet-{os.getpid()}-{number}"
    environment = {**os.environ, "TMPDIR": str(tmp_path), "MERKHET_DRILL": mark}
    done = run_python(code, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stderr) == (128 + number, LINE)
    from drills.stage import marked_processes

    assert list(tmp_path.iterdir()) == [] and marked_processes(mark) == []


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    code = START.replace("signal.SIG_DFL", "signal.SIG_IGN") + "[os.kill(me, number) for number in interrupts.SIGNALS]"
    done = run_python(f"{code}\nprint('went on')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", "")


def test_the_library_leaves_the_handlers_alone() -> None:
    code = (
        "import signal\nbefore = [signal.getsignal(number) for number in (1, 2, 15)]\n"
        "import merkhet, merkhet.cli.app, merkhet.core.files\nmerkhet.run\n"
        "assert before == [signal.getsignal(number) for number in (1, 2, 15)] and signal.set_wakeup_fd(-1) == -1"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_in_a_terminal_the_cursor_comes_back_and_the_line_begins_a_line(tmp_path: Path) -> None:
    code = f"""
import fcntl, os, termios
os.setsid()
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
{START}
from merkhet.core.progress_bars import make_progress
with make_progress(plain=False) as progress:
    progress.start("model", 9, "questions")
    time.sleep(0.2)
    os.write(1, b"ready\\n")  # While there are bars, print() writes above them.
    time.sleep(60)
"""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        os.write(ours, b"\x03")
        seen = b""
        while True:
            try:
                seen += os.read(ours, 4096)
            except OSError:  # All others have closed the terminal.
                break
    os.close(ours)
    assert process.returncode == 130
    assert seen.endswith(b"\x1b[?25h\r\n" + LINE.replace("\n", "\r\n").encode()), seen


def test_an_interrupt_does_not_wait_for_replies_in_flight(made_once, tmp_path: Path) -> None:
    asked, replied = threading.Event(), threading.Event()

    def reply(body, headers):
        asked.set()
        replied.wait(300)
        return 200, {}, completion("A")

    with running(ScriptedServer(reply)) as server:
        command = ["run", "quickstart", "--knowledge", str(small_pack(made_once)), "--set", "report=none"]
        process = subprocess.Popen(
            [sys.executable, "-m", "merkhet", *command, "--model", f"chat:tester@{server.endpoint}", "--out", "run"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "MERKHET_CACHE": str(tmp_path / "cache")},
        )
        try:
            assert asked.wait(120)
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=120)
        finally:
            replied.set()
            process.kill()
    assert process.returncode == 143 and error.endswith(LINE) and error.count(LINE) == 1 and "Traceback" not in error


@pytest.mark.slow
def test_children_that_do_not_end_are_killed() -> None:
    code = f"""{START}
import subprocess
stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
os.kill(me, signal.SIGINT)
time.sleep(60)
"""
    done = run_python(code)
    assert (done.returncode, done.stderr) == (130, LINE)
    state = Path(f"/proc/{int(done.stdout)}/status")
    assert not state.exists() or "State:\tZ" in state.read_text()


@pytest.mark.slow
def test_sixty_interrupts_at_random_moments() -> None:
    """Of building, importing, asking, training and reporting: the same machinery as ``python -m drills``."""
    from drills.fork_server import ForkServer
    from drills.interrupts import drill
    from drills.jobs import References
    from drills.stage import Stage

    began = time.monotonic()
    fork_server = ForkServer()
    try:
        with tempfile.TemporaryDirectory(prefix="merkhet-drills-") as folder:
            stage = Stage(Path(folder), seed=1, minutes=30, kills=0, jobs=2, fork_server=fork_server)
            drill(stage, References(stage), times=60)
    finally:
        fork_server.end()
    failures = [failure for tally in stage.tallies.values() for failure in tally.failures]
    moments = sum(tally.moments for tally in stage.tallies.values())
    assert not failures and moments == 60, "\n".join(failures)
    print(f"{moments} interrupts in {time.monotonic() - began:.0f} s")
