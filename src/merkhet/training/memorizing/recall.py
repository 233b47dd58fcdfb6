"""Asking a model that has stored facts: where it ranks the right symbols, for every statement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from merkhet.core.errors import InputError, first_line
from merkhet.core.progress import Progress, SilentProgress
from merkhet.core.recall_schemas import RECALLS, STATEMENTS, SYMBOLS
from merkhet.core.schemas import read_table, validate
from merkhet.training import MEMORIZE
from merkhet.training.artifact import RECORD
from merkhet.training.memorizing._device_batches import Feed
from merkhet.training.memorizing._memory_network import MemoryNetwork
from merkhet.training.memorizing._statement_arrays import length_batches, pack
from merkhet.training.memorizing._symbol_head import TOP, SymbolTable
from merkhet.training.memorizing.memorize import SYMBOL_FILE, TABLE_FILE, _longest
from merkhet.training.memorizing.memorize_settings import make_memorize_settings

_AT_ONCE = 1024


class MemorizedModel:
    """A model that has stored facts, ready to be asked."""

    def __init__(self, name: str, memory: MemoryNetwork, tokenizer: Any, symbols: pa.Table) -> None:
        self.name, self.memory, self.tokenizer, self.symbols = name, memory, tokenizer, symbols

    def recall(self, statements: pa.Table, progress: Progress | None = None, label: str = "") -> pa.Table:
        """Where the target and the best right answer of each statement stand, and what stands first.

        A sentence that is too long to be read counts as not known: everything stands above its answers.
        """
        statements = validate(STATEMENTS, statements)
        watcher, label = progress or SilentProgress(), label or self.name
        longest = _longest(self.memory.network, self.tokenizer)
        packed = pack(statements, self.symbols, self.tokenizer, self.memory.vocabulary, longest, None)
        among = self.memory.outputs.count
        found = np.zeros((packed.count, 5), dtype=np.int32)
        found[:] = (among - 1, 1, among - 1, 1, 1)
        top = np.full((packed.count, min(TOP, among)), -1, dtype=np.int64)
        scores = np.zeros(top.shape, dtype=np.float32)
        watcher.start(label, packed.count, "statements")
        feed = Feed(packed, self.memory.device, self.memory.pad)
        for batch, placed in feed.place(length_batches(packed, np.arange(packed.count), _AT_ONCE)):
            ranks = self.memory.rank(placed, *feed.answers(batch))
            columns = (ranks.target_above, ranks.target_ties, ranks.best_above, ranks.best_ties, ranks.best_golds)
            found[batch.statements] = torch.stack(columns, dim=1).cpu().numpy()
            top[batch.statements] = ranks.top.cpu().numpy()
            scores[batch.statements] = ranks.top_scores.float().cpu().numpy()
            watcher.advance(label, len(batch.rows))
        watcher.finish(label)
        return self._table(statements, found, top, scores, among)

    def _table(self, statements: pa.Table, found: Any, top: Any, scores: Any, among: int) -> pa.Table:
        names = ("target_above", "target_ties", "best_above", "best_ties", "best_golds")
        columns: dict[str, Any] = {"statement_id": statements["statement_id"]}
        columns |= {name: pa.array(found[:, place]) for place, name in enumerate(names)}
        columns["among"] = pa.array(np.full(len(found), among, dtype=np.int32))
        columns["top"] = self._tops(top, scores)
        return validate(RECALLS, pa.table(columns))

    def _tops(self, top: Any, scores: Any) -> pa.Array:
        """What stands first, by the names of symbols; words of the vocabulary stand in angle brackets."""
        there = top[:, 0] >= 0 if top.size else np.zeros(len(top), dtype=bool)
        flat = top[there].ravel() - self.memory.outputs.offset
        named = self.symbols["symbol"].combine_chunks().take(pa.array(np.maximum(flat, 0)))
        words = flat < 0
        if words.any():
            texts = np.full(len(flat), None, dtype=object)
            texts[words] = [
                f"<{token}>"
                for token in self.tokenizer.convert_ids_to_tokens((flat[words] + self.memory.outputs.offset).tolist())
            ]
            named = pc.coalesce(pa.array(texts, pa.string()), named)
        values = pa.StructArray.from_arrays([named, pa.array(scores[there].ravel())], ["symbol", "score"])
        counts = np.where(there, top.shape[1], 0)
        return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)), values)


def load_memorized(folder: Path, device: str = "auto") -> MemorizedModel:
    """A model that memorizing has saved; refuses another folder."""
    import transformers
    from safetensors.torch import load_file

    if not (folder / SYMBOL_FILE).is_file() or not (folder / RECORD).is_file():
        raise InputError(f"{folder} holds no model that has memorized facts; 'merkhet memorize' makes one")
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    symbols = read_table(SYMBOLS, folder / SYMBOL_FILE)
    settings = make_memorize_settings({**record["settings"], "compile": "no", "processes": 1, "shard_head": "no"})
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        network = transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32)
        saved = load_file(folder / TABLE_FILE) if settings.head == "separate" else _shrink(network, symbols.num_rows)
    except Exception as error:  # Broken files make the libraries raise anything.
        raise InputError(f"what was learned in {folder} cannot be loaded: {first_line(error)}") from error
    table = SymbolTable(*saved["weight"].shape)
    table.load_state_dict(saved)
    placed = torch.device(device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
    memory = MemoryNetwork(network, table, settings, placed, int(tokenizer.pad_token_id))
    memory.reads_symbols = bool(record.get("reads_symbols"))
    return MemorizedModel(str(record.get("model", MEMORIZE)), memory, tokenizer, symbols)


def _shrink(network: Any, count: int) -> dict[str, torch.Tensor]:
    """Take the symbols out of a network's vocabulary again, of which they are the last entries."""
    words = network.get_output_embeddings()
    size = int(words.weight.shape[0]) - count
    taken = {"weight": words.weight.detach()[size:].clone(), "bias": words.bias.detach()[size:].clone()}
    network.resize_token_embeddings(size)
    return taken
