"""The suites: each composes the rooms below, and adds no machinery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names
from gnomon.foundation.registry import Registry

if TYPE_CHECKING:
    from gnomon.suites.memorizing import memorize
    from gnomon.suites.running import build, run, run_shard
    from gnomon.suites.suite import Suite

SUITES = Registry(
    "suite",
    {
        "quickstart": (
            "gnomon.suites.quickstart:SUITE",
            "a first look: completion, checking and distinction on the embedded packs or your own facts",
        ),
        "kmir": (
            "gnomon.suites.kmir:SUITE",
            "memorization, identification and reasoning: four question types, ten domains, any knowledge",
        ),
        "ontoprobe": (
            "gnomon.suites.ontoprobe:SUITE",
            "types, superclasses, domains and ranges of any ontology, and reasoning by six RDFS rules",
        ),
        "chneval": (
            "gnomon.suites.chneval:SUITE",
            "Chinese and, built from texts, other languages: function words, word senses, commonsense, facts in texts",
        ),
        "lama-tk": (
            "gnomon.suites.lama_tk:SUITE",
            "facts with times: who, what and when, boundaries, years within, order; zero-shot or stored",
        ),
    },
)

__getattr__ = lazy_names(
    __name__,
    {
        "build": "gnomon.suites.running",
        "memorize": "gnomon.suites.memorizing",
        "run": "gnomon.suites.running",
        "run_shard": "gnomon.suites.running",
        "Suite": "gnomon.suites.suite",
    },
)

__all__ = ["SUITES", "Suite", "build", "memorize", "run", "run_shard"]
