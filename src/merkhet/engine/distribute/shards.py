"""Shards: a study asked in shares by processes that know nothing of each other, to be put together afterwards."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.files import write_json
from merkhet.core.version import __version__
from merkhet.engine.asker import AskParams
from merkhet.engine.plan import AnyStep, Plan, Step, StepContext, read_step, write_step
from merkhet.engine.record_step import describe_machine, installed_versions
from merkhet.engine.run_files import SHARD_FILE, read_json
from merkhet.engine.study import Study

_WRITTEN = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True)
class Shard:
    """A share of the questions: the first of three is 1/3."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True)
class ShardParams:
    """What a shard's folder says of itself: the shard, the study, and the steps of the whole plan."""

    number: int
    of: int
    merkhet: str
    """Version."""
    study: Mapping[str, Any]
    home: str
    steps: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class ShardRuntime:
    """How the shard was started."""

    command: str


@dataclass(frozen=True)
class ShardRun:
    """The folder of a shard that was asked: it has answers, and no scores before all shards are put together."""

    folder: Path
    shard: Shard

    @property
    def content(self) -> dict[str, Any]:
        """What the folder says of itself."""
        found: dict[str, Any] = read_json(self.folder / SHARD_FILE)
        return found

    @property
    def asked(self) -> int:
        """How many questions were asked here, of all models and by all probes."""
        steps = [step for step in shard_steps(read_steps(self.content), self.shard) if step.kind == "ask"]
        return sum(read_json(self.folder / step.outputs[1])["questions"] for step in steps)


def parse_shard(text: str) -> Shard:
    """A shard as it is written, ``3/8``; refuses what is none."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise InputError(f"a shard is written as 3/8, the third of eight, and this is {text!r}")
    shard = Shard(int(found[1]), int(found[2]))
    if not 1 <= shard.number <= shard.of:
        raise InputError(
            f"there is no shard {shard}: shards are counted from 1, so that the last is {shard.of}/{shard.of}"
        )
    return shard


def shard_plan(plan: Plan, shard: Shard, study: Study, home: Path, command: str) -> Plan:
    """What a shard does of a plan: all that comes before the questions are asked, and its share of the asking.

    Refuses a plan in which something is learned: every shard would learn for itself.
    """
    learns = next((step for step in plan.steps if step.kind == "learn"), None)
    if plan.then is not None or learns is not None:
        what = f" ({learns.name})" if learns else ""
        raise InputError(
            f"in this study something is learned{what}, and each of {shard.of} shards would learn it anew. Ask without "
            "learning (--set learning=null), or let --engine ray ask what was learned once"
        )
    params = ShardParams(
        number=shard.number,
        of=shard.of,
        merkhet=__version__,
        study=study.model_dump(mode="json"),
        home=str(home.resolve()),
        steps=tuple(write_step(step) for step in plan.steps),
    )
    described = Step("shard", "build", describe, params, ShardRuntime(command), (), (SHARD_FILE,))
    return Plan((described, *shard_steps(plan.steps, shard)))


def shard_steps(steps: tuple[AnyStep, ...], shard: Shard) -> tuple[AnyStep, ...]:
    """The steps of a shard, of those of the whole: the asking ones have its share, and outputs of their own."""
    last = max((place for place, step in enumerate(steps) if step.kind == "ask"), default=-1)
    return tuple(_share(step, shard) if step.kind == "ask" else step for step in steps[: last + 1])


def _share(step: AnyStep, shard: Shard) -> AnyStep:
    assert isinstance(step.params, AskParams)
    outputs = tuple(f".merkhet/shards/{Path(name).name}" for name in step.outputs)
    params = replace(step.params, shard=(shard.number, shard.of))
    return replace(step, name=f"{step.name}, shard {shard}", params=params, outputs=outputs)


def describe(context: StepContext[ShardParams, ShardRuntime]) -> None:
    """Write what the folder is: which shard of which study, and what is to be done when all are there."""
    here = {"command": context.runtime.command, "versions": installed_versions(), "machine": describe_machine()}
    write_json(context.folder / SHARD_FILE, {**asdict(context.params), **here})


def read_steps(content: Mapping[str, Any]) -> tuple[AnyStep, ...]:
    """Read the steps of the whole plan from what a shard's folder says of itself."""
    return tuple(read_step(step) for step in content["steps"])


def check_shard_folder(folder: Path, shard: Shard | None) -> None:
    """Refuse to ask a shard in a folder that holds another, or the whole in one that holds a shard."""
    if not (folder / SHARD_FILE).is_file():
        return
    content = read_json(folder / SHARD_FILE)
    there = Shard(content.get("number", 0), content.get("of", 0))
    if there != shard:
        raise InputError(f"{folder} holds the shard {there} of a run. Choose another folder with --out.")


def strip_shard_option(command: str) -> str:
    """The command of a shard as it would have been for the whole."""
    parts = shlex.split(command)
    kept = [
        part
        for place, part in enumerate(parts)
        if part != "--shard" and not part.startswith("--shard=") and parts[max(0, place - 1)] != "--shard"
    ]
    return command if kept == parts else shlex.join(kept)
