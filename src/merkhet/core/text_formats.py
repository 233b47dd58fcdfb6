"""YAML and JSON that somebody wrote: taken, or refused in one line, whatever stands in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from merkhet.core.errors import InputError, first_line

if TYPE_CHECKING:
    import yaml

_MOST_PARTS = 1_000_000
"""Parts of a YAML document, those that aliases repeat counted each time."""
_LONGEST_YAML = 4_000_000
_DEEPEST = 100
"""Lists within lists, and what holds them: more could be read but not shown, compared or written."""
_LONGEST_NUMBER = 4300
# PyYAML raises these itself for a value that is not what its tag says (!!int x), and for deep nesting.
_FAULTS = (ValueError, KeyError, IndexError, AttributeError, TypeError, OverflowError, RecursionError)
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NESTING = re.compile(r"^[ ?:-]*", re.MULTILINE)
"""Where block collections begin: none is nested deeper than this is long."""
_HALF = re.compile(rb"\xed[\xa0-\xbf]")
"""Half of a character as bytes, which json takes."""
_SHOWN = 80
_TOO_DEEP = f"it is nested more than {_DEEPEST} deep"


def parse_yaml(text: str, where: str) -> Any:
    """The content of a YAML text; ``where`` is named in what refuses it.

    Refuses what is no YAML or more of it than is read in seconds, what is nested too deeply to be read, and aliases
    that multiply: a few lines of these stand for more than any memory holds.
    """
    import yaml

    if len(text) > _LONGEST_YAML:
        raise InputError(f"{where} is too long: {len(text):,} characters, and YAML is read up to {_LONGEST_YAML:,}")

    class Loader(yaml.SafeLoader):
        """Stops at deep nesting while it reads: to look back over it costs more with each level."""

        def fetch_flow_collection_start(self, token: Any) -> None:
            if self.flow_level > _DEEPEST:
                raise RecursionError
            super().fetch_flow_collection_start(token)

        def add_indent(self, column: int) -> bool:
            if len(self.indents) > _DEEPEST:
                raise RecursionError
            return bool(super().add_indent(column))

    loader = None
    try:
        loader = _c_loader(text) or Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_endless(node, where)
        content = loader.construct_document(node)
        _refuse_unwritable(content, where)
        return content
    except yaml.YAMLError as error:
        raise InputError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise InputError(f"{where} is not valid YAML: {_TOO_DEEP}") from error
    except _FAULTS as error:
        raise InputError(
            f"{where} is not valid YAML: a value is not what its tag says ({first_line(error)})"
        ) from error
    finally:
        if loader is not None:
            loader.dispose()


def _c_loader(text: str) -> Any:
    """Return libyaml's loader, ten times as fast, for valid YAML that cannot be nested deeply; else None."""
    import yaml

    brackets = text.count("[") + text.count("{")
    if brackets > _DEEPEST or any(len(prefix) > _DEEPEST for prefix in _NESTING.findall(text)):
        return None
    try:
        yaml.compose(text, Loader=yaml.CSafeLoader)
    except (AttributeError, yaml.YAMLError, *_FAULTS):  # No libyaml, or a fault that SafeLoader words better.
        return None
    return yaml.CSafeLoader(text)


def parse_json(text: str | bytes, where: str, remedy: str) -> Any:
    """The content of a JSON text, a place and a remedy for what refuses it.

    Refuses what is no JSON or not UTF-8, what is nested too deeply or has numbers too long to be read, and half of a
    character (a lone surrogate), which no file could be written with.
    """
    try:
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        encoding = json.detect_encoding(data)
        if not encoding.startswith("utf-8"):
            data = data.decode(encoding, "surrogatepass").encode("utf-8", "surrogatepass")
        content = json.loads(data)
        if _ESCAPED_SURROGATE.search(data) or _HALF.search(data):
            json.dumps(content, ensure_ascii=False).encode()
        if data.count(b"[") + data.count(b"{") > _DEEPEST:
            _refuse_deep(content)
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: the text holds half of a character (a lone surrogate). {remedy}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: the text is not UTF-8; save the file as UTF-8") from error
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{where}: not valid JSON ({error.msg} at {place}). {remedy}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: JSON that is too large to read ({first_line(error)}). {remedy}") from error
    return content


def parse_reply(text: str) -> Any:
    """The JSON that somebody's server sent; None where it is none, or too large to read.

    Half of a character, as models that break off in the middle of one send it, becomes the sign for that (U+FFFD).
    """
    try:
        content = json.loads(text)
        _refuse_deep(content)
        if _ESCAPED_SURROGATE.search(text.encode("utf-8", "surrogatepass")):
            whole = (
                json.dumps(content, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            )
            content = json.loads(whole)
    except (ValueError, RecursionError):
        return None
    return content


def short_repr(given: Any, length: int = _SHOWN) -> str:
    """A value as a message shows it: in one line, and not all of it where it is long or nested."""
    try:
        text = repr(given)
    except (RecursionError, ValueError):
        text = f"a {type(given).__name__} that is too large to show"
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _refuse_endless(root: yaml.Node, where: str) -> None:
    """Refuse an alias within what it stands for, and more parts than can be held once aliases are followed."""
    sizes: dict[int, int] = {}
    depths: dict[int, int] = {}
    open_: set[int] = set()
    waiting = [(root, False)]
    while waiting:
        node, done = waiting.pop()
        key = id(node)
        parts = _parts(node)
        if done:
            open_.discard(key)
            sizes[key] = 1 + sum(sizes[id(part)] for part in parts)
            depths[key] = 1 + max((depths[id(part)] for part in parts), default=0)
            if depths[key] > _DEEPEST:
                raise InputError(f"{where} is not valid YAML: {_TOO_DEEP}")
            if sizes[key] > _MOST_PARTS:
                raise InputError(
                    f"{where} is not valid YAML: its aliases (*name) stand for more than {_MOST_PARTS:,} values. "
                    "Write out what is meant."
                )
        elif key in open_:
            line = node.start_mark.line + 1
            raise InputError(f"{where} is not valid YAML: the alias of line {line} stands within what it stands for")
        elif key not in sizes:
            open_.add(key)
            waiting.append((node, True))
            waiting += [(part, False) for part in parts]


def _refuse_deep(content: Any) -> None:
    level = [content]
    for _ in range(_DEEPEST):
        level = [part for one in level for part in _held(one)]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


def _refuse_unwritable(content: Any, where: str) -> None:
    """Refuse what can be read but not written: numbers without end (0xfff…), half of a character ("\\ud800")."""
    waiting, seen = [content], set[int]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, int) and one.bit_length() > _LONGEST_NUMBER * 3:
            raise InputError(f"{where} is not valid YAML: a number has more than some {_LONGEST_NUMBER} digits")
        if isinstance(one, str) and not one.isascii() and any("\ud800" <= letter <= "\udfff" for letter in one):
            raise InputError(f"{where} is not valid YAML: {one[:40]!a} holds half of a character")
        if id(one) not in seen:
            seen.add(id(one))
            waiting += [*_held(one), *(one if isinstance(one, dict) else ())]


def _held(one: Any) -> Iterable[Any]:
    return one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()


def _parts(node: yaml.Node) -> list[yaml.Node]:
    import yaml

    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
