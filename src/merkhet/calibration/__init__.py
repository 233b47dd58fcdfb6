"""Whether a probe can be trusted: what it finds in small models of which it is known what they know."""

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
    """The calibration cards of a probe (its name, ``file.py:function`` or the function), one for each kind of model.

    ``kinds`` are those to try (masked, causal, encoder), by default all. So many ``trainings`` of each are made, about
    other facts each; ``models`` are those that several calibrations share. Refuses a probe that no kind of model can be
    asked by, and a machine without torch.
    """
    try:
        from merkhet.calibration.calibrate_probe import measure
    except ImportError as error:
        if error.name in ("torch", "transformers"):
            raise missing_models_extra(error) from error
        raise
    return measure(probe, kinds=kinds, trainings=trainings, seed=seed, home=home, progress=progress, models=models)


@contextmanager
def calibration_models(seed: int = 0, progress: Progress | None = None) -> Iterator[CalibrationModels]:
    """Models with known content for several calibrations of one seed; they are gone when the block ends."""
    try:
        from merkhet.calibration._trained_models import CalibrationModels
    except ImportError as error:
        if error.name in ("torch", "transformers"):
            raise missing_models_extra(error) from error
        raise
    with scratch_folder("calibration") as folder:
        yield CalibrationModels(folder, seed=seed, progress=progress)
