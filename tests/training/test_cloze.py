"""Cloze tuning: every family learns to write its answers, the same way every time, and is read back as it was."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from writing_models import CAUSAL_WRITERS, MASKED_WRITERS, WRITERS, questions

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.metrics.text_overlap import exact_match
from merkhet.models.loading import load_model
from merkhet.probes.write import write_answers
from merkhet.training import LEARNERS
from merkhet.training._optimization import learning_rate_factor
from merkhet.training._trainer import Trainer
from merkhet.training.artifact import read_artifact
from merkhet.training.cloze import ClozeSettings, ClozeTask, make_batches, make_examples, tune_cloze

SETTINGS = {"epochs": 150, "learning_rate": 1e-2, "batch_size": 4, "largest_gradient": 100.0, "patience": 150}
BRIEF = {"epochs": 2, "learning_rate": 1e-3, "batch_size": 4}
QUICK = ("bert", "gpt2")
FAMILIES = [family if family in QUICK else pytest.param(family, marks=pytest.mark.train) for family in WRITERS]


def way(family: str) -> str:
    return "masks" if family in MASKED_WRITERS else "chat" if family == "chat" else "continue"


def tuned(source: Path, target: Path, asked, family: str = "bert", **options):
    model = load_model(str(source))
    settings = {**options.pop("settings", BRIEF), "method": "chat" if family == "chat" else "continue"}
    return model, tune_cloze(model, asked, target, settings=settings, **options)


@pytest.fixture(scope="module")
def learned(one_thread, writer_folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory):
    """A function that tunes a family, once; the training questions are the dev questions too: it stops when all is
    learned."""
    folder = tmp_path_factory.mktemp("learned")

    @functools.cache
    def learn(family: str):
        given = {"settings": SETTINGS, "dev": questions(), "seed": 3}
        return tuned(writer_folders[family], folder / family, questions(), family, **given)

    return learn


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_learns_to_write_its_answers(learned, family: str) -> None:
    model, result = learned(family)
    epochs = result.record["epochs"]
    assert epochs[-1]["loss"] < epochs[0]["loss"] / 4
    assert (epochs[-1]["dev_f1"], result.record["kept_epoch"]) == (1.0, len(epochs))
    for answer, question in zip(write_answers(model, questions(), (way(family),)), questions(), strict=True):
        assert exact_match(answer.prediction, question.answers), (answer.prediction, question.target)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_was_saved_is_read_as_any_model_and_writes_the_same(learned, family: str) -> None:
    model, result = learned(family)
    again = load_model(str(result.folder))
    assert (again.kind, again.fingerprint) == (model.kind, result.fingerprint)
    assert again.fingerprint != model.fingerprint == result.record["base"]
    others = [Question(f"o{i}", "t", f"{q.prompt} It is old.", ("x",), "x", ()) for i, q in enumerate(questions())]
    for asked in (questions(), others):
        before, after = (list(write_answers(one, asked, (way(family),))) for one in (model, again))
        assert [a.prediction for a in before] == [a.prediction for a in after]
        assert [a.ranked[0][1] for a in before] == pytest.approx([a.ranked[0][1] for a in after], abs=1e-5)


def test_the_record_says_how_it_was_made(learned) -> None:
    _, result = learned("bert")
    record = json.loads((result.folder / "learned.json").read_text())
    assert record == dict(read_artifact(result.folder / "learned.json").record) == result.record
    assert record["settings"]["epochs"] == 150
    assert (record["learner"], record["seed"], record["questions"], record["learned"]) == ("cloze", 3, 8, 8)
    assert set(record["versions"]) == {"merkhet", "torch", "transformers"}
    assert str(result.folder) not in (result.folder / "config.json").read_text() + json.dumps(record)


@pytest.mark.parametrize("family", ["bert", pytest.param("roberta", marks=pytest.mark.train), "gpt2"])
def test_the_same_seed_gives_the_same_weights_in_any_order(
    writer_folders: dict[str, Path], tmp_path: Path, family: str
) -> None:
    asked = questions()
    torch.manual_seed(7)
    made = [tuned(writer_folders[family], tmp_path / "a", asked, family, seed=1, dev=asked)[1].record["weights"]]
    torch.manual_seed(8)
    made.append(
        tuned(writer_folders[family], tmp_path / "b", asked[::-1], family, seed=1, dev=asked[::-1])[1].record["weights"]
    )
    other = tuned(writer_folders[family], tmp_path / "c", asked, family, seed=2, dev=asked)[1].record["weights"]
    assert made[0] == made[1] != other
    assert not torch.are_deterministic_algorithms_enabled()


def test_only_the_answer_is_learned(writer_folders: dict[str, Path]) -> None:
    """The loss of a batch is the sum over its questions, alone and unpadded, of the answer's cross-entropy."""
    for family, folder in writer_folders.items():
        check_the_loss(family, load_model(str(folder)))


