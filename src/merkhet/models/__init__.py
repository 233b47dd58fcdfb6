"""Language models behind one protocol; torch is imported when a model is loaded."""

from __future__ import annotations

from merkhet.core.registry import Registry

MODELS = Registry(
    "model",
    {
        "smollm2-135m": (
            "merkhet.models.demo_models:smollm2_135m",
            "causal, 135 M parameters, English (SmolLM2 Instruct)",
        ),
        "minilm-mlm": ("merkhet.models.demo_models:minilm_mlm", "masked, 23 M parameters, English, made for merkhet"),
        "random": ("merkhet.models.baselines:RandomBaseline", "baseline: guesses"),
        "frequency": ("merkhet.models.baselines:FrequencyBaseline", "baseline: the most frequent answer of a relation"),
        "train-frequency": (
            "merkhet.models.baselines:TrainFrequencyBaseline",
            "baseline: answers of the training questions by frequency, then guesses",
        ),
        "word-overlap": (
            "merkhet.models.word_overlap:WordOverlapBaseline",
            "baseline: compares senses by the words that two sentences share",
        ),
    },
)
