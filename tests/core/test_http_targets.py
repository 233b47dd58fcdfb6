"""The HTTP client's redirects, proxies, credentials and waits, against a real server on loopback."""

from __future__ import annotations

import socket
from email.utils import formatdate

import pytest
from raw_http_server import (
    KEY,
    PATIENT,
    SHORT,
    Received,
    Respond,
    client_of,
    http_bytes,
    post_to,
    sending,
    serving,
    wait_until_gone,
)

from merkhet.core._http_address import Request, parse_target, redirect
from merkhet.core.credentials import basic_authorization
from merkhet.core.http_client import (
    ConnectError,
    HttpClient,
    HttpError,
    ResponseTimeoutError,
)
from merkhet.core.http_response import Response
from merkhet.core.redaction import redact_message, register_secret


def elsewhere(status: int, location: str) -> Respond:
    def respond(request: Received, connection: socket.socket) -> bool:
        moved = http_bytes(b"", f"{status} Moved", Location=location)
        connection.sendall(moved if request.path == "/path" else http_bytes(b"there"))
        return True

    return respond


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_repeats_the_request(status: int) -> None:
    with (
        serving(elsewhere(status, "there?a=b c")) as server,
        client_of(server, max_redirects=10, credentials={"Authorization": f"Bearer {KEY}"}) as client,
    ):
        assert client.post(b"body", "text/x").text == "there"
    first, second = server.requests
    assert second.path == "/there?a=b%20c"
    assert first.headers["authorization"] == second.headers["authorization"] == f"Bearer {KEY}"
    expected = ("GET", b"", None) if status == 303 else ("POST", b"body", "text/x")
    assert (second.method, second.body, second.headers.get("content-type")) == expected


@pytest.mark.parametrize(
    "location", ["ftp://h/x", "file:///etc/passwd", "http://me:pw@h/", "//[", "http://h:port/", "javascript:x", ""]
)
def test_a_redirect_elsewhere_than_to_http_is_not_followed(location: str) -> None:
    with serving(elsewhere(302, location)) as server, client_of(server, max_redirects=10) as client:
        assert client.post(b"", "text/x").status == 302
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("ftp://me:hunter2@h/x?token=abc", "ftp://h/x?..."),
        ("//[", "a malformed address"),
        (f"/{KEY}/a", "/(the key)/a"),
        ("http://h:port/", "http://h:port/"),
        ("https://h/" + "x" * 9999, "https://h/xxx"),
    ],
)
def test_a_redirect_that_is_not_followed_names_its_target_without_secrets(location: str, shown: str) -> None:
    with serving(elsewhere(302, location)) as server, client_of(server, credentials={"api-key": KEY}) as client:
        response = client.post(b"", "text/x")
    assert response.redirect_note.startswith(" (redirected to ") and shown in response.redirect_note
    assert len(response.redirect_note) < 250
    assert not [secret for secret in (*SECRETS, "abc") if secret in response.redirect_note]


def test_whatever_fails_after_a_redirect_names_where_it_led() -> None:
    def respond(request: Received, connection: socket.socket) -> bool:
        location = {"/path": "/silent?token=abc", "/other": gone}.get(request.path)
        if location:
            connection.sendall(http_bytes(b"", "307 Moved", Location=location))
            return True  # A connection that closes unannounced could be reset by the next request.
        wait_until_gone(connection)
        return False

    with socket.create_server(("127.0.0.1", 0)) as listening:
        gone = f"http://127.0.0.1:{listening.getsockname()[1]}/gone"
    with serving(respond) as server:
        silent = server.address.replace("/path", "/silent")
        with client_of(server, SHORT, max_redirects=1) as client, pytest.raises(ResponseTimeoutError) as late:
            client.post(b"", "text/x")
        assert str(late.value) == f"no reply in time (redirected to {silent}?...)"
        with (
            client_of(server.address.replace("path", "other"), max_redirects=1) as client,
            pytest.raises(ConnectError) as refused,
        ):
            client.post(b"", "text/x")
        assert str(refused.value) == f"the connection was refused (redirected to {gone})"
        assert refused.value.detail == f"Connection refused (redirected to {gone})"
    with serving(elsewhere(307, "/there")) as server, client_of(server, max_redirects=1) as client:
        assert client.post(b"", "text/x").redirect_note == f" (redirected to {server.address[:-5]}/there)"
    assert post_to(sending(http_bytes(b"x"))).redirect_note == ""


def test_redirects_are_followed_no_more_often_than_allowed() -> None:
    with serving(sending(http_bytes(b"", "307 Moved", Location="/path"), keep=True)) as server:
        for allowed in (0, 3):
            server.requests.clear()
            with client_of(server, max_redirects=allowed) as client:
                assert client.post(b"", "text/x").status == 307
            assert len(server.requests) == allowed + 1


