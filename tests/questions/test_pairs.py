"""Pairs of words from tables and from a knowledge base: each once, bad rows named."""

from __future__ import annotations

import csv

import pytest

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, NAMES, make_table
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.store import KnowledgeBase
from merkhet.suites.chneval.questions.worded_triples import Triple, pairs_from_facts, read_pairs


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_found_by_name_and_repeats_are_one(tmp_path):
    path = write(
        tmp_path,
        "words.csv",
        ',url,start,rel,end\n0,"IsA,猫,动物",猫,IsA,动物\n1,x,猫,/r/IsA,动物/n\n2,x,热带_鱼/n,AtLocation,海里\n',
    )
    found = read_pairs(path)
    assert found.triples == (
        Triple("猫", "IsA", "动物", where="words.csv, line 2"),
        Triple("热带 鱼", "AtLocation", "海里", where="words.csv, line 4"),
    )
    assert found.rows == 3
    assert not found.remarks


def test_bad_rows_are_left_out_and_named(tmp_path):
    rows = [
        "Start\tRelation\tEnd",
        "猫\tIsA\t动物",
        "狗\tIsA",
        "\tIsA\t动物",
        "[MASK]\tIsA\t鸟",
        "鱼\tIsA\t鱼/n",
        "/n\tIsA\t鸟",
    ]
    found = read_pairs(write(tmp_path, "words.tsv", "\n".join(rows) + "\n"))
    assert [pair.subject for pair in found.triples] == ["猫"]
    assert found.rows == 6
    told = " ".join(found.remarks)
    for line in range(3, 8):
        assert f"words.tsv, line {line}" in told
    assert "2 cells where the header has 3" in told


def test_a_line_that_is_not_utf_8_is_a_bad_row(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_bytes("start\trel\tend\n猫\tIsA\t动物\n".encode() + "狗\tIsA\t动物\n".encode("gb18030"))
    found = read_pairs(path)
    assert len(found.triples) == 1
    assert "words.tsv, line 3" in found.remarks[0]
    assert "UTF-8" in found.remarks[0]


def test_json_lines_are_read(tmp_path):
    lines = [
        '{"start": "猫", "relation": "IsA", "end": "动物"}',
        "[1]",
        '{"start": 3, "relation": "IsA", "end": "鸟"}',
        "{",
    ]
    found = read_pairs(write(tmp_path, "words.jsonl", "\n".join(lines)))
    assert [(pair.subject, pair.where) for pair in found.triples] == [("猫", "words.jsonl, line 1")]
    assert found.rows == 4


def test_a_file_without_the_columns_is_refused(tmp_path):
    path = write(tmp_path, "words.tsv", "start\tend\n猫\t动物\n")
    with pytest.raises(InputError, match=r"words\.tsv:1: there is no column 'relation' .*start, end"):
        read_pairs(path)
    with pytest.raises(InputError, match="there is no file"):
        read_pairs(tmp_path / "none.csv")


def test_facts_of_a_knowledge_base_are_pairs_in_a_language():
    facts = [
        ("zh/猫", "/r/IsA", "zh/动物"),
        ("zh/猫", "IsA", "zh/动物/n"),
        ("zh/猫", "Antonym", "en/dog"),
        ("a", "is", "b"),
    ]
    names = [("zh/猫", "zh", "猫"), ("zh/动物", "zh", "动物"), ("zh/动物/n", "zh", "动物"), ("en/dog", "en", "dog")]
    names += [("zh/猫", "en", "cat"), ("a", "zh", "同"), ("b", "zh", "同")]
    material = Chunk(
        make_table(FACTS, [{"subject": s, "predicate": p, "object": o} for s, p, o in facts]),
        make_table(NAMES, [{"entity": e, "language": spoken, "label": label} for e, spoken, label in names]),
    )
    with KnowledgeBase([material]) as knowledge:
        every = knowledge.query("select * from names")
        found = pairs_from_facts(knowledge.facts(), every, "zh")
        english = pairs_from_facts(knowledge.facts(), knowledge.names("en"), "en")
    assert [pair.fact for pair in found.triples] == [("猫", "IsA", "动物")]
    assert found.rows == 4
    assert any("1 fact left out: an item has no label in 'zh'" in said for said in found.remarks)
    assert any("both items have the same label" in said for said in found.remarks)
    assert [pair.fact for pair in english.triples] == [("cat", "Antonym", "dog")]


def test_real_pairs_are_those_that_a_plain_count_finds(shared):
    path = next((shared / "data/conceptnet_zh").glob("*.csv"))
    expected, rows = set(), 0
    with open(path, encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle):
            rows += 1
            start, end = (row[name].split("/")[0].replace("_", " ").strip() for name in ("start", "end"))
            if start and end and start != end:
                expected.add((start, row["rel"], end))
    found = read_pairs(path)
    assert {pair.fact for pair in found.triples} == expected
    assert len(found.triples) == len(expected)
    assert found.rows == rows
