"""Boundaries and implicit knowledge: scores, paired differences and sentences in runs whose truth is known."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from memory_runs import boundary_run, implicit_run, memory_input, recalled
from recall_worlds import make_recalls, make_statements, recall_values
from scipy import stats

from merkhet.analysis.finding_types import TRAINED_ONCE, Verdict
from merkhet.core.recall_schemas import STATEMENTS
from merkhet.core.schemas import make_table
from merkhet.suites.lama_tk.analyses.boundary import boundaries
from merkhet.suites.lama_tk.analyses.implicit import implicit


@pytest.fixture(scope="module")
def bounds():
    return boundary_run(trainings=8)


def test_starts_and_ends_are_shown_by_the_share_left_out(bounds):
    found = boundaries(bounds.inputs)
    scores, ahead, by_conflict = found.tables
    shown = {row[:3]: row for row in scores.rows}
    for one in bounds.models:
        share = f"{one.condition['dynamic']}%"
        values = recall_values(one.tables_by_task["boundary"][1], "acc@1")
        assert shown["tiny", share, "both"][3].value == pytest.approx(values.mean())
        assert shown["tiny", share, "begin"][3].n == shown["tiny", share, "finish"][3].n == len(values) / 2
        assert shown["tiny", share, "stored"][3].value > 0.9
    assert shown["frequency", None, "begin"][3].value < 0.4 and shown["chance", None, "both"][3] < 0.1
    assert {row[2] for row in ahead.rows} == {"stored", "both", "begin", "finish"}
    both = {row[1]: row for row in ahead.rows if row[2:4] == ("both", "Acc@1")}
    asked = bounds.models[0].tables_by_task["boundary"][0]
    per_seed = [
        np.mean([recall_values(recalled(asked, 0.4, seed=k), "acc@1")])
        - np.mean([recall_values(recalled(asked, 0.1, seed=k), "acc@1")])
        for k in range(8)
    ]
    assert both["10%"][4].value == pytest.approx(np.mean(per_seed)) and both["10%"][7] == 8
    tested = sorted(row[5] for row in ahead.rows)
    assert tested[0] < 0.05 <= tested[-1]
    assert len(by_conflict.rows) == 3 and by_conflict.aside


def test_what_leaving_out_times_does_is_told(bounds):
    found = boundaries(bounds.inputs)
    assert [text.split(":")[0] for text in found.sentences] == [
        f"tiny, {share}% of times left out" for share in (0, 10, 100)
    ]
    assert "same with none" not in found.sentences[0]
    assert "above the same with none left out (+" in found.sentences[1] and "over 8 trainings, p" in found.sentences[1]
    (figure,) = found.figures
    assert {row["bar"] for row in figure.rows} == {"0%", "10%", "100%"}
    assert [row["x"] for row in figure.rows[:3]] == ["stored", "begin", "finish"]
    equal = boundaries(boundary_run({0: 0.4, 10: 0.41}, trainings=3).inputs)
    assert "not significantly different from the same with none left out" in equal.sentences[1]
    assert "80% power to detect" in equal.sentences[1]


def test_one_training_gives_differences_without_a_verdict():
    found = boundaries(boundary_run().inputs)
    assert all(row[5] is None and row[7] == 1 for row in found.tables[1].rows)
    assert "; against the same with none left out: +" in found.sentences[1]
    assert {one.verdict for one in found.findings} == {Verdict.NONE}
    assert {one.reason for one in found.findings} == {TRAINED_ONCE}
    for make, given in ((boundaries, boundary_run()), (implicit, implicit_run())):
        said = " ".join(make(given.inputs).sentences)
        assert not re.search(r"above|below|significant|ahead|\bp [=<]", said) and "for one training" in said


def test_the_other_end_is_counted_where_it_is_wrong():
    rows = []
    for fact in range(12):
        for mask, year in (("start", f"s{fact % 5:03}"), ("end", f"s{10 + fact % 5:03}")):
            base = make_statements(1).to_pylist()[0]
            rows.append(
                base | {"mask": mask, "target": year, "answers": [year], "conflict": False, "fact_id": f"f{fact}"}
            )
    stored = make_table(
        STATEMENTS, [row | {"statement_id": f"x{n}", "prompt": f"p{n} [MASK]"} for n, row in enumerate(rows)]
    )
    asked = make_table(
        STATEMENTS,
        [
            row
            | {
                **{"statement_id": f"y{n}", "prompt": f"q{n} [MASK]", "task": "boundary"},
                "template": "begin" if row["mask"] == "start" else "finish",
            }
            for n, row in enumerate(rows)
        ],
    )
    ends = {(row["fact_id"], row["mask"]): row["target"] for row in rows}

    def always_the_end(statement):
        names = {f"s{number:03}": -9.0 for number in range(30)}
        return names | {ends[statement["fact_id"], "end"]: -0.1}

    given = memory_input(
        [
            (
                "tiny",
                "times left out 0%",
                {"dynamic": 0},
                {"statement": (stored, 1.0), "boundary": (asked, make_recalls(asked, always_the_end))},
            )
        ],
    )
    table = boundaries(given.inputs).tables[0]
    other = {row[2]: row[-1] for row in table.rows if row[0] == "tiny"}
    assert (other["begin"].value, other["finish"].value, other["both"].value) == (1.0, 0.0, 0.5)
    assert other["stored"] is None


def test_wordings_are_compared_fact_by_fact():
    given = implicit_run(trainings=3)
    found = implicit(given.inputs)
    scores, ahead = found.tables
    assert [row[1] for row in scores.rows] == ["stored", "within", "paraphrase", "first", "last", "before", "after"]
    statements, _ = given.models[0].tables_by_task["implicit"]
    within = np.array(statements["template"].to_pylist()) == "within"
    differences = []
    for seed in range(3):
        values = recall_values(recalled(statements, {"within": 0.6, "paraphrase": 0.1}, seed=seed), "acc@1")
        differences.append(values[~within].mean() - values[within].mean())
    first = next(row for row in ahead.rows if row[1] == "Acc@1")
    assert first[2].value == pytest.approx(np.mean(differences))
    assert first[4:] == (120, 3) and stats.ttest_1samp(differences, 0.0).pvalue <= first[3] < 0.05
    assert (
        found.sentences[0].startswith("tiny, a year inside: Acc@1 ") and "below the stored ones" in found.sentences[0]
    )
    assert "tiny on order (40 questions)" in found.sentences[2]
    (figure,) = found.figures
    assert {row["bar"] for row in figure.rows} == {"tiny", "frequency"}


def test_words_that_do_not_matter_are_not_told_apart():
    found = implicit(implicit_run(0.5, 0.45, trainings=2).inputs)
    assert "not significantly different from the stored ones" in found.sentences[0]


def test_times_and_wordings_are_told_as_far_as_there_are_scores(bounds):
    for make, given in ((boundaries, bounds), (implicit, implicit_run())):
        hits = [row for row in given.inputs.scores if row["metric"] == "hit@10"]
        few = make(given.without_baselines(scores=hits))
        assert few.sentences == () and len(few.figures) == 1
        assert make(replace(given.inputs, scores=[])) is None


def test_other_runs_have_no_such_analysis(bounds):
    assert implicit(bounds.inputs) is None and boundaries(implicit_run().inputs) is None
    assert boundaries(replace(bounds.inputs, conditions={})) is None
