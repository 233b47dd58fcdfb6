"""A plan: what a study does, as steps with declared inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merkhet.core.progress import Progress

KINDS = ("build", "learn", "ask", "score", "analyse", "report")


@dataclass(frozen=True)
class Step:
    """One step: an action (``module:function``) with its parameters, the files it reads and the files it writes.

    Files are named relative to the run's folder. What is not in a file but decides the result (a model's weights,
    a knowledge file elsewhere) stands in ``params`` as a hash: a step is done again when its action, its parameters
    or the content of its inputs change. What an action needs but what does not decide its result (where a model lies)
    stands in ``aside``.
    """

    name: str
    kind: str
    action: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    aside: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The steps of a study, in an order in which they can be done.

    ``then`` gives the plan that follows, from the run's folder, where what there is to do hangs on what these steps
    have found.
    """

    steps: tuple[Step, ...]
    then: Callable[[Path], Plan] | None = None


@dataclass(frozen=True)
class StepContext:
    """What an action gets: the run's folder, a folder for its unfinished work, the study's folder, and who watches.

    The work folder belongs to this very step with these very inputs, and is there again after a kill.
    """

    step: Step
    folder: Path
    work: Path
    home: Path
    progress: Progress

    @property
    def params(self) -> Mapping[str, Any]:
        """The step's parameters."""
        return self.step.params
