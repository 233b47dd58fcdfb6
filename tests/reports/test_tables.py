"""Tables of a report in every form, read back by other readers than those that wrote them."""

from __future__ import annotations

import csv
import io
import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import ARABIC, CHINESE, HOSTILE, LONG, make_run, score
from rich.console import Console
from table_readers import HtmlTable, LatexTable, markdown_rows

from merkhet.core.errors import InputError
from merkhet.core.schemas import ANSWERS, QUESTIONS, SCORES, make_table
from merkhet.reports._latex_tables import escape_latex
from merkhet.reports.comparison_tables import comparison_report_table
from merkhet.reports.table_model import ReportTable, TableCell, TableColumn
from merkhet.reports.table_writers import as_csv, as_html, as_latex, as_markdown, as_page_table, as_terminal
from merkhet.reports.tables import report_tables, score_report_table, select_tables

NASTY = "=cmd|'/c calc'!A1\\{}$&#^_~%<>\"[x]*\n\t--''`?"
ANALYSIS = {
    "name": "own",
    "tables": [
        {
            "caption": "one of everything",
            "columns": [
                {"name": kind, "kind": kind}
                for kind in ("text", "count", "share", "points", "number", "correlation", "p")
            ],
            "rows": [
                [
                    "a",
                    1234,
                    {"value": 1 / 3, "low": 0.25, "high": 0.75, "n": 8},
                    {"value": -0.1, "low": -0.3, "high": 0.1},
                    12.345,
                    -0.456,
                    0.0001,
                ],
                [None] * 7,
            ],
        }
    ],
}


def csv_rows(table: ReportTable) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(table))))


def named(data, name: str) -> ReportTable:
    return select_tables(report_tables(data), [name])[0]


def overall(data) -> list[dict]:
    return [row for row in data.scores.to_pylist() if row["relation"] is None and row["domain"] is None]


def test_every_overall_score_is_in_the_csv_with_all_its_digits():
    rows = [
        score("m", "completion", "r@1", 1 / 3, low=0.1 + 0.2, high=2 / 3, chance=1 / 7, n=40, unusable=3),
        score("m", "completion", "mean_rank", 12.345678901234567, low=None, high=None, chance=None, n=37),
        score("m", "checking", "accuracy", None, low=None, high=None),
    ]
    read = csv_rows(named(make_run(scores=make_table(SCORES, rows)), "all-scores"))
    assert [float(row["value"]) for row in read[:2]] == [1 / 3, 12.345678901234567] and read[2]["value"] == ""
    assert (float(read[0]["value low"]), float(read[0]["value high"])) == (0.1 + 0.2, 2 / 3)
    assert [row["value low"] for row in read[1:]] == ["", ""]
    assert float(read[0]["chance"]) == 1 / 7 and read[0]["n"] == "40" and read[0]["unusable"] == "3"
    assert float(read[0]["adjusted"]) == pytest.approx((1 / 3 - 1 / 7) / (1 - 1 / 7)) and read[1]["adjusted"] == ""
    assert [row["metric"] for row in read] == ["R@1", "mean_rank", "accuracy"]


def test_the_main_table_has_the_same_numbers_in_every_form():
    data = make_run()
    table = score_report_table(data)
    wanted = {(row["model"], row["task"], row["metric"]): row for row in overall(data)}
    by_csv = {row["model"]: row for row in csv_rows(table)}
    by_html = {row[0][0]: row[1:] for row in HtmlTable(as_html(table)).rows[1:]}
    by_markdown = {row[0]: row[1:] for row in markdown_rows(as_markdown(table))[1:]}
    latex = LatexTable(as_latex(table))
    by_latex = {row[0]: row[1:] for row in latex.rows}
    assert list(by_csv) == ["SmolLM2-135M", "minilm-mlm", "frequency"]
    for model in by_csv:
        for place, (task, metric, label) in enumerate(
            [("completion", "r@1", "completion R@1"), ("checking", "accuracy", "checking accuracy")]
        ):
            row = wanted[model, task, metric]
            assert [float(by_csv[model][f"{label}{end}"]) for end in ("", " low", " high", " chance")] == [
                row[name] for name in ("value", "low", "high", "chance")
            ]
            assert int(by_csv[model][f"{label} n"]) == row["n"]
            text = f"{100 * row['value']:.1f}"
            ends = f"[{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
            assert by_markdown[model][place] == f"{text} {ends}"
            assert by_latex[model][2 * place : 2 * place + 2] == [text, ends]
            shown, attributes = by_html[model][place]
            assert shown == f"{text} {ends}" and float(attributes["data-value"]) == row["value"]
    assert latex.bold[0] == [False, True, False, True, False], "the best model, and no baseline"
    assert not any(latex.bold[2]) and by_latex["chance"] == ["5.0", "", "50.0", ""]
    assert by_latex["questions"] == ["100", "", "100", ""]
    assert "\\toprule" in as_latex(table) and "\\bottomrule" in as_latex(table)
    assert "tab:scores" in as_latex(table) and latex.environments == ["table*", "tabular"]


