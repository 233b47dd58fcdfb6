"""Training by several processes: a job in a folder that torchrun's processes read, and its progress on a pipe.

merkhet starts a job on this machine. For several machines ``MERKHET_TORCHRUN`` holds the options of torchrun here,
and ``torchrun … -m merkhet.training JOB`` is started on the others by hand.
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
from merkhet.training.artifact import RECORD, TrainingArtifact, read_artifact
from merkhet.training.distributed._process_group import ProcessGroup, join_process_group

JOB = "job.json"
TORCHRUN = "MERKHET_TORCHRUN"
"""Options of torchrun, for machines that train together."""
_WATCHED = "MERKHET_WATCHED"
"""Set where the standard input ends with the process that has started a job."""
_PROGRESS, _ERROR = "merkhet-progress ", "merkhet-error "
_LAST_LINES = 60
_TABLES = {"statements": STATEMENTS, "symbols": SYMBOLS}


def train_together(
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
    """Let as many processes as the settings say train a model together, each on its share of every batch."""
    with _job_folder(checkpoints) as job:
        for name, table in tables.items():
            write_table(_TABLES[name], table, job / f"{name}.parquet")
        content = {
            "merkhet": __version__,
            "learner": learner,
            "start": _described(start, job),
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
    """A folder for a job: with the checkpoints where other machines shall see it, and one for this moment else."""
    if os.environ.get(TORCHRUN) and checkpoints:
        job = checkpoints.resolve() / "job"
        shutil.rmtree(job, ignore_errors=True)
        job.mkdir(parents=True)
        yield job
        shutil.rmtree(job, ignore_errors=True)
        return
    with scratch_folder("job") as place:
        yield place


def _described(start: Model | UntrainedModel, job: Path) -> dict[str, Any]:
    if isinstance(start, UntrainedModel):
        return {"blank": {**asdict(start), "folder": str(start.folder.resolve()) if start.folder else None}}
    assert isinstance(start, MaskedModel)
    start.model.save_pretrained(job / "start")
    start.tokenizer.save_pretrained(job / "start")
    if start.model.device.type == "cuda":  # Its place there is for those that train.
        start.model.cpu()
        release_memory()
    return {"masked": str(job / "start"), "name": start.name, "fingerprint": start.fingerprint}


def _run(job: Path, count: int, progress: Progress, *, resumable: bool) -> None:
    options = shlex.split(os.environ.get(TORCHRUN, "")) or ["--standalone", f"--nproc-per-node={count}"]
    if os.environ.get(TORCHRUN):
        line = shlex.join(["torchrun", *options, "-m", "merkhet.training", str(job)])
        progress.say(f"  on each of the other machines: {line}")
    threads = str(max(1, (os.cpu_count() or count) // count))
    # torch.distributed.run is what torchrun is; the pipe to its input ends when this process does, however that is.
    with subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *options, "-m", "merkhet.training", str(job)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={"OMP_NUM_THREADS": threads, **os.environ, _WATCHED: "1"},
    ) as running:
        assert running.stdout is not None and running.stdin is not None
        try:
            error, last = _followed(running.stdout, progress)
        except BaseException:
            running.terminate()
            raise
        finally:
            running.stdin.close()
    if running.returncode:
        if error:
            raise (InputError if error["input"] else MerkhetError)(error["message"])
        again = " What was learned up to the last checkpoint is kept: run it again, with as many processes as you like."
        raise MerkhetError(
            f"one of {count} processes that train together has failed: {_reason(last)}.{again if resumable else ''}"
        )


def _followed(lines: IO[str], progress: Progress) -> tuple[Mapping[str, Any] | None, deque[str]]:
    """Hand on the progress that the processes tell; returns the first error of merkhet's own, and the last lines."""
    error: Mapping[str, Any] | None = None
    last: deque[str] = deque(maxlen=_LAST_LINES)
    for line in lines:
        if line.startswith(_PROGRESS):
            called, arguments = json.loads(line.removeprefix(_PROGRESS))
            getattr(progress, called)(*arguments)
        elif line.startswith(_ERROR):
            error = error or json.loads(line.removeprefix(_ERROR))
        elif line.strip():
            last.append(line.strip())
    return error, last