def check_the_loss(family: str, model) -> None:
    settings = ClozeSettings(method="chat" if family == "chat" else "continue")
    examples, skipped = make_examples(model, questions(), settings)
    assert len(examples) == len(questions()) and not skipped
    tokenizer = model.tokenizer
    expected = 0.0
    for example, question in zip(examples, questions(), strict=True):
        pieces = [token for token in example.targets if token not in tokenizer.all_special_ids]
        assert question.target.lower() == model.writer.decoder.decode(pieces).strip().lower()
        if family in CAUSAL_WRITERS:
            assert example.targets[-1] == tokenizer.eos_token_id
            assert tuple(example.ids[example.columns[0] + 1 :]) == example.targets[:-1]
        else:
            assert example.targets == (*pieces, *[tokenizer.pad_token_id] * (8 - len(pieces)))
            assert {example.ids[column] for column in example.columns} == {tokenizer.mask_token_id}
        with torch.no_grad():
            logits = model.model(input_ids=torch.tensor([example.ids])).logits[0].log_softmax(-1)
        pairs = zip(example.columns, example.targets, strict=True)
        expected -= sum(float(logits[column, token]) for column, token in pairs)
    task = ClozeTask(model, examples, (), settings, 0)
    with torch.no_grad():
        assert float(task.loss(examples)) == pytest.approx(expected, rel=1e-4), family


