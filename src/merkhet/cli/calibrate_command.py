"""``merkhet calibrate``: whether a probe finds what a model knows, and nothing else."""

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
        typer.Argument(
            metavar="PROBE", help="A probe's name, file.py:function, or all of those listed.", show_default=False
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Only masked, causal or encoder models [default: all it can ask]."),
    ] = None,
    trainings: Annotated[int, typer.Option(min=1, metavar="N", help="Models of each kind that are trained.")] = 3,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of everything that is drawn.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE_OR_FOLDER", help="Write the cards to FILE.json too, or PROBE.json into a folder."),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train small models whose knowledge is known, ask them by a probe, and say whether the probe can be trusted.

    It must find what they memorized, and must not find what they were never shown. The card that says so is kept, and
    is in the report of every run that asks by the probe. Exit code 1: the probe failed.
    """
    from merkhet.cli.progress_bars import make_progress
    from merkhet.cli.run_output import print_lines

    with make_progress(plain=quiet or json) as progress:
        cards = _calibrate(probe, kind, trainings, seed, out, progress)
    every = [card for own in cards.values() for card in own]
    if json:
        print_lines([], every, as_json=True)
    else:
        _print(every)
    if not all(card["passed"] for card in every):
        raise typer.Exit(1)


def _calibrate(
    probe: str, kind: str | None, trainings: int, seed: int, out: Path | None, progress: Progress
) -> dict[str, list[dict[str, Any]]]:
    """The cards of each probe, written wherever they are to be kept."""
    from merkhet.calibration import calibrate as calibrate_probe
    from merkhet.calibration import calibration_models
    from merkhet.calibration.calibration_cards import save_cards
    from merkhet.core.errors import InputError, MerkhetError, did_you_mean
    from merkhet.core.files import write_json
    from merkhet.probes import PROBES

    if probe != ALL and probe not in PROBES and ":" not in probe:
        hint = did_you_mean(probe, [*PROBES, ALL])
        raise InputError(f"there is no probe called {probe!r}; {hint} (one of your own is named file.py:function)")
    if out is not None and out.suffix != ".json" and out.is_file():
        raise InputError(f"{out} is a file, and no .json; name a FILE.json or a folder with --out")
    cards: dict[str, list[dict[str, Any]]] = {}
    with calibration_models(seed, progress) as models:
        for name in PROBES if probe == ALL else [probe]:
            try:
                found = calibrate_probe(
                    name, kinds=[kind] if kind else (), trainings=trainings, seed=seed, progress=progress, models=models
                )
            except InputError:
                raise
            except MerkhetError as error:
                if probe != ALL:
                    raise
                progress.say(f"  {error}")
                continue
            cards[name] = found
            save_cards(name, found)
            if out is not None and out.suffix != ".json":
                write_json(out / f"{found[0]['probe']}.json", found)
    if out is not None and out.suffix == ".json":
        write_json(out, [card for own in cards.values() for card in own])
    return cards


def _print(cards: Sequence[Mapping[str, Any]]) -> None:
    """Each card as a table of what was found, in what it was found, and what that means."""
    from rich.console import Console

    console = Console(highlight=False)
    for card in cards:
        console.print()
        what = f"{card['probe']}, {card['kind']} models: {card['metric']} by {card['method']}, chance "
        console.print(what + _percent(card["rows"][0]["chance"]), style="bold", markup=False)
        console.print(card["about"], markup=False)
        console.print()
        console.print(_table(card["rows"]))
        console.print()
        for sentence in (card["verdict"], *card["sentences"]):
            console.print(sentence, markup=False)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """A line for each set and model: what was found, and beside what is wanted whether it is so."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="")
    for column in ("", "", "found", "95% interval", "wanted", ""):
        table.add_column(Text(column), justify="right" if column in ("found", "95% interval") else "left", no_wrap=True)
    content = None
    for row in rows:
        name = row["content"] if row["content"] != content else ""
        content = row["content"]
        found, interval = "-", "cannot be asked"
        if row["value"] is not None:
            found, interval = _percent(row["value"]), f"[{_percent(row['low'])}, {_percent(row['high'])}]"
        mark = {True: "ok", False: "FAILED", None: ""}[row["passed"]]
        table.add_row(*map(Text, (name, row["model"], found, interval, row["wanted"] or "", mark)))
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
