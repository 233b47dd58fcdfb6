"""Recall from a model that has memorized facts: the rank of the right symbols for every statement."""

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
from merkhet.core.settings import make_settings
from merkhet.training import MEMORIZE
from merkhet.training.artifact import RECORD
from merkhet.training.memorizing._memory_network import MemoryNetwork
from merkhet.training.memorizing._statement_arrays import BatchLoader, length_batches, pack_statements
from merkhet.training.memorizing._symbol_head import TOP, SymbolTable
from merkhet.training.memorizing.memorize import SYMBOL_FILE, TABLE_FILE, max_tokens
from merkhet.training.memorizing.memorize_settings import MemorizeSettings

_BATCH_SIZE = 1024
_COUNTS = ("target_above", "target_ties", "best_above", "best_ties", "best_golds")


class MemorizedModel:
    """A loaded model that has memorized facts."""

    def __init__(self, name: str, memory: MemoryNetwork, tokenizer: Any, symbols: pa.Table) -> None:
        self.name, self.memory, self.tokenizer, self.symbols = name, memory, tokenizer, symbols

    def recall(self, statements: pa.Table, progress: Progress | None = None, label: str = "") -> pa.Table:
        """Rank the target and the best gold answer of each statement among all outputs.

        If a sentence is too long for the model, its target and its gold answers get the last rank.

        Returns:
            A table with the schema ``RECALLS``.
        """
        statements = validate(STATEMENTS, statements)
        progress, label = progress or SilentProgress(), label or self.name
        limit = max_tokens(self.memory.network, self.tokenizer)
        arrays = pack_statements(statements, self.symbols, self.tokenizer, self.memory.vocabulary, limit, None)
        outputs = self.memory.outputs.count
        rank_counts = np.tile(np.array([outputs - 1, 1, outputs - 1, 1, 1], dtype=np.int32), (arrays.count, 1))
        top = np.full((arrays.count, min(TOP, outputs)), -1, dtype=np.int64)
        scores = np.zeros(top.shape, dtype=np.float32)
        progress.start(label, arrays.count, "statements")
        loader = BatchLoader(arrays, self.memory.device, self.memory.pad)
        for batch, device_batch in loader.load(length_batches(arrays, np.arange(arrays.count), _BATCH_SIZE)):
            ranks = self.memory.rank(device_batch, *loader.answers(batch))
            columns = [getattr(ranks, name) for name in _COUNTS]
            rank_counts[batch.statements] = torch.stack(columns, dim=1).cpu().numpy()
            top[batch.statements] = ranks.top.cpu().numpy()
            scores[batch.statements] = ranks.top_scores.float().cpu().numpy()
            progress.advance(label, len(batch.rows))
        progress.finish(label)
        return self._table(statements, rank_counts, top, scores, outputs)

    def _table(self, statements: pa.Table, rank_counts: Any, top: Any, scores: Any, outputs: int) -> pa.Table:
        columns: dict[str, Any] = {"statement_id": statements["statement_id"]}
        columns |= {name: pa.array(rank_counts[:, column]) for column, name in enumerate(_COUNTS)}
        columns["among"] = pa.array(np.full(len(rank_counts), outputs, dtype=np.int32))
        columns["top"] = self._top_symbols(top, scores)
        return validate(RECALLS, pa.table(columns))

    def _top_symbols(self, top: Any, scores: Any) -> pa.Array:
        """Return the names and scores of the best outputs of each statement.

        Words of the vocabulary are in angle brackets. The list is empty for sentences that are too long.
        """
        readable = top[:, 0] >= 0 if top.size else np.zeros(len(top), dtype=bool)
        flat = top[readable].ravel() - self.memory.outputs.offset
        names = self.symbols["symbol"].combine_chunks().take(pa.array(np.maximum(flat, 0)))
        is_word = flat < 0
        if is_word.any():
            texts = np.full(len(flat), None, dtype=object)
            word_ids = (flat[is_word] + self.memory.outputs.offset).tolist()
            texts[is_word] = [f"<{token}>" for token in self.tokenizer.convert_ids_to_tokens(word_ids)]
            names = pc.coalesce(pa.array(texts, pa.string()), names)
        values = pa.StructArray.from_arrays([names, pa.array(scores[readable].ravel())], ["symbol", "score"])
        counts = np.where(readable, top.shape[1], 0)
        return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)), values)


def load_memorized(folder: Path, device: str = "auto") -> MemorizedModel:
    """Load a model that ``store_statements`` saved in ``folder``."""
    import transformers
    from safetensors.torch import load_file

    if not (folder / SYMBOL_FILE).is_file() or not (folder / RECORD).is_file():
        raise InputError(f"{folder} holds no model that has memorized facts; run 'merkhet memorize' to make one")
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    symbols = read_table(SYMBOLS, folder / SYMBOL_FILE)
    settings = make_settings(
        MemorizeSettings, {**record["settings"], "compile": "no", "processes": 1, "shard_head": "no"}
    )
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        network = transformers.AutoModelForMaskedLM.from_pretrained(
            folder, dtype=torch.float32, trust_remote_code=False
        )
        in_table = settings.head == "separate"
        saved = load_file(folder / TABLE_FILE) if in_table else _detach_symbols(network, symbols.num_rows)
    except Exception as error:  # Broken files make the libraries raise anything.
        raise InputError(f"cannot load the model in {folder}: {first_line(error)}. Train it again.") from error
    table = SymbolTable(*saved["weight"].shape)
    table.load_state_dict(saved)
    torch_device = torch.device(device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
    memory = MemoryNetwork(network, table, settings, torch_device, int(tokenizer.pad_token_id))
    memory.reads_symbols = bool(record.get("reads_symbols"))
    return MemorizedModel(str(record.get("model", MEMORIZE)), memory, tokenizer, symbols)


def _detach_symbols(network: Any, count: int) -> dict[str, torch.Tensor]:
    """Remove the last ``count`` entries, the symbols, from a network's vocabulary; return their weights and biases."""
    words = network.get_output_embeddings()
    size = int(words.weight.shape[0]) - count
    symbols = {"weight": words.weight.detach()[size:].clone(), "bias": words.bias.detach()[size:].clone()}
    network.resize_token_embeddings(size)
    return symbols
