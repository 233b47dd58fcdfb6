"""Memorizing by several processes: a job in a folder that torchrun's processes read, and its progress on a pipe.

A job can be started by hand as well, on several machines too: ``torchrun … -m gnomon.learning.memorizing JOB``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from gnomon.foundation import GnomonError, Progress, SilentProgress, write_json
from gnomon.foundation.statements import STATEMENTS, SYMBOLS
from gnomon.foundation.tables import read_table, write_table
from gnomon.learning.learned import RECORD, Learned, read_learned
from gnomon.learning.memorizing.processes import join_processes
from gnomon.learning.memorizing.settings import MemorizeSettings
from gnomon.models import Model, ModelSpec, load_model
from gnomon.models.blank import BlankModel, Shape
from gnomon.models.masked import MaskedModel

JOB = "job.json"
_MARK = "gnomon-progress "
_LAST_LINES = 12


def memorize_together(
    start: Model | BlankModel,
    statements: pa.Table,
    symbols: pa.Table,
    folder: Path,
    *,
    settings: MemorizeSettings,
    seed: int,
    progress: Progress | None,
    checkpoints: Path | None,
    device: str,
) -> Learned:
    """Let as many processes as the settings say memorize statements together, each on its share of every batch."""
    with tempfile.TemporaryDirectory(prefix="gnomon-memorize-") as place:
        job = Path(place)
        write_table(STATEMENTS, statements, job / "statements.parquet")
        write_table(SYMBOLS, symbols, job / "symbols.parquet")
        content = {
            "start": _described(start, job),
            "settings": asdict(settings),
            "seed": seed,
            "folder": str(folder.resolve()),
            "checkpoints": str(checkpoints.resolve()) if checkpoints else None,
            "device": device,
        }
        write_json(job / JOB, content)
        _run(job, settings.processes, progress or SilentProgress())
    return read_learned(folder / RECORD)


def _described(start: Model | BlankModel, job: Path) -> dict[str, Any]:
    if isinstance(start, BlankModel):
        return {"blank": {**asdict(start), "folder": str(start.folder.resolve()) if start.folder else None}}
    assert isinstance(start, MaskedModel)
    start.model.save_pretrained(job / "start")
    start.tokenizer.save_pretrained(job / "start")
    return {"masked": str(job / "start"), "name": start.name, "fingerprint": start.fingerprint}


def _run(job: Path, count: int, progress: Progress) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    threads = str(max(1, (os.cpu_count() or count) // count))
    environment = {"OMP_NUM_THREADS": threads, **os.environ}
    with subprocess.Popen(
        [*command, "-m", "gnomon.learning.memorizing", str(job)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    ) as running:
        assert running.stdout is not None
        last: deque[str] = deque(maxlen=_LAST_LINES)
        try:
            for line in running.stdout:
                if line.startswith(_MARK):
                    called, arguments = json.loads(line.removeprefix(_MARK))
                    getattr(progress, called)(*arguments)
                elif line.strip():
                    last.append(line.strip())
        except BaseException:
            running.terminate()
            raise
    if running.returncode:
        raise GnomonError(f"one of {count} processes that memorize together has failed: {_reason(last)}")


def _reason(lines: deque[str]) -> str:
    found = [line for line in lines if "Error" in line and "ChildFailedError" not in line]
    return (found or list(lines) or ["it said nothing"])[-1]


class _Told:
    """Progress as lines for the process that has started this one."""

    def __getattr__(self, called: str) -> Any:
        def tell(*arguments: Any) -> None:
            sys.stdout.write(_MARK + json.dumps([called, arguments]) + "\n")
            sys.stdout.flush()

        return tell


def take_part(job: Path) -> None:
    """Be one of the processes of a job."""
    from gnomon.learning.memorizing.storing import memorize

    content = json.loads((job / JOB).read_text(encoding="utf-8"))
    processes = join_processes()
    try:
        memorize(
            _start(content["start"]),
            read_table(STATEMENTS, job / "statements.parquet"),
            read_table(SYMBOLS, job / "symbols.parquet"),
            Path(content["folder"]),
            settings=MemorizeSettings(**content["settings"]),
            seed=content["seed"],
            progress=_Told(),
            checkpoints=Path(content["checkpoints"]) if content["checkpoints"] else None,
            processes=processes,
            device=content["device"],
        )
        processes.wait()
    finally:
        processes.leave()


def _start(described: dict[str, Any]) -> Model | BlankModel:
    if "blank" in described:
        given = described["blank"]
        shape = Shape(**given["shape"]) if given["shape"] else None
        folder = Path(given["folder"]) if given["folder"] else None
        return BlankModel(given["name"], given["fingerprint"], shape, folder)
    model = load_model(ModelSpec(described["masked"], label=described["name"], kind="masked"))
    model.fingerprint = described["fingerprint"]
    return model
