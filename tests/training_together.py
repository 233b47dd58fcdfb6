"""What several processes do under torchrun, in one start of them: trainings, goings-on, and a head in shards.

    torchrun --nproc-per-node 3 training_together.py FOLDER

FOLDER holds a model, a corpus and checkpoints of trainings that one process began; results are written there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from stored_facts import world

from merkhet.core.errors import InputError
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.training._trainer import Trainer
from merkhet.training.distributed._process_group import ProcessGroup, join_process_group
from merkhet.training.memorizing._memory_network import MemoryNetwork
from merkhet.training.memorizing._symbol_head import (
    Outputs,
    ShardedHead,
    SymbolTable,
    draw_table_rows,
    head_gradients,
    rank_symbols,
    target_softmax,
)
from merkhet.training.memorizing.memorize import store_statements as memorize
from merkhet.training.pretraining import pretrain

TESTS = Path(__file__).resolve().parent
MEMORIZE: dict[str, Any] = {
    **{"epochs": 4, "batch_size": 33, "learning_rate": 2e-3, "evaluate_every": 2, "until": 0.0},
    **{"checkpoint_seconds": 0.0, "dynamic": 30, "weight_decay": 0.1},
}
PRETRAIN: dict[str, Any] = {
    **{"steps": 5, "batch_size": 7, "max_length": 32, "learning_rate": 1e-3, "checkpoint_every": 2, "log_every": 2},
    **{"objective": "mlm+sop"},
}
WAYS: dict[str, dict[str, Any]] = {"plain": {}, "sharded": {"shard_head": "yes"}, "parts": {"parts": 4}}


class StopHereError(Exception):
    """The training is to end in the middle."""


def torchrun(count: int, script: Path, *arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run a script in so many processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    places = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(places)}
    return subprocess.run(
        [*command, str(script), *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )


KILL, WAIT = "os.kill(os.getpid(), signal.SIGKILL)", "time.sleep(3600)"
_TROUBLE = """
import os

if os.environ.get("RANK") == {rank!r}:
    import signal
    import time

    from merkhet.training._trainer import Trainer

    usual = Trainer.train_epoch

    def troubled(self):
        if self.state.epoch == {epoch}:
            {what}
        return usual(self)

    Trainer.train_epoch = troubled
