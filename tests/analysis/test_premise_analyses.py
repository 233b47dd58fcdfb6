"""Premises and prompting, against obvious sums over the answers of a made-up run."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from statistics import mean

import pytest
from ontology_runs import (
    COMBINED,
    METHODS,
    PARROT,
    REASONER,
    RULES,
    SIZES,
    TEMPLATES,
    made_of,
    make_ontology_run,
    score_by_hand,
)

from merkhet.analysis.finding_text import render
from merkhet.analysis.finding_types import FEW, NO_QUESTIONS, Finding, Kind, Verdict
from merkhet.analysis.types import metric_label
from merkhet.suites.ontoprobe.analyses.premise_effects import PREMISE_STATES, SETTINGS, describe_effects, premises
from merkhet.suites.ontoprobe.analyses.prompt_effects import prompting
from merkhet.suites.ontoprobe.analyses.task_scores import METRICS, soft_loss

NAMES = {metric_label(metric.name): metric for metric in METRICS}


@pytest.fixture(scope="module")
def given():
    return make_ontology_run()


def test_settings_are_counted_by_rule_and_model(given):
    found = made_of(premises, given)
    tables = {table.caption: table for table in found.tables}
    for model in (REASONER, f"{PARROT}, soft"):
        table = tables[f"{model}: MRR by how the premises are given."]
        assert [column.name for column in table.columns] == ["P1", "P2", "all rules", *RULES]
        for first, second, overall, *cells in table.rows:
            setting = "OT/EX" if first == "another (control)" else f"{first}/{second}"
            expected = [score_by_hand(given, "MRR", task=rule, model=model, setting=setting) for rule in RULES]
            assert [cell.value for cell in cells] == pytest.approx([value for value, _ in expected])
            assert [cell.n for cell in cells] == [n for _, n in expected]
            assert overall.value == pytest.approx(mean(value for value, _ in expected))
            assert overall.n == sum(n for _, n in expected)
        assert len(table.rows) == 10


def test_means_compare_settings_over_the_rules_that_have_all_of_them(given):
    rules = list(RULES)
    gone = {name: label for name, label in given.premise_settings.items() if label == "IM/IM"}
    rule_of = {row["question_id"]: row["task"] for row in given.questions}
    kept = {
        key: label
        for key, label in given.premise_settings.items()
        if key not in gone or rule_of[key[1]] not in rules[:2]
    }
    found = made_of(premises, replace(given, premise_settings=kept))
    tables = {table.caption: table for table in found.tables}
    caption = next(name for name in tables if name.startswith(f"{REASONER}: MRR"))
    assert caption.endswith(f"asked in every setting: {', '.join(rules[2:-1])} and {rules[-1]}.")
    table = tables[caption]
    assert table.columns[2].name == "mean of 4 rules"
    for first, second, overall, *_ in table.rows:
        setting = "OT/EX" if first == "another (control)" else f"{first}/{second}"
        expected = [score_by_hand(given, "MRR", task=rule, model=REASONER, setting=setting) for rule in rules[2:]]
        assert overall.value == pytest.approx(mean(value for value, _ in expected)), setting
        assert overall.n == sum(n for _, n in expected)
    assert f"mean over 4 rules ({', '.join(rules[2:-1])} and {rules[-1]}) and 4 models." in found.tables[0].caption
    places = [(row["x"], row["bar"]) for row in found.figures[1].rows if row["panel"] == rules[0]]
    assert [f"{x}/{bar}" for x, bar in places] == list(SETTINGS), "what was not asked keeps its place"


def test_the_mean_is_over_rules_then_models(given):
    found = made_of(premises, given)
    table, figure = found.tables[0], found.figures[0]
    models = (REASONER, PARROT, f"{REASONER}, soft", f"{PARROT}, soft")
    expected = {
        setting: mean(
            mean(score_by_hand(given, "MRR", task=rule, model=model, setting=setting)[0] for rule in RULES)
            for model in models
        )
        for setting in SETTINGS
    }
    assert {f"{row['x']}/{row['bar']}": row["value"] for row in figure.rows} == pytest.approx(expected)
    cells = {
        f"{row[0]}/{second}": cell.value
        for row in table.rows
        for second, cell in zip(PREMISE_STATES, row[1:], strict=True)
    }
    assert cells == pytest.approx(expected)
    assert figure.caption.startswith("MRR by how the premises are given, mean over rules and 4 models. EX: in the text")


def test_each_model_has_a_figure_with_a_panel_for_each_rule(given):
    figures = made_of(premises, given).figures[1:]
    assert [figure.kind for figure in figures] == ["bars"] * 4
    for figure in figures:
        assert list(dict.fromkeys(row["panel"] for row in figure.rows)) == list(RULES)
        assert [f"{row['x']}/{row['bar']}" for row in figure.rows[:9]] == list(SETTINGS)


def test_a_reasoner_is_told_from_a_parrot(given):
    told = dict(zip((REASONER, PARROT), made_of(premises, given).sentences, strict=False))
    assert told[REASONER].startswith("reasoner (rank, multiple-mean) ranks the answer at MRR ")
    assert ", and with a premise about something else it ranks that premise's answer at only " in told[REASONER]
    assert told[REASONER].endswith("%: it applies the rule.")
    assert "; but with a premise about something else" in told[PARROT]
    assert told[PARROT].endswith("% as well: it repeats what it has read.")
    both = score_mean(given, REASONER, "EX/EX")
    neither = score_mean(given, REASONER, ("NO/NO", "NO/IM", "IM/NO", "IM/IM"))
    assert (
        f"MRR {100 * both:.1f}% with both premises in the text and {100 * neither:.1f}% with neither" in told[REASONER]
    )


def score_mean(given, model, setting):
    return mean(score_by_hand(given, "MRR", task=rule, model=model, setting=setting)[0] for rule in RULES)


def changed(given, ranks):
    """The answers of the reasoner to reasoning questions, ranked by their setting and the number of the fact."""
    answers = []
    for answer in given.answers:
        setting = given.premise_settings.get((answer["model"], answer["question_id"]))
        if answer["model"] == REASONER and setting and answer["unusable"] is None:
            number = int(given.clusters[answer["question_id"]][-5:])
            answer = {**answer, "gold_ranks": [float(ranks(setting, number))], "gold_ties": [1]}
        answers.append(answer)
    return replace(given, answers=answers)


def test_what_cannot_be_told_is_not_told(given):
    between = changed(
        given, lambda setting, number: 1 if setting == "EX/EX" or (number % 2 and setting == "OT/EX") else 30
    )
    assert (
        premises(between)
        .sentences[0]
        .endswith("the data do not show whether it applies the rule or repeats what it has read.")
    )
    deaf = changed(given, lambda setting, number: 1 + number % 3)
    assert premises(deaf).sentences[0].endswith("with neither: reading the premises does not clearly help it.")
    settings = {key: setting for key, setting in given.premise_settings.items() if setting != "OT/EX"}
    alone = replace(given, premise_settings=settings)
    assert premises(alone).sentences[0].endswith("; no control was asked to tell reasoning from repetition.")
    assert all("control" not in str(row[0]) for table in premises(alone).tables for row in table.rows)


def test_sentences_follow_from_findings_that_are_read_back(given):
    made = made_of(premises, given)
    stored = [Finding.from_json(json.loads(json.dumps(finding.as_json()))) for finding in made.findings]
    assert tuple(describe_effects(stored)) == made.sentences
    by_group = {finding.group: finding for finding in stored if finding.model == PARROT}
    assert by_group["repetition - reasoning"].verdict is Verdict.AHEAD and "reasoning - repetition" not in by_group
    assert by_group["EX/EX - neither"].value == pytest.approx(by_group["EX/EX"].value - by_group["neither"].value)


def test_a_model_that_is_always_right_needs_no_premises(given):
    told = premises(changed(given, lambda setting, number: 1)).sentences[0]
    assert told.endswith(
        "MRR 100.0% with both premises in the text and 100.0% with neither: the premises have no room to help."
    )


def test_premise_settings_of_a_few_questions_are_announced_and_get_no_verdict():
    few = make_ontology_run(dict.fromkeys(SIZES, 1), models=(REASONER,))
    made = premises(few)
    told = made.sentences[0]
    assert told.endswith("questions (6, 6, 6) and get no verdict.") and "it applies" not in told
    sizes = Counter(
        (few.questions_by_id[name].task, setting)
        for (model, name), setting in few.premise_settings.items()
        if model == REASONER and few.questions_by_id[name].task in RULES
    )
    designs = {
        finding.reason: finding
        for finding in made.findings
        if finding.kind is Kind.DESIGN and finding.model == REASONER
    }
    assert {finding.total for finding in designs.values()} == {len(RULES) * 10}
    assert designs[FEW].count == len(sizes) and designs[NO_QUESTIONS].count == len(RULES) * 10 - len(sizes)
    assert render(list(designs.values())) == [
        f"Without any question: {60 - len(sizes)} of 60 premise settings of rules for {REASONER}.",
        f"Fewer than 10 questions, too few for a verdict: {len(sizes)} of 60 premise settings of rules for {REASONER}.",
    ]


def test_multiple_choice_by_how_the_first_premise_is_given(given):
    table = made_of(premises, given).tables[-1]
    assert table.caption.endswith("chance is 5.0%.")
    assert [row[:2] for row in table.rows] == [
        (model, first) for model in (REASONER, PARROT) for first in PREMISE_STATES
    ]
    for model, first, overall, *cells in table.rows:
        wanted = {"model": model, "setting": f"{first}/EX"}
        expected = [score_by_hand(given, "R@1", task=f"{rule}-choice", **wanted)[0] for rule in RULES]
        assert [cell.value for cell in cells] == pytest.approx(expected)
        assert overall.value == pytest.approx(mean(expected))


def test_templates_and_conjunctions_are_compared_without_the_control(given):
    table = made_of(prompting, given).tables[0]
    assert [row[0] for row in table.rows] == list(COMBINED)
    assert [column.name for column in table.columns[1:]] == ["R@1", "R@5", "MRR"]
    for name, *cells in table.rows:
        for column, cell in zip(table.columns[1:], cells, strict=True):
            expected = [
                score_by_hand(
                    given,
                    column.name,
                    task=rule,
                    model=model if name == COMBINED[0] else f"{model}, soft",
                    template=f"{rule}/{name}",
                    setting=SETTINGS,
                )[0]
                for rule in RULES
                for model in (REASONER, PARROT)
            ]
            assert cell.value == pytest.approx(mean(expected))


def test_masks_pooling_and_loss_are_means_over_tasks_and_models(given):
    _, masks, pooling, loss, learned = made_of(prompting, given).tables
    every = [REASONER, PARROT, *(f"{name}, soft{more}" for name in (REASONER, PARROT) for more in ("", " (nll)"))]
    for table, ways in ((masks, ("multiple", "single")), (pooling, ("mean", "max", "first"))):
        assert [row[0] for row in table.rows] == list(ways)
        for name, *cells in table.rows:
            methods = tuple(method for method in METHODS if name in method.split("-"))
            assert [cell.value for cell in cells] == pytest.approx(
                [
                    mean(
                        score_by_hand(given, metric, task=task, model=model, method=methods)[0]
                        for task in TEMPLATES
                        if metric != "MRR_a" or task not in ("DM", "RG")
                        for model in every
                    )
                    for metric in NAMES
                ]
            )
    for name, *cells in loss.rows:
        models = [model for model in every if soft_loss(model) == name]
        assert [cell.value for cell in cells][-1] == pytest.approx(
            mean(score_by_hand(given, "MRR", task=task, model=model)[0] for task in TEMPLATES for model in models)
        )
    assert learned.aside and len(learned.rows) == 2 * 2 * 11


def test_only_models_asked_in_all_ways_are_compared(given):
    more = [
        {**answer, "model": "lone", "method": "multiple-mean", "gold_ranks": [30.0], "gold_ties": [1]}
        for answer in given.answers
        if answer["model"] == REASONER and answer["method"] == METHODS[0] and answer["unusable"] is None
    ]
    assert prompting(replace(given, answers=[*given.answers, *more])).tables == made_of(prompting, given).tables


def test_curves_have_a_line_for_each_thing_learned(given):
    curves = [figure for figure in made_of(prompting, given).figures if figure.kind == "lines"]
    assert len(curves) == 4 * 2
    assert curves[0].caption == "reasoner, soft: loss by epoch of training." and curves[0].percent is False
    assert curves[1].percent is True and len({row["line"] for row in curves[1].rows}) == 11
    first = given.training_records[0]
    assert [row["value"] for row in curves[0].rows[:100]] == [epoch["loss"] for epoch in first["epochs"]]
    bare = [{**one, "epochs": [{"loss": 1.0}]} for one in given.training_records[:1]]
    found = prompting(replace(given, answers=[], training_records=bare))
    assert [figure.kind for figure in found.figures] == ["lines"] and found.tables[0].rows[0][6] is None
