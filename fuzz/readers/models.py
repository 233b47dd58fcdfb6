"""Readers of what models bring: folders, settings of endpoints, text to learn from, and replies put into words."""

from __future__ import annotations

import functools
import gzip
import json
import sqlite3
from typing import Any

from fuzz import mutations
from fuzz.oddities import yaml_bombs
from fuzz.targets import Place, Target
from merkhet.analysis._corpus_index import read_paragraphs
from merkhet.core.text_formats import parse_yaml
from merkhet.models.chat._chat_settings import read_settings
from merkhet.models.chat._reply_cache import ReplyCache
from merkhet.models.chat.chat_messages import ChatReply, strip_reasoning
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.probes.chat._reply_parsing import parse_answer, parse_choice, parse_verdict
from merkhet.training.text_corpus import read_corpus

_CONFIG = b'{"architectures": ["BertForMaskedLM"], "model_type": "bert", "vocab_size": 30, "hidden_size": 8}'
_SETTINGS = (
    b"temperature: 0.5\n"
    b"seed: 3\n"
    b"key: null\n"
    b"key_header: X-Key\n"
    b"system: Be brief.\n"
    b"length: 20\n"
    b"extra: {top_p: 1}\n"
    b"concurrency: 4\n"
    b"rate: 10.0\n"
    b"tries: 3\n"
    b"timeout: 20\n"
    b"requests: 10\n"
    b"tokens: 1000\n"
)
_TEXT = (
    'A first sentence. And a second!\n\nAnother document, "quoted." 3.14 is no end. 这是一句话。还有一句！\n'.encode()
)
_ARTICLES = b'{"title": "Paris", "text": "Paris is a city.\\n\\nIt is large."}\n{"text": "Rome."}\n'
_REPLIES = (
    b"B",
    b"(B) Paris",
    b"The answer is B.",
    b"Paris",
    b"**Answer:** Paris.",
    b"I'm sorry, I can't answer.",
    "答案是：B".encode(),
    b"<think>hm</think> A",
    b"Paris is the capital of France.",
)
_WORDS = (
    "The answer is",
    "answer",
    "is",
    "A",
    "B",
    "C",
    "(",
    ")",
    "*",
    ".",
    ":",
    "<think>",
    "</think>",
    "Paris",
    "yes",
    "No.",
    "sorry",
    "as an ai",
    "答案",
    "是",
    " " * 5000,
    "_" * 5000,
    "\n" * 500,
    '"' * 3000,
    "I can't",
    "option ",
)


@functools.cache
def _tokens() -> Any:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    made = Tokenizer(WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    return made


def _reply(data: bytes, _place: Place) -> None:
    reply = ChatReply(0, strip_reasoning(data.decode("utf-8", "replace")))
    letters, names = ("A", "B", "C"), ("Rome", "Paris", "")
    parse_choice(reply, letters, names)
    parse_answer(reply, "The capital of France is", ".")
    parse_answer(reply)
    parse_verdict(reply, (("yes", "true", "是"), ("no", "false", "不是")))


def _config(data: bytes, place: Place) -> None:
    folder = place.file("model/config.json", data).parent
    place.file("model/model.safetensors", b"x")
    resolve_model(ModelSpec(str(folder)))


def _settings(data: bytes, _place: Place) -> None:
    given = parse_yaml(data.decode("utf-8", "replace"), "study.yaml")
    if isinstance(given, dict) and all(isinstance(key, str) for key in given):
        settings = read_settings("m", "http://127.0.0.1:1/v1", given)
        assert settings.identity
        assert settings.url


def _address(data: bytes, _place: Place) -> None:
    text = data.decode("utf-8", "surrogateescape")
    if "chat:" not in text[:5]:
        text = f"chat:{text}"
    resolve_model(ModelSpec(text))


def _corpus(name: str) -> Any:
    return lambda data, place: read_corpus(place.file(name, data), _tokens())


def _articles(name: str) -> Any:
    def read(data: bytes, place: Place) -> None:
        for _ in read_paragraphs([place.file(name, data)]):
            pass

    return read


def _kept(data: bytes, place: Place) -> None:
    kept = ReplyCache(place.file("replies.sqlite", data))
    for ending in ("-wal", "-shm"):
        place.given.add(kept.file.with_name(kept.file.name + ending))
    try:
        kept.find(["k1", "k2"])
    finally:
        kept.close()


@functools.cache
def _store() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "create table replies (key text primary key, endpoint text, model text, request text, reply text, kept real)"
    )
    reply = json.dumps({"choices": [{"message": {"content": "A"}}]})
    connection.execute("insert into replies values ('k1', 'e', 'm', '{}', ?, 1.0)", [reply])
    connection.commit()
    return connection.serialize()


def targets() -> list[Target]:
    """The readers of what models bring."""
    return [
        Target(
            "reply, parsed",
            _reply,
            _REPLIES,
            mutations.texts_of(_WORDS),
            _long_replies,
            tuple(word.encode() for word in _WORDS),
            share=2.0,
        ),
        Target("model folder", _config, (_CONFIG,), mutations.json_documents),
        Target("chat settings", _settings, (_SETTINGS,), mutations.yaml_documents, yaml_bombs),
        Target(
            "chat address",
            _address,
            (b"chat:m@http://127.0.0.1:1/v1", b"chat:a/b@https://[::1]:8/v1"),
            mutations.texts_of(
                ("chat:", "@", "http://", "https://", "[::1]", ":99999", "user:pass@", "?q=1", "#x", "/v1")
            ),
            share=0.6,
        ),
        Target(
            "corpus to learn from",
            _corpus("corpus.txt"),
            (_TEXT,),
            mutations.texts_of(("One. ", "Two! ", "\n\n", "。", "”", '"', "...", "3.14")),
            share=0.8,
        ),
        Target("corpus (JSON lines)", _corpus("corpus.jsonl"), (_ARTICLES,), mutations.json_lines, share=0.8),
        Target(
            "corpus (gz)",
            _corpus("corpus.txt.gz"),
            (gzip.compress(_TEXT, 1, mtime=0),),
            mutations.packed(mutations.texts_of(("One. ", "\n\n")), "gz"),
            guided=False,
            share=0.4,
        ),
        Target("corpus to count in", _articles("corpus.jsonl"), (_ARTICLES,), mutations.json_lines, share=0.8),
        Target(
            "corpus to count in (gz)",
            _articles("corpus.jsonl.gz"),
            (gzip.compress(_ARTICLES, 1, mtime=0),),
            mutations.packed(mutations.json_lines, "gz"),
            guided=False,
            share=0.4,
        ),
        Target("kept replies", _kept, (_store(),), guided=False, share=0.4),
    ]


def _long_replies() -> list[bytes]:
    blank = b" " * 50_000
    return [
        b"answer" + blank + b"x",
        b"(" * 100_000,
        b"the answer" + b"\n" * 100_000,
        b"The capital of France is" + blank + b"Paris",
        b"<think>" * 20_000,
        b"<thinking>" + b"x" * 1_000_000,
        b"**" * 50_000 + b"B",
        b"answer is " * 20_000,
        b"\t" * 100_000 + b"B",
        "答案".encode() * 30_000,
        b"A" + blank + b"!",
        b'"' * 100_000,
        b"option" + b"\x0b" * 50_000,
        b"unfortunately, " * 10_000,
        b"The capital of France is " + b"a . " * 20_000,
        b"The capital of France is" + (b" " * 100 + b".") * 500 + b"x",
    ]
