"""Memorizing tasks, and common parts of ontology analyses, against obvious sums over the answers of a made-up run."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from statistics import mean

import numpy as np
import pytest
from ontology_runs import (
    BASELINE,
    METHODS,
    PARROT,
    REASONER,
    RULES,
    TEMPLATES,
    by_hand,
    made_of,
    make_ontology_run,
    score_by_hand,
)

from merkhet.analysis.finding_types import Finding, Kind, Verdict
from merkhet.analysis.resampled_means import average_draws, estimate_from_draws, resampled_means
from merkhet.analysis.training_text import describe_difference
from merkhet.analysis.types import Estimate, Line
from merkhet.core.schemas import ANSWERS, make_table
from merkhet.core.text import metric_label
from merkhet.metrics.bootstrap import clustered_interval
from merkhet.metrics.score_table import score_answers
from merkhet.suites.ontoprobe.analyses.baseline_comparison import describe_comparisons
from merkhet.suites.ontoprobe.analyses.premise_effects import premises
from merkhet.suites.ontoprobe.analyses.prompt_effects import prompting
from merkhet.suites.ontoprobe.analyses.task_scores import (
    METRICS,
    base_model,
    memorizing,
    soft_loss,
)

SOFT = (f"{REASONER}, soft", f"{REASONER}, soft (nll)")
NAMES = {metric_label(metric.name): metric for metric in METRICS}


@pytest.fixture(scope="module")
def given():
    return make_ontology_run()


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
    once = make_ontology_run(sizes, models=("m",), repeats=1)
    manual, *soft = memorizing(once).sentences
    assert [text.split(", “m, soft”")[0] for text in soft] == [f"On {task} MRR" for task in sizes]
    assert all(text.endswith("for one training.") and " minus train-frequency is +" in text for text in soft)
    others = [make_ontology_run(sizes, models=("m",), repeats=1, seed=seed) for seed in range(1, 6)]
    assert all(list(one.questions_by_id) == list(once.questions_by_id) for one in others)
    repeated = [make_table(ANSWERS, list(one.answers)) for one in others]
    _, *several = memorizing(replace(once, repeated_answers=repeated, trained=frozenset({"m, soft"}))).sentences
    assert len(several) == len(sizes) and all("over 6 trainings, p" in text for text in several)
    assert "“m, soft” is ahead of train-frequency on TP MRR: +" in several[0]
    assert manual.startswith("m (fixed choice: template 3 by rank, multiple-mean") and "above on TP" in manual
    assert memorizing(replace(given, baselines=frozenset())).sentences == ()


def test_a_model_is_set_against_the_baseline_by_corrected_tests_of_enough_facts():
    """Its sentences follow from its findings, also when these are read back."""
    for facts in (5, 60):
        made = memorizing(make_ontology_run(dict.fromkeys(TEMPLATES, facts), models=("m",), repeats=1))
        stored = [Finding.from_json(json.loads(json.dumps(row.as_json()))) for row in made.findings]
        compared, trained = ([row for row in stored if row.kind is kind] for kind in (Kind.COMPARISON, Kind.TRAININGS))
        rendered = [*describe_comparisons(compared, BASELINE), *(f"{describe_difference(row)}." for row in trained)]
        assert compared and trained and tuple(rendered) == made.sentences
        assert {row.verdict for row in trained} == {Verdict.NONE}
        for finding in compared:
            assert finding.n in range(facts // 2, facts + 1) and finding.value >= 0
            expected = Verdict.AHEAD if finding.p < 0.05 else Verdict.NO_DIFFERENCE
            assert finding.verdict is (Verdict.NONE if facts < 10 else expected)
        assert all("above" not in text and "below" not in text for text in made.sentences) == (facts < 10)


def test_soft_prompts_belong_to_their_model():
    assert [base_model(name) for name in ("m", "m, soft", "m, soft (nll)", "a, b")] == ["m", "m", "m", "a, b"]
    assert [soft_loss(name) for name in ("m", "m, soft", "m, soft (nll)")] == [None, "bce", "nll"]


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
    assert [metric_label(name) for name in names] == ["R@5", "MRR", "MRR_a", "F1", "accuracy"]
