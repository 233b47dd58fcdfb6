"""Settings of chat models: address, key, rate, retries and budget."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import urlsplit

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.ids import digest
from merkhet.models.protocol import ENDPOINT_PREFIX, LOCAL_CHAT_SETTINGS

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULT_KEYS = {"api.openai.com": "OPENAI_API_KEY"}


@dataclass(frozen=True)
class ChatSettings:
    """Settings of a chat model."""

    endpoint: str = ""
    name: str = ""
    """The model's name at the endpoint."""
    key: str | None = None
    """The environment variable that holds the key; never the key itself."""
    key_header: str = "Authorization"
    """The header of the key; in ``Authorization`` it is sent as a bearer token."""
    system: str | None = None
    """The system message."""
    temperature: float = 0.0
    seed: int | None = 0
    length: int | None = None
    """The maximum number of tokens of a reply, where it must exceed the probe's own (reasoning models)."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of every request."""
    concurrency: int = 8
    """How many requests are in flight."""
    rate: float | None = None
    """The maximum number of requests per minute."""
    tries: int = 6
    """How often a request is tried that fails for a transient reason."""
    timeout: float = 120.0
    """The deadline of a reply in seconds."""
    requests: int | None = None
    """The maximum number of requests of one start of a run; the next start continues."""
    tokens: int | None = None
    """The maximum number of tokens of one start of a run; the next start continues."""

    @property
    def identity(self) -> str:
        """A hash of the settings that decide replies; rate, retries and budget do not."""
        deciding = [self.endpoint, self.name, self.system, self.temperature, self.seed, self.length, dict(self.extra)]
        return digest(["merkhet chat", 1, *deciding])

    @property
    def url(self) -> str:
        """The address that requests are sent to."""
        return f"{self.endpoint}/chat/completions"

    @property
    def key_variable(self) -> str | None:
        """The environment variable with the key: the one in the settings, or that of a well-known endpoint."""
        return self.key or _DEFAULT_KEYS.get(urlsplit(self.endpoint).hostname or "")

    def read_key(self) -> str | None:
        """Read the key from its environment variable; raises InputError if the variable is not set."""
        variable = self.key_variable
        if variable is None:
            return None
        key = os.environ.get(variable, "").strip()
        if not key:
            raise InputError(
                f"the environment variable {variable} with the key of {self.endpoint} is not set: export {variable}=…"
            )
        if not key.isascii() or not key.isprintable():
            raise InputError(f"the environment variable {variable} holds no key: it has characters that no key has")
        return key


def read_settings(model: str, endpoint: str | None, options: Mapping[str, Any] | None) -> ChatSettings:
    """Validate the chat settings of a model.

    Args:
        model: The model's name.
        endpoint: The address of its endpoint; None for a model on this machine.
        options: The settings by name.

    Raises:
        InputError: A setting is unknown or invalid, or a key is written out.
    """
    known = {setting.name for setting in fields(ChatSettings)} - {"endpoint", "name"}
    options = dict(options or {})
    if not model.isprintable():
        raise InputError(f"{model!a} is not a name of a model behind an endpoint: it has characters that no name has")
    for name in options:
        if name not in known:
            raise InputError(f"{model}: there is no chat setting {name!r}; {did_you_mean(str(name), known)}")
    if endpoint is None:
        for name in options:
            if name not in LOCAL_CHAT_SETTINGS:
                raise InputError(
                    f"{model}: {name!r} is a setting of models behind an endpoint; a model on this machine has "
                    f"{' and '.join(LOCAL_CHAT_SETTINGS)}"
                )
        return _validate(model, ChatSettings(name=model, **options))
    _check_key_name(model, options.get("key"))
    return _validate(model, ChatSettings(endpoint=_normalize_address(model, endpoint), name=model, **options))


def parse_endpoint(model: str) -> tuple[str, str]:
    """Split ``chat:NAME@URL`` into the name and the endpoint."""
    name, separator, endpoint = model.removeprefix(ENDPOINT_PREFIX).rpartition("@")
    if not separator or not name or "://" not in endpoint:
        raise InputError(
            f"{model} names no endpoint; write chat:NAME@URL, as in chat:llama3.2@http://localhost:11434/v1"
        )
    return name, endpoint


def _normalize_address(model: str, endpoint: str) -> str:
    if not endpoint.strip().isprintable():
        raise InputError(f"{model}: the endpoint {endpoint!a} is no address: it has characters that no address has")
    try:
        parts = urlsplit(endpoint.strip())
        port = parts.port
    except ValueError as error:
        raise InputError(f"{model}: the endpoint {endpoint!r} is no address ({error})") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"{model}: the endpoint {endpoint!r} is no address; write it as http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(
            f"{model}: the endpoint contains a user, a password or a query; put a key into an environment variable, "
            "and name that variable (key: VARIABLE)"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{path}"


def _check_key_name(model: str, key: Any) -> None:
    # The message does not repeat the value: it may be the key.
    if key is not None and not (isinstance(key, str) and _VARIABLE.fullmatch(key) and not key.startswith("sk_")):
        raise InputError(
            f"{model}: 'key' must be the name of an environment variable that holds the key, as in "
            "key: OPENAI_API_KEY; never write a key into a study"
        )


_INTEGERS = {
    "concurrency": (1, 1024),
    "tries": (1, 100),
    "length": (1, None),
    "requests": (1, None),
    "tokens": (1, None),
}
_NUMBERS = {"temperature": (0.0, 2.0), "rate": (0.01, None), "timeout": (0.1, 3600.0)}


def _validate(model: str, settings: ChatSettings) -> ChatSettings:
    for table, kind in ((_INTEGERS, int), (_NUMBERS, (int, float))):
        for name, (low, high) in table.items():
            value = getattr(settings, name)
            if value is None and name in ("length", "requests", "tokens", "rate"):
                continue
            valid = isinstance(value, kind) and not isinstance(value, bool) and value >= low
            if not valid or (high is not None and value > high):
                noun = "an integer" if table is _INTEGERS else "a number"
                bounds = f"from {low} to {high}" if high is not None else f"≥ {low}"
                raise InputError(f"{model}: {name} must be {noun} {bounds}, got {value!r}")
    if settings.seed is not None and not isinstance(settings.seed, int):
        raise InputError(f"{model}: seed must be an integer, or null for none, got {settings.seed!r}")
    for name in ("system", "key_header"):
        text = getattr(settings, name)
        if not isinstance(text, str) and (text is not None or name == "key_header"):
            raise InputError(f"{model}: {name} must be text")
    if not isinstance(settings.extra, Mapping):
        raise InputError(f"{model}: extra must be a mapping of fields for every request")
    if re.search(r"[^A-Za-z0-9-]", settings.key_header):
        raise InputError(f"{model}: key_header must be the name of a header, got {settings.key_header!r}")
    return replace(settings, extra=dict(settings.extra))
