"""The suites: each composes the rooms below, and adds no machinery."""

from gnomon.foundation.registry import Registry
from gnomon.suites.running import build, run
from gnomon.suites.suite import Suite

SUITES = Registry(
    "suite",
    {
        "quickstart": (
            "gnomon.suites.quickstart:SUITE",
            "a first look: completion, checking and distinction on the embedded packs or your own facts",
        ),
    },
)

__all__ = ["SUITES", "Suite", "build", "run"]