def test_groups_stand_by_models_in_their_order_and_none_is_left_out():
    rows = [score("m", "completion", "r@1", 0.5)]
    rows += [score("m", "completion", "r@1", 0.1, relation=f"r{number}", n=1 + number) for number in range(400)]
    table = named(make_run(scores=make_table(SCORES, rows)), "by-relation-completion-r1")
    read = csv_rows(table)
    assert [row["relation"] for row in read] == [f"r{number}" for number in range(400)]
    assert read[-1]["m n"] == "400" and read[-1]["questions"] == "400"
    latex = LatexTable(as_latex(table))
    assert latex.environments == ["longtable"] and len(latex.rows) == 400
    assert "longtable" in latex.comments[0]


def test_comparisons_have_only_the_tests_that_were_done():
    plain = comparison_report_table(make_run())
    assert [column.label for column in plain.columns] == ["task", "metric", "model", "other", "difference", "p (Holm)"]
    pair = {
        **{"task": "completion", "metric": "r@1", "model": "a", "other": "b", "difference": -0.15, "low": -0.2},
        **{"high": -0.1, "p": 0.0002, "n": 50, "p_raw": 0.0001, "q": 0.0003, "mcnemar": 0.01, "effect": -0.4},
        **{"odds": 0.5, "detectable": 0.08, "facts": 40, "group_column": "domain", "group": "law"},
    }
    (row,) = csv_rows(comparison_report_table(make_run(findings={"comparisons": [pair]})))
    assert row["group"] == "domain" and row["of"] == "law"
    read = {name: float(row[name]) for name in row if name not in ("task", "metric", "group", "of", "model", "other")}
    assert read == {
        **{"difference": -0.15, "difference low": -0.2, "difference high": -0.1, "p (Holm)": 0.0002},
        **{"q (Benjamini–Hochberg)": 0.0003, "p (uncorrected)": 0.0001, "p (McNemar)": 0.01, "Cohen’s d": -0.4},
        **{"odds ratio": 0.5, "detectable": 0.08, "questions": 50, "facts": 40},
    }
    latex = LatexTable(as_latex(comparison_report_table(make_run(findings={"comparisons": [pair]}))))
    assert "-15.0" in latex.rows[0] and "[-20.0, -10.0]" in latex.rows[0] and "< 0.001" in latex.rows[0]


def test_tables_of_analyses_are_kept_whole():
    table = named(make_run(analyses=[ANALYSIS]), "own-1")
    first, second = csv_rows(table)
    assert float(first["share"]) == 1 / 3 and float(first["share low"]) == 0.25 and first["share n"] == "8"
    assert first["count"] == "1234" and float(first["p"]) == 0.0001 and float(first["points"]) == -0.1
    assert set(second.values()) == {""}
    assert markdown_rows(as_markdown(table))[1] == [
        *("a", "1,234", "33.3 [25.0, 75.0] n = 8", "-10.0 [-30.0, +10.0]", "12.3", "-0.46", "< 0.001")
    ]


NAMES = (NASTY, HOSTILE, ARABIC, CHINESE, "x" * 300, LONG, "[bold]x[/bold]", "a | b", "**b**")


def test_names_are_text_in_every_form():
    for name in NAMES:
        is_text_in_every_form(name)


