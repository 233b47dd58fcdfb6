"""Runs that lack something: what is there is shown, what is missing is said in words."""

from __future__ import annotations

import math

import pytest
from explored_runs import PLACES, answer, question, write_run

from merkhet.core.errors import InputError
from merkhet.core.schemas import PREMISES, make_table, write_table
from merkhet.reports.explorer.run_tables import load_tables


def test_a_run_without_answers(explorer, tmp_path):
    client = explorer(write_run(tmp_path / "run", [question()], []))
    about = client.get("run")
    assert about["notes"] == ["This run has no answers."] and about["ways"] == []
    found = client.get("questions", sort="hardest")
    assert found["total"] == 1 and found["questions"][0]["verdicts"] == []
    assert client.get("question", id="q_1")["model_answers"] == []
    assert client.get("facets")["ways"] == []
    assert client.get("questions", result="wrong")["total"] == 0


def test_a_run_without_questions(explorer, tmp_path):
    client = explorer(write_run(tmp_path / "run", [], []))
    assert client.get("run")["questions"] == 0
    for sort in ("run", "hardest", "rank", "text"):
        assert client.get("questions", sort=sort, search="x")["total"] == 0
    assert client.get("facets")["facets"]["task"]["values"] == []


def test_one_model_and_one_question(explorer, tmp_path):
    client = explorer(write_run(tmp_path / "run", [question()], [answer()], facts=[]))
    about = client.get("run")
    assert [way["label"] for way in about["ways"]] == ["small"] and about["has_facts"] is False
    assert client.get("compare", first="small", second="small")["counts"]["both"] == 1
    assert client.get("question", id="q_1")["model_answers"][0]["verdict"] == "right"


def test_scores_and_ranks_that_are_no_numbers(explorer, tmp_path):
    broken = answer(
        model="broken",
        rank=math.nan,
        prediction=None,
        ranked=[{"candidate": "place 1", "score": math.nan}, {"candidate": "place 2", "score": -math.inf}],
    )
    client = explorer(write_run(tmp_path / "run", [question()], [answer(), broken]))
    said = client.get("question", id="q_1")["model_answers"][1]
    assert said["verdict"] == "unusable"
    assert [item["score"] for item in said["ranked"]] == [None, None]
    assert said["golds"] == [{"text": "place 1", "rank": None, "ties": 1}]
    assert client.get("compare", first="small", second="broken")["counts"]["apart"] == 1
    assert client.get("compare", first="small", second="broken")["mean_ranks"] == [None, None]
    for sort in ("hardest", "easiest", "rank"):
        assert client.get("questions", sort=sort)["total"] == 1


def test_answers_to_questions_that_the_run_does_not_have_are_counted_and_left_out(explorer, tmp_path):
    client = explorer(write_run(tmp_path / "run", [question()], [answer(), answer("q_other"), answer("q_third")]))
    assert client.get("run")["notes"] == ["2 answers belong to questions that are not in this run; they are left out."]
    assert client.get("facets")["ways"][0] == {"right": 1, "wrong": 0, "unusable": 0, "tied": 0}


ALIASED = ["place 1", "place 2", "Old Place", "P1"]


def test_aliases_of_right_answers_are_told_from_right_candidates(explorer, tmp_path):
    client = explorer(write_run(tmp_path / "run", [question(answers=ALIASED)], [answer()]))
    shown = client.get("question", id="q_1")
    assert shown["golds"] == ALIASED and shown["written_golds"] == ["Old Place", "P1"]


def test_questions_asked_several_times_are_told_of(explorer, tmp_path):
    said = [answer(rank=rank, repeat=number) for number, rank in enumerate((1.0, 1.0, 4.0))]
    said += [answer("q_2", rank=rank, repeat=number) for number, rank in enumerate((1.0, 2.0))]
    client = explorer(write_run(tmp_path / "run", [question(), question("q_2")], said))
    row, half = client.get("questions")["questions"]
    assert row["verdicts"] == ["right"] and row["ranks"] == [2.0]
    assert half["verdicts"] == ["wrong"] and half["ranks"] == [1.5], "half is not more than half"
    assert "asked several times in one way" in client.get("run")["notes"][0]
    assert len(client.get("question", id="q_1")["model_answers"]) == 3


def test_ways_of_one_name_are_told_apart(explorer, tmp_path):
    said = [
        answer(model="m"),
        answer(model="m", method="mean"),
        answer(model="m", probe="fill", method="mean"),
        answer(model="m (sum)"),
    ]
    labels = [way["label"] for way in explorer(write_run(tmp_path / "run", [question()], said)).get("run")["ways"]]
    assert len(set(labels)) == 4 and labels[1:3] == ["m (rank, mean)", "m (fill, mean)"]


def test_proofs_that_go_in_circles_or_are_endless_come_to_an_end(explorer, tmp_path):
    def fact(number: int, *premises: int) -> dict[str, object]:
        own = {"fact_id": f"f_{number}", "subject": "a", "predicate": "b", "object": str(number)}
        return own | {"rule": "chain", "premises": [f"f_{one}" for one in premises]}

    facts = [fact(0, 1), fact(1, 2), fact(2, 0), *[fact(number, number + 1) for number in range(10, 800)]]
    asked = [question(facts=["f_0"]), question("q_2", facts=["f_10"]), question("q_3", facts=["f_none"])]
    client = explorer(write_run(tmp_path / "run", asked, [answer()], facts=facts))

    def chain(identity: str) -> list[dict[str, object]]:
        (one,) = client.get("question", id=identity)["facts"]
        found = [one]
        while found[-1]["premises"]:
            (below,) = found[-1]["premises"]
            found.append(below)
        return found

    assert [one["fact_id"] for one in chain("q_1")] == ["f_0", "f_1", "f_2", "f_0"]
    assert chain("q_1")[-1]["repeated"] is True
    long = chain("q_2")
    assert len(long) == 300 and long[-1]["cut"] is True and not any(one["cut"] for one in long[:-1])
    assert chain("q_3") == [{"fact_id": "f_none", "missing": True, "premises": []}]


