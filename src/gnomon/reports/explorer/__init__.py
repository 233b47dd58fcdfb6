"""The explorer: a local page to look at a run question by question, to compare two models, and to play."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from gnomon.reports.explorer.playing import Playable, Player
    from gnomon.reports.explorer.server import ExplorerServer, open_server
    from gnomon.reports.explorer.tables import RunTables, load_tables
    from gnomon.reports.explorer.views import Views

__getattr__ = lazy_names(
    __name__,
    {
        "ExplorerServer": "gnomon.reports.explorer.server",
        "Playable": "gnomon.reports.explorer.playing",
        "Player": "gnomon.reports.explorer.playing",
        "RunTables": "gnomon.reports.explorer.tables",
        "Views": "gnomon.reports.explorer.views",
        "load_tables": "gnomon.reports.explorer.tables",
        "open_server": "gnomon.reports.explorer.server",
    },
)

__all__ = ["ExplorerServer", "Playable", "Player", "RunTables", "Views", "load_tables", "open_server"]
