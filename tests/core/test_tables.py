"""The tables that travel: they come back from Parquet as they went, and refuse what does not fit."""

from __future__ import annotations

import pyarrow as pa
import pytest
from all_cases import check_all
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merkhet.core import SLOT, schemas
from merkhet.core.errors import InputError
from merkhet.core.records import Answer, questions_from_rows
from merkhet.core.schemas import (
    ANSWERS,
    CANDIDATES,
    FACTS,
    NAMES,
    QUESTIONS,
    SCORES,
    TableKind,
    make_table,
    read_table,
    validate,
    write_table,
)

TABLE_KINDS = {kind.name: kind for kind in vars(schemas).values() if isinstance(kind, TableKind)}
ROWS = {
    "premises": [
        {"question_id": "q-1", "fact_id": "f_1", "step": 1, "axiom": "TransitiveOP", "sentence": "A cat is a mammal."},
        {"question_id": "q-1", "fact_id": "f_2", "step": 2, "axiom": "SubOP(OPChain)"},
    ],
    "premise_questions": [
        {"question_id": "q-1", "shown": "first", "first": ["q-2"], "second": ["q-3"], "memory": "half"}
    ],
    "settings": [{"question_id": "q-1", "model": "minilm-mlm", "premises": "EX/IM"}],
    "facts": [
        {"subject": "Q1", "predicate": "capital", "object": "Q2", "start": "1990", "premises": ["f_1", "f_2"]},
        {"subject": "Q1", "predicate": "area", "value": 12.5, "unit": "km2", "domain": "geography"},
    ],
    "names": [{"entity": "Q1", "label": "Côte d'Ivoire", "aliases": ["Ivory Coast"]}, {"entity": "Q2", "label": "东"}],
    "questions": [
        {"prompt": f"Paris is in {SLOT}.", "answers": ["France"], "target": "France", "choices": ["France", "Peru"]},
        {"prompt": f"{SLOT}?", "answers": ["a", "b"], "target": "b", "candidate_set": "c-1", "facts": ["f_1"]},
    ],
    "candidates": [{"candidate_set": "c-1", "candidates": ["a", "b"]}],
    "frequencies": [{"task": "completion", "relation": "capital", "answer": "Paris", "count": 3}],
    "entities": [{"question_id": "q_1", "entities": ["Paris", "New York"]}, {"question_id": "q_2", "entities": []}],
    "pairs": [{"task": "checking", "relation": "capital", "first": "France", "second": "Paris", "holds": True}],
    "controls": [{"question_id": "q_1", "control": "subject-blind", "prompt": f"The capital is {SLOT}."}],
    "answers": [
        {"question_id": "q_1", "model": "m", "probe": "rank", "method": "mean", "prediction": "a", "gold_ties": [1]}
        | {"ranked": [{"candidate": "a", "score": -1.5}, {"candidate": "b", "score": -2.0}], "gold_ranks": [1.0]},
        {"question_id": "q_2", "model": "m", "probe": "rank", "method": "mean", "unusable": "too long"},
    ],
    "scores": [
        {"model": "m", "suite": "s", "task": "t", "probe": "p", "method": "x", "metric": "r@1", "value": 0.5}
        | {"n": 2, "unusable": 0, "relation": "capital"},
        {"model": "m", "suite": "s", "task": "t", "probe": "p", "method": "x", "metric": "r@1", "n": 0, "unusable": 1},
    ],
}

ROWS["control_answers"] = [{**row, "control": "association"} for row in ROWS["answers"]]
ROWS["trainings"] = [{**row, "training": number} for number, row in enumerate(ROWS["answers"], 2)]


def refusal(call, *given, **named) -> str:
    with pytest.raises(InputError) as refused:
        call(*given, **named)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def question(**changed):
    return {**ROWS["questions"][0], **changed}


def test_every_kind_of_table_comes_back_from_parquet(tmp_path):
    def check(name):
        kind = TABLE_KINDS[name]
        table = make_table(kind, ROWS[name])
        write_table(kind, table, tmp_path / f"{name}.parquet")
        back = read_table(kind, tmp_path / f"{name}.parquet")
        assert back.equals(table)
        for row, wanted in zip(back.to_pylist(), ROWS[name], strict=True):
            assert {key: row[key] for key in wanted} == wanted

    check_all(check, TABLE_KINDS)


def test_every_kind_of_table_may_be_empty(tmp_path):
    def check(name):
        kind = TABLE_KINDS[name]
        write_table(kind, make_table(kind, []), tmp_path / f"{name}.parquet")
        (tmp_path / f"{name}.jsonl").write_text("\n\n")
        for ending in ("parquet", "jsonl"):
            back = read_table(kind, tmp_path / f"{name}.{ending}")
            assert back.num_rows == 0
            assert back.column_names == kind.schema.names

    check_all(check, TABLE_KINDS)


TEXT = st.text(max_size=12).filter(lambda text: SLOT not in text)
SOME = st.lists(TEXT, min_size=1, max_size=4, unique=True)


@st.composite
def question_rows(draw):
    answers = draw(SOME)
    row = {
        "suite": draw(TEXT),
        "task": draw(TEXT),
        "prompt": draw(TEXT) + SLOT + draw(TEXT),
        "answers": answers,
        "target": draw(st.sampled_from(answers)),
        "facts": draw(st.lists(TEXT, max_size=2)),
        "domain": draw(st.none() | TEXT),
        "split": draw(st.none() | TEXT),
    }
    row["choices" if draw(st.booleans()) else "candidate_set"] = "set"
    return {**row, "choices": draw(SOME)} if "choices" in row else row


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(question_rows(), max_size=5, unique_by=lambda row: (row["prompt"], row["target"])))
def test_any_questions_come_back_as_they_went(tmp_path, rows):
    table = make_table(QUESTIONS, rows)
    write_table(QUESTIONS, table, tmp_path / "q.parquet")
    back = read_table(QUESTIONS, tmp_path / "q.parquet").to_pylist()
    assert [row["question_id"] for row in back] == table["question_id"].to_pylist()
    for row, wanted in zip(back, rows, strict=True):
        assert {key: row[key] for key in wanted} == wanted


