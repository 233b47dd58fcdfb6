"""A process that has loaded the libraries and forks commands off: kills then hit their work, not their imports."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

LOADED = (
    *("torch", "transformers", "duckdb", "pyarrow.parquet", "pandas", "yaml", "rich.progress", "jinja2"),
    *(
        "transformers.models.bert.modeling_bert",
        "transformers.models.llama.modeling_llama",
        "merkhet",
        "merkhet.cli.app",
    ),
    "merkhet.api",
    *("merkhet.suites.quickstart.suite", "merkhet.suites.kmir.suite", "merkhet.suites.lama_tk.suite"),
    *(
        "merkhet.engine.score_step",
        "merkhet.engine.record_step",
        "merkhet.engine.memorize_steps",
        "merkhet.engine._training_steps",
    ),
    *("merkhet.training.cloze", "merkhet.training.pretraining", "merkhet.training.memorizing", "merkhet.models.masked"),
    *("merkhet.models.causal", "merkhet.reports", "merkhet.knowledge.store_import", "merkhet.knowledge.rules"),
)


class Forked:
    """A forked command, waited for as one would for a subprocess."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.ended = threading.Event()

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code when it has ended; raises TimeoutExpired as subprocess does."""
        if not self.ended.wait(timeout):
            raise subprocess.TimeoutExpired("merkhet", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode


class Forge:
    """The drills' end: asks for commands, and hears how they end."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "drills.forge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lock = threading.Lock()
        self.begun: dict[str, Forked] = {}
        self.known: dict[int, Forked] = {}
        self.news = threading.Condition()
        assert self.process.stdout is not None
        self.process.stdout.readline()  # It says when it has loaded: else the first command would seem to take long.
        threading.Thread(target=self._hear, daemon=True).start()

    def start(self, arguments: Sequence[str], place: Path, said: Path, mark: str, more: Mapping[str, str]) -> Forked:
        """Let a command begin."""
        request = {"arguments": list(arguments), "place": str(place), "said": str(said), "more": dict(more)}
        with self.lock:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps({**request, "mark": mark}) + "\n")
            self.process.stdin.flush()
        with self.news:
            self.news.wait_for(lambda: mark in self.begun, 300)
            return self.begun.pop(mark)

    def end(self) -> None:
        """Let the forge go."""
        self.process.kill()
        self.process.wait()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told = json.loads(line)
            with self.news:
                if "mark" in told:
                    self.known[told["pid"]] = self.begun[told["mark"]] = Forked(told["pid"])
                else:
                    one = self.known.pop(told["pid"])
                    one.returncode = told["code"]
                    one.ended.set()
                self.news.notify_all()


def _main() -> None:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    telling, asking = os.dup(1), os.dup(0)
    os.dup2(2, 1)
    for name in LOADED:
        import_module(name)
    os.write(telling, b"{}\n")
    waiting = b""
    while True:
        readable, _, _ = select.select([asking], [], [], 0.01)
        if readable:
            found = os.read(asking, 1 << 16)
            if not found:
                return
            waiting += found
            *lines, waiting = waiting.split(b"\n")
            for line in lines:
                request = json.loads(line)
                pid = os.fork()
                if not pid:
                    os.close(telling)
                    os.close(asking)
                    _be(request)
                os.write(telling, (json.dumps({"mark": request["mark"], "pid": pid}) + "\n").encode())
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            told = {"pid": pid, "code": os.waitstatus_to_exitcode(status)}
            os.write(telling, (json.dumps(told) + "\n").encode())


def _be(request: Mapping[str, object]) -> None:
    """Be a command, to its end."""
    import atexit
    import tempfile
    import traceback

    code = 1
    try:
        os.setsid()
        os.chdir(str(request["place"]))
        output = os.open(str(request["said"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for handle in (1, 2):
            os.dup2(output, handle)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.update(request["more"])  # type: ignore[call-overload]
        tempfile.tempdir = None
        sys.argv = ["merkhet", *request["arguments"]]  # type: ignore[misc]
        from merkhet.cli import main

        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            time.sleep(0)
        finally:
            os._exit(code)


if __name__ == "__main__":
    _main()
