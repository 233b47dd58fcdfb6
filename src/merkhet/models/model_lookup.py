"""From what a user calls a model to its files, their hash and its kind; no torch is needed for that."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, MerkhetError, did_you_mean
from merkhet.core.files import file_digest, path_exists
from merkhet.core.ids import digest
from merkhet.core.text_formats import parse_json
from merkhet.models.protocol import ENDPOINT, LOCAL_CHAT, RANDOM_WEIGHTS

CHAT_KIND = "chat"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
# What decides no answer: descriptions, the record of learning, and weights of other libraries.
_IGNORED = ("learned.json", ".md", ".txt.license", ".gitattributes", ".h5", ".msgpack", ".onnx", ".ot")


_USUAL_READING: dict[str, Any] = {"candidates": "in place", "special_tokens": True, "longest": None, "chat": None}


@dataclass(frozen=True)
class ModelSpec:
    """A model as a study names it: an alias, a folder, a .gguf file, a hub name, ``file.py:name``, or one behind an
    ``endpoint`` (an address, or ``chat:NAME@URL`` for both).

    ``label`` is what it is called in tables. ``kind`` (masked, causal, encoder) is read from the model's own
    configuration where it is not given; ``chat`` is a causal model that is talked to and nothing else. Code that comes
    with a model runs only with ``trust_remote_code``.

    How it reads: ``candidates`` are tokenised in place in their sentence, or apart from it, as many published programs
    do. ``special_tokens`` says whether sentences are read with the model's own special tokens around them; published
    programs may leave them out. Clozes of more than ``longest`` tokens are unusable, where that is less than the model
    takes; senses are compared in sentences of any length that it takes. ``chat`` says how it is talked to
    (:class:`merkhet.models.chat.chat_settings.ChatSettings`).
    """

    model: str
    label: str | None = None
    kind: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    revision: str | None = None
    trust_remote_code: bool = False
    candidates: str = "in place"
    special_tokens: bool = True
    longest: int | None = None
    endpoint: str | None = None
    chat: Mapping[str, Any] | None = None

    @property
    def with_default_reading(self) -> ModelSpec:
        """The same model with all that says how it reads as it is by default; its fingerprint is of its files alone."""
        return replace(self, **_USUAL_READING)


@dataclass(frozen=True)
class ResolvedModel:
    """A model that is there: ``path`` holds its files, or ``part`` makes it (baselines and users' own)."""

    spec: ModelSpec
    name: str
    kind: str
    fingerprint: str
    source: str
    path: Path | None = None
    part: Any = None


def resolve_model(spec: ModelSpec, folder: Path | None = None) -> ResolvedModel:
    """Find a model's files and hash them; refuses what is not there, in one line."""
    if spec.candidates not in ("in place", "apart"):
        raise InputError(f"{spec.model}: candidates is {spec.candidates!r}, and should be 'in place' or 'apart'")
    resolved = _resolve(spec, folder)
    if spec.chat is not None and resolved.path is not None:
        from merkhet.models.chat.chat_settings import read_settings

        read_settings(spec.model, None, spec.chat)  # Refuses what is no setting.
    for setting, usual in _USUAL_READING.items() if resolved.path is not None else ():
        own = getattr(spec, setting)
        if own != usual:
            resolved = replace(resolved, fingerprint=digest([resolved.fingerprint, setting, own]))
    return resolved


def _resolve(spec: ModelSpec, folder: Path | None) -> ResolvedModel:
    from merkhet.models import MODELS

    if spec.endpoint is not None or spec.model.startswith(ENDPOINT):
        return _behind_endpoint(spec)
    if spec.model.startswith(RANDOM_WEIGHTS):
        from merkhet.models.random_init import parse_untrained_model

        blank = parse_untrained_model(spec.model, lambda name: _folder_of(replace(spec, model=name), folder))
        blank = replace(blank, name=spec.label) if spec.label else blank
        return ResolvedModel(spec, blank.name, blank.kind, blank.fingerprint, "random weights", part=blank)
    if spec.model in MODELS or (":" in spec.model and not path_exists(Path(spec.model))):
        made = MODELS.get(spec.model, folder)()
        if not isinstance(made, Path):
            if spec.label:
                made = copy.copy(made)
                made.name = spec.label
            return ResolvedModel(spec, made.name, made.kind, made.fingerprint, "merkhet", part=made)
        return _from_path(spec, made, spec.label or spec.model, f"alias {spec.model}")
    path = Path(spec.model) if folder is None else folder / spec.model
    path = path if path_exists(path) else Path(spec.model)
    if path_exists(path):
        name = spec.label or path.resolve().name.removesuffix(".gguf").removesuffix(".csv")
        return _from_path(spec, path, name, str(path))
    if spec.model.startswith((".", "/", "~")) or spec.model.endswith((".gguf", ".csv")):
        raise InputError(f"there is no model folder or file {spec.model}")
    fetched = _from_hub(spec)
    return _from_path(spec, fetched, spec.label or spec.model, f"hub {spec.model} {fetched.name}")


def add_chat_defaults(spec: ModelSpec, usual: Mapping[str, Any], seed: int) -> ModelSpec:
    """The model with the chat settings that a study has for all of its models, as far as they are for this one.

    A model behind an endpoint is sent the study's seed, if no other is given.
    """
    behind = spec.endpoint is not None or spec.model.startswith(ENDPOINT)
    own = {"seed": seed, **usual}
    if not behind:
        own = {name: usual[name] for name in LOCAL_CHAT if name in usual}
    chat = {**own, **(spec.chat or {})}
    return replace(spec, chat=chat) if chat else spec


def _behind_endpoint(spec: ModelSpec) -> ResolvedModel:
    from merkhet.models.chat.chat_settings import from_short_form, read_settings
    from merkhet.models.chat.endpoint import EndpointModel

    name, endpoint = (spec.model, spec.endpoint) if spec.endpoint is not None else from_short_form(spec.model)
    if spec.kind not in (None, CHAT_KIND):
        raise InputError(f"{spec.model}: what is behind an endpoint is of the kind 'chat', not {spec.kind!r}")
    settings = read_settings(name, endpoint, spec.chat)
    settings.secret()  # Refuses a key that is not there before anything is done.
    made = EndpointModel(spec.label or name, settings)
    return ResolvedModel(spec, made.name, made.kind, made.fingerprint, made.settings.endpoint, part=made)


def _folder_of(spec: ModelSpec, folder: Path | None) -> Path:
    """The folder of a model whose weights are not wanted."""
    place = Path(spec.model) if folder is None else folder / spec.model
    if (place / "config.json").is_file():
        return place
    found = _resolve(spec, folder).path
    return found if found is not None and found.is_dir() else Path(spec.model)


def _from_path(spec: ModelSpec, path: Path, name: str, source: str) -> ResolvedModel:
    if path.is_file():
        if path.suffix == ".csv":
            from merkhet.models.prediction_file import PredictionFile

            made = PredictionFile(name, path)
            return ResolvedModel(spec, name, made.kind, made.fingerprint, source, part=made)
        if path.suffix != ".gguf":
            raise InputError(f"{path} is a file, and a model is a folder with config.json and weights, or a .gguf file")
        return ResolvedModel(spec, name, "causal", digest(["gguf", file_digest(path)]), source, path)
    config_file = path / "config.json"
    if not config_file.is_file():
        packed = sorted(path.glob("*.gguf"))
        if len(packed) == 1:
            return _from_path(spec, packed[0], name, source)
        raise InputError(
            f"{path} is no model folder: it has no config.json. Name the folder that save_pretrained wrote."
        )
    if not any(found for pattern in WEIGHTS for found in path.glob(pattern)):
        raise InputError(f"{path} holds no weights (model.safetensors or pytorch_model.bin). Copy them there.")
    # A model here that is to be talked to is a causal one.
    kind = "causal" if spec.kind == CHAT_KIND else spec.kind or _kind(config_file)
    if kind not in ("masked", "causal", "encoder"):
        raise InputError(f"{name}: kind is {kind!r}, and should be 'masked', 'causal' or 'encoder'")
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.endswith(_IGNORED))
    content = [[file.name, file_digest(file)] for file in files]
    return ResolvedModel(spec, name, kind, digest(["folder", kind, content]), source, path)


