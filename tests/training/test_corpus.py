"""A corpus is read whole: every sentence in its document, every token once, whatever the file."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import CHINESE_SENTENCES, SENTENCES, byte_level, wordpiece

from merkhet.core.errors import InputError
from merkhet.training.text_corpus import Corpus, corpus_digest, corpus_files, read_corpus, split_sentences


@pytest.fixture(scope="module")
def tokenizer():
    return wordpiece((*CHINESE_SENTENCES, *SENTENCES), True)


def documents(corpus: Corpus, tokenizer) -> list[list[str]]:
    """The sentences of each document, as their tokens read."""
    read = []
    for first, last in pairwise(corpus.documents):
        bounds = corpus.sentences[first : last + 1]
        texts = [tokenizer.decode(corpus.tokens[a:b]) for a, b in pairwise(bounds)]
        read.append([text.replace(" ", "") for text in texts])
    return read


def test_sentences_end_where_they_end() -> None:
    for line, sentences in (
        ("今天下雨。我不去了！你呢？", ["今天下雨。", "我不去了！", "你呢？"]),
        ("他说：“好。”然后走了；她没走……真的？！", ["他说：“好。”", "然后走了；", "她没走……", "真的？！"]),
        ("（他来了。）我走了", ["（他来了。）", "我走了"]),
        ('"好。"他说。"走吧！"', ['"好。"', "他说。", '"走吧！"']),
        ('他说。"好"', ["他说。", '"好"']),
        ("It is 3.14. Is it? Yes!", ["It is 3.14.", " Is it?", " Yes!"]),
        ('He said "Go." She went.', ['He said "Go."', " She went."]),
        ("See x.y for more...  Done", ["See x.y for more...", "  Done"]),
        ("没有标点", ["没有标点"]),
        ("。", ["。"]),
        ("", []),
    ):
        assert split_sentences(line) == sentences


@given(st.text(alphabet='我。！？；…”」）". a!?)\u3000', max_size=40).map(str.strip))
def test_nothing_is_lost_between_sentences(line: str) -> None:
    found = split_sentences(line)
    assert "".join(found) == line
    assert all(sentence.strip() for sentence in found)


def test_blank_lines_part_documents_and_without_any_each_line_is_one(tmp_path: Path, tokenizer) -> None:
    (tmp_path / "a.txt").write_text(
        "\n法国的首都是巴黎。\n德国的首都是柏林。纽约是美国的一座城市。\n \n\n金属和气体是元素。\n\n"
    )
    (tmp_path / "b.txt").write_bytes("\ufeff法国的首都是巴黎。\r\n金属和气体是元素。\r\n\r\n".encode())
    one = documents(read_corpus(tmp_path / "a.txt", tokenizer.backend_tokenizer), tokenizer)
    assert one == [["法国的首都是巴黎。", "德国的首都是柏林。", "纽约是美国的一座城市。"], ["金属和气体是元素。"]]
    two = documents(read_corpus(tmp_path / "b.txt", tokenizer.backend_tokenizer), tokenizer)
    assert two == [["法国的首都是巴黎。"], ["金属和气体是元素。"]]
    both = read_corpus(tmp_path, tokenizer.backend_tokenizer)
    assert documents(both, tokenizer) == [*one, *two]
    assert both.describe() == {"documents": 4, "sentences": 6, "tokens": len(both.tokens)}
    assert (both.tokens.dtype, both.remarks) == ("int32", ())


def test_rows_of_json_packed_files_and_what_is_wrong_in_them(tmp_path: Path, tokenizer) -> None:
    rows = [
        json.dumps({"text": "法国的首都是巴黎。\n金属和气体是元素。"}),
        "{",
        "",
        '{"title": "x"}',
        "[1]",
        '{"text": "  "}',
    ]
    with gzip.open(tmp_path / "wiki.jsonl.gz", "wt", encoding="utf-8") as handle:
        handle.write("\n".join([*rows, json.dumps({"text": "纽约是美国的一座城市。"}, ensure_ascii=False)]))
    corpus = read_corpus(tmp_path / "wiki.jsonl.gz", tokenizer.backend_tokenizer)
    expected = [["法国的首都是巴黎。", "金属和气体是元素。"], ["纽约是美国的一座城市。"]]
    assert documents(corpus, tokenizer) == expected
    assert corpus.remarks == (
        '2 rows of the corpus left out: no "text" (wiki.jsonl.gz:4, wiki.jsonl.gz:5)',
        "1 row of the corpus left out: not valid JSON (wiki.jsonl.gz:2)",
    )


def test_the_tokens_are_those_of_the_whole_text(tmp_path: Path) -> None:
    """Where a blank belongs to the word after it, sentences have the tokens that they have in their line."""
    tokenizer = byte_level(SENTENCES, True)
    text = " ".join(SENTENCES[:4])
    (tmp_path / "a.txt").write_text("\n".join([*SENTENCES[:2], " ".join(SENTENCES[2:4])]) + "\n\nNew York.\n")
    corpus = read_corpus(tmp_path / "a.txt", tokenizer.backend_tokenizer)
    found = corpus.tokens[: corpus.sentences[corpus.documents[1]]]
    assert found.tolist() == tokenizer(text, add_special_tokens=False)["input_ids"]


def test_many_sentences_are_the_same_in_any_number_of_batches(tmp_path: Path, tokenizer, monkeypatch) -> None:
    (tmp_path / "a.txt").write_text(
        "\n\n".join("".join(CHINESE_SENTENCES[i % 5 : i % 5 + 1 + i % 3]) for i in range(50))
    )
    whole = read_corpus(tmp_path / "a.txt", tokenizer.backend_tokenizer)
    monkeypatch.setattr("merkhet.training.text_corpus._BATCH_SIZE", 3)
    parts = read_corpus(tmp_path / "a.txt", tokenizer.backend_tokenizer)
    for name in ("tokens", "sentences", "documents"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()
    assert len(whole.documents) == 51


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, tokenizer) -> None:
    def refused(name: str, content: bytes | None, reason: str) -> None:
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=reason) as error:
            read_corpus(tmp_path / name, tokenizer.backend_tokenizer)
        assert "\n" not in str(error.value)

    refused("none.txt", None, "there is no corpus .*none.txt")
    refused("a.pdf", b"x", "a.pdf is no corpus; its name must end in .txt or .jsonl")
    refused("empty.txt", b" \n\n", "holds no text that the model can tokenize")
    refused("latin.txt", "好\nna\u00efve".encode("utf-8")[:4] + b"na\xefve", "latin.txt:2: the text is not UTF-8")
    refused(
        "broken.txt.gz",
        gzip.compress(b"a " * 10_000)[:40],
        "broken.txt.gz: the compressed file is broken or ends early",
    )
    refused("no.txt.gz", b"text", "no.txt.gz: the compressed file is broken or ends early")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".hidden.txt").write_text("a")
    refused("folder", None, "folder holds no text")


def test_the_digest_is_of_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "b.txt").write_text("b")
    (tmp_path / "one" / "a.jsonl").write_text("{}")
    first = corpus_digest(tmp_path / "one")
    assert [file.name for file in corpus_files(tmp_path / "one")] == ["a.jsonl", "b.txt"]
    (tmp_path / "one" / "README.md").write_text("about")
    (tmp_path / "one").rename(tmp_path / "two")
    assert corpus_digest(tmp_path / "two") == first
    (tmp_path / "two" / "b.txt").rename(tmp_path / "two" / "c.txt")
    assert corpus_digest(tmp_path / "two") != first
    (tmp_path / "x.txt").write_text("{}")
    (tmp_path / "y.jsonl").write_text("{}")
    (tmp_path / "z.txt").write_text("{}")
    one, other, same = (corpus_digest(tmp_path / name) for name in ("x.txt", "y.jsonl", "z.txt"))
    assert one != other and one == same
