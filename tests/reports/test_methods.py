"""The methods section: it says what was done in this run, and cites what it names."""

from __future__ import annotations

import re
from dataclasses import replace

from report_pages import Page
from report_runs import make_card, make_run, score

from merkhet.core.schemas import SCORES, make_table
from merkhet.reports._citations import bibliography, cite_in_text
from merkhet.reports.html_report import render_html
from merkhet.reports.report_data import ReportData
from merkhet.suites import SUITES

NAMED = {
    "kmir": "Gao et al., 2022",
    "ontoprobe": "Wu et al., 2023",
    "chneval": "Wang and Hu, 2020",
    "lama-tk": "“Can Language Models serve as Temporal Knowledge Bases?”; Heinzerling and Inui, 2021",
}


def methods_of(data: ReportData) -> str:
    page = Page(render_html(data).partition('<section id="methods">')[2].partition("</section>")[0])
    assert page.mistakes == []
    return page.text


def compared(**more) -> dict:
    one = {"task": "completion", "metric": "r@1", "model": "a", "other": "b", "difference": 0.1}
    return {**one, "low": 0.05, "high": 0.2, "p": 0.01, **more}


def test_a_suite_is_cited_in_the_text_and_in_the_bibliography():
    run = make_run()
    for name, cited in NAMED.items():
        suite = SUITES.get(name)
        assert cite_in_text(suite.citations) == cited
        text = methods_of(replace(run, suite={**run.suite, "name": name, "citations": list(suite.citations)}))
        assert f"the suite {name} ({cited}) of merkhet 0.1.0" in text
        for entry in suite.citations:
            assert entry.split("{")[1].split(",")[0] in text


def test_everything_that_is_cited_has_an_entry_and_nothing_else_does():
    found = [compared(q=0.02, mcnemar=0.03), compared(task="checking", q=0.02)]
    text = methods_of(make_run(findings={"comparisons": found}))
    said, _, entries = text.partition("Citations")
    for name, year in (("Efron", 1987), ("Hesterberg", 2015), ("Holm", 1979), ("McNemar", 1947), ("Obuchowski", 1998)):
        assert f"{name}, {year}" in said and f"{{{name.lower()}{year}," in entries
    assert "Benjamini and Hochberg, 1995" in said and "{benjamini1995," in entries
    assert "Cameron" not in text, "nothing was computed in closed form"
    keys = re.findall(r"@\w+\{([^,]+),", entries)
    assert len(keys) == len(set(keys))


def test_one_comparison_needs_no_correction():
    one = methods_of(make_run(findings={"comparisons": [compared(q=0.01)]}))
    assert "permutation tests" in one and "Holm" not in one and "Benjamini" not in one
    two = methods_of(make_run(findings={"comparisons": [compared(), compared(task="checking")]}))
    assert "corrected for 2 comparisons by Holm’s method (Holm, 1979)" in two


def test_without_comparisons_nothing_is_said_of_tests():
    assert "permutation" not in methods_of(make_run(findings={}))


def test_the_questions_of_each_task_are_counted_before_the_facts():
    run = make_run(size=60)
    text = methods_of(replace(run, record={**run.record, "sampled": {"questions": 60, "of": 60}}))
    assert "We asked 60 questions in English (completion 40 and checking 20) about 5,312 facts" in text


def test_a_baseline_under_two_conditions_is_told_once():
    run = make_run(models=("frequency, 10 facts", "frequency, 20 facts"))
    records = [{**model, "kind": "baseline", "base": "frequency"} for model in run.record["models"]]
    answers = run.answers.set_column(
        run.answers.schema.get_field_index("method"), "method", [["symbols"] * run.answers.num_rows]
    )
    text = methods_of(replace(run, record={**run.record, "models": records}, answers=answers))
    assert text.count("answers what is masked most often in statements of a relation about facts that") == 1


def test_a_card_is_part_of_the_methods():
    text = methods_of(make_run(calibration=[make_card(probe="rank", kind="causal")]))
    assert "The probe rank passed its calibration with causal models (3 trainings, seed 0)." in text
    assert "it finds 96.0% [94.0, 98.0] of memorized facts, 11.0% [9.0, 13.0] of facts never shown" in text
    assert "No calibration is known" not in text
    assert "No calibration is known for rank (causal language model)." in methods_of(make_run())


def test_scores_have_their_meaning_beside_them():
    rows = [score("a", "completion", "r@1", 0.5), score("a", "checking", "accuracy", 0.5)]
    html = render_html(make_run(scores=make_table(SCORES, rows)))
    scores = Page(html.partition('<section id="scores">')[2].partition("</section>")[0]).text
    assert "R@1 a right answer is ranked first" in scores


def test_a_plain_citation_becomes_a_note_without_markup():
    [_, entry] = bibliography("1.0", "My Suite", ["Doe & Roe (2020): 100% of {it}_all"], [])
    assert entry == "@misc{my-suite-1,\n  note = {Doe \\& Roe (2020): 100\\% of it\\_all},\n  year = {2020}\n}"