def test_a_batch_in_parts_gives_the_same_gradients(writer_folders: dict[str, Path], monkeypatch) -> None:
    model = load_model(str(writer_folders["bert"]))
    settings = ClozeSettings(batch_size=8)
    examples, _ = make_examples(model, questions(), settings)
    task = ClozeTask(model, examples, (), settings, 0)
    trainer = Trainer(task)
    whole = float(trainer._backward(examples, slice(0, 8)))
    gradients = [p.grad.clone() for p in model.model.parameters() if p.grad is not None]
    loss, tried = task.loss, []

    def scarce(some):
        tried.append(len(some))
        if len(some) > 3:
            raise RuntimeError("CUDA out of memory. Tried to allocate")
        return loss(some)

    monkeypatch.setattr(task, "loss", scarce)
    assert float(trainer._backward(examples, slice(0, 8))) == pytest.approx(whole, rel=1e-5)
    assert tried == [8, 4, 2, 2, 2, 2]
    found = [p.grad for p in model.model.parameters() if p.grad is not None]
    for one, other in zip(found, gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_answers_that_cannot_be_learned_are_left_out_and_counted(
    writer_folders: dict[str, Path], tmp_path: Path
) -> None:
    def asked(name: str, answer: str, prompt: str = "It is [MASK].") -> Question:
        return Question(name, "t", prompt, (answer,), answer, ())

    some = [
        *questions(),
        asked("long", "the capital of France is the capital of Italy"),
        asked("longer", "the city of the city of the city of Rome"),
        asked("strange", "東"),
        asked("far", "Paris", "The capital of France is " * 20 + "[MASK]."),
    ]
    _, result = tuned(writer_folders["bert"], tmp_path / "out", some)
    assert (result.record["questions"], result.record["learned"]) == (12, 8)
    assert result.record["skipped"] == {
        "the answer holds a token that this model does not know": 1,
        "the answer is longer than 8 pieces": 2,
        "too long": 1,
    }
    with pytest.raises(InputError, match=r"can learn from none of the 1 training questions: .* \(1\)"):
        tuned(writer_folders["bert"], tmp_path / "none", some[-1:])
    assert not (tmp_path / "none").exists()


@pytest.mark.train
def test_the_best_epoch_on_the_dev_questions_is_kept(writer_folders: dict[str, Path], tmp_path: Path) -> None:
    asked = questions()
    # What is learned is wrong for the dev questions: the longer it goes on, the fewer are right.
    wrong = [Question(f"w{i}", "t", q.prompt, ("metal",), "metal", ()) for i, q in enumerate(asked)]
    right, _ = tuned(writer_folders["distilbert"], tmp_path / "right", asked, settings=SETTINGS, dev=asked)
    right.model.save_pretrained(tmp_path / "start")
    right.tokenizer.save_pretrained(tmp_path / "start")
    settings = {"epochs": 40, "learning_rate": 3e-3, "batch_size": 4, "patience": 3}
    model, result = tuned(tmp_path / "start", tmp_path / "out", wrong, settings=settings, dev=asked[:7])
    scores = [epoch["dev_f1"] for epoch in result.record["epochs"]]
    kept = result.record["kept_epoch"]
    assert scores[kept - 1] == max(scores) and len(scores) < 40
    assert scores[kept - 1] == tuning_f1(model, asked[:7]) == tuning_f1(load_model(str(tmp_path / "out")), asked[:7])


def tuning_f1(model, asked) -> float:
    pairs = zip(write_answers(model, asked), asked, strict=True)
    return sum(exact_match(answer.prediction, question.answers) for answer, question in pairs) / len(asked)


def test_what_is_wrong_is_said_before_anything_is_done(writer_folders: dict[str, Path], tmp_path: Path) -> None:
    model = load_model(str(writer_folders["bert"]))
    for settings, reason in (
        ({"epoch": 3}, "learning.settings.epoch does not exist; did you mean 'epochs'"),
        ({"epochs": "3"}, "learning.settings.epochs must be an integer ≥ 1, got '3'"),
        ({"epochs": 0}, "learning.settings.epochs must be an integer ≥ 1, got 0"),
        ({"warmup": 2}, "learning.settings.warmup must be a number from 0 to 1, got 2"),
        ({"method": "shout"}, "learning.settings.method must be one of continue, chat, got 'shout'"),
    ):
        with pytest.raises(InputError, match=reason):
            tune_cloze(model, questions(), tmp_path / "out", settings=settings)
    with pytest.raises(InputError, match="random is a baseline, which has no weights to tune"):
        tune_cloze(load_model("random"), questions(), tmp_path / "out")
    with pytest.raises(InputError, match="can learn from none of the 0 training questions: there is none"):
        tune_cloze(model, [], tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds other files"):
        tune_cloze(model, questions(), tmp_path / "mine")
    assert [file.name for file in tmp_path.rglob("*")] == ["mine", "thesis.txt"]


def test_an_earlier_learning_is_replaced_whole(writer_folders: dict[str, Path], tmp_path: Path, monkeypatch) -> None:
    _, first = tuned(writer_folders["bert"], tmp_path / "out", questions())
    _, second = tuned(writer_folders["gpt2"], tmp_path / "out", questions(), "gpt2")
    assert load_model(str(tmp_path / "out")).fingerprint == second.fingerprint != first.fingerprint
    model = load_model(str(writer_folders["bert"]))

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model.tokenizer, "save_pretrained", full)
    with pytest.raises(InputError, match="the disk is full"):
        tune_cloze(model, questions(), tmp_path / "out", settings=BRIEF)
    assert load_model(str(tmp_path / "out")).fingerprint == second.fingerprint
    assert [file.name for file in tmp_path.iterdir()] == ["out"]
    (tmp_path / "out" / "learned.json").write_text("{")
    with pytest.raises(InputError, match="is damaged or incomplete"):
        read_artifact(tmp_path / "out" / "learned.json")


def test_batches_hold_every_example_once_and_rows_of_like_length(writer_folders: dict[str, Path]) -> None:
    model = load_model(str(writer_folders["bert"]))
    words = "The capital of France is "
    many = [Question(f"q{i}", "t", f"{words * (i % 7)}[MASK].", ("Paris",), "Paris", ()) for i in range(70)]
    examples, _ = make_examples(model, many, ClozeSettings())
    batches = make_batches(examples, 10, seed=1)
    assert sorted(one.question_id for batch in batches for one in batch) == sorted(q.question_id for q in many)
    assert all(len({len(one.ids) for one in batch}) == 1 for batch in batches)
    assert batches == make_batches(examples[::-1], 10, seed=1) != make_batches(examples, 10, seed=2)


def test_the_learning_rate_rises_and_falls_in_lines() -> None:
    shares = np.array([learning_rate_factor(step, 100, 0.1) for step in range(100)])
    assert np.argmax(shares) in (9, 10) and shares.max() == pytest.approx(1.0, abs=0.1)
    assert 0 < shares[0] < 0.1 and 0 < shares[-1] < 0.02
    assert np.all(np.diff(shares[:10]) > 0) and np.all(np.diff(shares[10:]) < 0)
    assert learning_rate_factor(0, 1, 0.0) == learning_rate_factor(0, 1, 1.0) * 2 == 1.0


def test_it_is_found_by_name() -> None:
    assert LEARNERS.get("cloze") is tune_cloze