def _kind(config_file: Path) -> str:
    config = parse_json(config_file.read_bytes(), str(config_file), "Copy it anew.")
    named = config.get("architectures") or [] if isinstance(config, dict) else None
    if not isinstance(named, list):
        raise InputError(f"{config_file} is no model's config: it should name 'architectures'. Copy it anew.")
    architectures = [str(name) for name in named]
    if any(name.endswith("ForMaskedLM") for name in architectures):
        return "masked"
    if any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in architectures):
        return "causal"
    if any(name.endswith("Model") for name in architectures):
        return "encoder"
    found = ", ".join(architectures) or "no architecture"
    raise InputError(
        f"{config_file} names {found}, which has no language-model head that merkhet knows; "
        "give the kind in the study ({model: ..., kind: masked} or causal) if it has one, "
        "or ask it as an encoder (kind: encoder), which can be compared and nothing else"
    )


def _from_hub(spec: ModelSpec) -> Path:
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
        reason = "the model hub is switched off (HF_HUB_OFFLINE)" if _offline() else str(error).strip().splitlines()[0]
        raise InputError(
            f"no model called {spec.model!r}: not an alias ({hint}), not a folder, and not on the hub: {reason}"
        ) from error


def _offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on")


def missing_models_extra(error: ImportError) -> MerkhetError:
    """The error for a machine without torch or transformers."""
    return InputError(f"asking a model needs {error.name}, which is not installed: pip install 'merkhet[models]'")
