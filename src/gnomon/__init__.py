"""gnomon measures what a language model knows.

``gnomon.run("quickstart", models=["minilm-mlm"], out="runs/first")`` asks, scores and reports;
``run.scores.to_pandas()`` is the table. Everything is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names
from gnomon.foundation.version import __version__

if TYPE_CHECKING:
    from gnomon.foundation import GnomonError, InputError
    from gnomon.knowledge import KnowledgeBase
    from gnomon.models import load_model
    from gnomon.runs import Run, open_run
    from gnomon.suites import build, run

__getattr__ = lazy_names(
    __name__,
    {
        "GnomonError": "gnomon.foundation",
        "InputError": "gnomon.foundation",
        "KnowledgeBase": "gnomon.knowledge",
        "Run": "gnomon.runs",
        "build": "gnomon.suites",
        "load_model": "gnomon.models",
        "open_run": "gnomon.runs",
        "run": "gnomon.suites",
    },
)

__all__ = ["GnomonError", "InputError", "KnowledgeBase", "Run", "__version__", "build", "load_model", "open_run", "run"]
