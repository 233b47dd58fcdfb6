"""Memorizing: the training of a model on statements, saved in the Hugging Face layout with its table of symbols."""

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
from merkhet.core.ids import derived_seed
from merkhet.core.progress import Progress
from merkhet.core.recall_schemas import STATEMENTS, SYMBOLS
from merkhet.core.schemas import validate, write_table
from merkhet.core.settings import make_settings
from merkhet.core.text import counted
from merkhet.models.batching import single_thread
from merkhet.models.masked import MaskedModel
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.models.protocol import Model
from merkhet.models.random_init import UntrainedModel
from merkhet.training import MEMORIZE
from merkhet.training._checkpoints import gather_rows
from merkhet.training._optimization import seeded
from merkhet.training._trainer import CheckpointSchedule, EarlyStopping, Trainer, make_shared_schedule
from merkhet.training._training_task import TrainingState
from merkhet.training.artifact import (
    WEIGHTS,
    TrainingArtifact,
    check_artifact_folder,
    check_process_counts,
    save_artifact,
)
from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.memorizing._memorize_task import MemorizeTask
from merkhet.training.memorizing._memory_network import MemoryNetwork
from merkhet.training.memorizing._statement_arrays import StatementArrays, pack_statements
from merkhet.training.memorizing._symbol_head import SymbolTable, draw_table_rows
from merkhet.training.memorizing.memorize_settings import (
    MemorizeSettings,
)

logger = logging.getLogger(__name__)

