from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from dataclasses import replace

import pyarrow as pa
import pytest
from report_pages import Page
from report_runs import ARABIC, CHINESE, HOSTILE, LONG, make_run, score

from merkhet.core.schemas import ANSWERS, QUESTIONS, SCORES, make_table
from merkhet.reports.comparison_tables import verdict_table
from merkhet.reports.html_report import render_html
from merkhet.reports.report_data import ReportData

SECTIONS = (
    *("summary", "scores", "figures", "compared", "calibration", "questions", "unusable", "methods", "reproduce"),
)


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render_html(make_run()))


def test_every_section_is_there_and_in_the_contents(page):
    ids = [attributes["id"] for attributes in page.all("section")]
    assert [name for name in ids if not name.startswith("by-")] == list(SECTIONS)
    assert len([name for name in ids if name.startswith("by-")]) == 2
    links = {attributes["href"] for attributes in page.all("a")}
    assert {f"#{name}" for name in ids} <= links


def test_the_page_is_well_formed_and_its_ids_are_its_own(page):
    assert page.mistakes == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_page_says_what_the_run_found(page):
    for words in (
        "What SmolLM2 knows",
        "knows capitals (92%)",
        "2026-01-05",
        "merkhet 0.1.0",
        "5,312",
        "60.0 [56.0, 64.0]",
        "+15.0 [+8.0, +22.0]",
        "< 0.001",
        "SmolLM2-135M is ahead",
        "no significant difference",
        "too long",
        "mean log-probability",
        "@software{merkhet",
        "4be1c0de" * 8,
        "9f2c" * 16,
        "134,515,008",
        "transformers",
        "4.57.1",
        "merkhet run quickstart",
        "x86-64, 2 cores",
    ):
        assert words in page.text, words


def test_baselines_are_never_the_best_model():
    run = make_run()
    rows = [row | {"value": 0.99} if row["model"] == "frequency" else row for row in run.scores.to_pylist()]
    page = Page(render_html(replace(run, scores=make_table(SCORES, rows))))
    best = [data for tag, data in page.texts if tag == "b"]
    assert "60.0" in best and "99.0" not in best


