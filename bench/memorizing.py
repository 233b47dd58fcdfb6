"""Statements learned a second: merkhet's step against the plain loop of the Hugging Face library, in turn, in one run.

Both train the same network (RoBERTa's layout, no dropout) on the same batches in the same precision with AdamW. The
plain loop is RobertaForMaskedLM over a vocabulary enlarged by the symbols, with logits at all positions. That both
compute the same loss is checked before anything is timed. Needs torch, transformers and numpy.

    python bench/memorizing.py             # on a CPU: 2 x 128 with 20,000 symbols, 6 x 384 with 100,000
    python bench/memorizing.py --gpu       # on CUDA: 12 x 768 with 50,265 words and 317,601 symbols
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from measuring import Table, arguments, finish, interleave, median_with_spread, parse, ratio
from transformers import RobertaConfig, RobertaForMaskedLM

if str(Path(__file__).resolve().parent.parent / "src") not in sys.path:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from merkhet.training._trainer import Trainer
from merkhet.training.memorizing._memorize_task import MemorizeTask
from merkhet.training.memorizing._memory_network import MemoryNetwork
from merkhet.training.memorizing._statement_arrays import StatementArrays
from merkhet.training.memorizing._symbol_head import SymbolTable
from merkhet.training.memorizing.memorize_settings import MemorizeSettings

PAD, MASK = 1, 4


@dataclass(frozen=True)
class Size:
    layers: int
    width: int
    heads: int
    words: int
    symbols: int
    batch: int
    length: int = 24

    @property
    def name(self) -> str:
        return f"{self.layers} x {self.width}, {self.symbols:,} symbols, batch {self.batch}, length {self.length}"


CPU = (
    Size(2, 128, 2, 2000, 20_000, 128),
    Size(6, 384, 6, 8000, 100_000, 64),
)
QUICK = (Size(1, 64, 1, 500, 2000, 32),)
GPU = Size(12, 768, 12, 50_265, 317_601, 4096)


def statements(size: Size, count: int, seed: int = 0) -> StatementArrays:
    """Sentences of random words, each with one mask and one right symbol."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(5, size.words, (count, size.length)).astype(np.int32)
    columns = generator.integers(1, size.length - 1, count).astype(np.int32)
    ids[np.arange(count), columns] = MASK
    targets = generator.integers(0, size.symbols, count).astype(np.int32)
    return StatementArrays(
        ids.ravel(),
        np.arange(count + 1, dtype=np.int64) * size.length,
        columns,
        np.full(count, -1, dtype=np.int64),
        targets,
        targets,
        np.arange(count + 1, dtype=np.int64),
    )


def network(size: Size, words: int) -> RobertaForMaskedLM:
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=words,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=4 * size.width,
        max_position_embeddings=size.length + 10,
        type_vocab_size=1,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=PAD,
    )
    return RobertaForMaskedLM(config)


class Plain:
    """The loop that everybody writes first."""

    def __init__(self, size: Size, packed: StatementArrays, device: str, halved: bool) -> None:
        self.size, self.packed, self.device, self.halved = size, packed, device, halved
        self.model = network(size, size.words + size.symbols).to(device).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), weight_decay=0.0)

    def step(self, rows: np.ndarray) -> torch.Tensor:
        ids = torch.from_numpy(self.packed.ids.reshape(-1, self.size.length)[rows]).long()
        labels = torch.full_like(ids, -100)
        columns = torch.from_numpy(self.packed.columns[rows]).long()
        labels[torch.arange(len(rows)), columns] = torch.from_numpy(self.packed.targets[rows]).long() + self.size.words
        ids, labels = ids.to(self.device), labels.to(self.device)
        self.optimizer.zero_grad()
        with torch.autocast(self.device, torch.bfloat16, enabled=self.halved):
            loss = self.model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()


class Merkhet:
    """merkhet's own step, from the same weights."""

    def __init__(self, size: Size, packed: StatementArrays, device: str, head: str, plain: Plain | None = None) -> None:
        own, table = network(size, size.words), SymbolTable(size.symbols, size.width)
        if plain is not None:
            _copy(plain.model, own, table, size.words)
        settings = MemorizeSettings(
            head=head,
            batch_size=size.batch,
            learning_rate=1e-4,
            warmup=0.0,
            schedule="constant",
            epochs=1,
            compile="yes" if device == "cuda" else "no",
        )
        memory = MemoryNetwork(own, table, settings, torch.device(device), PAD)
        task = MemorizeTask("bench", memory, packed, settings, 0)
        self.trainer = Trainer(task)
        self.batches = task.epoch_batches(1)
        self.placed = list(task.batches(1, 0))
        self.body = type(memory.body).__name__

    def step(self, number: int) -> torch.Tensor:
        batch = self.placed[number % len(self.placed)]
        return self.trainer.train_step(batch) / len(batch)


