"""What learning leaves behind: a folder with what was learned, and the record of how it was made."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import disk_full_error, file_digest, is_disk_full, write_json
from merkhet.core.progress import Progress
from merkhet.core.records import Question
from merkhet.core.version import __version__
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.models.protocol import Model

RECORD = "learned.json"
WEIGHTS = "model.safetensors"

TOGETHER = ("processes", "shard_head")
"""Settings that say how processes share the work, and do not decide what is learned."""

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class TrainingArtifact:
    """A model that has learned: its folder, the fingerprint it has when loaded from there, and its record."""

    folder: Path
    fingerprint: str
    record: Mapping[str, Any]


class Learner(Protocol):
    """What a learner is: a function that changes a model by questions and saves it in a folder."""

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
        """Learn from the training questions; the dev questions say when to stop."""


def make_settings(kind: type[Settings], given: Mapping[str, Any]) -> Settings:
    """Settings of a learner from a mapping; refuses an unknown name or a value of another type."""
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    given = dict(given)
    for name, value in given.items():
        if name not in known:
            raise InputError(f"there is no setting {name!r} of learning; {did_you_mean(name, known)}")
        usual = known[name].default
        if isinstance(usual, str) and isinstance(value, bool):  # YAML takes yes and no for truths.
            value = given[name] = "yes" if value else "no"
        fits = isinstance(value, type(usual)) or (isinstance(usual, float) and isinstance(value, int))
        if not fits or isinstance(value, bool):
            raise InputError(f"the setting {name} of learning is {value!r}, and should be like {usual!r}")
    return kind(**given)


def result_settings(settings: Any) -> dict[str, Any]:
    """Return the settings that affect what is learned; they identify a training."""
    return {name: value for name, value in asdict(settings).items() if name not in TOGETHER}


def process_settings(settings: Any) -> dict[str, Any]:
    """Return the settings that say how processes share the work."""
    return {name: value for name, value in asdict(settings).items() if name in TOGETHER}


def check_process_counts(processes: int, parts: int) -> None:
    """Refuse numbers of processes and of parts of a batch that make no sense, or do not fit each other."""
    for name, value in (("processes", processes), ("parts", parts)):
        if value < 1:
            raise InputError(f"the setting {name} of learning is {value}, and should be 1 or more")
    if parts > 1 and processes > parts:
        raise InputError(
            f"{processes} processes cannot share {parts} parts of a batch; set learning.settings.parts to {processes} "
            "or more from the beginning, or take fewer processes"
        )


def save_model_artifact(model: Any, kind: str, folder: Path, record: Mapping[str, Any]) -> TrainingArtifact:
    """Save a network with its tokenizer and its record, as a model that is read like any other."""

    def fill(unfinished: Path) -> str:
        model.model.save_pretrained(unfinished, max_shard_size="1000GB")
        model.tokenizer.save_pretrained(unfinished)
        return resolve_model(ModelSpec(str(unfinished), kind=kind)).fingerprint

    return save_artifact(folder, record, WEIGHTS, fill)


def save_artifact(
    folder: Path, record: Mapping[str, Any], weights: str, fill: Callable[[Path], str]
) -> TrainingArtifact:
    """Save what was learned with its record: the folder is there whole or not at all.

    ``fill`` writes into a folder it is given, among others the file of ``weights``, and returns the fingerprint of
    the model that has learned. A folder that an earlier learning left is replaced; one that holds anything else is
    refused.
    """
    refuse_other_files(folder)
    unfinished = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        fingerprint = fill(unfinished)
        made = {"fingerprint": fingerprint, "weights": file_digest(unfinished / weights), "versions": _versions()}
        write_json(unfinished / RECORD, {**record, **made})
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(unfinished, folder)
    except Exception as error:
        raise (disk_full_error(folder) if is_disk_full(error) else error) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return TrainingArtifact(folder, fingerprint, {**record, **made})


def read_artifact(file: Path) -> TrainingArtifact:
    """What lies beside a learned.json; refuses a folder without a whole one."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        return TrainingArtifact(file.parent, record["fingerprint"], record)
    except FileNotFoundError as error:
        raise InputError(f"there is no {file}: nothing was learned there") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is not a whole record of learning. Remove its folder, and learn anew.") from error


def refuse_other_files(folder: Path) -> None:
    """Refuse to save into a folder that no learning has made."""
    if folder.exists() and not (folder / RECORD).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} holds other files. Choose a new or empty folder for what is learned.")


def _versions() -> dict[str, str]:
    import torch
    import transformers

    return {"merkhet": __version__, "torch": str(torch.__version__), "transformers": str(transformers.__version__)}
