"""How a question is asked of a model: each probe turns questions into answers."""

from gnomon.foundation.registry import Registry
from gnomon.probes.ranking import Probe, rank_candidates

PROBES = Registry(
    "probe",
    {"rank": ("gnomon.probes.ranking:rank_candidates", "rank a closed list of candidates in the question's sentence")},
)

__all__ = ["PROBES", "Probe", "rank_candidates"]
