"""Servers that chat models are asked through: a real one, a proxy before it that has faults, and a scripted one."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from listening import listening_port

Respond = Callable[[dict[str, Any], dict[str, str]], tuple[int, dict[str, str], bytes]]


def completion(text: str | None, **more: Any) -> bytes:
    """A chat completion as an endpoint sends it."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, **more}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server: Any = self.server
        with server.lock:
            server.requests.append(body)
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
        server.answer(self, body)

    def send(self, status: int, headers: dict[str, str], content: bytes, claimed: int | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(claimed or len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def is_gone(self) -> bool:
        """Whether the client has hung up, for it has waited too long."""
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def wait_until_gone(self) -> None:
        """Say nothing until the client has hung up."""
        with suppress(OSError):
            self.connection.recv(1)

    def drop(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        pass


class ScriptedServer(ThreadingHTTPServer):
    """Answers each request as a function says; for what a real server cannot be made to say."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, respond: Respond) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.respond = respond
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def answer(self, handler: _Handler, body: dict[str, Any]) -> None:
        handler.send(*self.respond(body, self.headers[-1]))

    def handle_error(self, *_: Any) -> None:
        pass  # Clients that hang up are no news.


class FaultyProxy(ScriptedServer):
    """Stands before a real endpoint and spoils what passes: of every nine requests seven, each in another way.

    ``delivered`` counts how often the whole reply to a request was sent on; ``faults`` what went wrong how often. A
    ``silent`` fault is no reply until the client has hung up. Nothing is spoiled or counted but within ``spoiling``.
    """

    KINDS = ("429", "", "500", "dropped", "half", "slow", "silent", "no json", "")

    def __init__(self, endpoint: str) -> None:
        super().__init__(lambda body, headers: (500, {}, b""))
        self.upstream = endpoint.removeprefix("http://").partition("/")[0]
        self.faulty = False
        self.passed = 0
        self.delivered: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.known: dict[str, bytes] = {}

    @contextmanager
    def spoiling(self) -> Iterator[None]:
        """Spoil what passes until the block ends; counts begin anew."""
        self.passed = 0
        self.delivered.clear()
        self.faults.clear()
        self.faulty = True
        try:
            yield
        finally:
            self.faulty = False

    def answer(self, handler: _Handler, body: dict[str, Any]) -> None:
        with self.lock:
            kind, is_counted = "", self.faulty
            if is_counted:
                self.passed += 1
                kind = self.KINDS[self.passed % len(self.KINDS)]
                self.faults[kind] += 1
        if kind == "429":
            handler.send(429, {"Retry-After": "0.2"}, b'{"error": {"message": "too many requests"}}')
        elif kind == "500":
            handler.send(500, {}, b"Internal Server Error")
        elif kind in ("dropped", "silent"):
            if kind == "silent":
                handler.wait_until_gone()
            handler.drop()
        else:
            self._pass(handler, body, kind, is_counted)

    def _pass(self, handler: _Handler, body: dict[str, Any], kind: str, is_counted: bool) -> None:
        text = json.dumps(body, sort_keys=True)
        content = self._asked(text)
        if kind == "slow":
            time.sleep(0.3)
        if kind == "half":
            handler.send(200, {}, content[: len(content) // 2], claimed=len(content))
            handler.drop()
        elif kind == "no json":
            handler.send(200, {}, content[: len(content) // 2])
        elif not handler.is_gone():
            # Counted before it is sent: the client may look as soon as it has the reply.
            with self.lock:
                if is_counted:
                    self.delivered[text] += 1
            handler.send(200, {}, content)

    def _asked(self, text: str) -> bytes:
        """The reply of the real server; it is asked once for each request, since its time is dear in tests."""
        with self.lock:
            if text in self.known:
                return self.known[text]
        connection = http.client.HTTPConnection(self.upstream, timeout=300)
        connection.request("POST", "/v1/chat/completions", text, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        assert response.status == 200, content
        with self.lock:
            self.known[text] = content
        return content


@contextmanager
def running(server: ScriptedServer) -> Iterator[Any]:
    """The server, which ends with the block."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def transformers_server(folder: Path) -> Iterator[str]:
    """``transformers serve`` with a model from a folder, on a free port; gives its endpoint."""
    program = Path(sys.executable).parent / "transformers"
    options = ["--host", "127.0.0.1", "--port", "0", "--device", "cpu", "--dtype", "float32"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [str(program), "serve", str(folder), *options],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{listening_port(process)}/v1"
    finally:
        process.terminate()
        process.wait()
