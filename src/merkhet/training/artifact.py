"""Training artifacts: folders with trained weights and a record of the training."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from merkhet.core.errors import InputError
from merkhet.core.files import disk_full_error, file_digest, is_disk_full, write_json
from merkhet.core.progress import Progress
from merkhet.core.records import Question
from merkhet.core.settings import PositiveInt, Settings, check_value
from merkhet.core.version import __version__
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.models.protocol import Model

if TYPE_CHECKING:
    from merkhet.training._trainer import CheckpointSchedule

RECORD = "learned.json"
WEIGHTS = "model.safetensors"

PROCESS_SETTINGS = ("processes", "shard_head")
"""Settings that control how processes share the work; they do not affect the weights."""


@dataclass(frozen=True)
class TrainingArtifact:
    """A folder with a trained model or trained soft prompts."""

    folder: Path
    fingerprint: str
    """Fingerprint of the model when it is loaded from the folder."""
    record: Mapping[str, Any]
    """Content of learned.json: model, data, settings and course of the training."""


class Learner(Protocol):
    """A function that trains a model on questions and saves the training artifact in a folder.

    A learner may also have a parameter ``checkpoints``, the folder of the checkpoint from which a killed training
    resumes.
    """

    def __call__(
        self,
        model: Model,
        training: Sequence[Question],
        folder: Path,
        *,
        dev: Sequence[Question] = (),
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> TrainingArtifact:
        """Train on the training questions, and use the dev questions to select the best epoch."""


class LearnerSettings(Settings):
    """Base class of the settings of all learners."""

    place = "learning.settings."


def result_settings(settings: Any) -> dict[str, Any]:
    """Return the settings that affect the trained weights and thus identify a training."""
    return {name: value for name, value in asdict(settings).items() if name not in PROCESS_SETTINGS}


def process_settings(settings: Any) -> dict[str, Any]:
    """Return the settings that control how processes share the work."""
    return {name: value for name, value in asdict(settings).items() if name in PROCESS_SETTINGS}


def check_process_counts(processes: int, parts: int) -> None:
    """Raise an error if ``processes`` or ``parts`` is invalid, or if there are more processes than parts of a batch.

    ``parts`` = 1 allows any number of processes.
    """
    check_value("learning.settings.processes", PositiveInt, processes)
    check_value("learning.settings.parts", PositiveInt, parts)
    if parts > 1 and processes > parts:
        raise InputError(
            f"{processes} processes cannot share {parts} parts of a batch; set learning.settings.parts to {processes} "
            "or more from the start, or use fewer processes"
        )


def save_model_artifact(
    model: Any, folder: Path, record: Mapping[str, Any], schedule: CheckpointSchedule | None = None
) -> TrainingArtifact:
    """Save a network, its tokenizer and its record in the Hugging Face layout, so that it loads like any model."""

    def write_files(unfinished: Path) -> str:
        model.model.save_pretrained(unfinished, max_shard_size="1000GB")
        model.tokenizer.save_pretrained(unfinished)
        return resolve_model(ModelSpec(str(unfinished), kind=model.kind)).fingerprint

    return save_artifact(folder, record, WEIGHTS, write_files, schedule)


def save_artifact(
    folder: Path,
    record: Mapping[str, Any],
    weights: str,
    write_files: Callable[[Path], str],
    schedule: CheckpointSchedule | None = None,
) -> TrainingArtifact:
    """Save an artifact atomically, in place of an earlier artifact; then remove the checkpoint of the training.

    ``write_files`` is called with a folder. It writes all files there, including the file named ``weights``, and
    returns the fingerprint of the trained model.

    Raises:
        InputError: the folder holds other files, or the disk is full.
    """
    check_artifact_folder(folder)
    unfinished = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        fingerprint = write_files(unfinished)
        provenance = {"fingerprint": fingerprint, "weights": file_digest(unfinished / weights), "versions": _versions()}
        write_json(unfinished / RECORD, {**record, **provenance})
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(unfinished, folder)
    except Exception as error:
        raise (disk_full_error(folder) if is_disk_full(error) else error) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    if schedule:
        schedule.remove()
    return TrainingArtifact(folder, fingerprint, {**record, **provenance})


def read_artifact(file: Path) -> TrainingArtifact:
    """Return the artifact whose record is ``file``, a learned.json.

    Raises:
        InputError: the file is missing or damaged.
    """
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        return TrainingArtifact(file.parent, record["fingerprint"], record)
    except FileNotFoundError as error:
        raise InputError(f"there is no {file}: nothing was learned there. Train first.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is damaged or incomplete. Remove its folder and train again.") from error


def check_artifact_folder(folder: Path) -> None:
    """Raise an error if ``folder`` is a file, or contains files but no training artifact."""
    if folder.exists() and not (folder / RECORD).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} holds other files. Choose a new or empty folder for the training artifact.")


def _versions() -> dict[str, str]:
    import torch
    import transformers

    return {"merkhet": __version__, "torch": str(torch.__version__), "transformers": str(transformers.__version__)}
