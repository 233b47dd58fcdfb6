"""Several processes train what one does: whatever their number, killed or not, with the head in shards or whole."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import training_together
from safetensors.torch import load_file
from tiny_models import MASKED, SENTENCES, build_models
from training_together import MEMORIZE, PRETRAIN, TESTS, WAYS, memorized, pretrained, stopped, torchrun

from merkhet.core.errors import InputError
from merkhet.core.settings import make_settings
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.training import pretraining
from merkhet.training._trainer import CHECKPOINT
from merkhet.training.memorizing.memorize import store_statements as memorize
from merkhet.training.memorizing.memorize_settings import MemorizeSettings

pytestmark = pytest.mark.usefixtures("one_thread")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    files = [folder / name for name in ("model.safetensors", "symbols.safetensors")]
    return {name: value for file in files if file.is_file() for name, value in load_file(file).items()}


def apart(one: Path, other: Path) -> float:
    """The largest difference of two models' weights."""
    mine, others = weights(one), weights(other)
    assert {name: part.shape for name, part in mine.items()} == {name: part.shape for name, part in others.items()}
    # What is added to all keys alike has no part in attention: its gradient is mere rounding, which Adam enlarges.
    return max(float((mine[name] - others[name]).abs().max()) for name in mine if not name.endswith("key.bias"))


def record(folder: Path) -> dict[str, Any]:
    """What a learned model says of itself."""
    return json.loads((folder / "learned.json").read_text())


def curve(folder: Path, *names: str) -> list[tuple[Any, ...]]:
    """The named values of each line of a training's curve."""
    return [tuple(line[name] for name in names) for line in record(folder)["curve"]]


def stopped_pretraining(home: Path, way: str) -> None:
    """Begin with pre-training, up to the step after a checkpoint."""

    class Watch:
        def start(self, *given) -> None: ...
        def finish(self, *given) -> None: ...
        def say(self, *given) -> None: ...
        def advance(self, label: str, done: int) -> None:
            self.done = getattr(self, "done", 0) + done
            if self.done == 3:
                raise training_together.StopHereError

    with pytest.raises(training_together.StopHereError):
        pretrained(home, home / "none", way, progress=Watch(), checkpoints=home / f"text-{way}")


