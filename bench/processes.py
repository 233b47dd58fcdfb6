"""Processes that memorize together: statements learned a second, and what each holds of the table of symbols.

One thread a process. Each way is started anew by torchrun in every round and times its own steps, the first two left
out. That all ways end with the same loss is checked.

    python bench/processes.py
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from measuring import Table, arguments, child_environment, finish, interleave, median_with_spread, parse, ratio

WAYS: dict[str, tuple[int, dict[str, Any]]] = {
    "1 process": (1, {}),
    "2 processes": (2, {}),
    "2, shard_head": (2, {"shard_head": "yes"}),
    "1, parts: 4": (1, {"parts": 4}),
    "2, parts: 4": (2, {"parts": 4}),
}
SIZES = {"20,000 symbols x 128": (2, 128, 20_000, 256), "200,000 symbols x 256": (2, 256, 200_000, 256)}
QUICK = {"2,000 symbols x 64": (1, 64, 2000, 32)}
STEPS = 6
BATCHES = 2
"""Batches that take turns; so the loss falls fast, and tells a step that is wrong."""


def work(size: tuple[int, int, int, int], more: dict[str, Any], out: Path) -> None:
    """What each of the processes does."""
    import torch
    from memorizing import PAD, Size, network, statements

    from merkhet.training._trainer import Trainer
    from merkhet.training.distributed._process_group import join_process_group
    from merkhet.training.memorizing._memorize_task import MemorizeTask
    from merkhet.training.memorizing._memory_network import MemoryNetwork
    from merkhet.training.memorizing._symbol_head import SymbolTable, draw_table_rows
    from merkhet.training.memorizing.memorize_settings import MemorizeSettings

    torch.set_num_threads(1)
    layers, width, symbols, batch = size
    given = Size(layers, width, width // 64, 2000, symbols, batch)
    settings = MemorizeSettings(batch_size=batch, learning_rate=1e-3, warmup=0.0, epochs=9, schedule="constant", **more)
    with join_process_group("cpu") as processes:
        sharded = settings.shard_head == "yes"
        own = network(given, given.words)
        torch.manual_seed(1)
        rows = processes.shard(symbols)
        table = draw_table_rows(symbols, width, rows) if sharded else SymbolTable(symbols, width)
        shards = processes if sharded else None
        memory = MemoryNetwork(own, table, settings, torch.device("cpu"), PAD, processes=shards, count=symbols)
        task = MemorizeTask("bench", memory, statements(given, batch * BATCHES), settings, 0, processes)
        trainer = Trainer(task, processes=processes, parts=settings.parts)
        placed = list(task.batches(1, 0))
        for number in range(STEPS + 2):
            if number == 2:
                processes.barrier()
                began = time.perf_counter()
            loss = float(trainer.train_step(placed[number % BATCHES])) / batch
        processes.barrier()
        seconds = time.perf_counter() - began
        held = [one for part in memory.symbols.parameters() for one in (part, *trainer.optimizer.state[part].values())]
        found = {
            "seconds": seconds,
            "loss": loss,
            "table_mb": sum(one.numel() * one.element_size() for one in held) / 1e6,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        }
        (out / f"{processes.rank}.json").write_text(json.dumps(found))


def started(size: tuple[int, int, int, int], count: int, more: dict[str, Any], kept: list[dict[str, float]]) -> float:
    """Start so many processes; returns the seconds of their steps, and keeps what the one that holds most says."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
        command += [__file__, "--work", json.dumps([size, more, place])]
        done = subprocess.run(
            command, env={**child_environment(), "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        found = [json.loads(file.read_text()) for file in sorted(Path(place).iterdir())]
    kept.append({name: max(one[name] for one in found) for name in found[0]})
    return float(kept[-1]["seconds"])


def main() -> None:
    parser = arguments(__doc__, repeats=3, peers=False)
    options = parse(parser)
    lines, timings, ratios, details = [], {}, {}, {"load": os.getloadavg()}
    for name, size in (QUICK if options.quick else SIZES).items():
        kept: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        ways = {way: partial(started, size, count, more, kept[way]) for way, (count, more) in WAYS.items()}
        found = interleave(ways, options.repeats, warmups=0)
        losses = [one["loss"] for own in kept.values() for one in own]
        assert max(losses) - min(losses) < 1e-3, f"the losses differ: {losses}"
        for way in WAYS:
            own = ratio(found["1 process"], found[way])
            timings[f"{name}: {way}"], ratios[f"{name}: {way}"] = found[way], own
            details[f"{name}: {way}"] = kept[way]
            rate = [size[3] * STEPS / one for one in found[way]]
            table, peak = (f"{max(one[what] for one in kept[way]):,.0f}" for what in ("table_mb", "peak_mb"))
            lines.append([name, way, median_with_spread(rate, 0), str(own), table, peak])
    columns = ["table", "way", "statements/s", "x 1 process", "table and optimizer, MB", "peak of a process, MB"]
    load = " ".join(f"{one:.1f}" for one in details["load"])
    notes = [f"Load of the machine before: {load}. Table and optimizer: of the process that holds most."]
    finish(
        "processes", options, Table("Processes that memorize together", columns, lines, notes), timings, ratios, details
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        given, settings, folder = json.loads(sys.argv[2])
        work(tuple(given), settings, Path(folder))
    else:
        main()
