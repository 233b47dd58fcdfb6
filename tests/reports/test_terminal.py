from __future__ import annotations

import io
import re

from report_runs import CHINESE, HEADLINE, HOSTILE, make_run, score
from rich.console import Console

from merkhet.core.schemas import SCORES, make_table
from merkhet.reports.tables import score_table


def shown(table, width=100, **options) -> str:
    out = io.StringIO()
    Console(file=out, width=width, **options).print(table)
    return out.getvalue()


def test_scores_intervals_and_chance_are_aligned_by_their_decimals():
    scores = make_table(
        SCORES,
        [
            score("large", "completion", "r@1", 0.412, low=0.393, high=0.43),
            score("small", "completion", "r@1", 0.061, low=0.052, high=0.07),
        ],
    )
    lines = [line.rstrip() for line in shown(score_table(scores, HEADLINE, width=100)).splitlines()]
    assert lines == [
        "         completion R@1",
        "large    41.2  [39.3, 43.0]",
        "small     6.1   [5.2,  7.0]",
        "chance    5.0",
    ]


def test_plain_text_without_colour_codes_when_nobody_watches():
    assert "\x1b" not in shown(score_table(make_run().scores, HEADLINE))


def bold(text: str) -> list[str]:
    return [found.strip() for found in re.findall(r"\x1b\[1m([^\x1b]*)\x1b", text)]


def test_the_best_of_each_column_is_bold_and_a_baseline_never_is():
    scores = make_table(
        SCORES,
        [
            score("a", "completion", "r@1", 0.3),
            score("b", "completion", "r@1", 0.2),
            score("frequency", "completion", "r@1", 0.9),
        ],
    )
    options = {"force_terminal": True, "color_system": "standard"}
    among_models = bold(shown(score_table(scores, HEADLINE, width=100, baselines={"frequency"}), **options))
    among_all = bold(shown(score_table(scores, HEADLINE, width=100), **options))
    assert "30.0  [26.0, 34.0]" in among_models and not any("90.0" in text for text in among_models)
    assert "90.0  [86.0, 94.0]" in among_all and not any("30.0" in text for text in among_all)


def test_no_number_is_ever_cut():
    run = make_run(models=("a-model-with-a-rather-long-name-4bit", "minilm-mlm", "frequency"))
    for width in (30, 40, 60, 79, 80, 100, 200):
        text = shown(score_table(run.scores, HEADLINE, width=width), width=width)
        assert "…" not in text, width
        assert text.count("[") == text.count("]") == 6, width
        assert all(len(line.rstrip()) <= width for line in text.splitlines()), width
        for number in ("50.0", "45.0", "10.0", "75.0", "72.5", "55.0"):
            assert number in text, width


def test_the_terminal_s_own_width_decides_when_none_is_given(monkeypatch):
    monkeypatch.setenv("COLUMNS", "36")
    text = shown(score_table(make_run().scores, HEADLINE), width=36)
    assert text.count("SmolLM2-135M") == 2, "stacked: each model once for each score"


def test_one_row_for_each_method_only_where_a_model_used_several():
    scores = make_table(
        SCORES,
        [
            score("a", "completion", "r@1", 0.3, method="sum"),
            score("a", "completion", "r@1", 0.4, method="mean"),
            score("b", "completion", "r@1", 0.2, method="sum"),
            score("b", "checking", "accuracy", 0.6, method="choose"),
        ],
    )
    text = shown(score_table(scores, HEADLINE, width=100))
    assert re.search(r"^a \(sum\) +30\.0", text, re.M) and re.search(r"^a \(mean\) +40\.0", text, re.M)
    assert re.search(r"^b +20\.0 .* 60\.0", text, re.M)


def test_missing_scores_are_dashes_and_missing_columns_are_left_out():
    scores = make_table(
        SCORES,
        [
            score("a", "completion", "r@1", None, chance=None),
            score("b", "completion", "r@1", float("nan"), low=float("nan"), chance=None),
        ],
    )
    text = shown(score_table(scores, HEADLINE, width=100))
    assert re.search(r"^a +–$", text.replace(" \n", "\n"), re.M) or re.search(r"^a +– *$", text, re.M)
    assert "nan" not in text and "checking" not in text


def test_no_scores_at_all_are_said_in_words():
    assert "no scores" in shown(score_table(make_table(SCORES, []), HEADLINE))


def test_without_a_headline_each_task_s_first_metric_is_taken():
    text = shown(score_table(make_run().scores, [], width=100))
    assert "completion R@1" in text and "checking accuracy" in text and "MRR" not in text


def test_group_rows_are_not_taken_for_overall_ones():
    scores = make_table(
        SCORES, [score("a", "completion", "r@1", 0.9, relation="capital of"), score("a", "completion", "r@1", 0.3)]
    )
    text = shown(score_table(scores, HEADLINE, width=100))
    assert "30.0" in text and "90.0" not in text


def test_names_are_text_and_not_markup():
    scores = make_table(
        SCORES,
        [
            score("[bold]x[/bold]", "completion", "r@1", 0.3),
            score(CHINESE, "completion", "r@1", 0.3),
            score(HOSTILE, "completion", "r@1", 0.3),
        ],
    )
    text = shown(score_table(scores, HEADLINE, width=120), width=120)
    assert "[bold]x[/bold]" in text and CHINESE in text and HOSTILE in text


def test_a_metric_that_is_no_share_keeps_its_own_unit():
    scores = make_table(
        SCORES,
        [
            score("a", "completion", "mean_rank", 12.5, low=11.0, high=14.0, chance=50.0),
            score("b", "completion", "mean_rank", 20.0, low=18.0, high=22.0, chance=50.0),
        ],
    )
    headline = [{"task": "completion", "metric": "mean_rank"}]
    assert "12.5  [11, 14]" in shown(score_table(scores, headline, width=100))
    text = shown(score_table(scores, headline, width=100), force_terminal=True, color_system="standard")
    assert any("12.5" in found for found in bold(text)) and not any("20" in found for found in bold(text))


def test_equals_are_bold_together():
    scores = make_table(SCORES, [score(name, "completion", "r@1", 0.3) for name in ("a", "b")])
    text = shown(score_table(scores, HEADLINE, width=100), force_terminal=True, color_system="standard")
    assert sum("30.0" in found for found in bold(text)) == 2
