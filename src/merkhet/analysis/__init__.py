"""Analyses of a run's scores and answers."""

from __future__ import annotations

from merkhet.core.registry import Registry

ANALYSES = Registry(
    "analysis",
    {
        "distribution": (
            "merkhet.analysis.distribution:distribution",
            "how many questions there are of each type, domain and kind of knowledge",
        ),
        "domains": ("merkhet.analysis.domains:domains", "scores by question type and domain, one table a model"),
        "consistency": (
            "merkhet.analysis.consistency:consistency",
            "Q-sets all, partly and not at all right, against what independent answers would give",
        ),
        "compression": (
            "merkhet.analysis.compression:compression",
            "models against their distilled versions: difference, share of the score and of Q-sets kept",
        ),
        "cooccurrence": (
            "merkhet.analysis.cooccurrence:cooccurrence",
            "scores against how often a question's names meet the answer in a corpus",
        ),
        "classes": (
            "merkhet.analysis.classes:classes",
            "scores by task and class, ranked over the vocabulary and among the class's answers, and of senses",
        ),
        "lengths": ("merkhet.analysis.text_length:lengths", "scores by the length of a question's text"),
        "layers": ("merkhet.analysis.layer_accuracy:layers", "accuracy in telling senses apart, by the layer compared"),
        "extrinsic": (
            "merkhet.analysis.extrinsic:extrinsic",
            "scores of the run against scores on other tasks: rank correlation over models, and spread",
        ),
        "forms": (
            "merkhet.analysis.answer_format:forms",
            "what replies came to, bias for places and letters, agreement between ways of asking",
        ),
        "cutoffs": (
            "merkhet.analysis.cutoffs:cutoffs",
            "sets of answers cut by a probability, and whether probabilities can be believed, after memorizing",
        ),
        "trainings": (
            "merkhet.analysis.training_noise:training_noise",
            "scores over several trainings with other seeds, and differences between conditions",
        ),
        "objectives": (
            "merkhet.analysis.objective_effects:objectives",
            "models trained further by several objectives, compared with masked words alone",
        ),
    },
    plural="analyses",
)
