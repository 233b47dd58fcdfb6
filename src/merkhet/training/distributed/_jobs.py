"""Distributed training jobs, which merkhet starts with torchrun.

A job is a folder that all workers read; the workers report progress over a pipe. By default all workers run on this
machine. For several machines, set ``MERKHET_TORCHRUN`` to torchrun's options on this machine, and start
``torchrun … -m merkhet.training JOB`` by hand on the other machines.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from merkhet.core import interrupts
from merkhet.core.child_python import python_module
from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.files import scratch_folder, write_json
from merkhet.core.progress import Progress, SilentProgress
from merkhet.core.recall_schemas import STATEMENTS, SYMBOLS
from merkhet.core.schemas import read_table, write_table
from merkhet.core.version import __version__
from merkhet.models.batching import release_memory
from merkhet.models.loading import load_model
from merkhet.models.masked import MaskedModel
from merkhet.models.model_lookup import ModelSpec
from merkhet.models.protocol import Model
from merkhet.models.random_init import Shape, UntrainedModel
from merkhet.training import PRETRAIN
from merkhet.training.artifact import RECORD, TrainingArtifact, read_artifact
from merkhet.training.distributed._process_group import ProcessGroup, join_process_group

JOB = "job.json"
TORCHRUN = "MERKHET_TORCHRUN"
"""Environment variable with torchrun's options, for jobs on several machines."""
_WATCHED = "MERKHET_WATCHED"
"""Environment variable that makes a worker exit when its standard input closes, which means that its parent ended."""
_PROGRESS, _ERROR = "merkhet-progress ", "merkhet-error "
_LAST_LINES = 60
_TABLES = {"statements": STATEMENTS, "symbols": SYMBOLS}


def run_job(
    learner: str,
    start: Model | UntrainedModel,
    folder: Path,
    *,
    settings: Any,
    seed: int,
    progress: Progress | None,
    checkpoints: Path | None,
    device: str = "auto",
    corpus: Path | None = None,
    **tables: pa.Table,
) -> TrainingArtifact:
    """Train a model with ``settings.processes`` processes, each on its share of every batch.

    Pre-training needs ``corpus``. Memorizing needs ``tables``: the statements and the symbols.
    """
    with _job_folder(checkpoints) as job:
        for name, table in tables.items():
            write_table(_TABLES[name], table, job / f"{name}.parquet")
        content = {
            "merkhet": __version__,
            "learner": learner,
            "start": _describe_start(start, job),
            "settings": asdict(settings),
            "seed": seed,
            "folder": str(folder.resolve()),
            "checkpoints": str(checkpoints.resolve()) if checkpoints else None,
            "device": device,
            "corpus": str(corpus.resolve()) if corpus else None,
        }
        write_json(job / JOB, content)
        _run(job, settings.processes, progress or SilentProgress(), resumable=checkpoints is not None)
    return read_artifact(folder / RECORD)


@contextmanager
def _job_folder(checkpoints: Path | None) -> Iterator[Path]:
    """Yield a folder for the files of a job: within ``checkpoints`` if other machines take part, else temporary."""
    if os.environ.get(TORCHRUN) and checkpoints:
        job = checkpoints.resolve() / "job"
        shutil.rmtree(job, ignore_errors=True)
        job.mkdir(parents=True)
        yield job
        shutil.rmtree(job, ignore_errors=True)
        return
    with scratch_folder("job") as job:
        yield job


def _describe_start(start: Model | UntrainedModel, job: Path) -> dict[str, Any]:
    if isinstance(start, UntrainedModel):
        return {"blank": {**asdict(start), "folder": str(start.folder.resolve()) if start.folder else None}}
    assert isinstance(start, MaskedModel)
    start.model.save_pretrained(job / "start")
    start.tokenizer.save_pretrained(job / "start")
    if start.model.device.type == "cuda":  # The workers need the GPU memory.
        start.model.cpu()
        release_memory()
    return {"masked": str(job / "start"), "name": start.name, "fingerprint": start.fingerprint}


