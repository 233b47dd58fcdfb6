"""Settings of memorizing, checked without torch before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from merkhet.core.errors import InputError
from merkhet.core.settings import Bounds, NonNegativeFloat, PositiveFloat, PositiveInt, Share, YesNo
from merkhet.training.artifact import LearnerSettings, check_process_counts


@dataclass(frozen=True)
class MemorizeSettings(LearnerSettings):
    """How a model is trained to store facts. There is no dropout: everything is to be memorized."""

    head: Literal["separate", "vocabulary"] = "separate"
    """``separate``: symbols have a head of their own; ``vocabulary``: they extend the model's vocabulary."""
    epochs: PositiveInt = 200
    """Maximum number of epochs."""
    batch_size: PositiveInt = 256
    learning_rate: PositiveFloat = 1e-3
    schedule: Literal["cosine", "constant"] = "cosine"
    """Learning rate after the warmup: ``cosine`` decay or ``constant``."""
    warmup: Share = 0.05
    """Share of all steps in which the learning rate rises."""
    weight_decay: NonNegativeFloat = 0.0
    largest_gradient: PositiveFloat = 1.0
    """Maximum gradient norm."""
    until: Share = 0.99
    """Early stopping: training ends at this accuracy; 0 trains all epochs."""
    evaluate_every: PositiveInt = 10
    """Number of epochs between evaluations of all statements."""
    dynamic: Annotated[int, Bounds(ge=0, le=100)] = 0
    """Percentage of statements with a masked start or end in which the other time is left out."""
    copies: PositiveInt = 10
    """Number of draws of these statements, which take turns."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """``auto`` is bfloat16 on CUDA and float32 elsewhere."""
    compile: Literal["auto", "yes", "no"] = "auto"
    """``auto`` compiles on CUDA if the training is long enough."""
    checkpoints: YesNo = "no"
    """Gradient checkpointing: recompute layers in the backward pass, for less memory."""
    checkpoint_seconds: NonNegativeFloat = 120.0
    """Minimum time between training checkpoints, which are written after an epoch."""
    vocabulary: Annotated[int, Bounds(ge=300)] = 8000
    """Vocabulary size of a tokenizer that is trained for a model of random weights; bytes alone are 256 entries."""
    processes: PositiveInt = 1
    """Number of processes that share each batch."""
    shard_head: YesNo = "no"
    """``yes``: each process holds only its rows of the table of symbols."""
    parts: PositiveInt = 1
    """Number of parts of each batch; any number of processes up to this gives the same bits."""

    def __post_init__(self) -> None:
        """Refuse invalid values, and settings that do not fit each other."""
        super().__post_init__()
        if self.shard_head == "yes" and self.head != "separate":
            raise InputError("shard_head needs a separate head; set learning.settings.head to separate")
        if self.shard_head == "yes" and self.parts > 1:
            raise InputError(
                "shard_head sums over processes, so the last digits depend on their number; leave out "
                "learning.settings.parts or learning.settings.shard_head"
            )
        check_process_counts(self.processes, self.parts)
