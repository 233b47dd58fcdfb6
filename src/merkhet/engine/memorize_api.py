"""``merkhet memorize``: studies in which models store facts, those that come with merkhet among them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.progress import Progress
from merkhet.engine.api import run
from merkhet.engine.run_folder import Run
from merkhet.engine.study import apply_setting, read_study
from merkhet.training import MEMORIZE

_SUITES = Path(__file__).parent.parent / "suites"


def embedded_studies() -> dict[str, Path]:
    """Name and file of each study that comes with merkhet."""
    return {path.stem: path for path in sorted(_SUITES.glob("*/studies/*.yaml"))}


def memorize(
    what: str,
    *,
    data: str | Path | None = None,
    knowledge: Sequence[str] = (),
    models: Sequence[Any] = (),
    seed: int | None = None,
    settings: Sequence[str] = (),
    out: str | Path | None = None,
    progress: Progress | None = None,
    command: str | None = None,
) -> Run:
    """Run a study in which models memorize, by its file or by the name of an embedded one, as :func:`run` does.

    ``out`` is ``runs/<study>`` by default. Refuses a study that memorizes nothing.
    """
    studies = embedded_studies()
    if what not in studies and not what.endswith((".yaml", ".yml")):
        raise InputError(f"there is no study {what!r} that memorizes; {did_you_mean(what, studies)}, or name a file")
    file = studies.get(what, Path(what))
    content = read_study(file)
    for setting in settings:
        apply_setting(content, setting)
    learning = content.get("learning")
    learner = learning.get("learner") if isinstance(learning, dict) else learning
    if learner != MEMORIZE:
        raise InputError(f"{file} does not memorize: its learning.learner is {learner!r}. Ask it with 'merkhet run'.")
    return run(
        str(file),
        data=data,
        knowledge=knowledge,
        models=models,
        seed=seed,
        settings=settings,
        out=out if out is not None else Path("runs") / file.stem,
        progress=progress,
        command=command or f"merkhet.memorize({what!r}, …)",
    )
