"""Registry of the benchmark suites."""

from __future__ import annotations

from typing import Any

from merkhet.core.registry import PartType, Registry


def _is_suite(part: Any) -> bool:
    from merkhet.engine.suite import Suite

    return isinstance(part, Suite)


SUITES = Registry(
    "suite",
    {
        "quickstart": (
            "merkhet.suites.quickstart.suite:SUITE",
            "a first look: completion, checking and distinction on the embedded packs or your own facts",
        ),
        "kmir": (
            "merkhet.suites.kmir.suite:SUITE",
            "memorization, identification and reasoning: four question types, eleven domains, any knowledge",
        ),
        "ontoprobe": (
            "merkhet.suites.ontoprobe.suite:SUITE",
            "types, superclasses, domains and ranges of any ontology, and reasoning by six RDFS rules",
        ),
        "chneval": (
            "merkhet.suites.chneval.suite:SUITE",
            "Chinese and, built from texts, other languages: function words, word senses, commonsense, facts in texts",
        ),
        "lama-tk": (
            "merkhet.suites.lama_tk.suite:SUITE",
            "facts with times: who, what and when, boundaries, years within, order; zero-shot or stored",
        ),
    },
    part_type=PartType("a Suite", is_instance=_is_suite),
)
