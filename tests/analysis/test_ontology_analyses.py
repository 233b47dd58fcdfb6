"""Memorizing, premises and prompting, against obvious sums over the answers of a made-up run."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from statistics import mean

import numpy as np
import pytest
from ontology_runs import BASELINE, COMBINED, METHODS, PARROT, REASONER, RULES, TEMPLATES, make_ontology_run

from merkhet.analysis.resampled_means import average_draws, estimate_from_draws, resampled_means
from merkhet.analysis.types import Estimate, Line, metric_label
from merkhet.metrics.bootstrap import clustered_interval
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.score_table import score_answers
from merkhet.suites.ontoprobe.analyses.premise_effects import PREMISE_STATES, SETTINGS, premises
from merkhet.suites.ontoprobe.analyses.prompt_effects import prompting
from merkhet.suites.ontoprobe.analyses.task_scores import METRICS, base_model, memorizing, soft_loss

SOFT = (f"{REASONER}, soft", f"{REASONER}, soft (nll)")
NAMES = {metric_label(metric): metric for metric in METRICS}


@pytest.fixture(scope="module")
def given():
    return make_ontology_run()


def made_of(analysis, given, known={}):  # noqa: B006 (kept between calls: many tests look at one analysis of one run)
    """What an analysis makes of a run; of the same run it is made once."""
    if known.get(analysis, (None,))[0] is not given:
        known[analysis] = (given, analysis(given))
    return known[analysis][1]


def by_hand(answer, metric):
    """One answer's value: the places of the best right answer under every way to break its tie."""
    ranks, ties = answer["gold_ranks"], answer["gold_ties"][0]
    if metric == "MRR_a":
        return 1 / mean(ranks)
    if metric == "MRR":
        return 1 / min(ranks)
    first = min(ranks) - (ties - 1) / 2
    return mean(first + place <= int(metric.partition("@")[2]) for place in range(ties))


def score_by_hand(given, metric, **wanted):
    """The mean over questions of the mean over repeats, and the number of questions.

    ``wanted`` are columns of answers or questions, or ``setting``; a tuple names several values.
    """
    chosen = [(name, value if isinstance(value, tuple) else (value,)) for name, value in wanted.items()]
    kept = {}
    for answer in told_answers(given, wanted.get("task")):
        if all(answer[name] in values for name, values in chosen):
            key = (answer["model"], answer["method"], answer["question_id"])
            kept.setdefault(key, []).append(by_hand(answer, metric))
    return mean(mean(values) for values in kept.values()) if kept else None, len(kept)


def told_answers(given, task, known={}):  # noqa: B006 (kept between calls: many scores of one run are counted)
    """The usable answers, of one task where it is named, with the columns of their questions and their settings."""
    if known.get("given") is not given:
        rows = {row["question_id"]: row for row in given.questions}
        known["given"] = given
        known["answers"] = [
            {
                **rows[answer["question_id"]],
                **answer,
                "setting": given.premise_settings.get((answer["model"], answer["question_id"])),
            }
            for answer in given.answers
            if answer["unusable"] is None
        ]
        known["by_task"] = {}
        for answer in known["answers"]:
            known["by_task"].setdefault(answer["task"], []).append(answer)
    return known["by_task"].get(task, []) if isinstance(task, str) else known["answers"]


def test_a_value_is_the_mean_over_repeats_whatever_their_order(given):
    line = Line(REASONER, "rank", METHODS[0])
    ids = sorted(given.usable[line])
    shuffled = list(given.answers)
    random.Random(1).shuffle(shuffled)
    other = replace(given, answers=shuffled)
    for label, metric in NAMES.items():
        expected = []
        for name in ids:
            own = [a for a in given.answers if a["question_id"] == name and a["unusable"] is None]
            own = [by_hand(a, label) for a in own if (a["model"], a["method"]) == (line.model, line.method)]
            expected.append(mean(own))
        assert given.values(line, ids, metric) == pytest.approx(expected)
        assert other.values(line, ids, metric) == pytest.approx(expected)
    assert any(answer["repeat"] for answer in given.answers)
    assert given.usable[line] == other.usable[line], "the first repeat, not the first row"
    assert len(given.values(line, [], NAMES["MRR"])) == 0


