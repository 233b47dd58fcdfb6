"""Puts the shards of a study together: their answers take the places that one process would have given them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.files import atomic_path, write_json
from merkhet.core.progress import Progress, SilentProgress
from merkhet.core.schemas import ANSWERS, read_table, write_table
from merkhet.core.version import __version__
from merkhet.engine._ask_step import EFFORT, asked_questions
from merkhet.engine.asker import Effort, put_together
from merkhet.engine.distribute.shards import Shard, read_steps, shard_steps, strip_shard_option
from merkhet.engine.executor import INTERNAL, execute, is_recorded
from merkhet.engine.plan import AnyStep, Plan, step_identity
from merkhet.engine.record_step import RecordRuntime
from merkhet.engine.run_files import SHARD_FILE, read_json
from merkhet.engine.run_folder import Run

_QUESTIONS = "questions.parquet"


@dataclass(frozen=True)
class _Part:
    """A shard's folder with what it says of itself, and the steps of the whole plan."""

    folder: Path
    shard: Shard
    content: Mapping[str, Any]
    steps: tuple[AnyStep, ...]

    def own(self, step: AnyStep) -> AnyStep:
        """The step of this shard that stands for one of the whole."""
        return shard_steps((step,), self.shard)[0] if step.kind == "ask" else step


def merge_runs(folders: Sequence[str | Path], out: str | Path, progress: Progress | None = None) -> Run:
    """Put shards together into a finished run, as one process would have made it; no model is needed for that.

    Refuses shards that overlap or are missing, that are of different studies, questions, models or versions of
    merkhet, that are not finished or were damaged, and folders that are no shards.
    """
    target = Path(out)
    parts = _read_parts([Path(folder) for folder in folders], target)
    _refuse_mixed(parts)
    _refuse_overlaps_and_gaps(parts)
    for part in parts:
        _refuse_unfinished(part)
    watcher = progress or SilentProgress()
    home = Path(parts[0].content["home"])
    count = len(parts)
    watcher.say(f"{count} shards of {parts[0].content['study'].get('suite')}" if count > 1 else "one shard alone")
    plan = Plan(tuple(_with_shards(step, parts) for step in parts[0].steps))
    execute(plan, target, home, watcher, lambda step, work: _supply(step, work, target, home, parts))
    return Run(target)


def _read_parts(folders: Sequence[Path], target: Path) -> list[_Part]:
    parts = []
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}; name the folders that 'merkhet run --shard' has made")
        if folder.resolve() == target.resolve():
            raise InputError(f"{folder} is one of the shards. Choose another folder with --out.")
        if not (folder / SHARD_FILE).is_file():
            has = "it holds a whole run" if (folder / "scores.parquet").is_file() else "'merkhet run --shard' makes one"
            begun = (folder / INTERNAL).is_dir() and not (folder / "scores.parquet").is_file()
            raise InputError(f"{folder} is no shard of a run: {'it has none yet' if begun else has}")
        content = read_json(folder / SHARD_FILE)
        try:
            parts.append(_Part(folder, Shard(content["number"], content["of"]), content, read_steps(content)))
        except (KeyError, TypeError, ValueError, InputError) as error:
            raise InputError(f"{folder / SHARD_FILE} is damaged. Ask this shard again, into a new folder.") from error
    return sorted(parts, key=lambda part: (part.shard.of, part.shard.number))


def _refuse_mixed(parts: Sequence[_Part]) -> None:
    first = parts[0]
    for part in parts:
        if part.content["merkhet"] != __version__:
            raise InputError(
                f"{part.folder} was made by merkhet {part.content['merkhet']}, and this is {__version__}. Put shards "
                "together by the version that asked them, and ask them all by the same one"
            )
        _refuse_difference(first, part, "the number of shards", "runs", lambda one: one.shard.of)
    for part in parts[1:]:
        for key in sorted({*first.content["study"], *part.content["study"]}):
            _refuse_difference(first, part, key, "studies", partial(_of_study, key))
        for step in first.steps:
            if step.kind == "ask":
                what = f"the fingerprint of {step.params.name}"
                _refuse_difference(first, part, what, "models", partial(_fingerprint, step.name))
        _refuse_difference(first, part, "the plan", "studies", lambda one: _identities(one.steps), shows=False)
        _refuse_difference(first, part, "the digest of the questions", "questions", _built)


def _refuse_difference(
    first: _Part, other: _Part, key: str, what: str, value: Callable[[_Part], Any], shows: bool = True
) -> None:
    """Refuse two shards in which something differs that must not, and name it."""
    one, two = value(first), value(other)
    if one != two:
        told = f" ({_brief(one)} and {_brief(two)})" if shows else ""
        raise InputError(
            f"{first.folder} and {other.folder} are shards of different {what}: {key} is not the same{told}. Put only "
            "shards of one command together"
        )


