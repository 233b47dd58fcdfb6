"""A server on a run, in this process, and a client that asks it by HTTP."""

from __future__ import annotations

import http.client
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

sys.path.insert(0, str(Path(__file__).parent))


class Client:
    """Asks as the page does, unless told otherwise."""

    def __init__(self, server: Any) -> None:
        self.server, self.port, self.url = server, server.port, server.url

    def ask(
        self, target: str, *, method: str = "GET", host: str | None = "", body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """A request as it is given: the target is sent without any change; host None leaves it out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            if host is not None:
                connection.putheader("Host", host or f"127.0.0.1:{self.port}")
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            if body is not None and "Content_Length" not in headers and "Transfer_Encoding" not in headers:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def get(self, view: str, status: int = 200, **params: Any) -> Any:
        found, headers, body = self.ask(f"/api/{view}?{urlencode(params, doseq=True)}")
        assert found == status, body
        assert headers["Content-Type"] == "application/json; charset=utf-8"
        return json.loads(body)

    def post(self, content: Any, status: int = 200, **headers: str) -> Any:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        sent = {
            "Origin": f"http://127.0.0.1:{self.port}",
            "X_Merkhet_Token": self.server.token,
            "Content_Type": "application/json",
            **headers,
        }
        found, _, said = self.ask(
            "/api/play", method="POST", body=body, **{name: value for name, value in sent.items() if value}
        )
        assert found == status, said
        return json.loads(said)


@contextmanager
def serve(folder: Path, playables: Any = ()) -> Iterator[Client]:
    from merkhet.reports.explorer.explorer_server import open_server
    from merkhet.reports.explorer.explorer_views import Views
    from merkhet.reports.explorer.playground import Player
    from merkhet.reports.explorer.run_tables import load_tables

    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    views = Views(load_tables(folder), folder, record["card"]["title"], record)
    server = open_server(views, Player(list(playables)), 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield Client(server)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def explorer() -> Iterator[Any]:
    """Serves the run in a folder until the test ends; returns a client."""
    with ExitStack() as stack:
        yield lambda folder, playables=(): stack.enter_context(serve(folder, playables))


@pytest.fixture(scope="session")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with answers of every sort."""
    from explored_runs import write_run

    return write_run(tmp_path_factory.mktemp("explored") / "made up")


@pytest.fixture(scope="session")
def served(made_up: Path) -> Iterator[Client]:
    """A server on that run, for all tests that only read."""
    with serve(made_up) as client:
        yield client
