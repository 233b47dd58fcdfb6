"""Resolution of a model's name to its files, their hash and the model's kind, without importing torch."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merkhet.core.errors import InputError, did_you_mean, first_line
from merkhet.core.files import file_digest, path_exists
from merkhet.core.ids import digest
from merkhet.core.text_formats import parse_json
from merkhet.models.protocol import ASSOCIATION_PREFIX, ENDPOINT_PREFIX, LOCAL_CHAT_SETTINGS, RANDOM_PREFIX, Model

if TYPE_CHECKING:
    from merkhet.models.chat._chat_settings import ChatSettings

CHAT_KIND = "chat"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
# Files that do not change answers: descriptions, the record of training, and weights of other libraries.
_NOT_HASHED = ("learned.json", ".md", ".txt.license", ".gitattributes", ".h5", ".msgpack", ".onnx", ".ot")

_DEFAULT_READING: dict[str, Any] = {"candidates": "in place", "special_tokens": True, "longest": None, "chat": None}


@dataclass(frozen=True)
class ModelSpec:
    """The name and settings of a model, as written in a study."""

    model: str
    """An alias, a folder, a .gguf file, a hub name, ``file.py:name``, or ``chat:NAME@URL``."""
    label: str | None = None
    """The model's name in tables; by default derived from ``model``."""
    kind: str | None = None
    """masked, causal, encoder or chat; by default read from the model's configuration. ``chat`` is a causal model that
    only chat probes use."""
    dtype: str = "auto"
    device: str = "auto"
    revision: str | None = None
    trust_remote_code: bool = False
    """Whether Python code in the model's folder may run."""
    candidates: str = "in place"
    """``in place`` tokenizes a candidate in its sentence; ``apart`` tokenizes it alone, as many programs do."""
    special_tokens: bool = True
    """Whether special tokens are added to sentences; some published programs omit them."""
    longest: int | None = None
    """The maximum number of tokens of a cloze sentence, if below the model's maximum; not used to compare senses."""
    endpoint: str | None = None
    """The URL of the endpoint that serves the model."""
    chat: Mapping[str, Any] | None = None
    """Chat settings by name; see :class:`merkhet.models.chat._chat_settings.ChatSettings`."""

    @property
    def with_default_reading(self) -> ModelSpec:
        """A copy with default tokenization and chat settings, whose fingerprint depends on the model's files alone."""
        return replace(self, **_DEFAULT_READING)


@dataclass(frozen=True)
class ResolvedModel:
    """A model that was found, with the hash of its contents."""

    spec: ModelSpec
    name: str
    kind: str
    fingerprint: str
    source: str
    """The origin of the model: an alias, a path, a hub name or an endpoint."""
    path: Path | None = None
    """The model's folder or .gguf file; None if ``instance`` is set."""
    instance: Any = None
    """The model object if it needs no loading: a baseline, an endpoint or a model that a user wrote in Python."""


def resolve_model(spec: ModelSpec, folder: Path | None = None) -> ResolvedModel:
    """Find a model's files and hash them; relative paths are resolved against ``folder``.

    Raises:
        InputError: The model does not exist, or its settings are invalid.
    """
    if spec.candidates not in ("in place", "apart"):
        raise InputError(f"{spec.model}: candidates must be 'in place' or 'apart', got {spec.candidates!r}")
    resolved = _resolve(spec, folder)
    if spec.chat is not None and resolved.path is not None:
        from merkhet.models.chat._chat_settings import read_settings

        read_settings(spec.model, None, spec.chat)  # Raises InputError for unknown settings.
    for setting, default in _DEFAULT_READING.items() if resolved.path is not None else ():
        value = getattr(spec, setting)
        if value != default:
            resolved = replace(resolved, fingerprint=digest([resolved.fingerprint, setting, value]))
    return resolved


