"""Models with known content, trained once for all probes that ask them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from merkhet.calibration._fact_world import make_facts
from merkhet.calibration._sense_world import make_senses
from merkhet.calibration._word_overlap_control import BagOfWords
from merkhet.calibration._world import World
from merkhet.core.ids import derived_seed
from merkhet.core.progress import Progress, SilentProgress
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec
from merkhet.models.protocol import Model
from merkhet.models.word_overlap import WordOverlapBaseline
from merkhet.training.calibration_models import ContentTraining, save_encoder, save_untrained, train_content

FACTS, SENSES = "facts", "senses"
WORLDS: dict[str, Callable[[int], World]] = {FACTS: make_facts, SENSES: make_senses}
KINDS = {FACTS: ("masked", "causal"), SENSES: ("masked", "causal", "encoder")}
"""The kinds of models that are made for each world. An encoder is a masked model without its head."""


@dataclass(frozen=True)
class Known:
    """A world, a model that has learned its text, and the two controls: the same untrained, and a bag of words."""

    world: World
    content: ContentTraining
    trained: Model
    untrained: Model
    bag: Model


class CalibrationModels:
    """Trains what is asked for, once; all that it makes belongs to its seed and lies in its folder."""

    def __init__(self, folder: Path, *, seed: int = 0, progress: Progress | None = None) -> None:
        self.folder, self.seed = folder, seed
        self.progress = progress or SilentProgress()
        self._worlds: dict[tuple[str, int], World] = {}
        self._contents: dict[tuple[str, str, int], ContentTraining] = {}

    def world(self, name: str, number: int) -> World:
        """The world that training number so and so is about."""
        if (name, number) not in self._worlds:
            self._worlds[name, number] = WORLDS[name](self._seed(name, number))
        return self._worlds[name, number]

    def get(self, name: str, kind: str, number: int, of: int) -> Known:
        """A model that has learned the text of a world, with its controls; ``of`` is how many there will be."""
        world = self.world(name, number)
        learner = "masked" if kind == "encoder" else kind
        if (name, learner, number) not in self._contents:
            self._contents[name, learner, number] = train_content(
                world.sentences,
                learner,
                self.folder / f"{name}-{learner}-{number}",
                introductions=world.introductions,
                settings=world.settings[learner],
                seed=self._seed(name, number),
                progress=self.progress,
                label=f"{learner} model of {name}, training {number + 1} of {of}",
            )
        content = self._contents[name, learner, number]
        trained, untrained = content.trained, content.untrained
        if kind == "encoder":
            trained, untrained = (save_encoder(one, one.with_name(f"{one.name}-body")) for one in (trained, untrained))
        texts = [one.text for one in world.sentences]
        bag: Model = WordOverlapBaseline() if name == SENSES else BagOfWords(texts)
        return Known(world, content, _load(trained), _load(untrained), bag)

    def untrained(self, name: str, kind: str) -> Model:
        """The model that the first training begins with, for a look at whether it can be asked at all."""
        world, learner = self.world(name, 0), "masked" if kind == "encoder" else kind
        folder = self.folder / f"{name}-{learner}-look"
        save_untrained(world.sentences, learner, folder, introductions=world.introductions, seed=self._seed(name, 0))
        return _load(save_encoder(folder, folder.with_name(f"{folder.name}-body")) if kind == "encoder" else folder)

    def _seed(self, name: str, number: int) -> int:
        return derived_seed(self.seed, "calibration", name, number)


def _load(folder: Path) -> Model:
    """By the ordinary path, on the CPU, where the same model says the same every time."""
    return load_model(ModelSpec(str(folder), device="cpu"))


@contextmanager
def single_thread() -> Iterator[None]:
    """Networks as small as these go no faster on several threads, and on one they are the same every time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
