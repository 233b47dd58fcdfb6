"""Where a server that was started on a port of its own choice listens."""

from __future__ import annotations

import subprocess
import time

import psutil

DEADLINE = 300.0
"""Seconds for a server to start, on a machine that has much else to do."""


def listening_port(process: subprocess.Popen) -> int:
    """The port on 127.0.0.1 that a process listens on, once it does; a server is started on port 0 for that.

    A port that is looked up beforehand may be taken by somebody else until the server is there.
    """
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} has ended with {process.returncode}")
        for port in _listening(process.pid):
            return port
        time.sleep(0.02)
    raise RuntimeError(f"{process.args[0]} does not listen after {DEADLINE:.0f} seconds")


def _listening(pid: int) -> list[int]:
    process = psutil.Process(pid)
    connections = getattr(process, "net_connections", process.connections)("tcp4")
    return [one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN and one.laddr.ip == "127.0.0.1"]
