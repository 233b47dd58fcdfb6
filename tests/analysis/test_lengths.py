from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linguistic_runs import make_input

from merkhet.analysis.analysis_options import EDGES, AnalysisOptions
from merkhet.analysis.option_models import validate
from merkhet.analysis.text_length import bucket_names, lengths
from merkhet.analysis.types import Line
from merkhet.core.errors import InputError
from merkhet.metrics.metrics import get_metric


def text_length(row):
    return len(row["prompt"]) - len("[MASK]") + len(row["target"])


def test_buckets_hold_what_is_as_long():
    given = make_input(each=60)
    found = lengths(given)
    table = next(table for table in found.tables if table.caption.startswith("encyclopedia, fill"))
    assert table.aside and [column.name for column in table.columns] == ["Characters", "questions", "bert", "roberta"]
    size = {row["question_id"]: text_length(row) for row in given.questions if row["task"] == "encyclopedia"}
    ends = {"below 16": (0, 15), "128+": (128, 10**9)}
    for name, count, *cells in table.rows:
        low, high = ends[name] if name in ends else map(int, name.split("–"))
        ids = sorted(one for one, length in size.items() if low <= length <= high)
        assert count == len(ids) > 0
        for model, cell in zip(("bert", "roberta"), cells, strict=True):
            values = given.values(Line(model, "fill", "mask"), ids, get_metric("p@1"))
            assert cell.value == pytest.approx(values.mean()) and cell.n == len(ids)
    assert sum(row[1] for row in table.rows) == len(size)
    assert [row[0] for row in table.rows] == [
        name for name in bucket_names(EDGES) if name in dict.fromkeys(r[0] for r in table.rows)
    ]
    drawn = {(row["x"], row["line"]): row["value"] for row in found.figures[0].rows}
    assert drawn == {
        (name, model): cell.value
        for name, _, *cells in table.rows
        for model, cell in zip(("bert", "roberta"), cells, strict=True)
    }
    assert [figure.caption.split(":")[0] for figure in found.figures] == ["encyclopedia, fill", "encyclopedia, rank"]


@pytest.mark.parametrize(("sign", "word"), [(1, "increases"), (-1, "decreases"), (0, "does not change significantly")])
def test_the_sentence_says_which_way_it_goes(sign, word):
    given = make_input(each=60, skill={"bert": 0.5})
    size = {row["question_id"]: text_length(row) for row in given.questions}
    middle = np.median([length for name, length in size.items() if given.questions_by_id[name].task == "encyclopedia"])
    answers = []
    generator = np.random.default_rng(0)
    for answer in given.answers:
        if answer["unusable"] is None:
            longer = size[answer["question_id"]] > middle
            right = generator.random() < 0.5 if sign == 0 else longer == (sign > 0)
            answer = {**answer, "gold_ranks": [1.0 if right else 3.0]}
        answers.append(answer)
    found = lengths(replace(given, answers=answers))
    assert f"P@1 {word} with the length of the text for bert (rho " in found.sentences[0]
    rho = found.tables[0].rows[0][3]
    assert np.sign(rho.value) == sign if sign else rho.low < 0 < rho.high


def test_a_rank_that_grows_is_said_to_increase():
    """Better scores have a positive rho, also where lower is better."""
    given = make_input(each=60, skill={"bert": 0.5}, headline=[("encyclopedia", get_metric("mean-rank"))])
    size = {row["question_id"]: float(text_length(row)) for row in given.questions}
    answers = [
        {**answer, "gold_ranks": [size[answer["question_id"]]]} if answer["unusable"] is None else answer
        for answer in given.answers
    ]
    found = lengths(replace(given, answers=answers))
    assert found.tables[0].rows[0][3].value < 0
    assert "mean-rank increases with the length of the text for bert (rho -" in found.sentences[0]


def test_tasks_and_edges_may_be_chosen():
    given = make_input(
        options=validate(AnalysisOptions, {"lengths": {"tasks": ["commonsense", "encyclopedia"], "edges": [7]}})
    )
    found = lengths(given)
    assert [figure.caption.split(",")[0] for figure in found.figures] == ["commonsense"] * 2 + ["encyclopedia"] * 2
    assert {row["x"] for figure in found.figures for row in figure.rows} == {"below 7", "7+"}
    assert lengths(replace(given, options=validate(AnalysisOptions, {"lengths": {"tasks": ["absent"]}}))) is None
    assert bucket_names([1, 2, 9]) == ["below 1", "1", "2–8", "9+"]


OF_NO_USE = (
    ([16, 32], "options.lengths must be a mapping with tasks, edges, got [16, 32]"),
    ({"edge": [1]}, "no key 'edge' in options.lengths; did you mean 'edges'"),
    ({"tasks": "encyclopedia"}, "options.lengths.tasks must be a list of texts, got 'encyclopedia'"),
    ({"edges": []}, "must be a list of increasing integers ≥ 1"),
    ({"edges": [16, 16]}, "must be a list of increasing integers ≥ 1"),
    ({"edges": [0, 4]}, "must be a list of increasing integers ≥ 1"),
    ({"edges": [1.5]}, "must be a list of increasing integers ≥ 1"),
    ({"edges": 16}, "must be a list of increasing integers ≥ 1"),
)


def test_an_option_of_no_use_is_refused():
    for value, words in OF_NO_USE:
        with pytest.raises(InputError) as refused:
            validate(AnalysisOptions, {"lengths": value}, "options")
        assert words in str(refused.value) and "\n" not in str(refused.value), value
    assert validate(AnalysisOptions, {"lengths": {"edges": [2]}}, "options").lengths.edges == (2,)
