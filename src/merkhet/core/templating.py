"""Rendering of Jinja templates as self-contained HTML pages or plain text."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from merkhet.core import text

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

_FILTERS = {
    "count": text.count,
    "score": text.score,
    "interval": text.interval,
    "value_range": text.value_range,
    "quantity": text.quantity,
    "metric_label": text.metric_label,
    "counted": text.counted,
    "join_names": text.join_names,
    "join_phrases": text.join_phrases,
    "join_some": text.join_some,
    "quote_name": text.quote_name,
    "truncate_text": text.truncate,
    "printable": text.printable,
}
_BLANK_LINE = re.compile(r"\n\s*\n")


def render_page(package: str, folder: str, template: str, style: str, script: str = "", **content: Any) -> str:
    """Render an HTML page with an inline style sheet and at most one inline script.

    The page's content security policy allows both by their hashes. Content is escaped unless it is marked as safe.
    """
    from markupsafe import Markup

    code, rules = _read(package, folder, script) if script else "", _read(package, folder, style)
    environment = _environment(package, folder, html=True)
    inline = {"style": Markup(rules), "script": Markup(code), "style_hash": _hash(rules), "script_hash": _hash(code)}
    page = environment.get_template(template).render(**inline, **content)
    return page.encode("utf-8", "replace").decode("utf-8")


def render_markup(package: str, folder: str, template: str, macro: str, *values: Any) -> Markup:
    """Render a macro of an HTML template. Values are escaped unless they are marked as safe."""
    module = _environment(package, folder, html=True).get_template(template).module
    markup: Markup = getattr(module, macro)(*values)
    return markup


def render_text(package: str, folder: str, template: str, **content: Any) -> str:
    """Render a text template; each inserted value is made printable and put on one line."""
    return _environment(package, folder, html=False).get_template(template).render(**content)


def render_prose(package: str, folder: str, template: str, macro: str, *values: Any) -> list[str]:
    """Render a macro of a text template as paragraphs.

    Blank lines separate paragraphs. Within a paragraph, every run of white space becomes one space, because templates
    have one sentence per line.
    """
    module = _environment(package, folder, html=False).get_template(template).module
    pieces = _BLANK_LINE.split(getattr(module, macro)(*values))
    return [paragraph for piece in pieces if (paragraph := _one_line(piece))]


@cache
def _environment(package: str, folder: str, *, html: bool) -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _read(package, folder, name)),
        autoescape=html,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=None if html else lambda value: _one_line(text.printable(value)),
    )
    environment.filters.update(_FILTERS)
    return environment


def _read(package: str, folder: str, name: str) -> str:
    return (files(package) / folder / name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    return base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def _one_line(value: str) -> str:
    return " ".join(value.split())