def test_credentials_stay_with_their_host() -> None:
    with serving(sending(http_bytes(b"there"))) as other, serving(elsewhere(307, other.address)) as server:
        credentials = {"api-key": KEY, "Authorization": basic_authorization("me", "secret")}
        with client_of(server, max_redirects=10, credentials=credentials) as client:
            assert client.post(b"", "text/x").text == "there"
        assert server.requests[0].headers["api-key"] == KEY
        assert server.requests[0].headers["authorization"] == "Basic bWU6c2VjcmV0"
        assert not any({"api-key", "authorization"} & set(request.headers) for request in other.requests)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("https://h/a", "https://h/b", True),
        ("http://h/a", "https://h/b", True),
        ("https://h/a", "http://h/b", False),
        ("https://h/a", "https://h:8443/b", False),
        ("https://h/a", "https://g.h/b", False),
    ],
)
def test_credentials_are_not_sent_in_the_clear_after_https(old: str, new: str, kept: bool) -> None:
    request = Request("POST", parse_target(old), b"", {}, {"Authorization": "x"})
    redirected = redirect(request, Response(307, headers={"location": new}))
    assert redirected is not None
    assert bool(redirected.credentials) == kept


def test_a_proxy_of_the_environment_is_used_but_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serving(sending(http_bytes(b"by proxy"), keep=True)) as proxy,
        serving(sending(http_bytes(b"direct"))) as server,
    ):
        monkeypatch.setenv("http_proxy", proxy.address.replace("//", "//me:secret@").removesuffix("/path"))
        monkeypatch.setenv("no_proxy", "other.invalid")
        with client_of("http://far.invalid/a?b=c", credentials={"api-key": KEY}) as client:
            assert [client.post(b"", "text/x").text for _ in range(2)] == ["by proxy"] * 2
        assert [request.path for request in proxy.requests] == ["http://far.invalid/a?b=c"] * 2
        assert proxy.requests[0].headers["host"] == "far.invalid"
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6c2VjcmV0"
        assert proxy.connections == 1
        with client_of(server) as client:
            assert client.post(b"", "text/x").text == "direct"
        with client_of("http://other.invalid/") as client, pytest.raises(ConnectError):
            client.post(b"", "text/x")
        monkeypatch.setenv("https_proxy", proxy.address)
        proxy.respond = sending(b"HTTP/1.1 403 Forbidden\r\n\r\n")
        with client_of("https://far.invalid/") as client, pytest.raises(ConnectError) as caught:
            client.post(b"", "text/x")
        assert proxy.requests[-1].method == "CONNECT"
        assert "Tunnel connection failed: 403 Forbidden" in caught.value.detail


SECRETS = ["sk-Zq8", "not+to", "hunter2", "c2VjcmV0"]


def test_keys_and_passwords_are_removed_from_responses() -> None:
    echoes = [
        KEY,
        'say "sk-Zq8/not+to be\\"seen" in JSON',
        "sk-Zq8%2Fnot%2Bto%20be%22seen or sk-Zq8%2Fnot%2Bto+be%22seen in an address",
        "hunter2@word and hunter2%40word",
        "Basic bWU6aHVudGVyMkB3b3Jk",
        "token-in-the-address",
    ]
    login = "hunter2@word"
    register_secret(login)
    for status in ("200 OK", f"401 No {KEY}"):
        with serving(sending(http_bytes("\n".join(echoes).encode(), status, Echo=KEY))) as server:
            address = f"{server.address}?token=token-in-the-address&format=json"
            credentials = {"api-key": KEY, "Authorization": basic_authorization("me", login)}
            with client_of(address, credentials=credentials) as client:
                response = client.post(b"", "text/x")
        shown = f"{response.text} {response.reason} {dict(response.headers)} {client!r} {response!r}"
        assert not [secret for secret in (*SECRETS, "bWU6", "token-in") if secret in shown]
        assert response.text.count("(the key)") >= len(echoes)
    assert redact_message("no json in English") == "no json in English"


@pytest.mark.parametrize("address", ["http://me:hunter2@h/", "http://me@h/"])
def test_a_login_in_an_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="must not contain a user or password"):
        HttpClient(address, PATIENT)


def test_errors_of_the_client_have_no_keys() -> None:
    for data in (f"{KEY}\r\n", f"HTTP/1.1 2000 {KEY}\r\n\r\n", f"HTTP/1.1 200 OK\r\nContent-Encoding: {KEY}\r\n\r\n"):
        with pytest.raises(HttpError) as caught:
            post_to(sending(data.encode()), credentials={"api-key": KEY})
        assert "sk-Zq8" not in str(caught.value)


DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "99999999999999999999"}, 1e20),
        ({"retry-after": "Wed, 99 Oct 99999 07:28:00 GMT"}, None),
        ({"retry-after": DATE}, 0.0),
        ({"retry-after": DATE, "date": "Wed, 21 Oct 2015 07:27:18 GMT"}, 42.0),
        ({"retry-after": DATE.replace("GMT", "-0000"), "date": "Wed, 21 Oct 2015 07:27:18 GMT"}, 42.0),
        ({"retry-after": DATE, "date": "Wed, 21 Oct 2015 07:30:00 GMT"}, 0.0),
        ({"retry-after": DATE, "date": "odd"}, 0.0),
        ({"retry-after-ms": "5", "retry-after": "7"}, 0.005),
        ({"retry-after-ms": "nan", "retry-after": "7"}, 7.0),
    ],
)
def test_the_wait_that_a_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert Response(429, headers=headers).retry_after == seconds


def test_when_to_ask_again_is_told_by_the_servers_clock() -> None:
    for off in (-94_608_000, 94_608_000):
        now, later = (formatdate(1_700_000_000 + off + more, usegmt=True) for more in (0, 7))
        assert Response(429, headers={"retry-after": later, "date": now}).retry_after == 7.0, off
