"""The command ``merkhet memorize``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from merkhet.cli.arguments import Json, Knowledge, Quiet, Seed, Set


def memorize(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help="storage, boundary or implicit, or a study.yaml that memorizes.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run's folder [default: runs/STUDY].", show_default=False)
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="TABLE_OR_FOLDER", help="Facts with times: positions.tsv, your table, YAGO11k's folder."),
    ] = None,
    knowledge: Knowledge = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME_OR_FOLDER", help="random:2x128, random:NAME or a masked model; several times."),
    ] = None,
    seed: Seed = None,
    settings: Set = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Let models store facts with times, ask for what they stored and for what follows from it, and write a report.

    storage: how many facts a model can store. boundary: whether it knows starts and ends asked in other words.
    implicit: whether it knows what held in a year between. A model is random:LAYERSxWIDTH (random:2x128),
    random:NAME (the architecture of a masked model with random weights), or a masked model by alias, folder or hub
    name. Stopped and started again with the same folder, it goes on where it was.
    """
    from merkhet.api import memorize as run_study
    from merkhet.cli.run_output import print_run
    from merkhet.core.progress_bars import make_progress

    with make_progress(plain=quiet or json) as progress:
        finished = run_study(
            study,
            data=data,
            knowledge=knowledge or (),
            models=model or (),
            seed=seed,
            settings=settings or (),
            out=out,
            progress=progress,
            command=shlex.join(["merkhet", *sys.argv[1:]]),
        )
    print_run(finished, as_json=json)
