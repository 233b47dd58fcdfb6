"""Made words: read as any word is, never written, and of no effect on what the model says of anything else."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf
from all_cases import check_all
from tiny_models import FAMILIES, LONGEST, Family, build_models, wordpiece

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models.extra_embeddings import (
    ExtraEmbeddings,
    get_base_embedding,
    get_extra_embeddings,
    with_extra_words,
)
from merkhet.models.loading import load_model

DISTILBERT = Family(
    lambda texts: wordpiece(texts, True),
    hf.DistilBertForMaskedLM,
    hf.DistilBertConfig,
    {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": LONGEST},
)
NAMES = ("bert-uncased", "bert-cased", "roberta", "albert", "xlm-roberta", "distilbert")
NAMES = (*NAMES, "gpt2", "llama", "llama-sentencepiece", "t5-like")
CANDIDATES = ("Paris", "Berlin", "Rome", "New York", "New Delhi", "the United States", "a metal")
PIECES = (" died in", "'s spouse is", " is a", "'s capital is", " is said to be in", " presents")
POSSESSED = "The king's spouse is said to be the capital's president, and it's true that he died in Rome ."
PLAIN = (
    "The capital of France is [MASK].",
    "[MASK] is a city in Italy or in India.",
    "It is said that [MASK] is old.",
)
# What a family calls a word that is one token in the middle of a sentence.
WORDS = ("capital", "city", "the", "is")


@pytest.fixture(scope="module")
def folders(made_once) -> dict[str, Path]:
    families = {name: {**FAMILIES, "distilbert": DISTILBERT}[name] for name in NAMES}
    more = {name: replace(family, sentences=(*family.sentences, POSSESSED)) for name, family in families.items()}
    folder = made_once("possessed", lambda folder: build_models(folder, more))
    return {name: folder / name for name in NAMES}


@pytest.fixture(scope="module")
def models(folders: dict[str, Path]) -> list:
    """One model of each family; whatever words a test makes, the next one replaces."""
    return [load_model(str(folders[name])) for name in NAMES]


def ask(model, prompts, candidates=CANDIDATES, methods=None) -> list[dict[str, np.ndarray]]:
    asked = [
        Question(f"q{i}", "t", prompt, candidates[:1], candidates[0], candidates) for i, prompt in enumerate(prompts)
    ]
    found = {one.index: one for one in model.score_candidates(asked, methods or model.methods)}
    for index, one in sorted(found.items()):
        assert one.unusable is None, (prompts[index], one.unusable)
    return [found[index].by_method for index in range(len(prompts))]


def same(one, other) -> None:
    for first, second in zip(one, other, strict=True):
        for method in first:
            assert np.array_equal(first[method], second[method]), method


def near(one, other) -> None:
    for first, second in zip(one, other, strict=True):
        for method in first:
            assert first[method] == pytest.approx(second[method], abs=2e-4), method


def inner_token(model, word: str) -> int | None:
    """The one token of a word in the middle of a sentence, or None."""
    encoded = model.tokenizer(f"It {word} or", return_offsets_mapping=True)
    own = [i for i, (start, stop) in enumerate(encoded["offset_mapping"]) if start < 3 + len(word) and stop > 3]
    return encoded["input_ids"][own[0]] if len(own) == 1 else None


def some_word(model) -> tuple[str, torch.Tensor]:
    """A word that is one token, and its embedding."""
    word = next(word for word in WORDS if inner_token(model, word) is not None)
    return word, get_base_embedding(model).weight[inner_token(model, word)].detach().clone()


def random_words(model, *names: str) -> dict[str, torch.Tensor]:
    width = get_base_embedding(model).weight.shape[1]
    random = torch.Generator().manual_seed(len(names))
    return {name: torch.randn(width, generator=random) for name in names}


def part_methods(model) -> list[str]:
    """Methods that give no score to the words around the slot."""
    if model.kind == "masked":
        return [method for method in model.methods if not method.startswith("sentence")]
    return [method for method in model.methods if method.startswith(("candidate", "first"))]


def test_a_word_with_the_embedding_of_another_is_read_as_it(models: list) -> None:
    def check(model) -> None:
        word, vector = some_word(model)
        dressed = with_extra_words(model, {"[X:0]": vector, **random_words(model, "[Y:0]")})
        texts = ("It {} or [MASK].", "It is {} that [MASK] is old.", "The {} of it is [MASK] {} .", "It {} [MASK].")
        wanted = ask(model, [text.replace("{}", word) for text in texts], methods=part_methods(model))
        found = ask(dressed, [text.replace("{}", "[X:0]") for text in texts], methods=part_methods(model))
        near(found, wanted)
        other = ask(dressed, [text.replace("{}", "[Y:0]") for text in texts], methods=part_methods(model))
        assert not np.allclose(other[0][part_methods(model)[0]], wanted[0][part_methods(model)[0]], atol=1e-3)

    check_all(check, models)


def test_a_prompt_without_made_words_is_scored_as_before(models: list) -> None:
    def check(model) -> None:
        before = ask(model, PLAIN)
        dressed = with_extra_words(model, random_words(model, "[X:0]", "[Y:0]", "<s4>"))
        same(ask(dressed, PLAIN), before)
        same(ask(model, PLAIN), before)
        assert with_extra_words(dressed, {}) is model
        assert not isinstance(model.model.get_input_embeddings(), ExtraEmbeddings)
        same(ask(model, PLAIN), before)

    check_all(check, models)


def test_the_vocabulary_of_answers_stays_the_same(models: list) -> None:
    def check(model) -> None:
        dressed = with_extra_words(model, random_words(model, "[X:0]"))
        ids = torch.tensor([dressed.tokenizer("It is [X:0] or so.")["input_ids"]])
        assert len(model.tokenizer) in ids[0].tolist()
        with torch.no_grad():
            logits = dressed.model(input_ids=ids).logits
        assert logits.shape[-1] == model.model.config.get_text_config().vocab_size == len(model.tokenizer)
        assert logits.log_softmax(-1).exp().sum(-1).numpy() == pytest.approx(1.0, abs=1e-4)

    check_all(check, models)


PLACES = (
    ("[X:1]", " [Y:1] ."),
    ("It is said . Therefore , [X:1]", " [Y:1] ."),
    ("[X:1] is a particular ", " ."),
    ("Every [X:1] is ", " ."),
    ("[X:1]'s capital is ", ", [Y:1]."),
    ("The capital of [X:1] <s4> <s5> ", " <s4> [Y:1]"),
    ("[X:1] is [X:1] and ", "[Y:1]"),
)


def test_tokens_are_those_of_the_whole_sentence(models: list) -> None:
    cases = [(model, *place, candidates) for model, place, candidates in product(models, PLACES, (PIECES, CANDIDATES))]
    # A word that is glued to the one before is no word to this family.
    cases = [case for case in cases if not ("sentencepiece" in case[0].name and case[2] == "[Y:1]")]
    check_all(check_tokens, cases)


def check_tokens(model, before: str, after: str, candidates: tuple[str, ...]) -> None:
    dressed = with_extra_words(model, random_words(model, "[X:1]", "[Y:1]", "<s4>", "<s5>"))
    first = len(model.tokenizer)
    placed = dressed.candidate_tokenizer.tokenize_candidates(f"{before}[MASK]{after}", candidates)
    for text, one in zip(candidates, placed, strict=True):
        encoded = dressed.tokenizer(before + text + after, return_offsets_mapping=True)
        assert list(one.ids) == encoded["input_ids"]
        made = [token for token in one.ids if token >= first]
        assert len(made) == sum((before + after).count(word) for word in ("[X:1]", "[Y:1]", "<s4>", "<s5>"))
        assert all(token < first for token in one.ids[one.start : one.stop])
        own = [
            i
            for i, (start, stop) in enumerate(encoded["offset_mapping"])
            if start < len(before) + len(text) and stop > len(before) and stop > start
        ]
        assert (one.start, one.stop) == (own[0], own[-1] + 1)


def test_a_blank_before_a_word_is_part_of_it_and_a_blank_after_it_is_not(models: list) -> None:
    def check(model) -> None:
        dressed = with_extra_words(model, random_words(model, "[X:1]"))
        plain = model.tokenizer("It is old", add_special_tokens=False)["input_ids"]
        found = dressed.tokenizer("[X:1] is old", add_special_tokens=False)["input_ids"]
        assert found[0] == len(model.tokenizer)
        assert found[1:] == plain[-len(found) + 1 :]
        for text in ("It [X:1]", "It is [X:1]"):
            alone = model.tokenizer(text.removesuffix(" [X:1]"), add_special_tokens=False)["input_ids"]
            assert dressed.tokenizer(text, add_special_tokens=False)["input_ids"] == [*alone, len(model.tokenizer)]

    check_all(check, models)


def test_every_method_scores_around_made_words(models: list) -> None:
    def check(model) -> None:
        dressed = with_extra_words(model, random_words(model, "[X:1]", "[Y:1]"))
        prompts = ("[X:1][MASK] [Y:1] .", "Therefore , [X:1] is a [MASK] .", "[X:1] [Y:1] [MASK] [Y:1]")
        for one in ask(dressed, prompts, PIECES):
            for method, scores in one.items():
                assert np.all(np.isfinite(scores)) and np.all(scores < 0), method

    check_all(check, models)


def causal_by_hand(model, prompt: str, candidate: str, part: str) -> list[float]:
    """Log-probabilities of the written tokens of a part of a sentence, in one pass without anything shared."""
    before, after = prompt.split("[MASK]")
    encoded = model.tokenizer(before + candidate + after, return_offsets_mapping=True)
    ids = encoded["input_ids"]
    start = next(i for i, (low, high) in enumerate(encoded["offset_mapping"]) if high > len(before) and high > low)
    if ids[-1] in model.tokenizer.all_special_ids:
        ids = ids[:-1]
    if part == "sentence" and ids[0] not in model.tokenizer.all_special_ids:
        ids, start = [model.start_token(), *ids], 0
    with torch.no_grad():
        logits = model.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    scored = range(max(1, start), len(ids)) if part != "sentence" else range(1, len(ids))
    return [logits[i - 1, ids[i]].item() for i in scored if ids[i] not in model.input_only]


def test_made_words_have_no_part_in_a_causal_score(folders: dict[str, Path]) -> None:
    families = ("gpt2", "llama", "llama-sentencepiece")
    check_all(lambda family: check_causal_scores(load_model(str(folders[family]))), families)


def check_causal_scores(model) -> None:
    dressed = with_extra_words(model, random_words(model, "[X:1]", "[Y:10]"))
    prompt = "The capital of [X:1][MASK] [Y:10] , it is said ."
    (found,) = ask(dressed, (prompt,), PIECES)
    for number, piece in enumerate(PIECES):
        given, whole = (causal_by_hand(dressed, prompt, piece, part) for part in ("given", "sentence"))
        assert found["sum"][number] == pytest.approx(sum(given), abs=1e-3)
        assert found["mean"][number] == pytest.approx(np.mean(given), abs=1e-3)
        characters = len(f"{piece}  , it is said .")
        assert found["per-character"][number] == pytest.approx(sum(given) / characters, abs=1e-3)
        assert found["sentence-sum"][number] == pytest.approx(sum(whole), abs=1e-3)
        assert found["sentence-mean"][number] == pytest.approx(np.mean(whole), abs=1e-3)


def test_made_words_are_not_masked_in_a_sentence(folders: dict[str, Path]) -> None:
    model = load_model(str(folders["bert-cased"]))
    dressed = with_extra_words(model, random_words(model, "[X:1]"))
    (found,) = ask(dressed, ("[X:1] is a [MASK] .",), ("city", "metal"), ("sentence-pll-sum",))
    ids = dressed.tokenizer("[X:1] is a city .")["input_ids"]
    total = 0.0
    for place, token in enumerate(ids):
        if token not in dressed.tokenizer.all_special_ids and token < len(model.tokenizer):
            row = [*ids[:place], dressed.mask, *ids[place + 1 :]]
            with torch.no_grad():
                total += dressed.model(input_ids=torch.tensor([row])).logits[0, place].log_softmax(-1)[token].item()
    assert found["sentence-pll-sum"][0] == pytest.approx(total, abs=1e-3)


def test_a_made_word_is_no_candidate(models: list) -> None:
    def check(model) -> None:
        dressed = with_extra_words(model, random_words(model, "[X:1]"))
        asked = [Question("q", "t", "It is [MASK] .", ("Rome",), "Rome", ("Rome", "[X:1]"))]
        (found,) = dressed.score_candidates(asked, model.methods[:1])
        assert found.unusable == "the candidate '[X:1]' holds a word that this model reads and never writes"

    check_all(check, models)


def test_dressing_again_replaces(models: list) -> None:
    def check(model) -> None:
        before = ask(model, PLAIN)
        words = random_words(model, "[X:0]", "[Y:0]")
        prompts = ("Therefore , [X:0] is [MASK] .",)
        first = with_extra_words(model, {"[X:0]": words["[X:0]"]})
        alone = ask(first, prompts)
        second = with_extra_words(first, {"[Y:0]": words["[Y:0]"], "[X:0]": words["[Y:0]"]})
        assert not np.allclose(ask(second, prompts)[0][model.methods[0]], alone[0][model.methods[0]], atol=1e-3)
        again = with_extra_words(second, {"[X:0]": words["[X:0]"]})
        same(ask(again, prompts), alone)
        assert again.fingerprint == first.fingerprint != second.fingerprint
        assert model.fingerprint not in (first.fingerprint, second.fingerprint)
        assert get_extra_embeddings(again).table.shape[0] == 1
        assert again.describe() == model.describe()
        same(ask(model, PLAIN), before)

    check_all(check, models)


def test_words_that_cannot_be_made_are_refused(folders: dict[str, Path]) -> None:
    def check(family: str) -> None:
        model = load_model(str(folders[family]))
        width = get_base_embedding(model).weight.shape[1]
        with pytest.raises(InputError, match=r"\[X:0\] has an embedding of \(3,\), not"):
            with_extra_words(model, {"[X:0]": torch.zeros(3)})
        known = next(iter(model.tokenizer.get_vocab()))
        with pytest.raises(InputError, match="already has some of these as tokens"):
            with_extra_words(model, {"[X:0]": torch.zeros(width), known: torch.zeros(width)})
        with pytest.raises(InputError, match="has no extra words"):
            get_extra_embeddings(model)
        assert not isinstance(model.model.get_input_embeddings(), ExtraEmbeddings)

    check_all(check, ("bert-uncased", "albert", "llama"))


def test_the_precision_of_the_network_stays(folders: dict[str, Path]) -> None:
    for family in ("bert-cased", "llama"):
        model = load_model(str(folders[family]))
        network = model.model.to(torch.bfloat16)
        half = type(model)(model.name, model.fingerprint, network, model.tokenizer)
        dressed = with_extra_words(half, random_words(half, "[X:0]"))
        assert network.dtype == torch.bfloat16
        ask(dressed, ("Therefore , [X:0] is [MASK] .",))
        assert dressed.describe() == half.describe()


def test_a_vocabulary_that_is_padded(folders: dict[str, Path]) -> None:
    """Rows beyond the tokenizer's are never read, so made words may have their numbers."""
    families = ("bert-uncased", "roberta", "gpt2", "llama")
    check_all(lambda family: check_padded_vocabulary(load_model(str(folders[family]))), families)


