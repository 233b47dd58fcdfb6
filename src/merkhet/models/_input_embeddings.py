"""Input embeddings of a model on disk, read without its other weights where possible."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from merkhet.core.errors import InputError, first_line
from merkhet.models.model_lookup import ResolvedModel
from merkhet.models.protocol import FloatArray

_ROWS_AT_ONCE = 2**14


class InputEmbeddings:
    """Embeddings of texts: the mean of the input embeddings of their tokens.

    The embeddings are centred on the mean of the vocabulary, and each token's is scaled to length 1.
    """

    def __init__(self, resolved: ResolvedModel) -> None:
        assert resolved.path is not None
        folder = resolved.path
        if folder.suffix == ".gguf":
            from merkhet.models._gguf import unpack_gguf

            folder = unpack_gguf(folder)
        options: dict[str, Any] = {"trust_remote_code": resolved.spec.trust_remote_code}
        transformers.utils.logging.set_verbosity_error()
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
            weights = _read_weights(folder, resolved.kind, options)
        except Exception as error:  # The libraries raise any exception for broken files.
            raise InputError(
                f"the embeddings of {resolved.name} ({resolved.path}) cannot be read: {first_line(error)}"
            ) from error
        if weights is None:
            from merkhet.models.loading import load_model

            network: Any = load_model(resolved)
            weights = network.model.get_input_embeddings().weight.detach().cpu()
        self.weights = weights
        parts = (part.double().sum(dim=0) for part in weights.split(_ROWS_AT_ONCE))
        self.mean = sum(parts, start=torch.zeros(weights.shape[1], dtype=torch.float64)) / len(weights)
        self.needs_space = _space_belongs_to_word(self.tokenizer)

    def tokenize(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the sorted token ids of each text, as it is tokenized within a sentence.

        Texts of the same tokens are the same, whatever the order of the tokens.
        """
        spaced = [f" {text}" if self.needs_space else text for text in texts]
        rows = self.tokenizer(spaced, add_special_tokens=False)["input_ids"] if spaced else []
        return [tuple(sorted(ids)) for ids in rows]

    def embed(self, rows: Sequence[tuple[int, ...]]) -> FloatArray:
        """Return the embedding of each row of token ids, of length 1; 0 for a row without tokens."""
        vectors = np.zeros((len(rows), len(self.mean)))
        for index, ids in enumerate(rows):
            if ids:
                centred = self.weights[list(ids)].double() - self.mean
                units = centred / (centred.norm(dim=1, keepdim=True) + 1e-9)
                mean = units.mean(dim=0)
                vectors[index] = (mean / (mean.norm() + 1e-9)).numpy()
        return vectors


def _space_belongs_to_word(tokenizer: Any) -> bool:
    """Return whether a word's tokens begin with the space before it, unless the word begins the text.

    So it is in byte-level vocabularies. Others have no spaces, or add one at the beginning of a text.
    """
    splitter = getattr(getattr(tokenizer, "backend_tokenizer", None), "pre_tokenizer", None)
    if splitter is None:
        return False
    pieces = [piece for piece, _ in splitter.pre_tokenize_str("house house")]
    return bool(pieces[0] == "house" != pieces[-1])


def _read_weights(folder: Path, kind: str, options: dict[str, Any]) -> torch.Tensor | None:
    """Read the matrix of input embeddings from a safetensors file; None if its name there is unknown."""
    from safetensors import safe_open

    files = sorted(folder.glob("*.safetensors"))
    config = transformers.AutoConfig.from_pretrained(folder, **options)
    factory = {"masked": transformers.AutoModelForMaskedLM, "causal": transformers.AutoModelForCausalLM}.get(
        kind, transformers.AutoModel
    )
    try:
        with torch.device("meta"):
            network = factory.from_config(config, **options)
    except Exception:  # Code of others may need a real device; the network is then loaded with its weights.
        return None
    matrix = network.get_input_embeddings().weight
    prefix = f"{network.base_model_prefix}."
    names = [name for name, parameter in network.named_parameters(remove_duplicate=False) if parameter is matrix]
    known = {form for name in names for form in (name, name.removeprefix(prefix), prefix + name)}
    for file in files:
        with safe_open(file, "pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - The file is no mapping.
                if name in known:
                    weights: torch.Tensor = tensors.get_tensor(name)
                    return weights if weights.shape == matrix.shape else None
    return None