def is_text_in_every_form(name):
    data = make_run(scores=make_table(SCORES, [score(name, "completion", "r@1", 0.5)]))
    table = score_report_table(data)
    plain = " ".join(name.split())
    assert csv_rows(table)[0]["model"].lstrip("'").split() == name.split()
    assert markdown_rows(as_markdown(table))[1][0] == plain
    page = HtmlTable(as_html(table))
    assert page.rows[1][0][0] == name and set(page.tags) <= {
        *("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "b", "small")
    }
    latex = LatexTable(as_latex(table))
    assert " ".join(latex.rows[0][0].split()) == plain
    foreign = any(ord(letter) > 0x24F for letter in name)
    assert any("XeLaTeX" in line for line in latex.comments) == foreign
    out = io.StringIO()
    Console(file=out, width=60).print(as_terminal(table, 60))
    assert "50.0  [46.0, 54.0]" in out.getvalue()


def test_a_table_goes_over_the_columns_of_a_paper_where_it_is_wide():
    for count, place, shrunk in ((1, "table", False), (3, "table*", False), (9, "table*", True)):
        rows = [score("model", f"task{number}", "r@1", 0.5) for number in range(count)]
        text = as_latex(score_report_table(make_run(scores=make_table(SCORES, rows), suite={})))
        latex = LatexTable(text)
        assert latex.environments == [place, "tabular"] and ("\\resizebox" in text) == shrunk, count
        assert ("graphicx" in latex.comments[0]) == shrunk, count


def test_what_latex_would_take_for_something_else_is_kept_apart():
    from table_readers import read

    assert (
        escape_latex("a--b,,c") == "a-{}-b,{},c" and escape_latex("<<?`") == r"\textless{}\textless{}?\textasciigrave{}"
    )
    broken = escape_latex("y" * 50)
    assert read(broken) == "y" * 50 and max(map(len, broken.split(r"\allowbreak{}"))) < 20


@given(st.text(max_size=40))
def test_any_text_can_be_escaped_for_latex(text):
    from table_readers import balanced, read

    written = escape_latex(text)
    assert balanced(written) and "\n" not in written
    shown = read(written)
    kept = [letter for letter in text if letter.isalnum() and letter.isascii()]
    assert [letter for letter in shown if letter.isalnum() and letter.isascii()] == kept


def test_a_spreadsheet_sees_no_formula_and_numbers_stay_numbers():
    for text in ("=1+1", "+x", "-ly", "@SUM(A1)", "\tx", "−x", "-1.5", "1e5", "plain"):
        columns = (TableColumn(text, number=False), TableColumn("n"))
        table = ReportTable("t", "t", columns, ((TableCell(text), TableCell("-2", -2.0)),))
        read = list(csv.reader(io.StringIO(as_csv(table))))
        guarded = text[0] in "=+-@\t" and not re.fullmatch(r"[+-]?\d+(\.\d+)?", text)
        assert [row[0] for row in read] == ["'" + text if guarded else text] * 2
        assert read[1][1] == "-2", text


def test_a_run_without_anything_has_no_tables_and_bare_forms_do_not_fail():
    empty = make_run(
        scores=make_table(SCORES, []),
        questions=make_table(QUESTIONS, []),
        answers=make_table(ANSWERS, []),
        findings={},
    )
    assert report_tables(empty) == []
    bare = score_report_table(empty)
    for form in (as_csv, as_markdown, as_latex, as_html):
        assert "nan" not in form(bare).lower()
    with pytest.raises(InputError, match="no scores"):
        select_tables([], ["scores"])


def test_scores_that_are_no_numbers_and_groups_of_nothing():
    rows = [score("m", "completion", "r@1", float("nan"), low=None, high=None, chance=None)]
    rows += [score("m", "completion", "r@1", None, relation="r", low=None, high=None)]
    for table in report_tables(make_run(scores=make_table(SCORES, rows), findings={"comparisons": [{}]})):
        for form in (as_csv, as_markdown, as_latex, as_html):
            assert not re.search(r"\bnan\b|None", form(table))
        LatexTable(as_latex(table))
        Console(file=io.StringIO()).print(as_terminal(table, 80))


def test_an_unknown_name_is_told_with_a_guess():
    with pytest.raises(InputError, match="comparisons"):
        select_tables(report_tables(make_run()), ["comparison"])


def test_tables_of_one_name_are_told_apart():
    rows = [score("m", task, "r@1", 0.5, relation=relation) for task in ("a b", "a-b") for relation in ("r", "s")]
    rows += [score("m", task, "r@1", 0.5) for task in ("a b", "a-b")]
    names = [table.name for table in report_tables(make_run(scores=make_table(SCORES, rows), suite={}))]
    assert len(set(names)) == len(names) and {"by-relation-a-b-r1", "by-relation-a-b-r1-2"} <= set(names)
    assert all(re.fullmatch(r"[a-z0-9-]{1,60}", name) for name in names)


def test_a_table_that_is_too_wide_is_split_and_each_part_has_the_names():
    rows = [
        score(model, f"task{number}", "r@1", 0.5 + number / 100) for model in ("able", "weak") for number in range(5)
    ]
    table = score_report_table(make_run(scores=make_table(SCORES, rows), suite={}))
    heads = [column.label for column in table.columns[1:]]
    for width, parts in ((200, 1), (60, 3), (30, 5)):
        out = io.StringIO()
        Console(file=out, width=width).print(as_terminal(table, width))
        lines = out.getvalue().splitlines()
        assert [line.split()[0] for line in lines if line.strip()].count("able") == parts, width
        assert re.findall(r"task\d R@1", out.getvalue()) == heads, width
        assert max(map(len, lines)) <= width, width
        values = [re.findall(r"5\d\.0(?=  \[)", line) for line in lines if line.startswith("weak")]
        assert [value for part in values for value in part] == ["50.0", "51.0", "52.0", "53.0", "54.0"], width


def test_the_table_of_a_page_has_the_same_cells_as_the_fragment():
    for table in report_tables(make_run(analyses=[ANALYSIS])):
        page, fragment = HtmlTable(str(as_page_table(table))), HtmlTable(as_html(table))
        texts = [[[text.strip() for text, _ in row] for row in form.rows] for form in (page, fragment)]
        assert texts[0] == texts[1], table.name
        for row, shown in zip(table.rows, page.rows[1:], strict=False):
            for cell, column, (_, attributes) in zip(row, table.columns, shown, strict=True):
                if column.number:
                    value = attributes["data-sort"]
                    assert value == "" if cell.value is None else float(value) == pytest.approx(cell.value, rel=1e-5)


def test_rows_that_do_not_fit_into_a_page_are_counted():
    columns = (TableColumn("name", number=False), TableColumn("n"))
    rows = tuple((TableCell(f"<{number}>"), TableCell(str(number), float(number))) for number in range(2000))
    table = ReportTable("t", "Many.", columns, rows)
    whole = as_page_table(table)
    assert "more" not in whole and len(HtmlTable(str(whole)).rows) == 2001
    size = len(whole) // 2000
    for shown, options in ((table, {"budget": 500 * size}), (table.first_rows(700), {"budget": 500 * size})):
        part = str(as_page_table(shown, rest="rows are <elsewhere>", **options))
        counted = int(re.search(r"([\d,]+) more rows are &lt;elsewhere&gt;\.", part).group(1).replace(",", ""))
        assert counted == 2000 - part.count('<th scope="row">') and 1400 < counted < 1600
    assert as_page_table(table, budget=0, minimum=20, rest="rows").count('<th scope="row">') == 20


def test_no_number_of_a_long_table_is_cut_on_a_terminal():
    tables = report_tables(make_run(analyses=[ANALYSIS]))
    assert len(tables) > 3
    for width, table in product((30, 50, 80, 120, 200), tables):
        out = io.StringIO()
        Console(file=out, width=width).print(as_terminal(table, width))
        shown = out.getvalue()
        assert all(len(line.rstrip()) <= width for line in shown.splitlines())
        numbers = [
            cell.text
            for row in table.rows
            for cell, column in zip(row, table.columns, strict=True)
            if column.number and cell.value is not None
        ]
        assert all(number in shown for number in numbers), (width, table.name, shown)
