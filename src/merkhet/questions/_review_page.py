"""The review sheet as one HTML page that needs nothing else and saves what was filled in as CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from merkhet.core.html_page import render_page
from merkhet.core.ids import digest
from merkhet.questions.review import COLUMNS, VERDICTS

_SHOWN = ("answers", "choices", "facts")


def render_sheet(rows: Sequence[Mapping[str, str]], title: str) -> str:
    """The page's text. All that came from data is escaped; a policy in the page forbids the network and other scripts.

    What was filled in is kept in the browser until the page is closed for good, under a name made of the sheet's
    content.
    """
    return render_page(
        "merkhet.questions",
        "pages",
        "review.html.j2",
        "review.css",
        "review.js",
        title=title,
        columns=json.dumps(COLUMNS),
        verdicts=VERDICTS,
        shown=_SHOWN,
        key=digest([dict(row) for row in rows])[:20],
        rows=[{**row, "cells": json.dumps(dict(row), ensure_ascii=False)} for row in rows],
    )
