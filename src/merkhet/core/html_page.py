"""Pages that need nothing else: a template with its style and one script, which a policy in the page names by hash."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any


def render_page(package: str, folder: str, template: str, style: str, script: str, **content: Any) -> str:
    """The text of a page from the files of a package's folder. All content is escaped unless it is marked as safe."""
    import jinja2
    from markupsafe import Markup

    def part(name: str) -> str:
        return (files(package) / folder / name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(part),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    own = part(script)
    page = environment.get_template(template).render(
        style=Markup(part(style)),
        script=Markup(own),
        script_hash=base64.b64encode(hashlib.sha256(own.encode()).digest()).decode(),
        **content,
    )
    return page.encode("utf-8", "replace").decode("utf-8")
