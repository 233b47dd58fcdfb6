"""Statements learned a second: gnomon's step against the plain loop of the Hugging Face library, in turn, in one run.

Both train the same network (RoBERTa's layout, no dropout) on the same batches in the same precision with AdamW. The
plain loop is RobertaForMaskedLM over a vocabulary enlarged by the symbols, with logits at all positions. That both
compute the same loss is checked before anything is timed. Needs torch, transformers and numpy.

    python bench/memorizing.py             # on a CPU: 2 x 128 with 20,000 symbols, 6 x 384 with 100,000
    python bench/memorizing.py --gpu       # on CUDA: 12 x 768 with 50,265 words and 317,601 symbols
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch
from transformers import RobertaConfig, RobertaForMaskedLM

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from gnomon.learning.memorizing.head import SymbolTable
from gnomon.learning.memorizing.network import MemoryNetwork
from gnomon.learning.memorizing.packing import Packed
from gnomon.learning.memorizing.settings import MemorizeSettings
from gnomon.learning.memorizing.training import Training

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
GPU = Size(12, 768, 12, 50_265, 317_601, 4096)


def statements(size: Size, count: int, seed: int = 0) -> Packed:
    """Sentences of random words, each with one mask and one right symbol."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(5, size.words, (count, size.length)).astype(np.int32)
    columns = generator.integers(1, size.length - 1, count).astype(np.int32)
    ids[np.arange(count), columns] = MASK
    targets = generator.integers(0, size.symbols, count).astype(np.int32)
    return Packed(
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

    def __init__(self, size: Size, packed: Packed, device: str, halved: bool) -> None:
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


class Gnomon:
    """gnomon's own step, from the same weights."""

    def __init__(self, size: Size, packed: Packed, device: str, head: str, plain: Plain | None = None) -> None:
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
        self.training = Training("bench", memory, packed, settings, 0)
        self.batches = self.training._batches(0)
        self.placed = [placed for _, placed in self.training.feed.place(self.batches)]
        self.body = type(memory.body).__name__

    def step(self, number: int) -> torch.Tensor:
        batch = self.placed[number % len(self.placed)]
        return self.training.learn(batch) / len(batch)


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


def compared(size: Size, rounds: int, steps: int) -> dict[str, object]:
    """Rates of the plain loop and of both heads, in turn."""
    packed = statements(size, size.batch * 4)
    plain = Plain(size, packed, "cpu", halved=False)
    ways = {head: Gnomon(size, packed, "cpu", head, plain) for head in ("vocabulary", "separate")}
    rows = [batch.rows for batch in ways["vocabulary"].batches]
    first = float(plain.step(rows[0])), float(ways["vocabulary"].step(0))
    assert abs(first[0] - first[1]) < 1e-3, f"the losses differ: {first}"
    second = float(plain.step(rows[1])), float(ways["vocabulary"].step(1))
    assert abs(second[0] - second[1]) < 1e-3, f"the losses differ after a step: {second}"
    ways["separate"].step(0)
    rates: dict[str, list[float]] = {"plain": [], "vocabulary": [], "separate": []}
    for _ in range(rounds):
        for name, done in rates.items():
            began = time.perf_counter()
            for number in range(steps):
                _ = plain.step(rows[number % 4]) if name == "plain" else ways[name].step(number)
            done.append(steps * size.batch / (time.perf_counter() - began))
    ratios = {name: [own / other for own, other in zip(rates[name], rates["plain"], strict=True)] for name in ways}
    return {
        "size": size.name,
        "statements_per_second": {name: round(median(done), 1) for name, done in rates.items()},
        "ratio": {name: round(median(found), 2) for name, found in ratios.items()},
        "lowest_ratio": {name: round(min(found), 2) for name, found in ratios.items()},
        "first_losses": first,
        "second_losses": second,
        "body": ways["vocabulary"].body,
    }


def on_gpu(size: Size, steps: int, plain_batch: int) -> list[dict[str, object]]:
    """Rates on CUDA in bfloat16, of the plain loop at a batch that it can hold and of gnomon."""
    results: list[dict[str, object]] = []
    packed = statements(size, size.batch * 2)
    for head in ("vocabulary", "separate"):
        own = Gnomon(size, packed, "cuda", head)
        results.append({"way": f"gnomon, {head}", "body": own.body, **_timed(own.step, size.batch, steps)})
        del own
        torch.cuda.empty_cache()
    small = Plain(size, packed, "cuda", halved=True)
    rows = np.arange(plain_batch)
    results.append({"way": f"plain, batch {plain_batch}", **_timed(lambda _: small.step(rows), plain_batch, steps)})
    return results


def _timed(step: object, batch: int, steps: int) -> dict[str, object]:
    for number in range(4):
        step(number)  # type: ignore[operator]
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    rates = []
    for _ in range(3):
        began = time.perf_counter()
        for number in range(steps):
            loss = step(number)  # type: ignore[operator]
        torch.cuda.synchronize()
        rates.append(steps * batch / (time.perf_counter() - began))
    memory = torch.cuda.max_memory_allocated() / 2**30
    return {
        "statements_per_second": round(median(rates)),
        "rates": [round(rate) for rate in rates],
        "gib": round(memory, 1),
        "loss": round(float(loss), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--batch", type=int, default=GPU.batch, help="on CUDA")
    given = parser.parse_args()
    if given.gpu:
        size = Size(*(getattr(GPU, name) for name in ("layers", "width", "heads", "words", "symbols")), given.batch)
        found = {"device": torch.cuda.get_device_name(), "size": size.name, "ways": on_gpu(size, 10, 256)}
        print(json.dumps(found, indent=2))
        return
    for size in CPU:
        print(json.dumps(compared(size, given.rounds, given.steps), indent=2))


if __name__ == "__main__":
    main()
