"""Pseudowords: where they lie, what decides them, and what is asked with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models.extra_embeddings import get_base_embedding, get_extra_embeddings, with_extra_words
from merkhet.models.loading import load_model
from merkhet.models.protocol import Model
from merkhet.models.pseudowords import PseudowordModel, PseudowordSettings, pseudoword_embeddings

FAMILIES = ("bert-uncased", "bert-cased", "roberta", "albert", "xlm-roberta", "gpt2", "llama")
CANDIDATES = ("Paris", "Berlin", "Rome", "New York", "New Delhi", "the United States", "a metal")
PROMPTS = (
    "Therefore , [X] is a [MASK] .",
    "The capital is [MASK] .",
    "[X] is in [Y] . Therefore , [Y] is [MASK] .",
    "[X] [MASK] [Y] .",
)


def questions() -> list[Question]:
    return [Question(f"q{i}", "t", prompt, ("Paris",), "Paris", CANDIDATES) for i, prompt in enumerate(PROMPTS)]


@pytest.fixture(scope="module")
def models(model_folders: dict[str, Path]) -> list:
    return [load_model(str(model_folders[name])) for name in FAMILIES]


def centre_of(model) -> np.ndarray:
    table = get_base_embedding(model).weight.detach().double().numpy()
    mask = model.tokenizer.mask_token_id
    return table.mean(axis=0) if mask is None else table[mask]


def nearest(model, centre: np.ndarray) -> float:
    """The distance of the nearest token that is not the centre, one after another."""
    rows = get_base_embedding(model).weight.detach().double().numpy()
    distances = [float(np.sqrt(((row - centre) ** 2).sum())) for row in rows]
    return min(distance for distance in distances if distance > 0)


def test_where_they_lie(models: list) -> None:
    check_all(check_positions, [(model, alpha) for model in models for alpha in (0.5, 0.1, 0.9)])


def check_positions(model, alpha: float) -> None:
    settings = PseudowordSettings(pairs=4, alpha=alpha)
    asked = PseudowordModel(model, settings)
    points = get_extra_embeddings(asked.inner).table.detach().double().numpy()
    centre = centre_of(model)
    radius = alpha * nearest(model, centre)
    assert points.shape == (8, len(centre))
    assert np.linalg.norm(points - centre, axis=1) == pytest.approx(radius, rel=1e-6)
    between = [np.linalg.norm(one - other) for i, one in enumerate(points) for other in points[:i]]
    assert min(between) >= radius * (1 - 1e-6)
    exact = pseudoword_embeddings(model, settings)
    assert np.linalg.norm(exact - centre, axis=1) == pytest.approx(radius, rel=1e-12)
    assert all(np.linalg.norm(one - other) >= radius for i, one in enumerate(exact) for other in exact[:i])


def test_directions_lean_to_no_side(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-uncased"]))
    directions = []
    for seed in range(60):
        points = pseudoword_embeddings(model, PseudowordSettings(pairs=4, seed=seed)) - centre_of(model)
        directions.append(points / np.linalg.norm(points, axis=1, keepdims=True))
    every = np.concatenate(directions)
    # Of n unit vectors in random directions the mean has length 1 / sqrt(n) on average.
    assert np.linalg.norm(every.mean(axis=0)) < 2 / np.sqrt(len(every))


def test_the_seed_decides(models: list) -> None:
    def check(model) -> None:
        first, again, other = (pseudoword_embeddings(model, PseudowordSettings(3, seed=seed)) for seed in (1, 1, 2))
        assert np.array_equal(first, again)
        assert not np.any(np.all(np.isclose(first, other), axis=1))
        # Fewer pairs are the first ones of more.
        assert np.array_equal(pseudoword_embeddings(model, PseudowordSettings(2, seed=1)), first[:4])
        prints = [PseudowordModel(model, PseudowordSettings(2, seed=seed)).fingerprint for seed in (1, 1, 2)]
        assert prints[0] == prints[1] != prints[2]
        assert model.fingerprint not in prints

    check_all(check, models)


def test_words_that_a_model_wears_change_nothing(models: list) -> None:
    def check(model) -> None:
        settings = PseudowordSettings(2)
        points = pseudoword_embeddings(model, settings)
        width = get_base_embedding(model).weight.shape[1]
        dressed = with_extra_words(
            model, {"<s1>": torch.from_numpy(centre_of(model)).float() + 1e-4, "<s2>": torch.zeros(width)}
        )
        assert np.array_equal(pseudoword_embeddings(dressed, settings), points)
        with_extra_words(dressed, {})

    check_all(check, models)


def test_the_centre_of_the_published_code(model_folders: dict[str, Path]) -> None:
    """It asks for [MASK]; where the mask is called <mask>, this is the unknown token."""
    families = ("roberta", "xlm-roberta", "bert-cased", "albert", "llama")
    check_all(lambda family: check_published_centre(load_model(str(model_folders[family])), family), families)


def check_published_centre(model, family: str) -> None:
    if family == "roberta":
        # The byte-level families here have no unknown token; RoBERTa calls one <unk>.
        model.tokenizer.add_special_tokens({"unk_token": "<pad>"})
    table = get_base_embedding(model).weight.detach().double().numpy()
    tokenizer = model.tokenizer
    wanted = {
        "roberta": tokenizer.unk_token_id,
        "xlm-roberta": tokenizer.unk_token_id,
        "bert-cased": tokenizer.mask_token_id,
        "albert": tokenizer.mask_token_id,
        "llama": None,
    }[family]
    centre = table.mean(axis=0) if wanted is None else table[wanted]
    points = pseudoword_embeddings(model, PseudowordSettings(3, centre="unknown"))
    assert np.linalg.norm(points - centre, axis=1) == pytest.approx(0.5 * nearest(model, centre), rel=1e-9)
    usual = pseudoword_embeddings(model, PseudowordSettings(3))
    assert np.linalg.norm(usual - centre_of(model), axis=1) == pytest.approx(0.5 * nearest(model, centre_of(model)))
    assert np.array_equal(points, usual) == (family not in ("roberta", "xlm-roberta"))


def test_settings_are_refused_in_clear_words() -> None:
    def check(settings: dict, message: str) -> None:
        with pytest.raises(InputError, match=message):
            PseudowordSettings(**settings)

    cases = [
        ({"pairs": 0}, "at least one pair"),
        ({"alpha": 0.0}, "an alpha between 0 and 1"),
        ({"alpha": 1.0}, "an alpha between 0 and 1"),
        ({"centre": "mean"}, "the centre of pseudowords must be one of mask, unknown, got 'mean'"),
    ]
    check_all(check, cases)


def test_more_pairs_than_there_is_room_for_are_refused(model_folders: dict[str, Path], monkeypatch) -> None:
    monkeypatch.setattr("merkhet.models.pseudowords._MAX_DRAWS", 300)
    model = load_model(str(model_folders["albert"]))
    with pytest.raises(InputError, match="no room for 120 pairs of pseudowords in 16 dimensions; ask for fewer pairs"):
        pseudoword_embeddings(model, PseudowordSettings(pairs=120))


def test_every_question_about_them_is_asked_with_every_pair(models: list) -> None:
    def check(model) -> None:
        methods = model.methods[:6]
        settings = PseudowordSettings(pairs=3, seed=5)
        points = torch.from_numpy(pseudoword_embeddings(model, settings)).float()
        plain = {one.index: one for one in model.score_candidates(questions(), methods)}
        asked = PseudowordModel(model, settings)
        assert isinstance(asked, Model)
        found = {(one.index, one.repeat): one for one in asked.score_candidates(questions(), methods)}
        assert set(found) == {*((i, r) for i in (0, 2, 3) for r in range(3)), (1, None)}
        for method in methods:
            assert found[1, None].by_method[method] == pytest.approx(plain[1].by_method[method], abs=1e-4)
        assert asked.describe() == {**model.describe(), "pseudoword_pairs": 3, "pseudoword_alpha": 0.5}
        for repeat in range(3):
            pair = {"[X:9]": points[2 * repeat], "[Y:9]": points[2 * repeat + 1]}
            dressed = with_extra_words(model, pair)
            worded = [
                replace(one, prompt=one.prompt.replace("[X]", "[X:9]").replace("[Y]", "[Y:9]")) for one in questions()
            ]
            for one in dressed.score_candidates(worded, methods):
                if one.index != 1:
                    for method in methods:
                        expected = one.by_method[method]
                        assert found[one.index, repeat].by_method[method] == pytest.approx(expected, abs=1e-4), method
        with_extra_words(model, {})

    check_all(check, models)


def test_work_is_that_of_all_pairs(models: list) -> None:
    def check(model) -> None:
        asked = PseudowordModel(model, PseudowordSettings(pairs=3))
        list(asked.score_candidates(questions(), model.methods[:1]))
        assert asked.work is asked.inner.work
        assert asked.work["rows_one_by_one"] == (3 * 3 + 1) * len(CANDIDATES)
        assert 0 < asked.work["rows"] <= asked.work["rows_one_by_one"]
        with_extra_words(model, {})

    check_all(check, models)


def test_words_beside_pseudowords(model_folders: dict[str, Path]) -> None:
    model = load_model(str(model_folders["bert-uncased"]))
    width = get_base_embedding(model).weight.shape[1]
    asked = PseudowordModel(model, PseudowordSettings(pairs=2), {"<s5>": torch.ones(width)})
    question = replace(questions()[0], prompt="[X] is a city . <s5> [X] is [MASK] .")
    found = list(asked.score_candidates([question], model.methods[:1]))
    assert [one.repeat for one in found] == [0, 1] and all(one.unusable is None for one in found)
    others = PseudowordModel(model, PseudowordSettings(pairs=2), {"<s5>": torch.zeros(width)})
    assert others.fingerprint != asked.fingerprint
