"""The command ``merkhet memorize``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from merkhet.cli.arguments import Json, Knowledge, Quiet, Seed, Set, Trust


def memorize(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help="storage, boundary, implicit, or a study.yaml that memorizes.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Folder of the run [default: runs/STUDY].", show_default=False)
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE_OR_FOLDER", help="Facts with times: positions.tsv, your table, or the folder of YAGO11k."
        ),
    ] = None,
    knowledge: Knowledge = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME_OR_FOLDER", help="random:2x128, random:NAME or a masked model. Repeatable."),
    ] = None,
    seed: Seed = None,
    settings: Set = None,
    trust: Trust = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train models to memorize facts with times, and ask for them.

    Studies: storage (how many facts a model can store), boundary (whether it recalls starts and ends in other words),
    implicit (whether it knows what held in a year between start and end). Models: random:LAYERSxWIDTH (random:2x128),
    random:NAME (the architecture of a masked model with random weights), or a masked model by alias, folder or hub
    name. A stopped run resumes when the command is repeated with the same folder.
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
            trust=trust,
        )
    print_run(finished, as_json=json)
