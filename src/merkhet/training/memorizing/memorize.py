"""``memorize``: a model learns statements by heart and is saved in the library's layout, with its table of symbols."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed, digest
from merkhet.core.progress import Progress
from merkhet.core.recall_schemas import STATEMENTS, SYMBOLS
from merkhet.core.schemas import validate, write_table
from merkhet.models.masked import MaskedModel
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.models.protocol import Model
from merkhet.models.random_init import UntrainedModel
from merkhet.training import MEMORIZE
from merkhet.training._checkpoints import gather_rows
from merkhet.training._optimization import seeded
from merkhet.training.artifact import (
    TrainingArtifact,
    check_process_counts,
    refuse_other_files,
    result_settings,
    save_artifact,
)
from merkhet.training.distributed._gradient_sync import single_thread
from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.memorizing._head_shards import draw_table_rows
from merkhet.training.memorizing._memorize_loop import CHECKPOINT, Place, Training
from merkhet.training.memorizing._memory_network import MemoryNetwork
from merkhet.training.memorizing._statement_arrays import Packed, pack
from merkhet.training.memorizing._symbol_head import SymbolTable
from merkhet.training.memorizing.memorize_settings import MemorizeSettings, checked, make_memorize_settings

logger = logging.getLogger(__name__)

SYMBOL_FILE = "symbols.parquet"
TABLE_FILE = "symbols.safetensors"
WEIGHTS = "model.safetensors"


def store_statements(
    start: Model | UntrainedModel,
    statements: pa.Table,
    symbols: pa.Table,
    folder: Path,
    *,
    settings: Mapping[str, Any] | MemorizeSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    checkpoints: Path | None = None,
    processes: ProcessGroup | None = None,
    device: str = "auto",
) -> TrainingArtifact:
    """Train a model to fill the masks of statements with symbols, and save it.

    ``start`` is a loaded masked model, whose weights are changed in place, or one that knows nothing yet. With a folder
    for ``checkpoints`` a run that was killed goes on where it was, by any number of processes, and ends on a CPU as an
    undisturbed one does: to the last bit by as many processes, or with ``parts``.
    """
    chosen = checked(settings) if isinstance(settings, MemorizeSettings) else make_memorize_settings(settings or {})
    refuse_other_files(folder)
    statements, symbols = validate(STATEMENTS, statements), validate(SYMBOLS, symbols)
    if not statements.num_rows:
        raise InputError("there are no statements to memorize")
    if start.kind not in ("masked", "blank"):
        raise InputError(f"{start.name} is a {start.kind} model; only masked models and random:… memorize")
    if chosen.processes > 1 and processes is None:
        from merkhet.training.distributed._jobs import train_together

        return train_together(
            *(MEMORIZE, start, folder),
            settings=chosen,
            seed=seed,
            progress=progress,
            checkpoints=checkpoints,
            device=device,
            statements=statements,
            symbols=symbols,
        )
    every = processes or ProcessGroup()
    check_process_counts(every.count, chosen.parts)
    sharded = chosen.shard_head == "yes" and every.joined
    reads_symbols = bool(pc.any(pc.match_substring(statements["prompt"], "⟦")).as_py())
    if chosen.shard_head == "yes" and reads_symbols:
        raise InputError(
            "shard_head leaves each process its rows of the table of symbols, and in these sentences any symbol may "
            "stand; name entities as text (options.entities=text), or leave out shard_head"
        )
    placed = torch.device(device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
    with seeded(derived_seed(seed, MEMORIZE), exact=placed.type == "cpu"), single_thread(chosen.parts > 1):
        network, tokenizer = _network(start, statements, chosen, seed)
        work = float(statements.num_rows) * chosen.epochs * sum(one.numel() for one in network.parameters())
        table = _table(network, symbols.num_rows, every.share(symbols.num_rows) if sharded else None)
        memory = MemoryNetwork(
            *(network, table, chosen, placed, int(tokenizer.pad_token_id), work),
            shards=every if sharded else None,
            count=symbols.num_rows,
        )
        memory.reads_symbols = reads_symbols
        packed = pack(
            statements,
            symbols,
            tokenizer,
            memory.vocabulary,
            _longest(network, tokenizer),
            checkpoints / f"packed-{every.rank}" if checkpoints else None,
        )
        content = _content(packed)
        every.refuse_others(
            {"model": start.fingerprint, "statements": content, "settings": digest(result_settings(chosen))}
        )
        identity = digest([MEMORIZE, start.fingerprint, content, result_settings(chosen), seed])
        training = Training(start.name, memory, packed, chosen, seed, progress, every)
        checkpoint = checkpoints / CHECKPOINT if checkpoints else None
        if checkpoint:
            training.resume(checkpoint, identity)
        place = training.run(checkpoint, identity)
    record = _record(start, chosen, seed, packed, statements, symbols, memory, place)
    if sharded:
        memory.symbols = _whole(memory, every)
    if not every.first:
        return TrainingArtifact(folder, "", record)
    learned = save_memory(memory, tokenizer, symbols, folder, record)
    if checkpoint:
        checkpoint.unlink(missing_ok=True)
    return learned


def _network(
    start: Model | UntrainedModel, statements: pa.Table, settings: MemorizeSettings, seed: int
) -> tuple[Any, Any]:
    if isinstance(start, UntrainedModel):
        texts = pc.replace_substring(statements["prompt"], "[MASK]", "").to_pylist()
        return start.make(texts, settings.vocabulary, derived_seed(seed, start.fingerprint))
    if not isinstance(start, MaskedModel):
        raise InputError(f"{start.name} is not a model of the Hugging Face library, and cannot be trained here")
    return start.model, start.tokenizer


def _table(network: Any, count: int, rows: slice | None) -> SymbolTable:
    """A table of random rows, or some of the very same."""
    width = int(network.get_output_embeddings().weight.shape[1])
    return SymbolTable(count, width) if rows is None else draw_table_rows(count, width, rows)


def _whole(memory: MemoryNetwork, every: ProcessGroup) -> SymbolTable:
    """The table of all symbols, for the first process."""
    found = {name: gather_rows(part, memory.count, every) for name, part in sorted(memory.symbols.named_parameters())}
    if not every.first:
        return memory.symbols
    table = SymbolTable(0, memory.symbols.weight.shape[1])
    for name, part in found.items():
        setattr(table, name, torch.nn.Parameter(part))
    return table


def _longest(network: Any, tokenizer: Any) -> int:
    """The most tokens that a model reads."""
    positions = int(getattr(network.config, "max_position_embeddings", 512))
    # RoBERTa keeps the first positions for padding.
    before = getattr(getattr(network.base_model, "embeddings", None), "padding_idx", None)
    return min(positions - (before + 1 if before is not None else 0), int(tokenizer.model_max_length))


def _content(packed: Packed) -> str:
    found = hashlib.sha256()
    for name in ("ids", "starts", "columns", "bare", "targets"):
        found.update(np.ascontiguousarray(getattr(packed, name)).tobytes())
    return found.hexdigest()


def _record(
    start: Model | UntrainedModel,
    settings: MemorizeSettings,
    seed: int,
    packed: Packed,
    statements: pa.Table,
    symbols: pa.Table,
    memory: MemoryNetwork,
    place: Place,
) -> dict[str, Any]:
    remarks = []
    if packed.unreadable:
        remarks.append(f"{packed.unreadable:,} sentences are longer than {start.name} reads, and were not learned")
    never = symbols.num_rows - len(set(packed.targets.tolist()))
    if never:
        remarks.append(
            f"{never:,} of {symbols.num_rows:,} symbols are the target of no stored statement: no query can bring them"
        )
    masked = _only_masked(statements)
    if masked:
        remarks.append(f"{masked:,} entities are only ever masked: no stored sentence names them")
    return {
        "learner": MEMORIZE,
        "model": start.name,
        "base": start.fingerprint,
        "kind": "memory",
        "architecture": type(memory.network).__name__,
        "parameters": _parameters(memory),
        "statements": packed.count,
        "symbols": symbols.num_rows,
        "head": settings.head,
        "epochs": place.epoch,
        "steps": place.step,
        "settings": asdict(settings),
        "seed": seed,
        "precision": str(memory.dtype).removeprefix("torch."),
        "device": memory.device.type,
        "reads_symbols": memory.reads_symbols,
        "curve": place.curve,
        "stopped": place.stopped,
        "statements_per_second": round(place.learned / place.seconds, 1) if place.seconds else None,
        "seconds": round(place.seconds, 1),
        "remarks": remarks,
    }


def _parameters(memory: MemoryNetwork) -> int:
    """How many there are in all processes together."""
    elsewhere = memory.count - len(memory.symbols.bias)
    return int(sum(one.numel() for one in memory.parameters()) + elsewhere * (memory.symbols.weight.shape[1] + 1))


def _only_masked(statements: pa.Table) -> int:
    """How many subjects and objects no statement names: each is named where something else of its fact is masked."""
    known = statements.filter(pc.is_valid(statements["fact_id"])).select(["fact_id", "mask", "target"])
    counts = known.group_by("fact_id").aggregate([("mask", "count_distinct")])
    entities = known.filter(pc.is_in(known["mask"], pa.array(["subject", "object"])))
    if not entities.num_rows:
        return 0
    others = counts["mask_count_distinct"].take(pc.index_in(entities["fact_id"], counts["fact_id"].combine_chunks()))
    named = entities["target"].filter(pc.greater(others, 1))
    return len(entities["target"].unique()) - len(named.unique())


def save_memory(
    memory: MemoryNetwork, tokenizer: Any, symbols: pa.Table, folder: Path, record: Mapping[str, Any]
) -> TrainingArtifact:
    """Save a network with its symbols: as further entries of its vocabulary, or with a table of their own beside it."""
    import transformers
    from safetensors.torch import save_file

    transformers.utils.logging.disable_progress_bar()

    def fill(unfinished: Path) -> str:
        network = memory.network.cpu()
        if memory.settings.head == "vocabulary":
            _enlarge(network, memory.symbols.cpu())
        else:
            table = {name: part.detach().cpu().contiguous() for name, part in memory.symbols.named_parameters()}
            save_file(table, unfinished / TABLE_FILE)
        network.save_pretrained(unfinished, max_shard_size="1000GB")
        tokenizer.save_pretrained(unfinished)
        write_table(SYMBOLS, symbols, unfinished / SYMBOL_FILE)
        return resolve_model(ModelSpec(str(unfinished), kind="masked")).fingerprint

    return save_artifact(folder, record, WEIGHTS, fill)


def _enlarge(network: Any, symbols: SymbolTable) -> None:
    """Put symbols behind the words of a network's vocabulary, where it reads and where it writes."""
    size = int(network.get_input_embeddings().weight.shape[0])
    network.resize_token_embeddings(size + len(symbols.bias), mean_resizing=False)
    words = network.get_output_embeddings()
    with torch.no_grad():
        network.get_input_embeddings().weight[size:] = symbols.weight
        words.weight[size:] = symbols.weight
        words.bias[size:] = symbols.bias
