"""Settings of further pre-training, in a module without torch so that they can be checked before models load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from merkhet.core.errors import InputError
from merkhet.core.settings import (
    Bounds,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Share,
    check_name,
    check_value,
    make_settings,
)
from merkhet.training.artifact import LearnerSettings, check_process_counts
from merkhet.training.text_corpus import corpus_files

Objective = Literal["mlm", "mlm+nsp", "mlm+sop", "mlm+sbo"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


@dataclass(frozen=True)
class PretrainSettings(LearnerSettings):
    """Settings of further pre-training; the defaults are those of BERT, with far fewer steps."""

    objective: Objective = "mlm"
    """Training objective: masked language modelling (``mlm``), alone or with a second task.

    The second task is next-sentence prediction (``mlm+nsp``), sentence-order prediction (``mlm+sop``) or span-boundary
    prediction (``mlm+sbo``).
    """
    steps: PositiveInt = 1000
    batch_size: PositiveInt = 32
    max_length: PositiveInt = 128
    """Maximum number of tokens of an example, with special tokens."""
    learning_rate: PositiveFloat = 5e-5
    warmup: Share = 0.1
    """Share of all steps during which the learning rate rises."""
    weight_decay: NonNegativeFloat = 0.01
    masked: Annotated[float, Bounds(gt=0, le=1)] = 0.15
    """Share of tokens that are prediction targets, most of which are masked."""
    checkpoint_every: PositiveInt = 200
    """Number of steps between checkpoints."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of the forward pass; ``bfloat16`` takes effect only on a GPU. Weights are always float32."""
    largest_gradient: PositiveFloat = 1.0
    """Maximum gradient norm."""
    log_every: PositiveInt = 50
    """Number of steps between points of the loss curve."""
    processes: PositiveInt = 1
    """Number of processes that share each batch."""
    parts: PositiveInt = 1
    """Number of parts into which each batch is cut.

    With ``parts`` > 1, any number of processes up to ``parts`` gives bit-identical weights.
    """

    def __post_init__(self) -> None:
        """Raise an ``InputError`` for invalid values."""
        super().__post_init__()
        check_process_counts(self.processes, self.parts)


def resolve_pretraining(options: Mapping[str, Any], home: Path) -> tuple[Path, tuple[PretrainSettings, ...]]:
    """Return the corpus of a study, and the settings of each of its objectives (by default all four).

    Args:
        options: ``learning.settings`` of the study.
        home: folder to which the path of the corpus is relative.

    Raises:
        InputError: a key, objective or value is invalid, or the corpus is missing.
    """
    known = [
        *(setting.name for setting in fields(PretrainSettings) if setting.name != "objective"),
        "corpus",
        "objectives",
    ]
    for key in options:
        check_name(PretrainSettings.place, key, known)
    corpus = options.get("corpus")
    if not isinstance(corpus, str) or not corpus:
        raise InputError("learning.settings.corpus is missing; name a text file or folder")
    objectives = options.get("objectives", list(OBJECTIVES))
    objectives = [objectives] if isinstance(objectives, str) else objectives
    check_value("learning.settings.objectives", list[Objective], objectives)
    if not objectives or len(set(objectives)) < len(objectives):
        raise InputError(f"learning.settings.objectives must name each objective once, got {objectives!r}")
    rest = {key: value for key, value in options.items() if key not in ("corpus", "objectives")}
    settings = tuple(make_settings(PretrainSettings, {**rest, "objective": objective}) for objective in objectives)
    path = home / corpus
    corpus_files(path)
    return path, settings
