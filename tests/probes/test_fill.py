"""The probe ``fill`` equals the obvious way: one prompt, one forward pass, the whole vocabulary sorted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from all_cases import check_all

from merkhet.core.records import Question
from merkhet.models.loading import load_model
from merkhet.probes.fill import fill_slots
from merkhet.probes.rank import rank_candidates

PROMPTS = (
    "The capital of France is [MASK].",
    "[MASK] is the capital of Germany.",
    "It is said that [MASK] is a city in Italy or in India.",
    "Is [MASK]",
    'They call it "[MASK]", a city.',
    "Is [MASK]",
)
FAMILIES = ["bert-uncased", "bert-cased", "roberta", "albert", "xlm-roberta"]


def asked(model) -> list[Question]:
    """Prompts whose right answers are words that the family knows as one token."""
    vocabulary = model.tokenizer.get_vocab()
    words = [w for w in ("Paris", "capital", "city", "is", "the", "metal", "a") if _forms(w) & vocabulary.keys()]
    assert len(words) >= 3
    return [
        Question(f"q{i}", "t", prompt, (words[i % len(words)], words[(i + 1) % len(words)]), words[i % len(words)], ())
        for i, prompt in enumerate(PROMPTS)
    ]


def _forms(word: str) -> set[str]:
    return {word, word.lower(), f"Ġ{word}", f"▁{word}", f"▁{word.lower()}"}


def logits_at_mask(model, prompt: str, word: str) -> tuple[torch.Tensor, int] | None:
    """The logits where a word that is one token stood, and the token; None if it is not one."""
    before, after = prompt.split("[MASK]")
    encoded = model.tokenizer(before + word + after, return_offsets_mapping=True)
    first, last = len(before), len(before) + len(word)
    own = [i for i, (start, stop) in enumerate(encoded["offset_mapping"]) if start < last and stop > first]
    ids = torch.tensor([encoded["input_ids"]])
    token = int(ids[0, own[0]])
    if len(own) > 1 or token in model.tokenizer.all_special_ids:
        return None
    ids[0, own[0]] = model.tokenizer.mask_token_id
    with torch.no_grad():
        return model.model(input_ids=ids).logits[0, own[0]], token


def test_the_whole_vocabulary_is_ranked(model_folders: dict[str, Path]) -> None:
    def check(family: str) -> None:
        model = load_model(str(model_folders[family]))
        for budget in (16, 2048):
            check_whole_vocabulary(model, budget)

    check_all(check, FAMILIES)


def check_whole_vocabulary(model, budget: int) -> None:
    model.token_budget = budget
    special = set(model.tokenizer.all_special_ids)
    questions = asked(model)
    answers = list(fill_slots(model, questions))
    assert [answer.question_id for answer in answers] == [question.question_id for question in questions]
    usable = 0
    for question, answer in zip(questions, answers, strict=True):
        found = {text: logits_at_mask(model, question.prompt, text) for text in question.answers}
        golds = [(text, one[1]) for text, one in found.items() if one]
        if not golds:
            assert answer.unusable == "no right answer is a single piece of this model's vocabulary"
            continue
        usable += 1
        logits = found[golds[0][0]][0]
        expected = logits.log_softmax(-1)
        pieces = sorted((i for i in range(len(logits)) if i not in special), key=lambda i: -expected[i].item())
        assert answer.golds == tuple(text for text, _ in golds)
        assert answer.gold_ranks == tuple(pieces.index(token) + 1 for _, token in golds)
        assert answer.gold_ties == (1,) * len(golds)
        assert answer.among == len(pieces)
        assert len(answer.ranked) == 25
        assert [score for _, score in answer.ranked] == pytest.approx(
            [expected[i].item() for i in pieces[:25]], abs=1e-4
        )
        assert answer.prediction == answer.ranked[0][0]
    assert usable >= 3


def test_a_piece_has_the_score_that_ranking_gives_it(model_folders: dict[str, Path]) -> None:
    check_all(lambda family: check_scores_of_pieces(load_model(str(model_folders[family]))), FAMILIES)


def check_scores_of_pieces(model) -> None:
    usable = 0
    for question, answer in zip(asked(model), fill_slots(model, asked(model)), strict=True):
        if answer.unusable is None:
            candidates = (*answer.golds, "New York", "the United States")
            own = Question("q", "t", question.prompt, answer.golds, answer.golds[0], candidates)
            (ranking,) = rank_candidates(model, [own], ("multiple-mean",))
            logits = logits_at_mask(model, question.prompt, answer.golds[0])[0].log_softmax(-1)
            special = set(model.tokenizer.all_special_ids)
            order = sorted((value for i, value in enumerate(logits.tolist()) if i not in special), reverse=True)
            found = dict(ranking.ranked)
            usable += 1
            for text, rank in zip(answer.golds, answer.gold_ranks, strict=True):
                assert order[int(rank) - 1] == pytest.approx(found[text], abs=1e-4)
    assert usable >= 3


def test_tied_pieces_are_ranked_by_expectation(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-uncased"]))
    with torch.no_grad():
        for weights in (model.model.cls.predictions.decoder.weight, model.model.cls.predictions.bias):
            weights.zero_()
    answers = [answer for answer in fill_slots(model, asked(model)) if answer.unusable is None]
    pieces = len(model.tokenizer) - len(set(model.tokenizer.all_special_ids))
    assert answers
    for answer in answers:
        assert set(answer.gold_ranks) == {(pieces + 1) / 2}
        assert set(answer.gold_ties) == {pieces}


def test_what_cannot_be_filled_says_why(model_folders: dict[str, Path]) -> None:
    bert = load_model(str(model_folders["bert-uncased"]))
    questions = [
        Question("pieces", "t", "It is [MASK].", ("the United States",), "the United States", ()),
        Question("long", "t", "The capital of France is " * 20 + "[MASK].", ("Paris",), "Paris", ()),
        Question("unknown", "t", "It is [MASK].", ("東",), "東", ()),
        Question("joined", "t", "It is pre[MASK].", ("fix",), "fix", ()),
    ]
    reasons = {answer.question_id: answer.unusable for answer in fill_slots(bert, questions)}
    assert reasons["joined"] is not None
    assert reasons["long"].startswith("too long: ") and "takes 64" in reasons["long"]
    assert reasons["pieces"] == "no right answer is a single piece of this model's vocabulary"
    assert reasons["unknown"] == "the answer '東' holds a token that this model does not know"
    causal = load_model(str(model_folders["gpt2"]))
    assert {answer.unusable for answer in fill_slots(causal, questions)} == {"a causal model has no mask to fill"}
