"""The review sheet as one HTML page that needs nothing else and saves what was filled in as CSV."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files

import jinja2
from markupsafe import Markup

from gnomon.foundation import digest
from gnomon.questions.review import COLUMNS, VERDICTS

_SHOWN = ("answers", "choices", "facts")


def render_page(rows: Sequence[Mapping[str, str]], title: str) -> str:
    """The page's text. All that came from data is escaped; a policy in the page forbids the network and other scripts.

    What was filled in is kept in the browser until the page is closed for good, under a name made of the sheet's
    content.
    """
    script = _part("review.js")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_part),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    page = environment.get_template("review.html.j2").render(
        style=Markup(_part("review.css")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        title=title,
        columns=json.dumps(COLUMNS),
        verdicts=VERDICTS,
        shown=_SHOWN,
        key=digest([dict(row) for row in rows])[:20],
        rows=[{**row, "cells": json.dumps(dict(row), ensure_ascii=False)} for row in rows],
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _part(name: str) -> str:
    return (files("gnomon.questions") / "pages" / name).read_text(encoding="utf-8")
