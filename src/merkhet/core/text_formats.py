"""Safe parsing of untrusted YAML and JSON, with one-line errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from merkhet.core.errors import FaultList, InputError, first_line
from merkhet.core.strict_json import decode_json

if TYPE_CHECKING:
    import yaml

_MAX_NODES = 1_000_000
"""Maximum nodes of a YAML document; nodes behind an alias count at each use."""
_MAX_YAML_CHARACTERS = 4_000_000
_MAX_DEPTH = 100
"""Maximum nesting depth; deeper content could be read but not printed, compared or written."""
_MAX_DIGITS = 4300
# PyYAML raises these for a value that contradicts its tag (!!int x), and for deep nesting.
_YAML_VALUE_ERRORS = (ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError, RecursionError)
_FOUR_BYTES = re.compile(rb"[\xf0-\xff]")
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NESTING = re.compile(r"^[ ?:-]*", re.MULTILINE)
"""Indentation and markers at the start of a line; the length of a match limits the depth of block nesting."""
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")
"""A lone surrogate as bytes, which the json module accepts."""
_PARSED_BYTES = {"{": 240, "[": 96, ":": 30, ",": 40, '"': 30}
"""Bytes of memory that parsing needs at most for each of these characters, in addition to those of the texts."""
_MAX_REPLY_MEMORY = 160_000_000
"""Bytes of memory for a reply as text and as parsed JSON."""
_REPR_LENGTH = 80
_KEY_LENGTH = 40
_TEXT_TAG, _MERGE_TAG = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_TOO_DEEP = f"it is nested more than {_MAX_DEPTH} deep"


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML; error messages name ``where``, the file or option.

    Raises:
        InputError: The text is not YAML, too long or too deeply nested, its aliases expand to too many values, or a
            mapping has a key twice.
    """
    import yaml

    if len(text) > _MAX_YAML_CHARACTERS:
        raise InputError(
            f"{where} is too long: {len(text):,} characters, at most {_MAX_YAML_CHARACTERS:,}. Shorten it."
        )

    class Loader(yaml.SafeLoader):
        """Loader that stops at deep nesting early, because the cost of each level grows with the depth."""

        def fetch_flow_collection_start(self, token: Any) -> None:
            if self.flow_level > _MAX_DEPTH:
                raise RecursionError
            super().fetch_flow_collection_start(token)

        def add_indent(self, column: int) -> bool:
            if len(self.indents) > _MAX_DEPTH:
                raise RecursionError
            return bool(super().add_indent(column))

    loader = None
    try:
        loader = _c_loader(text) or Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_repeated_keys(_refuse_endless(node, where), loader, where)
        content = loader.construct_document(node)
        _refuse_unwritable(content, where)
        return content
    except yaml.YAMLError as error:
        raise InputError(f"{where} is not valid YAML: {_describe_yaml_error(error)}") from None
    except RecursionError as error:
        raise InputError(f"{where} is not valid YAML: {_TOO_DEEP}") from error
    except _YAML_VALUE_ERRORS as error:
        raise InputError(
            f"{where} is not valid YAML: a value does not fit its type ({first_line(error)}); put quotes around a text"
        ) from error
    finally:
        if loader is not None:
            loader.dispose()


def _describe_yaml_error(error: yaml.YAMLError) -> str:
    """Describe an error with its place, but without the line itself, which may contain a key."""
    parts = []
    for text, mark in (("context", "context_mark"), ("problem", "problem_mark")):
        description, place = getattr(error, text, None), getattr(error, mark, None)
        if description:
            parts.append(f"{description} (line {place.line + 1}, column {place.column + 1})" if place else description)
    return ", ".join(parts) or first_line(error)


def _c_loader(text: str) -> Any:
    """Return libyaml's loader, which is ten times as fast, if the YAML is valid and not deeply nested; else None."""
    import yaml

    brackets = text.count("[") + text.count("{")
    if brackets > _MAX_DEPTH or any(len(prefix) > _MAX_DEPTH for prefix in _NESTING.findall(text)):
        return None
    try:
        yaml.compose(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, *_YAML_VALUE_ERRORS):  # No libyaml, or an error that SafeLoader words better.
        return None
    return yaml.CSafeLoader(text)


