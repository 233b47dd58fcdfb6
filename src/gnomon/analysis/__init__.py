"""What one asks of scores: which model is ahead, what it knows and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names
from gnomon.foundation.registry import Registry

if TYPE_CHECKING:
    from gnomon.analysis.comparison import Comparison, compare_models
    from gnomon.analysis.findings import find_out
    from gnomon.analysis.inquiry import Analysis, AnalysisInput
    from gnomon.analysis.options import OPTIONS, Option, options_of

ANALYSES = Registry(
    "analysis",
    {
        "distribution": (
            "gnomon.analysis.distribution:distribution",
            "how many questions there are of each type, domain and kind of knowledge",
        ),
        "domains": ("gnomon.analysis.domains:domains", "scores by question type and domain, one table a model"),
        "consistency": (
            "gnomon.analysis.consistency:consistency",
            "Q-sets all, partly and not at all right, against what independent answers would give",
        ),
        "compression": (
            "gnomon.analysis.compression:compression",
            "models against their distilled versions: difference, share of the score and of Q-sets kept",
        ),
        "cooccurrence": (
            "gnomon.analysis.cooccurrence:cooccurrence",
            "scores against how often a question's names meet the answer in a corpus",
        ),
        "memorizing": (
            "gnomon.analysis.memorizing:memorizing",
            "ontological knowledge by task: the best and a fixed way of asking, all ways, multiple choice",
        ),
        "premises": (
            "gnomon.analysis.premises:premises",
            "reasoning by premises that are read, memorized or missing, and whether a model reasons or repeats",
        ),
        "prompting": (
            "gnomon.analysis.prompting:prompting",
            "soft and manual prompts, masks, pooling and losses compared, and curves of what was learned",
        ),
        "classes": (
            "gnomon.analysis.classes:classes",
            "scores by task and class, ranked over the vocabulary and among the class's answers, and of senses",
        ),
        "lengths": ("gnomon.analysis.lengths:lengths", "scores by the length of a question's text"),
        "layers": ("gnomon.analysis.layers:layers", "accuracy in telling senses apart, by the layer compared"),
        "extrinsic": (
            "gnomon.analysis.extrinsic:extrinsic",
            "scores of the run against scores on other tasks: rank correlation over models, and spread",
        ),
        "forms": (
            "gnomon.analysis.forms:forms",
            "what replies came to, bias for places and letters, agreement between ways of asking",
        ),
        "objectives": (
            "gnomon.analysis.objectives:objectives",
            "models trained further by several objectives, compared with masked words alone",
        ),
    },
    plural="analyses",
)

__getattr__ = lazy_names(
    __name__,
    {
        "Analysis": "gnomon.analysis.inquiry",
        "AnalysisInput": "gnomon.analysis.inquiry",
        "Comparison": "gnomon.analysis.comparison",
        "OPTIONS": "gnomon.analysis.options",
        "Option": "gnomon.analysis.options",
        "compare_models": "gnomon.analysis.comparison",
        "find_out": "gnomon.analysis.findings",
        "options_of": "gnomon.analysis.options",
    },
)

__all__ = [
    "ANALYSES",
    "OPTIONS",
    "Analysis",
    "AnalysisInput",
    "Comparison",
    "Option",
    "compare_models",
    "find_out",
    "options_of",
]
