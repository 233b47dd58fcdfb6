"""One loop trains for all learners: as the obvious loop does, the same whether killed or not, no longer than needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from soft_worlds import DEV, TRAINING
from writing_models import questions

from merkhet.core.errors import MerkhetError
from merkhet.models.loading import load_model
from merkhet.training._checkpoints import write_checkpoint
from merkhet.training._optimization import OptimizerSettings, clip_gradients, learning_rate_factor
from merkhet.training._trainer import CHECKPOINT, CheckpointSchedule, EarlyStopping, Trainer
from merkhet.training._training_task import STEPS, AutogradTask, CurvePoint, TrainingState
from merkhet.training.cloze import tune_cloze
from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.soft_prompts import learn_soft_prompts

pytestmark = pytest.mark.usefixtures("one_thread")

EPOCHS, SIZE, EXAMPLES = 4, 5, 17
OPTIMIZER = OptimizerSettings(0.05, 0.1, 0.2, 0.5, decay_vectors=False)


def network() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.2), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def points() -> torch.Tensor:
    rows = torch.from_numpy(np.random.default_rng(1).normal(size=(EXAMPLES, 3))).float()
    return torch.cat([rows, rows.sum(1, keepdim=True).sin()], dim=1)


class Regression(AutogradTask[torch.Tensor]):
    """Learn a sine; the scores of the epochs are made up."""

    def __init__(self, scores: Sequence[float | None] = (None,) * EPOCHS, unit: str = "points") -> None:
        self.network, self.rows, self.scores = network(), points(), scores
        self.label, self.unit = "sine", unit
        self.epochs, self.batch_size, self.device = len(scores), SIZE, torch.device("cpu")
        self.steps = len(scores) * -(-EXAMPLES // SIZE)
        self.total = self.steps if unit == STEPS else len(scores) * EXAMPLES
        self.modules = {"network": self.network}
        self.parameters = list(self.network.parameters())
        self.optimizer = OPTIMIZER
        self.weights: list[torch.Tensor] = []

    def batches(self, epoch: int, start: int) -> Iterator[torch.Tensor]:
        order = torch.from_numpy(np.random.default_rng(epoch).permutation(EXAMPLES))
        for first in range(start * SIZE, EXAMPLES, SIZE):
            yield self.rows[order[first : first + SIZE]]

    def weight(self, batch: torch.Tensor) -> float:
        return len(batch)

    def loss(self, batch: torch.Tensor) -> torch.Tensor:
        return (self.network(batch[:, :3])[:, 0] - batch[:, 3]).square().sum()

    def set_training(self, training: bool) -> None:
        self.network.train(training)

    def evaluate(self, epoch: int, micro_batch: int) -> float | None:
        assert not self.network.training
        self.weights.append(self.network[0].weight.detach().clone())
        return self.scores[epoch - 1]

    def curve_point(self, state: TrainingState, losses: Sequence[float], score: float | None) -> CurvePoint:
        return {"epoch": state.epoch, "step": state.step, "loss": losses[0], "score": score}


def same(one: torch.nn.Module, other: torch.nn.Module) -> bool:
    mine, others = one.state_dict(), other.state_dict()
    return all(torch.equal(mine[name], others[name]) for name in mine)


def test_it_trains_as_the_loop_that_everybody_writes_first():
    task = Regression()
    torch.manual_seed(9)
    state = Trainer(task).run()
    plain, rows, steps = network(), points(), EPOCHS * 4
    matrices, vectors = ([p for p in plain.parameters() if (p.ndim > 1) is flag] for flag in (True, False))
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}])
    torch.manual_seed(9)
    step, losses = 0, []
    for epoch in range(1, EPOCHS + 1):
        order, summed = torch.from_numpy(np.random.default_rng(epoch).permutation(EXAMPLES)), 0.0
        for first in range(0, EXAMPLES, SIZE):
            batch = rows[order[first : first + SIZE]]
            warm = 0.2 * steps
            share = (step + 1) / (warm + 1) if step < warm else (steps - step) / (steps - warm)
            for group in optimizer.param_groups:
                group["lr"] = 0.05 * share
            optimizer.zero_grad()
            loss = (plain(batch[:, :3])[:, 0] - batch[:, 3]).square().mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
            optimizer.step()
            summed, step = summed + float(loss.detach()) * len(batch), step + 1
        losses.append(summed / EXAMPLES)
    assert [line["loss"] for line in state.curve] == pytest.approx(losses, rel=1e-6)
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(task.network.state_dict()[name], value, atol=1e-6, rtol=1e-6)
    assert (state.epoch, state.step, state.units, state.stopped) == (EPOCHS, steps, EPOCHS * EXAMPLES, "epochs")
    assert not task.network.training


class KilledError(Exception):
    """The process is gone."""


class Watch:
    """Progress that ends the training when so many units are done."""

    def __init__(self, last: int = 10**9) -> None:
        self.shown: list[int] = []
        self.last = last

    def start(self, *_given: Any) -> None: ...
    def finish(self, *_given: Any) -> None: ...
    def say(self, *_given: Any) -> None: ...

    def advance(self, _label: str, count: int) -> None:
        self.shown.append(count)
        if sum(self.shown) >= self.last:
            raise KilledError


@pytest.mark.parametrize("every_steps", [0, 1, 3])
def test_killed_at_any_step_it_ends_with_the_same_bits(tmp_path: Path, every_steps: int):
    """With dropout, and with the weights of the best epoch."""
    scores, stopping = (0.1, 0.3, 0.2, 0.3), EarlyStopping(keep_best=True)
    whole = Regression(scores, STEPS)
    torch.manual_seed(9)
    expected = Trainer(whole, stopping=stopping).run()
    for last in range(1, whole.steps + 1):
        schedule = CheckpointSchedule(tmp_path / str(last), "this", every_steps, seconds=0.0)
        killed = Regression(scores, STEPS)
        torch.manual_seed(9)
        with pytest.raises(KilledError):
            Trainer(killed, Watch(last), stopping=stopping, checkpoints=schedule).run()
        task, watch = Regression(scores, STEPS), Watch()
        torch.manual_seed(10 if schedule.file.exists() else 9)
        state = Trainer(task, watch, stopping=stopping, checkpoints=schedule).run()
        begun = last - 1 if every_steps == 1 else (last - 1) // (every_steps or 4) * (every_steps or 4)
        assert watch.shown == [begun, *[1] * (whole.steps - begun)], last
        assert state.curve == expected.curve and same(task.network, whole.network), last
        assert (state.best_epoch, state.best_score) == (expected.best_epoch, expected.best_score), last
        schedule.remove()
        assert not list(schedule.folder.glob("*"))


def test_checkpoints_of_other_trainings_or_layouts_are_left_alone(tmp_path: Path):
    schedule = CheckpointSchedule(tmp_path, "this", seconds=0.0)
    write_checkpoint(schedule.file, "another", {"state": {"epoch": 3}})
    Trainer(Regression(), checkpoints=schedule).run()
    torch.save({"identity": "this", "network": {}, "state": {"epoch": 3}}, schedule.file)
    watch = Watch()
    Trainer(Regression(), watch, checkpoints=schedule).run()
    assert watch.shown[0] == 0 and sum(watch.shown) == EPOCHS * EXAMPLES


def test_it_stops_early_and_keeps_the_best_weights():
    for scores, rules, epochs, best, reason in (
        ((0.2, 0.9, 0.9, 0.9), EarlyStopping(until=0.9), 2, 2, "until"),
        ((0.2, None, 0.9, 0.9), EarlyStopping(until=0.9, keep_best=True), 3, 3, "until"),
        ((0.4, 0.3, 0.3, 0.3), EarlyStopping(patience=2, keep_best=True), 3, 1, "patience"),
        ((0.0, 0.0, 0.0, 0.0), EarlyStopping(patience=2), 4, None, "epochs"),
        ((0.4, 0.5, 0.3, 0.2), EarlyStopping(keep_best=True), 4, 2, "epochs"),
        ((0.4, 0.5, 0.3, 0.2), EarlyStopping(), 4, 2, "epochs"),
        ((None, None, None, None), EarlyStopping(until=0.0, patience=1, keep_best=True), 4, 0, "epochs"),
    ):
        task = Regression(scores)
        state = Trainer(task, stopping=rules).run()
        assert (state.epoch, state.stopped) == (epochs, reason), scores
        assert best is None or state.best_epoch == best, scores
        kept = task.weights[best - 1 if rules.keep_best and best else -1]
        assert torch.equal(task.network[0].weight, kept), scores


def test_of_equal_scores_the_lowest_loss_is_best():
    state = Trainer(Regression((0.5,) * EPOCHS)).run()
    assert state.curve[state.best_epoch - 1]["loss"] == min(line["loss"] for line in state.curve)


def test_a_loss_that_is_no_number_is_never_in_a_checkpoint(tmp_path: Path, monkeypatch):
    task, loss = Regression(), Regression.loss
    monkeypatch.setattr(
        task, "loss", lambda batch: loss(task, batch) * (float("nan") if trainer.state.step == 2 else 1.0)
    )
    trainer = Trainer(task, checkpoints=CheckpointSchedule(tmp_path, "this", 3))
    with pytest.raises(MerkhetError, match=r"sine: the loss is not a finite number\. Use a smaller learning_rate"):
        trainer.run()
    assert not list(tmp_path.iterdir()) and not task.network.training


def test_a_single_example_that_does_not_fit_is_refused(monkeypatch):
    task, tried = Regression(), []

    def scarce(batch: torch.Tensor) -> torch.Tensor:
        tried.append(len(batch))
        raise RuntimeError("CUDA out of memory. Tried to allocate")

    monkeypatch.setattr(task, "loss", scarce)
    with pytest.raises(MerkhetError, match=r"sine: out of memory on a single example\. Use a machine with more memory"):
        Trainer(task).run()
    assert tried == [5, 2, 1]


def test_learning_rates_follow_their_schedules():
    for schedule, expected in (
        ("linear", lambda share: 1 - share),
        ("cosine", lambda share: 0.5 * (1 + np.cos(np.pi * share))),
        ("constant", lambda share: 1.0),
    ):
        shares = [learning_rate_factor(step, 50, 0.2, schedule) for step in range(50)]
        assert shares[:10] == pytest.approx([(step + 1) / 11 for step in range(10)]), schedule
        assert shares[10:] == pytest.approx([expected(step / 40) for step in range(40)]), schedule


def test_the_norm_of_sharded_gradients_is_that_of_all():
    gradients = [torch.tensor([3.0, 0.0]), torch.tensor([4.0]), torch.tensor([12.0])]
    for sharded, limit in ((0, 6.5), (1, 6.5), (2, 6.5), (1, 50.0)):
        parameters = [torch.nn.Parameter(torch.zeros_like(gradient)) for gradient in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.clone()
        clip_gradients([*parameters, torch.nn.Parameter(torch.zeros(1))], limit, parameters[:sharded], ProcessGroup())
        for parameter, gradient in zip(parameters, gradients, strict=True):
            torch.testing.assert_close(parameter.grad, gradient * min(1.0, limit / 13))


def checked_resumption(
    train: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, folder: Path, last: Sequence[int], begun: int
) -> None:
    """Compare a learner that was killed after so many questions with one that was not, byte for byte."""
    monkeypatch.setattr(Trainer, "_is_checkpoint_due", lambda self: bool(self.checkpoints) and not self.state.stopped)
    whole = train(folder / "whole", None, Watch())
    for count in last:
        with pytest.raises(KilledError):
            train(folder / "killed", folder / "work", Watch(count))
        assert not (folder / "killed").exists() and (folder / "work" / CHECKPOINT).is_file()
    watch = Watch()
    resumed = train(folder / "killed", folder / "work", watch)
    assert watch.shown[0] == begun
    assert resumed.record == whole.record and resumed.fingerprint == whole.fingerprint
    assert not list((folder / "work").iterdir())


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_killed_cloze_tuning_ends_with_the_same_bits(writer_folders, tmp_path: Path, monkeypatch, family: str):
    asked = questions()

    def train(folder: Path, work: Path | None, progress: Watch) -> Any:
        model = load_model(str(writer_folders[family]))
        settings = {"epochs": 5, "learning_rate": 1e-3, "batch_size": 3, "patience": 5}
        options = {"dev": asked[:4], "settings": settings, "seed": 2, "checkpoints": work, "progress": progress}
        return tune_cloze(model, asked, folder, **options)

    checked_resumption(train, monkeypatch, tmp_path, last=(12, 30), begun=24)


@pytest.mark.parametrize("family", ["masked", "causal"])
def test_killed_soft_prompts_end_with_the_same_bits(unread, tmp_path: Path, monkeypatch, family: str):
    model = load_model(str(unread[family]))

    def train(folder: Path, work: Path | None, progress: Watch) -> Any:
        settings = {"epochs": 5, "learning_rate": 0.05, "batch_size": 6, "negatives": 4, "dev_every": 2}
        options = {"dev": DEV, "settings": settings, "seed": 2, "checkpoints": work, "progress": progress}
        return learn_soft_prompts(model, TRAINING, folder, **options)

    checked_resumption(train, monkeypatch, tmp_path, last=(20, 60), begun=48)
