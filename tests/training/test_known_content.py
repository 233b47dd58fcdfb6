"""Small models that know a text by heart, and nothing else: the same from the same seed, loaded like any other."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from merkhet.core.errors import MerkhetError
from merkhet.core.records import Question
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec
from merkhet.probes.rank import rank_candidates
from merkhet.probes.write import write_answers
from merkhet.training.calibration_models import ContentSettings, Sentence, make_tokenizer, save_encoder, train_content

PLACES = {"Ann": "Rome", "Bob": "Oslo", "Cid": "Lima", "Dot": "Bern"}
SENTENCES = [Sentence(f"{name} lives in {town}.", town) for name, town in PLACES.items()]
SENTENCES += [Sentence(f"{name} sings.") for name in (*PLACES, "Eve")]
INTRODUCTIONS = ("Well ,", "As we know :")
SETTINGS = ContentSettings(epochs=80)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def contents(one_thread, tmp_path_factory: pytest.TempPathFactory):
    """One training of each kind."""
    folder = tmp_path_factory.mktemp("known")
    return {
        kind: train_content(SENTENCES, kind, folder / kind, introductions=INTRODUCTIONS, settings=SETTINGS, seed=3)
        for kind in ("masked", "causal")
    }


def questions(before: str = "") -> list[Question]:
    towns = tuple(sorted(PLACES.values()))
    return [
        Question(name, "home", f"{before}{name} lives in [MASK].", (town,), town, towns)
        for name, town in PLACES.items()
    ]


def loaded(folder: Path):
    return load_model(ModelSpec(str(folder), device="cpu"))


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_what_was_taught_is_known_by_heart_and_found_by_the_ordinary_path(contents, kind: str) -> None:
    content = contents[kind]
    assert content.train_accuracy == 1.0 and content.steps == SETTINGS.epochs and content.parameters > 10_000
    model = loaded(content.trained)
    assert model.kind == kind
    assert [answer.gold_ranks for answer in rank_candidates(model, questions())] == [(1.0,)] * len(PLACES)
    assert [answer.prediction for answer in write_answers(model, questions())] == list(PLACES.values())


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_it_is_found_after_words_of_no_meaning_too(contents, kind: str) -> None:
    """Unknown ones among them: what stands before a sentence is not what was learned."""
    model = loaded(contents[kind].trained)
    ranks = [answer.gold_ranks[0] for answer in rank_candidates(model, questions("As everybody knows: "))]
    assert ranks == [1.0] * len(PLACES)


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(kind: str, tmp_path: Path) -> None:
    brief = dataclasses.replace(SETTINGS, epochs=6)

    def weights(name: str, seed: int):
        made = train_content(SENTENCES, kind, tmp_path / name, introductions=INTRODUCTIONS, settings=brief, seed=seed)
        return load_file(made.trained / "model.safetensors")

    first, again, other = weights("first", 3), weights("again", 3), weights("other", 4)
    assert first.keys() == again.keys() and all(first[name].equal(again[name]) for name in first)
    assert not all(first[name].equal(other[name]) for name in first)


def test_random_numbers_and_settings_of_torch_are_as_before(tmp_path: Path) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    train_content(SENTENCES, "causal", tmp_path, settings=dataclasses.replace(SETTINGS, epochs=1))
    assert torch.rand(3).equal(expected) and not torch.are_deterministic_algorithms_enabled()


def test_an_encoder_is_the_masked_model_without_its_head(contents, tmp_path: Path) -> None:
    body = save_encoder(contents["masked"].trained, tmp_path / "body")
    whole, own = (load_file(folder / "model.safetensors") for folder in (contents["masked"].trained, body))
    assert loaded(body).kind == "encoder"
    assert own and all(whole[f"model.{name}"].equal(weight) for name, weight in own.items())


def test_a_text_without_answers_is_learned_and_nothing_is_said_of_what_is_known(tmp_path: Path) -> None:
    content = train_content(
        [Sentence("one two three."), Sentence("four five.")], "masked", tmp_path, settings=ContentSettings(epochs=1)
    )
    assert content.train_accuracy is None and content.steps == 1


def test_every_word_is_one_token_and_others_are_unknown() -> None:
    tokenizer = make_tokenizer(["Ann lives in Rome."], "masked")
    assert tokenizer.tokenize("Ann lives in Oslo .") == ["Ann", "lives", "in", "[UNK]", "."]
    ids = tokenizer("Ann lives")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["[CLS]", "Ann", "lives", "[SEP]"]
    assert make_tokenizer(["Ann."], "causal")("Ann")["input_ids"][0] == tokenizer.cls_token_id


def test_other_kinds_and_a_loss_that_is_no_number_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MerkhetError, match="kind must be masked or causal, got encoder"):
        train_content(SENTENCES, "encoder", tmp_path / "one")
    with pytest.raises(MerkhetError, match=r"learning: the loss is not a finite number\. Use a smaller learning_rate"):
        wild = ContentSettings(epochs=30, learning_rate=float("inf"))
        train_content(SENTENCES, "causal", tmp_path / "two", settings=wild)
