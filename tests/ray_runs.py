"""A real Ray cluster for tests, on the loopback, and runs on it that are set beside runs in one process."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

STORE = 80 * 2**20

# Read by Ray when it is imported, here and in every process of the cluster.
os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


class Listener:
    """Watches a run: remembers what was said, how far each model was at first and is now; may act at each step."""

    def __init__(self, advanced=lambda: None) -> None:
        self.said: list[str] = []
        self.done: dict[str, int] = {}
        self.first: dict[str, int] = {}
        self.advanced = advanced

    def start(self, label: str, total: int, unit: str) -> None:
        self.done.setdefault(label, 0)

    def advance(self, label: str, done: int) -> None:
        self.first.setdefault(label, done)
        self.done[label] += done
        self.advanced()

    def finish(self, label: str) -> None: ...

    def say(self, line: str) -> None:
        self.said.append(line)


@contextmanager
def ray_cluster(cores: int = 2) -> Iterator[str]:
    """The address of a cluster of one machine, which ends with the block; its workers come from this environment."""
    port, client_port = _free_ports(2)
    # Sockets have short names, and pytest's folders have long ones.
    place = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    command = [
        *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats"),
        *("--node-ip-address", "127.0.0.1", "--port", str(port), "--ray-client-server-port", str(client_port)),
        *("--num-cpus", str(cores), "--object-store-memory", str(STORE), "--include-dashboard", "false"),
        *("--temp-dir", str(place)),
    ]
    with open(place / "log", "w+") as log:
        head = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(head, place / "log")
            yield f"127.0.0.1:{port}"
        finally:
            head.terminate()
            head.wait(60)
            shutil.rmtree(place, ignore_errors=True)


def _wait(head: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 120
    while "Ray runtime started" not in log.read_text():
        assert head.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    """Return ports that are free and differ: all are taken before any is given back."""
    with ExitStack() as taken:
        sockets = [taken.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def same_answers(one: Path, other: Path) -> bool:
    """Whether two runs have the same answers bit for bit, but for how long each took."""
    tables = [pq.read_table(folder / "answers.parquet").drop_columns(["seconds"]) for folder in (one, other)]
    return tables[0].num_rows > 0 and tables[0].equals(tables[1])


def same_bytes(one: Path, other: Path, *names: str) -> bool:
    """Whether two runs have the same files of these names."""
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)
