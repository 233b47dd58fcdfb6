"""The command ``merkhet calibrate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merkhet.cli.arguments import Json, Quiet

if TYPE_CHECKING:
    from rich.table import Table

    from merkhet.core.progress import Progress

ALL = "all"


def calibrate(
    probe: Annotated[
        str,
        typer.Argument(metavar="PROBE", help="Name of a probe, file.py:function, or 'all'.", show_default=False),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="Only masked, causal or encoder models [default: all that the probe can ask]."
        ),
    ] = None,
    trainings: Annotated[int, typer.Option(min=1, metavar="N", help="Number of models to train per kind.")] = 3,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE_OR_FOLDER", help="Write the cards also to FILE.json, or as PROBE.json into a folder."
        ),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check a probe on small models whose knowledge is known.

    The probe must find what the models memorized, and must not find what they were never shown. The card with the
    result is saved and shown in the report of every run that uses the probe. Exit code 1: the probe failed.
    """
    from merkhet.cli.output import print_lines
    from merkhet.core.progress_bars import make_progress

    with make_progress(plain=quiet or json) as progress:
        cards = _calibrate(probe, kind, trainings, seed, out, progress)
    all_cards = [card for probe_cards in cards.values() for card in probe_cards]
    if json:
        print_lines([], all_cards, as_json=True)
    else:
        _print_cards(all_cards)
    if not all(card["passed"] for card in all_cards):
        raise typer.Exit(1)


def _calibrate(
    probe: str, kind: str | None, trainings: int, seed: int, out: Path | None, progress: Progress
) -> dict[str, list[dict[str, Any]]]:
    """Calibrate one probe or all probes, save their calibration cards, and return the cards by probe."""
    from merkhet.calibration import calibrate as calibrate_probe
    from merkhet.calibration import calibration_models
    from merkhet.calibration.calibration_cards import save_cards
    from merkhet.core.errors import InputError, MerkhetError, did_you_mean
    from merkhet.core.files import write_json
    from merkhet.probes import PROBES

    if probe != ALL and probe not in PROBES and ":" not in probe:
        hint = did_you_mean(probe, [*PROBES, ALL])
        raise InputError(f"there is no probe called {probe!r}; {hint} (name your own probe as file.py:function)")
    if out is not None and out.suffix != ".json" and out.is_file():
        raise InputError(f"{out} is a file that does not end in .json; name a FILE.json or a folder with --out")
    cards: dict[str, list[dict[str, Any]]] = {}
    with calibration_models(seed, progress) as models:
        for name in PROBES if probe == ALL else [probe]:
            try:
                probe_cards = calibrate_probe(
                    name, kinds=[kind] if kind else (), trainings=trainings, seed=seed, progress=progress, models=models
                )
            except InputError:
                raise
            except MerkhetError as error:
                if probe != ALL:
                    raise
                progress.say(f"  {error}")
                continue
            cards[name] = probe_cards
            save_cards(name, probe_cards)
            if out is not None and out.suffix != ".json":
                write_json(out / f"{probe_cards[0]['probe']}.json", probe_cards)
    if out is not None and out.suffix == ".json":
        write_json(out, [card for cards_of_probe in cards.values() for card in cards_of_probe])
    return cards


def _print_cards(cards: Sequence[Mapping[str, Any]]) -> None:
    """Print each calibration card: header, table, verdict and sentences."""
    from rich.console import Console

    console = Console(highlight=False)
    for card in cards:
        console.print()
        header = f"{card['probe']}, {card['kind']} models: {card['metric']} by {card['method']}, chance "
        console.print(header + _percent(card["rows"][0]["chance"]), style="bold", markup=False)
        console.print(card["about"], markup=False)
        console.print()
        console.print(_make_table(card["rows"]))
        console.print()
        for sentence in (card["verdict"], *card["sentences"]):
            console.print(sentence, markup=False)


def _make_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Make the table of a calibration card, with one row for each model and set of facts."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="")
    for column in ("", "", "score", "95% interval", "required", ""):
        table.add_column(Text(column), justify="right" if column in ("score", "95% interval") else "left", no_wrap=True)
    content = None
    for row in rows:
        name = row["content"] if row["content"] != content else ""
        content = row["content"]
        score, interval = "-", "cannot be asked"
        if row["value"] is not None:
            score, interval = _percent(row["value"]), f"[{_percent(row['low'])}, {_percent(row['high'])}]"
        mark = {True: "ok", False: "FAILED", None: ""}[row["passed"]]
        table.add_row(*map(Text, (name, row["model"], score, interval, row["wanted"] or "", mark)))
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
