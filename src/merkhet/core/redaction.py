"""Removal of keys and passwords from all that leaves the process: messages, logs, replies, caches and records.

Whoever reads a secret registers it (:func:`register_secret`). From then on, no text of this process shows it:

* :class:`merkhet.core.errors.MerkhetError`, the log handlers of a run and the streams of the command line pass their
  texts through :func:`redact_message`;
* :class:`merkhet.core.http_client.HttpClient` passes bodies, headers and reason phrases of responses through
  :func:`redact` before anyone reads or truncates them;
* :func:`merkhet.core.files.write_text` and the reply cache pass what they store through :func:`redact`.

What counts as a part of a secret is described at :class:`merkhet.core._secret_search.SecretIndex`. Servers on one's own
machine are often given a placeholder as a key, such as "test" or "EMPTY". To keep such words in replies and records,
:func:`redact` ignores secrets that are shorter than 8 characters or are ordinary words (fewer than 16 letters without
digits and signs, in lower case, upper case or capitalized). :func:`redact_message` removes them where they stand as
whole words, from 4 characters on.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

from merkhet.core._secret_search import EDGE, SecretIndex, Span, is_word

MARK = "(the key)"
_MIN_LENGTH = 4
"""Minimum length of a secret that messages do not show; shorter texts are no secrets and occur everywhere."""
_MIN_PARAMETER_LENGTH = 8
"""Minimum length of a query parameter that may be a key; shorter values (json, en) occur in any text."""
_STREAM_BLOCK = 1 << 16
_USER_INFO = re.compile(r"(?<=://)[^/?#\s@'\"]+@")
_CREDENTIAL = re.compile(
    r"(?:x|my|the|openai)?(?:auth|authorization|proxyauthorization|bearer|credentials?|key|token|secret|signature|sig|"
    r"jwt|\w*password|\w*passwd|pwd|\w*apikey|\w*(?:access|auth|api|session|bearer|id|secret)token|"
    r"\w*(?:secret|access|auth|private|subscription)key|\w*(?:client|api)secret)"
)


class _Registry:
    """The secrets of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Forget all secrets."""
        self._secrets: dict[str, bool] = {}
        self.index = SecretIndex(())
        self.words: re.Pattern[str] | None = None

    def add(self, values: Iterable[str], everywhere: bool) -> None:
        """Add secrets that are removed everywhere if they are distinctive, or only from messages."""
        levels = {
            text: everywhere and is_distinctive(text) for value in values if len(text := value.strip()) >= _MIN_LENGTH
        }
        with self._lock:
            added = {text: level for text, level in levels.items() if level > self._secrets.get(text, -1)}
            if not added:
                return
            self._secrets = {**self._secrets, **added}
            # Readers in other threads see the old or the new objects.
            self.index = SecretIndex(text for text, level in self._secrets.items() if level)
            self.words = _word_pattern(text for text, level in self._secrets.items() if not level)


def _word_pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    forms = {
        form for text in secrets for form in (text, json.dumps(text)[1:-1], quote(text, safe=""), quote_plus(text))
    }
    # Replace long secrets first: a secret may be contained in another one.
    pattern = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])") if forms else None


_registry = _Registry()


def register_secret(*values: str) -> None:
    """Register secrets, which texts of this process no longer show."""
    _registry.add(values, everywhere=True)


def register_address(address: str) -> None:
    """Register the password and the keys of an address, which may be malformed.

    A query parameter is a key if its name says so (``apikey``). Of others, messages do not show values of at least 8
    characters.
    """
    _, separator, rest = address.partition("://")
    rest = rest if separator else address
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        user_info = authority.rpartition("@")[0]
    elif "@" in rest and re.search(r":(?!\d*$)", authority):
        user_info = rest.rpartition("@")[0]  # A password with a slash.
    else:
        user_info = ""
    user, _, password = user_info.partition(":")
    # Without a password, the user may be a token.
    secret = password or user
    register_secret(secret, unquote(secret))
    for name, value in parse_qsl(rest.partition("?")[2].partition("#")[0]):
        if is_credential_name(name):
            register_secret(value)
        elif len(value) >= _MIN_PARAMETER_LENGTH:
            _registry.add([value], everywhere=False)


def register_headers(headers: Mapping[str, str]) -> None:
    """Register the values of headers that hold keys, and tokens of authorization without their scheme (``Bearer``)."""
    for name, value in headers.items():
        scheme, _, token = value.partition(" ")
        register_secret(*((token,) if name.lower().endswith("authorization") and token else (scheme and value,)))


def forget_secrets() -> None:
    """Forget all secrets; for tests."""
    _registry.clear()


def is_distinctive(secret: str) -> bool:
    """Return whether a secret occurs in no text by chance: it has at least 8 characters and is no ordinary word."""
    return len(secret) >= EDGE and not is_word(secret)


def is_credential_name(name: str) -> bool:
    """Return whether a field, header or parameter of this name holds a key or password."""
    return _CREDENTIAL.fullmatch(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


def redact(text: str) -> str:
    """Return a text without secrets and parts of secrets; secrets that may be ordinary words are kept."""
    spans = _registry.index.find(text)
    return _replace(text, spans) if spans else text


def redact_message(text: str) -> str:
    """Return a message for people without secrets, also short ones, and without user and password in addresses."""
    text = redact(text)
    if _registry.words is not None:
        text = _registry.words.sub(MARK, text)
    return _USER_INFO.sub(f"{MARK}@", text) if "://" in text else text


def redact_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a stream without secrets, also of secrets that are split between blocks.

    If reading a block raises an exception, the bytes before it are yielded first. No block is empty.
    """
    index = _registry.index
    if not index:
        yield from blocks
        return
    pending = b""
    try:
        for block in blocks:
            pending += block
            if len(pending) >= _STREAM_BLOCK + index.reach:
                text = pending.decode("latin-1")
                spans = index.find(text)
                cut = len(text) - index.reach
                for start, end in spans:
                    if start < cut < end:
                        cut = start or end
                yield _replace(text[:cut], [span for span in spans if span[1] <= cut]).encode("latin-1")
                pending = pending[cut:]
    except Exception:
        # An empty block would be taken for the end of the stream.
        if pending:
            yield redact(pending.decode("latin-1")).encode("latin-1")
        raise
    if pending:
        yield redact(pending.decode("latin-1")).encode("latin-1")


