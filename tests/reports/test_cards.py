"""Calibration cards in a report: which speak for a run, and what is said where there is none."""

from __future__ import annotations

from dataclasses import replace

from report_pages import Page
from report_runs import make_card, make_run

from merkhet.reports._calibration_section import calibration_sentences, calibration_status, calibration_warnings
from merkhet.reports.html_report import render_html
from merkhet.reports.report_data import ReportData


def part(data: ReportData, name: str) -> str:
    return Page(render_html(data).partition(f'<section id="{name}">')[2].partition("</section>")[0]).text


def test_cards_of_the_run_s_kinds_of_models_come_first_and_others_aside():
    cards = [make_card(probe="rank", kind=kind) for kind in ("masked", "causal")]
    run = make_run(calibration=cards)
    found = calibration_status(run)
    assert [card["kind"] for card in found.cards] == ["causal"] and [card["kind"] for card in found.other_cards] == [
        "masked"
    ]
    assert found.missing == []
    text = part(run, "calibration")
    assert text.index("rank with causal models") < text.index("kinds of models that are not in this run (1)")


def test_a_card_for_another_kind_does_not_speak_for_this_one():
    run = make_run(calibration=[make_card(probe="rank", kind="masked")])
    assert calibration_status(run).missing == [("rank", "causal")]
    assert "The probe rank has no calibration card for causal models." in part(run, "calibration")


def test_a_card_without_a_kind_speaks_for_all():
    assert calibration_status(make_run(calibration=[make_card(probe="rank", kind="") | {"kind": None}])).missing == []


def test_baselines_need_no_card():
    found = calibration_status(make_run(models=("frequency",)))
    assert found.missing == [] and calibration_sentences(found) == []


def test_several_cards_are_told_from_the_least_to_the_most():
    run = make_run()
    records = [
        {**model, "kind": "masked"} if model["name"] == "minilm-mlm" else model for model in run.record["models"]
    ]
    weaker = make_card(probe="rank", kind="masked")
    weaker["rows"] = [{**row, "value": 0.91} if row["value"] == 0.96 else row for row in weaker["rows"]]
    cards = [make_card(probe="rank", kind="causal"), weaker]
    [told] = calibration_sentences(
        calibration_status(replace(run, record={**run.record, "models": records}, calibration=cards))
    )
    assert told == (
        "Calibrated and passed: rank with causal models and rank with masked models. In small models of known content "
        "they find 91.0–96.0% of memorized facts and 11.0% of facts never shown (chance 10.0%)."
    )


def test_a_probe_that_finds_what_was_never_shown_is_a_warning():
    found = calibration_status(make_run(calibration=[make_card(probe="rank", kind="causal", passed=False)]))
    [warning] = calibration_warnings(found)
    assert "failed its calibration" in warning and "never shown (trained) it scores 80.0% [78.0, 82.0]" in warning
    assert calibration_sentences(found) == []


def test_methods_that_a_card_is_not_about_are_named():
    card = make_card(probe="rank", kind="causal") | {"method": "sum"}
    assert "methods that the card does not cover: mean" in part(make_run(calibration=[card]), "calibration")


def test_a_card_that_was_made_after_the_run_is_in_its_report(merkhet, tmp_path):
    given = ("--knowledge", "elements", "--limit", "3", "--set", "report=none")
    merkhet("run", "quickstart", "--model", "random", *given, "--out", "run", check=0)
    (tmp_path / "run" / "calibration.json").unlink()
    merkhet("report", "run", "--out", "late.html", check=0)
    text = Page((tmp_path / "late.html").read_text(encoding="utf-8")).text
    assert "rank with masked models" in text and "rank with causal models" in text