@pytest.fixture(scope="module")
def home(one_thread, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trainings by one process, some of them stopped, and what three processes made of them."""
    home = tmp_path_factory.mktemp("together")
    small = replace(MASKED["roberta"], settings={**MASKED["roberta"].settings, "initializer_range": 0.1})
    build_models(home / "models", {"roberta": small})["roberta"].rename(home / "model")
    (home / "corpus.txt").write_text("\n\n".join(" ".join(SENTENCES[i : i + 3]) for i in range(6)))
    for way in WAYS:
        if way != "sharded":
            memorized(home / f"alone-{way}", way)
            pretrained(home, home / f"text-alone-{way}", way)
            stopped_pretraining(home, way)
        stopped(2, memorized, home / "none", "plain" if way == "sharded" else way, checkpoints=home / f"begun-{way}")
    done = torchrun(3, TESTS / "training_together.py", home)
    assert done.returncode == 0, done.stdout + done.stderr
    return home


@pytest.fixture(scope="module")
def found(home) -> dict[str, Any]:
    return json.loads((home / "found.json").read_text())


@pytest.mark.cluster
def test_three_processes_memorize_what_one_does(home):
    """Also where the last batch has one statement, where one process has less memory, and from one's checkpoint."""
    expected = curve(home / "alone-plain", "epoch", "acc@1")
    assert len(expected) == 4
    for how, way in itertools.product(("memorized", "went-on", "scarce"), ("plain", "sharded")):
        assert 0 < apart(home / f"{how}-{way}", home / "alone-plain") < 2e-5, (how, way)
        assert curve(home / f"{how}-{way}", "epoch", "acc@1") == expected, (how, way)


@pytest.mark.cluster
def test_in_parts_three_processes_memorize_the_very_same(home):
    assert 0 < apart(home / "alone-parts", home / "alone-plain") < 2e-5
    for how in ("memorized", "went-on"):
        assert apart(home / f"{how}-parts", home / "alone-parts") == 0, how
        folders = (home / f"{how}-parts", home / "alone-parts")
        assert len({record(folder)["fingerprint"] for folder in folders}) == 1, how
        assert len({tuple(curve(folder, "loss", "acc@1")) for folder in folders}) == 1, how


@pytest.mark.cluster
def test_what_was_trained_in_shards_goes_on_whole(home):
    checkpoint = torch.load(home / "begun-by-several" / CHECKPOINT)
    alone = torch.load(home / "begun-plain" / CHECKPOINT) if (home / "begun-plain" / CHECKPOINT).is_file() else None
    assert alone is None  # It was removed at the end.
    assert checkpoint["state"]["epoch"] == 2
    count = weights(home / "alone-plain")["weight"].shape
    assert checkpoint["modules"]["symbols"]["weight"].shape == count
    memorized(home / "whole", "plain", checkpoints=home / "begun-by-several")
    assert len(record(home / "whole")["curve"]) == 4 and 0 < apart(home / "whole", home / "alone-plain") < 2e-5


@pytest.mark.cluster
def test_parameters_are_counted_over_all_processes(home):
    folders = (home / name for name in ("memorized-sharded", "memorized-plain", "alone-plain"))
    assert len({record(folder)["parameters"] for folder in folders}) == 1


@pytest.mark.cluster
def test_a_head_in_shards_is_a_whole_one(found):
    """Losses and gradients to the last digits, ranks and ties exactly; also with fewer symbols than shards."""
    for case in ("head 40 False", "head 40 True", "head 2 True"):
        assert len(found[case]) == 3, case
        for one in found[case]:
            assert max(one[name] for name in ("of states", "of weights", "of biases", "top scores")) < 2e-6, case
            assert one["loss"] < 1e-4 and one["ranks"] and one["top"], case
        held = [one["symbols held"] for one in found[case]]
        assert sum(held) == int(case.split()[1]) and max(held) - min(held) <= 1, case


@pytest.mark.cluster
def test_rows_are_drawn_as_those_of_a_whole_table(found):
    assert found["drawn"] == [True] * 3


@pytest.mark.cluster
def test_another_model_is_refused(found):
    assert found["refused"][0].startswith(
        "the processes that train together have different values of the model: a in process 0, b in process 2"
    )
    assert all(found["refused"])


@pytest.mark.cluster
def test_three_processes_pretrain_what_one_does(home):
    """With dropout; in parts to the last bit."""
    for how, way in itertools.product(("pretrained", "pretrained-on"), ("plain", "parts")):
        difference = apart(home / f"{how}-{way}", home / f"text-alone-{way}")
        assert difference == 0 if way == "parts" else 0 < difference < 2e-5, (how, way, difference)
        records = [record(home / name) for name in (f"{how}-{way}", f"text-alone-{way}")]
        assert records[0]["tokens_seen"] == records[1]["tokens_seen"], (how, way)
        for mine, other in zip(records[0]["curve"], records[1]["curve"], strict=True):
            assert mine["extra"] == pytest.approx(other["extra"], rel=1e-4) and mine["step"] == other["step"]


def test_what_cannot_be_shared_is_refused(tmp_path):
    for given, words in (
        ({"processes": 3, "parts": 2}, "3 processes cannot share 2 parts of a batch; set learning.settings.parts to 3"),
        ({"shard_head": "yes", "parts": 2}, "leave out learning.settings.parts"),
        ({"shard_head": True, "head": "vocabulary"}, "learning.settings.head to separate"),
        ({"shard_head": "maybe"}, "shard_head must be one of yes, no, got 'maybe'"),
        ({"parts": 0}, "learning.settings.parts must be an integer ≥ 1, got 0"),
    ):
        with pytest.raises(InputError, match=words):
            make_settings(MemorizeSettings, given)
    with pytest.raises(InputError, match=r"learning\.settings\.processes must be an integer ≥ 1, got 0"):
        make_settings(pretraining.PretrainSettings, {"processes": 0})
    start = load_model(resolve_model(ModelSpec("random:1x32")))
    named = training_together.world(5, offices=5, symbols_in=True)
    with pytest.raises(
        InputError, match=r"these sentences contain symbols; name entities as text \(options.entities=text\)"
    ):
        memorize(start, *named, tmp_path / "m", settings={**MEMORIZE, "shard_head": "yes"})
    assert not list(tmp_path.iterdir()) and PRETRAIN["batch_size"] % 3  # Shares of several sizes.
