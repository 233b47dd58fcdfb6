"""Sentences without special tokens around them, and shorter ones than the model takes, as published programs may do."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from all_cases import check_all
from sense_questions import asked, cosines_one_by_one, similarities
from tiny_models import FAMILIES, MASKED

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.engine.study import make_study
from merkhet.models.extra_embeddings import with_extra_words
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.probes.compare import compare_senses
from merkhet.probes.fill import fill_slots
from merkhet.probes.rank import rank_candidates

CANDIDATES = ("Paris", "Berlin", "Rome", "New York", "New Delhi", "the United States")
PROMPTS = ("The capital of France is [MASK].", "[MASK] is the capital of Germany.", "They call it [MASK], a city.")
SETS_SOME = [family for family in FAMILIES if family not in ("gpt2", "llama")]


def bare(folders: dict[str, Path], family: str, **options: Any) -> Any:
    return load_model(ModelSpec(str(folders[family]), special_tokens=False, **options))


def questions() -> list[Question]:
    return [Question(f"q{i}", "t", prompt, ("Paris",), "Paris", CANDIDATES) for i, prompt in enumerate(PROMPTS)]


def test_rows_have_no_special_tokens(model_folders: dict[str, Path]) -> None:
    def check(family: str, candidates: str) -> None:
        check_bare_rows(model_folders, family, candidates)

    check_all(check, product(FAMILIES, ("in place", "apart")))


def check_bare_rows(model_folders: dict[str, Path], family: str, candidates: str) -> None:
    model = bare(model_folders, family, candidates=candidates)
    usual = load_model(ModelSpec(str(model_folders[family]), candidates=candidates))
    special = set(model.tokenizer.all_special_ids)
    for prompt in PROMPTS:
        for number, text in enumerate(CANDIDATES):
            own = model.candidate_tokenizer.tokenize_candidates(prompt, CANDIDATES).sentence(number)
            around = usual.candidate_tokenizer.tokenize_candidates(prompt, CANDIDATES).sentence(number)
            assert [token for token in around.ids if token not in special] == list(own.ids)
            assert (family in SETS_SOME) == (around.ids != own.ids)
            assert around.ids[around.start : around.stop] == own.ids[own.start : own.stop]
            if candidates == "in place":
                plain = model.tokenizer(prompt.replace("[MASK]", text), add_special_tokens=False)["input_ids"]
                assert list(own.ids) == plain


def test_states_are_those_of_bare_sentences(model_folders: dict[str, Path]) -> None:
    def check(family: str) -> None:
        model = bare(model_folders, family)
        network = transformers.AutoModel.from_pretrained(model_folders[family]).eval()
        found = similarities(model, asked(family), "word@all", *(["masked"] if family in MASKED else []))
        for index, question in enumerate(asked(family)):
            for name, values in found[index].items():
                way, _, layer = name.partition("@")
                oracle = cosines_one_by_one(network, model.tokenizer, question, way, int(layer or -1), special=False)
                assert values == pytest.approx(oracle, abs=1e-5), (question.question_id, name)

    check_all(check, FAMILIES)


def test_masked_scores_are_those_of_bare_sentences(model_folders: dict[str, Path]) -> None:
    check_all(lambda family: check_masked_scores(bare(model_folders, family)), MASKED)


def check_masked_scores(model: Any) -> None:
    mask = model.tokenizer.mask_token_id
    for question, answer in zip(questions(), rank_candidates(model, questions(), ("multiple-sum",)), strict=True):
        for text, score in answer.ranked:
            own = model.candidate_tokenizer.tokenize_candidates(question.prompt, [text]).sentence(0)
            assert mask not in own.ids and model.tokenizer.cls_token_id not in own.ids
            row = [*own.ids[: own.start], *[mask] * (own.stop - own.start), *own.ids[own.stop :]]
            with torch.no_grad():
                logits = model.model(input_ids=torch.tensor([row])).logits[0].log_softmax(-1)
            places = range(own.start, own.stop)
            assert score == pytest.approx(sum(logits[place, own.ids[place]].item() for place in places), abs=1e-4)
    for question, answer in zip(questions(), fill_slots(model, questions()), strict=True):
        if answer.unusable is None:
            own = model.candidate_tokenizer.tokenize_candidates(question.prompt, ["Paris"]).sentence(0)
            row = [*own.ids[: own.start], mask, *own.ids[own.stop :]]
            with torch.no_grad():
                values = model.model(input_ids=torch.tensor([row])).logits[0, own.start].log_softmax(-1)
            values[model.tokenizer.all_special_ids] = -torch.inf
            assert answer.ranked[0][1] == pytest.approx(values.max().item(), abs=1e-4)
    row, _ = model.writer.prompts.mask_slot(PROMPTS[0], 2)
    assert set(row) & set(model.tokenizer.all_special_ids) == {mask}


def test_a_causal_model_begins_as_it_does_without_a_tokenizer_that_begins(model_folders: dict[str, Path]) -> None:
    model, usual = (load(model_folders, "llama-sentencepiece") for load in (bare, _usual))
    question = Question("q", "t", "Rome is [MASK].", ("old",), "old", ("old", "a city"))
    scores, whole = (
        dict(next(iter(rank_candidates(model, [question], (method,)))).ranked) for method in ("sum", "sentence-sum")
    )
    begun = dict(next(iter(rank_candidates(usual, [question], ("sentence-sum",)))).ranked)
    for text, score in scores.items():
        own = model.candidate_tokenizer.tokenize_candidates(question.prompt, [text]).sentence(0)
        assert model.tokenizer.bos_token_id not in own.ids
        with torch.no_grad():
            logits = model.model(input_ids=torch.tensor([own.ids])).logits[0].log_softmax(-1)
        scored = range(own.start, len(own.ids))
        assert score == pytest.approx(sum(logits[place - 1, own.ids[place]].item() for place in scored), abs=1e-4)
        # A whole sentence is scored from the model's own beginning on, which stands there either way.
        assert whole[text] == pytest.approx(begun[text], abs=1e-4)
    rows = [one.writer.prompts.prompt_tokens(question, "continue", 2) for one in (model, usual)]
    assert rows[1] == (model.tokenizer.bos_token_id, *rows[0])


def _usual(folders: dict[str, Path], family: str) -> Any:
    return load_model(str(folders[family]))


def test_how_a_model_reads_is_part_of_its_fingerprint(model_folders: dict[str, Path]) -> None:
    folder = str(model_folders["bert-cased"])
    specs = [
        ModelSpec(folder),
        ModelSpec(folder, special_tokens=False),
        ModelSpec(folder, longest=16),
        ModelSpec(folder, longest=17),
        ModelSpec(folder, special_tokens=False, longest=16),
        ModelSpec(folder, special_tokens=False, candidates="apart"),
        ModelSpec(folder, candidates="apart"),
    ]
    prints = [resolve_model(spec).fingerprint for spec in specs]
    assert len(set(prints)) == len(specs)
    assert {resolve_model(spec.with_default_reading).fingerprint for spec in specs} == {prints[0]}
    random = ModelSpec("random", special_tokens=False, longest=3)
    assert resolve_model(random).fingerprint == resolve_model(ModelSpec("random")).fingerprint


def test_longer_clozes_than_asked_for_are_unusable_and_senses_are_not(model_folders: dict[str, Path]) -> None:
    folder = str(model_folders["bert-cased"])
    assert load_model(ModelSpec(folder, longest=1000)).candidate_tokenizer.max_tokens == 64
    model = load_model(ModelSpec(folder, longest=4))
    assert (model.candidate_tokenizer.max_tokens, model.candidate_tokenizer.model_max_tokens) == (4, 64)
    for probe in (rank_candidates, fill_slots):
        (answer,) = probe(model, questions()[:1])
        assert answer.unusable.startswith("too long: ") and answer.unusable.endswith("takes 4")
    assert all(answer.unusable is None for answer in compare_senses(model, asked("bert-cased")))


def test_made_words_are_read_in_the_same_way(model_folders: dict[str, Path]) -> None:
    model = bare(model_folders, "bert-cased", longest=20)
    dressed = with_extra_words(model, {"[V1]": torch.zeros(32)})
    assert (dressed.candidate_tokenizer.special_tokens, dressed.candidate_tokenizer.max_tokens) == (False, 20)


def test_a_study_may_say_how_a_model_reads() -> None:
    own = {"model": "here", "kind": "encoder", "special_tokens": False, "longest": 128}
    study = make_study({"suite": "s", "models": [own, "there"]}, "study.yaml")
    assert study.models[0].spec() == ModelSpec("here", kind="encoder", special_tokens=False, longest=128)
    assert study.models[1].spec() == ModelSpec("there")
    with pytest.raises(InputError, match=r"models\.0\.longest must be an integer ≥ 1"):
        make_study({"suite": "s", "models": [{"model": "here", "longest": 0}]}, "study.yaml")
