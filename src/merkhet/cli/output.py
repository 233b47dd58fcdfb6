"""Output functions that all commands share. This module imports nothing that is slow to import."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


def print_lines(lines: Sequence[str], content: Any, *, as_json: bool) -> None:
    """Print ``lines``, or ``content`` as JSON if ``as_json``."""
    if as_json:
        print_json(content)
        return
    console = Console(highlight=False, markup=False)
    for line in lines:
        console.print(line, soft_wrap=True)


def print_json(content: Any) -> None:
    """Print ``content`` as indented JSON."""
    Console(soft_wrap=True).out(json.dumps(content, ensure_ascii=False, indent=2), highlight=False)


def print_descriptions(descriptions: Mapping[str, str], note: str = "", *, as_json: bool) -> None:
    """Print a table of names and descriptions, followed by ``note``."""
    if as_json:
        print_json([{"name": name, "about": about} for name, about in descriptions.items()])
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, about in descriptions.items():
        table.add_row(name, about)
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(table)
    if note:
        console.print(note)