def test_a_row_that_does_not_fit_is_refused_by_its_number():
    def check(kind, row, said):
        assert said in refusal(make_table, kind, [ROWS[kind.name][0], row])

    cases = [
        (QUESTIONS, question(prompt="No slot here."), "questions, row 2: the prompt 'No slot here.' has no slot"),
        (QUESTIONS, question(prompt=f"{SLOT} and {SLOT}"), "has 2 slots; write [MASK] exactly once"),
        (QUESTIONS, question(prompt=None), "questions, row 2: 'prompt' is empty"),
        (QUESTIONS, question(answers=[], prompt=f"Other {SLOT}"), "questions, row 2: 'answers' is empty"),
        (QUESTIONS, question(candidate_set="c"), "either 'choices' or a 'candidate_set'"),
        (QUESTIONS, question(choices=None), "either 'choices' or a 'candidate_set'"),
        (QUESTIONS, question(), "questions, row 2: repeats questions, row 1 ('Paris is in [MASK].'). Remove one."),
        (QUESTIONS, question(anwers=["x"]), "no column 'anwers' in a table of questions; did you mean 'answers'?"),
        (QUESTIONS, question(target=["x"]), "questions, row 2: 'target' must be string, got ['x']"),
        (QUESTIONS, question(answers="France"), "questions, row 2: 'answers' must be list<item: string>, got 'France'"),
        (FACTS, {"subject": "s", "predicate": "p", "object": "o", "value": 1.0}, "both or neither"),
        (FACTS, {"subject": "s", "predicate": "p"}, "both or neither"),
        (FACTS, {"subject": "s", "predicate": "p", "value": "many"}, "'value' must be double, got 'many'"),
        (CANDIDATES, {"candidate_set": "c-1", "candidates": ["x"]}, "repeats candidates, row 1"),
        (NAMES, {"entity": "Q1"}, "names, row 2: 'label' is empty"),
        (SCORES, {**ROWS["scores"][0], "n": 1.5}, "'n' must be int64, got 1.5"),
    ]
    check_all(check, cases)


def test_a_fact_ends_after_it_began():
    def check(start, end, fits):
        row = {"subject": "Q9696", "predicate": "held", "object": "Q11696", "start": start, "end": end}
        if fits:
            assert make_table(FACTS, [row]).num_rows == 1
        else:
            said = refusal(make_table, FACTS, [ROWS["facts"][0], row])
            assert said == f"facts, row 2: end {end} is before start {start} for 'Q9696'"

    cases = [
        ("1961", "1957", False),
        ("1957", "1961", True),
        ("1957", "1957", True),
        ("476", "1453", True),
        ("1453", "476", False),
        ("-44", "14", True),
        ("14", "-44", False),
        ("1990-10-03", "1990-03-01", False),
        ("1990-03-01", "1990", True),
        ("1990", "1990-03-01", True),
        ("1990-03", "1990-02-28", False),
        ("+1990-10-03T00:00:00Z", "+1991-01-01T00:00:00Z", True),
        (None, "1957", True),
        ("1957", None, True),
        ("long ago", "1957", True),
    ]
    check_all(check, cases)


def test_a_table_is_refused_for_its_columns():
    table = make_table(QUESTIONS, ROWS["questions"])
    said = refusal(validate, QUESTIONS, table.drop_columns(["prompt"]))
    assert said == "questions: the column 'prompt' is missing from the table of questions; add it"
    said = refusal(validate, QUESTIONS, table.append_column("promt", table["prompt"]))
    assert said == "questions: there is no column 'promt' in a table of questions; did you mean 'prompt'?"
    numbers = pa.array([[1.0], [2.0]], pa.list_(pa.float64()))
    said = refusal(validate, QUESTIONS, table.set_column(4, "prompt", numbers))
    assert said == "questions: the column 'prompt' must hold string, got list<item: double>"
    assert validate(QUESTIONS, table.drop_columns(["split"])).column_names == QUESTIONS.schema.names


def test_scores_may_carry_further_columns():
    table = make_table(SCORES, [{**ROWS["scores"][0], "rule": "chain"}])
    assert table["rule"].to_pylist() == ["chain"]
    assert validate(SCORES, table).column_names[-2:] == ["relation", "rule"]


def test_an_answer_is_a_row_of_the_table():
    answer = Answer("q_1", "m", "rank", "mean", "a", (("a", -1.5), ("b", -2.0)), ("a",), (1.0,), (1,), seconds=0.1)
    (row,) = make_table(ANSWERS, [answer.as_row()]).to_pylist()
    assert row["ranked"] == [{"candidate": "a", "score": -1.5}, {"candidate": "b", "score": -2.0}]
    assert (row["gold_ranks"], row["gold_ties"], row["unusable"], row["seconds"]) == ([1.0], [1], None, 0.1)


def test_questions_get_their_candidates():
    rows = make_table(QUESTIONS, [{**row, "template": "capital/2"} for row in ROWS["questions"]]).to_pylist()
    own, shared = questions_from_rows(rows, {"c-1": ("a", "b")})
    assert own.candidates == ("France", "Peru")
    assert shared.candidates == ("a", "b")
    assert own.relation == "capital"
    assert "the candidate set 'c-1', which is not in the table" in refusal(questions_from_rows, rows, {})