def redact_content(content: Any) -> Any:
    """Remove secrets from parsed JSON in place, and return it.

    A secret may be split between texts, such as the tokens of a reply. Texts, and lists of bytes, are joined along each
    list that contains them: ``tokens[0].text``, ``tokens[1].text``.
    """
    index = _registry.index
    if not index:
        return content
    content = _redact_texts(content)
    texts: dict[tuple[Any, ...], list[tuple[Any, Any, str]]] = {}
    _collect_texts(content, (), texts)
    for leaves in texts.values():
        spans = index.find("".join(text for _, _, text in leaves))
        start = 0
        for parent, key, text in leaves if spans else ():
            end = start + len(text)
            inside = [
                (max(first, start) - start, min(last, end) - start)
                for first, last in spans
                if first < end and last > start
            ]
            if inside:
                parent[key] = _replace(text, inside) if isinstance(parent[key], str) else []
            start = end
    return content


def public_cause(error: BaseException) -> BaseException | None:
    """Return an exception to chain as a cause, or None if it or a cause of it shows a secret."""
    cause: BaseException | None = error
    while cause is not None:
        text = f"{cause} {cause.args!r}"
        if redact_message(text) != text:
            return None
        cause = cause.__cause__ or cause.__context__
    return error


def display_address(address: str) -> str:
    """Return an address for messages, without its password and query parameters, which may hold a key."""
    parts = urlsplit(address)
    public_parts = (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")
    return urlunsplit(public_parts) + ("?..." if parts.query else "")


def _replace(text: str, spans: Iterable[Span]) -> str:
    pieces, position = [], 0
    for start, end in spans:
        pieces += [text[position:start], MARK]
        position = end
    return "".join([*pieces, text[position:]])


def _redact_texts(content: Any) -> Any:
    """Redact the texts of parsed JSON in place, because a copy of a large reply would take too much memory."""
    if isinstance(content, str):
        return redact(content)
    if isinstance(content, dict):
        for name, value in list(content.items()):
            shown = redact(name)
            if shown != name:
                del content[name]
            content[shown] = _redact_texts(value)
    elif isinstance(content, list):
        for index, value in enumerate(content):
            content[index] = _redact_texts(value)
    return content


def _collect_texts(
    content: Any, path: tuple[Any, ...], texts: dict[tuple[Any, ...], list[tuple[Any, Any, str]]]
) -> None:
    """Collect the texts within parsed JSON, with parent and key, by their path with one index left open."""
    children = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in children:
        text = _as_text(value)
        if text is None:
            _collect_texts(value, (*path, key), texts)
            continue
        place = (*path, key)
        for position, part in enumerate(place):
            if isinstance(part, int):
                texts.setdefault((*place[:position], None, *place[position + 1 :]), []).append((content, key, text))
        if not isinstance(value, str):
            texts.setdefault(place, []).append((content, key, text))


def _as_text(value: Any) -> str | None:
    """Return a text, or the text of a list of bytes; None for other values."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(type(item) is int and 0 <= item < 256 for item in value):
        return bytes(value).decode("latin-1")
    return None
