"""What going on with pre-training can be told, checked without torch, before anything is loaded."""

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
_ABOVE_ZERO = (
    *("steps", "batch_size", "max_length", "learning_rate", "masked", "checkpoint_every", "largest_gradient"),
    "log_every",
)


@dataclass(frozen=True)
class PretrainSettings:
    """How a model goes on with its pre-training; the defaults are BERT's, but for far fewer steps.

    ``objective`` is masked tokens alone (mlm), with the next sentence (nsp), with the order of sentences (sop), or with
    masked tokens told from their neighbours (sbo). ``masked`` is the share of masked tokens. ``precision`` bfloat16
    matters on a GPU alone, and weights are float32 anyway. A checkpoint is written every ``checkpoint_every`` steps, a
    line of the curve every ``log_every``. ``processes`` share each batch. A batch that is always learned in so many
    ``parts`` gives the very same bits by any number of processes up to that.
    """

    objective: str = "mlm"
    steps: int = 1000
    batch_size: int = 32
    max_length: int = 128
    learning_rate: float = 5e-5
    warmup: float = 0.1
    weight_decay: float = 0.01
    masked: float = 0.15
    checkpoint_every: int = 200
    precision: str = "float32"
    largest_gradient: float = 1.0
    log_every: int = 50
    processes: int = 1
    parts: int = 1


def make_pretrain_settings(given: Mapping[str, Any]) -> PretrainSettings:
    """Settings from a mapping; refuses what is unknown or makes no sense, in one line."""
    return checked(make_settings(PretrainSettings, given))


def checked(settings: PretrainSettings) -> PretrainSettings:
    """The same settings; refuses those that make no sense."""
    if settings.objective not in OBJECTIVES:
        hint = did_you_mean(settings.objective, OBJECTIVES)
        raise InputError(f"there is no objective {settings.objective!r} of pre-training; {hint}")
    if settings.precision not in PRECISIONS:
        raise InputError(
            f"the setting precision of learning is {settings.precision!r}, and should be one of float32, bfloat16"
        )
    for name in _ABOVE_ZERO:
        if not getattr(settings, name) > 0:
            raise InputError(f"the setting {name} of learning is {getattr(settings, name)}, and should be above 0")
    if not settings.masked <= 1:
        raise InputError(f"the setting masked of learning is a share up to 1, and this is {settings.masked}")
    if not 0 <= settings.warmup <= 1 or settings.weight_decay < 0:
        raise InputError("warmup is a share between 0 and 1, and weight_decay is not below 0; mend the settings")
    check_process_counts(settings.processes, settings.parts)
    return settings


def resolve_pretraining(given: Mapping[str, Any], home: Path) -> tuple[Path, tuple[PretrainSettings, ...]]:
    """The corpus that a study names, and the settings of each of its objectives (all four, unless it names some).

    ``home`` is the folder that the corpus is relative to. Refuses an unknown key, objective or value, and a corpus
    that is not there.
    """
    known = [*(one.name for one in fields(PretrainSettings) if one.name != "objective"), "corpus", "objectives"]
    for key in given:
        if key not in known:
            raise InputError(f"there is no key {key!r} in learning.settings; {did_you_mean(key, known)}")
    corpus = given.get("corpus")
    if not isinstance(corpus, str) or not corpus:
        raise InputError("learning.settings.corpus names a text file or folder, and it is missing")
    wanted = given.get("objectives", list(OBJECTIVES))
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(wanted, list) or not wanted or len(set(map(str, wanted))) < len(wanted):
        raise InputError(f"learning.settings.objectives is {wanted!r}, and should be some of {', '.join(OBJECTIVES)}")
    rest = {key: value for key, value in given.items() if key not in ("corpus", "objectives")}
    settings = tuple(make_pretrain_settings({**rest, "objective": str(objective)}) for objective in wanted)
    place = home / corpus
    corpus_files(place)
    return place, settings
