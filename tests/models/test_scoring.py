"""Fast scoring equals the obvious way: one candidate, one forward pass, nothing shared and nothing padded."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from all_cases import check_all

from merkhet.core.records import Question
from merkhet.models import causal
from merkhet.models.demo_models import minilm_mlm, smollm2_135m
from merkhet.models.loading import load_model

CANDIDATES = ("Paris", "Berlin", "Rome", "New York", "New Delhi", "the United States", "a metal")
PROMPTS = (
    "The capital of France is [MASK].",
    "[MASK] is the capital of Germany.",
    "It is said that [MASK] is a city in Italy or in India.",
    "Is [MASK]",
    'They call it "[MASK]", a city.',
)
MASKED = ("bert-uncased", "bert-cased", "roberta", "albert", "xlm-roberta", "bert-chinese")
CAUSAL = ("gpt2", "llama", "llama-sentencepiece", "t5-like")
CHINESE_CANDIDATES = ("巴黎", "柏林", "罗马", "北京", "一座城市", "Paris", "New York")
CHINESE_PROMPTS = ("法国的首都是[MASK]。", "[MASK]是德国的首都。", "金属和[MASK] is 中国的首都")


def questions() -> list[Question]:
    found = [Question(f"q{i}", "t", prompt, ("Paris",), "Paris", CANDIDATES) for i, prompt in enumerate(PROMPTS)]
    return [*found, Question("yes", "t", "This is [MASK].", ("true",), "true", ("true", "false"))]


def chinese_questions() -> list[Question]:
    return [
        Question(f"z{i}", "t", prompt, ("巴黎",), "巴黎", CHINESE_CANDIDATES)
        for i, prompt in enumerate(CHINESE_PROMPTS)
    ]


def encode(model, question: Question, candidate: str):
    """The sentence as the tokenizer sees it, and the tokens that touch the candidate's characters."""
    before, after = question.prompt.split("[MASK]")
    encoded = model.tokenizer(before + candidate + after, return_offsets_mapping=True)
    first, last = len(before), len(before) + len(candidate)
    own = [i for i, (start, stop) in enumerate(encoded["offset_mapping"]) if start < last and stop > first]
    return encoded, [i for i in own if encoded["offset_mapping"][i] != (0, 0)]


def pool(values, pooling: str, characters: int = 1) -> float:
    values = np.array(values)
    pooled = {"sum": values.sum(), "mean": values.mean(), "max": values.max(), "first": values[0]}
    pooled["first-token"] = values[0]
    pooled["per-character"] = values.sum() / characters
    return float(pooled[pooling])


@lru_cache(maxsize=64)
def distributions(model, row: tuple[int, ...]) -> torch.Tensor:
    """One row, one forward pass."""
    with torch.no_grad():
        return model.model(input_ids=torch.tensor([row])).logits[0].log_softmax(-1)


def masked_oracle(model, question: Question, candidate: str, method: str) -> float:
    encoded, own = encode(model, question, candidate)
    ids, words, mask = encoded["input_ids"], encoded.word_ids(), model.tokenizer.mask_token_id
    way, _, pooling = method.rpartition("-")

    def log_p(row: list[int], place: int, token: int) -> float:
        return distributions(model, tuple(row))[place, token].item()

    if way == "multiple":
        row = [mask if i in own else token for i, token in enumerate(ids)]
        return pool([log_p(row, i, ids[i]) for i in own], pooling)
    if way == "single":
        row = [*ids[: own[0]], mask, *ids[own[-1] + 1 :]]
        return pool([log_p(row, own[0], ids[i]) for i in own], pooling)
    if way.startswith("sentence"):
        own = [i for i, token in enumerate(ids) if token not in model.tokenizer.all_special_ids]
    values = []
    for i in own:
        hidden = {j for j in own if j >= i and words[j] == words[i]} if way.endswith("l2r") else {i}
        values.append(log_p([mask if j in hidden else token for j, token in enumerate(ids)], i, ids[i]))
    return pool(values, pooling)