"""


def troubled(folder: Path, rank: int, epoch: int, what: str) -> str:
    """Return a PYTHONPATH with which the process of a rank does ``what`` at the beginning of an epoch."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_TROUBLE.format(rank=str(rank), epoch=epoch, what=what))
    return os.pathsep.join([str(folder), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")])


def statements() -> tuple[pa.Table, pa.Table]:
    """100 statements: the last of four batches has one alone."""
    return world(25, offices=5)


def memorized(folder: Path, way: str, **more: Any) -> None:
    """Memorize in a way."""
    start = load_model(resolve_model(ModelSpec("random:1x32")))
    memorize(start, *statements(), folder, settings={**MEMORIZE, **WAYS[way]}, device="cpu", **more)


def pretrained(home: Path, folder: Path, way: str, **more: Any) -> None:
    """Go on with pre-training in a way."""
    model = load_model(ModelSpec(str(home / "model"), device="cpu"))
    pretrain(model, home / "corpus.txt", folder, settings={**PRETRAIN, **WAYS[way]}, **more)


def stopped(after: int, work: Any, *given: Any, **more: Any) -> None:
    """Do work that trains, up to so many epochs."""
    usual = Trainer.train_epoch

    def some(self: Trainer[Any]) -> None:
        if self.state.epoch == after:
            raise StopHereError
        usual(self)

    Trainer.train_epoch = some
    try:
        work(*given, **more)
    except StopHereError:
        pass
    finally:
        Trainer.train_epoch = usual


def without_memory(processes: ProcessGroup, folder: Path, way: str) -> None:
    """Memorize where one process has memory for three statements at once, and the others for all."""
    usual = MemoryNetwork.states

    def scarce(self: MemoryNetwork, placed: Any) -> torch.Tensor:
        if torch.is_grad_enabled() and len(placed) > 3 and processes.rank == 1:
            raise RuntimeError("CUDA out of memory")
        return usual(self, placed)

    MemoryNetwork.states = scarce
    try:
        memorized(folder, way, processes=processes)
    finally:
        MemoryNetwork.states = usual


def head_in_shards(processes: ProcessGroup, count: int, whole_numbers: bool) -> dict[str, float | bool]:
    """How far a head in shards is from a whole one: losses, gradients, ranks, the first ten."""
    torch.manual_seed(count)
    size, width = 17, 8
    states, weight = torch.randn(size, width), torch.randn(count, width)
    bias = torch.randn(count)
    if whole_numbers:  # Many ties.
        states, weight, bias = (part.round().clamp(-1, 1) for part in (states, weight, bias))
    targets = torch.randint(0, count, (size,))
    answers = [{int(target), *torch.randint(0, count, (2,)).tolist()} for target in targets]
    rows = torch.tensor([row for row, own in enumerate(answers) for _ in own])
    flat = torch.tensor([one for own in answers for one in sorted(own)])
    outputs = Outputs((torch.nn.Parameter(weight.clone()),), (torch.nn.Parameter(bias.clone()),))
    wanted = head_gradients(outputs, states, targets, 0.25, target_softmax, overwrite=True)
    ranks = rank_symbols(outputs, states, targets, rows, flat)
    own = processes.shard(count)
    table = SymbolTable(own.stop - own.start, width)
    table.load_state_dict({"weight": weight[own], "bias": bias[own]})
    head = ShardedHead(table, count, processes)
    shares = [processes.shard(size, number) for number in range(processes.count)]
    sizes, mine = [share.stop - share.start for share in shares], shares[processes.rank]
    for overwrite in (True, False, True):  # What another step has left does not count.
        found = head.gradients(states[mine], targets[mine], sizes, 0.25, overwrite=overwrite)
    losses = found.loss.clone()
    processes.all_reduce_sum([losses])
    sharded = head.rank(states[mine], sizes, targets, rows, flat, 10)
    counts = ("target_above", "target_ties", "best_above", "best_ties", "best_golds")
    return {
        "loss": abs(float(losses - wanted.loss)),
        "of states": _apart(found.state_gradients, wanted.state_gradients[mine]),
        "of weights": _apart(table.weight.grad, outputs.weights[0].grad[own]),
        "of biases": _apart(table.bias.grad, outputs.biases[0].grad[own]),
        "ranks": all(torch.equal(getattr(sharded, name), getattr(ranks, name)) for name in counts),
        "top": whole_numbers or torch.equal(sharded.top, ranks.top),
        "top scores": _apart(sharded.top_scores, ranks.top_scores),
        "symbols held": len(table.bias),
    }


def _apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max()) if one.numel() else 0.0


def rows_as_drawn(processes: ProcessGroup) -> bool:
    """Whether rows drawn in pieces are those of the whole table, also where pieces have odd sizes."""
    from merkhet.training.memorizing import _symbol_head as shards

    kept, same = shards._ROWS, True
    for count, width, pieces in ((1000, 3, 16), (999, 5, 32), (37, 1, 16), (2, 3, 16), (200, 16, 1)):
        shards._ROWS = pieces
        torch.manual_seed(3)
        whole = SymbolTable(count, width)
        after = torch.rand(3)
        torch.manual_seed(3)
        own = draw_table_rows(count, width, processes.shard(count))
        same &= torch.equal(own.weight, whole.weight[processes.shard(count)]) and torch.equal(after, torch.rand(3))
    shards._ROWS = kept
    return same


def refused(processes: ProcessGroup) -> str:
    """What is said where the last process has another model."""
    try:
        processes.require_agreement({"model": "b" if processes.rank == processes.count - 1 else "a"})
    except InputError as error:
        return str(error)
    return ""


def gloo_threads() -> list[str]:
    """The threads of gloo that run in this process."""
    names = (file.read_text().strip() for file in Path("/proc/self/task").glob("*/comm"))
    return [name for name in names if "gloo" in name]


def main(home: Path) -> None:
    """All of it; the first process writes what was found."""
    torch.set_num_threads(1)
    with join_process_group("cpu") as processes:
        found: dict[str, Any] = {
            "drawn": processes.all_gather_object(rows_as_drawn(processes)),
            "refused": processes.all_gather_object(refused(processes)),
        }
        for count, whole_numbers in ((40, False), (40, True), (2, True)):
            found[f"head {count} {whole_numbers}"] = processes.all_gather_object(
                head_in_shards(processes, count, whole_numbers)
            )
        for way in WAYS:
            memorized(home / f"memorized-{way}", way, processes=processes)
            memorized(home / f"went-on-{way}", way, processes=processes, checkpoints=home / f"begun-{way}")
            if way != "parts":
                without_memory(processes, home / f"scarce-{way}", way)
        stopped(2, memorized, home / "none", "sharded", processes=processes, checkpoints=home / "begun-by-several")
        for way in ("plain", "parts"):
            pretrained(home, home / f"pretrained-{way}", way, processes=processes)
            pretrained(home, home / f"pretrained-on-{way}", way, processes=processes, checkpoints=home / f"text-{way}")
        processes.barrier()
        if processes.is_main:
            (home / "found.json").write_text(json.dumps(found))
    left = gloo_threads()
    if left:
        sys.exit(f"threads that may abort the process as it ends: {left}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
