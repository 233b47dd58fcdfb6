from __future__ import annotations

import json
from dataclasses import replace

from examined_runs import DOMAINS, TASKS, make_input, make_scores

from merkhet.analysis.distribution import distribution
from merkhet.analysis.domains import domains
from merkhet.analysis.finding_text import render
from merkhet.metrics.metrics import get_metric


def test_cells_are_the_scores_of_the_table_of_scores():
    given = make_input()
    scores = {(row["model"], row["probe"], row["task"], row["domain"]): row for row in make_scores(given).to_pylist()}
    found = domains(given)
    assert len(found.tables) == len(given.usable)
    for line, table in zip(given.usable, found.tables, strict=True):
        assert table.caption == f"{given.labels[line]}: F1."
        assert [column.name for column in table.columns] == ["Task", "all", *DOMAINS]
        assert [row[0] for row in table.rows] == list(TASKS)
        for row in table.rows:
            for column, cell in zip([None, *DOMAINS], row[1:], strict=True):
                expected = scores.get((line.model, line.probe, row[0], column))
                if expected is None:
                    assert cell is None and column == "law"
                else:
                    assert (cell.value, cell.low, cell.high, cell.n) == tuple(
                        expected[name] for name in ("value", "low", "high", "n")
                    )


def test_domains_without_facts_are_named():
    given = make_input()
    assert domains(given).sentences == ("This run's knowledge has no facts of law, so nothing was asked about it.",)
    silent = replace(given, facts=[*given.facts, {"domain": "law"}])
    assert domains(silent).sentences == ("This run has facts of law, but no questions about them.",)
    assert domains(given).findings == () and render(domains(silent).findings) == [
        "Without any question: 1 of 4 domains (law)."
    ]
    more = {"domains": [*DOMAINS, "art"], "knowledge_types": {}}
    assert (
        "no facts of law and art, so nothing was asked about them"
        in domains(replace(given, data_card=more)).sentences[0]
    )


def test_domains_that_the_card_does_not_name_stand_last():
    given = make_input()
    rows = [row | {"domain": None} if row["domain"] == "music" else row for row in given.questions]
    found = replace(given, questions=rows, data_card={"domains": ["law", "physics"]})
    assert list(found.domains) == ["law", "physics", "commonsense", "no domain"]
    total = sum(row[-1] for row in distribution(found).tables[0].rows[:-1])
    assert total == len(rows)


def test_a_written_answer_has_no_ranks_to_be_scored_by():
    given = make_input(headline=[(task, get_metric("r@1")) for task in TASKS])
    captions = [table.caption for table in domains(given).tables]
    assert captions[:2] == ["bert-base-cased (mean): R@1.", "bert-base-cased (greedy): F1."]


def test_every_question_is_in_one_cell_of_the_distribution():
    given = make_input(facts=9)
    found = distribution(given)
    table, kinds = found.tables
    for name, *counts in table.rows:
        expected = [
            sum(row["task"] == task and name in ("all", row["domain"]) for row in given.questions) for task in TASKS
        ]
        assert counts == [*expected, sum(expected)]
    assert [row[0] for row in kinds.rows] == ["domain-specific", "general", "commonsense", "all"]
    assert kinds.rows[-1] == table.rows[-1] == ("all", 27, 9, 9, 9, 54)
    drawn = {(row["bar"], row["part"]): row["count"] for row in found.figures[0].rows}
    assert drawn["completion", "physics"] == 9 and ("completion", "law") not in drawn
    assert sum(drawn.values()) == 54
    assert found.sentences == ("There are 54 questions about 9 facts; 9 Q-sets hold more than one of them.",)


def test_what_was_found_is_json():
    for found in (domains(make_input(facts=1)), distribution(make_input(facts=1))):
        assert json.loads(json.dumps(found.as_json(), allow_nan=False))["name"] == found.name


def test_without_questions_nothing_is_found():
    nothing = make_input(questions=[], answers=[])
    assert domains(nothing) is None and distribution(nothing) is None