def check_padded_vocabulary(model) -> None:
    model.model.resize_token_embeddings(len(model.tokenizer) + 7)
    padded = type(model)(model.name, model.fingerprint, model.model, model.tokenizer)
    word, vector = some_word(padded)
    methods = part_methods(padded)
    wanted = ask(padded, (f"It {word} or [MASK].",), methods=methods)
    before = ask(padded, PLAIN)
    dressed = with_extra_words(padded, {"[X:0]": vector, **random_words(padded, "[Y:0]")})
    near(ask(dressed, ("It [X:0] or [MASK].",), methods=methods), wanted)
    same(ask(dressed, PLAIN), before)
    for scores in ask(dressed, ("[X:0][MASK] [Y:0] .",), PIECES)[0].values():
        assert np.all(np.isfinite(scores))


def test_words_can_be_learned(folders: dict[str, Path]) -> None:
    for family in ("bert-uncased", "albert", "gpt2"):
        model = load_model(str(folders[family]))
        dressed = with_extra_words(model, random_words(model, "<s1>", "<s2>"))
        table = get_extra_embeddings(dressed).table
        for weights in dressed.model.parameters():
            weights.requires_grad_(False)
        ids = torch.tensor([dressed.tokenizer("It <s1> is")["input_ids"]])
        dressed.model(input_ids=ids).logits.log_softmax(-1)[0, -1, 0].backward()
        assert table.grad is not None and table.grad[0].abs().sum() > 0
        assert table.grad[1].abs().sum() == 0


def test_all_families_are_tried() -> None:
    assert set(NAMES) == {*FAMILIES, "distilbert"} - {"bert-chinese"}
