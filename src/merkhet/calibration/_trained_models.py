"""Calibration models, which are trained once and shared by all probes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from merkhet.calibration._fact_world import make_fact_world
from merkhet.calibration._sense_world import make_sense_world
from merkhet.calibration._word_overlap_control import BagOfWords
from merkhet.calibration._world import World
from merkhet.core.ids import derived_seed
from merkhet.core.progress import Progress
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec
from merkhet.models.protocol import Model
from merkhet.models.word_overlap import WordOverlapBaseline
from merkhet.training.calibration_models import ContentTraining, save_encoder, save_untrained, train_content

FACTS, SENSES = "facts", "senses"
WORLDS: dict[str, Callable[[int], World]] = {FACTS: make_fact_world, SENSES: make_sense_world}
KINDS = {FACTS: ("masked", "causal"), SENSES: ("masked", "causal", "encoder")}
"""Kinds of models for each invented world. An encoder is a masked model without its head."""


@dataclass(frozen=True)
class CalibrationModel:
    """A model trained on the text of an invented world, with its control models."""

    world: World
    training: ContentTraining
    trained: Model
    untrained: Model
    """Control model: the same network with random weights."""
    bag: Model
    """Control model: a bag of words."""


class CalibrationModels:
    """Calibration models of one seed, stored in one folder; each model is trained once, on first use."""

    def __init__(self, folder: Path, *, seed: int, progress: Progress) -> None:
        self.folder, self.seed, self.progress = folder, seed, progress
        self._worlds: dict[tuple[str, int], World] = {}
        self._trainings: dict[tuple[str, str, int], ContentTraining] = {}

    def world(self, name: str, number: int) -> World:
        """Return the invented world (``name``) of the training with this number."""
        if (name, number) not in self._worlds:
            self._worlds[name, number] = WORLDS[name](self._seed(name, number))
        return self._worlds[name, number]

    def get(self, name: str, kind: str, number: int, trainings: int) -> CalibrationModel:
        """Return the trained model with this number, with its controls; ``trainings`` is the total for messages."""
        world = self.world(name, number)
        network_kind = "masked" if kind == "encoder" else kind
        if (name, network_kind, number) not in self._trainings:
            self._trainings[name, network_kind, number] = train_content(
                world.sentences,
                network_kind,
                self.folder / f"{name}-{network_kind}-{number}",
                introductions=world.introductions,
                settings=world.settings[network_kind],
                seed=self._seed(name, number),
                progress=self.progress,
                label=f"{network_kind} model of {name}, training {number + 1} of {trainings}",
            )
        training = self._trainings[name, network_kind, number]
        trained, untrained = training.trained, training.untrained
        if kind == "encoder":
            trained, untrained = (
                save_encoder(path, path.with_name(f"{path.name}-body")) for path in (trained, untrained)
            )
        texts = [sentence.text for sentence in world.sentences]
        bag: Model = WordOverlapBaseline() if name == SENSES else BagOfWords(texts)
        return CalibrationModel(world, training, _load(trained), _load(untrained), bag)

    def untrained(self, name: str, kind: str) -> Model:
        """Return the untrained model of the first training, to check whether a probe can ask such a model."""
        world, network_kind = self.world(name, 0), "masked" if kind == "encoder" else kind
        folder = self.folder / f"{name}-{network_kind}-look"
        save_untrained(
            world.sentences, network_kind, folder, introductions=world.introductions, seed=self._seed(name, 0)
        )
        return _load(save_encoder(folder, folder.with_name(f"{folder.name}-body")) if kind == "encoder" else folder)

    def _seed(self, name: str, number: int) -> int:
        return derived_seed(self.seed, "calibration", name, number)


def _load(folder: Path) -> Model:
    """Load a model with the ordinary loader on the CPU, where results are deterministic."""
    return load_model(ModelSpec(str(folder), device="cpu"))
