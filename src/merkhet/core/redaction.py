"""Removal of keys and passwords from messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

_MIN_PARAMETER_LENGTH = 8
"""The length from which a parameter of an address may be a key. Shorter ones (json, en) occur in any text."""


def display_address(address: str) -> str:
    """Return an address for messages: without password and without parameters, which may hold a key."""
    parts = urlsplit(address)
    public_parts = (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")
    return urlunsplit(public_parts) + ("?..." if parts.query else "")


class Redactor:
    """Replaces secrets in a text, also where they are escaped as in JSON or in an address.

    Redact before a text is truncated: the rest of a secret is not recognized.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {
            form
            for secret in secrets
            for form in (secret, json.dumps(secret)[1:-1], quote(secret, safe=""), quote_plus(secret))
            if form
        }
        # A secret may be a part of another one.
        self._forms = sorted(forms, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text without the secrets."""
        for form in self._forms:
            text = text.replace(form, "(the key)")
        return text


def address_secrets(address: str) -> tuple[str, ...]:
    """Return the secrets of an address: its password, and its parameters unless they are short."""
    parts = urlsplit(address)
    parameters = [value for _, value in parse_qsl(parts.query) if len(value) >= _MIN_PARAMETER_LENGTH]
    password = parts.password or ""
    return (password, unquote(password), *parameters)


def header_secrets(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets of headers: their values, and those of ``Authorization`` without the scheme (``Bearer``)."""
    tokens = [value.partition(" ")[2] for name, value in headers.items() if name.lower() == "authorization"]
    return (*headers.values(), *tokens)
