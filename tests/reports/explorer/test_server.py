"""The server answers its own page on this machine, about its own run, and nobody else about nothing else."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import psutil
import pytest
from explored_runs import write_run
from plain_views import PlainRun

VIEWS = ("/", "/explorer.js", "/api/run", "/api/questions", "/api/facets", "/api/question?id=q_0001")
SECRET = "the words of a file outside the run"


def test_it_listens_on_the_loopback_address_alone(served):
    listening = [one.laddr for one in psutil.Process().net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    assert [place.ip for place in listening if place.port == served.port] == ["127.0.0.1"]


def test_it_is_not_reached_by_another_address_of_this_machine(served):
    own = [
        one.address
        for addresses in psutil.net_if_addrs().values()
        for one in addresses
        if one.family == socket.AF_INET and not one.address.startswith("127.")
    ]
    if not own:
        pytest.skip("this machine has no address but the loopback one")
    for address in own:
        with socket.socket() as other:
            other.settimeout(5)
            assert other.connect_ex((address, served.port)) != 0


@pytest.mark.parametrize("target", VIEWS)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "127.0.0.1",
        "localhost",
        "localhost:1",
        "127.0.0.1:{port}@evil.example",
        "127.0.0.1:{port}, evil.example",
        "127.0.0.2:{port}",
        "0.0.0.0:{port}",
        "[::1]:{port}",
        "LOCALHOST.:{port}",
        "127.1:{port}",
        " ",
        None,
    ],
)
def test_a_request_by_another_name_is_refused(served, target, host):
    status, _, body = served.ask(target, host=host if host is None else host.format(port=served.port))
    assert status == 403
    assert "answers only to" in json.loads(body)["error"] and b"question" not in body


def test_its_own_names_are_answered(served):
    for name in ("127.0.0.1", "localhost"):
        assert served.ask("/api/run", host=f"{name}:{served.port}")[0] == 200


def test_two_hosts_are_refused(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as sent:
        own = f"127.0.0.1:{served.port}"
        sent.sendall(f"GET /api/run HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n\r\n".encode())
        assert b" 403 " in sent.recv(4096).split(b"\r\n")[0]


def test_a_whole_address_as_the_target_is_not_followed(served):
    assert served.ask("http://evil.example/api/run")[0] == 404
    assert served.ask("//evil.example/api/run")[0] == 404


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none?"])
def test_a_foreign_page_cannot_ask_for_a_view(served, site):
    assert served.ask("/api/run", Sec_Fetch_Site=site)[0] == 403


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "MERKHET"])
@pytest.mark.parametrize("target", ["/", "/api/play", "/api/run"])
def test_other_methods_are_refused(served, method, target):
    status, headers, _ = served.ask(target, method=method)
    assert status == 405 and headers["Allow"] == "GET, POST"
    assert "Access-Control-Allow-Origin" not in headers


def test_every_answer_forbids_what_it_does_not_need(served):
    for target in (*VIEWS, "/nowhere", "/api/questions?result=x"):
        _, headers, _ = served.ask(target)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY" and "frame-ancestors 'none'" in policy
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers


@pytest.fixture
def beside_a_secret(explorer, tmp_path: Path):
    """A server on a run that has a file beside it, and links to it inside."""
    (tmp_path / "secret.txt").write_text(SECRET)
    folder = write_run(tmp_path / "run")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "linked").symlink_to(tmp_path)
    return explorer(folder), tmp_path


@pytest.mark.parametrize(
    "target",
    [
        "/../secret.txt",
        "/../../../../../../etc/passwd",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/..%252fsecret.txt",
        "/..\\secret.txt",
        "/./../secret.txt",
        "/explorer.js/../../secret.txt",
        "//{folder}/secret.txt",
        "/{folder}/secret.txt",
        "{folder}/secret.txt",
        "file://{folder}/secret.txt",
        "/link.txt",
        "/linked/secret.txt",
        "/run.json",
        "/answers.parquet",
        "/explorer.js%00.txt",
        "/server.py",
        "/__init__.py",
        "/templates/report.css",
        "/explorer/page/explorer.js",
        "/api/../run.json",
        "/api/question/../../secret.txt",
    ],
)
def test_no_path_leads_to_a_file(beside_a_secret, target):
    client, folder = beside_a_secret
    status, _, body = client.ask(target.format(folder=folder))
    assert status == 404, body
    assert SECRET.encode() not in body and b"root:" not in body and b"import" not in body


INJECTIONS = (
    "'",
    '"',
    "''",
    "x' OR '1'='1",
    "'; DROP TABLE texts; --",
    "1; DROP TABLE facts",
    "x') OR read_text('{secret}') IS NOT NULL --",
    "' UNION SELECT content FROM read_text('{secret}') --",
    "read_csv('/etc/passwd')",
    "$1",
    "?",
    "%",
    "_",
    "\\",
    "\x00",
    "[MASK]",
    "{secret}",
    "../secret.txt",
)


@pytest.mark.parametrize("given", INJECTIONS)
def test_nothing_in_a_request_is_taken_for_sql(beside_a_secret, given):
    client, folder = beside_a_secret
    text = given.format(secret=folder / "secret.txt")
    before = client.get("questions", size=100), client.get("question", id="q_0004")
    names = (
        *("id", "search", "task", "domain", "relation", "template", "rule", "split", "language", "model", "probe"),
        *("method", "result", "low", "high", "first", "second", "cell", "sort", "page", "size", "job", "seen", "qset"),
    )
    for view in ("run", "questions", "facets", "question", "compare", "play"):
        for name in names:
            status, _, body = client.ask(f"/api/{view}?{name}={_quoted(text)}")
            assert status in (200, 400), (view, name, body)
            assert SECRET.encode() not in body and b"root:" not in body and b"Error" not in body
    assert (client.get("questions", size=100), client.get("question", id="q_0004")) == before
    found = client.get("questions", search=text)["total"]
    assert found == len(PlainRun(folder / "run").listed({"search": [text]})), "every letter stands for itself"


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def test_the_database_can_read_no_file_and_stays_so(made_up, tmp_path):
    import duckdb

    from merkhet.reports.explorer.run_tables import load_tables

    (tmp_path / "secret.txt").write_text(SECRET)
    tables = load_tables(made_up)
    for sql in (
        f"select * from read_text('{tmp_path / 'secret.txt'}')",
        f"select * from '{made_up / 'answers.parquet'}'",
        f"copy (select 1) to '{tmp_path / 'written.csv'}'",
        f"attach '{tmp_path / 'other.db'}'",
        "install httpfs",
        "set enable_external_access = true",
        "set threads = 1",
    ):
        with pytest.raises(duckdb.Error):
            tables.query(sql)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.txt"]


def test_a_file_that_is_exchanged_for_a_link_is_not_read(explorer, tmp_path):
    folder, other = write_run(tmp_path / "run"), write_run(tmp_path / "other")
    client = explorer(folder)
    (folder / "answers.parquet").unlink()
    (folder / "answers.parquet").symlink_to(other / "answers.parquet")
    said = client.get("question", 500, id="q_0001")["error"]
    assert "answers.parquet of this run changed or was removed" in said and str(tmp_path) not in said


def test_reading_writes_nothing(explorer, tmp_path):
    folder = write_run(tmp_path / "run")
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*")}
    client = explorer(folder)
    for view in ("run", "questions", "facets"):
        client.get(view)
    client.get("question", id="q_0001")
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"GET /api/questions?search=%ff HTTP/1.1\r\nHost: {own}\r\n\r\n",
        b"GET /api/questions?" + b"a=1&" * 300 + b" HTTP/1.1\r\nHost: {own}\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_the_next_is_answered(served, sent):
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as raw:
        raw.sendall(sent.replace(b"{own}", f"127.0.0.1:{served.port}".encode()))
        raw.shutdown(socket.SHUT_WR)
        answer = raw.recv(65536)
    assert not answer or b" 200 " not in answer.split(b"\r\n")[0]
    assert served.get("run")["questions"] == 180


def test_a_run_behind_a_link_is_still_that_run(explorer, tmp_path):
    folder = write_run(tmp_path / "run")
    (tmp_path / "by another name").symlink_to(folder)
    assert explorer(tmp_path / "by another name").get("questions")["total"] == 180
