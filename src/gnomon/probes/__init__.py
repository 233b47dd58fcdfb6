"""How a question is asked of a model: each probe turns questions into answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names
from gnomon.foundation.registry import Registry

if TYPE_CHECKING:
    from gnomon.probes.asking import Probe
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
    },
)

__getattr__ = lazy_names(
    __name__,
    {
        "Probe": "gnomon.probes.asking",
        "fill_slots": "gnomon.probes.filling",
        "rank_candidates": "gnomon.probes.ranking",
        "write_answers": "gnomon.probes.writing",
    },
)

__all__ = ["PROBES", "Probe", "fill_slots", "rank_candidates", "write_answers"]
