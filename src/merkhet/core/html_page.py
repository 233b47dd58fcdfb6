"""Self-contained HTML pages: a template with inline style and one script that the content policy allows by hash."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any


def render_page(package: str, folder: str, template: str, style: str, script: str, **content: Any) -> str:
    """Render a page from files in a package's folder; content is escaped unless it is marked as safe."""
    import jinja2
    from markupsafe import Markup

    def read(name: str) -> str:
        return (files(package) / folder / name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    code = read(script)
    page = environment.get_template(template).render(
        style=Markup(read(style)),
        script=Markup(code),
        script_hash=base64.b64encode(hashlib.sha256(code.encode()).digest()).decode(),
        **content,
    )
    return page.encode("utf-8", "replace").decode("utf-8")