def parse_json(text: str | bytes, where: str, remedy: str, *, strict: bool = True) -> Any:
    """Parse JSON; error messages begin with ``where``, the file and row, and end with the sentence ``remedy``.

    Args:
        strict: Whether NaN, infinite numbers and repeated keys are refused. Other programs write them.

    Raises:
        InputError: The text is not JSON or not UTF-8, is too deeply nested, has too long numbers, or contains a lone
            surrogate, which cannot be written to a file.
    """
    try:
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        encoding = json.detect_encoding(data)
        decoded = data.decode(encoding, "surrogatepass")
        if not encoding.startswith("utf-8"):
            data = decoded.encode("utf-8", "surrogatepass")
        content = decode_json(decoded) if strict else json.loads(decoded)
        if _ESCAPED_SURROGATE.search(data) or _ENCODED_SURROGATE.search(data):
            json.dumps(content, ensure_ascii=False).encode()
        if data.count(b"[") + data.count(b"{") > _MAX_DEPTH:
            check_depth(content)
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: the text contains a lone surrogate (half of a character). {remedy}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: the text is not UTF-8; save the file as UTF-8") from error
    except json.JSONDecodeError as error:
        position = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{where}: not valid JSON ({error.msg} at {position}). {remedy}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: the JSON is too large to read ({first_line(error)}). {remedy}") from error
    return content


class LargeReplyError(ValueError):
    """A reply takes too much memory when it is parsed."""


def parse_reply(body: bytes) -> Any:
    """Parse the JSON reply of a server; return None if the reply is not JSON or too deeply nested.

    Models that stop within a character send a lone surrogate, which becomes the replacement character (U+FFFD).

    Raises:
        LargeReplyError: The parsed reply may take more memory than 160 MB, such as one of many empty lists.
    """
    # Twice the text, because the parsed texts are copies.
    if parsed_size(body) + text_size(body) > _MAX_REPLY_MEMORY:
        raise LargeReplyError(
            f"the reply of {len(body):,} bytes may take more than {_MAX_REPLY_MEMORY:,} bytes of memory when parsed"
        )
    try:
        content = json.loads(body.decode("utf-8", errors="replace"))
        if body.count(b"[") + body.count(b"{") > _MAX_DEPTH:
            check_depth(content)
        if _ESCAPED_SURROGATE.search(body):
            content = _replace_surrogates(content)
    except (ValueError, RecursionError):
        return None
    return content


def parsed_size(text: str | bytes, start: int = 0, end: int | None = None) -> int:
    """Return an upper bound for the bytes of memory that JSON takes when it is parsed.

    The bound is larger than the memory of usual content by a factor of two to five.
    """
    length = (len(text) if end is None else end) - start
    if isinstance(text, bytes):
        structure = sum(size * text.count(mark.encode(), start, end) for mark, size in _PARSED_BYTES.items())
        return structure + (4 * length if text.find(b"\\u", start, end) >= 0 else text_size(text))
    structure = sum(size * text.count(mark, start, end) for mark, size in _PARSED_BYTES.items())
    return structure + (1 if text.isascii() and text.find("\\u", start, end) < 0 else 4) * length


def text_size(data: bytes) -> int:
    """Return an upper bound for the bytes of memory of UTF-8 data as text, whose widest character decides."""
    if data.isascii():
        return len(data)
    return (4 if _FOUR_BYTES.search(data) else 2) * len(data)


