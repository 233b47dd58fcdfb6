"""Sentences of raw text, and the small Chinese material that comes with merkhet."""

from __future__ import annotations

import csv
import gzip
from collections import Counter, defaultdict
from importlib.resources import files
from itertools import pairwise

import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.suites.chneval.questions.cloze_selection import word_positions
from merkhet.suites.chneval.questions.sentences import (
    embedded_file,
    find_text_files,
    read_sentences,
    sentence_spans,
    split_sentences,
)
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter, find_anomalies

RELATIONS = [
    "IsA", "AtLocation", "UsedFor", "CapableOf", "Causes", "HasProperty", "MadeOf", "PartOf", "Desires",
    "MotivatedByGoal", "HasSubevent", "SymbolOf", "CausesDesire",
]  # fmt: skip


def test_a_line_is_split_into_its_sentences():
    def check(line, sentences):
        assert split_sentences(line) == sentences

    check_all(
        check,
        [
            ("你好吗？我很好。", ["你好吗？", "我很好。"]),
            ("他说：“走吧！”大家都走了。", ["他说：“走吧！”", "大家都走了。"]),
            ("我想……算了。", ["我想……", "算了。"]),
            ("真的吗？！（我不信。）好吧", ["真的吗？！", "（我不信。）", "好吧"]),
            ("太好了!我们走吧", ["太好了!", "我们走吧"]),
            ("It cost 3.5 euros. Was it worth it? Yes!", ["It cost 3.5 euros.", "Was it worth it?", "Yes!"]),
            ('He said "go." Then he went.', ['He said "go."', "Then he went."]),
            ("Dr. Smith met J. Doe, e.g. in Rome. They left.", ["Dr. Smith met J. Doe, e.g. in Rome.", "They left."]),
            ("\u3000\u3000没有句号的一行  ", ["没有句号的一行"]),
            ("  ", []),
            ("。。。", ["。。。"]),
        ],
    )


@settings(deadline=None)
@given(st.text(alphabet="我不。！？…”’ .!?aB\u3000,，", max_size=40))
def test_splitting_loses_nothing_but_blanks(line):
    spans = sentence_spans(line)
    assert "".join("".join(line[a:b].split()) for a, b in spans) == "".join(line.split())
    assert all(a < b for a, b in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


@settings(deadline=None)
@given(st.text(alphabet="不但是", max_size=12), st.sampled_from(["不", "不但", "是"]))
def test_a_chinese_word_is_found_wherever_its_characters_are(sentence, word):
    assert word_positions(sentence, word) == [i for i in range(len(sentence)) if sentence[i : i + len(word)] == word]


def test_an_english_word_is_found_as_a_whole_word_in_any_case():
    assert word_positions("In the morning the rain is in Spain", "in", ignore_case=True) == [0, 27]
    assert word_positions("cannot", "not", ignore_case=True) == []


def test_sentences_know_their_file_and_line(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "a.txt").write_text("\ufeff一。二。\r\n\r\n三[MASK]。\n", encoding="utf-8")
    (tmp_path / "b" / "c.txt.gz").write_bytes(gzip.compress("四。".encode()))
    (tmp_path / "d.md").write_text("no text", encoding="utf-8")
    remarked = RemarkCounter()
    found = [
        (one.text, one.where)
        for path, name in find_text_files(tmp_path, (".txt",))
        for one in read_sentences(path, name, remarked)
    ]
    assert found == [("一。", "a.txt, line 1"), ("二。", "a.txt, line 1"), ("四。", "b/c.txt.gz, line 1")]
    assert remarked.remarks() == ["1 line left out: it contains the text [MASK] (a.txt, line 3)."]


def test_what_cannot_be_read_is_refused_by_its_name(tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes("好的。\n".encode() + "不好".encode("gb18030") + b"\n")
    with pytest.raises(InputError, match=r"bad\.txt, line 2: the text is not UTF-8"):
        list(read_sentences(bad, "bad.txt", RemarkCounter()))
    broken = tmp_path / "cut.txt.gz"
    broken.write_bytes(gzip.compress("好的。".encode() * 99)[:-9])
    with pytest.raises(InputError, match=r"cut\.txt\.gz: the compressed file is broken or ends early"):
        list(read_sentences(broken, "cut.txt.gz", RemarkCounter()))
    with pytest.raises(InputError, match="there is no file or folder"):
        find_text_files(tmp_path / "none.txt", (".txt",))
    other = tmp_path / "x.pdf"
    other.write_bytes(b"")
    with pytest.raises(InputError, match=r"ends in \.txt"):
        find_text_files([bad, other], (".txt",))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no file in this folder"):
        find_text_files(tmp_path / "empty", (".txt",))


def _table(name):
    with open(embedded_file(name), encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_the_material_is_installed_with_the_package():
    folder = files("merkhet.suites.chneval.questions") / "zh"
    for name in ("sentences.txt", "senses.tsv", "pairs.tsv", "triples.tsv", "LICENSE.txt", "README.md"):
        assert (folder / name).is_file()


def test_own_sentences_are_whole_and_there_once():
    lines = embedded_file("sentences.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 200
    assert len(set(lines)) == len(lines)
    for line in lines:
        assert split_sentences(line) == [line]
        assert 8 <= len(line) <= 40 and line[-1] in "。！？"
        assert not find_anomalies(line)


def test_own_senses_have_their_word_once_and_something_to_compare():
    rows = _table("senses.tsv")
    assert len({row["sentence"] for row in rows}) == len(rows)
    senses = defaultdict(Counter)
    for row in rows:
        assert row["sentence"].count(row["word"]) == 1, row
        assert not find_anomalies(row["sentence"])
        senses[row["word"]][row["sense"]] += 1
    assert len(senses) >= 24
    assert all(len(counts) >= 2 and min(counts.values()) >= 3 for counts in senses.values())


def test_own_pairs_have_one_end_for_a_start():
    rows = _table("pairs.tsv")
    assert {row["relation"] for row in rows} == set(RELATIONS)
    assert len({(row["start"], row["relation"]) for row in rows}) == len(rows) >= 120
    for row in rows:
        assert row["start"] != row["end"]
        assert not find_anomalies(row["start"] + row["end"])


def test_own_triples_are_in_their_texts():
    rows = _table("triples.tsv")
    assert len({row["text"] for row in rows}) == len(rows) >= 60
    for row in rows:
        text = row["text"]
        assert 16 <= len(text) <= 128
        assert row["subject"] in text and row["relation"] in text and text.count(row["object"]) == 1, row
        assert not find_anomalies(text)
