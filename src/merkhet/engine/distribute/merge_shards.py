"""Merging of shards into one run, which is the same as the run of a single process."""

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
from merkhet.core.text import counted
from merkhet.core.version import __version__
from merkhet.engine._ask_step import STATISTICS_FILE, ask, select_questions
from merkhet.engine.asker import AskStatistics, merge_statistics
from merkhet.engine.distribute.shard_permissions import check_shard_permissions
from merkhet.engine.distribute.shards import Shard, read_steps, shard_steps, strip_shard_option
from merkhet.engine.executor import INTERNAL, execute, is_recorded
from merkhet.engine.plan import AnyStep, Nothing, Plan, step_identity
from merkhet.engine.record_step import RecordRuntime
from merkhet.engine.run_files import SHARD_FILE, read_json
from merkhet.engine.run_folder import Run

_QUESTIONS = "questions.parquet"


@dataclass(frozen=True)
class _Part:
    """The folder of a shard, and the content of its shard.json."""

    folder: Path
    shard: Shard
    content: Mapping[str, Any]
    """Content of shard.json."""
    steps: tuple[AnyStep, ...]
    """Steps of the plan of the whole run."""

    def shard_step(self, step: AnyStep) -> AnyStep:
        """Return the step of this shard that corresponds to ``step`` of the whole run."""
        return shard_steps((step,), self.shard)[0] if step.kind == "ask" else step


def merge_runs(
    folders: Sequence[str | Path], out: str | Path, progress: Progress | None = None, *, trust: bool = False
) -> Run:
    """Merge shards into a finished run in the folder ``out``, without loading a model.

    The result is the same as that of a single process.

    Args:
        trust: Whether to import foreign code that the shards name, such as metrics. Without it, such code is imported
            only if this user has run one of the shards.

    Raises:
        ConsentError: The shards name foreign code, and the user has not agreed to it.
        InputError: A folder is not a shard; a shard is repeated, missing, unfinished or damaged; or the shards differ
            in study, questions, models or version of merkhet.
    """
    target = Path(out)
    parts = _read_parts([Path(folder) for folder in folders], target)
    _check_same_study(parts)
    _check_complete(parts)
    for part in parts:
        _check_finished(part)
    reporter = progress or SilentProgress()
    home = Path(parts[0].content["home"])
    check_shard_permissions(parts[0].folder / SHARD_FILE, parts[0].steps, home, trust=trust)
    count = len(parts)
    reporter.say(f"{count} shards of {parts[0].content['study'].get('suite')}" if count > 1 else "one shard")
    plan = Plan(tuple(_with_shards(step, parts) for step in parts[0].steps))
    execute(plan, target, home, reporter, lambda step, work: _supply(step, work, target, home, parts))
    return Run(target)


def _read_parts(folders: Sequence[Path], target: Path) -> list[_Part]:
    parts = []
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}; name the folders that 'merkhet run --shard' has made")
        if folder.resolve() == target.resolve():
            raise InputError(f"{folder} is one of the shards; choose another folder with --out")
        if not (folder / SHARD_FILE).is_file():
            finished = (folder / "scores.parquet").is_file()
            reason = "it holds a whole run" if finished else "'merkhet run --shard' makes one"
            if (folder / INTERNAL).is_dir() and not finished:
                reason = "its command has not written shard.json yet"
            raise InputError(f"{folder} is not a shard of a run: {reason}")
        content = read_json(folder / SHARD_FILE)
        try:
            steps = read_steps(content)
            part = _Part(folder, Shard(content["number"], content["of"]), content, steps)
            _check_steps(part)
        except (KeyError, TypeError, ValueError, InputError) as error:
            raise InputError(f"{folder / SHARD_FILE} is damaged; run this shard again with a new folder") from error
        parts.append(part)
    return sorted(parts, key=lambda part: (part.shard.of, part.shard.number))


def _check_steps(part: _Part) -> None:
    """Check that no step loads a model, suite or source when the shard is merged.

    Steps of shards load none, but the file may come from somebody else, who names one that runs code. The steps that
    load one have runtime settings.

    Raises:
        InputError: A step loads one.
    """
    if any(step.function is not ask for step in part.steps if step.kind == "ask"):
        raise InputError("a step asks in another way")
    copied = {step.name for step in shard_steps(part.steps, part.shard)}
    for step in part.steps:
        if step.kind == "ask" or step.name in copied:
            continue
        if step.kind == "build" or not isinstance(step.runtime, Nothing | RecordRuntime):
            raise InputError(f"the step {step.name} loads a model, a suite or a source")


def _check_same_study(parts: Sequence[_Part]) -> None:
    first = parts[0]
    for part in parts:
        if part.content["merkhet"] != __version__:
            raise InputError(
                f"{part.folder} was made by merkhet {part.content['merkhet']}, and this is {__version__}; run and "
                "merge all shards with the same version"
            )
        _check_equal(first, part, "the number of shards", "runs", lambda part: part.shard.of)
    for part in parts[1:]:
        for key in sorted({*first.content["study"], *part.content["study"]}):
            _check_equal(first, part, key, "studies", partial(_study_value, key))
        for step in first.steps:
            if step.kind == "ask":
                label = f"the fingerprint of {step.params.name}"
                _check_equal(first, part, label, "models", partial(_fingerprint, step.name))
        _check_equal(first, part, "the plan", "studies", lambda part: _identities(part.steps), show_values=False)
        _check_equal(first, part, "the digest of the questions", "questions", _questions_digest)


