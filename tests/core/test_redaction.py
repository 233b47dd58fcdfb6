"""Secrets never survive in a text, in whichever form and wherever it is cut; ordinary words are left alone."""

from __future__ import annotations

import base64
import html
import json
import logging
import traceback
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from merkhet.core.errors import FaultsError, InputError, MerkhetError
from merkhet.core.files import write_json
from merkhet.core.redaction import (
    display_address,
    forget_secrets,
    public_cause,
    redact,
    redact_blocks,
    redact_content,
    redact_message,
    register_address,
    register_headers,
    register_secret,
)
from merkhet.engine.executor import _LogFormatter

KEY = "sk-Zq8/not+to_be-seen.anywhere4Xw"
RUN = 12


def _unicode(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


FORMS: dict[str, Callable[[str], str]] = {
    "itself": str,
    "in JSON": lambda key: json.dumps(key)[1:-1],
    "in JSON with slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "in Unicode escapes": _unicode,
    "in JSON within JSON": lambda key: json.dumps(json.dumps(key)[1:-1])[1:-1],
    "in Unicode escapes within JSON": lambda key: json.dumps(_unicode(key))[1:-1],
    "repr": lambda key: repr(key)[1:-1],
    "in an address": lambda key: quote(key, safe=""),
    "in an address, lower case": lambda key: "".join(f"%{ord(letter):02x}" for letter in key),
    "in a form": quote_plus,
    "in an address, twice": lambda key: quote(quote(key, safe=""), safe=""),
    "in HTML": html.escape,
    "in numeric entities": lambda key: "".join(f"&#x{ord(letter):X};" for letter in key),
    "upper case": str.upper,
    "lower case": str.lower,
    "over lines": "\n  ".join,
    "in UTF-16 read as UTF-8": "\0".join,
    "in octal escapes": lambda key: "".join(f"\\{ord(letter):03o}" for letter in key),
    "in long Unicode escapes": lambda key: "".join(f"\\U{ord(letter):08x}" for letter in key),
    "in Unicode escapes with braces": lambda key: "".join(f"\\u{{{ord(letter):x}}}" for letter in key),
    "hexadecimal": lambda key: key.encode().hex(),
    "as a bearer token": lambda key: f"Bearer {key}",
    "Base64 of a login": lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    "Base64": lambda key: base64.b64encode(key.encode()).decode(),
    "Base64 for addresses": lambda key: base64.urlsafe_b64encode(f"x:{key}!".encode()).decode(),
    "Base64 over lines": lambda key: base64.encodebytes(f"a long user name: {key}".encode()).decode(),
}


def _survivors(key: str, text: str) -> list[str]:
    """Slow and obvious: the parts of a key of 12 characters that a text still has, as it is or decoded by one step."""
    readings = {text, html.unescape(text), *_decoded(text)}
    encodings = [base64.b64encode(bytes(offset) + key.encode()).decode()[offset + 1 : -4] for offset in range(3)]
    parts = {form[start : start + RUN] for form in (key, *encodings) for start in range(len(form) - RUN + 1)}
    return [part for part in parts for reading in readings if part.lower() in "".join(reading.lower().split())]


def _decoded(text: str) -> Iterator[str]:
    from urllib.parse import unquote

    yield unquote(text)
    yield unquote(unquote(text))
    for _ in range(2):
        text = text.encode("latin-1", "backslashreplace").decode("unicode_escape", "replace").replace("\\/", "/")
        yield text


keys = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=RUN, max_size=80)
tokens = st.text(st.sampled_from("abcXYZ019-_./+="), min_size=RUN, max_size=80)
texts = st.text(st.characters(max_codepoint=0x2FF, exclude_categories=["Cs"]), max_size=20)


@given(tokens | keys, st.sampled_from(sorted(FORMS)), texts, texts, st.integers(0, 400), st.integers(0, 400))
@example(KEY, "in Unicode escapes", "", "", 0, 77)
@example("a%41%42%43%44bcdefgh", "in an address", "", "", 0, 400)
def test_no_part_of_a_key_survives_in_any_form_wherever_the_text_is_cut(key, form, before, after, start, end):
    forget_secrets()
    register_secret(key)
    # An ordinary word, as a placeholder for a key, is not removed from replies.
    show = redact_message if key.isalpha() else redact
    text = (before + FORMS[form](key) + after)[start:end]
    assert not _survivors(key, show(text))