def test_facts_as_numbers_give_the_intervals_of_facts_as_names(given):
    line = Line(REASONER, "rank", METHODS[0])
    ids = sorted(name for name in given.usable[line] if given.questions_by_id[name].task == "SCO")
    values = given.values(line, ids, NAMES["MRR"])
    names = np.array([given.clusters[name] for name in ids])
    assert clustered_interval(values, given.cluster_ids(ids), seed=3) == clustered_interval(values, names, seed=3)


def test_best_is_the_highest_of_all_ways_and_fixed_is_template_three(given):
    best, winners, fixed = made_of(memorizing, given).tables[:3]
    titles = [BASELINE, f"{REASONER}, manual", f"{REASONER}, soft", f"{PARROT}, manual", f"{PARROT}, soft"]
    assert [column.name for column in best.columns[2:]] == [column.name for column in fixed.columns[2:]] == titles
    assert winners.aside and [column.name for column in winners.columns[2:]] == titles[1:]
    heads = [row[:2] for row in best.rows]
    assert ("SPO", "MRR_a") in heads and ("DM", "MRR_a") not in heads and ("RG", "MRR_a") not in heads
    for chosen, named, kept in zip(best.rows, winners.rows, fixed.rows, strict=True):
        task, metric = chosen[:2]
        assert chosen[:2] == named[:2] == kept[:2]
        baseline = score_by_hand(given, metric, task=task, model=BASELINE)
        assert (chosen[2].value, chosen[2].n) == (kept[2].value, kept[2].n) == pytest.approx(baseline)
        ways = {
            f"{number}, {method}": score_by_hand(
                given, metric, task=task, model=REASONER, template=f"{task}/{number}", method=method
            )
            for number in range(1, TEMPLATES[task] + 1)
            for method in METHODS
        }
        assert (chosen[3].value, chosen[3].n) == pytest.approx(max(ways.values(), key=lambda found: found[0]))
        assert ways[named[2]][0] == pytest.approx(chosen[3].value)
        number = min(3, TEMPLATES[task])
        assert (kept[3].value, kept[3].n) == pytest.approx(ways[f"{number}, {METHODS[0]}"])
        soft = {
            f"soft ({loss}), {method}": score_by_hand(given, metric, task=task, model=model, method=method)
            for model, loss in zip(SOFT, ("bce", "nll"), strict=True)
            for method in METHODS
        }
        assert chosen[4].value == pytest.approx(max(value for value, _ in soft.values()))
        assert soft[named[3]][0] == pytest.approx(chosen[4].value)
        assert kept[4].value == pytest.approx(soft[f"soft (bce), {METHODS[0]}"][0])
        assert all(cell.low <= cell.value <= cell.high for cell in (*chosen[2:], *kept[2:]))


def test_all_ways_of_a_task_and_a_model_stand_in_one_table(given):
    tables = {table.caption: table for table in made_of(memorizing, given).tables if table.aside}
    table = tables[f"SCO, {REASONER}: all templates and methods."]
    assert len(table.rows) == (3 + 2) * 6
    assert [column.name for column in table.columns] == ["Template", "Method", *NAMES, "n"]
    for template, method, *values, n in table.rows:
        soft = {"soft (bce)": SOFT[0], "soft (nll)": SOFT[1]}.get(template, REASONER)
        asked = {"model": soft, "template": f"SCO/{template.partition(' ')[0]}", "method": method}
        expected = [score_by_hand(given, metric, task="SCO", **asked) for metric in NAMES]
        assert values == pytest.approx([value for value, _ in expected]) and n == expected[0][1]


