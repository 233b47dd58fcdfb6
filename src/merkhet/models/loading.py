"""Loading of models from Hugging Face files; code from a model's folder runs only on request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from merkhet.core.errors import InputError, MerkhetError, first_line
from merkhet.models.chat._chat_settings import read_settings
from merkhet.models.model_lookup import WEIGHTS, ModelSpec, ResolvedModel, require_models_extra, resolve_model
from merkhet.models.protocol import Model

if TYPE_CHECKING:
    import torch

LARGE_WEIGHTS = 2 * 2**30
"""The size in bytes from which weights keep their dtype on a GPU; smaller weights are loaded in float32."""


def load_model(model: str | ModelSpec | ResolvedModel) -> Model:
    """Load a model; a string is an alias, a path, a hub name or ``chat:NAME@URL``."""
    if isinstance(model, str):
        model = ModelSpec(model)
    resolved = resolve_model(model) if isinstance(model, ModelSpec) else model
    if resolved.path is None:
        instance: Model = resolved.instance
        return instance
    with require_models_extra():
        return _load(resolved, resolved.path)


def _load(resolved: ResolvedModel, path: Path) -> Model:
    import transformers

    from merkhet.models._gguf import unpack_gguf
    from merkhet.models._network import EncoderModel
    from merkhet.models.causal import CausalModel
    from merkhet.models.masked import MaskedModel

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    folder = unpack_gguf(path) if path.suffix == ".gguf" else path
    spec = resolved.spec
    device = _device(spec.device)
    options: dict[str, Any] = {"trust_remote_code": spec.trust_remote_code}
    factory, model_class = {
        "masked": (transformers.AutoModelForMaskedLM, MaskedModel),
        "causal": (transformers.AutoModelForCausalLM, CausalModel),
        "encoder": (transformers.AutoModel, EncoderModel),
    }[resolved.kind]
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        network = factory.from_pretrained(folder, dtype=_dtype(spec, device, folder), **options)
    except MerkhetError:
        raise
    except Exception as error:  # The libraries raise any exception for broken files.
        raise InputError(f"the model {resolved.name} ({path}) cannot be loaded: {first_line(error)}") from error
    settings: dict[str, Any] = {
        "candidates": spec.candidates,
        "special_tokens": spec.special_tokens,
        "max_tokens": spec.longest,
    }
    if resolved.kind == "causal":
        settings["chat"] = read_settings(resolved.name, None, spec.chat)
    model: Model = model_class(resolved.name, resolved.fingerprint, network.to(device).eval(), tokenizer, **settings)
    return model


def _device(name: str) -> torch.device:
    import torch

    if name != "auto":
        return torch.device(name)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _dtype(spec: ModelSpec, device: torch.device, folder: Path) -> torch.dtype:
    import torch
    from transformers import AutoConfig

    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if spec.dtype in known:
        return known[spec.dtype]
    if spec.dtype != "auto":
        raise InputError(f"dtype must be auto, {', '.join(known)}, got {spec.dtype!r}")
    size = sum(file.stat().st_size for pattern in WEIGHTS for file in folder.glob(pattern))
    if device.type == "cpu" or size < LARGE_WEIGHTS:
        return torch.float32  # Half precision is slower on most CPUs, and less exact everywhere.
    stored = getattr(AutoConfig.from_pretrained(folder, trust_remote_code=spec.trust_remote_code), "dtype", None)
    return stored if stored in known.values() else torch.float32
