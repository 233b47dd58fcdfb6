"""Fork server for commands: a process that has imported the libraries, so that kills hit the work, not the imports."""

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

PRELOADED = (
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
        "merkhet.engine.training_steps",
    ),
    *("merkhet.training.cloze", "merkhet.training.pretraining", "merkhet.training.memorizing", "merkhet.models.masked"),
    *("merkhet.models.causal", "merkhet.reports", "merkhet.knowledge.store_import", "merkhet.knowledge.rules"),
)


class ForkedProcess:
    """A forked command, with the interface of a subprocess."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.finished = threading.Event()

    def poll(self) -> int | None:
        """Return the exit code, or None while the command runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code; raise TimeoutExpired as subprocess does."""
        if not self.finished.wait(timeout):
            raise subprocess.TimeoutExpired("merkhet", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode


class ForkServer:
    """Client of the fork server: starts commands and receives their exit codes."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "drills.fork_server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lock = threading.Lock()
        self.started_by_mark: dict[str, ForkedProcess] = {}
        self.running_by_pid: dict[int, ForkedProcess] = {}
        self.changed = threading.Condition()
        assert self.process.stdout is not None
        self.process.stdout.readline()  # Sent after the imports, which must not count for the first command.
        threading.Thread(target=self._receive, daemon=True).start()

    def start(
        self, arguments: Sequence[str], workdir: Path, output_file: Path, mark: str, environment: Mapping[str, str]
    ) -> ForkedProcess:
        """Start a command whose output goes to a file."""
        request = {
            "arguments": list(arguments),
            "workdir": str(workdir),
            "output_file": str(output_file),
            "environment": dict(environment),
        }
        with self.lock:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps({**request, "mark": mark}) + "\n")
            self.process.stdin.flush()
        with self.changed:
            self.changed.wait_for(lambda: mark in self.started_by_mark, 300)
            return self.started_by_mark.pop(mark)

    def end(self) -> None:
        """Stop the server."""
        self.process.kill()
        self.process.wait()

    def _receive(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            with self.changed:
                if "mark" in message:
                    self.running_by_pid[message["pid"]] = self.started_by_mark[message["mark"]] = ForkedProcess(
                        message["pid"]
                    )
                else:
                    forked = self.running_by_pid.pop(message["pid"])
                    forked.returncode = message["code"]
                    forked.finished.set()
                self.changed.notify_all()


def _main() -> None:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    messages, requests = os.dup(1), os.dup(0)
    os.dup2(2, 1)
    for name in PRELOADED:
        import_module(name)
    os.write(messages, b"{}\n")
    buffer = b""
    while True:
        readable, _, _ = select.select([requests], [], [], 0.01)
        if readable:
            chunk = os.read(requests, 1 << 16)
            if not chunk:
                return
            buffer += chunk
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                request = json.loads(line)
                reader, writer = os.pipe()
                pid = os.fork()
                if not pid:
                    os.setsid()
                    for descriptor in (reader, writer, messages, requests):
                        os.close(descriptor)
                    _run_command(request)
                os.close(writer)
                os.read(reader, 1)  # Ends when the child leads its own process group, which may be killed at once.
                os.close(reader)
                os.write(messages, (json.dumps({"mark": request["mark"], "pid": pid}) + "\n").encode())
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            message = {"pid": pid, "code": os.waitstatus_to_exitcode(status)}
            os.write(messages, (json.dumps(message) + "\n").encode())


def _run_command(request: Mapping[str, object]) -> None:
    """Run a command in this process and exit with its code."""
    import atexit
    import tempfile
    import traceback

    code = 1
    try:
        os.chdir(str(request["workdir"]))
        output = os.open(str(request["output_file"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for handle in (1, 2):
            os.dup2(output, handle)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.update(request["environment"])  # type: ignore[call-overload]
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
