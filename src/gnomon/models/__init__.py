"""Language models behind one small protocol: masked, causal, encoders, baselines; torch waits until one is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names
from gnomon.foundation.registry import Registry

if TYPE_CHECKING:
    from gnomon.models.loading import load_model
    from gnomon.models.protocol import (
        CandidateScores,
        ComparesSenses,
        FilledSlot,
        FillsSlots,
        Model,
        NeedsAllQuestions,
        WritesAnswers,
        WrittenAnswer,
    )
    from gnomon.models.resolving import ModelSpec, ResolvedModel, resolve_model

MODELS = Registry(
    "model",
    {
        "smollm2-135m": ("gnomon.models.embedded:smollm2_135m", "causal, 135 M parameters, English (SmolLM2 Instruct)"),
        "minilm-mlm": ("gnomon.models.embedded:minilm_mlm", "masked, 23 M parameters, English, made for gnomon"),
        "random": ("gnomon.models.baselines:RandomBaseline", "baseline: guesses"),
        "frequency": ("gnomon.models.baselines:FrequencyBaseline", "baseline: the most frequent answer of a relation"),
        "train-frequency": (
            "gnomon.models.baselines:TrainFrequencyBaseline",
            "baseline: answers of the training questions by frequency, then guesses",
        ),
        "word-overlap": (
            "gnomon.models.overlap:WordOverlapBaseline",
            "baseline: compares senses by the words that two sentences share",
        ),
    },
)

__getattr__ = lazy_names(
    __name__,
    {
        "load_model": "gnomon.models.loading",
        "CandidateScores": "gnomon.models.protocol",
        "ComparesSenses": "gnomon.models.protocol",
        "FilledSlot": "gnomon.models.protocol",
        "FillsSlots": "gnomon.models.protocol",
        "Model": "gnomon.models.protocol",
        "NeedsAllQuestions": "gnomon.models.protocol",
        "WritesAnswers": "gnomon.models.protocol",
        "WrittenAnswer": "gnomon.models.protocol",
        "ModelSpec": "gnomon.models.resolving",
        "ResolvedModel": "gnomon.models.resolving",
        "resolve_model": "gnomon.models.resolving",
    },
)

__all__ = [
    "MODELS",
    "CandidateScores",
    "ComparesSenses",
    "FilledSlot",
    "FillsSlots",
    "Model",
    "ModelSpec",
    "NeedsAllQuestions",
    "ResolvedModel",
    "WritesAnswers",
    "WrittenAnswer",
    "load_model",
    "resolve_model",
]
