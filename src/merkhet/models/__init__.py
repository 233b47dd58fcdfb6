"""Language models and baselines with a common protocol; torch is imported only when a model is loaded."""

from __future__ import annotations

from merkhet.core.registry import PartType, Registry

_BASELINES, _DEMOS = "merkhet.models.baselines", "merkhet.models.demo_models"
MODELS = Registry(
    "model",
    {
        "smollm2-135m": (f"{_DEMOS}:smollm2_135m", "causal, 135 M parameters, English (SmolLM2 Instruct)"),
        "minilm-mlm": (f"{_DEMOS}:minilm_mlm", "masked, 23 M parameters, English, made for merkhet"),
        "random": (f"{_BASELINES}:RandomBaseline", "baseline: guesses"),
        "constant": (f"{_BASELINES}:ConstantBaseline", "baseline: the same score for every candidate, all tied"),
        "frequency": (f"{_BASELINES}:FrequencyBaseline", "baseline: the most frequent answer of a relation"),
        "train-frequency": (
            f"{_BASELINES}:TrainFrequencyBaseline",
            "baseline: answers of the training questions by frequency, then guesses",
        ),
        "longest": (f"{_BASELINES}:LongestBaseline", "baseline: the longest option"),
        "association": (
            "merkhet.models.association_baseline:AssociationBaseline",
            "baseline: the option nearest to the subject by input embeddings, of minilm-mlm or of association:MODEL",
        ),
        "overlap": (
            "merkhet.models.word_overlap:OverlapBaseline",
            "baseline: the option that shares most characters with the subject",
        ),
        "word-overlap": (
            "merkhet.models.word_overlap:WordOverlapBaseline",
            "baseline: compares senses by the words that two sentences share",
        ),
    },
    part_type=PartType("a function without arguments that makes a model", (0,)),
)
