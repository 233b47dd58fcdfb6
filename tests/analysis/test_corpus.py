"""The index counts what a plain scan of all paragraphs counts."""

from __future__ import annotations

import gzip
import json
import re
import sys
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from merkhet.analysis._corpus_index import (
    WORDS_A_DOCUMENT,
    CorpusIndex,
    corpus_files,
    corpus_identity,
    read_paragraphs,
    split_words,
)
from merkhet.core.errors import InputError

pytest.importorskip("tantivy")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def padded(text):
    """A text's words with a space on either side of each: slow, plain, letter by letter."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).replace("i\u0307", "i")
    found = []
    for letter in text:
        if re.match(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]", letter):
            found.append(f" {letter} ")
        else:
            found.append(letter if letter.isalnum() else " ")
    return f" {' '.join(''.join(found).split())} "


def scanned(paragraphs, phrases, any_of=()):
    """How many paragraphs hold all phrases and one of the others, by looking into each."""
    needed = [padded(phrase) for phrase in phrases if padded(phrase).strip()]
    either = [padded(phrase) for phrase in any_of]
    count = 0
    for paragraph in paragraphs:
        text = padded(paragraph)
        together = all(phrase in text for phrase in needed)
        count += together and (not either or any(not one.strip() or one in text for one in either))
    return count


WORDS = ["New", "new", "York", "YORK", "state", "Straße", "STRASSE", "été", "e\u0301te\u0301", "ﬁeld", "field", "1957"]
WORDS += [
    "3.5",
    "co-operate",
    "co",
    "operate",
    "O'Neill",
    "İzmir",
    "東京",
    "京",
    "snake_case",
    "—",
    "naïve",
    "x²",
    "the",
]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).flatmap(
    lambda chosen: st.lists(st.sampled_from([" ", "  ", ", ", "-", ".\n", " (", '" ', "/"]), min_size=len(chosen)).map(
        lambda between: "".join(word + gap for word, gap in zip(chosen, between, strict=False)).strip()
    )
)
phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(texts.filter(lambda text: padded(text).strip()), min_size=1, max_size=12), st.data())
def test_the_index_counts_what_a_scan_counts(tmp_path_factory, paragraphs, data):
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "texts.txt").write_text("\n\n".join(paragraphs), encoding="utf-8")
    index = CorpusIndex(folder)
    assert len(index) == len(paragraphs)
    for _ in range(8):
        needed = data.draw(st.lists(phrases, max_size=3))
        either = data.draw(st.lists(phrases, max_size=2))
        assert index.count(needed, either) == scanned(paragraphs, needed, either), (needed, either)


SPLIT = (
    ("The U.S. dollar", ["the", "u", "s", "dollar"]),
    ("co-operate, Co_operate!", ["co", "operate", "co", "operate"]),
    ("STRASSE Straße ﬁeld", ["strasse", "strasse", "field"]),
    ("caf\u00e9 cafe\u0301", ["café", "café"]),
    ("在1957年", ["在", "1957", "年"]),
    ("İzmir", ["izmir"]),
    ("…!?", []),
    ("x" * 70_000, ["x" * 200] * 350),
)


def test_words_have_no_case_and_no_punctuation():
    assert [(text, split_words(text)) for text, expected in SPLIT if split_words(text) != expected] == []


def test_articles_are_cut_into_paragraphs_under_their_title(tmp_path):
    long = " ".join(f"w{number}" for number in range(WORDS_A_DOCUMENT + 5))
    articles = [
        {"title": "New York", "text": "It is big.\n\nYork is old,\nand small.\n \n\n"},
        {"id": 3, "text": long},
        {"title": None, "text": ""},
    ]
    lines = "\n".join(json.dumps(article) for article in articles) + "\n\n"
    (tmp_path / "wiki").mkdir()
    with gzip.open(tmp_path / "wiki" / "aa.jsonl.gz", "wt", encoding="utf-8") as handle:
        handle.write(lines)
    (tmp_path / "other.txt").write_text("One.\n\n\n\nTwo\nlines.", encoding="utf-8")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    found = [" ".join(one) for one in read_paragraphs(corpus_files(tmp_path))]
    assert found[:4] == ["one", "two lines", "new york | it is big", "new york | york is old and small"]
    assert [len(one.split()) for one in found[4:]] == [WORDS_A_DOCUMENT, 5]
    index = CorpusIndex(tmp_path)
    assert index.count(["New York"]) == 2 and index.count(["New York", "York is"]) == 1
    assert index.count(["York it"]) == 0, "a phrase does not run from the title into the text"
    assert index.count([]) == len(index) == 6


def test_an_index_is_built_once_for_the_same_files(tmp_path, cache):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text("Paris is in France.")
    first = corpus_identity(folder, tmp_path)
    assert CorpusIndex(folder).count(["paris"]) == 1
    built = {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}
    assert built and CorpusIndex(folder).count(["Paris", "FRANCE"]) == 1
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()} == built
    (folder / "a.txt").write_text("Rome is in Italy.")
    assert corpus_identity(folder, tmp_path) != first
    assert CorpusIndex(folder).count(["paris"]) == 0
    assert len(list((cache / "corpora").iterdir())) == 2, "nothing unfinished is left"


def test_a_broken_corpus_leaves_nothing_behind(tmp_path, cache):
    file = tmp_path / "wiki.jsonl"
    file.write_text('{"text": "fine"}\n\n{"text": \n')
    with pytest.raises(InputError, match=r"wiki\.jsonl, row 3: not valid JSON"):
        CorpusIndex(file)
    file.write_text('{"title": "no text"}\n')
    with pytest.raises(InputError, match=r"row 1: an article must be a JSON object with a string 'text'"):
        CorpusIndex(file)
    (tmp_path / "latin.txt").write_bytes("été".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.txt is not UTF-8"):
        CorpusIndex(tmp_path / "latin.txt")
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"some text " * 1000)[:-20])
    with pytest.raises(InputError, match=r"the compressed file is broken or ends early"):
        CorpusIndex(tmp_path / "cut.txt.gz")
    assert not list((cache / "corpora").iterdir())


def test_a_place_without_texts_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds no texts"):
        corpus_identity(".", tmp_path)
    with pytest.raises(InputError, match=r"is not a folder or file of texts"):
        corpus_identity("nowhere", tmp_path)


def test_without_tantivy_the_way_to_get_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tantivy", None)
    with pytest.raises(InputError, match=r"merkhet\[corpus\]"):
        corpus_identity(".", tmp_path)


@pytest.mark.parametrize("way", ["cut", "zeroed", "gone", "unsealed"])
def test_a_damaged_index_is_built_anew(tmp_path, cache, way):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n\n".join(f"the capital number {number} is a city" for number in range(50)))
    assert CorpusIndex(corpus).count(["capital"]) == 50
    [folder] = (cache / "corpora").iterdir()
    for file in list(folder.iterdir()):
        content = file.read_bytes()
        # New files: the old ones may still be mapped into memory.
        if way in ("cut", "zeroed"):
            file.unlink()
        if way == "cut":
            file.write_bytes(content[: len(content) // 2])
        elif way == "zeroed":
            file.write_bytes(bytes(len(content)))
        elif (way == "gone" and file.suffix == ".store") or (way == "unsealed" and file.name == "whole.json"):
            file.unlink()
    assert CorpusIndex(corpus).count(["capital"]) == 50
    assert CorpusIndex(corpus).count(["number 7"]) == 1
