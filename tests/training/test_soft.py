"""Soft prompts: they bring to light what a model knows, teach it nothing, and leave it as it was."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from soft_worlds import BRIEF, DEV, EACH, FAMILIES, KINDS, KNOWN, REST, SETTINGS, TRAINING, UNKNOWN, asked, mrr, part

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.records import Question
from merkhet.models.extra_embeddings import ExtraEmbeddings, with_extra_words
from merkhet.models.loading import load_model
from merkhet.models.pseudowords import PseudowordModel, PseudowordSettings
from merkhet.training import _soft_prompt_training as training_module
from merkhet.training._soft_prompt_scoring import plan_scoring, score_candidates
from merkhet.training.artifact import read_artifact
from merkhet.training.soft_prompts import learn_soft_prompts, load_soft_prompts, read_soft_prompts

pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass(frozen=True)
class Outcome:
    before: float
    rest: float
    unknown: float
    result: object
    same_weights: bool
    same_embedding: bool


@pytest.fixture(scope="module")
def outcomes(
    folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[tuple[str, str]], Outcome]:
    """A function that learns the prompts of a family with a loss, once."""
    folder = tmp_path_factory.mktemp("soft")

    @functools.cache
    def learn(case: tuple[str, str]) -> Outcome:
        family, loss = case
        model = load_model(str(folders[family]))
        weights = {name: value.clone() for name, value in model.model.state_dict().items()}
        embedding = model.model.get_input_embeddings()
        before = mrr(model, asked(part(KNOWN, 3, EACH), "{name} : [MASK] ."))
        result = learn_soft_prompts(
            model, TRAINING, folder / f"{family} {loss}", dev=DEV, settings={**SETTINGS, "loss": loss, "dev_every": 1}
        )
        after = model.model.state_dict()
        same = set(after) == set(weights) and all(torch.equal(after[name], weights[name]) for name in weights)
        worn = with_extra_words(model, load_soft_prompts(model, result))
        rest, unknown = mrr(worn, REST), mrr(worn, asked(UNKNOWN))
        with_extra_words(model, {})
        return Outcome(before, rest, unknown, result, same, model.model.get_input_embeddings() is embedding)

    return learn


CASES = [
    case if case == ("masked", "bce") else pytest.param(case, marks=pytest.mark.train)
    for case in itertools.product(FAMILIES, ("bce", "nll"))
]


@pytest.mark.parametrize("case", CASES)
def test_what_a_model_knew_comes_to_light(outcomes, case) -> None:
    found = outcomes(case)
    epochs = found.result.record["epochs"]
    assert epochs[-1]["loss"] < 0.7 * epochs[0]["loss"]
    assert found.rest > 0.85 and found.rest > found.before + 0.15, found


@pytest.mark.parametrize("case", CASES)
def test_what_it_never_read_stays_at_chance(outcomes, case) -> None:
    """Every kind is as frequent in training, so whatever is said without knowledge is right as often as a guess."""
    draw = np.random.default_rng(0).integers(1, len(KINDS) + 1, (20_000, len(UNKNOWN)))
    guesses = (1 / draw).mean(axis=1)
    assert outcomes(case).unknown < np.quantile(guesses, 0.9995), outcomes(case)


@pytest.mark.train
@pytest.mark.parametrize("loss", ["bce", "nll"])
def test_of_what_it_does_not_know_it_learns_how_frequent_answers_are(folders, tmp_path: Path, loss: str) -> None:
    """Half of the names are songs: that can be learned from a few, and nothing else."""
    model = load_model(str(folders["masked"]))
    facts = {name: "song" if i % 2 else KINDS[i // 2 % len(KINDS)] for i, name in enumerate(UNKNOWN)}
    some = asked(facts)
    result = learn_soft_prompts(
        model, some[:16], tmp_path / "out", dev=some[16:24], settings={**SETTINGS, "loss": loss}
    )
    found = mrr(with_extra_words(model, load_soft_prompts(model, result)), some[24:])
    # Songs first, and then the others in random order.
    guessed = np.mean([1.0 if q.target == "song" else np.mean(1 / np.arange(2, 9)) for q in some[24:]])
    spread = np.std(1 / np.arange(2, 9)) / np.sqrt(len(some[24:]))
    assert found < guessed + 4 * spread, (found, guessed)


@pytest.mark.parametrize("case", CASES)
def test_the_model_stays_as_it_was(outcomes, case) -> None:
    assert outcomes(case).same_weights and outcomes(case).same_embedding


@pytest.mark.parametrize("family", ["masked", pytest.param("causal", marks=pytest.mark.train)])
def test_what_was_saved_scores_the_same(folders, outcomes, family: str) -> None:
    result = outcomes((family, "bce")).result
    record = json.loads((result.folder / "learned.json").read_text())
    assert record == dict(read_artifact(result.folder / "learned.json").record) == result.record
    assert (record["learner"], record["tokens"], record["start"]) == ("soft", ["<TP1>", "<TP2>"], [])
    assert (record["questions"], record["learned"], record["dev_questions"]) == (16, 16, 8)
    assert set(record["versions"]) == {"merkhet", "torch", "transformers"}
    model = load_model(str(folders[family]))
    assert record["base"] == model.fingerprint
    words = load_soft_prompts(model, result.folder / "learned.json")
    assert all(torch.equal(words[name], vector) for name, vector in read_soft_prompts(result.folder).items())
    worn = with_extra_words(model, words)
    assert worn.fingerprint == result.fingerprint
    assert mrr(worn, REST) == pytest.approx(outcomes((family, "bce")).rest, abs=1e-9)
    best = max(epoch["dev_mrr_a"] for epoch in record["epochs"])
    kept = record["epochs"][record["kept_epoch"] - 1]
    assert kept["dev_mrr_a"] == best == pytest.approx(mrr(worn, DEV), abs=1e-9)  # One gold: MRR_a is MRR.
    assert kept["loss"] == min(epoch["loss"] for epoch in record["epochs"] if epoch["dev_mrr_a"] == best)


@pytest.mark.parametrize("family", ["bert-uncased", "roberta", "albert", "gpt2", "llama", "llama-sentencepiece"])
def test_scores_are_those_of_the_model(model_folders: dict[str, Path], family: str) -> None:
    model = load_model(str(model_folders[family]))
    width = model.model.get_input_embeddings().weight.shape[1]
    worn = with_extra_words(model, {f"<a{i}>": torch.full((width,), 0.1 * i) for i in (1, 2)})
    candidates = ("Paris", "Berlin", "Rome", "New York", "New Delhi", "the United States", "metal", "presents a prefix")
    prompts = ("The capital <a1> <a2> [MASK].", "It is said <a1> [MASK] to be old <a2>.", "[MASK] <a2>")
    questions = [Question(f"q{i}", "t", prompt, ("Rome",), "Rome", candidates) for i, prompt in enumerate(prompts)]
    masked = [f"{way}-{pooling}" for way in ("multiple", "single") for pooling in ("mean", "max", "first", "sum")]
    causal = ["mean", "sum", "candidate-mean", "candidate-sum", "first-token"]
    methods = masked if model.kind == "masked" else causal
    expected = {result.index: result.by_method for result in worn.score_candidates(questions, methods)}
    placed, _ = worn.candidate_tokenizer.tokenize_questions(questions)
    for method in methods:
        whole = [plan_scoring(worn, placed[i], method, range(len(candidates))) for i in range(3)]
        for i, values in enumerate(score_candidates(worn, whole, method)):
            assert values.detach().numpy() == pytest.approx(expected[i][method], abs=1e-4), (method, i)
        few = score_candidates(worn, [plan_scoring(worn, placed[1], method, [6, 2, 3])], method)[0]
        assert few.detach().numpy() == pytest.approx(expected[1][method][[6, 2, 3]], abs=1e-4)
    with torch.no_grad():
        worn.share_prefixes = False
        plain = score_candidates(worn, [plan_scoring(worn, placed[0], methods[0], range(8))], methods[0])[0]
    assert plain.numpy() == pytest.approx(expected[0][methods[0]], abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_gives_the_same_bytes_in_any_order(unread, tmp_path: Path, family: str) -> None:
    model = load_model(str(unread[family]))
    settings = {**BRIEF, "batch_size": 3, "negatives": 4}
    made = {}
    for name, order, seed in (("a", 1, 1), ("b", -1, 1), ("c", 1, 2)):
        torch.manual_seed(len(made))
        learn_soft_prompts(model, TRAINING[::order], tmp_path / name, dev=DEV[::order], settings=settings, seed=seed)
        made[name] = [(tmp_path / name / file).read_bytes() for file in ("soft.safetensors", "learned.json")]
    assert made["a"] == made["b"]
    assert made["a"][0] != made["c"][0]
    assert not torch.are_deterministic_algorithms_enabled()


def test_tokens_begin_where_they_are_told_to(unread, tmp_path: Path) -> None:
    model = load_model(str(unread["masked"]))
    still = {"epochs": 1, "learning_rate": 1e-9}
    start = {"<TP2>": torch.arange(64) / 64, "<RG1>": torch.ones(64)}
    result = learn_soft_prompts(model, TRAINING, tmp_path / "out", settings=still, start=start)
    words = read_soft_prompts(tmp_path / "out")
    assert (result.record["start"], list(words)) == (["<TP2>"], ["<TP1>", "<TP2>"])
    assert torch.allclose(words["<TP2>"], start["<TP2>"], atol=1e-6)
    learn_soft_prompts(model, TRAINING, tmp_path / "again", settings=still, seed=9, start=[tmp_path / "out"])
    again = read_soft_prompts(tmp_path / "again")
    assert all(torch.allclose(again[name], words[name], atol=1e-6) for name in words)
    drawn = words["<TP1>"]
    table = model.model.get_input_embeddings().weight.detach()
    assert 0.5 < float(drawn.std() / table.std()) < 2.0
    # A token begins at the same place whatever others there are.
    alone = asked(part(KNOWN, 0, 1), "{name} <TP1> [MASK] .")
    learn_soft_prompts(model, alone, tmp_path / "alone", settings=still)
    assert torch.allclose(read_soft_prompts(tmp_path / "alone")["<TP1>"], drawn, atol=1e-6)
    with pytest.raises(InputError, match=r"<TP2> has an embedding of \(5,\), not \(64,\)"):
        learn_soft_prompts(model, TRAINING, tmp_path / "bad", start={"<TP2>": torch.ones(5)})
    assert not (tmp_path / "bad").exists()


def test_the_best_epoch_on_the_dev_questions_is_kept(folders, outcomes, tmp_path: Path) -> None:
    """What is learned is wrong for the dev questions: the longer it goes on, the fewer are right."""
    model = load_model(str(folders["masked"]))
    start = read_soft_prompts(outcomes(("masked", "bce")).result.folder)
    wrong = [replace(q, answers=("song",), target="song") for q in TRAINING]
    settings = {"epochs": 12, "learning_rate": 0.1, "warmup": 0.5, "dev_every": 1}
    result = learn_soft_prompts(model, wrong, tmp_path / "out", dev=DEV, settings=settings, start=start)
    found = [epoch["dev_mrr_a"] for epoch in result.record["epochs"]]
    assert found[result.record["kept_epoch"] - 1] == max(found) > found[-1] + 0.2
    assert result.record["kept_epoch"] < 12
    assert mrr(with_extra_words(model, read_soft_prompts(tmp_path / "out")), DEV) == pytest.approx(max(found))
    last = learn_soft_prompts(model, wrong, tmp_path / "last", settings=settings, start=start)
    assert last.record["kept_epoch"] == 12 and "dev_mrr_a" not in last.record["epochs"][-1]
    some = learn_soft_prompts(model, wrong, tmp_path / "some", dev=DEV, settings={**settings, "dev_every": 5})
    asked_at = [i for i, epoch in enumerate(some.record["epochs"], 1) if "dev_mrr_a" in epoch]
    assert asked_at == [5, 10, 12]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_losses_are_those_of_the_formulas(unread, family: str) -> None:
    model = load_model(str(unread[family]))
    worn = with_extra_words(model, {"<TP1>": torch.ones(64), "<TP2>": -torch.ones(64)})
    some = [replace(q, answers=(q.target, "song")) for q in TRAINING[:4]]
    examples, skipped = training_module.make_examples(worn, some)
    assert not skipped
    method = "multiple-mean" if family == "masked" else "mean"
    expected = {"bce": 0.0, "nll": 0.0}
    for result in worn.score_candidates(some, (method,)):
        s = result.by_method[method]
        right = np.array([text in some[result.index].answers for text in KINDS])
        sigmoid, softmax = 1 / (1 + np.exp(-s)), np.exp(s) / np.exp(s).sum()
        expected["bce"] += -np.mean(np.where(right, np.log(sigmoid), np.log(1 - sigmoid)))
        expected["nll"] += -np.log(softmax[right]).sum()
    for loss, value in expected.items():
        settings = training_module.SoftSettings(loss=loss, method=method, negatives=0)
        task = training_module.SoftPromptTask(worn, ["<TP1>", "<TP2>"], None, examples, (), settings, 0)
        found = task.loss([task.sample(one, 1) for one in examples])
        assert float(found.detach()) == pytest.approx(value, rel=1e-4)
    fewer = replace(settings, negatives=3)
    few = training_module.SoftPromptTask(worn, ["<TP1>", "<TP2>"], None, examples, (), fewer, 0)
    drawn = [few.sample(examples[0], epoch) for epoch in range(6)]
    golds = len(examples[0].golds)
    assert all((len(one.targets), int(one.targets.sum())) == (golds + 3, golds) for one in drawn)
    assert len({tuple(one.plan.tokens.tolist()) for one in drawn}) > 1


@pytest.mark.parametrize("family", FAMILIES)
def test_pseudowords_stand_in_prompts_and_are_not_learned(unread, tmp_path: Path, monkeypatch, family: str) -> None:
    model = load_model(str(unread[family]))
    prompts = ("[X] is a {kind} . <s4> [X] <TP1> [MASK] .", "[Y] belongs to the {kind} s . <s5> [Y] <TP1> [MASK] .")
    some = [
        Question(f"{kind}{i}", "rdfs9", prompt.format(kind=kind), (kind,), kind, KINDS)
        for kind in KINDS
        for i, prompt in enumerate(prompts)
    ]
    with pytest.raises(
        InputError, match=r"contain \[X\] or \[Y\]; set learning.settings.pseudowords to a number of pairs"
    ):
        learn_soft_prompts(model, some, tmp_path / "out", settings=BRIEF)
    used = []
    loss = training_module.SoftPromptTask.loss

    def watched(self, drawn):
        used.append(self.table.detach()[len(self.tokens) :].clone())
        return loss(self, drawn)

    monkeypatch.setattr(training_module.SoftPromptTask, "loss", watched)
    settings = {"epochs": 4, "learning_rate": 0.1, "weight_decay": 0.5, "batch_size": 8, "pseudowords": 3}
    settings |= {"negatives": 0, "dev_every": 1}
    result = learn_soft_prompts(model, some, tmp_path / "out", dev=some[:5], settings=settings, seed=4)
    assert result.record["tokens"] == ["<TP1>", "<s4>", "<s5>"] == sorted(read_soft_prompts(tmp_path / "out"))
    pairs = [used[0], used[2], used[4]]
    assert all(torch.equal(one, pairs[i // 2 % 3]) for i, one in enumerate(used)) and len(used) == 8
    assert not torch.equal(pairs[0], pairs[1])
    asking = PseudowordModel(model, PseudowordSettings(2), load_soft_prompts(model, tmp_path / "out"))
    assert {one.repeat for one in asking.score_candidates(some, model.methods[:1])} == {0, 1}


def test_a_batch_in_parts_gives_the_same_embeddings(unread, tmp_path: Path, monkeypatch) -> None:
    model = load_model(str(unread["masked"]))
    settings = {"epochs": 2, "learning_rate": 0.05, "batch_size": 16, "loss": "nll"}
    learn_soft_prompts(model, TRAINING, tmp_path / "whole", settings=settings)
    loss, tried = training_module.SoftPromptTask.loss, []

    def scarce(self, some):
        tried.append(len(some))
        if len(some) > 5:
            raise RuntimeError("CUDA out of memory. Tried to allocate")
        return loss(self, some)

    monkeypatch.setattr(training_module.SoftPromptTask, "loss", scarce)
    learn_soft_prompts(model, TRAINING, tmp_path / "parts", settings=settings)
    assert tried == [16, 8, *[4] * 8]
    whole, parts = read_soft_prompts(tmp_path / "whole"), read_soft_prompts(tmp_path / "parts")
    assert all(torch.allclose(whole[name], parts[name], atol=1e-3) for name in whole)


def test_a_loss_that_is_no_number_says_what_to_do(unread, tmp_path: Path, monkeypatch) -> None:
    model = load_model(str(unread["masked"]))
    embedding = model.model.get_input_embeddings()
    monkeypatch.setattr(training_module.SoftPromptTask, "loss", lambda self, _some: self.table.sum() * float("nan"))
    with pytest.raises(MerkhetError, match=r"the loss is not a finite number. Use a smaller learning_rate"):
        learn_soft_prompts(model, TRAINING, tmp_path / "out", settings=BRIEF)
    assert not list(tmp_path.iterdir())
    assert model.model.get_input_embeddings() is embedding and not isinstance(embedding, ExtraEmbeddings)
    assert all(parameter.requires_grad for parameter in model.model.parameters())


def test_the_published_way_scores_dev_questions_by_logits(unread, tmp_path: Path, monkeypatch) -> None:
    model = load_model(str(unread["masked"]))
    raws = []

    def watched(*arguments, raw: bool = False):
        raws.append(raw)
        return score_candidates(*arguments, raw=raw)

    monkeypatch.setattr(training_module, "score_candidates", watched)
    paper = learn_soft_prompts(
        model, TRAINING, tmp_path / "a", dev=DEV, settings={**BRIEF, "compat": "paper", "dev_every": 1}
    )
    assert raws.count(True) == len(DEV) * 3
    plain = learn_soft_prompts(model, TRAINING, tmp_path / "b", dev=DEV, settings={**BRIEF, "dev_every": 1})
    losses = [[epoch["loss"] for epoch in one.record["epochs"]] for one in (paper, plain)]
    assert losses[0] == losses[1]


def test_raw_scores_are_pooled_logits(unread) -> None:
    model = load_model(str(unread["masked"]))
    worn = with_extra_words(model, {"<TP1>": torch.ones(64), "<TP2>": -torch.ones(64)})
    placed, _ = worn.candidate_tokenizer.tokenize_questions(TRAINING[:1])
    ids = worn.tokenizer(TRAINING[0].prompt, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logits = worn.model(input_ids=ids).logits[0, ids[0].tolist().index(worn.mask)]
        found = score_candidates(
            worn, [plan_scoring(worn, placed[0], "single-mean", range(len(KINDS)))], "single-mean", raw=True
        )[0]
    expected = [logits[worn.tokenizer(kind, add_special_tokens=False)["input_ids"]].mean() for kind in KINDS]
    assert torch.allclose(found, torch.stack(expected), atol=1e-4)