def _run(job: Path, count: int, progress: Progress, *, resumable: bool) -> None:
    options = shlex.split(os.environ.get(TORCHRUN, "")) or ["--standalone", f"--nproc-per-node={count}"]
    if os.environ.get(TORCHRUN):
        command = shlex.join(["torchrun", *options, "-m", "merkhet.training", str(job)])
        progress.say(f"  on each of the other machines: {command}")
    threads = str(max(1, (os.cpu_count() or count) // count))
    # torch.distributed.run is torchrun. Its standard input closes when this process ends, even if it is killed. An
    # interrupted torchrun leaves its temporary files, so it gets a folder that this process removes.
    with (
        scratch_folder("torchrun") as temporary,
        subprocess.Popen(
            [
                *python_module("torch.distributed.run"),
                *options,
                "--no-python",
                *python_module("merkhet.training"),
                str(job),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"OMP_NUM_THREADS": threads, **os.environ, _WATCHED: "1", "TMPDIR": str(temporary)},
        ) as process,
    ):
        assert process.stdout is not None and process.stdin is not None
        try:
            error, last_lines = _follow(process.stdout, progress)
        except BaseException:
            process.terminate()
            raise
        finally:
            process.stdin.close()
    if process.returncode:
        if error:
            raise (InputError if error["input"] else MerkhetError)(error["message"])
        hint = " The last checkpoint is kept: run it again, with any number of processes." if resumable else ""
        raise MerkhetError(f"one of {count} training processes has failed: {_failure_reason(last_lines)}.{hint}")


def _follow(lines: IO[str], progress: Progress) -> tuple[Mapping[str, Any] | None, deque[str]]:
    """Forward the workers' progress; return the first error that merkhet raised, and the last lines of other output."""
    error: Mapping[str, Any] | None = None
    last_lines: deque[str] = deque(maxlen=_LAST_LINES)
    for line in lines:
        if line.startswith(_PROGRESS):
            method, arguments = json.loads(line.removeprefix(_PROGRESS))
            getattr(progress, method)(*arguments)
        elif line.startswith(_ERROR):
            error = error or json.loads(line.removeprefix(_ERROR))
        elif line.strip():
            last_lines.append(line.strip())
    return error, last_lines


def _failure_reason(lines: deque[str]) -> str:
    """Return the reason for a failure (a signal or a Python exception) from the output of the workers and torchrun."""
    killed = [line.partition(": ")[2] for line in lines if "traceback : Signal" in line]
    raised = [line for line in lines if "Error" in line and "ChildFailedError" not in line]
    reason = (killed[-1:] or raised[-1:] or list(lines)[-1:] or ["it printed nothing"])[0]
    return reason.rstrip(".")


def _emit(prefix: str, content: Any) -> None:
    sys.stdout.write(prefix + json.dumps(content) + "\n")
    sys.stdout.flush()


class _PipeProgress:
    """Progress that is written to standard output, where the parent process reads it line by line."""

    def __getattr__(self, method: str) -> Any:
        return lambda *arguments: _emit(_PROGRESS, [method, arguments])


def run_worker(job: Path) -> None:
    """Run one worker of a job; write an error of merkhet as one line for the parent process, and exit."""
    if os.environ.get(_WATCHED):
        threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        content = json.loads((job / JOB).read_text(encoding="utf-8"))
        with join_process_group(content["device"]) as processes:
            import torch

            processes.require_agreement({"version of merkhet": __version__, "version of torch": str(torch.__version__)})
            if content.get("merkhet") != __version__:
                raise InputError(
                    f"the job {job} was written by merkhet {content.get('merkhet')}, but this is {__version__}; "
                    "install one version on all machines"
                )
            _train(job, content, processes)
            processes.barrier()
    except FileNotFoundError as error:
        _fail(InputError(f"there is no {error.filename}, which the job {job} needs; share it with this machine"))
    except MerkhetError as error:
        _fail(error)


def _fail(error: MerkhetError) -> None:
    _emit(_ERROR, {"message": str(error), "input": isinstance(error, InputError)})
    # Exit immediately: a regular exit would wait for the other processes, which wait for this process.
    os._exit(error.exit_code)


def _exit_with_parent() -> None:
    while os.read(0, 1):  # Not through sys.stdin, whose lock would be held at exit.
        pass
    interrupts.end(1)


def _train(job: Path, content: Mapping[str, Any], processes: ProcessGroup) -> None:
    options: dict[str, Any] = {name: content[name] for name in ("settings", "seed")}
    options |= {"progress": _PipeProgress(), "processes": processes}
    options["checkpoints"] = Path(content["checkpoints"]) if content["checkpoints"] else None
    start, folder = _load_start(content), Path(content["folder"])
    if content["learner"] == PRETRAIN:
        from merkhet.training.pretraining import pretrain

        assert not isinstance(start, UntrainedModel)
        pretrain(start, Path(content["corpus"]), folder, **options)
        return
    from merkhet.training.memorizing.memorize import store_statements

    statements, symbols = (read_table(schema, job / f"{name}.parquet") for name, schema in _TABLES.items())
    store_statements(start, statements, symbols, folder, device=content["device"], **options)


def _load_start(content: Mapping[str, Any]) -> Model | UntrainedModel:
    description = content["start"]
    if "blank" in description:
        blank = description["blank"]
        shape = Shape(**blank["shape"]) if blank["shape"] else None
        folder = Path(blank["folder"]) if blank["folder"] else None
        return UntrainedModel(blank["name"], blank["fingerprint"], shape, folder)
    spec = ModelSpec(description["masked"], label=description["name"], kind="masked", device=content["device"])
    model = load_model(spec)
    model.fingerprint = description["fingerprint"]
    return model
