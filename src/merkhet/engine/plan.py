"""Plans: the steps of a study with declared inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
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
"""Package of all step functions; a file that names any other function is refused."""


@dataclass(frozen=True)
class Nothing:
    """Parameters or runtime settings of a step that has none."""


NOTHING = Nothing()


@dataclass(frozen=True)
class Step(Generic[Params, Runtime]):
    """One step of a plan: a function with its parameters, the files it reads and the files it writes.

    A step runs again when its function, its parameters, the content of its inputs or the version change. Files are
    named relative to the run's folder. What is not in a file but affects the result (a model's weights, a knowledge
    file elsewhere) is in ``params`` as a hash.
    """

    name: str
    """Unique name within the plan, as logs and records show it."""
    kind: StepKind
    """Stage of the run that the step belongs to."""
    function: Callable[[StepContext[Params, Runtime]], None]
    """Function that does the work."""
    params: Params
    """Frozen dataclass of everything that affects the result."""
    runtime: Runtime
    """Frozen dataclass of settings that do not affect the result: devices, engines, paths."""
    inputs: tuple[str, ...] = ()
    """Files that the function reads."""
    outputs: tuple[str, ...] = ()
    """Files that the function writes."""
    summarize: Callable[[Path], Sequence[str]] | None = None
    """Lines to print when the step is done, made from the run's folder."""


AnyStep: TypeAlias = Step[Any, Any]


@dataclass(frozen=True)
class Plan:
    """The steps of a study, in execution order."""

    steps: tuple[AnyStep, ...]
    then: Callable[[Path], Plan] | None = None
    """Makes the following plan from the run's folder, if it depends on what these steps write."""


@dataclass(frozen=True)
class StepContext(Generic[Params, Runtime]):
    """Argument of a step function."""

    step: Step[Params, Runtime]
    folder: Path
    """The run's folder."""
    work: Path
    """Folder for unfinished work of this step with these inputs; survives a kill."""
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
    """Encode parameters as JSON: dataclasses and models by field, functions by name.

    Raises:
        TypeError: The value holds something without a stable encoding, such as an object or a path.
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
    """Hash what a step does, without the content of its inputs."""
    return digest([function_name(step.function), as_json(step.params), list(step.outputs)])


def write_step(step: AnyStep) -> dict[str, Any]:
    """Encode a step as JSON that :func:`read_step` reads; runtime settings of build steps are left out."""
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
    """Decode a step that :func:`write_step` wrote.

    Raises:
        InputError: The content names a function outside merkhet.
        pydantic.ValidationError: The parameters do not fit the function.
    """
    if not str(content["function"]).startswith(PACKAGE):
        raise InputError(f"{content['function']!r} is not a step function of merkhet")
    function = load_part(content["function"])
    params_type, runtime_type = get_args(get_type_hints(function)["context"])
    runtime = NOTHING if content["runtime"] is None else TypeAdapter(runtime_type).validate_python(content["runtime"])
    return Step(
        content["name"],
        content["kind"],
        function,
        TypeAdapter(params_type).validate_python(content["params"]),
        runtime,
        tuple(content["inputs"]),
        tuple(content["outputs"]),
    )
