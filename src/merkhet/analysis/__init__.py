"""Analyses of a run's scores and answers."""

from __future__ import annotations

from merkhet.core.registry import PartType, Registry

ANALYSES = Registry(
    "analysis",
    {
        "distribution": (
            "merkhet.analysis.distribution:distribution",
            "number of questions of each type, domain and kind of knowledge",
        ),
        "domains": ("merkhet.analysis.domains:domains", "scores by question type and domain, one table per model"),
        "consistency": (
            "merkhet.analysis.consistency:consistency",
            "Q-sets all, partly and not at all right, compared with independent answers",
        ),
        "conclusions": (
            "merkhet.analysis.conclusions:conclusions",
            "conclusions whose premises a model knows against others, by axiom; closed book against open book",
        ),
        "compression": (
            "merkhet.analysis.compression:compression",
            "models against their distilled versions: difference, share of the score and of Q-sets kept",
        ),
        "cooccurrence": (
            "merkhet.analysis.cooccurrence:cooccurrence",
            "scores by the co-occurrence of a question's names with its answer in a corpus",
        ),
        "classes": (
            "merkhet.analysis.classes:classes",
            "scores by task and class, ranked among the vocabulary and among the class's answers; word senses",
        ),
        "lengths": ("merkhet.analysis.text_length:lengths", "scores by the length of a question's text"),
        "layers": ("merkhet.analysis.layer_accuracy:layers", "accuracy on word senses, by layer"),
        "extrinsic": (
            "merkhet.analysis.extrinsic:extrinsic",
            "rank correlation, over models, of the scores with scores on other tasks, and spread",
        ),
        "forms": (
            "merkhet.analysis.answer_format:forms",
            "outcomes of replies, position and letter bias, agreement between probes",
        ),
        "cutoffs": (
            "merkhet.analysis.cutoffs:cutoffs",
            "after memorizing: answer sets by probability threshold, and calibration of the probabilities",
        ),
        "trainings": (
            "merkhet.analysis.training_noise:training_noise",
            "scores over several trainings with different seeds, and differences between conditions",
        ),
        "learning": (
            "merkhet.analysis.learning_curves:learning_curves",
            "cloze tuning: loss and dev score by epoch, and the kept epoch",
        ),
        "objectives": (
            "merkhet.analysis.objective_effects:objectives",
            "models after further pre-training by several objectives, compared with masked words only",
        ),
    },
    plural="analyses",
    part_type=PartType("a function of an AnalysisInput", (1,)),
)
