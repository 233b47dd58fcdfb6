"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SuiteOrStudy = Annotated[
    str, typer.Argument(metavar="SUITE_OR_STUDY", help="Name of a suite, or a study.yaml.", show_default=False)
]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs.", show_default=False)]
Data = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of the suite's published files, the output of 'merkhet build', or your questions.",
    ),
]
Knowledge = Annotated[
    list[str] | None,
    typer.Option(metavar="PACK_OR_FILE", help="A knowledge pack, a folder or a table of facts. Repeatable."),
]
Model = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME_OR_FOLDER", help="An alias, a folder, a .gguf file, predictions.csv or a hub name. Repeatable."
    ),
]
Task = Annotated[list[str] | None, typer.Option(metavar="TASK", help="Only this task. Repeatable.")]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="Maximum number of facts or items per task.")]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Random seed.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the study. Repeatable.")
]
EngineOption = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="Where to build and ask: spark, ray, or the address of a cluster (ray://host:10001). Repeatable.",
    ),
]
BuildEngine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="Build engine: duckdb, spark, or the address of a cluster (spark://host:7077).",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Memory limit, such as 4GB; data beyond it is kept on disk."),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="With --engine ray: number of workers [default: one per GPU, or per group of cores]."
    ),
]
Cores = Annotated[
    int | None,
    typer.Option("--cores-per-worker", min=1, metavar="N", help="With --engine ray: cores per worker [default: 4]."),
]
Downstream = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.csv",
        help="Scores of the models on other tasks, to correlate with: model,task,score, or one column per task.",
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Agree to the foreign code that the study names, and to the keys that it sends; remembered."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print plain lines instead of progress bars.")]