def test_nothing_is_loaded_from_anywhere():
    html = render_html(make_run())
    page = Page(html)
    for tag, attributes in page.elements:
        for name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
            place = attributes.get(name, "#")
            assert place.startswith(("#", "data:")), (tag, name, place)
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)", html)
    policy = next(meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert [tag for tag, _ in page.elements if tag in ("iframe", "img", "object", "embed")] == []


@pytest.fixture(scope="module")
def hostile() -> Page:
    run = make_run(models=(HOSTILE, ARABIC, CHINESE, LONG), relations=(HOSTILE, ARABIC, CHINESE, LONG))
    texts = {"title": HOSTILE, "about": HOSTILE, "methods": HOSTILE, "citations": [HOSTILE]}
    rows = [row | {"prompt": f"{HOSTILE} [MASK]", "answers": [HOSTILE]} for row in run.questions.to_pylist()]
    run = replace(
        run,
        title=HOSTILE,
        suite={**run.suite, **texts},
        study={HOSTILE: HOSTILE},
        questions=make_table(QUESTIONS, rows),
        findings={
            "sentences": [HOSTILE],
            "unusable": [{"model": HOSTILE, "reason": HOSTILE, "count": 3}],
            "comparisons": [
                {
                    "task": HOSTILE,
                    "metric": "r@1",
                    "model": HOSTILE,
                    "other": HOSTILE,
                    "difference": 0.1,
                    "low": 0.05,
                    "high": 0.2,
                    "p": 0.01,
                }
            ],
        },
        record={
            **run.record,
            "command": HOSTILE,
            "merkhet": HOSTILE,
            "machine": {HOSTILE: HOSTILE},
            "versions": HOSTILE,
            "date": HOSTILE,
        },
    )
    return Page(render_html(run))


def test_labels_are_text_wherever_they_stand(hostile):
    assert len(hostile.all("script")) == 1
    assert hostile.mistakes == []
    assert not any("alert" in data for tag, data in hostile.texts if tag in ("script", "style"))
    assert not any(name.startswith("on") for _, attributes in hostile.elements for name in attributes)
    places = {tag for tag, data in hostile.texts if HOSTILE in data}
    assert {"h1", "title", "p", "pre", "span", "dd", "bdi"} <= places


def test_right_to_left_chinese_and_long_names_are_whole(hostile):
    for name in (ARABIC, CHINESE, LONG):
        assert name in hostile.text
    directed = [attributes for tag, attributes in hostile.elements if attributes.get("dir") == "auto"]
    assert len(directed) > 50


def test_characters_that_no_document_may_hold_are_shown_as_replaced():
    run = make_run(models=("bad\x00name\x1b[31m", "other"), title="a\ud800b")
    html = render_html(run)
    html.encode("utf-8")
    assert "\x00" not in html and "\x1b" not in html
    assert "bad�name" in Page(html).text


def test_equal_runs_give_equal_pages():
    assert render_html(make_run()) == render_html(make_run())


def test_the_sample_does_not_depend_on_the_order_of_answers():
    run = make_run()
    order = pa.array(range(run.answers.num_rows - 1, -1, -1))
    turned = replace(run, answers=run.answers.take(order))
    assert section(render_html(run), "questions") == section(render_html(turned), "questions")


def section(html: str, name: str) -> str:
    return html.partition(f'<section id="{name}">')[2].partition("</section>")[0]


def test_the_sample_has_right_and_wrong_answers_of_every_model_and_task():
    from merkhet.reports._answer_outcomes import judge_answers
    from merkhet.reports._question_samples import sample_questions
    from merkhet.reports.scoreboard import build_scoreboard

    run = make_run(size=120)
    board = build_scoreboard(run.scores, run.suite["headline"])
    tasks = sample_questions(
        run.questions, run.answers, judge_answers(run.questions, run.answers, run.candidates, board)
    )
    assert [task["task"] for task in tasks] == ["completion", "checking"]
    for task in tasks:
        seen = {(reply["model"], reply["verdict"]) for question in task["questions"] for reply in question["replies"]}
        for model in ("SmolLM2-135M", "minilm-mlm", "frequency"):
            assert {(model, "right"), (model, "wrong")} <= seen
        for question in task["questions"]:
            assert all(len(reply["top"]) <= 3 for reply in question["replies"])
            for reply in question["replies"]:
                if reply["verdict"] != "unusable":
                    assert (reply["verdict"] == "right") == (reply["top"][0]["text"] in question["golds"])
                    assert (reply["verdict"] == "right") == (reply["rank"] == "1")


def test_many_models_and_groups_fit_too_and_what_is_left_out_is_said():
    rows = [
        score(f"model {model}", "completion", "r@1", 0.5, relation=f"relation {number}", n=1000 - number)
        for model in range(25)
        for number in range(700)
    ]
    rows += [score(f"model {model}", "completion", "r@1", 0.5) for model in range(25)]
    html = render_html(make_run(scores=make_table(SCORES, rows)))
    assert len(html.encode()) < 5_000_000
    text = Page(section(html, "by-0")).text
    assert "relation 0" in text and "relation 699" not in text and "400 more rows are in" in text


def test_a_typical_page_is_light():
    assert len(render_html(make_run(size=600)).encode()) < 1_000_000


def test_group_tables_can_be_sorted_and_read_without_script(page):
    tables = [attributes for attributes in page.all("table") if "sortable" in attributes.get("class", "")]
    assert len(tables) >= 4
    cells = [attributes for attributes in page.all("td") if "data-sort" in attributes]
    assert {"0.6", "0.45"} <= {attributes["data-sort"] for attributes in cells}
    assert not page.all("button"), "buttons are made by the script, so that there are none that do nothing"


def test_rows_split_by_two_columns_are_not_mixed_with_rows_split_by_one():
    rows = [
        score("a", "completion", "r@1", 0.3),
        score("a", "completion", "r@1", 0.25, relation="capital"),
        score("a", "completion", "r@1", 0.35, relation="author"),
        score("a", "completion", "r@1", 0.777, relation="capital", template="t1"),
    ]
    html = render_html(make_run(scores=make_table(SCORES, rows)))
    assert "25.0" in section(html, "by-0") and "77.7" not in section(html, "by-0")


EMPTY = ReportData(
    "Nothing", {}, {}, {}, make_table(SCORES, []), make_table(QUESTIONS, []), {}, make_table(ANSWERS, []), {}
)


def test_a_run_without_anything_is_told_in_words():
    page = Page(render_html(EMPTY))
    for words in (
        "no findings",
        "no overall scores",
        "nothing to draw",
        "No models were compared",
        "no answers",
        "None:",
        "no description",
        "no record",
    ):
        assert words in page.text, words


def test_one_model_with_one_question():
    questions = make_table(
        QUESTIONS, [{"prompt": "Paris is [MASK].", "answers": ["big"], "target": "big", "choices": ["big", "small"]}]
    )
    identity = questions["question_id"][0].as_py()
    answers = make_table(
        ANSWERS,
        [{"question_id": identity, "model": "one", "probe": "generate", "method": "greedy", "prediction": "big"}],
    )
    page = Page(render_html(replace(EMPTY, questions=questions, answers=answers)))
    assert "1 of 1 right" in page.text and "Paris is" in page.text


def test_scores_that_are_no_numbers_are_dashes():
    rows = [
        score("a", "completion", "r@1", float("nan"), low=float("nan"), high=None, chance=float("nan")),
        score("a", "completion", "r@1", None, relation="capital", chance=None),
        score("a", "completion", "r@1", float("inf"), relation="author"),
    ]
    html = render_html(replace(EMPTY, scores=make_table(SCORES, rows)))
    text = Page(html).text
    assert "–" in text and not re.search(r"\b(nan|NaN|None(?!:)|inf)\b", text)


def test_answers_to_unknown_questions_and_all_unusable():
    run = make_run()
    rows = [
        {"question_id": "q_none", "model": "a", "probe": "rank", "method": "mean", "gold_ranks": [1.0]},
        {"question_id": "q_1", "model": "a", "probe": "rank", "method": "mean", "unusable": "no such token"},
    ]
    findings = {key: value for key, value in run.findings.items() if key != "unusable"}
    page = Page(render_html(replace(run, answers=make_table(ANSWERS, rows), findings=findings)))
    assert "There are no answers to show." in page.text
    assert "no such token 1" in page.text, "counted from the answers where the findings name none"


def test_a_model_that_answered_by_two_methods_has_a_line_for_each():
    run = make_run(models=("one",))
    again = [row | {"method": "sum", "value": 0.123} for row in run.scores.to_pylist()]
    twice = [row | {"method": "sum"} for row in run.answers.to_pylist()]
    run = replace(
        run,
        scores=make_table(SCORES, run.scores.to_pylist() + again),
        answers=make_table(ANSWERS, run.answers.to_pylist() + twice),
    )
    html = render_html(run)
    scores = Page(section(html, "scores")).text
    assert "one (mean) 50.0" in scores and "one (sum) 12.3" in scores
    assert "2 of 2 right" in html and "1 of 1 right" not in html


def test_a_tie_for_the_first_rank_is_not_right():
    run = make_run(size=1)
    rows = [
        {
            "question_id": "q_0",
            "model": "SmolLM2-135M",
            "probe": "rank",
            "method": "mean",
            "gold_ranks": [1.5],
            "prediction": "place 0",
            "ranked": [{"candidate": "place 0", "score": 1.0}],
        }
    ]
    page = Page(render_html(replace(run, answers=make_table(ANSWERS, rows))))
    assert "0 of 1 right" in page.text and "1.5" in page.text


def test_the_room_is_light_to_enter():
    code = """
        import sys
        import merkhet.reports
        heavy = {"jinja2", "torch", "vl_convert", "rich", "pandas"} & set(sys.modules)
        assert not heavy, heavy
        import merkhet.reports.html_report, merkhet.reports.tables
        assert callable(merkhet.reports.html_report.render_html)
        assert callable(merkhet.reports.tables.score_table)
        assert "vl_convert" not in sys.modules and "torch" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_who_is_ahead_is_said_where_the_corrected_p_says_so_too():
    found = {"task": "completion", "metric": "r@1", "model": "a", "other": "b", "difference": 0.02, "low": 0.01}
    table = verdict_table([{**found, "high": 0.03, "p": p} for p in (0.01, 0.2)])
    verdict = [column.label for column in table.columns].index("verdict")
    assert [row[verdict].text for row in table.rows] == ["a is ahead", "no significant difference"]
