"""Search of everything that a command leaves behind for parts of a key, and servers that give the key away."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
from chat_servers import ScriptedServer, completion

KEY = "sk-Zq8/Xv2_not.to.be-seen+7Yw4Kp"
"""A key with characters that JSON, addresses and HTML write in several ways."""
LENGTH = 12
"""Length of the parts of a key that must not be found."""


def key_parts(key: str) -> set[bytes]:
    """Return the parts of a key, of its Base64 and its percent-encoded forms, in lower case."""
    encoded = [base64.b64encode(bytes(offset) + key.encode()).decode()[offset + 1 : -4] for offset in range(3)]
    forms = [key, quote(key, safe=""), "".join(f"%{ord(letter):02x}" for letter in key), *encoded]
    forms.append("".join(f"\\u{ord(letter):04x}" for letter in key))
    # A character in an encoded form takes more room; parts of equal weight are compared.
    lengths = [LENGTH, LENGTH, 3 * LENGTH, *[LENGTH] * 3, 6 * LENGTH]
    return {
        form[start : start + length].lower().encode()
        for form, length in zip(forms, lengths, strict=True)
        for start in range(len(form) - length + 1)
    }


def find_leaks(key: str, texts: dict[str, str], *folders: Path) -> list[str]:
    """Return the files and texts that contain a part of a key, with the part."""
    parts = key_parts(key)
    contents = {name: text.encode() for name, text in texts.items()}
    for folder in folders:
        for file in folder.rglob("*"):
            contents[f"name of {file}"] = str(file.relative_to(folder)).encode()
            if file.is_file():
                contents[str(file)] = b"\n".join(_contents(file))
    return [
        f"{name}: {part.decode()}" for name, content in contents.items() for part in parts if part in content.lower()
    ]


def _contents(file: Path) -> Iterator[bytes]:
    """Yield the bytes of a file as they are, decompressed, and with escapes of JSON decoded."""
    data = file.read_bytes()
    yield data
    if file.suffix == ".gz":
        data = gzip.decompress(data)
        yield data
    if file.suffix == ".parquet":
        yield str(pq.read_table(file).to_pylist()).encode()
    if file.suffix == ".duckdb":
        import duckdb

        with duckdb.connect(str(file), read_only=True) as connection:
            for (table,) in connection.execute("select table_name from duckdb_tables()").fetchall():
                yield str(connection.execute(f'select * from "{table}"').fetchall()).encode()
    if file.suffix in (".json", ".jsonl"):
        for line in data.splitlines() if file.suffix == ".jsonl" else [data]:
            yield json.dumps(json.loads(line), ensure_ascii=False).encode()


class TreacherousServer(ScriptedServer):
    """Answers each request with raw bytes that contain the key of the request."""

    def __init__(self, attack: Callable[[str], bytes], key: str = KEY) -> None:
        super().__init__(lambda body, headers: (500, {}, b""))
        self.attack, self.key = attack, key

    def answer(self, handler: Any, body: dict[str, Any]) -> None:
        handler.wfile.write(self.attack(self.key))
        handler.wfile.flush()
        handler.drop()


def raw_response(body: bytes | str, status: str = "200 OK", **headers: str) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    fields = {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1") + content


def _error(text: str, status: str = "401 Unauthorized", **headers: str) -> bytes:
    return raw_response(json.dumps({"error": {"message": text}}), status, **headers)


def _tokens(key: str) -> bytes:
    pieces = [key[:3], key[3:10], key[10:25], key[25:]]
    entries = [
        {
            "token": piece,
            "bytes": list(piece.encode()),
            "logprob": -1.0,
            "top_logprobs": [{"token": piece, "logprob": -1}],
        }
        for piece in pieces
    ]
    return raw_response(completion("Paris", logprobs={"content": entries}))


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


def _in_message(text: str, **more: Any) -> bytes:
    return raw_response(completion(text, message={"role": "assistant", "content": text, **more}))


GOOD = "Paris"
ATTACKS: dict[str, Callable[[str], bytes]] = {
    "echo in a reply": lambda key: raw_response(completion(f"Your key is {key}!")),
    "echo of a header in a reply": lambda key: raw_response(completion(f"{{'Authorization': 'Bearer {key}'}}")),
    "echo in upper case": lambda key: raw_response(completion(key.upper())),
    "echo over lines": lambda key: raw_response(completion("\n".join(key))),
    "first half of the key": lambda key: raw_response(completion(f"{key[:16]}...")),
    "echo with escapes": lambda key: raw_response(completion("KEY").replace(b"KEY", _escaped(key).encode())),
    "echo with escapes in escapes": lambda key: raw_response(completion(_escaped(key))),
    "echo in an address": lambda key: raw_response(completion(f"http://x/?key={quote(key, safe='')}")),
    "echo in Base64": lambda key: raw_response(completion(base64.b64encode(f"u:{key}".encode()).decode())),
    "echo in other fields": lambda key: raw_response(
        json.dumps({**json.loads(completion(GOOD)), "model": f"m-{key}", "id": key, key: [key], "x": {"y": [key]}})
    ),
    "echo in reasoning": lambda key: _in_message(GOOD, reasoning_content=f"the key is {key}", reasoning=key),
    "echo in thoughts": lambda key: raw_response(completion(f"<think>{key}</think>Paris")),
    "echo in a refusal": lambda key: _in_message(GOOD, refusal=f"No, {key}."),
    "echo in tokens": _tokens,
    "echo in gzip": lambda key: raw_response(gzip.compress(completion(f"It is {key}.")), Content_Encoding="gzip"),
    "error 401": lambda key: _error(f"Incorrect API key provided: {key}."),
    "error 403 as a text": lambda key: raw_response(f"<html><b>Forbidden</b> {key}", "403 Forbidden"),
    "error 404": lambda key: _error(f"no model for {key}", "404 Not Found"),
    "error 429": lambda key: _error(f"slow down, {key}", "429 Slow Down", Retry_After="0"),
    "error 500": lambda key: _error(f"crashed at {key}", "500 Error"),
    "error 503 with a header": lambda key: _error("crashed", "503 Error", X_Key=key, Retry_After=key),
    "a parameter that is not supported": lambda key: _error(f"seed is unknown to {key}", "400 Bad Request"),
    "cut at 300 characters": lambda key: _error("x" * 285 + key),
    "cut at 300 characters, escaped": lambda key: raw_response(
        json.dumps({"error": {"message": "x" * 285 + "KEY"}}).replace("KEY", _escaped(key)), "401 No"
    ),
    "cut at 300 characters, not JSON": lambda key: raw_response("x" * 280 + key, "401 No"),
    "cut at 200 characters": lambda key: raw_response("x" * 185 + key, "500 No"),
    "cut at the limit of an error": lambda key: raw_response("x " * ((1 << 16) - 8) + key, "401 No"),
    "cut by the server": lambda key: _error(f"Incorrect API key provided: {key[:20]}...{key[-8:]}"),
    "an error in UTF-16": lambda key: raw_response(f'{{"error": "{key}"}}'.encode("utf-16-le"), "401 No"),
    "an error of tokens": lambda key: raw_response(
        json.dumps({"error": {"message": [key[start : start + 3] for start in range(0, len(key), 3)]}}), "400 No"
    ),
    "a dropped body": lambda key: raw_response(f'{{"error": "{key}', "401 No", Content_Length="9999"),
    "a dropped reply": lambda key: raw_response(f'{{"choices": "{key}', Content_Length="9999"),
    "no JSON": lambda key: raw_response(f"the key is {key}"),
    "a status line": lambda key: f"{key}\r\n\r\n".encode(),
    "a status line after HTTP": lambda key: f"HTTP/1.1 {key} OK\r\n\r\n".encode(),
    "a status number": lambda key: f"HTTP/1.1 2000 {key}\r\n\r\n".encode(),
    "a cut status line": lambda key: ("x" * 180 + key + "\r\n\r\n").encode(),
    "a reason": lambda key: raw_response("", f"401 {key}"),
    "a compression": lambda key: raw_response("x", Content_Encoding=key),
    "a chunk": lambda key: f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{key}\r\n".encode(),
    "a length": lambda key: f"HTTP/1.1 200 OK\r\nContent-Length: {key}\r\n\r\n{{}}".encode(),
    "a redirect": lambda key: raw_response(f"go to {key}", "307 Moved", Location=f"http://127.0.0.1:1/{key}"),
    "a redirect to a login": lambda key: raw_response("", "307 Moved", Location=f"http://me:{key}@127.0.0.1:1/"),
}
"""Responses that give the key of the request away."""