@torch.no_grad()
def _copy(source: RobertaForMaskedLM, own: RobertaForMaskedLM, table: SymbolTable, words: int) -> None:
    enlarged = source.state_dict()
    own.load_state_dict(
        {
            name: value[:words] if value.shape[:1] == (len(source.lm_head.bias),) else value
            for name, value in enlarged.items()
        }
    )
    table.weight.copy_(source.lm_head.decoder.weight[words:])
    table.bias.copy_(source.lm_head.decoder.bias[words:])


PLAIN, STEPS = "plain", 4
Timings = dict[str, list[float]]


def compared(size: Size, repeats: int) -> tuple[Timings, dict[str, object]]:
    """Seconds of some steps of the plain loop and of both heads on a CPU, in turn."""
    packed = statements(size, size.batch * STEPS)
    plain = Plain(size, packed, "cpu", halved=False)
    ways = {head: Merkhet(size, packed, "cpu", head, plain) for head in ("vocabulary", "separate")}
    rows = [batch.rows for batch in ways["vocabulary"].batches]
    losses = [(float(plain.step(rows[number])), float(ways["vocabulary"].step(number))) for number in range(2)]
    assert all(abs(one - other) < 1e-3 for one, other in losses), f"the losses differ: {losses}"

    def steps(step: Callable[[int], torch.Tensor]) -> Callable[[], None]:
        return lambda: [step(number) for number in range(STEPS)] and None

    every = {PLAIN: steps(lambda number: plain.step(rows[number])), **{n: steps(way.step) for n, way in ways.items()}}
    return interleave(every, repeats), {"losses": losses, "body": ways["vocabulary"].body}


def on_gpu(size: Size, repeats: int, plain_batch: int) -> tuple[Timings, dict[str, object]]:
    """Seconds for as many statements as a batch has on CUDA in bfloat16; the plain loop at a batch that it can hold.

    One way after another, for both do not fit into memory together.
    """
    timings: Timings = {}
    details: dict[str, object] = {"device": torch.cuda.get_device_name()}
    packed = statements(size, size.batch * 2)
    for head in ("vocabulary", "separate"):
        own = Merkhet(size, packed, "cuda", head)
        timings[head], details[f"{head}, GiB"] = _timed(own.step, repeats)
        del own
        torch.cuda.empty_cache()
    small = Plain(size, packed, "cuda", halved=True)
    rows = np.arange(plain_batch)
    seconds, details["plain, GiB"] = _timed(lambda _: small.step(rows), repeats)
    timings[PLAIN] = [one * size.batch / plain_batch for one in seconds]
    return timings, details


def _timed(step: Callable[[int], torch.Tensor], repeats: int, steps: int = 10) -> tuple[list[float], float]:
    """Seconds of a step, each the mean of ten, and the memory that was needed."""
    for number in range(4):
        step(number)
    torch.cuda.reset_peak_memory_stats()
    found = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for number in range(steps):
            step(number)
        torch.cuda.synchronize()
        found.append((time.perf_counter() - began) / steps)
    return found, round(torch.cuda.max_memory_allocated() / 2**30, 1)


def main() -> None:
    parser = arguments(__doc__, repeats=5, peers=False)
    parser.add_argument("--gpu", action="store_true", help="on CUDA, in bfloat16")
    parser.add_argument("--batch", type=int, default=GPU.batch, help=f"on CUDA [{GPU.batch}]")
    options = parse(parser)
    sizes = (
        (replace(GPU, batch=options.batch),)
        if options.gpu
        else QUICK
        if options.quick
        else CPU[:1]
        if options.headline
        else CPU
    )
    lines, kept, ratios, details = [], {}, {}, {}
    for size in sizes:
        timings, details[size.name] = (
            on_gpu(size, options.repeats, 256) if options.gpu else compared(size, options.repeats)
        )
        count = size.batch * (1 if options.gpu else STEPS)
        for name in (PLAIN, "vocabulary", "separate"):
            own = ratio(timings[PLAIN], timings[name])
            ratios[f"{size.name}: {name}"] = own
            kept[f"{size.name}: {name}"] = timings[name]
            way = "plain" if name == PLAIN else f"merkhet, head {name}"
            lines.append([size.name, way, median_with_spread([count / one for one in timings[name]], 0), str(own)])
    notes = ["The losses of the plain loop and of the head 'vocabulary' are the same (see the JSON file)."]
    table = Table(
        "Memorizing: statements learned a second",
        ["network", "way", "statements/s", "x plain"],
        lines,
        notes if not options.gpu else [f"{value}: {name}" for name, value in details[sizes[0].name].items()],
    )
    finish("memorizing-gpu" if options.gpu else "memorizing", options, table, kept, ratios, details)


if __name__ == "__main__":
    main()
