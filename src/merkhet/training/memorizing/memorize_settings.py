"""Settings of memorizing, checked without torch before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.training.artifact import check_process_counts, make_settings

HEADS = ("separate", "vocabulary")
SCHEDULES = ("cosine", "constant")
PRECISIONS = ("auto", "float32", "bfloat16")
COMPILE_MODES = ("auto", "yes", "no")
_POSITIVE = ("epochs", "batch_size", "learning_rate", "evaluate_every", "largest_gradient", "copies", "vocabulary")


@dataclass(frozen=True)
class MemorizeSettings:
    """How a model is trained to store facts. There is no dropout: everything is to be memorized."""

    head: str = "separate"
    """``separate``: symbols have a head of their own; ``vocabulary``: they extend the model's vocabulary."""
    epochs: int = 200
    """Maximum number of epochs."""
    batch_size: int = 256
    learning_rate: float = 1e-3
    schedule: str = "cosine"
    """Learning rate after the warmup: ``cosine`` decay or ``constant``."""
    warmup: float = 0.05
    """Share of all steps in which the learning rate rises."""
    weight_decay: float = 0.0
    largest_gradient: float = 1.0
    """Maximum gradient norm."""
    until: float = 0.99
    """Early stopping: training ends at this accuracy; 0 trains all epochs."""
    evaluate_every: int = 10
    """Number of epochs between evaluations of all statements."""
    dynamic: int = 0
    """Percentage of statements with a masked start or end in which the other time is left out."""
    copies: int = 10
    """Number of draws of these statements, which take turns."""
    precision: str = "auto"
    """``auto`` is bfloat16 on CUDA and float32 elsewhere."""
    compile: str = "auto"
    """``auto`` compiles on CUDA if the training is long enough."""
    checkpoints: str = "no"
    """Gradient checkpointing: recompute layers in the backward pass, for less memory."""
    checkpoint_seconds: float = 120.0
    """Minimum time between training checkpoints, which are written after an epoch."""
    vocabulary: int = 8000
    """Vocabulary size of a tokenizer that is trained for a model of random weights."""
    processes: int = 1
    """Number of processes that share each batch."""
    shard_head: str = "no"
    """``yes``: each process holds only its rows of the table of symbols."""
    parts: int = 1
    """Number of parts of each batch; any number of processes up to this gives the same bits."""


def make_memorize_settings(options: Mapping[str, Any]) -> MemorizeSettings:
    """Make settings from a mapping; refuse unknown names and invalid values."""
    return check_memorize_settings(make_settings(MemorizeSettings, options))


def check_memorize_settings(settings: MemorizeSettings) -> MemorizeSettings:
    """Return the settings; refuse invalid ones."""
    allowed = {
        "head": HEADS,
        "schedule": SCHEDULES,
        "precision": PRECISIONS,
        "compile": COMPILE_MODES,
        "checkpoints": ("yes", "no"),
        "shard_head": ("yes", "no"),
    }
    for name, values in allowed.items():
        value = getattr(settings, name)
        if value not in values:
            raise InputError(f"the setting {name} of learning is {value!r}; {did_you_mean(value, values)}")
    for name in _POSITIVE:
        if not getattr(settings, name) > 0:
            raise InputError(f"the setting {name} of learning is {getattr(settings, name)}, and should be above 0")
    if not 0 <= settings.dynamic <= 100:
        raise InputError(f"the setting dynamic of learning is a percentage, and this is {settings.dynamic}")
    if not 0 <= settings.until <= 1:
        raise InputError(f"the setting until of learning is a share between 0 and 1, and this is {settings.until}")
    if not 0 <= settings.warmup <= 1 or settings.weight_decay < 0 or settings.checkpoint_seconds < 0:
        raise InputError(
            "warmup is a share between 0 and 1, weight_decay and checkpoint_seconds are not below 0; mend the settings"
        )
    if settings.vocabulary < 300:
        raise InputError(
            f"the setting vocabulary of learning is {settings.vocabulary}; bytes alone are 256 entries, so give 300 "
            "or more"
        )
    if settings.shard_head == "yes" and settings.head != "separate":
        raise InputError("shard_head splits the table of a head of its own; set learning.settings.head to separate")
    if settings.shard_head == "yes" and settings.parts > 1:
        raise InputError(
            "with shard_head sums are taken over processes, and the last digits hang on their number; leave out parts, "
            "or shard_head"
        )
    check_process_counts(settings.processes, settings.parts)
    return settings
