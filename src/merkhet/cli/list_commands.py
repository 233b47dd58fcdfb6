"""Lists of suites, models, probes, metrics, sources and knowledge packs."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from merkhet.cli.output import print_descriptions, print_json
from merkhet.core.registry import Registry


def list_parts(registry: Registry, note: str = "", *, as_json: bool) -> None:
    """Print the names and descriptions in a registry, without importing the registered objects."""
    print_descriptions({name: registry.about(name) for name in registry}, note, as_json=as_json)


def list_packs(*, as_json: bool) -> None:
    """Print the size and licence of each embedded knowledge pack."""
    from merkhet.knowledge.pack_catalog import embedded_packs, pack_card

    cards = [pack_card(folder) for folder in embedded_packs().values()]
    if as_json:
        print_json([asdict(card) for card in cards])
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for column in ("pack", "facts", "names", "licence", ""):
        table.add_column(column, justify="right" if column in ("facts", "names") else "left")
    for card in cards:
        table.add_row(card.name, f"{card.facts:,}", f"{card.names:,}", card.licence, card.title)
    Console(highlight=False).print(table)