def _resolve(spec: ModelSpec, folder: Path | None) -> ResolvedModel:
    from merkhet.models import MODELS

    if has_endpoint(spec):
        return _resolve_endpoint(spec)
    if spec.model.startswith(RANDOM_PREFIX):
        from merkhet.models.random_init import parse_untrained_model

        untrained = parse_untrained_model(spec.model, lambda name: _find_folder(replace(spec, model=name), folder))
        untrained = replace(untrained, name=spec.label) if spec.label else untrained
        return _resolve_instance(spec, untrained, "random weights")
    if spec.model.startswith(ASSOCIATION_PREFIX):
        from merkhet.models.association_baseline import AssociationBaseline

        embedded = replace(spec, model=spec.model.removeprefix(ASSOCIATION_PREFIX), label=None).with_default_reading
        baseline = AssociationBaseline(resolve_model(embedded, folder), spec.label or spec.model)
        return _resolve_instance(spec, baseline, "merkhet")
    if is_registered_model(spec.model):
        instance = MODELS.get(spec.model, folder)()
        if isinstance(instance, Path):
            return _resolve_path(spec, instance, spec.label or spec.model, f"alias {spec.model}")
        if not isinstance(instance, Model):
            raise InputError(
                f"{spec.model} makes a {type(instance).__name__}; it must make a Model, or return the path of one"
            )
        if spec.label:
            instance = copy.copy(instance)
            instance.name = spec.label
        return _resolve_instance(spec, instance, "merkhet")
    path = Path(spec.model) if folder is None else folder / spec.model
    path = path if path_exists(path) else Path(spec.model)
    if path_exists(path):
        name = spec.label or path.resolve().name.removesuffix(".gguf").removesuffix(".csv")
        return _resolve_path(spec, path, name, str(path))
    if spec.model.startswith((".", "/", "~")) or spec.model.endswith((".gguf", ".csv")):
        raise InputError(f"there is no model folder or file {spec.model}; check the path")
    snapshot = _download(spec)
    return _resolve_path(spec, snapshot, spec.label or spec.model, f"hub {spec.model} {snapshot.name}")


def is_registered_model(name: str) -> bool:
    """Return whether a name is an alias or a reference to code, and not a path, a hub name or an endpoint."""
    from merkhet.models import MODELS

    return name in MODELS or (":" in name and not path_exists(Path(name)))


def has_endpoint(spec: ModelSpec) -> bool:
    """Return whether a model is behind an endpoint."""
    return spec.endpoint is not None or spec.model.startswith(ENDPOINT_PREFIX)


def chat_settings(spec: ModelSpec) -> ChatSettings:
    """Validate the chat settings of a model behind an endpoint; its key is not read.

    Raises:
        InputError: A setting or the address is invalid.
    """
    from merkhet.models.chat._chat_settings import parse_endpoint, read_settings

    name, endpoint = (spec.model, spec.endpoint) if spec.endpoint is not None else parse_endpoint(spec.model)
    return read_settings(name, endpoint, spec.chat)


def _resolve_instance(spec: ModelSpec, instance: Any, source: str) -> ResolvedModel:
    return ResolvedModel(spec, instance.name, instance.kind, instance.fingerprint, source, instance=instance)


def add_chat_defaults(spec: ModelSpec, defaults: Mapping[str, Any], seed: int) -> ModelSpec:
    """Add a study's chat settings to a model; settings of the model itself take precedence.

    A model behind an endpoint also gets the study's seed, unless ``defaults`` or the model sets another. A model on
    this machine only gets the settings in ``LOCAL_CHAT_SETTINGS``.
    """
    chat = {"seed": seed, **defaults}
    if not has_endpoint(spec):
        chat = {name: defaults[name] for name in LOCAL_CHAT_SETTINGS if name in defaults}
    chat = {**chat, **(spec.chat or {})}
    return replace(spec, chat=chat) if chat else spec


def _resolve_endpoint(spec: ModelSpec) -> ResolvedModel:
    from merkhet.models.chat._endpoint import EndpointModel

    if spec.kind not in (None, CHAT_KIND):
        raise InputError(f"{spec.model}: a model behind an endpoint is of the kind 'chat', got kind {spec.kind!r}")
    settings = chat_settings(spec)
    settings.read_key()  # Raises InputError for a missing key before any work is done.
    model = EndpointModel(spec.label or settings.name, settings)
    return _resolve_instance(spec, model, model.settings.endpoint)


