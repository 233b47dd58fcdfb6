"""Settings of chat models, such as the endpoint's address, the API key, retries and the budget."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlsplit

from merkhet.core.byte_sizes import parse_size
from merkhet.core.credentials import read_credential, refuse_user_info, require_variable
from merkhet.core.errors import InputError
from merkhet.core.ids import digest
from merkhet.core.redaction import redact
from merkhet.core.settings import Bounds, PositiveInt, Settings, check_name, setting_types
from merkhet.models.protocol import ENDPOINT_PREFIX, LOCAL_CHAT_SETTINGS

_DEFAULT_KEYS = {"api.openai.com": "OPENAI_API_KEY"}
_ADDRESS_EXAMPLE = "write it as http://localhost:8000/v1"


@dataclass(frozen=True)
class ChatSettings(Settings):
    """Settings of one chat model; without an endpoint, the model is on this machine."""

    place = "chat."

    endpoint: str = ""
    name: str = ""
    """The model's name at the endpoint."""
    key: str | None = None
    """The name of the environment variable that holds the API key, never the key itself."""
    key_header: str = "Authorization"
    """The HTTP header that carries the key; ``Authorization`` carries it as a bearer token."""
    system: str | None = None
    """The system message; None for no system message."""
    temperature: Annotated[float, Bounds(ge=0, le=2)] = 0.0
    seed: int | None = 0
    length: PositiveInt | None = None
    """The maximum number of tokens of a reply, if larger than the probe's maximum (for reasoning models)."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Additional JSON fields of every request."""
    concurrency: Annotated[int, Bounds(ge=1, le=1024)] = 8
    """The maximum number of concurrent requests."""
    rate: Annotated[float, Bounds(ge=0.01)] | None = None
    """The maximum number of requests per minute; None for no limit."""
    tries: Annotated[int, Bounds(ge=1, le=100)] = 6
    """The maximum number of attempts for a request that fails for transient reasons."""
    timeout: Annotated[float, Bounds(ge=0.1, le=3600)] = 120.0
    """The maximum number of seconds until a reply is complete."""
    max_bytes: str = "64MB"
    """The maximum size of a reply."""
    requests: PositiveInt | None = None
    """The maximum number of requests each time a run is started; the next start continues the run."""
    tokens: PositiveInt | None = None
    """The maximum number of tokens each time a run is started; the next start continues the run."""

    def __post_init__(self) -> None:
        """Raise InputError for an invalid value."""
        super().__post_init__()
        parse_size(f"{self.place}max_bytes", self.max_bytes)

    @property
    def identity(self) -> str:
        """A hash of the settings that influence replies, which excludes rate, retries and budget."""
        deciding = [self.endpoint, self.name, self.system, self.temperature, self.seed, self.length, dict(self.extra)]
        return digest(["merkhet chat", 1, *deciding])

    @property
    def url(self) -> str:
        """The URL that requests are sent to."""
        return f"{self.endpoint}/chat/completions"

    @property
    def key_variable(self) -> str | None:
        """The environment variable with the API key: ``key``, or the usual variable of a well-known endpoint."""
        return self.key or _DEFAULT_KEYS.get(urlsplit(self.endpoint).hostname or "")

    @property
    def has_usual_key(self) -> bool:
        """Whether the key is the usual one of a well-known endpoint, unnamed by the settings and sent encrypted."""
        parts = urlsplit(self.endpoint)
        return self.key is None and parts.scheme == "https" and parts.port in (None, 443)

    def read_key(self) -> str | None:
        """Read the API key from its environment variable, and register it as a secret; None if no key is needed.

        Raises:
            InputError: The variable is not set, its value is not printable ASCII, or another setting contains the key.
        """
        variable = self.key_variable
        if variable is None:
            return None
        if self.key is None and not os.environ.get(variable):
            raise InputError(
                f"the environment variable {variable} with the key of {self.endpoint} is not set: export {variable}=…"
            )
        key = read_credential(variable, "chat.key", self.endpoint)
        # These are recorded, and sent as parts of every request.
        for setting in ("endpoint", "name", "key_header", "system", "extra"):
            text = json.dumps(value) if isinstance(value := getattr(self, setting), Mapping) else str(value)
            if redact(text) != text:
                raise InputError(
                    f"chat.{setting} contains the key, which only the environment may hold; remove it there"
                )
        return key


def read_settings(model: str, endpoint: str | None, options: Mapping[str, Any] | None) -> ChatSettings:
    """Validate the chat settings of a model.

    Args:
        model: The model's name.
        endpoint: The URL of the model's endpoint; None for a model on this machine.
        options: The settings by name.

    Raises:
        InputError: A setting is unknown or invalid, or ``key`` is not the name of an environment variable.
    """
    if not model.isprintable():
        raise InputError(f"the model name {model!a} contains characters that are not printable; remove them")
    try:
        return _make_settings(model, endpoint, dict(options or {}))
    except InputError as error:
        raise InputError(f"{model}: {error}") from error


def _make_settings(model: str, endpoint: str | None, options: dict[str, Any]) -> ChatSettings:
    known = setting_types(ChatSettings).keys() - {"endpoint", "name"}
    for name in options:
        check_name(ChatSettings.place, name, known)
        if endpoint is None and name not in LOCAL_CHAT_SETTINGS:
            raise InputError(
                f"{name!r} is a setting of models behind an endpoint; a model on this machine has "
                f"{' and '.join(LOCAL_CHAT_SETTINGS)}"
            )
    if endpoint is None:
        return ChatSettings(name=model, **options)
    if options.get("key") is not None:
        require_variable(options["key"], "chat.key")
    settings = ChatSettings(endpoint=_normalize_address(endpoint), name=model, **options)
    if re.search(r"[^A-Za-z0-9-]", settings.key_header):
        raise InputError("chat.key_header must be the name of a header, such as api-key")
    return settings


def parse_endpoint(model: str) -> tuple[str, str]:
    """Split ``chat:NAME@URL`` into the model's name and the endpoint's URL."""
    # The last address counts: it may contain a password, and the name may contain an @.
    match = re.fullmatch(r"(.+)@([^@/:]*://.*)", model.removeprefix(ENDPOINT_PREFIX), re.DOTALL)
    if match is None:
        name = re.split("[@:/]", model.removeprefix(ENDPOINT_PREFIX), maxsplit=1)[0]
        raise InputError(
            f"{ENDPOINT_PREFIX}{name}… names no endpoint; write chat:NAME@URL, as in "
            "chat:llama3.2@http://localhost:11434/v1"
        )
    return match[1], match[2]


def _normalize_address(endpoint: str) -> str:
    endpoint = endpoint.strip()
    refuse_user_info(endpoint)
    # What follows the host may be a key.
    shown = re.split("[?#@]", endpoint, maxsplit=1)[0]
    if not endpoint.isprintable():
        raise InputError(f"the endpoint {shown!a} is not a valid address: it has characters that are not printable")
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError:
        # The error may repeat a password.
        raise InputError(f"the endpoint is not a valid address; {_ADDRESS_EXAMPLE}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"the endpoint {shown!r} is not a valid address; {_ADDRESS_EXAMPLE}")
    if parts.query or parts.fragment:
        raise InputError(
            "the endpoint contains a query; put a key into an environment variable, and name that variable "
            "(key: VARIABLE)"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{path}"
