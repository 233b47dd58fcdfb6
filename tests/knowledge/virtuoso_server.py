"""A real Virtuoso server on a free port, with Debian's default cap of 10,000 rows per answer."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

GRAPH = "http://example.org/graph"
CAP = 10_000
_DEADLINE = 300.0
_ATTEMPTS = 5
_SETTINGS = """
[Database]
DatabaseFile = virtuoso.db
ErrorLogFile = virtuoso.log
LockFile = virtuoso.lck
TransactionFile = virtuoso.trx
xa_persistent_file = virtuoso.pxa
FileExtend = 200
TempStorage = TempDatabase
[TempDatabase]
DatabaseFile = virtuoso-temp.db
TransactionFile = virtuoso-temp.trx
[Parameters]
ServerPort = 127.0.0.1:{sql_port}
DisableUnixSocket = 1
DirsAllowed = .
NumberOfBuffers = 10000
MaxDirtyBuffers = 6000
MaxQueryMem = 500M
CaseMode = 2
[HTTPServer]
ServerPort = 127.0.0.1:{http_port}
ServerRoot = .
ServerThreads = 10
[SPARQL]
ResultSetMaxRows = {cap}
DefaultGraph = {graph}
"""


class Virtuoso:
    """A running server; ``address`` is that of its endpoint."""

    def __init__(self, folder: Path, sql_port: int, http_port: int) -> None:
        self.address = f"http://127.0.0.1:{http_port}/sparql"
        self._folder, self._sql_port = folder, sql_port

    def load(self, turtle: str) -> None:
        """Replace all data by the triples of a Turtle text."""
        file = self._folder / "data.ttl"
        file.write_text(turtle, encoding="utf-8")
        commands = (
            f"log_enable(3); SPARQL CLEAR GRAPH <{GRAPH}>; "
            f"DB.DBA.TTLP(file_to_string_output('data.ttl'), '', '{GRAPH}', 0); checkpoint;"
        )
        done = subprocess.run(
            [_tool("isql-vt"), f"127.0.0.1:{self._sql_port}", "dba", "dba", f"exec={commands}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "*** Error" not in done.stdout + done.stderr, done.stdout + done.stderr


@contextmanager
def serving_virtuoso(folder: Path, cap: int = CAP) -> Iterator[Virtuoso]:
    """Start a server that answers with at most ``cap`` rows; its files lie in ``folder``."""
    server = _tool("virtuoso-t")
    for attempt in range(_ATTEMPTS):
        files = folder / f"virtuoso{attempt}"
        files.mkdir()
        # Virtuoso cannot choose a port itself; another process may take a free one before it does.
        sql_port, http_port = _free_port(), _free_port()
        text = _SETTINGS.format(sql_port=sql_port, http_port=http_port, cap=cap, graph=GRAPH)
        (files / "virtuoso.ini").write_text(text)
        with open(files / "output.txt", "wb") as output:
            process = subprocess.Popen(
                [server, "+foreground", "+configfile", "virtuoso.ini"], cwd=files, stdout=output, stderr=output
            )
        virtuoso = Virtuoso(files, sql_port, http_port)
        try:
            if _answers(process, virtuoso.address):
                yield virtuoso
                return
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(files, ignore_errors=True)
    raise RuntimeError(f"virtuoso-t did not start in {_ATTEMPTS} attempts")


def _tool(name: str) -> str:
    found = shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not here: apt-get install virtuoso-opensource-7-bin")
    return found


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _answers(process: subprocess.Popen[bytes], address: str) -> bool:
    until = time.monotonic() + _DEADLINE
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(f"{address}?query=ASK%7B%7D", timeout=10).close()
            return True
        except OSError:
            time.sleep(0.1)
    return False
