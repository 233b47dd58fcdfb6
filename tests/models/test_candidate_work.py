"""How candidates are tokenised is part of a model, and how much work their scores are is counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models.extra_embeddings import get_base_embedding, with_extra_words
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, resolve_model

ROOT = Path(__file__).parents[2]
CANDIDATES = ("Paris", "Berlin", "Rome", "New York", "New Delhi", "the United States", "a metal")
PROMPTS = ("The capital of France is [MASK].", "It is said that [MASK] is old.", "The capital of France is [MASK].")
SIX = tuple(f"{masks}-{pooling}" for masks in ("multiple", "single") for pooling in ("mean", "max", "first"))


def questions() -> list[Question]:
    return [Question(f"q{i}", "t", prompt, ("Paris",), "Paris", CANDIDATES) for i, prompt in enumerate(PROMPTS)]


def test_candidates_apart_are_another_model(model_folders: dict[str, Path]) -> None:
    folder = str(model_folders["roberta"])
    usual, same, apart = (resolve_model(ModelSpec(folder, **way)) for way in ({}, {"candidates": "in place"}, APART))
    assert usual.fingerprint == same.fingerprint != apart.fingerprint
    assert resolve_model(ModelSpec("random", **APART)).fingerprint == resolve_model(ModelSpec("random")).fingerprint
    with pytest.raises(InputError, match="candidates must be 'in place' or 'apart', got 'beside'"):
        resolve_model(ModelSpec(folder, candidates="beside"))


APART = {"candidates": "apart"}


def test_scores_of_candidates_apart(model_folders: dict[str, Path]) -> None:
    """As published programs have them: masks in the sentence, tokens of the candidate alone."""
    families = ("roberta", "albert", "bert-uncased")
    check_all(lambda family: check_masked_apart(load_model(ModelSpec(str(model_folders[family]), **APART))), families)


def check_masked_apart(model) -> None:
    tokenizer = model.tokenizer
    found = {one.index: one.by_method for one in model.score_candidates(questions(), ("multiple-mean", "single-first"))}
    for index, question in enumerate(questions()):
        for number, text in enumerate(CANDIDATES):
            tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
            rows = [question.prompt.replace("[MASK]", tokenizer.mask_token * count) for count in (len(tokens), 1)]
            values = []
            for row in rows:
                ids = torch.tensor([tokenizer(row)["input_ids"]])
                with torch.no_grad():
                    logits = model.model(input_ids=ids).logits[0].log_softmax(-1)
                masks = (ids[0] == tokenizer.mask_token_id).nonzero()[:, 0]
                values.append([logits[place, token].item() for place, token in zip(masks, tokens, strict=False)])
            assert found[index]["multiple-mean"][number] == pytest.approx(np.mean(values[0]), abs=1e-4)
            assert found[index]["single-first"][number] == pytest.approx(values[1][0], abs=1e-4)


def test_causal_scores_of_candidates_apart(model_folders: dict[str, Path]) -> None:
    families = ("gpt2", "llama")
    check_all(lambda family: check_causal_apart(load_model(ModelSpec(str(model_folders[family]), **APART))), families)


def check_causal_apart(model) -> None:
    asked = questions()[0]
    (found,) = model.score_candidates([asked], ("sum",))
    before, after = asked.prompt.split(" [MASK]")
    for number, text in enumerate(CANDIDATES):
        first, own, last = (
            model.tokenizer(part, add_special_tokens=False)["input_ids"] for part in (before, text, after)
        )
        ids = [*first, *own, *last]
        with torch.no_grad():
            logits = model.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
        expected = sum(logits[place - 1, ids[place]].item() for place in range(len(first), len(ids)))
        assert found.by_method["sum"][number] == pytest.approx(expected, abs=1e-3)


def test_made_words_beside_candidates_apart(model_folders: dict[str, Path]) -> None:
    for family in ("roberta", "gpt2"):
        model = load_model(ModelSpec(str(model_folders[family]), **APART))
        width = get_base_embedding(model).weight.shape[1]
        dressed = with_extra_words(model, {"[X:0]": torch.ones(width)})
        placed = dressed.candidate_tokenizer.tokenize_candidates("It is [X:0] [MASK] .", ("Rome", "Paris"))
        alone = model.tokenizer("Rome", add_special_tokens=False)["input_ids"]
        first = next(iter(placed))
        assert list(first.ids[first.start : first.stop]) == alone and len(model.tokenizer) in first.ids


def test_work_is_counted(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-uncased"]))
    assert model.work == {"rows": 0, "rows_one_by_one": 0, "tokens": 0}
    asked = questions()
    tokens = [len(model.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in CANDIDATES]
    list(model.score_candidates(asked, SIX))
    # One row for each length and prompt; the single mask is the row of the candidates of one token.
    lengths = {1, *tokens}
    assert model.work["rows"] == 2 * len(lengths)
    assert model.work["rows_one_by_one"] == len(asked) * len(CANDIDATES) * len(SIX)
    around = [len(model.tokenizer(prompt)["input_ids"]) - 1 for prompt in PROMPTS[:2]]
    assert model.work["tokens"] == sum(length + own for length in lengths for own in around)
    before = dict(model.work)
    list(model.score_candidates(asked[:1], ("pll-sum", "pll-mean")))
    assert model.work["rows_one_by_one"] - before["rows_one_by_one"] == 2 * sum(tokens)
    assert 0 < model.work["rows"] - before["rows"] <= sum(tokens)


def test_work_of_a_causal_model_is_counted(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["llama"]))
    list(model.score_candidates(questions(), ("sum", "mean", "sentence-sum")))
    assert model.work["rows_one_by_one"] == len(PROMPTS) * len(CANDIDATES) * 3
    assert model.work["rows"] == 2 * len(PROMPTS)  # One tree a prompt, and one more for whole sentences.
    model.share_prefixes = False
    before = dict(model.work)
    list(model.score_candidates(questions(), ("sum",)))
    assert model.work["rows"] - before["rows"] == len(PROMPTS) * len(CANDIDATES)
    assert model.work["tokens"] > before["tokens"] > 0


@pytest.mark.slow
def test_published_tasks_equal_one_pass_per_candidate(shared: Path) -> None:
    data, folder = shared / "data" / "ontoprobe", shared / "models" / "minilm-mlm"
    if not (data.is_dir() and folder.is_dir()):
        pytest.skip("the data of OntoProbe or the model is not beside the repository")
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        import ontoprobe_oracle
    finally:
        sys.path.remove(str(ROOT / "bench"))
    model = load_model(str(folder))
    for task, asked in ontoprobe_oracle.published_questions(data, rows=3).items():
        some = [question_with(question, 60) for question in asked]
        difference = ontoprobe_oracle.largest_difference(model, some)
        assert difference < 1e-4, (task, difference, json.dumps([one.prompt for one in some]))


def question_with(question: Question, most: int) -> Question:
    """A question with some of its candidates, spread over the list, the right ones among them."""
    step = max(1, len(question.candidates) // (most - len(question.answers)))
    some = tuple(dict.fromkeys((*question.answers, *question.candidates[::step])))[:most]
    return Question("q", question.task, question.prompt, question.answers, question.target, some)
