"""Calibration of probes: what they measure in small models whose knowledge is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merkhet.core.files import scratch_folder
from merkhet.core.progress import Progress
from merkhet.models.model_lookup import missing_models_extra

if TYPE_CHECKING:
    from merkhet.calibration._trained_models import CalibrationModels
    from merkhet.probes.probe_support import Probe


def calibrate(
    probe: str | Probe,
    *,
    kinds: Sequence[str] = (),
    trainings: int = 3,
    seed: int = 0,
    home: Path | None = None,
    progress: Progress | None = None,
    models: CalibrationModels | None = None,
) -> list[dict[str, Any]]:
    """Calibrate a probe and return its cards, one for each kind of model.

    Args:
        probe: a registered name, ``file.py:function``, or the function.
        kinds: kinds of models to try (masked, causal, encoder); by default all.
        trainings: number of models of each kind, each about other facts.
        seed: seed of worlds and trainings.
        home: folder that ``file.py`` is relative to.
        progress: receives the progress.
        models: calibration models that several calibrations share.

    Raises:
        MerkhetError: the probe can ask no kind of model, or torch is missing.
    """
    try:
        from merkhet.calibration.calibrate_probe import calibrate_probe
    except ImportError as error:
        if error.name in ("torch", "transformers"):
            raise missing_models_extra(error) from error
        raise
    return calibrate_probe(
        probe, kinds=kinds, trainings=trainings, seed=seed, home=home, progress=progress, models=models
    )


@contextmanager
def calibration_models(seed: int = 0, progress: Progress | None = None) -> Iterator[CalibrationModels]:
    """Yield models that several calibrations of one seed share; they are deleted when the block ends."""
    try:
        from merkhet.calibration._trained_models import CalibrationModels
    except ImportError as error:
        if error.name in ("torch", "transformers"):
            raise missing_models_extra(error) from error
        raise
    with scratch_folder("calibration") as folder:
        yield CalibrationModels(folder, seed=seed, progress=progress)
