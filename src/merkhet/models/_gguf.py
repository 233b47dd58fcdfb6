"""Unpacking of GGUF files into model folders, which are cached because reading GGUF is slow."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path

from merkhet.core.errors import InputError, first_line
from merkhet.core.files import cache_folder, disk_full_error, file_digest, is_disk_full, temporary_path


def unpack_gguf(path: Path) -> Path:
    """Return the folder with the file's float32 weights and tokenizer; on first use, create it atomically."""
    target = cache_folder() / "gguf" / file_digest(path)[:32]
    if target.is_dir():
        return target
    temporary = temporary_path(target)
    try:
        _unpack(path, temporary)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.rename(target)
        except OSError:
            if not target.is_dir():  # Another process may have created the folder first.
                raise
    except OSError as error:
        raise (disk_full_error(target) if is_disk_full(error) else error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _unpack(path: Path, folder: Path) -> None:
    import torch
    from safetensors.torch import save_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        with contextlib.redirect_stderr(io.StringIO()):  # The library's progress bar would break merkhet's.
            # Without this, the library asks on standard input whether code beside the file may run.
            options = {"gguf_file": path.name, "trust_remote_code": False}
            tokenizer = AutoTokenizer.from_pretrained(path.parent, **options)
            model = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **options)
    except ImportError as error:
        raise InputError(
            f"{path}: reading GGUF needs the packages gguf and accelerate: pip install 'merkhet[models]'"
        ) from error
    except Exception as error:  # The libraries raise anything for broken files.
        if isinstance(error, OSError) and is_disk_full(error):
            raise
        raise InputError(f"{path} cannot be read as a GGUF model: {first_line(error)}. Download it again.") from error
    folder.mkdir(parents=True)
    config = model.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # The weights are plain float32 from here on.
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    save_model(model, str(folder / "model.safetensors"), metadata={"format": "pt"})
