"""The suites: each composes the rooms below, and adds no machinery."""

from __future__ import annotations

from merkhet.core.registry import Registry

SUITES = Registry(
    "suite",
    {
        "quickstart": (
            "merkhet.suites.quickstart:SUITE",
            "a first look: completion, checking and distinction on the embedded packs or your own facts",
        ),
        "kmir": (
            "merkhet.suites.kmir:SUITE",
            "memorization, identification and reasoning: four question types, ten domains, any knowledge",
        ),
        "ontoprobe": (
            "merkhet.suites.ontoprobe:SUITE",
            "types, superclasses, domains and ranges of any ontology, and reasoning by six RDFS rules",
        ),
        "chneval": (
            "merkhet.suites.chneval:SUITE",
            "Chinese and, built from texts, other languages: function words, word senses, commonsense, facts in texts",
        ),
        "lama-tk": (
            "merkhet.suites.lama_tk:SUITE",
            "facts with times: who, what and when, boundaries, years within, order; zero-shot or stored",
        ),
    },
)
