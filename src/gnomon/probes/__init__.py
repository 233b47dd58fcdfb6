"""How a question is asked of a model: each probe turns questions into answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names
from gnomon.foundation.registry import Registry

if TYPE_CHECKING:
    from gnomon.probes.asking import Probe, check_options, options_of, with_options
    from gnomon.probes.comparing import compare_senses
    from gnomon.probes.filling import fill_slots
    from gnomon.probes.ranking import rank_candidates
    from gnomon.probes.writing import write_answers

PROBES = Registry(
    "probe",
    {
        "rank": (
            "gnomon.probes.ranking:rank_candidates",
            "rank a closed list of candidates in the question's sentence",
        ),
        "fill": ("gnomon.probes.filling:fill_slots", "rank the model's whole vocabulary in the slot (masked models)"),
        "write": ("gnomon.probes.writing:write_answers", "let the model write what stands in the slot"),
        "compare": (
            "gnomon.probes.comparing:compare_senses",
            "is a word's sense nearer to one usage or to another, by cosine (masked, causal, encoder models)",
        ),
        "choose": (
            "gnomon.probes.talking.choosing:choose",
            "let a chat or causal model name one of lettered choices; options orders, mixed_letters, most, shots",
        ),
        "answer": (
            "gnomon.probes.talking.answering:answer",
            "let a chat or causal model fill the blank in its own words; option shots",
        ),
        "judge": (
            "gnomon.probes.talking.judging:judge",
            "let a chat or causal model say whether a statement is true; option shots",
        ),
    },
)

__getattr__ = lazy_names(
    __name__,
    {
        "Probe": "gnomon.probes.asking",
        "check_options": "gnomon.probes.asking",
        "options_of": "gnomon.probes.asking",
        "with_options": "gnomon.probes.asking",
        "compare_senses": "gnomon.probes.comparing",
        "fill_slots": "gnomon.probes.filling",
        "rank_candidates": "gnomon.probes.ranking",
        "write_answers": "gnomon.probes.writing",
    },
)

__all__ = [
    "PROBES",
    "Probe",
    "check_options",
    "compare_senses",
    "fill_slots",
    "options_of",
    "rank_candidates",
    "with_options",
    "write_answers",
]
