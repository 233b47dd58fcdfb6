"""The command ``merkhet compare``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merkhet.cli.arguments import Downstream, Json, Task

if TYPE_CHECKING:
    from rich.console import Console

    from merkhet.reports.analysis_sections import AnalysisSection
    from merkhet.reports.comparison_page import ComparisonData
    from merkhet.reports.table_model import ReportTable


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs of one suite.", show_default=False)
    ],
    against: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Compare all other models only with this model.")
    ] = None,
    task: Task = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC", help="Compare by this metric instead of the headline metric. Repeatable."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Compare also within each domain, relation, template, rule, split, …"),
    ] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Compare baselines too; the default for a single model.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page (.html) or all numbers (.json).", show_default=False),
    ] = None,
    downstream: Downstream = None,
    json: Json = False,
) -> None:
    """Compare models of one or several runs.

    Models are paired by the questions that both were asked. Exit code 1: nothing could be compared. --json alone prints
    the list of comparisons; with any other option it prints an object that also holds the verdict, remarks and groups.
    """
    from merkhet.engine.run_comparison import ComparisonChoice, compare_runs
    from merkhet.engine.run_folder import open_run

    choice = ComparisonChoice(against, task or (), metric or (), by, baselines)
    if out is not None and out.suffix not in (".html", ".json"):
        raise typer.BadParameter(
            f"the file must end in .html (a page) or .json (all numbers), got {out}", param_hint="--out"
        )
    comparison = compare_runs([open_run(folder) for folder in runs], choice, downstream)
    if out is not None:
        _write_comparison(comparison, out)
    plain = choice == ComparisonChoice() and out is None and downstream is None
    _print_comparison(comparison, out, as_json=json, plain=plain)
    if not comparison.comparisons and not comparison.extrinsic:
        raise typer.Exit(1)


def _write_comparison(comparison: ComparisonData, file: Path) -> None:
    """Write the comparison as JSON if ``file`` ends in ``.json``, otherwise as an HTML page."""
    from merkhet.core.files import write_json, write_text
    from merkhet.reports.comparison_page import render_comparison

    if file.suffix == ".json":
        write_json(file, _finite(comparison.as_json()))
    else:
        write_text(file, render_comparison(comparison))


def _print_comparison(comparison: ComparisonData, file: Path | None, *, as_json: bool, plain: bool) -> None:
    """Print the verdict, the tables of paired differences, remarks on the runs, and the path of the output file.

    Args:
        file: File that the comparison was written to; None if it was only printed.
        plain: With ``as_json``, whether to print only the list of comparisons, which scripts rely on.
    """
    from rich.console import Console
    from rich.text import Text

    from merkhet.cli.output import print_json
    from merkhet.core.text import printable
    from merkhet.reports.analysis_sections import analysis_sections
    from merkhet.reports.comparison_tables import legend, pair_tables

    if as_json:
        content = comparison.as_json()
        print_json(_finite(content["comparisons"] if plain else content))
        if not comparison.comparisons:
            Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(printable(comparison.verdict[0]))
        return
    console = Console(highlight=False, markup=False)
    _print_sentences(console, comparison.verdict)
    console.print()
    if not comparison.comparisons:
        _print_scores(console, comparison)
    for table in pair_tables(comparison.oriented):
        _print_table(console, table)
        console.print()
    _print_groups(console, comparison)
    known = [*comparison.question_remarks, *comparison.remarks]
    _print_sentences(console, known)
    if comparison.comparisons:
        if known:
            console.print()
        console.print(Text("What the columns mean", style="bold"))
        meanings = legend([*comparison.comparisons, *comparison.groups])
        _print_sentences(console, [f"{label}: {meaning}" for label, meaning in meanings])
    for section in analysis_sections(list(comparison.extrinsic)):
        _print_section(console, section)
    if file is not None:
        console.print()
        console.print(f"{'Page' if file.suffix == '.html' else 'Numbers'}: {printable(file)}", soft_wrap=True)


def _print_sentences(console: Console, sentences: Sequence[str]) -> None:
    from rich.text import Text

    from merkhet.core.text import printable

    for sentence in sentences:
        console.print(Text(printable(sentence)))


def _print_table(console: Console, table: ReportTable) -> None:
    from rich.text import Text

    from merkhet.reports.table_writers import as_terminal

    console.print(Text(table.title, style="bold"))
    console.print(as_terminal(table, console.width))
    if table.left_out:
        console.print(f"{table.left_out:,} more: use --json.")


def _print_groups(console: Console, comparison: ComparisonData) -> None:
    from merkhet.reports.comparison_tables import group_tables

    if comparison.column is None:
        return
    _print_sentences(console, comparison.group_sentences)
    console.print()
    for table in group_tables(comparison.groups, comparison.column):
        _print_table(console, table)
        console.print()


def _print_scores(console: Console, comparison: ComparisonData) -> None:
    """Print the scores of all models without paired differences."""
    from merkhet.reports.tables import score_table

    data = comparison.data
    if not data.scores.num_rows:
        return
    console.print("Scores, not paired:")
    console.print(
        score_table(
            data.scores,
            data.suite["headline"],
            width=console.width,
            baselines=data.baselines(),
            main_methods=data.suite.get("main_methods") or (),
        )
    )
    console.print()


def _finite(content: Any) -> Any:
    """Replace infinite numbers and NaN by None, because JSON cannot represent them."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _print_section(console: Console, section: AnalysisSection) -> None:
    """Print the title, tables and sentences of an analysis."""
    from merkhet.reports.table_writers import as_terminal

    console.print()
    console.print(section.title, style="bold", markup=False)
    for table in section.tables:
        console.print()
        console.print(table.title, markup=False)
        console.print(as_terminal(table, console.width))
    console.print()
    for sentence in section.sentences:
        console.print(sentence, markup=False)
