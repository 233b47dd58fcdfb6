"""Functions that run on the workers of a Ray cluster: check models, receive files, load a model, ask."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.files import file_digest
from merkhet.core.records import Question
from merkhet.engine.asker import Asker, AskJob
from merkhet.engine.record_step import installed_versions
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.training.artifact import read_artifact


def report_models(
    _state: dict[str, Any], _cores: int, models: Sequence[Mapping[str, Any]], home: str
) -> list[dict[str, Any]]:
    """Report the fingerprint of each model on this machine, or why the model cannot be found."""
    return [
        _report_model(model["name"], ModelSpec(**model["spec"]), Path(home), model["fingerprint"]) for model in models
    ]


def _report_model(name: str, spec: ModelSpec, home: Path, fingerprint: str) -> dict[str, Any]:
    about = {"node": platform.node(), "name": name, "expected": fingerprint, "versions": installed_versions()}
    try:
        return {**about, "fingerprint": resolve_model(spec, home).fingerprint}
    except (MerkhetError, OSError, ImportError) as error:
        return {**about, "problem": str(error)}


def needed_files(job: AskJob) -> dict[str, str]:
    """Return the hash of each file that a worker needs, by its path in the run's folder.

    These are all files in the folders of the job's training records.
    """
    files = [file for name in job.artifacts for file in sorted((job.folder / name).parent.rglob("*")) if file.is_file()]
    return {str(file.relative_to(job.folder)): file_digest(file) for file in files}


def has_files(_state: dict[str, Any], _cores: int, folder: str, files: Mapping[str, str]) -> bool:
    """Check whether ``folder`` on this machine contains all ``files`` with the expected hashes."""
    paths = ((Path(folder) / name, digest) for name, digest in files.items())
    return all(path.is_file() and file_digest(path) == digest for path, digest in paths)


def receive_file(state: dict[str, Any], _cores: int, name: str, content: bytes) -> None:
    """Save a file of the run in a temporary folder that is removed when the worker ends."""
    temporary = state.setdefault("folder", tempfile.TemporaryDirectory(prefix="merkhet-"))
    path = Path(temporary.name) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def load(state: dict[str, Any], cores: int, job: AskJob) -> dict[str, Any]:
    """Load the model of a job, and report its fingerprint.

    If the fingerprint differs from the expected one, the model is reported but not loaded.
    """
    if "folder" in state:
        job = replace(job, folder=Path(state["folder"].name))
    params = job.params
    if params.learned:
        job = replace(job, learned=read_artifact(job.folder / params.learned))
        report = {"node": platform.node(), "name": params.name, "versions": installed_versions()}
    else:
        report = _report_model(params.name, job.model, job.home, params.fingerprint)
        if report.get("fingerprint") != params.fingerprint:
            return report
    resolved = job.resolved()
    if resolved.path is not None:
        import torch

        torch.set_num_threads(cores)
    state["asker"] = Asker(job, resolved)
    return {**report, "expected": params.fingerprint, "fingerprint": params.fingerprint}


def ask(state: dict[str, Any], _cores: int, block: Sequence[Question]) -> dict[str, Any]:
    """Ask a block of questions; return its answers and the statistics so far, or an error message."""
    asker: Asker = state["asker"]
    try:
        return {"answers": asker.ask(block), "statistics": asdict(asker.statistics)}
    except MerkhetError as error:
        return {"problem": str(error), "input": isinstance(error, InputError)}
