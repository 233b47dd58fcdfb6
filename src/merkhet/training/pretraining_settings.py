"""Settings of further pre-training, checked without torch before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.training.artifact import check_process_counts, make_settings
from merkhet.training.text_corpus import corpus_files

OBJECTIVES = ("mlm", "mlm+nsp", "mlm+sop", "mlm+sbo")
PRECISIONS = ("float32", "bfloat16")
_POSITIVE = (
    *("steps", "batch_size", "max_length", "learning_rate", "masked", "checkpoint_every", "largest_gradient"),
    "log_every",
)


@dataclass(frozen=True)
class PretrainSettings:
    """How a model is pre-trained further; the defaults are BERT's, with far fewer steps."""

    objective: str = "mlm"
    """``mlm`` (masked tokens), with next sentences (``mlm+nsp``), sentence order (``mlm+sop``) or span boundaries
    (``mlm+sbo``)."""
    steps: int = 1000
    batch_size: int = 32
    max_length: int = 128
    """Maximum number of tokens of an example."""
    learning_rate: float = 5e-5
    warmup: float = 0.1
    """Share of all steps in which the learning rate rises."""
    weight_decay: float = 0.01
    masked: float = 0.15
    """Share of masked tokens."""
    checkpoint_every: int = 200
    """Number of steps between checkpoints."""
    precision: str = "float32"
    """``bfloat16`` takes effect on a GPU alone; weights are always float32."""
    largest_gradient: float = 1.0
    """Maximum gradient norm."""
    log_every: int = 50
    """Number of steps between points of the loss curve."""
    processes: int = 1
    """Number of processes that share each batch."""
    parts: int = 1
    """Number of parts of each batch; any number of processes up to this gives the same bits."""


def make_pretrain_settings(options: Mapping[str, Any]) -> PretrainSettings:
    """Make settings from a mapping; refuse unknown names and invalid values."""
    return check_pretrain_settings(make_settings(PretrainSettings, options))


def check_pretrain_settings(settings: PretrainSettings) -> PretrainSettings:
    """Return the settings; refuse invalid ones."""
    if settings.objective not in OBJECTIVES:
        hint = did_you_mean(settings.objective, OBJECTIVES)
        raise InputError(f"there is no objective {settings.objective!r} of pre-training; {hint}")
    if settings.precision not in PRECISIONS:
        raise InputError(
            f"the setting precision of learning is {settings.precision!r}, and should be one of float32, bfloat16"
        )
    for name in _POSITIVE:
        if not getattr(settings, name) > 0:
            raise InputError(f"the setting {name} of learning is {getattr(settings, name)}, and should be above 0")
    if not settings.masked <= 1:
        raise InputError(f"the setting masked of learning is a share up to 1, and this is {settings.masked}")
    if not 0 <= settings.warmup <= 1 or settings.weight_decay < 0:
        raise InputError("warmup is a share between 0 and 1, and weight_decay is not below 0; mend the settings")
    check_process_counts(settings.processes, settings.parts)
    return settings


def resolve_pretraining(options: Mapping[str, Any], home: Path) -> tuple[Path, tuple[PretrainSettings, ...]]:
    """Return the corpus that a study names, and the settings of each of its objectives (by default all four).

    Args:
        options: the study's ``learning.settings``.
        home: folder that the corpus is relative to.

    Raises:
        InputError: a key, objective or value is invalid, or the corpus is missing.
    """
    known = [
        *(setting.name for setting in fields(PretrainSettings) if setting.name != "objective"),
        "corpus",
        "objectives",
    ]
    for key in options:
        if key not in known:
            raise InputError(f"there is no key {key!r} in learning.settings; {did_you_mean(key, known)}")
    corpus = options.get("corpus")
    if not isinstance(corpus, str) or not corpus:
        raise InputError("learning.settings.corpus is missing; name a text file or folder")
    objectives = options.get("objectives", list(OBJECTIVES))
    objectives = [objectives] if isinstance(objectives, str) else objectives
    if not isinstance(objectives, list) or not objectives or len(set(map(str, objectives))) < len(objectives):
        raise InputError(
            f"learning.settings.objectives is {objectives!r}, and should be some of {', '.join(OBJECTIVES)}"
        )
    rest = {key: value for key, value in options.items() if key not in ("corpus", "objectives")}
    settings = tuple(make_pretrain_settings({**rest, "objective": str(objective)}) for objective in objectives)
    path = home / corpus
    corpus_files(path)
    return path, settings
