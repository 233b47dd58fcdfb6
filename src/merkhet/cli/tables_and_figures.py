"""The commands ``merkhet tables`` and ``merkhet figures``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merkhet.cli.arguments import Json, Runs

if TYPE_CHECKING:
    from merkhet.reports.report_data import ReportData
    from merkhet.reports.table_model import ReportTable

_ENDINGS = {"terminal": "txt", "csv": "csv", "markdown": "md", "latex": "tex", "html": "html"}
_WIDTH = 120
"""Width in characters of terminal tables that are written to a file."""


def tables(
    runs: Runs,
    form: Annotated[
        list[str] | None,
        typer.Option("--as", metavar="FORM", help="terminal, csv, markdown, latex or html. Repeatable with --out."),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this table [default: scores; with --out all]. Repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for the tables, in all forms or those of --as."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the tables.")] = False,
    json: Json = False,
) -> None:
    """Print the scores of a run as a table, or write all its tables.

    Tables are written for papers (LaTeX, Markdown, HTML), programs (CSV, JSON) and the terminal.
    """
    from merkhet.cli.output import print_json, print_lines
    from merkhet.core.errors import InputError, did_you_mean
    from merkhet.core.text import counted
    from merkhet.reports.tables import report_tables, select_tables

    forms = list(dict.fromkeys(form or ()))
    for name in forms:
        if name not in _ENDINGS:
            raise InputError(f"--as {name}: unknown table format; {did_you_mean(name, _ENDINGS)}")
    all_tables = report_tables(_combined(runs))
    if list_:
        _print_names([(report_table.name, report_table.title) for report_table in all_tables], as_json=json)
        return
    if out is not None:
        selected = select_tables(all_tables, table or ())
        written = _write_tables(selected, out, forms or list(_ENDINGS))
        line = f"Tables: {out} ({counted(len(selected), 'table')}, {counted(len(written), 'file')})"
        print_lines([line], [str(path) for path in written], as_json=json)
        return
    if not all_tables:
        raise InputError("this run has no scores, so there is no table to print")
    selected = select_tables(all_tables, table or ["scores" if all_tables[0].name == "scores" else all_tables[0].name])
    if len(forms) > 1:
        raise InputError("several table formats cannot be printed at once: give one --as, or a folder with --out")
    if json:
        print_json([asdict(report_table) for report_table in selected])
        return
    if forms == ["csv"] and len(selected) > 1:
        raise InputError("CSV has one table: name one with --table, or write each into a file with --out FOLDER")
    _print_tables(selected, forms[0] if forms else "terminal")


def figures(
    runs: Runs,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the figures.", show_default=False)
    ] = None,
    form: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="FORM",
            help="svg, html, png or pdf [default: all]. Repeatable. png and pdf need merkhet[report].",
        ),
    ] = None,
    figure: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this figure [default: all]. Repeatable.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the figures.")] = False,
    json: Json = False,
) -> None:
    """Write the figures of a run.

    PNG, PDF and SVG are for papers; HTML opens without a network.
    """
    from merkhet.cli.output import print_lines
    from merkhet.core.errors import InputError, did_you_mean
    from merkhet.core.text import counted
    from merkhet.reports.figure_files import (
        CONVERTED,
        FORMATS,
        NEEDS_CONVERTER,
        can_convert,
        report_charts,
        save_charts,
        select_charts,
    )

    left_out = CONVERTED if form is None and not can_convert() else frozenset()
    forms = list(dict.fromkeys(form or [name for name in FORMATS if name not in left_out]))
    for name in forms:
        if name not in FORMATS:
            raise InputError(f"--as {name}: unknown figure format; {did_you_mean(name, FORMATS)}")
    if out is None and not list_:
        raise InputError("name a folder for the figures with --out FOLDER, or list them with --list")
    charts = report_charts(_combined(runs))
    if list_:
        _print_names([(chart.name, chart.caption) for chart in charts], as_json=json)
        return
    selected = select_charts(charts, figure or ())
    if not selected:
        raise InputError("there is nothing to draw in this run: no score, no rank and no analysis has a value")
    folder = out or Path()
    written = save_charts(selected, folder, forms)
    lines = [f"Figures: {folder} ({counted(len(selected), 'figure')}, {counted(len(written), 'file')})"]
    if left_out:
        lines.append(f"Written as SVG and HTML. {NEEDS_CONVERTER}")
    print_lines(lines, [str(path) for path in written], as_json=json)


def _combined(runs: Sequence[Path]) -> ReportData:
    from merkhet.engine.combine_runs import combine_runs
    from merkhet.engine.run_folder import open_run

    return combine_runs([open_run(folder) for folder in runs])


def _print_tables(tables: Sequence[ReportTable], form: str) -> None:
    """Print only the tables, without other messages, for redirection to a file."""
    from rich.console import Console

    from merkhet.reports.table_writers import as_terminal

    if form != "terminal":
        typer.echo("\n".join(_texts(form)(table) for table in tables), nl=False)
        return
    console = Console(highlight=False, markup=False)
    for index, table in enumerate(tables):
        if index:
            console.print()
        console.print(table.title, style="bold")
        console.print(as_terminal(table, console.width))
        if table.note:
            console.print(table.note, style="dim")


def _write_tables(tables: Sequence[ReportTable], folder: Path, forms: Sequence[str]) -> list[Path]:
    from merkhet.core.errors import InputError
    from merkhet.core.files import write_text

    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a folder; choose another folder with --out")
    written = []
    for table in tables:
        for form in forms:
            written.append(folder / f"{table.name}.{_ENDINGS[form]}")
            write_text(written[-1], _texts(form)(table))
    return written


def _texts(form: str) -> Any:
    from merkhet.reports.table_writers import as_csv, as_html, as_latex, as_markdown

    return {"csv": as_csv, "markdown": as_markdown, "latex": as_latex, "html": as_html, "terminal": _plain}[form]


def _plain(table: ReportTable) -> str:
    import io

    from rich.console import Console

    from merkhet.reports.table_writers import as_terminal

    out = io.StringIO()
    console = Console(file=out, width=_WIDTH, highlight=False, markup=False)
    for part in (table.title, as_terminal(table, _WIDTH), table.note):
        if part:
            console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _print_names(names: Sequence[tuple[str, str]], *, as_json: bool) -> None:
    from merkhet.cli.output import print_lines

    wide = max((len(name) for name, _ in names), default=0)
    lines = [f"{name.ljust(wide)}  {title}" for name, title in names] or ["None: this run has no scores."]
    print_lines(lines, [{"name": name, "title": title} for name, title in names], as_json=as_json)
