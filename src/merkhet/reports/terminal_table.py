"""The table of scores for a terminal, a log or a pipe."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from merkhet.reports.scoreboard import scoreboard
from merkhet.reports.tables import TableColumn, as_terminal, board_table


def score_table(
    scores: pa.Table,
    headline: Iterable[Any],
    *,
    width: int | None = None,
    baselines: Collection[str] = (),
    main_methods: Collection[str] = (),
) -> Table:
    """Models as rows, headline scores as columns: ``41.2  [39.3, 43.0]`` in percent, chance in the last row.

    The best of each column is bold; ``baselines`` are not among those compared. Where the table is wider than
    ``width`` (the terminal's own if None), it is stacked: one block of rows for each headline score, so that no
    number is ever cut. A model that answered by several methods has a row for each, or for ``main_methods`` alone.
    """
    board = scoreboard(scores, headline, baselines, main_methods)
    if not board.columns:
        return Table("no scores yet", box=None, pad_edge=False)
    table = board_table(board, sizes=False)
    table = replace(table, columns=(TableColumn("", number=False), *table.columns[1:]))
    return as_terminal(table, Console().width if width is None else width)
