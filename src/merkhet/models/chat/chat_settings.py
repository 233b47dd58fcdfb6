"""How an endpoint is asked: where it is, how fast, how often again, and what that may cost."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import urlsplit

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.ids import digest
from merkhet.models.protocol import ENDPOINT, LOCAL_CHAT

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_USUAL_KEYS = {"api.openai.com": "OPENAI_API_KEY"}


@dataclass(frozen=True)
class ChatSettings:
    """Settings of a model that is talked to.

    ``key`` is the name of the environment variable that holds the key, never the key itself; it is sent as a bearer
    token, or in the header ``key_header``. ``system`` is said before all else. ``length`` is how many tokens a reply
    may have, where that is to be more than a probe allows (models that think aloud). ``extra`` goes into every request
    as it is. So many requests are in flight (``concurrency``), no more than ``rate`` a minute are begun, one that fails
    for a passing reason is tried ``tries`` times, one without a reply is given up after ``timeout`` seconds.
    ``requests`` and ``tokens`` are what one start of a run may use: it stops there, and goes on when started again.
    """

    endpoint: str = ""
    name: str = ""
    key: str | None = None
    key_header: str = "Authorization"
    system: str | None = None
    temperature: float = 0.0
    seed: int | None = 0
    length: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int = 8
    rate: float | None = None
    tries: int = 6
    timeout: float = 120.0
    requests: int | None = None
    tokens: int | None = None

    @property
    def identity(self) -> str:
        """A hash of all that decides what is replied; how fast it is asked does not."""
        decides = [self.endpoint, self.name, self.system, self.temperature, self.seed, self.length, dict(self.extra)]
        return digest(["merkhet chat", 1, *decides])

    @property
    def url(self) -> str:
        """Where requests are sent."""
        return f"{self.endpoint}/chat/completions"

    @property
    def key_variable(self) -> str | None:
        """The environment variable with the key: the one that is named, or that of a well-known endpoint."""
        return self.key or _USUAL_KEYS.get(urlsplit(self.endpoint).hostname or "")

    def secret(self) -> str | None:
        """The key; refuses if a variable is named that is not set."""
        variable = self.key_variable
        if variable is None:
            return None
        found = os.environ.get(variable, "").strip()
        if not found:
            raise InputError(
                f"the key of {self.endpoint} should be in the environment variable {variable}, which is not set: "
                f"export {variable}=…"
            )
        if not found.isascii() or not found.isprintable():
            raise InputError(f"the environment variable {variable} holds no key: it has letters that no key has")
        return found


def read_settings(model: str, endpoint: str | None, given: Mapping[str, Any] | None) -> ChatSettings:
    """The settings of the model that is called so at an endpoint; refuses what is no setting, and a key in the open."""
    known = {one.name for one in fields(ChatSettings)} - {"endpoint", "name"}
    given = dict(given or {})
    if not model.isprintable():
        raise InputError(f"{model!a} is no name of a model behind an endpoint: it has characters that no name has")
    for name in given:
        if name not in known:
            raise InputError(f"{model}: there is no chat setting {name!r}; {did_you_mean(str(name), known)}")
    if endpoint is None:
        for name in given:
            if name not in LOCAL_CHAT:
                raise InputError(
                    f"{model}: {name!r} is a setting of models behind an endpoint; one that runs here has "
                    f"{' and '.join(LOCAL_CHAT)}"
                )
        return _checked(model, ChatSettings(name=model, **given))
    _refuse_keys(model, given.get("key"))
    return _checked(model, ChatSettings(endpoint=_address(model, endpoint), name=model, **given))


def from_short_form(model: str) -> tuple[str, str]:
    """The name and the endpoint of ``chat:NAME@URL``."""
    name, found, endpoint = model.removeprefix(ENDPOINT).rpartition("@")
    if not found or not name or "://" not in endpoint:
        raise InputError(
            f"{model} names no endpoint; write chat:NAME@URL, as in chat:llama3.2@http://localhost:11434/v1"
        )
    return name, endpoint


def _address(model: str, endpoint: str) -> str:
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
            f"{model}: the endpoint has a user, a password or a query in it; put a key into an environment variable, "
            "and name that (key: VARIABLE)"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{path}"


def is_loopback(endpoint: str) -> bool:
    """Whether an endpoint is on this machine."""
    return (urlsplit(endpoint).hostname or "") in _LOOPBACK


def _refuse_keys(model: str, key: Any) -> None:
    # The value is not repeated: it may be the key.
    if key is not None and not (isinstance(key, str) and _VARIABLE.fullmatch(key) and not key.startswith("sk_")):
        raise InputError(
            f"{model}: 'key' is the name of an environment variable that holds the key, as in key: OPENAI_API_KEY; a "
            "key itself never stands in a study"
        )


_WHOLE = {"concurrency": (1, 1024), "tries": (1, 100), "length": (1, None), "requests": (1, None), "tokens": (1, None)}
_NUMBERS = {"temperature": (0.0, 2.0), "rate": (0.01, None), "timeout": (0.1, 3600.0)}


def _checked(model: str, settings: ChatSettings) -> ChatSettings:
    for table, kind in ((_WHOLE, int), (_NUMBERS, (int, float))):
        for name, (low, high) in table.items():
            value = getattr(settings, name)
            if value is None and name in ("length", "requests", "tokens", "rate"):
                continue
            within = isinstance(value, kind) and not isinstance(value, bool) and value >= low
            if not within or (high is not None and value > high):
                what = "a whole number" if table is _WHOLE else "a number"
                bound = f" to {high}" if high is not None else " or more"
                raise InputError(f"{model}: {name} is {value!r}, and should be {what}, {low}{bound}")
    if settings.seed is not None and not isinstance(settings.seed, int):
        raise InputError(f"{model}: seed is {settings.seed!r}, and should be a whole number, or null for none")
    for name in ("system", "key_header"):
        given = getattr(settings, name)
        if not isinstance(given, str) and (given is not None or name == "key_header"):
            raise InputError(f"{model}: {name} should be text")
    if not isinstance(settings.extra, Mapping):
        raise InputError(f"{model}: extra should hold keys that go into every request")
    if re.search(r"[^A-Za-z0-9-]", settings.key_header):
        raise InputError(f"{model}: key_header is {settings.key_header!r}, which is no name of a header")
    return replace(settings, extra=dict(settings.extra))