def test_cells_are_the_scores_of_the_table_of_scores(given):
    groups = {row["question_id"]: {"template": row["template"]} for row in given.questions}
    own = {place: {"premises": setting} for place, setting in given.premise_settings.items()}
    table = score_answers(
        "s", given.questions_by_id, groups, given.clusters, given.answers, METRICS, seed=given.seed, groups_by_model=own
    )
    scores = table.to_pylist()
    found = {
        (row["task"], row["metric"]): tuple(row[name] for name in ("value", "low", "high", "n"))
        for row in scores
        if (row["model"], row["method"]) == (REASONER, METHODS[0])
        and row["template"] in ("TP/3", "SCO/3", "SPO/1", "DM/1", "RG/1")
    }
    fixed = made_of(memorizing, given).tables[2]
    for row in fixed.rows:
        cell = row[3]
        expected = found[row[0], NAMES[row[1]].name]
        assert (cell.value, cell.low, cell.high, cell.n) == pytest.approx(expected)
    settings = {
        (row["task"], row["premises"]): tuple(row[name] for name in ("value", "low", "high", "n"))
        for row in scores
        if (row["model"], row["metric"]) == (REASONER, "mrr") and row["premises"]
    }
    for first, second, _, *cells in made_of(premises, given).tables[1].rows:
        for rule, cell in zip(RULES, cells, strict=True):
            expected = settings[rule, f"{'OT' if 'control' in first else first}/{second}"]
            assert (cell.value, cell.low, cell.high, cell.n) == pytest.approx(expected)


def test_multiple_choice_has_chance_beside_it(given):
    table = made_of(memorizing, given).tables[-1]
    assert [column.name for column in table.columns] == ["Task", "chance", REASONER, PARROT]
    assert [row[0] for row in table.rows] == list(TEMPLATES)
    for task, chance, *cells in table.rows:
        assert chance == pytest.approx(0.05)
        for model, cell in zip((REASONER, PARROT), cells, strict=True):
            assert cell.value == pytest.approx(score_by_hand(given, "R@1", task=f"{task}-choice", model=model)[0])


def test_choices_that_were_written_are_compared_word_by_word(given):
    nothing = {"golds": [], "gold_ranks": [], "gold_ties": [], "model": "chat", "method": "greedy", "probe": "write"}
    written = [
        {**answer, **nothing, "ranked": [{"candidate": f"The {answer['prediction']}!", "score": 0.0}]}
        for answer in given.answers
        if answer["model"] == REASONER and given.questions_by_id[answer["question_id"]].task.endswith("-choice")
    ]
    settings = given.premise_settings | {
        ("chat", name): setting for (model, name), setting in given.premise_settings.items() if model == REASONER
    }
    talked = replace(given, answers=[*given.answers, *written], premise_settings=settings)
    for row in memorizing(talked).tables[-1].rows:
        said = [answer for answer in written if given.questions_by_id[answer["question_id"]].task == f"{row[0]}-choice"]
        right = [answer["prediction"] == "class 0" for answer in said if answer["unusable"] is None]
        assert row[-1].value == pytest.approx(mean(right))
    assert {row[0] for row in premises(talked).tables[-1].rows} == {REASONER, PARROT, "chat"}
    assert not any(table.caption.startswith("chat:") for table in premises(talked).tables), "it has no ranks"


def test_models_are_set_against_the_baseline(given):
    sizes = dict.fromkeys(TEMPLATES, 80)
    manual, soft = memorizing(make_ontology_run(sizes, models=("m",), repeats=1)).sentences
    start = "m, soft (fixed choice) against train-frequency in MRR, paired by fact: "
    assert soft == f"{start}above on TP, SCO, SPO, DM and RG."
    assert manual.startswith("m, manual (fixed choice) against train-frequency") and "above on TP" in manual
    assert memorizing(replace(given, baselines=frozenset())).sentences == ()


