"""Removal of keys and passwords from messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

_MIN_PARAMETER_LENGTH = 8
"""Minimum length of a query parameter that may be a key; shorter values (json, en) occur in any text."""


def display_address(address: str) -> str:
    """Return an address for messages, without its password and query parameters, which may hold a key."""
    parts = urlsplit(address)
    public_parts = (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")
    return urlunsplit(public_parts) + ("?..." if parts.query else "")


class Redactor:
    """A function that replaces secrets in a text, including secrets escaped for JSON or for an address.

    Redact a text before truncating it, because part of a secret is not recognized.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {
            form
            for secret in secrets
            for form in (secret, json.dumps(secret)[1:-1], quote(secret, safe=""), quote_plus(secret))
            if form
        }
        # Replace long secrets first: a secret may be contained in another one.
        self._forms = sorted(forms, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text with each secret replaced by "(the key)"."""
        for form in self._forms:
            text = text.replace(form, "(the key)")
        return text


def address_secrets(address: str) -> tuple[str, ...]:
    """Return the secrets of an address: its password and its query parameters of at least 8 characters."""
    parts = urlsplit(address)
    parameters = [value for _, value in parse_qsl(parts.query) if len(value) >= _MIN_PARAMETER_LENGTH]
    password = parts.password or ""
    return (password, unquote(password), *parameters)


def header_secrets(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets of headers: all values, and the token of ``Authorization`` without its scheme (``Bearer``)."""
    tokens = [value.partition(" ")[2] for name, value in headers.items() if name.lower() == "authorization"]
    return (*headers.values(), *tokens)