def causal_oracle(model, question: Question, candidate: str, method: str) -> float:
    placed = [encode(model, question, text) for text in question.candidates]
    before, after = question.prompt.split("[MASK]")
    encoded, own = placed[question.candidates.index(candidate)]
    ids = encoded["input_ids"]
    while ids[-1] in model.tokenizer.all_special_ids:  # What is set after a sentence is no text.
        ids = ids[:-1]
    part, _, pooling = method.partition("-") if method.startswith(("candidate", "sentence")) else ("", "", method)
    if part == "sentence":
        start = 1 if ids[0] in model.tokenizer.all_special_ids else 0
    else:
        start = min(own[0] for _, own in placed)
        while len({tuple(one["input_ids"][:start]) for one, _ in placed}) > 1:
            start -= 1
    shift = 0
    if start == 0:
        vocabulary = model.tokenizer.get_vocab()
        possible = (vocabulary.get("<|endoftext|>"), model.tokenizer.bos_token_id, model.tokenizer.eos_token_id)
        beginning = next(token for token in possible if token is not None)
        ids, start, shift = [beginning, *ids], 1, 1
    logits = distributions(model, tuple(ids))
    scored = range(start, len(ids))
    if part == "candidate" or method == "first-token":
        scored = [i + shift for i in own]
    text = {"": candidate + after, "candidate": candidate, "sentence": before + candidate + after}[part]
    return pool([logits[i - 1, ids[i]].item() for i in scored], pooling, len(text))


def check(model, oracle, asked: list[Question] | None = None) -> None:
    asked = asked or questions()
    results = {result.index: result for result in model.score_candidates(asked, model.methods)}
    assert sorted(results) == list(range(len(asked)))
    for index, question in enumerate(asked):
        assert results[index].unusable is None
        # Candidate by candidate, so that passes which several methods need are made once.
        expected = [[oracle(model, question, text, method) for method in model.methods] for text in question.candidates]
        for number, method in enumerate(model.methods):
            wanted = [values[number] for values in expected]
            found = results[index].by_method[method]
            # A sum over a sentence gathers the rounding of all its tokens.
            near = 1e-3 if method.startswith("sentence") and method.endswith("sum") else 1e-4
            assert found == pytest.approx(wanted, abs=near, rel=1e-5), (question.prompt, method)


def test_masked_families(model_folders: dict[str, Path]) -> None:
    check_all(lambda family: check(load_model(str(model_folders[family])), masked_oracle), MASKED)


def test_causal_families_with_and_without_trees(model_folders: dict[str, Path]) -> None:
    def check_family(family: str, trees: bool) -> None:
        model = load_model(str(model_folders[family]))
        assert model.share_prefixes
        model.share_prefixes = trees
        check(model, causal_oracle)

    check_all(check_family, product(CAUSAL, (True, False)))


def test_candidates_alone_are_scored_without_what_follows(model_folders: dict[str, Path]) -> None:
    """The same as beside other methods, from fewer tokens; a candidate may begin another one."""
    methods = [method for method in causal.METHODS if causal.METHODS[method][0] == "candidate"]
    asked = [*questions(), Question("begin", "t", "In [MASK] it rains.", ("New",), "New", ("New", "New York", "Rome"))]

    def check_family(family: str, trees: bool) -> None:
        beside, alone = (load_model(str(model_folders[family])) for _ in range(2))
        beside.share_prefixes = alone.share_prefixes = trees
        wanted = {one.index: one for one in beside.score_candidates(asked, [*methods, "sum"])}
        for one in alone.score_candidates(asked, methods):
            assert one.unusable == wanted[one.index].unusable
            for method in methods if one.by_method else ():
                assert one.by_method[method] == pytest.approx(wanted[one.index].by_method[method], abs=1e-4)
        assert alone.work["tokens"] < beside.work["tokens"]

    check_all(check_family, product(CAUSAL, (True, False)))


def test_chinese_questions(model_folders: dict[str, Path]) -> None:
    def check_family(family: str) -> None:
        model = load_model(str(model_folders[family]))
        check(model, masked_oracle if model.kind == "masked" else causal_oracle, chinese_questions())

    check_all(check_family, ("bert-chinese", "xlm-roberta", "llama-sentencepiece", "gpt2"))


def test_a_tree_larger_than_allowed_is_cut_into_pieces(model_folders: dict[str, Path], monkeypatch) -> None:
    monkeypatch.setattr("merkhet.models.causal.NODES_PER_TRIE", 24)
    check(load_model(str(model_folders["llama"])), causal_oracle)


@pytest.mark.slow
def test_the_embedded_masked_model() -> None:
    check(load_model("minilm-mlm"), masked_oracle)


