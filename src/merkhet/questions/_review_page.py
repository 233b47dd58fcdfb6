"""The review sheet as a self-contained HTML page that saves the verdicts as CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from merkhet.core.ids import digest
from merkhet.core.templating import render_page
from merkhet.questions.review import COLUMNS, VERDICTS

_LIST_COLUMNS = ("answers", "choices", "facts")


def render_sheet(rows: Sequence[Mapping[str, str]], title: str) -> str:
    """Render the page.

    Data is escaped, and the page's content policy forbids the network and other scripts. The browser stores the
    verdicts under a key derived from the sheet's content.
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
        shown=_LIST_COLUMNS,
        key=digest([dict(row) for row in rows])[:20],
        rows=[{**row, "cells": json.dumps(dict(row), ensure_ascii=False)} for row in rows],
    )
