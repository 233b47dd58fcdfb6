"""The engine that asks, for as long as a run lasts: nothing where this process asks by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from merkhet.core.compute_engines import AskEngine
from merkhet.core.progress import Progress
from merkhet.engine.plan import Plan


@contextmanager
def asking_engine(engine: AskEngine | None, plan: Plan, home: Path, progress: Progress) -> Iterator[None]:
    """Have the engine of a plan's asking steps there, and end with the run what was begun for it.

    A cluster is looked at before any work is done; a local one is started when it is first needed.
    """
    if engine is None:
        yield
        return
    from merkhet.engine.distribute.ray_cluster import check_cluster, leave

    try:
        if engine.address is not None:
            check_cluster(engine, plan, home, progress)
        yield
    finally:
        leave()