def _find_folder(spec: ModelSpec, folder: Path | None) -> Path:
    """Find the folder of a model; the folder needs a configuration, but no weights."""
    path = Path(spec.model) if folder is None else folder / spec.model
    if (path / "config.json").is_file():
        return path
    resolved = _resolve(spec, folder).path
    return resolved if resolved is not None and resolved.is_dir() else Path(spec.model)


def _resolve_path(spec: ModelSpec, path: Path, name: str, source: str) -> ResolvedModel:
    if path.is_file():
        if path.suffix == ".csv":
            from merkhet.models.prediction_file import PredictionFile

            return _resolve_instance(spec, PredictionFile(name, path), source)
        if path.suffix != ".gguf":
            raise InputError(f"{path} is a file; a model is a folder with config.json and weights, or a .gguf file")
        return ResolvedModel(spec, name, "causal", digest(["gguf", file_digest(path)]), source, path)
    config_file = path / "config.json"
    if not config_file.is_file():
        gguf_files = sorted(path.glob("*.gguf"))
        if len(gguf_files) == 1:
            return _resolve_path(spec, gguf_files[0], name, source)
        raise InputError(
            f"{path} is not a model folder: it has no config.json. Name the folder that save_pretrained wrote."
        )
    if not any(file for pattern in WEIGHTS for file in path.glob(pattern)):
        raise InputError(f"{path} holds no weights (model.safetensors or pytorch_model.bin). Copy them there.")
    # A chat model on this machine is a causal one.
    kind = "causal" if spec.kind == CHAT_KIND else spec.kind or _kind(config_file)
    if kind not in ("masked", "causal", "encoder"):
        raise InputError(f"{name}: kind must be 'masked', 'causal' or 'encoder', got {kind!r}")
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.endswith(_NOT_HASHED))
    content = [[file.name, file_digest(file)] for file in files]
    return ResolvedModel(spec, name, kind, digest(["folder", kind, content]), source, path)


def _kind(config_file: Path) -> str:
    config = parse_json(config_file.read_bytes(), str(config_file), "Copy it again.", strict=False)
    names = config.get("architectures") or [] if isinstance(config, dict) else None
    if not isinstance(names, list):
        raise InputError(f"{config_file} is not a model's config: it must list 'architectures'. Copy it again.")
    architectures = [str(name) for name in names]
    if any(name.endswith("ForMaskedLM") for name in architectures):
        return "masked"
    if any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in architectures):
        return "causal"
    if any(name.endswith("Model") for name in architectures):
        return "encoder"
    listed = ", ".join(architectures) or "no architecture"
    raise InputError(
        f"{config_file} names {listed}, which has no language-model head that merkhet knows; "
        "give the kind in the study ({model: ..., kind: masked} or causal) if it has one, "
        "or use it as an encoder (kind: encoder), which only compares senses"
    )


def _download(spec: ModelSpec) -> Path:
    from merkhet.models import MODELS

    hint = did_you_mean(spec.model, MODELS)
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise InputError(
            f"no model called {spec.model!r}: not an alias ({hint}), and no folder of that name"
        ) from error
    patterns = ["*.json", "*.txt", "*.model", "*.safetensors"]
    if spec.trust_remote_code:
        patterns.append("*.py")
    try:
        folder = Path(snapshot_download(spec.model, revision=spec.revision, allow_patterns=patterns))
        if not any(folder.glob("*.safetensors")):
            folder = Path(snapshot_download(spec.model, revision=spec.revision, allow_patterns=[*patterns, WEIGHTS[1]]))
        return folder
    except Exception as error:
        offline = os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on")
        reason = "the model hub is switched off (HF_HUB_OFFLINE)" if offline else first_line(error)
        raise InputError(
            f"no model called {spec.model!r}: not an alias ({hint}), not a folder, and not on the hub: {reason}"
        ) from error


@contextmanager
def require_models_extra() -> Iterator[None]:
    """Turn an ImportError for torch or transformers into an InputError that says what to install."""
    try:
        yield
    except ImportError as error:
        if error.name not in ("torch", "transformers"):
            raise
        raise InputError(
            f"asking a model needs {error.name}, which is not installed: pip install 'merkhet[models]'"
        ) from error