def test_a_fact_that_stands_in_the_proof_of_another_is_not_shown_twice(explorer, tmp_path):
    facts = [
        {"fact_id": "f_a", "subject": "a", "predicate": "p", "object": "b"},
        {"fact_id": "f_b", "subject": "a", "predicate": "p", "object": "c", "rule": "chain", "premises": ["f_a"]},
    ]
    client = explorer(write_run(tmp_path / "run", [question(facts=["f_a", "f_b"])], [answer()], facts=facts))
    (one,) = client.get("question", id="q_1")["facts"]
    assert one["fact_id"] == "f_b" and [below["fact_id"] for below in one["premises"]] == ["f_a"]


def test_premises_of_a_question_are_sentences_in_the_order_of_the_proof(explorer, tmp_path):
    folder = write_run(tmp_path / "run", [question(), question("q_2", prompt="b [MASK]")], [answer()])
    rows = [
        {"question_id": "q_1", "fact_id": f"f_{number}", "step": step, "axiom": axiom, "sentence": sentence}
        for number, (step, axiom, sentence) in enumerate(((2, "chain", "Second."), (1, "TransitiveOP", "First.")))
    ]
    assert explorer(folder).get("question", id="q_1")["premises"] == []
    write_table(PREMISES, make_table(PREMISES, rows), folder / "premises.parquet")
    client = explorer(folder)
    found = client.get("question", id="q_1")["premises"]
    assert [(one["sentence"], one["axiom"]) for one in found] == [("First.", "TransitiveOP"), ("Second.", "chain")]
    assert client.get("question", id="q_2")["premises"] == []


def test_senses_are_shown_with_their_words_in_place(explorer, tmp_path):
    choices = ["A [MASK] of the river.", "A [MASK] gives loans."]
    asked = question(
        prompt="They sat on the [MASK].", answers=choices[:1], target=choices[0], choices=choices, words=["bank"]
    )
    del asked["candidate_set"]
    ranked = [{"candidate": text, "score": 0.5} for text in choices]
    client = explorer(
        write_run(tmp_path / "run", [asked], [answer(ranked=ranked, golds=choices[:1], prediction=choices[0])])
    )
    found = client.get("question", id="q_1")
    assert found["slot"] == "【bank】" and found["compares"] is True
    assert all("bank" in text and "[MASK]" not in text for text in [*found["candidates"], *found["golds"]])
    assert [item["gold"] for item in found["model_answers"][0]["ranked"]] == [True, False]
    assert client.get("questions", search="bank river")["total"] == 1


def test_files_of_older_versions_lack_columns_and_open(explorer, tmp_path):
    import pyarrow.parquet as pq

    folder = write_run(tmp_path / "run", [question()], [answer()])
    for name, lacking in (("answers", ["among", "gold_ties", "repeat"]), ("questions", ["words", "split", "rule"])):
        table = pq.read_table(folder / f"{name}.parquet").drop_columns(lacking)
        pq.write_table(table, folder / f"{name}.parquet")
    client = explorer(folder)
    assert client.get("question", id="q_1")["model_answers"][0]["among"] is None
    assert client.get("questions")["questions"][0]["tied"] == [False]


def test_candidates_without_end_are_cut_and_counted(explorer, tmp_path):
    names = [*PLACES, *(f"further place {number}" for number in range(3000))]
    client = explorer(write_run(tmp_path / "run", [question()], [answer()], candidates=names))
    found = client.get("question", id="q_1")
    assert found["candidate_count"] == len(names) and found["candidates"] == names[:2000]


@pytest.mark.parametrize("name", ["questions", "answers"])
def test_a_table_that_is_missing_or_broken_is_named(tmp_path, name):
    folder = write_run(tmp_path / "run", [question()], [answer()])
    file = folder / f"{name}.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(
        InputError, match=rf"{name}\.parquet is not a complete Parquet file .*Create or download it again"
    ):
        load_tables(folder)
    file.unlink()
    with pytest.raises(InputError, match=rf"there is no file .*{name}\.parquet"):
        load_tables(folder)


@pytest.mark.parametrize("rows", [1, 700, 1024, 1025, 5000])
def test_rows_are_read_from_groups_of_any_size(tmp_path, rows):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from merkhet.core.schemas import ANSWERS, make_table

    folder = write_run(tmp_path / "run", [question()], [])
    table = make_table(ANSWERS, [answer(f"q_{number}", golds=[f"g {number}"]) for number in range(3000)])
    pq.write_table(pa.table(table), folder / "answers.parquet", row_group_size=rows)
    wanted = [0, 1023, 1024, 1025, 1500, 2999]
    names = ["question_id", "golds", "ranked"]
    found = load_tables(folder).read_file(ANSWERS, names, f"number in {tuple(wanted)} order by number", {})
    given = table.select(names).to_pylist()
    assert found == [given[number] for number in wanted]