def _reason(lines: deque[str]) -> str:
    """Why processes have failed, of what torchrun and they say: a signal, or what Python raised."""
    killed = [line.partition(": ")[2] for line in lines if "traceback : Signal" in line]
    raised = [line for line in lines if "Error" in line and "ChildFailedError" not in line]
    found = (killed[-1:] or raised[-1:] or list(lines)[-1:] or ["it said nothing"])[0]
    return found.rstrip(".")


def _told(mark: str, content: Any) -> None:
    sys.stdout.write(mark + json.dumps(content) + "\n")
    sys.stdout.flush()


class _Telling:
    """Progress as lines for the process that has started this one."""

    def __getattr__(self, called: str) -> Any:
        return lambda *arguments: _told(_PROGRESS, [called, arguments])


def take_part(job: Path) -> None:
    """Be one of the processes of a job; an error that merkhet has words for is told in one line."""
    if os.environ.get(_WATCHED):
        threading.Thread(target=_end_with_the_starter, daemon=True).start()
    try:
        content = json.loads((job / JOB).read_text(encoding="utf-8"))
        with join_process_group(content["device"]) as processes:
            import torch

            processes.refuse_others({"version of merkhet": __version__, "version of torch": str(torch.__version__)})
            if content.get("merkhet") != __version__:
                raise InputError(
                    f"the job {job} was written by merkhet {content.get('merkhet')}, and this is {__version__}; "
                    "install one version on all machines"
                )
            _train(job, content, processes)
            processes.wait()
    except FileNotFoundError as error:
        _fail(InputError(f"there is no {error.filename}, which is needed to take part in the job {job}"))
    except MerkhetError as error:
        _fail(error)


def _fail(error: MerkhetError) -> None:
    _told(_ERROR, {"message": str(error), "input": isinstance(error, InputError)})
    # At once: who waits for the others here would wait for ever.
    os._exit(error.exit_code)


def _end_with_the_starter() -> None:
    while os.read(0, 1):  # Not by sys.stdin, whose lock would be held at the end.
        pass
    os._exit(1)


def _train(job: Path, content: Mapping[str, Any], processes: ProcessGroup) -> None:
    checkpoints = Path(content["checkpoints"]) if content["checkpoints"] else None
    given: dict[str, Any] = {
        "seed": content["seed"],
        "progress": _Telling(),
        "checkpoints": checkpoints,
        "processes": processes,
    }
    start, folder = _start(content), Path(content["folder"])
    if content["learner"] == "pretrain":
        from merkhet.training.pretraining import pretrain
        from merkhet.training.pretraining_settings import PretrainSettings

        assert not isinstance(start, UntrainedModel)
        pretrain(start, Path(content["corpus"]), folder, settings=PretrainSettings(**content["settings"]), **given)
        return
    from merkhet.training.memorizing.memorize import store_statements
    from merkhet.training.memorizing.memorize_settings import MemorizeSettings

    statements, symbols = (read_table(_TABLES[name], job / f"{name}.parquet") for name in ("statements", "symbols"))
    settings = MemorizeSettings(**content["settings"])
    store_statements(start, statements, symbols, folder, settings=settings, device=content["device"], **given)


def _start(content: Mapping[str, Any]) -> Model | UntrainedModel:
    described = content["start"]
    if "blank" in described:
        given = described["blank"]
        shape = Shape(**given["shape"]) if given["shape"] else None
        folder = Path(given["folder"]) if given["folder"] else None
        return UntrainedModel(given["name"], given["fingerprint"], shape, folder)
    spec = ModelSpec(described["masked"], label=described["name"], kind="masked", device=content["device"])
    model = load_model(spec)
    model.fingerprint = described["fingerprint"]
    return model
