"""Calibration of probes on small models whose knowledge is known."""

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
    """Calibrate a probe and return its cards, one for each kind of model that it can ask.

    Args:
        probe: A registered name, ``file.py:function``, or the function.
        kinds: The kinds of models to try (masked, causal, encoder); by default all.
        trainings: The number of models of each kind, each about other facts.
        seed: The seed of worlds and trainings.
        home: The folder that ``file.py`` is relative to.
        models: Calibration models that several calibrations share.

    Raises:
        MerkhetError: The probe can ask no kind of model, or torch is missing.
    """
    with require_models_extra():
        from merkhet.calibration.calibrate_probe import calibrate_probe
    return calibrate_probe(probe, kinds, trainings, seed, home, progress or SilentProgress(), models)


@contextmanager
def calibration_models(seed: int = 0, progress: Progress | None = None) -> Iterator[CalibrationModels]:
    """Yield models that several calibrations of one seed share; they are deleted when the block ends."""
    with require_models_extra():
        from merkhet.calibration._trained_models import CalibrationModels
    with scratch_folder("calibration") as folder:
        yield CalibrationModels(folder, seed=seed, progress=progress or SilentProgress())
