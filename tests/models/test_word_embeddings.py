"""States of words equal the obvious way: one sentence, one pass, nothing shared and nothing padded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from all_cases import check_all
from sense_questions import ENGLISH, asked, cosines_one_by_one, sense_question, similarities
from tiny_models import CAUSAL, FAMILIES, MASKED

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models import _word_embeddings as states
from merkhet.models._network import Network
from merkhet.models._word_embeddings import cosines
from merkhet.models.layer_methods import expand_layers, list_layer_methods
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec
from merkhet.models.protocol import ComparesSenses

LAYERS = 2  # Of every tiny model.


class Passes:
    """Counts what goes through a network, and may run out of memory."""

    def __init__(self, model: Any, monkeypatch: pytest.MonkeyPatch, fits: int = 10**9) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.calls: list[dict[str, Any]] = []
        base = model.model.base_model
        forward = base.forward

        def counted(input_ids: torch.Tensor, **others: Any) -> Any:
            if len(input_ids) > fits:
                raise RuntimeError("CUDA out of memory")
            self.calls.append(others)
            seen = others.get("attention_mask", torch.ones_like(input_ids))
            self.rows += [tuple(row[own.bool()].tolist()) for row, own in zip(input_ids, seen, strict=True)]
            return forward(input_ids=input_ids, **others)

        assert model.word_embeddings.is_causal in (True, False)  # Tried before anything is counted.
        monkeypatch.setattr(base, "forward", counted)


def test_every_layer_equals_one_sentence_at_a_time(model_folders: dict[str, Path]) -> None:
    """With its own head and as an encoder, which has none."""

    def check(family: str) -> None:
        ways = ("word", "masked") if family in MASKED else ("word",)
        names = [f"{way}{layer}" for way in ways for layer in ("@0", "@1", "")]
        network = transformers.AutoModel.from_pretrained(model_folders[family]).eval()
        expected: list[dict[str, list[float]]] = []
        for kind in (None, "encoder"):
            model = load_model(ModelSpec(str(model_folders[family]), kind=kind))
            assert isinstance(model, ComparesSenses)
            assert model.comparing_methods == list_layer_methods(ways, LAYERS)
            assert model.comparing_methods[0] == "word"
            expected = expected or [layers_one_by_one(network, model.tokenizer, one, names) for one in asked(family)]
            found = similarities(model, asked(family), *(f"{way}@all" for way in ways))
            for index, question in enumerate(asked(family)):
                assert sorted(found[index]) == sorted(names)
                for name in names:
                    wanted = pytest.approx(expected[index][name], abs=1e-5)
                    assert found[index][name] == wanted, (kind, question.question_id, name)
            assert found[3]["word"][0] == pytest.approx(1.0) and found[3]["word"][0] != found[3]["word"][1]

    check_all(check, FAMILIES)


def layers_one_by_one(network: Any, tokenizer: Any, question: Question, names: list[str]) -> dict[str, list[float]]:
    layers = {name: name.partition("@") for name in names}
    return {
        name: cosines_one_by_one(network, tokenizer, question, way, int(layer or -1))
        for name, (way, _, layer) in layers.items()
    }


def test_where_a_word_stands_decides(model_folders: dict[str, Path]) -> None:
    twice = "The {} of the {} is Rome."
    first, second = twice.format("_", "capital"), twice.format("capital", "_")
    question = sense_question("q", "capital", first, second, first)

    def check(family: str) -> None:
        (scores,) = similarities(load_model(str(model_folders[family])), [question], "word").values()
        assert scores["word"][1] == pytest.approx(1.0)
        assert scores["word"][0] < 0.999

    check_all(check, ["bert-cased", "roberta", "gpt2"])


def test_all_layers_in_one_pass_equal_each_alone(
    model_folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(family: str) -> None:
        check_all_layers(load_model(str(model_folders[family])), family, monkeypatch)

    check_all(check, ["bert-uncased", "albert", "llama"])


def check_all_layers(model: Any, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model.token_budget = 10**6  # All rows in one batch.
    passes = Passes(model, monkeypatch)
    together = similarities(model, ENGLISH, "word@all", "word@2")
    sentences = {usage[0] for question in ENGLISH for usage in question.usages}
    assert len(passes.calls) == 1
    assert len(passes.rows) == len(set(passes.rows))
    if family not in CAUSAL:  # There a row is the sentence up to a word.
        assert len(passes.rows) == len({sentence.lower() for sentence in sentences})
    for name in ("word@0", "word@1", "word@2", "word"):
        alone = similarities(model, ENGLISH, name)
        for index, scores in alone.items():
            assert scores[name] == pytest.approx(together[index][name], abs=1e-6)
    assert all(scores["word@2"] == scores["word"] for scores in together.values())
    assert [call["output_hidden_states"] for call in passes.calls] == [True, True, True, False, False]


def test_the_work_is_counted(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-cased"]))
    usages = [usage for question in ENGLISH for usage in question.usages]
    rows = {tuple(model.tokenizer(sentence)["input_ids"]) for sentence, _, _ in usages}
    similarities(model, ENGLISH, "word@all")
    assert model.work["rows"] == len(rows) < len(set(usages))
    assert model.work["tokens"] == sum(map(len, rows))
    similarities(model, ENGLISH, "masked")
    assert len(rows) < model.work["rows"] <= len(rows) + len(set(usages))
    assert model.work["rows_one_by_one"] == 4 * len(usages)


def test_a_causal_model_reads_nothing_after_the_word(
    model_folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    question = sense_question("q", "Rome", "The city of _", "_ is old, and it is a city.", "_ is a gas.", "In _")

    def check(family: str) -> None:
        model = load_model(str(model_folders[family]))
        passes = Passes(model, monkeypatch)
        (scores,) = similarities(model, [question], "word@all").values()
        for name in ("word@0", "word@1", "word"):
            assert scores[name][0] == scores[name][1]  # A tie to the last digit.
            assert scores[name][0] != scores[name][2] or name == "word@0"
        assert len(passes.rows) == 3

    check_all(check, CAUSAL)


def test_a_masked_model_reads_on(model_folders: dict[str, Path]) -> None:
    question = sense_question("q", "Rome", "The city of _", "_ is old, and it is a city.", "_ is a gas.")

    def check(family: str) -> None:
        model = load_model(str(model_folders[family]))
        assert not model.word_embeddings.is_causal
        (scores,) = similarities(model, [question], "word").values()
        assert scores["word"][0] != scores["word"][1]

    check_all(check, MASKED)


def test_neither_batches_nor_order_matter(model_folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def check(family: str) -> None:
        check_batches_and_order(load_model(str(model_folders[family])), family, monkeypatch)

    check_all(check, ["bert-chinese", "xlm-roberta", "gpt2", "llama-sentencepiece"])


def check_batches_and_order(model: Any, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = asked(family)
    methods = ("word@all", "masked") if family in MASKED else ("word@all",)
    expected = similarities(model, questions, *methods)

    def check(found: dict[int, dict[str, list[float]]]) -> None:
        for index, scores in expected.items():
            for name, values in scores.items():
                assert found[index][name] == pytest.approx(values, abs=1e-6)

    for budget in (1, 30, 100):
        model.token_budget = budget
        check(similarities(model, questions, *methods))
    last = len(questions) - 1
    backwards = similarities(model, questions[::-1], *methods)
    check({last - index: scores for index, scores in backwards.items()})
    monkeypatch.setattr(states, "QUESTIONS_AT_ONCE", 2)
    check(similarities(model, questions, *methods))
    monkeypatch.setattr(states, "QUESTIONS_AT_ONCE", 512)
    model.token_budget = 10**6
    passes = Passes(model, monkeypatch, fits=2)
    check(similarities(model, questions, *methods))
    assert passes.rows and model.token_budget < 10**6


def test_equal_usages_are_ties_to_the_last_digit(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-uncased"]))
    base = sense_question("q", "rome", "_ is a city.", "The capital is _.", "the capital is _.", "It is _.")
    many = [replace(base, question_id=str(number), prompt="it " * number + base.prompt) for number in range(30)]
    for budget in (20, 64, 2048):
        model.token_budget = budget
        for scores in similarities(model, many, "word@all", "masked").values():
            for values in scores.values():
                assert values[0] == values[1]


def test_what_cannot_be_compared_says_why(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-chinese"]))
    fine = "北京是_。"
    questions = [
        sense_question("long", "首都", "北京是" * 30 + "_", fine, fine),
        sense_question("long choice", "首都", fine, "北京是" * 30 + "_", fine),
        sense_question("unknown", "鑫", fine, "_是城市。", fine),
        sense_question("partly", "", fine, fine, fine, words=("首都", "首鑫", "首都")),
        sense_question("blank", " ", fine, fine, fine),
        sense_question("fine", "首都", fine, "_鑫", fine),
    ]
    reasons = {questions[one.index].question_id: one.unusable for one in model.compare_senses(questions, ("word",))}
    assert reasons == {
        "long": "too long: 94 tokens, and the model takes 64",
        "long choice": "too long: 94 tokens, and the model takes 64",
        "unknown": "the word '鑫' holds a token that this model does not know",
        "partly": "the word '首鑫' holds a token that this model does not know",
        "blank": "the word ' ' has no token in this model's vocabulary",
        "fine": None,
    }
    assert list(model.compare_senses([], ("word",))) == []
    assert all(one.unusable for one in model.compare_senses(questions[:2], ("word@all", "masked")))


def test_sentences_up_to_what_a_model_takes(model_folders: dict[str, Path]) -> None:
    for family in ("bert-uncased", "roberta", "gpt2"):
        model = load_model(str(model_folders[family]))
        usable = []
        for count in range(15, 70):
            question = sense_question("q", "Rome", "is " * count + "_", "_", "in _")
            tokens = len(model.tokenizer("is " * count + "Rome")["input_ids"])
            (one,) = model.compare_senses([question], ("word",))
            assert (one.unusable is None) == (tokens <= 64), (family, tokens, one.unusable)
            usable.append(one.unusable is None)
        assert set(usable) == {True, False}


def test_half_precision_is_compared_in_full(model_folders: dict[str, Path]) -> None:
    full = similarities(load_model(str(model_folders["bert-cased"])), ENGLISH, "word@all")
    half = similarities(load_model(ModelSpec(str(model_folders["bert-cased"]), dtype="bfloat16")), ENGLISH, "word@all")
    for index, scores in full.items():
        for name, values in scores.items():
            assert half[index][name] == pytest.approx(values, abs=0.05)


def test_cosines_of_what_is_zero_or_no_number() -> None:
    table = np.array([[3, 4], [0, 0], [np.inf, 1], [-3, -4], [4, -3]], dtype=np.float32)
    found = cosines(table, np.array([[0, 0], [0, 3], [0, 4], [0, 1], [0, 2]]))
    assert found[:3].tolist() == [1.0, -1.0, 0.0]
    assert np.isnan(found[3:]).all()


def test_an_encoder_with_a_decoder_is_refused_in_one_line(model_folders: dict[str, Path]) -> None:
    tokenizer = load_model(str(model_folders["roberta"])).tokenizer
    settings = {"vocab_size": len(tokenizer), "d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    network = transformers.BartForConditionalGeneration(transformers.BartConfig(**settings, **heads))
    model = Network("bart", "", network, tokenizer)
    with pytest.raises(InputError, match="bart is an encoder-decoder model") as caught:
        list(model.compare_senses(ENGLISH, ("word",)))
    assert "\n" not in str(caught.value)


def test_methods_for_all_layers_are_written_out() -> None:
    known = list_layer_methods(("word", "masked"), 12)
    assert len(known) == 2 * 15 and known[:3] == ("word", "word@0", "word@1")
    every = expand_layers(("word@all",), known)
    assert every == (*(f"word@{layer}" for layer in range(12)), "word")
    assert expand_layers(("word", "masked@3", "word@all", "word@12"), known) == (
        "word",
        "masked@3",
        *every[:-1],
        "word@12",
    )
    assert expand_layers(("own@all", "own"), ("own", "own@all")) == ("own@all", "own")
