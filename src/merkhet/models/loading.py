"""Loading: the ordinary Hugging Face path, quiet, and without foreign code unless it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from merkhet.core.errors import InputError, MerkhetError, first_line
from merkhet.models.chat.chat_settings import read_settings
from merkhet.models.model_lookup import WEIGHTS, ModelSpec, ResolvedModel, missing_models_extra, resolve_model
from merkhet.models.protocol import Model

if TYPE_CHECKING:
    import torch

LARGE = 2 * 2**30
"""Weights of so many bytes are used on a GPU in the precision they are kept in; smaller ones in float32."""


def load_model(model: str | ModelSpec | ResolvedModel) -> Model:
    """A model ready to be asked, from an alias, a folder, a hub name, a spec or what was resolved."""
    if isinstance(model, str):
        model = ModelSpec(model)
    resolved = resolve_model(model) if isinstance(model, ModelSpec) else model
    if resolved.path is None:
        part: Model = resolved.part
        return part
    try:
        return _load(resolved, resolved.path)
    except ImportError as error:
        if error.name in ("torch", "transformers"):
            raise missing_models_extra(error) from error
        raise


def _load(resolved: ResolvedModel, path: Path) -> Model:
    import transformers

    from merkhet.models._gguf import unpacked
    from merkhet.models.causal import CausalModel
    from merkhet.models.encoder import EncoderModel
    from merkhet.models.masked import MaskedModel

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    folder = unpacked(path) if path.suffix == ".gguf" else path
    spec = resolved.spec
    device = _device(spec.device)
    options: dict[str, Any] = {"trust_remote_code": spec.trust_remote_code}
    factory = {
        "masked": transformers.AutoModelForMaskedLM,
        "causal": transformers.AutoModelForCausalLM,
        "encoder": transformers.AutoModel,
    }[resolved.kind]
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        network = factory.from_pretrained(folder, dtype=_dtype(spec.dtype, device, folder), **options)
    except MerkhetError:
        raise
    except Exception as error:  # Broken files make the libraries raise anything.
        raise InputError(f"the model {resolved.name} ({path}) cannot be loaded: {first_line(error)}") from error
    network = network.to(device).eval()
    parts = (resolved.name, resolved.fingerprint, network, tokenizer)
    reading: dict[str, Any] = {"special_tokens": spec.special_tokens, "longest": spec.longest}
    if resolved.kind == "encoder":
        return EncoderModel(*parts, **reading)
    if resolved.kind == "masked":
        return MaskedModel(*parts, candidates=spec.candidates, **reading)
    chat = read_settings(resolved.name, None, spec.chat)
    return CausalModel(*parts, candidates=spec.candidates, chat=chat, **reading)


def _device(wanted: str) -> torch.device:
    import torch

    if wanted != "auto":
        return torch.device(wanted)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _dtype(wanted: str, device: torch.device, folder: Path) -> torch.dtype:
    import torch
    from transformers import AutoConfig

    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if wanted in known:
        return known[wanted]
    if wanted != "auto":
        raise InputError(f"dtype is {wanted!r}, and should be auto, {', '.join(known)}")
    weights = sum(file.stat().st_size for pattern in WEIGHTS for file in folder.glob(pattern))
    if device.type == "cpu" or weights < LARGE:
        return torch.float32  # Half precision is slower on most CPUs, and less exact everywhere.
    own = getattr(AutoConfig.from_pretrained(folder), "dtype", None)
    return own if own in known.values() else torch.float32
