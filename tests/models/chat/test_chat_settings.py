"""Settings of an endpoint: what is read, what is refused, and that a key is never repeated."""

from __future__ import annotations

from typing import Any

import pytest

from merkhet.core.errors import InputError
from merkhet.models.chat._chat_settings import parse_endpoint, read_settings

HERE = "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("given", "endpoint"),
    [
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("https://api.example.org/v1/chat/completions", "https://api.example.org/v1"),
        ("http://[::1]:11434/v1", "http://[::1]:11434/v1"),
    ],
)
def test_an_address_is_brought_to_one_form(given: str, endpoint: str) -> None:
    assert read_settings("m", given, {}).endpoint == endpoint


@pytest.mark.parametrize("given", ["localhost:8000", "ftp://x/v1", "http://", "http://localhost:notaport/v1"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="is not a valid address"):
        read_settings("m", given, {})


@pytest.mark.parametrize("given", ["http://me:secret7@localhost/v1", "http://localhost/v1?api-key=secret7"])
def test_a_secret_in_an_address_is_refused_and_not_repeated(given: str) -> None:
    with pytest.raises(InputError, match="environment variable") as caught:
        read_settings("m", given, {})
    assert "secret7" not in str(caught.value)


@pytest.mark.parametrize("given", ["sk-proj-abc", "Bearer abc", "abc def", 17, "sk_live_1"])
def test_a_key_in_a_study_is_refused_and_not_repeated(given: Any) -> None:
    with pytest.raises(InputError, match="name of an environment variable") as caught:
        read_settings("m", HERE, {"key": given})
    assert str(given) not in str(caught.value)


def test_a_variable_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERKHET_TEST_KEY", raising=False)
    with pytest.raises(InputError, match="must be the name of an environment variable that is set") as caught:
        read_settings("m", HERE, {"key": "MERKHET_TEST_KEY"})
    assert "MERKHET_TEST_KEY" not in str(caught.value)  # It may be a key.
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InputError, match=r"OPENAI_API_KEY with the key of .* is not set: export OPENAI_API_KEY=…"):
        read_settings("m", "https://api.openai.com/v1", {}).read_key()


def test_a_key_goes_only_to_the_endpoint_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert read_settings("m", "https://api.openai.com/v1", {}).read_key() == "k"
    assert read_settings("m", HERE, {}).read_key() is None
    assert read_settings("m", "https://api.openai.com.example.org/v1", {}).read_key() is None


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"concurency": 3}, "did you mean 'concurrency'"),
        ({"concurrency": 0}, "must be an integer from 1 to 1024, got 0"),
        ({"concurrency": True}, "must be an integer"),
        ({"tries": 1.5}, "must be an integer"),
        ({"rate": 0}, "must be a number ≥ 0.01"),
        ({"temperature": 3}, "must be a number from 0 to 2, got 3"),
        ({"requests": 0}, "must be an integer ≥ 1"),
        ({"system": 3}, "must be text"),
        ({"extra": 3}, "chat.extra must be a mapping"),
        ({"max_bytes": "much"}, "chat.max_bytes must be a size such as 64MB or 512KiB, got 'much'"),
        ({"max_bytes": 64}, "chat.max_bytes must be"),
        ({"key_header": "a: b"}, "must be the name of a header"),
        ({"seed": "x"}, "chat.seed must be an integer or null, got 'x'"),
    ],
)
def test_what_is_no_setting_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_settings("m", HERE, settings)


def test_a_model_here_has_few_settings() -> None:
    assert read_settings("m", None, {"system": "Hi"}).system == "Hi"
    with pytest.raises(InputError, match="'rate' is a setting of models behind an endpoint"):
        read_settings("m", None, {"rate": 3})


def test_the_short_form() -> None:
    assert parse_endpoint("chat:llama3.1:8b@http://localhost:11434/v1") == ("llama3.1:8b", "http://localhost:11434/v1")
    assert parse_endpoint("chat:org/model@v2@http://h/v1") == ("org/model@v2", "http://h/v1")
    for given in ("chat:gpt", "chat:gpt@nowhere", "chat:@http://h/v1"):
        with pytest.raises(InputError, match="write chat:NAME@URL"):
            parse_endpoint(given)


def test_what_decides_replies_decides_the_identity() -> None:
    usual = read_settings("m", HERE, {})
    assert read_settings("m", HERE, {"concurrency": 3, "tries": 2, "requests": 9}).identity == usual.identity
    others: list[dict[str, Any]] = [
        {"system": "x"},
        {"seed": 1},
        {"temperature": 1},
        {"length": 9},
        {"extra": {"a": 1}},
    ]
    assert len({read_settings("m", HERE, one).identity for one in others} | {usual.identity}) == 6
