"""Network that stores facts: a masked model with one output for each symbol (an entity or a time)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.memorizing._model_body import make_body
from merkhet.training.memorizing._statement_arrays import DeviceBatch
from merkhet.training.memorizing._symbol_head import (
    TOP,
    HeadGradients,
    Outputs,
    Ranks,
    ShardedHead,
    SymbolTable,
    fusable_target_softmax,
    head_gradients,
    rank_symbols,
    target_softmax,
)
from merkhet.training.memorizing.memorize_settings import MemorizeSettings

WORTH_COMPILING = 1e15
"""Minimum amount of work (trained statements times parameters) for which compilation saves time."""


class MemoryNetwork:
    """A masked language model with a table of symbols, on one device.

    With the setting ``head=vocabulary``, symbols compete with the words of the vocabulary; with ``head=separate``, they
    compete only with each other. With a sharded head, all processes must call ``backward_sharded`` and ``rank`` at the
    same time.
    """

    def __init__(
        self,
        network: Any,
        symbols: SymbolTable,
        settings: MemorizeSettings,
        device: torch.device,
        pad: int,
        work: float = 0.0,
        processes: ProcessGroup | None = None,
        count: int | None = None,
    ) -> None:
        """Move a masked model and its symbols to a device.

        ``work`` is the product of trained statements (over all epochs) and parameters; it decides whether to compile.
        With ``processes``, ``symbols`` holds only this process's rows of a table of ``count`` symbols.
        """
        self.network = network.to(device=device, dtype=torch.float32).eval()
        self.symbols: SymbolTable = symbols.to(device)
        self.settings, self.device, self.pad = settings, device, pad
        self.vocabulary = int(network.get_input_embeddings().weight.shape[0])
        on_cuda = device.type == "cuda"
        half = settings.precision == "bfloat16" or (settings.precision == "auto" and on_cuda)
        self.dtype = torch.bfloat16 if half else torch.float32
        compiler: Callable[[Any], Any] | None = None
        if settings.compile == "yes" or (settings.compile == "auto" and on_cuda and work >= WORTH_COMPILING):
            torch._dynamo.reset()  # State left by another network would turn fixed sizes into dynamic ones.
            compiler = torch.compile
        self.body = make_body(self.network, self.dtype, compiler, recompute=settings.checkpoints == "yes")
        self.softmax = compiler(fusable_target_softmax) if compiler else target_softmax
        self.reads_symbols = False
        self.count = len(self.symbols.bias) if count is None else count
        self.sharded_head = ShardedHead(self.symbols, self.count, processes) if processes else None

    @property
    def outputs(self) -> Outputs:
        """All outputs that compete at the mask."""
        symbols = (self.symbols.weight,), (self.symbols.bias,)
        if self.settings.head == "separate":
            return Outputs(*symbols)
        words = self.network.get_output_embeddings()
        return Outputs((words.weight, *symbols[0]), (words.bias, *symbols[1]))

    def parameters(self) -> list[torch.nn.Parameter]:
        """Return all trained parameters of the network and the symbol table."""
        return [p for module in (self.network, self.symbols) for p in module.parameters() if p.requires_grad]

    def states(self, batch: DeviceBatch) -> torch.Tensor:
        """Return the hidden states at the masks, from which symbols are scored."""
        table = self.symbols.weight if self.reads_symbols else None
        return self.body(batch.ids, batch.lengths, batch.columns, table)

    def backward(self, batch: DeviceBatch, scale: float, *, overwrite: bool) -> HeadGradients:
        """Compute the summed loss of a batch, and its gradients times ``scale``.

        The gradients of the head are added to the present gradients, or replace them with ``overwrite``.
        """
        states = self.states(batch)
        gradients = head_gradients(
            self.outputs, states.detach(), batch.targets, scale, self.softmax, overwrite=overwrite
        )
        states.backward(gradients.state_gradients)
        return gradients

    def backward_sharded(
        self, batch: DeviceBatch, sizes: Sequence[int], scale: float, *, overwrite: bool
    ) -> HeadGradients:
        """Compute the summed loss of this process's ``batch``, and its gradients, with a sharded head.

        ``sizes`` holds the batch sizes of all processes, which may be 0.
        """
        assert self.sharded_head is not None
        run = self.sharded_head.processes.run_within_memory
        states = run(lambda: self._share_states(batch), self.device)
        gradients = self.sharded_head.gradients(states.detach(), batch.targets, sizes, scale, overwrite=overwrite)
        run(lambda: states.backward(gradients.state_gradients) if len(batch) else None, self.device)
        return gradients

    def begin_step(self) -> None:
        """Load the parameters that the optimizer has updated, before the forward passes of a step."""
        self.body.begin_step()

    def end_step(self) -> None:
        """Store all gradients in the parameters for the optimizer, after the backward passes of a step."""
        self.body.end_step()

    def rank(self, batch: DeviceBatch, rows: torch.Tensor, answers: torch.Tensor, top_k: int = TOP) -> Ranks:
        """Rank the targets and the gold answers of a batch; return also the ``top_k`` best outputs.

        ``answers`` holds the symbols of all gold answers, and ``rows`` the batch row of each gold answer.
        """
        with torch.no_grad():
            if self.sharded_head:
                return self._rank_sharded(batch, rows, answers, top_k)
            outputs = self.outputs
            targets = batch.targets + outputs.offset
            return rank_symbols(outputs, self.states(batch), targets, rows, answers + outputs.offset, top_k)

    def _rank_sharded(self, batch: DeviceBatch, rows: torch.Tensor, answers: torch.Tensor, top_k: int) -> Ranks:
        """Rank a batch that is the same in all processes; each process computes the states of its share."""
        assert self.sharded_head is not None
        processes = self.sharded_head.processes
        shares = [processes.shard(len(batch), rank) for rank in range(processes.count)]
        states = self._share_states(batch[shares[processes.rank]])
        sizes = [share.stop - share.start for share in shares]
        return self.sharded_head.rank(states, sizes, batch.targets, rows, answers, top_k)

    def _share_states(self, batch: DeviceBatch) -> torch.Tensor:
        """Return the hidden states of ``batch``, this process's share of a batch, which may be empty."""
        if len(batch):
            return self.states(batch)
        return torch.zeros(0, self.symbols.weight.shape[1], dtype=self.dtype, device=self.device)
