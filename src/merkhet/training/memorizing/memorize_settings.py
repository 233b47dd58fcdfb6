"""Settings of memorizing, in a module without torch so that they can be checked before models load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from merkhet.core.errors import InputError
from merkhet.core.settings import Bounds, NonNegativeFloat, PositiveFloat, PositiveInt, Share, YesNo
from merkhet.training.artifact import LearnerSettings, check_process_counts


@dataclass(frozen=True)
class MemorizeSettings(LearnerSettings):
    """Settings of memorizing. There is no dropout, because the model shall memorize all statements."""

    head: Literal["separate", "vocabulary"] = "separate"
    """Output head for symbols: a ``separate`` head, or an extension of the model's ``vocabulary``."""
    epochs: PositiveInt = 200
    """Maximum number of epochs."""
    batch_size: PositiveInt = 256
    learning_rate: PositiveFloat = 1e-3
    schedule: Literal["cosine", "constant"] = "cosine"
    """Learning rate after the warmup: ``cosine`` decay or ``constant``."""
    warmup: Share = 0.05
    """Share of all steps during which the learning rate rises."""
    weight_decay: NonNegativeFloat = 0.0
    largest_gradient: PositiveFloat = 1.0
    """Maximum gradient norm."""
    until: Share = 0.99
    """Accuracy at which the training ends; 0 trains for all epochs."""
    evaluate_every: PositiveInt = 10
    """Number of epochs between evaluations on all statements."""
    dynamic: Annotated[int, Bounds(ge=0, le=100)] = 0
    """Percentage of statements with a masked start or end time from which the other time is left out."""
    copies: PositiveInt = 10
    """Number of random selections of the statements for ``dynamic``, which the epochs use in turn."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the passes; ``auto`` is bfloat16 on CUDA and float32 elsewhere."""
    compile: Literal["auto", "yes", "no"] = "auto"
    """Whether to compile the network; ``auto`` compiles long trainings on CUDA."""
    checkpoints: YesNo = "no"
    """Whether to use gradient checkpointing, which saves memory by recomputing layers in the backward pass."""
    checkpoint_seconds: NonNegativeFloat = 120.0
    """Minimum number of seconds between training checkpoints, which are written after an epoch."""
    vocabulary: Annotated[int, Bounds(ge=300)] = 8000
    """Vocabulary size of the tokenizer that is trained for an untrained model; bytes take 256 entries."""
    processes: PositiveInt = 1
    """Number of processes that share each batch."""
    shard_head: YesNo = "no"
    """Whether to split the table of symbols over the processes, so that each process holds only some rows."""
    parts: PositiveInt = 1
    """Number of parts into which each batch is cut.

    With ``parts`` > 1, any number of processes up to ``parts`` gives bit-identical weights.
    """

    def __post_init__(self) -> None:
        """Raise an ``InputError`` for invalid values and for settings that exclude each other."""
        super().__post_init__()
        if self.shard_head == "yes" and self.head != "separate":
            raise InputError("shard_head needs a separate head; set learning.settings.head to separate")
        if self.shard_head == "yes" and self.parts > 1:
            raise InputError(
                "shard_head sums over processes, so the last digits depend on their number; leave out "
                "learning.settings.parts or learning.settings.shard_head"
            )
        check_process_counts(self.processes, self.parts)
