"""Output of ``merkhet compare``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from merkhet.cli.run_output import print_json, print_section
from merkhet.core.files import write_json, write_text
from merkhet.reports.analysis_sections import analysis_sections
from merkhet.reports.comparison_page import ComparisonData, render_comparison
from merkhet.reports.comparison_tables import as_terminal_tables, group_tables, legend, pair_tables
from merkhet.reports.formatting import printable
from merkhet.reports.table_model import ReportTable
from merkhet.reports.tables import score_table


def write_comparison(comparison: ComparisonData, file: Path) -> None:
    """Write the comparison as a page, or as JSON."""
    if file.suffix == ".json":
        write_json(file, _finite(comparison.as_json()))
    else:
        write_text(file, render_comparison(comparison))


def print_comparison(comparison: ComparisonData, file: Path | None, *, as_json: bool, plain: bool) -> None:
    """Print the verdict, the paired tables, remarks on the runs, and the path of the page.

    As JSON, ``plain`` prints the bare list of comparisons that scripts rely on.
    """
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
        _print_sentences(console, legend([*comparison.comparisons, *comparison.groups]))
    for section in analysis_sections(list(comparison.extrinsic)):
        print_section(console, section)
    if file is not None:
        console.print()
        console.print(f"{'Page' if file.suffix == '.html' else 'Numbers'}: {printable(file)}", soft_wrap=True)


def _print_sentences(console: Console, sentences: Sequence[str]) -> None:
    for sentence in sentences:
        console.print(Text(printable(sentence)))


def _print_table(console: Console, table: ReportTable) -> None:
    console.print(Text(table.title, style="bold"))
    for part in as_terminal_tables(table, console.width):
        console.print(part)
    if table.note:
        console.print(Text(table.note))


def _print_groups(console: Console, comparison: ComparisonData) -> None:
    if comparison.column is None:
        return
    _print_sentences(console, comparison.group_sentences)
    console.print()
    for table in group_tables(comparison.groups, comparison.column):
        _print_table(console, table)
        console.print()


def _print_scores(console: Console, comparison: ComparisonData) -> None:
    """Print the scores side by side, not paired."""
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
    """Replace infinite and undefined numbers by None, because JSON has none."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