@given(tokens, st.sampled_from(sorted(FORMS)), st.lists(st.integers(1, 40), max_size=30))
def test_a_stream_is_redacted_wherever_its_blocks_end(key, form, sizes):
    forget_secrets()
    register_secret(key)
    filler = b"x" * 2_500
    data = filler + f" {FORMS[form](key)} ".encode() + filler + FORMS[form](key).encode()
    start = len(filler) - 10
    blocks = [data[:start]]
    for size in sizes:
        blocks.append(data[start : start + size])
        start += size
    blocks.append(data[start:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("merkhet.core.redaction._STREAM_BLOCK", 16)
        shown = b"".join(redact_blocks(blocks))
    assert shown == redact(data.decode()).encode()
    if not key.isalpha():
        assert b"(the key)" in shown
        assert not _survivors(key, shown.decode().strip("x"))


def test_a_stream_that_breaks_off_ends_with_its_error_and_has_no_empty_block() -> None:
    register_secret(KEY)

    def broken(*blocks: bytes) -> Iterator[bytes]:
        yield from blocks
        raise TimeoutError

    for sent in ([], [b"a"], [b"a", KEY.encode()]):
        received = []
        with pytest.raises(TimeoutError):
            for block in redact_blocks(broken(*sent)):
                received.append(block)
        assert b"" not in received
        assert b"".join(received) == redact(b"".join(sent).decode()).encode()
    assert list(redact_blocks(iter([]))) == []


def test_every_form_of_a_key_is_removed_whole() -> None:
    register_secret(KEY)
    register_headers({"Authorization": f"Basic {FORMS['Base64 of a login'](KEY)}"})
    left = {form: redact(f"<{write(KEY)}>") for form, write in FORMS.items()}
    whole = {form: text for form, text in left.items() if "Base64" not in form}
    assert whole == dict.fromkeys(whole, "<(the key)>") | {"as a bearer token": "<Bearer (the key)>"}
    assert left["Base64 of a login"] == "<(the key)>"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"key {KEY[:9]}… is wrong", "key (the key)… is wrong"),
        (f"key {KEY[:9]}", "key (the key)"),
        (f"key ****{KEY[-8:]} is wrong", "key ****(the key) is wrong"),
        (f"cut within {KEY[5:20]}", "cut within (the key)"),
        (f"{KEY[:8]}elsewhere", f"{KEY[:8]}elsewhere"),
        ("not to be seen anywhere", "not to be seen anywhere"),
        ("\u200b".join(KEY), "(the key)"),
        (f"{KEY[:7]} is short", f"{KEY[:7]} is short"),
    ],
)
def test_parts_of_a_key_are_removed_where_the_rest_is_cut_off(text: str, shown: str) -> None:
    register_secret(KEY)
    assert redact(text) == shown


@pytest.mark.parametrize(
    "placeholder", ["test", "EMPTY", "dummy", "Placeholder", "ollama", "x", "sk", "none", "1234567"]
)
def test_a_placeholder_for_a_key_changes_no_reply(placeholder: str) -> None:
    register_secret(placeholder)
    reply = f"A {placeholder} is a {placeholder}, and this is the {placeholder}ing of it: {placeholder[:3]}."
    assert redact(reply) == reply
    assert redact_content({"a": [reply, {"b": reply}]}) == {"a": [reply, {"b": reply}]}
    is_shown = len(placeholder) < 4
    assert (placeholder in redact_message(f"bad key {placeholder}!")) == is_shown
    assert redact_message(f"{placeholder}ing") == f"{placeholder}ing"


def test_tokens_of_a_key_are_removed_from_a_parsed_reply() -> None:
    register_secret(KEY)
    parts = [KEY[:3], KEY[3:9], KEY[9:22], KEY[22:]]
    entries = [
        {"token": part, "bytes": list(part.encode()), "top": [{"token": part}, {"token": "a"}]} for part in parts
    ]
    content = {
        "choices": [{"message": {"content": f"It is {KEY}."}, "tokens": parts, "logprobs": {"content": entries}}]
    }
    shown = redact_content(content)
    assert not _survivors(KEY, "".join(shown["choices"][0]["tokens"]))
    entries = shown["choices"][0]["logprobs"]["content"]
    assert not _survivors(KEY, "".join(entry["token"] for entry in entries))
    assert not _survivors(KEY, "".join(entry["top"][0]["token"] for entry in entries))
    assert not _survivors(KEY, bytes(number for entry in entries for number in entry["bytes"]).decode())
    assert shown["choices"][0]["message"]["content"] == "It is (the key)."
    harmless = {"choices": [{"tokens": ["a", "b"], "bytes": [1, 2, 3], "n": 3.5, "none": None}]}
    assert redact_content(harmless) == harmless


