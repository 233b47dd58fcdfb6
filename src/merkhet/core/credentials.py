"""Reading of credentials from the environment, and refusal of credentials in places that are recorded.

A refused credential is registered as a secret first, so that no message repeats it.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from merkhet.core.errors import InputError
from merkhet.core.redaction import is_credential_name, is_distinctive, redact, register_address, register_secret

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://\S+")
_KEY_SETTING = re.compile(r"(?<![A-Za-z0-9_])key[\"']?\s*[:=]\s*[\"']?([^\s\"',}\]]+)")
"""A key setting within a word of a command: ``chat.key=X``, ``chat={key: X}``."""
_SECRET_VARIABLE = re.compile(r"(?:.*_)?(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PWD)", re.IGNORECASE)
_MIN_VALUE_LENGTH = 12
"""Minimum length of the value of an environment variable that is looked for in settings."""
_KEY_SHAPE = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk|hf|gsk|xai|nvapi|r8)[-_][A-Za-z0-9_-]{16,}|gh[opsu]_[A-Za-z0-9]{20,}"
    r"|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}|xox[abps]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{10,300}\.[A-Za-z0-9_-]+"
    r"|[Bb]earer [A-Za-z0-9._~+/=-]{8,})"
)
"""Keys of well-known services, and authorization headers."""


def read_credential(variable: Any, setting: str, owner: str) -> str:
    """Read a credential from the environment variable that a setting names, and register it as a secret.

    Args:
        variable: The value of the setting, which may be the credential itself by mistake.
        setting: The name of the setting, for messages.
        owner: What the credential is for, for messages.

    Raises:
        InputError: The value names no environment variable, or the variable holds no printable ASCII. The message does
            not repeat the value.
    """
    require_variable(variable, setting)
    credential = os.environ[variable].strip()
    if not credential:
        raise InputError(
            f"the environment variable that {setting} names is empty: export the credential of {owner} in it"
        )
    register_secret(credential)
    if not credential.isascii() or not credential.isprintable():
        raise InputError(
            f"the environment variable that {setting} names holds no valid credential: it has characters other than "
            "printable ASCII"
        )
    return credential


def basic_authorization(user: str, password: str) -> str:
    """Return the value of an authorization header for a user and password."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def require_variable(value: Any, setting: str) -> None:
    """Raise InputError unless a value is the name of an environment variable that is set.

    Any text may be a key, also one in the form of a name. Therefore no message repeats the value.
    """
    if isinstance(value, str) and _VARIABLE.fullmatch(value) and value in os.environ:
        return
    if isinstance(value, str):
        register_secret(value)
    raise InputError(
        f"{setting} must be the name of an environment variable that is set and holds the key, such as MY_API_KEY; "
        "this message does not repeat its value, which may be a key. Export the variable, and never write a key into a "
        "study or a command"
    )


def refuse_user_info(address: str) -> None:
    """Raise InputError if an address, which may be malformed, contains a user or password."""
    register_address(address)
    scheme, separator, rest = address.partition("://")
    authority = re.split(r"[/?#]", rest if separator else scheme, maxsplit=1)[0]
    if "@" not in authority and "@" in unquote(authority):
        register_address(unquote(authority))
    if "@" in unquote(authority):
        raise InputError(
            "an address contains a user or password. Put the login into an environment variable, and name that "
            "variable: with chat.key for a chat model, with the option key of a SPARQL endpoint"
        )


def register_credentials(words: Iterable[str]) -> None:
    """Register the credentials in the words of a command: passwords in addresses, and keys in place of a variable."""
    for word in words:
        for address in _ADDRESS.findall(word):
            register_address(address)
        for value in _KEY_SETTING.findall(word):
            if value not in os.environ:
                register_secret(value)


def refuse_study_credentials(content: Mapping[str, Any], *, with_models: bool = True) -> None:
    """Raise InputError if a study contains a user or password in an address, or a key in its chat settings.

    A run records the study, and the reply cache records the fields of requests.

    Args:
        with_models: Whether the models are asked, so that the variables with their keys must be set.
    """
    for _, text in _texts(content):
        for address in _ADDRESS.findall(text):
            refuse_user_info(address)
    models = content.get("models")
    choices = [model for model in models if isinstance(model, Mapping)] if isinstance(models, list) else []
    for owner in (content, *choices):
        chat = owner.get("chat")
        if isinstance(chat, str):
            register_secret(chat)  # Refused as the wrong type; it may be a key.
        if isinstance(chat, Mapping):
            _refuse_chat_credentials(chat, with_models)


def _refuse_chat_credentials(chat: Mapping[str, Any], with_models: bool) -> None:
    if chat.get("key") is not None and with_models:
        require_variable(chat["key"], "chat.key")
    values = [
        value
        for name, value in os.environ.items()
        if _SECRET_VARIABLE.fullmatch(name) and len(value) >= _MIN_VALUE_LENGTH and is_distinctive(value)
    ]
    for path, text in _texts({name: value for name, value in chat.items() if name != "key"}, "chat"):
        field = path.rpartition(".")[2]
        is_key = any(value in text for value in values) or _KEY_SHAPE.search(text)
        if is_key or (path.startswith("chat.extra.") and is_credential_name(field)):
            register_secret(text)
            raise InputError(
                f"{redact(path)} contains a key or password, which the run would record. Remove it; put the key "
                "into an environment variable, and name that variable with chat.key, its header with chat.key_header"
            )


def _texts(content: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts within nested content, with the names that lead to them; keys of mappings are texts too."""
    if isinstance(content, str):
        yield path, content
    elif isinstance(content, Mapping):
        for name, value in content.items():
            if isinstance(name, str):
                yield path, name
            yield from _texts(value, f"{path}.{name}" if path else str(name))
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _texts(value, path)
