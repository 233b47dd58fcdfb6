"""Shards of a study: parts of its questions that independent processes ask and that are merged afterwards."""

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

_PATTERN = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True)
class Shard:
    """A numbered part of the questions, such as 1/3 for the first of three parts."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True)
class ShardParams:
    """Content of shard.json."""

    number: int
    of: int
    merkhet: str
    """Version of merkhet that writes the shard."""
    study: Mapping[str, Any]
    home: str
    """Folder that the study's paths are relative to."""
    steps: tuple[Mapping[str, Any], ...]
    """Encoded steps of the plan of the whole run."""


@dataclass(frozen=True)
class ShardRuntime:
    """Command line that the shard was started with."""

    command: str


@dataclass(frozen=True)
class ShardRun:
    """A finished shard. Its folder contains answers, but no scores, because scores need all shards."""

    folder: Path
    shard: Shard

    @property
    def content(self) -> dict[str, Any]:
        """Content of shard.json."""
        content: dict[str, Any] = read_json(self.folder / SHARD_FILE)
        return content

    @property
    def asked(self) -> int:
        """Number of questions asked in this shard, summed over models and probes."""
        steps = [step for step in shard_steps(read_steps(self.content), self.shard) if step.kind == "ask"]
        return sum(read_json(self.folder / step.outputs[1])["questions"] for step in steps)


def parse_shard(text: str) -> Shard:
    """Parse a shard such as ``3/8``.

    Raises:
        InputError: The text is not of the form ``number/of``, or the number is out of range.
    """
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise InputError(f"--shard must have the form 3/8 (the third of eight), got {text!r}")
    shard = Shard(int(match[1]), int(match[2]))
    if not 1 <= shard.number <= shard.of:
        raise InputError(f"there is no shard {shard}: shards are numbered from 1/{shard.of} to {shard.of}/{shard.of}")
    return shard


def shard_plan(plan: Plan, shard: Shard, study: Study, home: Path, command: str) -> Plan:
    """Make the plan of a shard from the plan of the whole run.

    The plan has all steps up to the last asking step; asking steps ask only the questions of the shard.

    Raises:
        InputError: The plan trains a model, and each shard would repeat the training.
    """
    training = next((step for step in plan.steps if step.kind == "learn"), None)
    if plan.then is not None or training is not None:
        name = f" ({training.name})" if training else ""
        raise InputError(
            f"this study trains a model{name}, and each of {shard.of} shards would train it again; ask without "
            "training (--set learning=null), or use --engine ray, which trains once"
        )
    params = ShardParams(
        number=shard.number,
        of=shard.of,
        merkhet=__version__,
        study=study.model_dump(mode="json"),
        home=str(home.resolve()),
        steps=tuple(write_step(step) for step in plan.steps),
    )
    description = Step("shard", "build", write_shard_file, params, ShardRuntime(command), (), (SHARD_FILE,))
    return Plan((description, *shard_steps(plan.steps, shard)))


def shard_steps(steps: tuple[AnyStep, ...], shard: Shard) -> tuple[AnyStep, ...]:
    """Select the steps of a shard from the steps of the whole run.

    Asking steps are limited to the questions of the shard, and write to other outputs. Steps after asking are left out.
    """
    last = max((index for index, step in enumerate(steps) if step.kind == "ask"), default=-1)
    return tuple(_share_of_step(step, shard) if step.kind == "ask" else step for step in steps[: last + 1])


def _share_of_step(step: AnyStep, shard: Shard) -> AnyStep:
    assert isinstance(step.params, AskParams)
    outputs = tuple(f".merkhet/shards/{Path(name).name}" for name in step.outputs)
    params = replace(step.params, shard=(shard.number, shard.of))
    return replace(step, name=f"{step.name}, shard {shard}", params=params, outputs=outputs)


def write_shard_file(context: StepContext[ShardParams, ShardRuntime]) -> None:
    """Write shard.json: number of the shard, study, steps of the whole run, command, versions and machine."""
    origin = {"command": context.runtime.command, "versions": installed_versions(), "machine": describe_machine()}
    write_json(context.folder / SHARD_FILE, {**asdict(context.params), **origin})


def read_steps(content: Mapping[str, Any]) -> tuple[AnyStep, ...]:
    """Decode the steps of the whole run from the content of shard.json."""
    return tuple(read_step(step) for step in content["steps"])


def check_shard_folder(folder: Path, shard: Shard | None) -> None:
    """Check that a folder does not contain another shard than ``shard``.

    Raises:
        InputError: The folder contains another shard.
    """
    if not (folder / SHARD_FILE).is_file():
        return
    content = read_json(folder / SHARD_FILE)
    existing = Shard(content.get("number", 0), content.get("of", 0))
    if existing != shard:
        raise InputError(f"{folder} holds the shard {existing} of a run; choose another folder with --out")


def strip_shard_option(command: str) -> str:
    """Remove the option ``--shard`` and its value from a command line."""
    parts = shlex.split(command)
    remaining = [
        part
        for index, part in enumerate(parts)
        if part != "--shard" and not part.startswith("--shard=") and parts[max(0, index - 1)] != "--shard"
    ]
    return command if remaining == parts else shlex.join(remaining)
