"""Lists of registered parts and packs."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from merkhet.core.registry import Registry


def list_parts(registry: Registry, note: str = "", *, as_json: bool) -> None:
    """Print the names of a registry with descriptions, without loading the parts."""
    if as_json:
        _print_json([{"name": name, "about": registry.about(name)} for name in registry])
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name in registry:
        table.add_row(name, registry.about(name))
    console = Console(highlight=False)
    console.print(table)
    if note:
        console.print(note)


def list_packs(*, as_json: bool) -> None:
    """Print the embedded packs with their size and licence."""
    from merkhet.knowledge.pack_catalog import embedded_packs, pack_card

    cards = [pack_card(folder) for folder in embedded_packs().values()]
    if as_json:
        _print_json([asdict(card) for card in cards])
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for column, justify in (
        ("pack", "left"),
        ("facts", "right"),
        ("names", "right"),
        ("licence", "left"),
        ("", "left"),
    ):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for card in cards:
        table.add_row(card.name, f"{card.facts:,}", f"{card.names:,}", card.licence, card.title)
    Console(highlight=False).print(table)


def _print_json(content: object) -> None:
    Console(soft_wrap=True).out(json.dumps(content, ensure_ascii=False, indent=2), highlight=False)
