"""What a worker of a Ray cluster does: look for a model, load it, and ask it one block of questions after another."""

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


def look(_state: dict[str, Any], _cores: int, models: Sequence[Mapping[str, Any]], home: str) -> list[dict[str, Any]]:
    """What there is of some models on this machine: of each its fingerprint, or what is wrong with it."""
    return [_found(one["name"], ModelSpec(**one["spec"]), Path(home), one["fingerprint"]) for one in models]


def _found(name: str, spec: ModelSpec, home: Path, wanted: str) -> dict[str, Any]:
    about = {"node": platform.node(), "name": name, "wanted": wanted, "versions": installed_versions()}
    try:
        return {**about, "fingerprint": resolve_model(spec, home).fingerprint}
    except (MerkhetError, OSError, ImportError) as error:
        return {**about, "problem": str(error)}


def needed_files(job: AskJob) -> dict[str, str]:
    """The files of the run that a worker needs, with their hashes: what was learned, with all that lies beside it."""
    files = [file for name in job.artifacts for file in sorted((job.folder / name).parent.rglob("*")) if file.is_file()]
    return {str(file.relative_to(job.folder)): file_digest(file) for file in files}


def has_files(_state: dict[str, Any], _cores: int, folder: str, files: Mapping[str, str]) -> bool:
    """Whether the run's folder is on this machine too, with these files in it."""
    found = ((Path(folder) / name, wanted) for name, wanted in files.items())
    return all(file.is_file() and file_digest(file) == wanted for file, wanted in found)


def take_file(state: dict[str, Any], _cores: int, name: str, content: bytes) -> None:
    """Keep a file of the run that is not on this machine, in a folder that goes with the worker."""
    kept = state.setdefault("folder", tempfile.TemporaryDirectory(prefix="merkhet-"))
    file = Path(kept.name) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def load(state: dict[str, Any], cores: int, job: AskJob) -> dict[str, Any]:
    """Look for the model of a job, and load it if it is the right one; says what is wrong otherwise."""
    if "folder" in state:
        job = replace(job, folder=Path(state["folder"].name))
    params = job.params
    if params.learned:
        job = replace(job, learned=read_artifact(job.folder / params.learned))
        report = {"node": platform.node(), "name": params.name, "versions": installed_versions()}
    else:
        report = _found(params.name, job.model, job.home, params.fingerprint)
        if report.get("fingerprint") != params.fingerprint:
            return report
    resolved = job.resolved()
    if resolved.path is not None:
        import torch

        torch.set_num_threads(cores)
    state["asker"] = Asker(job, resolved)
    return {**report, "wanted": params.fingerprint, "fingerprint": params.fingerprint}


def ask(state: dict[str, Any], _cores: int, block: Sequence[Question]) -> dict[str, Any]:
    """The answers to a block, with what asking took so far; an error that a user can mend as words."""
    asker: Asker = state["asker"]
    try:
        return {"answers": asker.ask(block), "effort": asdict(asker.effort)}
    except MerkhetError as error:
        return {"problem": str(error), "input": isinstance(error, InputError)}
