"""Calibration of probes on small models with known knowledge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merkhet.core.files import scratch_folder
from merkhet.core.progress import Progress, SilentProgress
from merkhet.models.model_lookup import require_models_extra

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
    """Calibrate a probe and return its calibration cards, one for each kind of model that the probe can ask.

    Args:
        probe: A registered name, ``file.py:function``, or the function.
        kinds: Kinds of models to try (masked, causal, encoder); by default all kinds.
        trainings: Number of models to train of each kind, each on other facts.
        seed: Seed of the training texts and the trainings.
        home: Folder that ``file.py`` is relative to.
        models: Models shared with other calibrations; see :func:`calibration_models`.

    Raises:
        MerkhetError: The probe cannot ask any kind of model, or torch is missing.
    """
    with require_models_extra():
        from merkhet.calibration.calibrate_probe import calibrate_probe
    return calibrate_probe(probe, kinds, trainings, seed, home, progress or SilentProgress(), models)


@contextmanager
def calibration_models(seed: int = 0, progress: Progress | None = None) -> Iterator[CalibrationModels]:
    """Yield models that several calibrations with the same seed share; delete them when the block ends."""
    with require_models_extra():
        from merkhet.calibration._trained_models import CalibrationModels
    with scratch_folder("calibration") as folder:
        yield CalibrationModels(folder, seed=seed, progress=progress or SilentProgress())