@pytest.mark.slow
def test_the_embedded_causal_model() -> None:
    check(load_model("smollm2-135m"), causal_oracle)


@pytest.mark.parametrize("name", ["minilm-mlm", pytest.param("smollm2-135m", marks=pytest.mark.slow)])
def test_embedded_models_know_a_capital(name: str) -> None:
    model = load_model(name)
    result = next(iter(model.score_candidates(questions()[:1], model.methods[:1])))
    assert CANDIDATES[int(np.argmax(result.by_method[model.methods[0]]))] == "Paris"


def test_embedded_models_are_a_folder_and_a_gguf_file() -> None:
    assert minilm_mlm().is_dir()
    assert smollm2_135m().suffix == ".gguf"


def test_batches_and_order_change_nothing(model_folders: dict[str, Path]) -> None:
    def check_family(family: str, budget: int) -> None:
        model = load_model(str(model_folders[family]))
        asked = questions()
        whole = {r.index: r.by_method for r in model.score_candidates(asked, model.methods)}
        model.token_budget = budget
        order = np.random.default_rng(budget).permutation(len(asked))
        for result in model.score_candidates([asked[i] for i in order], model.methods):
            for method, scores in whole[order[result.index]].items():
                assert result.by_method[method] == pytest.approx(scores, abs=1e-4)

    check_all(check_family, product(("bert-uncased", "llama"), (16, 64, 4096)))


def test_equal_tokens_are_exactly_tied(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-uncased"]))
    asked = [
        Question("wrong", "t", "The capital is [MASK].", ("Rome",), "Rome", ("Paris", "PARIS", "Rome")),
        Question("right", "t", "The capital is [MASK].", ("Paris", "PARIS"), "Paris", ("Paris", "PARIS", "Rome")),
    ]
    for result in model.score_candidates(asked, ("multiple-mean",)):
        scores = result.by_method["multiple-mean"]
        assert scores[0] == scores[1] != scores[2]


def test_a_right_and_a_wrong_answer_with_equal_tokens_cannot_be_told_apart(model_folders: dict[str, Path]) -> None:
    uncased, cased = (load_model(str(model_folders[family])) for family in ("bert-uncased", "bert-cased"))
    said = "the candidates 'Paris' and 'paris' have the same tokens, and only one of them is right"
    for others in (("Rome",), ("Rome", "Berlin", "New York", "New Delhi", "a metal")):
        asked = [Question("q", "t", "The capital is [MASK].", ("Paris",), "Paris", ("Paris", *others, "paris"))]
        (result,) = uncased.score_candidates(asked, ("multiple-mean",))
        assert result.unusable == said
        (result,) = cased.score_candidates(asked, ("multiple-mean",))
        assert result.unusable is None


def test_unusable_questions_say_why(model_folders: dict[str, Path]) -> None:
    bert = load_model(str(model_folders["bert-cased"]))
    long = "The capital of France is " * 20 + "[MASK]."
    cases = {
        "q1": Question("q1", "t", "The capital is [MASK].", ("Paris",), "Paris", ("Paris", "東京")),
        "q2": Question("q2", "t", long, ("Paris",), "Paris", ("Paris", "Rome")),
        "q3": Question("q3", "t", "The capital is [MASK].", ("Paris",), "Paris", ("Paris", "   ")),
        "q4": Question("q4", "t", "The capital is [MASK].", ("Paris",), "Paris", ("Paris", "Rome")),
    }
    asked = list(cases.values())
    reasons = {asked[r.index].question_id: r.unusable for r in bert.score_candidates(asked, ("multiple-mean",))}
    assert "'東京' holds a token that this model does not know" in reasons["q1"]
    assert reasons["q2"].startswith("too long: ") and "takes 64" in reasons["q2"]
    assert "has no token" in reasons["q3"]
    assert reasons["q4"] is None


def test_trees_are_tried_before_they_are_trusted(model_folders: dict[str, Path], monkeypatch) -> None:
    from merkhet.models.causal import CausalModel

    original = CausalModel._edge_values

    def wrong(self, rows, as_tries, with_prompts):
        values = original(self, rows, as_tries, with_prompts)
        return [(prompt, edges + 1.0) for prompt, edges in values] if as_tries else values

    monkeypatch.setattr(CausalModel, "_edge_values", wrong)
    model = load_model(str(model_folders["llama"]))
    assert not model.share_prefixes
    check(model, causal_oracle)
