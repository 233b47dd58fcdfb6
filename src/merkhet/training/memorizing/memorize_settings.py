"""What memorizing can be told, checked without torch, before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.training.artifact import check_process_counts, make_settings

HEADS = ("separate", "vocabulary")
SCHEDULES = ("cosine", "constant")
PRECISIONS = ("auto", "float32", "bfloat16")
COMPILING = ("auto", "yes", "no")
_ABOVE_ZERO = ("epochs", "batch_size", "learning_rate", "evaluate_every", "largest_gradient", "copies", "vocabulary")


@dataclass(frozen=True)
class MemorizeSettings:
    """How a model is trained to store facts; there is no dropout, for everything is to be learned by heart.

    ``head``: symbols have a head of their own (separate), or are further entries of the model's vocabulary. The
    learning rate rises over the share ``warmup`` of all steps and then falls along a cosine, or stays. Every
    ``evaluate_every`` epochs all that was learned is asked; training ends when the first answer is right in a share
    ``until`` of it (0: never). ``dynamic`` is the percentage of statements with a masked start or end in which the
    other time is left out, drawn anew for each of so many ``copies``, which take turns. ``precision`` auto is bfloat16
    on CUDA and float32 elsewhere; ``compile`` auto compiles there where much is to be learned. ``checkpoints``
    recomputes layers in the backward pass, for less memory. A checkpoint is written after an epoch if so many seconds
    have passed since the last. A model of random weights and a made tokenizer has so many entries in its
    ``vocabulary``. ``processes`` share each batch; with ``shard_head`` each holds only its rows of the table of
    symbols. A batch that is always learned in so many ``parts`` gives the very same bits by up to so many processes.
    """

    head: str = "separate"
    epochs: int = 200
    batch_size: int = 256
    learning_rate: float = 1e-3
    schedule: str = "cosine"
    warmup: float = 0.05
    weight_decay: float = 0.0
    largest_gradient: float = 1.0
    until: float = 0.99
    evaluate_every: int = 10
    dynamic: int = 0
    copies: int = 10
    precision: str = "auto"
    compile: str = "auto"
    checkpoints: str = "no"
    checkpoint_seconds: float = 120.0
    vocabulary: int = 8000
    processes: int = 1
    shard_head: str = "no"
    parts: int = 1


def make_memorize_settings(given: Mapping[str, Any]) -> MemorizeSettings:
    """Settings from a mapping; refuses what is unknown or makes no sense, in one line."""
    return checked(make_settings(MemorizeSettings, given))


def checked(settings: MemorizeSettings) -> MemorizeSettings:
    """The same settings; refuses those that make no sense."""
    allowed = {
        "head": HEADS,
        "schedule": SCHEDULES,
        "precision": PRECISIONS,
        "compile": COMPILING,
        "checkpoints": ("yes", "no"),
        "shard_head": ("yes", "no"),
    }
    for name, values in allowed.items():
        own = getattr(settings, name)
        if own not in values:
            raise InputError(f"the setting {name} of learning is {own!r}; {did_you_mean(own, values)}")
    for name in _ABOVE_ZERO:
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
