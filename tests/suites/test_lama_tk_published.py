"""Facts with times as others publish them: real files where they are, and tables of a user's own."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import merkhet
from merkhet.core.errors import InputError
from merkhet.engine.build_step import data_files
from merkhet.suites.lama_tk.published import published_facts
from merkhet.suites.lama_tk.suite import SUITE


def table(file: Path, *lines: str) -> Path:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.mark.slow
def test_positions_of_wikidata(shared) -> None:
    folder = shared / "data" / "temporal"
    assert data_files(SUITE, folder) == [folder / "positions.tsv"]
    for place in (folder, folder / "positions.tsv"):
        with published_facts(place) as (knowledge, told):
            assert knowledge.count() == {"position held": 117_123 - 29}
        [remark] = told
        assert remark.startswith(
            "29 rows are no facts and were left out; the first is positions.tsv:706: end 2011-02-01"
        )


def test_facts_of_yago(shared) -> None:
    folder = shared / "data" / "temporal" / "yago11k"
    assert [file.name for file in data_files(SUITE, folder)] == [
        "train.txt",
        "valid.txt",
        "test.txt",
        "entity2id.txt",
        "relation2id.txt",
    ]
    with published_facts(folder) as (knowledge, told):
        assert sum(knowledge.count().values()) == 20_437
    assert told[0].startswith("72 rows are no facts and were left out; the first is train.txt:168:")
    with pytest.raises(InputError, match="one of several files"), published_facts(folder / "train.txt"):
        pass


@pytest.mark.slow
def test_real_positions_are_asked(shared, tmp_path) -> None:
    found = merkhet.build("lama-tk", data=shared / "data" / "temporal", limit=40, out=tmp_path / "q")
    clusters = found.clusters()
    facts_by_task: dict[str, set[str]] = {}
    for row in rows_of(found):
        facts_by_task.setdefault(row["task"], set()).add(clusters[row["question_id"]])
    assert {len(facts) for facts in facts_by_task.values()} == {40}
    assert all(not row["choices"] or len(row["choices"]) == 100 for row in rows_of(found))
    assert any("no end" in remark for remark in found.about["remarks"])


def rows_of(found):
    return found.questions.to_pylist()


def test_any_table_with_its_columns_is_read_whatever_they_are_called(tmp_path) -> None:
    wanted = {("Ann", "held", "Seat"), ("Bo", "held", "Seat")}
    files = [
        table(
            tmp_path / "a.csv",
            "Subject,Relation,Object,Start,End,note",
            "Ann,held,Seat,1990,1994,x",
            "Bo,held,Seat,1994,1999,",
        ),
        table(
            tmp_path / "b.tsv",
            "subject\tpredicate\tobject\tstart\tend",
            "Ann\theld\tSeat\t1990\t1994",
            "Bo\theld\tSeat\t1994\t1999",
        ),
    ]
    packed = tmp_path / "c.csv.gz"
    packed.write_bytes(gzip.compress(files[0].read_bytes()))
    for file in (*files, packed):
        with published_facts(file) as (knowledge, told):
            facts = knowledge.facts().to_pylist()
            assert {(fact["subject"], fact["predicate"], fact["object"]) for fact in facts} == wanted
            assert told == ()
        assert data_files(SUITE, file) == [file]


def test_ids_stand_for_entities_and_names_are_what_they_are_called(tmp_path) -> None:
    file = table(
        tmp_path / "own.tsv",
        "subject_id\tsubject\tobject_id\tposition\tstart\tend",
        "E1\tBo Kim\tO1\tEnvoy\t1990\t1994",
        "E2\tBo Kim\tO2\tEnvoy\t1991\t1993",
    )
    with published_facts(file) as (knowledge, _):
        assert knowledge.count() == {"position held": 2}
        assert knowledge.labels() == {"E1": "Bo Kim", "E2": "Bo Kim", "O1": "Envoy", "O2": "Envoy"}


def test_rows_that_are_no_facts_are_counted_and_the_others_kept(tmp_path) -> None:
    file = table(
        tmp_path / "own.tsv",
        "subject\tposition\tstart\tend",
        "Ann\tEnvoy\t1990\t1994",
        "Bo\tEnvoy\t1994\t1990",
        "Cy\tEnvoy\t1990s\t1999",
        "Di\tEnvoy",
        "Ed\tEnvoy\t1995\t1999",
        "Ed\tEnvoy\t1995\t1999",
        "Flo\tEnvoy\t2001\t",
    )
    found = merkhet.build("lama-tk", data=file, out=tmp_path / "q", tasks=["statement"])
    assert {fact["subject"] for fact in found.facts.to_pylist()} == {"Ann", "Ed"}
    card = (tmp_path / "q" / "CARD.md").read_text(encoding="utf-8")
    assert "3 rows are no facts and were left out; the first is own.tsv:" in card
    assert "1 row repeats another and counts once." in card
    assert "1 fact has no end: left out." in card
    assert str(tmp_path) not in card


def test_a_table_that_cannot_be_asked_about_is_refused(tmp_path) -> None:
    for lines, message in (
        (["name,office", "Ann,Envoy"], "own.csv:1: column 'subject' is missing"),
        (["subject,start,end", "Ann,1990,1994"], "column 'object' or 'position' is missing"),
        (["subject,object,start,end", "Ann,Envoy,1990,1994"], "column 'relation' is missing"),
        (["subject,position,start", "Ann,Envoy,1990"], "column 'end' is missing"),
        (["subject,position,start,end"], "contains no facts: there are no rows"),
        (
            ["subject,position,start,end", "Ann,Envoy,soon,later"],
            "contains no facts: own.csv:2: start 'soon' is not a date",
        ),
        (["subject,position,start,end", "Ann,Envoy,,"], "no facts with times"),
        (["subject,position,start,end", "Ann,Envoy,1990,"], "has times that can be asked about"),
    ):
        with pytest.raises(InputError, match=message):
            merkhet.build("lama-tk", data=table(tmp_path / "own.csv", *lines), out=tmp_path / "q")
        assert not (tmp_path / "q").exists()


def test_a_folder_without_such_files_is_refused(tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"holds no questions.parquet"):
        merkhet.build("lama-tk", data=tmp_path / "empty", out=tmp_path / "q")