def short_repr(value: Any, length: int = _REPR_LENGTH) -> str:
    """Return the repr of a value for a message, truncated to ``length`` characters."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        text = f"a {type(value).__name__} that is too large to show"
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _refuse_endless(root: yaml.Node, where: str) -> list[yaml.MappingNode]:
    """Raise InputError for a recursive alias, deep nesting, or aliases that expand to too many nodes.

    Return the mappings of the document, each once.
    """
    import yaml

    mappings: list[yaml.MappingNode] = []
    sizes: dict[int, int] = {}
    depths: dict[int, int] = {}
    open_: set[int] = set()
    pending = [(root, False)]
    while pending:
        node, done = pending.pop()
        key = id(node)
        children = _children(node)
        if done:
            open_.discard(key)
            sizes[key] = 1 + sum(sizes[id(child)] for child in children)
            depths[key] = 1 + max((depths[id(child)] for child in children), default=0)
            if depths[key] > _MAX_DEPTH:
                raise InputError(f"{where} is not valid YAML: {_TOO_DEEP}")
            if sizes[key] > _MAX_NODES:
                raise InputError(
                    f"{where} is not valid YAML: its aliases (*name) expand to more than {_MAX_NODES:,} values. "
                    "Write the values out."
                )
        elif key in open_:
            line = node.start_mark.line + 1
            raise InputError(
                f"{where} is not valid YAML: the alias on line {line} refers to a node that contains it. Remove it."
            )
        elif key not in sizes:
            open_.add(key)
            pending.append((node, True))
            pending += [(child, False) for child in children]
            if isinstance(node, yaml.MappingNode):
                mappings.append(node)
    return mappings


def _refuse_repeated_keys(mappings: list[yaml.MappingNode], loader: Any, where: str) -> None:
    """Raise InputError for keys that occur twice in a mapping, of which YAML libraries keep the last.

    Keys that are merged with ``<<`` may be repeated: the mapping's own keys override them.
    """
    import yaml

    repeats: list[tuple[int, int, str]] = []
    """Line of each repeated key, line of its first occurrence, and its text."""
    for mapping in mappings:
        lines: dict[Any, int] = {}
        for node, _ in mapping.value:
            if not isinstance(node, yaml.ScalarNode):
                continue  # No other node can be a key; the loader refuses it.
            is_text = node.tag in (_TEXT_TAG, _MERGE_TAG)
            key = (node.tag, node.value) if is_text else loader.construct_object(node)
            line = node.start_mark.line + 1
            if key in lines:
                repeats.append((line, lines[key], node.value))
            lines.setdefault(key, line)
    repeats.sort()

    def describe(number: int) -> str:
        line, first, text = repeats[number]
        key = short_repr(text, _KEY_LENGTH)
        return f"{where}, line {line}: the key {key} is already on line {first}. Remove or rename one."

    faults = FaultList()
    faults.add_rows(range(len(repeats)), describe)
    faults.refuse()


def check_depth(content: Any) -> None:
    """Raise ValueError for parsed JSON that is too deeply nested to be printed, compared or written."""
    level = [content]
    for _ in range(_MAX_DEPTH):
        level = [child for value in level for child in _nested_values(value)]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _refuse_unwritable(content: Any, where: str) -> None:
    """Raise InputError for values that cannot be written: very long numbers (0xfff…), lone surrogates ("\\ud800")."""
    pending, seen = [content], set[int]()
    while pending:
        value = pending.pop()
        if isinstance(value, int) and value.bit_length() > _MAX_DIGITS * 3:
            raise InputError(
                f"{where} is not valid YAML: a number has more than about {_MAX_DIGITS} digits; shorten it"
            )
        if isinstance(value, str) and not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InputError(
                f"{where} is not valid YAML: {value[:40]!a} contains a lone surrogate (half of a character); replace it"
            )
        if id(value) not in seen:
            seen.add(id(value))
            pending += [*_nested_values(value), *(value if isinstance(value, dict) else ())]


def _replace_surrogates(value: Any) -> Any:
    """Return a copy of parsed JSON in which U+FFFD replaces lone surrogates."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}
    return value


def _nested_values(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _children(node: yaml.Node) -> list[yaml.Node]:
    import yaml

    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