def _check_equal(
    first: _Part, other: _Part, key: str, noun: str, value: Callable[[_Part], Any], show_values: bool = True
) -> None:
    """Check that two shards have the same value of a property.

    Args:
        key: Name of the property in the error message.
        noun: Noun for the error message "shards of different ...", such as "studies".
        value: Function that returns the value of a shard.
        show_values: Whether the error message quotes both values.

    Raises:
        InputError: The values differ.
    """
    first_value, other_value = value(first), value(other)
    if first_value != other_value:
        values = f" ({_shorten(first_value)} and {_shorten(other_value)})" if show_values else ""
        raise InputError(
            f"{first.folder} and {other.folder} are shards of different {noun}: {key} is not the same{values}; merge "
            "only shards of one command"
        )


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _study_value(key: str, part: _Part) -> Any:
    return part.content["study"].get(key)


def _fingerprint(name: str, part: _Part) -> str | None:
    fingerprint = next((step.params.fingerprint for step in part.steps if step.name == name), None)
    return str(fingerprint)[:12] if fingerprint else None


def _identities(steps: Iterable[AnyStep]) -> list[Any]:
    """Return the name, hash and inputs of each step, without runtime settings."""
    return [[step.name, step_identity(step), step.inputs] for step in steps]


def _questions_digest(part: _Part) -> str | None:
    """Return the recorded hash of the questions that a shard has built.

    Raises:
        InputError: The shard has not built its questions yet.
    """
    file = part.folder / INTERNAL / "steps" / "build.json"
    if not file.is_file():
        raise _unfinished(part, "has no questions yet")
    digest = read_json(file).get("outputs", {}).get(_QUESTIONS)
    return str(digest)[:12] if digest else None


def _check_complete(parts: Sequence[_Part]) -> None:
    by_number: dict[int, Path] = {}
    for part in parts:
        folder = by_number.setdefault(part.shard.number, part.folder)
        if folder != part.folder or sum(candidate.folder == folder for candidate in parts) > 1:
            raise InputError(f"the shard {part.shard} is given twice: {folder} and {part.folder}; name it once")
    count = parts[0].shard.of
    missing = [str(Shard(number, count)) for number in range(1, count + 1) if number not in by_number]
    if missing:
        names = ", ".join(missing[:12]) + (f" and {len(missing) - 12} more" if len(missing) > 12 else "")
        raise InputError(
            f"{'a shard is' if len(missing) == 1 else 'shards are'} missing: {names}; run "
            f"{'it' if len(missing) == 1 else 'them'} with 'merkhet run … --shard {missing[0]}', or name the folder"
        )


def _check_finished(part: _Part) -> None:
    for step in part.steps[: len(shard_steps(part.steps, part.shard))]:
        if not is_recorded(part.shard_step(step), part.folder):
            raise _unfinished(part, f"lacks answers of {step.params.name}" if step.kind == "ask" else "is damaged")


def _unfinished(part: _Part, reason: str) -> InputError:
    return InputError(
        f"the shard {part.shard} in {part.folder} is not finished: it {reason}; start its command again to resume it: "
        f"{part.content.get('command')}"
    )


def _with_shards(step: AnyStep, parts: Sequence[_Part]) -> AnyStep:
    """Add the shards to the step that writes run.json; return any other step unchanged."""
    if not isinstance(step.runtime, RecordRuntime):
        return step
    shards = tuple(
        {"shard": str(part.shard), **{key: part.content.get(key) for key in ("command", "versions", "machine")}}
        for part in parts
    )
    command = strip_shard_option(str(parts[0].content.get("command")))
    return replace(step, runtime=RecordRuntime(command, shards))


def _supply(step: AnyStep, work: Path, target: Path, home: Path, parts: Sequence[_Part]) -> bool:
    """Supply a step of the merged run with results of the shards.

    For an asking step, the answers of all shards are written into the folder ``work``. For a step that every shard has
    executed, such as building, the outputs of the first shard are copied.

    Returns:
        Whether all outputs of the step have been written.
    """
    first = parts[0]
    if step.kind == "ask":
        _supply_answers(step, work, target, home, parts)
        return False
    if step.name not in {other.name for other in shard_steps(first.steps, first.shard)}:
        return False
    for name in step.outputs:
        with atomic_path(target / name) as path:
            shutil.copyfile(first.folder / name, path)
    return True


def _supply_answers(step: AnyStep, work: Path, target: Path, home: Path, parts: Sequence[_Part]) -> None:
    selection = select_questions(target, step.params, home)
    part_steps = [(part, part.shard_step(step)) for part in parts]
    answers = pa.concat_tables(
        read_table(ANSWERS, part.folder / shard_step.outputs[0]) for part, shard_step in part_steps
    )
    rows: dict[str, list[int]] = {question.question_id: [] for question in selection.questions}
    for row, question in enumerate(answers["question_id"].to_pylist()):
        if question not in rows:
            raise MerkhetError(
                f"the shards have answers of {step.params.name} to a question that is not in the study; run them again"
            )
        rows[question].append(row)
    missing = sum(not answer_rows for answer_rows in rows.values())
    if missing:
        raise MerkhetError(
            f"the shards have no answers of {step.params.name} to {counted(missing, 'question')}; start their commands "
            "again"
        )
    for block, file in zip(selection.blocks, selection.parts(work), strict=True):
        order = [row for question in block for row in rows[question.question_id]]
        write_table(ANSWERS, answers.take(order), file)
    records = [read_json(part.folder / shard_step.outputs[1]) for part, shard_step in part_steps]
    statistics = [AskStatistics(**record["effort"]) for record in records if "effort" in record]
    write_json(work / STATISTICS_FILE, asdict(merge_statistics(statistics, shards=len(parts))))
