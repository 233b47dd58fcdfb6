"""Plans of steps with declared inputs and outputs, and the JSON encoding of steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path, PurePath
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, TypeAdapter

from merkhet.core.errors import InputError
from merkhet.core.ids import digest
from merkhet.core.progress import Progress
from merkhet.core.registry import load_part

Params = TypeVar("Params")
Runtime = TypeVar("Runtime")
StepKind: TypeAlias = Literal["build", "learn", "ask", "score", "analyse", "report"]

PACKAGE = "merkhet."
"""Package of all step functions. Steps that are read from a file may not call functions of other packages."""


@dataclass(frozen=True)
class Nothing:
    """Empty parameters or runtime settings of a step."""


NOTHING = Nothing()


@dataclass(frozen=True)
class Step(Generic[Params, Runtime]):
    """One step of a plan: a function, its parameters, the files that it reads and the files that it writes.

    A step runs again when its function, its parameters, the content of its inputs or the version of merkhet changes.
    Paths are relative to the run's folder. Anything outside this folder that affects the result, such as the weights
    of a model or a knowledge file, is represented in ``params`` by its hash.
    """

    name: str
    """Name in logs and records, unique within the plan."""
    kind: StepKind
    """Stage of the run that the step belongs to."""
    function: Callable[[StepContext[Params, Runtime]], None]
    """Function that executes the step."""
    params: Params
    """Frozen dataclass of all settings that affect the result."""
    runtime: Runtime
    """Frozen dataclass of settings that do not affect the result, such as devices, engines and paths."""
    inputs: tuple[str, ...] = ()
    """Paths of the files that the function reads."""
    outputs: tuple[str, ...] = ()
    """Paths of the files that the function writes."""
    summarize: Callable[[Path], Sequence[str]] | None = None
    """Function that returns lines to print when the step is done, given the run's folder."""


AnyStep: TypeAlias = Step[Any, Any]


@dataclass(frozen=True)
class Plan:
    """The steps of a study, in execution order."""

    steps: tuple[AnyStep, ...]
    then: Callable[[Path], Plan] | None = None
    """Function that makes the following plan, given the run's folder.

    It is called when all steps of this plan are done, and may read their outputs.
    """


@dataclass(frozen=True)
class StepContext(Generic[Params, Runtime]):
    """Argument of a step function."""

    step: Step[Params, Runtime]
    folder: Path
    """The run's folder."""
    work: Path
    """Folder for unfinished work, which a later process resumes. Each cache key of the step has a separate folder."""
    home: Path
    """Folder that the study's paths are relative to."""
    progress: Progress

    @property
    def params(self) -> Params:
        """The step's parameters."""
        return self.step.params

    @property
    def runtime(self) -> Runtime:
        """The step's runtime settings."""
        return self.step.runtime


def function_name(function: Callable[..., Any]) -> str:
    """Return ``module:qualified name`` of a function."""
    return f"{function.__module__}:{function.__qualname__}"


def as_json(value: Any) -> Any:
    """Encode parameters as JSON: dataclasses and pydantic models field by field, functions by name.

    Raises:
        TypeError: The value contains an object that has no stable encoding, such as a path.
    """
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(as_json(item) for item in value)
    if callable(value):
        return function_name(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{type(value).__name__} cannot be part of a step's parameters")


def step_identity(step: AnyStep) -> str:
    """Hash the function, parameters and output names of a step, without the content of its inputs."""
    return digest([function_name(step.function), as_json(step.params), list(step.outputs)])


def write_step(step: AnyStep) -> dict[str, Any]:
    """Encode a step as JSON for :func:`read_step`. The runtime settings of build steps are left out."""
    return {
        "name": step.name,
        "kind": step.kind,
        "function": function_name(step.function),
        "params": as_json(step.params),
        "runtime": None if step.kind == "build" else as_json(step.runtime),
        "inputs": list(step.inputs),
        "outputs": list(step.outputs),
    }


def read_step(content: Mapping[str, Any]) -> AnyStep:
    """Decode a step that :func:`write_step` encoded.

    Raises:
        InputError: The content names a function outside merkhet.
        pydantic.ValidationError: The parameters or the runtime settings do not fit the function.
    """
    # Importing merkhet.__main__ would run a command.
    if not str(content["function"]).startswith(PACKAGE) or "__" in content["function"]:
        raise InputError(f"{content['function']!r} is not a step function of merkhet")
    for name in (*content["inputs"], *content["outputs"]):
        if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
            raise InputError(f"{name!r} is not a path within the run's folder")
    function = load_part(content["function"])
    params_type, runtime_type = get_args(get_type_hints(function)["context"])
    is_left_out = content["kind"] == "build"
    runtime = NOTHING if is_left_out else TypeAdapter(runtime_type).validate_python(content["runtime"])
    return Step(
        content["name"],
        content["kind"],
        function,
        TypeAdapter(params_type).validate_python(content["params"]),
        runtime,
        tuple(content["inputs"]),
        tuple(content["outputs"]),
    )
