"""Studies: validated settings of a suite, models, probes, metrics and options, read from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, field_validator

from merkhet.analysis.option_models import validate
from merkhet.core.credentials import register_credentials
from merkhet.core.errors import FaultList, InputError, did_you_mean, located
from merkhet.core.files import read_yaml
from merkhet.core.text import truncate
from merkhet.core.text_formats import parse_yaml
from merkhet.models.model_lookup import ModelSpec

_SETTING_LENGTH = 200
"""Characters of a setting that error messages show."""


class ModelChoice(BaseModel):
    """A model of a study. The keys are those of :class:`ModelSpec`, and ``corpus``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    label: str | None = None
    kind: Literal["masked", "causal", "encoder", "chat"] | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: str = "auto"
    revision: str | None = None
    trust_remote_code: bool = False
    candidates: Literal["in place", "apart"] = "in place"
    special_tokens: bool = True
    longest: int | None = Field(default=None, ge=1)
    endpoint: str | None = None
    chat: dict[str, Any] | None = None
    corpus: str | None = None
    """Training corpus, which tables show and which changes no answer."""

    def spec(self) -> ModelSpec:
        """Convert to a :class:`ModelSpec`."""
        return ModelSpec(**self.model_dump(exclude={"corpus"}))


class ProbeChoice(BaseModel):
    """A probe of a study, with its options and its methods.

    ``methods`` has lists of methods by name or kind of model. Other models use their default method.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    probe: str
    methods: dict[str, list[str]] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)


class LearningChoice(BaseModel):
    """The training of a study: learner, settings, number of trainings, maximum number of training items per task."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    learner: str = "cloze"
    settings: dict[str, Any] = Field(default_factory=dict)
    limit: int | None = Field(default=None, ge=1)
    trainings: int = Field(default=1, ge=1, le=100)
    """Number of trainings of every model, each with another seed."""


class Study(BaseModel):
    """A study: all settings of a run, with its suite, data, models, probes, training, metrics and report."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str
    title: str | None = None
    data: str | None = None
    knowledge: list[str] = Field(default_factory=list)
    tasks: list[str] = Field(default_factory=list)
    limit: int | None = Field(default=None, ge=1)
    seed: int = 0
    models: list[ModelChoice] = Field(default_factory=list)
    probes: list[ProbeChoice] = Field(default_factory=list)
    learning: LearningChoice | None = None
    controls: list[Literal["association", "subject-blind"]] | None = None
    """Controls to ask beside the questions; None asks all of models in files, and none of other models."""
    metrics: list[str] = Field(default_factory=list)
    groups: list[str] = Field(default_factory=lambda: ["domain", "relation"])
    options: dict[str, Any] = Field(default_factory=dict)
    chat: dict[str, Any] = Field(default_factory=dict)
    report: Literal["html", "none"] = "html"

    @property
    def trains(self) -> bool:
        """Whether the study needs questions of the splits train and dev, for training or as examples in prompts."""
        return self.learning is not None or self.shots > 0

    @property
    def trainings(self) -> int:
        """Number of trainings of every model: ``learning.trainings``, or ``options.trainings`` if that is larger."""
        return max(self.learning.trainings if self.learning else 1, int(self.options.get("trainings") or 1))

    @property
    def shots(self) -> int:
        """Maximum number of examples in a prompt."""
        return max((int(choice.options.get("shots") or 0) for choice in self.probes), default=0)

    @field_validator("models", mode="before")
    @classmethod
    def _models(cls, value: Any) -> Any:
        return _named(value, "model")

    @field_validator("probes", mode="before")
    @classmethod
    def _probes(cls, value: Any) -> Any:
        return _named(value, "probe")

    @field_validator("learning", mode="before")
    @classmethod
    def _learning(cls, value: Any) -> Any:
        return {"learner": value} if isinstance(value, str) else value

    @field_validator("knowledge", "tasks", "controls", "metrics", "groups", mode="before")
    @classmethod
    def _lists(cls, value: Any) -> Any:
        return _listed(value)


GROUPS = ("domain", "relation", "template", "rule", "split", "nearness", "language", "mask", "conflict", "form")
"""Group columns of scores. Some are columns of the questions; :mod:`merkhet.engine.score_step` derives the others."""
STATEMENT_GROUPS = ("mask", "relation", "conflict", "cardinality", "template")
"""Group columns of scores in runs whose models memorize statements."""


def make_study(content: Mapping[str, Any], where: str) -> Study:
    """Validate the content of a study.

    Args:
        where: Origin of the content, for error messages.

    Raises:
        InputError: A key is unknown or a value is wrong.
    """
    with located(where):
        if "trust" in content:
            raise InputError(
                "'trust' is not a key of a study, because its author cannot give your consent; use --trust"
            )
        study = validate(Study, content)
        faults = FaultList()
        for group in study.groups:
            if group not in GROUPS:
                faults.add(f"scores cannot be grouped by {group!r}; {did_you_mean(group, GROUPS)}")
        faults.refuse()
    return study


def read_study(path: Path) -> dict[str, Any]:
    """Read the content of a study file without validating its keys.

    Raises:
        InputError: The file does not exist, or is not a YAML mapping.
    """
    if not path.is_file():
        raise InputError(f"there is no study {path}; name a suite or an existing YAML file")
    content = read_yaml(path, "a study")
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a study; it must hold keys such as 'suite' and 'models'")
    return content


def apply_setting(content: dict[str, Any], setting: str) -> None:
    """Apply a ``key=value`` setting to the content of a study.

    Dots in the key separate nested keys. The value is parsed as YAML.
    """
    register_credentials([setting])
    key, equals, text = setting.partition("=")
    shown = truncate(setting, _SETTING_LENGTH)
    if not equals or not key:
        raise InputError(f"--set {shown}: write key=value, as in --set seed=3")
    value = parse_yaml(text, f"--set {shown}: the value")
    *path, last = key.split(".")
    for part in path:
        content = content.setdefault(part, {})
        if not isinstance(content, dict):
            raise InputError(f"--set {shown}: {truncate(part, _SETTING_LENGTH)!r} holds no keys")
    content[last] = value


def study_yaml(study: Study) -> str:
    """Encode a study as YAML, including default values."""
    return yaml.safe_dump(study.model_dump(), sort_keys=False, allow_unicode=True)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


def _named(value: Any, key: str) -> Any:
    """Turn each name in a list, or a single name, into the mapping ``{key: name}``.

    A value that is neither a name, a mapping nor a list is returned unchanged, and fails validation later.
    """
    items = _listed(value)
    return [{key: item} if isinstance(item, str) else item for item in items] if isinstance(items, list) else items