def _brief(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _of_study(key: str, part: _Part) -> Any:
    return part.content["study"].get(key)


def _fingerprint(name: str, part: _Part) -> str | None:
    found = next((step.params.fingerprint for step in part.steps if step.name == name), None)
    return str(found)[:12] if found else None


def _identities(steps: Iterable[AnyStep]) -> list[Any]:
    """Identify what a plan does, without runtime settings."""
    return [[step.name, step_identity(step), step.inputs] for step in steps]


def _built(part: _Part) -> str | None:
    """The hash of the questions that a shard has built, as it recorded it; None where it has not got so far."""
    file = part.folder / INTERNAL / "steps" / "build.json"
    if not file.is_file():
        raise _unfinished(part, "has no questions yet")
    found = read_json(file).get("outputs", {}).get(_QUESTIONS)
    return str(found)[:12] if found else None


def _refuse_overlaps_and_gaps(parts: Sequence[_Part]) -> None:
    by_number: dict[int, Path] = {}
    for part in parts:
        other = by_number.setdefault(part.shard.number, part.folder)
        if other != part.folder or sum(one.folder == other for one in parts) > 1:
            raise InputError(f"the shard {part.shard} is given twice: {other} and {part.folder}. Name it once.")
    of = parts[0].shard.of
    missing = [str(Shard(number, of)) for number in range(1, of + 1) if number not in by_number]
    if missing:
        shown = ", ".join(missing[:12]) + (f" and {len(missing) - 12} more" if len(missing) > 12 else "")
        raise InputError(
            f"{'the shard is' if len(missing) == 1 else 'shards are'} missing: {shown}. Ask "
            f"{'it' if len(missing) == 1 else 'them'} with 'merkhet run … --shard {missing[0]}', or name the folder"
        )


def _refuse_unfinished(part: _Part) -> None:
    for step in part.steps[: len(shard_steps(part.steps, part.shard))]:
        if not is_recorded(part.own(step), part.folder):
            raise _unfinished(
                part, f"has no whole answers of {step.params.name}" if step.kind == "ask" else "is damaged"
            )


def _unfinished(part: _Part, why: str) -> InputError:
    return InputError(
        f"the shard {part.shard} in {part.folder} is not finished: it {why}. Start its command again, and it goes on: "
        f"{part.content.get('command')}"
    )


def _with_shards(step: AnyStep, parts: Sequence[_Part]) -> AnyStep:
    """Let the step that records the run name the shards."""
    if not isinstance(step.runtime, RecordRuntime):
        return step
    shards = tuple(
        {"shard": str(part.shard), **{key: part.content.get(key) for key in ("command", "versions", "machine")}}
        for part in parts
    )
    command = strip_shard_option(str(parts[0].content.get("command")))
    return replace(step, runtime=RecordRuntime(command, shards))


def _supply(step: AnyStep, work: Path, target: Path, home: Path, parts: Sequence[_Part]) -> bool:
    """Supply a step with what the shards have: what they built, or their answers as blocks of unfinished work."""
    first = parts[0]
    if step.kind == "ask":
        _supply_answers(step, work, target, home, parts)
        return False
    if step.name not in {one.name for one in shard_steps(first.steps, first.shard)}:
        return False
    for name in step.outputs:
        with atomic_path(target / name) as path:
            shutil.copyfile(first.folder / name, path)
    return True


def _supply_answers(step: AnyStep, work: Path, target: Path, home: Path, parts: Sequence[_Part]) -> None:
    asked = asked_questions(target, step.params, home)
    owns = [(part, part.own(step)) for part in parts]
    answers = pa.concat_tables(read_table(ANSWERS, part.folder / own.outputs[0]) for part, own in owns)
    rows: dict[str, list[int]] = {question.question_id: [] for question in asked.questions}
    for row, question in enumerate(answers["question_id"].to_pylist()):
        if question not in rows:
            raise MerkhetError(f"the shards have answers of {step.params.name} to a question that is not asked")
        rows[question].append(row)
    missing = sum(not found for found in rows.values())
    if missing:
        raise MerkhetError(f"the shards have no answers of {step.params.name} to {missing} questions")
    for block, file in zip(asked.blocks, asked.parts(work), strict=True):
        order = [row for question in block for row in rows[question.question_id]]
        write_table(ANSWERS, answers.take(order), file)
    abouts = [read_json(part.folder / own.outputs[1]) for part, own in owns]
    efforts = [Effort(**about["effort"]) for about in abouts if "effort" in about]
    write_json(work / EFFORT, asdict(put_together(efforts, shards=len(parts))))
