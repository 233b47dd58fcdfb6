"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SuiteOrStudy = Annotated[
    str, typer.Argument(metavar="SUITE_OR_STUDY", help="A suite's name or a study.yaml.", show_default=False)
]
Data = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of the suite's published files, of what 'merkhet build' wrote, or your questions.",
    ),
]
Knowledge = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PACK_OR_FILE", help="A knowledge pack, a folder or a table of facts. May be given several times."
    ),
]
Model = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME_OR_FOLDER", help="An alias, a folder, a .gguf file, predictions.csv or a hub name; several times."
    ),
]
Task = Annotated[list[str] | None, typer.Option(metavar="TASK", help="Only this task. May be given several times.")]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="At most so many questions a task.")]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Seed of everything that is drawn.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change any key of the study.")]
EngineOption = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="Where work is done: spark or ray, or the address of a cluster (ray://host:10001). May be given twice.",
    ),
]
BuildEngine = Annotated[
    str | None,
    typer.Option(
        "--engine", metavar="ENGINE", help="What does it: duckdb, spark, or a cluster's address (spark://host:7077)."
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="How much memory building may use, such as 4GB; the rest goes to disk."),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="With --engine ray: how many workers ask [default: one a GPU, or a group of cores]."
    ),
]
Cores = Annotated[
    int | None,
    typer.Option("--cores-per-worker", min=1, metavar="N", help="With --engine ray: cores of a worker [default: 4]."),
]
Downstream = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.csv",
        help="Scores of the models on other tasks (model,task,score, or a column for each task) to correlate with.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Plain lines instead of progress bars.")]
