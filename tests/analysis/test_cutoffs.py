"""How many answers to give: sets against an obvious count, thresholds chosen on other facts, calibration."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from memory_runs import memory_input, one_answer, recalled
from recall_worlds import make_statements

from merkhet.analysis.cutoffs import THRESHOLDS, _collect_prompts, cutoffs
from merkhet.analysis.memorized_run import MemorizedRun
from merkhet.core.recall_schemas import STATEMENTS
from merkhet.core.schemas import make_table
from merkhet.questions.statements import statement_question_ids
from merkhet.reports.analysis_sections import analysis_sections


def run_of(statements, share=0.9, **condition):
    condition = {"facts": 100, "conflict": True, **condition}
    return memory_input([("tiny", "100 facts", condition, {"statement": (statements, share)})])


def collected(statements, recalls, seed):
    """The prompts of a run, the index of each statement's among its statements, which are ordered by id."""
    given = memory_input([("tiny", "x", {}, {"statement": (statements, recalls)})])
    order = np.argsort(np.argsort(statement_question_ids(statements).to_pylist()))
    return _collect_prompts(MemorizedRun(given.inputs).recalled("tiny, x", "statement"), seed), order


def test_sets_are_judged_as_an_obvious_count_does():
    statements = make_statements(120, symbols=25)
    recalls = recalled(statements, 0.7)
    answered, order = collected(statements, recalls, seed=1)
    plain = list(zip(statements.to_pylist(), recalls.to_pylist(), strict=True))
    for threshold in (0.01, 0.2, 0.5, 0.95):
        judged = answered.evaluate(answered.sizes(threshold))
        for index, (statement, recall) in enumerate(plain):
            place = answered.prompts[order[index]]
            given = {one["symbol"] for one in recall["top"] if math.exp(one["score"]) >= threshold}
            given = given or {recall["top"][0]["symbol"]}
            hits = len(given & set(statement["answers"]))
            assert judged["precision"][place] == pytest.approx(hits / len(given))
            assert judged["recall"][place] == pytest.approx(hits / len(statement["answers"]))
            assert judged["F1"][place] == pytest.approx(2 * hits / (len(given) + len(statement["answers"])))
    told = answered.evaluate(answered.gold_counts())
    assert all(told["precision"] == told["recall"])


def test_a_prompt_is_counted_once_and_lies_in_one_half():
    rows = make_statements(200, symbols=25).to_pylist()
    twice = make_statements(200, symbols=25).to_pylist()
    for row in twice:
        row["statement_id"] += "b"
    statements = make_table(STATEMENTS, rows + twice)
    answered, order = collected(statements, recalled(statements, 0.8), seed=3)
    assert len(answered.golds) == 200 and len(answered.prompts) == 400
    assert answered.chosen_on.sum() == 100, "a half of the facts, four statements each"
    for fact in range(50):
        assert len(set(answered.chosen_on[answered.prompts[order[4 * fact : 4 * fact + 4]]])) == 1


def test_halves_do_not_depend_on_the_order_of_statements():
    rows = make_statements(200, symbols=25).to_pylist()
    for place, row in enumerate(rows):
        row["prompt"] = f"prompt {place * 7 % 50} [MASK]"
    statements = make_table(STATEMENTS, rows)
    halves = []
    for mixing in (np.arange(200), np.random.default_rng(2).permutation(200)):
        mixed = statements.take(mixing)
        answered, order = collected(mixed, recalled(mixed, 0.8), seed=3)
        chosen = answered.chosen_on[answered.prompts[order]]
        halves.append(dict(zip(mixed["prompt"].to_pylist(), chosen, strict=True)))
    assert halves[0] == halves[1] and len(halves[0]) == 50


def test_a_threshold_finds_several_answers_and_costs_single_ones_nothing():
    found = cutoffs(run_of(make_statements(800, symbols=25)).inputs)
    table = found.tables[0]
    rows = {row[3]: row for row in table.rows}
    assert set(rows) == {"all", "one", "several"} and rows["all"][4] == rows["one"][4] + rows["several"][4]
    assert rows["one"][9].value == 0 and rows["several"][9].low > 0.2
    assert rows["several"][6].value == pytest.approx(rows["several"][8].value, abs=0.03), "nearly as if it were told"
    assert rows["all"][2] in THRESHOLDS and rows["all"][5] == 0
    assert len(found.figures) == 1 and {row["line"] for row in found.figures[0].rows} == {"one right", "several right"}
    assert re.search(r" 0\.0 points \[-(\d\.\d), \1] on \d+ prompts with one", found.sentences[0])
    analysis_sections([found.as_json()])


def test_probabilities_are_held_against_what_was_masked():
    statements = make_statements(800, symbols=25)
    given = run_of(statements, 0.6)
    rows = cutoffs(given.inputs).tables[1].rows
    recalls = given.models[0].tables_by_task["statement"][1].to_pylist()
    firsts = [recall["top"][0] for recall in recalls]
    sure = np.array([math.exp(one["score"]) for one in firsts])
    exact = np.array([one["symbol"] == own for one, own in zip(firsts, statements["target"].to_pylist(), strict=True)])
    bins = np.minimum((sure * 10).astype(int), 9)
    error = sum(
        abs(exact[bins == place].mean() - sure[bins == place].mean()) * (bins == place).mean()
        for place in set(bins.tolist())
    )
    assert rows[-1][2] == "all" and rows[-1][3] == 800
    assert rows[-1][7] == pytest.approx(error, abs=1e-6) and rows[-1][5] == pytest.approx(exact.mean())
    assert sum(row[3] for row in rows[:-1]) == 800


def test_more_right_answers_than_were_kept_are_counted():
    rows = make_statements(80, symbols=25).to_pylist()
    rows[0]["answers"] = [f"s{number:03}" for number in range(12)]
    rows[0] |= {"conflict": True, "target": "s003"}
    found = cutoffs(run_of(make_table(STATEMENTS, rows), 1.0).inputs)
    assert found.sentences[0].endswith("Prompts with more than 10 right answers (1) always miss some of them.")


def test_without_several_answers_there_is_nothing_to_cut():
    statements = make_statements(80, symbols=25)
    assert cutoffs(run_of(one_answer(statements)).inputs) is None
    assert cutoffs(run_of(statements, conflict=False).inputs) is None