SYMBOL_FILE = "symbols.parquet"
TABLE_FILE = "symbols.safetensors"


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
    """Train a model to fill the masks of statements with symbols, and save it in ``folder``.

    ``start`` is a loaded masked model, whose weights are changed in place, or an untrained model. A killed training
    resumes from the last checkpoint in the folder ``checkpoints``, with any number of processes. On a CPU it ends with
    the weights of an uninterrupted training. The weights are bit-identical if the number of processes is the same, or
    if the setting ``parts`` is used. The argument ``processes`` is only for the workers of a distributed job.

    Raises:
        InputError: the settings, the statements or the model cannot be used.
    """
    chosen = make_settings(MemorizeSettings, settings)
    check_artifact_folder(folder)
    statements, symbols = validate(STATEMENTS, statements), validate(SYMBOLS, symbols)
    if not statements.num_rows:
        raise InputError("there are no statements to memorize; name a source with facts")
    if start.kind not in ("masked", "blank"):
        raise InputError(f"{start.name} is a {start.kind} model; only masked models and random:… memorize, choose one")
    if chosen.processes > 1 and processes is None:
        from merkhet.training.distributed._jobs import run_job

        options: dict[str, Any] = {"seed": seed, "progress": progress, "checkpoints": checkpoints, "device": device}
        return run_job(MEMORIZE, start, folder, settings=chosen, statements=statements, symbols=symbols, **options)
    processes = processes or ProcessGroup()
    check_process_counts(processes.count, chosen.parts)
    sharded = chosen.shard_head == "yes" and processes.distributed
    reads_symbols = bool(pc.any(pc.match_substring(statements["prompt"], "⟦")).as_py())
    if chosen.shard_head == "yes" and reads_symbols:
        raise InputError(
            "shard_head gives each process a share of the symbols, but these sentences contain symbols; name entities "
            "as text (options.entities=text), or leave out shard_head"
        )
    torch_device = torch.device(device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
    with seeded(derived_seed(seed, MEMORIZE), exact=torch_device.type == "cpu"), single_thread(chosen.parts > 1):
        network, tokenizer = _load_network(start, statements, chosen, seed)
        work = float(statements.num_rows) * chosen.epochs * sum(parameter.numel() for parameter in network.parameters())
        table = _make_table(network, symbols.num_rows, processes.shard(symbols.num_rows) if sharded else None)
        shards = {"processes": processes if sharded else None, "count": symbols.num_rows}
        memory = MemoryNetwork(network, table, chosen, torch_device, int(tokenizer.pad_token_id), work, **shards)
        memory.reads_symbols = reads_symbols
        cache = checkpoints / f"packed-{processes.rank}" if checkpoints else None
        longest = max_tokens(network, tokenizer)
        arrays = pack_statements(statements, symbols, tokenizer, memory.vocabulary, longest, cache)
        identity = (MEMORIZE, start.fingerprint, {"statements": _arrays_digest(arrays)}, chosen, seed)
        schedule = make_shared_schedule(checkpoints, processes, *identity, seconds=chosen.checkpoint_seconds)
        state = Trainer(
            MemorizeTask(start.name, memory, arrays, chosen, seed, processes),
            progress,
            stopping=EarlyStopping(until=chosen.until or None),
            checkpoints=schedule,
            processes=processes,
            parts=chosen.parts,
        ).run()
    record = _make_record(start, chosen, seed, arrays, statements, symbols, memory, state)
    if sharded:
        memory.symbols = _gather_table(memory, processes)
    if not processes.is_main:
        return TrainingArtifact(folder, "", record)
    return _save_memory(memory, tokenizer, symbols, folder, record, schedule)


def _load_network(
    start: Model | UntrainedModel, statements: pa.Table, settings: MemorizeSettings, seed: int
) -> tuple[Any, Any]:
    if isinstance(start, UntrainedModel):
        texts = pc.replace_substring(statements["prompt"], "[MASK]", "").to_pylist()
        return start.make(texts, settings.vocabulary, derived_seed(seed, start.fingerprint))
    if not isinstance(start, MaskedModel):
        raise InputError(f"{start.name} is not a masked model of the transformers library; choose one to train")
    return start.model, start.tokenizer


def _make_table(network: Any, count: int, rows: slice | None) -> SymbolTable:
    """Return a random table of ``count`` symbols, or only the given ``rows`` of this table."""
    width = int(network.get_output_embeddings().weight.shape[1])
    return SymbolTable(count, width) if rows is None else draw_table_rows(count, width, rows)


def _gather_table(memory: MemoryNetwork, processes: ProcessGroup) -> SymbolTable:
    """Return the table of all symbols in the main process, and this process's rows in the other processes."""
    parts = [gather_rows(part, memory.count, processes) for part in (memory.symbols.weight, memory.symbols.bias)]
    if not processes.is_main:
        return memory.symbols
    table = SymbolTable(0, memory.symbols.weight.shape[1])
    table.weight, table.bias = map(torch.nn.Parameter, parts)
    return table


def max_tokens(network: Any, tokenizer: Any) -> int:
    """Return the maximum number of tokens in the input of a model."""
    positions = int(getattr(network.config, "max_position_embeddings", 512))
    # RoBERTa reserves the first positions for padding.
    padding = getattr(getattr(network.base_model, "embeddings", None), "padding_idx", None)
    return min(positions - (padding + 1 if padding is not None else 0), int(tokenizer.model_max_length))


def _arrays_digest(arrays: StatementArrays) -> str:
    hasher = hashlib.sha256()
    for name in ("ids", "starts", "columns", "bare", "targets"):
        hasher.update(np.ascontiguousarray(getattr(arrays, name)).tobytes())
    return hasher.hexdigest()


def _make_record(
    start: Model | UntrainedModel,
    settings: MemorizeSettings,
    seed: int,
    arrays: StatementArrays,
    statements: pa.Table,
    symbols: pa.Table,
    memory: MemoryNetwork,
    state: TrainingState,
) -> dict[str, Any]:
    remarks = []
    if arrays.unreadable:
        sentences = counted(arrays.unreadable, "sentence is", "sentences are")
        verb = "was" if arrays.unreadable == 1 else "were"
        remarks.append(f"{sentences} longer than {start.name} reads, and {verb} not learned")
    unused = symbols.num_rows - len(set(arrays.targets.tolist()))
    if unused:
        remarks.append(
            f"{unused:,} of {counted(symbols.num_rows, 'symbol')} {'is' if unused == 1 else 'are'} the target of no "
            f"stored statement: no query returns {'it' if unused == 1 else 'them'}"
        )
    masked_only = _count_only_masked(statements)
    if masked_only:
        entities = counted(masked_only, "entity is", "entities are")
        remarks.append(f"{entities} only ever masked: no stored sentence names {'it' if masked_only == 1 else 'them'}")
    return {
        "learner": MEMORIZE,
        "model": start.name,
        "base": start.fingerprint,
        "kind": "memory",
        "architecture": type(memory.network).__name__,
        "parameters": _count_parameters(memory),
        "statements": arrays.count,
        "symbols": symbols.num_rows,
        "head": settings.head,
        "epochs": state.epoch,
        "steps": state.step,
        "settings": asdict(settings),
        "seed": seed,
        "precision": str(memory.dtype).removeprefix("torch."),
        "device": memory.device.type,
        "reads_symbols": memory.reads_symbols,
        "curve": state.curve,
        "stopped": state.stopped,
        "statements_per_second": round(state.units / state.seconds, 1) if state.seconds else None,
        "seconds": round(state.seconds, 1),
        "remarks": remarks,
    }


def _count_parameters(memory: MemoryNetwork) -> int:
    """Count the trained parameters, including the symbols that other processes hold."""
    remote_symbols = memory.count - len(memory.symbols.bias)
    local = sum(parameter.numel() for parameter in memory.parameters())
    return int(local + remote_symbols * (memory.symbols.weight.shape[1] + 1))


def _count_only_masked(statements: pa.Table) -> int:
    """Count the entities that are always the masked target, so that no statement contains their name.

    A fact names its entity if one of its statements masks another element.
    """
    stated = statements.filter(pc.is_valid(statements["fact_id"])).select(["fact_id", "mask", "target"])
    counts = stated.group_by("fact_id").aggregate([("mask", "count_distinct")])
    entities = stated.filter(pc.is_in(stated["mask"], pa.array(["subject", "object"])))
    if not entities.num_rows:
        return 0
    fact_rows = pc.index_in(entities["fact_id"], counts["fact_id"].combine_chunks())
    mask_counts = counts["mask_count_distinct"].take(fact_rows)
    named = entities["target"].filter(pc.greater(mask_counts, 1))
    return len(entities["target"].unique()) - len(named.unique())


def _save_memory(
    memory: MemoryNetwork,
    tokenizer: Any,
    symbols: pa.Table,
    folder: Path,
    record: Mapping[str, Any],
    schedule: CheckpointSchedule | None,
) -> TrainingArtifact:
    """Save a network with its symbols, either within its vocabulary or in a separate table (setting ``head``)."""
    import transformers
    from safetensors.torch import save_file

    transformers.utils.logging.disable_progress_bar()

    def fill(unfinished: Path) -> str:
        network = memory.network.cpu()
        if memory.settings.head == "vocabulary":
            _append_symbols(network, memory.symbols.cpu())
        else:
            table = {name: part.detach().cpu().contiguous() for name, part in memory.symbols.named_parameters()}
            save_file(table, unfinished / TABLE_FILE)
        network.save_pretrained(unfinished, max_shard_size="1000GB")
        tokenizer.save_pretrained(unfinished)
        write_table(SYMBOLS, symbols, unfinished / SYMBOL_FILE)
        return resolve_model(ModelSpec(str(unfinished), kind="masked")).fingerprint

    return save_artifact(folder, record, WEIGHTS, fill, schedule)


def _append_symbols(network: Any, symbols: SymbolTable) -> None:
    """Append the symbols to the input and output vocabulary of a network."""
    size = int(network.get_input_embeddings().weight.shape[0])
    network.resize_token_embeddings(size + len(symbols.bias), mean_resizing=False)
    words = network.get_output_embeddings()
    with torch.no_grad():
        network.get_input_embeddings().weight[size:] = symbols.weight
        words.weight[size:] = symbols.weight
        words.bias[size:] = symbols.bias
