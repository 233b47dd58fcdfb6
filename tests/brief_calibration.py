"""Worlds of a calibration whose models are trained for one epoch: for probes that do not depend on what was learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from merkhet.calibration._trained_models import WORLDS
from merkhet.calibration._world import World


def brief_worlds() -> dict[str, Callable[[int], World]]:
    """Return the makers of worlds of ``_trained_models.WORLDS``, with one epoch of training each."""

    def made_briefly(make: Callable[[int], World]) -> Callable[[int], World]:
        def make_brief(seed: int) -> World:
            world = make(seed)
            settings = {kind: replace(setting, epochs=1) for kind, setting in world.settings.items()}
            return replace(world, settings=settings)

        return make_brief

    return {name: made_briefly(make) for name, make in WORLDS.items()}
