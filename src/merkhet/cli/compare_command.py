"""The command ``merkhet compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merkhet.cli.arguments import Downstream, Json, Task


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs of one suite.", show_default=False)
    ],
    against: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Compare all other models with this one only.")
    ] = None,
    task: Task = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC", help="Compare by this metric instead of the usual one. Several times."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Also within each domain, relation, template, rule, split, …"),
    ] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Compare baselines too; so is done with one model.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page (.html), or all that was found (.json).", show_default=False),
    ] = None,
    downstream: Downstream = None,
    json: Json = False,
) -> None:
    """Say which model knows more: models of one or several runs, paired by the questions that both were asked.

    Exits with 1 where nothing could be compared. --json alone prints the list of comparisons; with any other option, an
    object with the verdict, remarks and groups besides.
    """
    from merkhet.cli.comparison_output import print_comparison, write_comparison
    from merkhet.engine.run_comparison import ComparisonChoice, compare_runs
    from merkhet.engine.run_folder import open_run

    choice = ComparisonChoice(against, task or (), metric or (), by, baselines)
    if out is not None and out.suffix not in (".html", ".json"):
        raise typer.BadParameter(f"{out} ends neither in .html (a page) nor in .json (all numbers)", param_hint="--out")
    comparison = compare_runs([open_run(folder) for folder in runs], choice, downstream)
    if out is not None:
        write_comparison(comparison, out)
    plain = choice == ComparisonChoice() and out is None and downstream is None
    print_comparison(comparison, out, as_json=json, plain=plain)
    if not comparison.comparisons and not comparison.extrinsic:
        raise typer.Exit(1)