def test_errors_logs_and_files_have_no_keys(tmp_path) -> None:
    register_secret(KEY, "hunter2")
    errors = [MerkhetError(f"no {KEY}"), FaultsError([f"row {KEY}"], 3, f"no {KEY}"), InputError("pw hunter2")]
    for error in errors:
        assert KEY not in f"{error}{error!r}{error.args}"
        assert "hunter2" not in f"{error}{error!r}"
    try:
        try:
            raise ValueError(KEY)
        except ValueError as cause:
            assert public_cause(cause) is None
            raise InputError("it failed") from public_cause(cause)
    except InputError as error:
        assert KEY not in "".join(traceback.format_exception(error))
    assert public_cause(causes := OSError("harmless")) is causes
    try:
        raise ValueError(f"within {KEY}")
    except ValueError as error:
        information = (type(error), error, error.__traceback__)
        record = logging.LogRecord("a", 30, "f.py", 1, "said %s", (KEY,), information)
    assert KEY not in _LogFormatter("%(message)s").format(record)
    write_json(tmp_path / "record.json", {"command": f"run {KEY}", "a": 1})
    assert json.loads((tmp_path / "record.json").read_text()) == {"command": "run (the key)", "a": 1}


@pytest.mark.parametrize(
    ("address", "hidden", "kept"),
    [
        ("https://me:hunter2pw@h/path", ["hunter2pw"], ["h/path"]),
        ("https://me:hunter%32pw@h/path", ["hunter2pw", "hunter%32pw"], []),
        ("https://tokentoken17@h/path", ["tokentoken17"], []),
        ("http://me:hunter2/x@h/", ["hunter2/x"], []),
        ("me:hunter2pw@h:80", ["hunter2pw"], []),
        ("https://h/sparql?apikey=0a1b2c3d4e&format=json", ["0a1b2c3d4e"], ["json", "sparql"]),
        ("https://h/sparql?x-api-key=0a1b2c3d4e#top", ["0a1b2c3d4e"], ["top"]),
        ("http://localhost:8000/a@b", [], ["localhost", "8000", "a@b"]),
    ],
)
def test_the_secrets_of_an_address_are_found(address: str, hidden: list[str], kept: list[str]) -> None:
    register_address(address)
    for secret in hidden:
        assert redact_message(f"no {secret}.") == "no (the key).", secret
    for word in kept:
        assert redact_message(f"no {word}.") == f"no {word}.", word
    # A graph named in an address occurs in the rows that the endpoint answers.
    register_address("https://h/sparql?default-graph-uri=http://dbpedia.org")
    assert redact('"http://dbpedia.org"') == '"http://dbpedia.org"'
    assert redact_message("at http://dbpedia.org") == "at (the key)"


def test_an_address_is_shown_without_login_and_query() -> None:
    assert display_address("https://me:pw@h:8/sparql?apikey=1") == "https://h:8/sparql?..."
    assert redact_message("no https://me:pw@h:8/x here") == "no https://(the key)@h:8/x here"


def test_a_key_between_millions_of_escapes_is_found():
    key = "sk-abc123XYZ9876543210qqq"
    register_secret(key)
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in key)
    percent = "".join(f"%{ord(letter):02x}" for letter in key)
    failures = []
    for unit in ("\\\\", "%25", "\\u00e9", "&amp;", "\\n", "%2525"):
        for hidden in (key, escaped, percent):
            for before, after in ((9_000, 0), (0, 9_000), (40_000, 40_000)):
                # "\\" before an escape would escape it.
                text = f"{unit * before} {hidden} {unit * after}"
                shown = redact(text)
                if hidden in shown or not shown.startswith(unit * before) or not shown.endswith(unit * after):
                    failures.append((unit, hidden, before, after))
    assert not failures
