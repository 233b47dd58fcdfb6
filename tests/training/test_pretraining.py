"""Pre-training goes on: models learn what a text says, by every objective, and the same whether killed or not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_models import CHINESE_SENTENCES, MASKED, SENTENCES, build_models
from writing_models import WRITERS

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.records import Question
from merkhet.models.loading import load_model
from merkhet.training import LEARNERS
from merkhet.training._trainer import CHECKPOINT, Trainer
from merkhet.training.artifact import read_artifact
from merkhet.training.pretraining import pretrain
from merkhet.training.pretraining_settings import OBJECTIVES, PretrainSettings, resolve_pretraining
from merkhet.training.text_corpus import corpus_digest

BRIEF = {"steps": 7, "batch_size": 4, "max_length": 48, "learning_rate": 1e-3, "checkpoint_every": 3, "log_every": 2}
FAMILIES = {name: MASKED[name] for name in ("bert-chinese", "roberta", "albert")}
CLOZES = [
    Question(
        f"q{number}", "t", f"{sentence[:place]}[MASK]{sentence[place + 1 :]}", (sentence[place],), sentence[place], ()
    )
    for number, sentence in enumerate(CHINESE_SENTENCES)
    for place in (2, 4, len(sentence) - 2)
]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads only wait for each other where so little is to be done."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folders(one_thread, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small weights to begin with: large ones are slow to unlearn."""
    families = {**FAMILIES, "distilbert": WRITERS["distilbert"]}
    small = {
        name: replace(family, settings={**family.settings, "initializer_range": 0.1})
        for name, family in families.items()
    }
    return build_models(tmp_path_factory.mktemp("models"), small)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Documents of three sentences: Chinese ones, English ones, and both in turn."""
    folder = tmp_path_factory.mktemp("corpora")
    chinese = ["".join(CHINESE_SENTENCES[i : i + 3]) for i in range(6)]
    english = [" ".join(SENTENCES[i : i + 3]) for i in range(6)]
    for name, texts in (("chinese", chinese), ("english", english), ("both", [*chinese, *english])):
        (folder / f"{name}.txt").write_text("\n\n".join(texts), encoding="utf-8")
    return {file.stem: file for file in folder.iterdir()}


class KilledError(Exception):
    """The process is gone."""


class Watcher:
    """Counts steps, and kills the training when it comes to one."""

    def __init__(self, last: int = -1) -> None:
        self.steps = 0
        self.shown: list[int] = []
        self.last = last

    def start(self, label: str, total: int, unit: str) -> None:
        self.total, self.unit = total, unit

    def advance(self, label: str, done: int) -> None:
        self.steps += done
        self.shown.append(done)
        if self.steps == self.last:
            raise KilledError

    def finish(self, label: str) -> None: ...

    def say(self, line: str) -> None: ...


def trained(source: Path, corpus: Path, out: Path, objective: str = "mlm", *, seed: int = 1, **options):
    settings = {**BRIEF, **options.pop("settings", {}), "objective": objective}
    model = load_model(str(source))
    return model, pretrain(model, corpus, out, settings=settings, seed=seed, **options)


def right(model) -> float:
    """P@1 over the vocabulary."""
    filled = list(model.fill_slots(CLOZES, 1))
    return sum(one.pieces[0][0] == CLOZES[one.index].target for one in filled if one.pieces) / len(CLOZES)


@pytest.mark.train
def test_a_model_learns_what_its_text_says(folders, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(CHINESE_SENTENCES))
    settings = {"steps": 150, "batch_size": 16, "max_length": 24, "learning_rate": 1e-2, "log_every": 50}
    before = right(load_model(str(folders["bert-chinese"])))
    model, learned = trained(
        folders["bert-chinese"],
        tmp_path / "lines.txt",
        tmp_path / "out",
        settings={**settings, "largest_gradient": 10.0},
    )
    curve = learned.record["curve"]
    assert [line["step"] for line in curve] == [50, 100, 150]
    assert curve[-1]["mlm"] < curve[0]["mlm"] / 2
    assert right(model) > before + 0.5
    assert right(load_model(str(learned.folder))) == right(model)


@pytest.mark.parametrize(
    "objective", ["mlm+nsp", *(pytest.param(f"mlm+{extra}", marks=pytest.mark.train) for extra in ("sop", "sbo"))]
)
def test_what_an_objective_adds_is_learned_too(model_folders, tmp_path: Path, objective: str) -> None:
    text = f"{SENTENCES[0]} {SENTENCES[5]}\n\n{SENTENCES[3]} {SENTENCES[8]}"
    (tmp_path / "two.txt").write_text(text)
    settings = {"steps": 100, "batch_size": 8, "learning_rate": 3e-3, "log_every": 20, "largest_gradient": 10.0}
    _, learned = trained(model_folders["albert"], tmp_path / "two.txt", tmp_path / "out", objective, settings=settings)
    curve = learned.record["curve"]
    assert curve[-1]["extra"] < curve[0]["extra"] / 2, curve
    assert curve[-1]["mlm"] < curve[0]["mlm"]
    assert all(line["loss"] == pytest.approx(line["mlm"] + line["extra"]) for line in curve)


@pytest.mark.parametrize("family", ["bert-chinese", "roberta", "albert", "distilbert"])
def test_every_family_goes_on_and_is_saved_as_it_was(folders, corpora, tmp_path: Path, family) -> None:
    corpus = corpora["chinese" if family == "bert-chinese" else "english"]
    base = load_file(folders[family] / "model.safetensors")
    shapes = {name: value.shape for name, value in base.items()}
    for objective in OBJECTIVES:
        model, learned = trained(folders[family], corpus, tmp_path / objective, objective, settings={"steps": 2})
        saved = load_file(learned.folder / "model.safetensors")
        assert {name: value.shape for name, value in saved.items()} == shapes, objective
        assert any(not torch.equal(saved[name], base[name]) for name in base), objective
        again = load_model(str(learned.folder))
        assert (again.kind, again.fingerprint) == ("masked", learned.fingerprint), objective
        assert learned.fingerprint != learned.record["base"] == model.fingerprint, objective


def test_the_record_says_how_it_was_made(folders, corpora, tmp_path: Path) -> None:
    _, learned = trained(folders["bert-chinese"], corpora["both"], tmp_path / "out", "mlm+nsp", seed=5)
    record = json.loads((learned.folder / "learned.json").read_text())
    assert record == dict(read_artifact(learned.folder / "learned.json").record) == learned.record
    assert (record["learner"], record["objective"], record["steps"], record["seed"]) == ("pretrain", "mlm+nsp", 7, 5)
    assert record["settings"] == {**PretrainSettings("mlm+nsp").__dict__, **BRIEF}
    assert (
        record["corpus"].items() >= {"digest": corpus_digest(corpora["both"]), "documents": 12, "sentences": 36}.items()
    )
    assert [line["step"] for line in record["curve"]] == [2, 4, 6, 7]
    assert 7 * 4 * 20 < record["tokens_seen"] < 7 * 4 * 48
    assert record["rounds"] == round(28 / record["corpus"]["chunks"], 3)
    assert (record["precision"], record["remarks"]) == ("float32", []) and record["seconds"] >= 0
    assert str(tmp_path) not in (learned.folder / "config.json").read_text() + json.dumps(record)
    _, plain = trained(folders["bert-chinese"], corpora["both"], tmp_path / "plain")
    assert all(line["extra"] is None and line["loss"] == line["mlm"] for line in plain.record["curve"])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_killed_and_resumed_it_ends_with_the_same_weights(folders, corpora, tmp_path: Path, objective: str) -> None:
    source, corpus, kept = folders["bert-chinese"], corpora["both"], tmp_path / "kept"
    torch.manual_seed(7)
    _, undisturbed = trained(source, corpus, tmp_path / "undisturbed", objective)
    torch.manual_seed(8)
    for last in (2, 5):  # Before the first checkpoint, and between two.
        with pytest.raises(KilledError):
            trained(source, corpus, tmp_path / "killed", objective, checkpoints=kept, progress=Watcher(last))
        assert not (tmp_path / "killed").exists()
        assert (kept / CHECKPOINT).is_file() == (last == 5)
    watcher = Watcher()
    _, resumed = trained(source, corpus, tmp_path / "killed", objective, checkpoints=kept, progress=watcher)
    assert watcher.shown == [3, 1, 1, 1, 1] and (watcher.total, watcher.unit) == (7, "steps")
    assert resumed.record["weights"] == undisturbed.record["weights"]
    for key in ("curve", "tokens_seen", "fingerprint"):
        assert resumed.record[key] == undisturbed.record[key]
    assert list(kept.iterdir()) == []
    _, other = trained(source, corpus, tmp_path / "other", objective, seed=2)
    assert other.record["weights"] != undisturbed.record["weights"]
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_checkpoint_that_is_damaged_or_of_another_training_is_left_alone(folders, corpora, tmp_path: Path) -> None:
    source, corpus, kept = folders["bert-chinese"], corpora["both"], tmp_path / "kept"
    _, undisturbed = trained(source, corpus, tmp_path / "undisturbed")
    with pytest.raises(KilledError):
        trained(source, corpus, tmp_path / "out", checkpoints=kept, progress=Watcher(4))
    whole = (kept / CHECKPOINT).read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"no checkpoint at all"):
        (kept / CHECKPOINT).write_bytes(content)
        (kept / f".{CHECKPOINT}.1.tmp").write_bytes(whole[:100])
        watcher = Watcher()
        _, again = trained(source, corpus, tmp_path / "out", checkpoints=kept, progress=watcher)
        assert watcher.shown == [0, *[1] * 7]
        assert again.record["weights"] == undisturbed.record["weights"]
    for changed in ({"seed": 2}, {"settings": {"masked": 0.3}}, {"objective": "mlm+sbo"}):
        (kept / CHECKPOINT).write_bytes(whole)
        watcher = Watcher()
        trained(source, corpus, tmp_path / "out", checkpoints=kept, progress=watcher, **changed)
        assert watcher.shown[0] == 0


def test_a_checkpoint_is_written_whole_or_not_at_all(folders, corpora, tmp_path: Path, monkeypatch) -> None:
    source, corpus, kept = folders["bert-chinese"], corpora["both"], tmp_path / "kept"
    save, saved = torch.save, []

    def interrupted(content, handle) -> None:
        saved.append(content["state"]["step"])
        save(content, handle)
        if len(saved) == 2:
            handle.truncate(1000)
            raise KilledError

    monkeypatch.setattr(torch, "save", interrupted)
    with pytest.raises(KilledError):
        trained(source, corpus, tmp_path / "out", checkpoints=kept)
    watcher = Watcher()
    trained(source, corpus, tmp_path / "out", checkpoints=kept, progress=watcher)
    assert saved == [3, 6, 6] and watcher.shown[0] == 3


@pytest.mark.parametrize("objective", ["mlm+nsp", "mlm+sbo"])
def test_a_batch_in_parts_gives_the_same_gradients(folders, corpora, tmp_path: Path, monkeypatch, objective) -> None:
    made = {}
    learn, losses = Trainer.train_step, []

    def remember(self, batch) -> torch.Tensor:
        task = self.task
        task.set_training(False)  # Without dropout, which is another for each part.
        losses.append(learn(self, batch))
        made.setdefault(task.seed, []).append([p.grad.clone() for p in task.parameters if p.grad is not None])
        return losses[-1]

    monkeypatch.setattr(Trainer, "train_step", remember)
    settings = {"steps": 1, "batch_size": 8}
    trained(folders["bert-chinese"], corpora["both"], tmp_path / "out", objective, settings=settings)
    whole, made[1] = made[1][0], []
    from merkhet.training._pretraining_objectives import Objective

    tell, tried = Objective.losses, []

    def scarce(self, some):
        tried.append(len(some))
        if len(some) > 3:
            raise RuntimeError("CUDA out of memory. Tried to allocate")
        return tell(self, some)

    monkeypatch.setattr(Objective, "losses", scarce)
    trained(folders["bert-chinese"], corpora["both"], tmp_path / "out", objective, settings=settings)
    assert tried == [8, 4, 2, 2, 2, 2]
    assert losses[1].tolist() == pytest.approx(losses[0].tolist(), rel=1e-5)
    for one, other in zip(whole, made[1][0], strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_what_is_wrong_is_said_before_anything_is_done(folders, corpora, model_folders, tmp_path: Path) -> None:
    model, corpus = load_model(str(folders["bert-chinese"])), corpora["both"]
    for settings, reason in (
        ({"step": 3}, "learning.settings.step does not exist; did you mean 'steps'"),
        ({"steps": "3"}, "learning.settings.steps must be an integer ≥ 1, got '3'"),
        ({"steps": 0}, "learning.settings.steps must be an integer ≥ 1, got 0"),
        (
            {"objective": "mlm+ns"},
            r"learning.settings.objective must be one of .*, got 'mlm\+ns'; did you mean 'mlm\+nsp'",
        ),
        ({"precision": "float16"}, "learning.settings.precision must be one of float32, bfloat16, got 'float16'"),
        ({"masked": 1.5}, "learning.settings.masked must be a number > 0 and ≤ 1, got 1.5"),
        ({"warmup": 2}, "learning.settings.warmup must be a number from 0 to 1, got 2"),
        ({"max_length": 65}, "max_length must be ≤ 64, the maximum of bert-chinese, got 65"),
    ):
        with pytest.raises(InputError, match=reason):
            pretrain(model, corpus, tmp_path / "out", settings={**BRIEF, **settings})
    with pytest.raises(InputError, match="random is a baseline model; only masked models can be pre-trained"):
        pretrain(load_model("random"), corpus, tmp_path / "out")
    with pytest.raises(InputError, match="gpt2 is a causal model; only masked models can be pre-trained"):
        pretrain(load_model(str(model_folders["gpt2"])), corpus, tmp_path / "out")
    with pytest.raises(InputError, match="there is no corpus"):
        pretrain(model, tmp_path / "none.txt", tmp_path / "out", settings=BRIEF)
    with pytest.raises(MerkhetError, match="the loss is not a finite number"):
        pretrain(model, corpus, tmp_path / "out", settings={**BRIEF, "learning_rate": 1e30})
    assert not list(tmp_path.iterdir())


def test_what_a_study_says_is_checked_without_a_model(corpora) -> None:
    home = corpora["both"].parent
    place, settings = resolve_pretraining({"corpus": "both.txt", "steps": 3}, home)
    assert place == corpora["both"]
    assert settings == tuple(PretrainSettings(name, steps=3) for name in ("mlm", "mlm+nsp", "mlm+sop", "mlm+sbo"))
    _, settings = resolve_pretraining({"corpus": str(corpora["both"]), "objectives": "mlm+sop"}, home)
    assert [one.objective for one in settings] == ["mlm+sop"]
    for given, reason in (
        ({}, "learning.settings.corpus is missing; name a text file or folder"),
        ({"corpus": "none.txt"}, "there is no corpus .*none.txt"),
        (
            {"corpus": "both.txt", "objective": "mlm"},
            "learning.settings.objective does not exist; .* 'objectives'",
        ),
        (
            {"corpus": "both.txt", "objectives": ["mlm", "nsp"]},
            r"objectives must be a list of some of mlm, .*, got \['mlm', 'nsp'\]",
        ),
        ({"corpus": "both.txt", "objectives": []}, r"objectives must name each objective once, got \[\]"),
        (
            {"corpus": "both.txt", "objectives": ["mlm", "mlm"]},
            "objectives must name each objective once, got .*'mlm', 'mlm'",
        ),
        ({"corpus": "both.txt", "batch_size": -1}, "learning.settings.batch_size must be an integer ≥ 1, got -1"),
    ):
        with pytest.raises(InputError, match=reason):
            resolve_pretraining(given, home)


def test_it_is_found_by_name() -> None:
    assert LEARNERS.get("pretrain") is pretrain
