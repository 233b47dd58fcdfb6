"""Commands of the command line. Each command imports its modules when it runs, which keeps ``--help`` fast."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from merkhet.cli.arguments import (
    BuildEngine,
    Cores,
    Data,
    Downstream,
    EngineOption,
    Json,
    Knowledge,
    Limit,
    Memory,
    Model,
    Quiet,
    Runs,
    Seed,
    Set,
    SuiteOrStudy,
    Task,
    Trust,
    Workers,
)
from merkhet.cli.calibrate_command import calibrate
from merkhet.cli.compare_command import compare
from merkhet.cli.explore_command import explore
from merkhet.cli.knowledge_commands import knowledge_app
from merkhet.cli.memorize_command import memorize
from merkhet.cli.merge_command import merge
from merkhet.cli.review_command import review
from merkhet.cli.tables_and_figures import figures, tables

app = typer.Typer(
    name="merkhet",
    help="Measure what a language model knows: build questions, ask them, and score the answers with error bars.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # Plain help is three times as fast as rich help.
    pretty_exceptions_enable=False,
)


class _HidePandas:
    """Import finder that makes pandas look uninstalled."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Raise ImportError for pandas; return None for every other module."""
        if name == "pandas":
            raise ImportError(name)


def _skip_pandas() -> None:
    """Prevent pyarrow from importing pandas, which takes 0.2 s and which commands do not use.

    pyarrow tries to import pandas when it first converts a list, and works without pandas. A later call of
    ``to_pandas()`` still imports pandas.
    """
    if "pandas" in sys.modules or "pyarrow" in sys.modules:
        return
    finder: Any = _HidePandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


def _version(requested: bool) -> None:
    if requested:
        from merkhet import __version__

        typer.echo(f"merkhet {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    suite_or_study: SuiteOrStudy,
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Folder of the run [default: runs/SUITE].", show_default=False)
    ] = None,
    data: Data = None,
    knowledge: Knowledge = None,
    model: Model = None,
    task: Task = None,
    limit: Limit = None,
    seed: Seed = None,
    settings: Set = None,
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="Allow the models of --model to run their own code."),
    ] = False,
    engine: EngineOption = None,
    workers: Workers = None,
    cores: Cores = None,
    memory: Memory = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Ask only shard I of N; 'merkhet merge' merges the shards."),
    ] = None,
    trust: Trust = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run a suite or study: ask models, score answers, report.

    A stopped run resumes when the command is repeated with the same folder.
    """
    _skip_pandas()
    from merkhet.api import run as run_suite
    from merkhet.api import run_shard
    from merkhet.cli.merge_command import print_shard
    from merkhet.cli.run_output import print_run
    from merkhet.core.progress_bars import make_progress

    models = [{"model": name, "trust_remote_code": True} if trust_remote_code else name for name in model or []]
    with make_progress(plain=quiet or json) as progress:
        options: dict[str, Any] = {
            "data": data,
            "knowledge": knowledge or (),
            "models": models,
            "tasks": task or (),
            "limit": limit,
            "seed": seed,
            "settings": settings or (),
            "engines": engine or (),
            "workers": workers,
            "cores": cores,
            "memory": memory,
            "trust": trust,
        }
        command = shlex.join(["merkhet", *sys.argv[1:]])
        if shard is None:
            finished = run_suite(suite_or_study, **options, out=out, progress=progress, command=command)
        else:
            asked = run_shard(suite_or_study, shard, **options, out=out, progress=progress, command=command)
    if shard is None:
        print_run(finished, as_json=json)
    else:
        print_shard(asked, as_json=json)


@app.command()
def build(
    suite_or_study: SuiteOrStudy,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the questions.", show_default=False)],
    data: Data = None,
    knowledge: Knowledge = None,
    task: Task = None,
    limit: Limit = None,
    seed: Seed = None,
    settings: Set = None,
    engine: BuildEngine = None,
    memory: Memory = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Build the questions of a suite or study without asking them."""
    _skip_pandas()
    from merkhet.api import build as build_suite
    from merkhet.cli.run_output import print_build

    questions = build_suite(
        suite_or_study,
        out=out,
        data=data,
        knowledge=knowledge or (),
        tasks=task or (),
        limit=limit,
        seed=seed,
        settings=settings or (),
        engine=engine,
        memory=memory,
        trust=trust,
    )
    print_build(questions, out, as_json=json)


@app.command()
def report(
    runs: Runs,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Output file [default: report.html in the first run].", show_default=False),
    ] = None,
    predictions: Annotated[
        bool, typer.Option("--predictions", help="Write predictions-MODEL.csv (id,ret) for each model into its run.")
    ] = False,
    downstream: Downstream = None,
    json: Json = False,
) -> None:
    """Write the report of a run, or one report of several runs."""
    from merkhet.cli.run_output import print_report
    from merkhet.core.files import write_text
    from merkhet.engine.combine_runs import combine_runs
    from merkhet.engine.predictions import write_all_predictions
    from merkhet.engine.run_folder import open_run
    from merkhet.reports.html_report import render_html

    opened = [open_run(folder) for folder in runs]
    combined = combine_runs(opened, downstream)
    file = out or runs[0] / ("report.html" if len(runs) == 1 else "report-combined.html")
    write_text(file, render_html(combined))
    written = [path for run in opened for path in write_all_predictions(run)] if predictions else []
    print_report(combined, file, written, as_json=json)


# The help lists commands in this order, which is the order of use.
for _command in (merge, tables, figures, explore, compare, calibrate, memorize, review):
    app.command()(_command)
app.add_typer(knowledge_app)


@app.command()
def suites(json: Json = False) -> None:
    """List the suites."""
    from merkhet.cli.list_commands import list_parts
    from merkhet.suites import SUITES

    list_parts(SUITES, as_json=json)


@app.command()
def models(json: Json = False) -> None:
    """List the models that have an alias."""
    from merkhet.cli.list_commands import list_parts
    from merkhet.models import MODELS

    note = (
        "Folders, .gguf files and hub names are models too. chat:NAME@URL is a model behind an endpoint; random:2x128 "
        "is an untrained model for 'merkhet memorize'."
    )
    list_parts(MODELS, note, as_json=json)


@app.command()
def probes(json: Json = False) -> None:
    """List the probes."""
    from merkhet.cli.list_commands import list_parts
    from merkhet.probes import PROBES

    list_parts(PROBES, as_json=json)


@app.command()
def metrics(json: Json = False) -> None:
    """List the metrics."""
    from merkhet.cli.list_commands import list_parts
    from merkhet.metrics import METRICS

    list_parts(METRICS, as_json=json)


@app.command()
def packs(json: Json = False) -> None:
    """List the embedded knowledge packs."""
    from merkhet.cli.list_commands import list_packs

    list_packs(as_json=json)