def test_soft_prompts_belong_to_their_model():
    assert [base_model(name) for name in ("m", "m, soft", "m, soft (nll)", "a, b")] == ["m", "m", "m", "a, b"]
    assert [soft_loss(name) for name in ("m", "m, soft", "m, soft (nll)")] == [None, "bce", "nll"]


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
    assert told[REASONER].startswith("reasoner ranks the answer at MRR ")
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


def test_where_nothing_was_asked_nothing_is_found(given):
    nothing = replace(given, questions=[], answers=[], premise_settings={}, training_records=())
    assert memorizing(nothing) is None and premises(nothing) is None and prompting(nothing) is None
    assert premises(replace(given, premise_settings={})) is None
    silent = replace(given, answers=[], training_records=())
    assert memorizing(silent) is None and premises(silent) is None and prompting(silent) is None


def test_what_is_missing_is_left_out(given):
    tasks = {name: question.task for name, question in given.questions_by_id.items()}
    only = [answer for answer in given.answers if tasks[answer["question_id"]] in TEMPLATES]
    bare = replace(given, answers=only, training_records=())
    assert not any(table.caption.startswith("Multiple choice") for table in memorizing(bare).tables)
    assert premises(bare) is None
    assert [table.caption.partition(":")[0] for table in prompting(bare).tables] == [
        "Memorizing, masks",
        "Memorizing, pooling",
        "Memorizing by soft prompts, loss",
    ]
    choice = replace(
        given, answers=[a for a in given.answers if tasks[a["question_id"]].endswith("-choice")], training_records=()
    )
    assert len(memorizing(choice).tables) == len(premises(choice).tables) == 1 and premises(choice).figures == ()
    assert prompting(choice) is None
    manual = replace(given, answers=[answer for answer in given.answers if "soft" not in answer["model"]])
    assert [column.name for column in memorizing(manual).tables[0].columns[2:]] == [BASELINE, REASONER, PARROT]


def test_what_was_found_is_json(given):
    for found in (made_of(memorizing, given), made_of(premises, given), made_of(prompting, given)):
        assert json.loads(json.dumps(found.as_json(), allow_nan=False))["name"] == found.name


def test_groups_are_resampled_together():
    generator = np.random.default_rng(0)
    facts = np.arange(40)
    values = generator.random(40)
    draws = resampled_means({("a", "x"): (values, facts), ("a", "y"): (values + 1.0, facts)}, seed=1)
    assert draws["a", "x"][0] == pytest.approx(values.mean()) and len(draws["a", "x"]) == 2001
    gain = estimate_from_draws(draws["a", "y"] - draws["a", "x"])
    assert [gain.value, gain.low, gain.high] == pytest.approx([1.0, 1.0, 1.0]), "the same facts are drawn for both"
    interval, plain = estimate_from_draws(draws["a", "x"]), clustered_interval(values, facts, seed=2)
    assert [interval.low, interval.high] == pytest.approx([plain.low, plain.high], abs=0.02)
    alone = resampled_means({("a", "x"): (values, facts)}, seed=1)
    assert np.array_equal(alone["a", "x"], draws["a", "x"]), "what else is asked does not matter"


def test_one_fact_has_no_interval():
    one = (np.array([0.5, 0.7]), np.array([3, 3]))
    many = (np.array([0.1, 0.3]), np.array([3, 4]))
    draws = resampled_means({("a", "x"): one, ("b", "x"): many}, seed=0)
    assert estimate_from_draws(draws["a", "x"], 2) == Estimate(pytest.approx(0.6), None, None, 2)
    assert estimate_from_draws(average_draws(draws.values())).low is None
    assert estimate_from_draws(draws["b", "x"]).low is not None
    assert resampled_means({}, seed=0) == {}


def test_metrics_are_called_as_in_papers():
    names = ("r@5", "mrr", "mrr_a", "f1", "accuracy")
    assert [metric_label(get_metric(name)) for name in names] == ["R@5", "MRR", "MRR_a", "F1", "accuracy"]
