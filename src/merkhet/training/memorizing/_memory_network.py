"""A model that stores facts: a masked model, and an output for each symbol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from merkhet.training.distributed._process_group import ProcessGroup
from merkhet.training.memorizing._device_batches import Placed
from merkhet.training.memorizing._head_shards import ShardedHead
from merkhet.training.memorizing._model_body import Body, body_of
from merkhet.training.memorizing._symbol_head import (
    TOP,
    Learnt,
    Outputs,
    Ranks,
    SymbolTable,
    learn,
    rank,
    spread,
    spread_in_kernels,
)
from merkhet.training.memorizing.memorize_settings import MemorizeSettings

WORTH_COMPILING = 1e15


class MemoryNetwork:
    """A masked model of the library with a table of symbols, on one device.

    With the head ``vocabulary`` symbols compete with the words of the vocabulary; with ``separate`` among themselves.
    The network always stands as if it were asked: dropout would only keep it from learning by heart. ``work`` is how
    often parameters will be used, statements by parameters: where there is much to do, it pays to compile. With
    ``shards`` the table holds the rows of this process alone, and all processes must learn and rank at once.
    """

    def __init__(
        self,
        network: Any,
        symbols: SymbolTable,
        settings: MemorizeSettings,
        device: torch.device,
        pad: int,
        work: float = 0.0,
        shards: ProcessGroup | None = None,
        count: int | None = None,
    ) -> None:
        self.network = network.to(device=device, dtype=torch.float32).eval()
        self.symbols: SymbolTable = symbols.to(device)
        self.settings, self.device, self.pad = settings, device, pad
        self.vocabulary = int(network.get_input_embeddings().weight.shape[0])
        on_cuda = device.type == "cuda"
        self.dtype = torch.bfloat16 if settings.precision == "bfloat16" else torch.float32
        if settings.precision == "auto" and on_cuda:
            self.dtype = torch.bfloat16
        compiler: Callable[[Any], Any] | None = None
        if settings.compile == "yes" or (settings.compile == "auto" and on_cuda and work >= WORTH_COMPILING):
            torch._dynamo.reset()  # What another network has left would make sizes variable that are not.
            compiler = torch.compile
        self.body: Body = body_of(self.network, self.dtype, compiler, recompute=settings.checkpoints == "yes")
        self.spread = compiler(spread_in_kernels) if compiler else spread
        self.reads_symbols = False
        self.count = len(self.symbols.bias) if count is None else count
        self.shards = ShardedHead(self.symbols, self.count, shards) if shards is not None else None

    @property
    def outputs(self) -> Outputs:
        """All that compete at the mask."""
        own = (self.symbols.weight,), (self.symbols.bias,)
        if self.settings.head == "separate":
            return Outputs(*own)
        words = self.network.get_output_embeddings()
        return Outputs((words.weight, *own[0]), (words.bias, *own[1]))

    def parameters(self) -> list[torch.nn.Parameter]:
        """All that is learned, each once; the vocabulary's own table only where it competes or is read."""
        return [one for one in (*self.network.parameters(), *self.symbols.parameters()) if one.requires_grad]

    def states(self, placed: Placed) -> torch.Tensor:
        """The states from which symbols are scored."""
        table = self.symbols.weight if self.reads_symbols else None
        return self.body(placed.ids, placed.lengths, placed.columns, table)

    def learn(self, placed: Placed, scale: float, *, first: bool) -> Learnt:
        """Gradients of the loss by ``scale``, added to those there are; the ``first`` of a step begin anew."""
        states = self.states(placed)
        learnt = learn(self.outputs, states.detach(), placed.targets, scale, self.spread, first=first)
        states.backward(learnt.of_states)
        return learnt

    def learn_sharded(self, placed: Placed, sizes: Sequence[int], scale: float, *, first: bool) -> Learnt:
        """The same with a head in shards; ``sizes`` says how many sentences each process has (it may be none)."""
        assert self.shards is not None
        within = self.shards.processes.within_memory
        width = self.symbols.weight.shape[1]
        empty = torch.zeros(0, width, dtype=self.dtype, device=self.device)
        states = within(lambda: self.states(placed) if len(placed) else empty, self.device)
        learnt = self.shards.learn(states.detach(), placed.targets, sizes, scale, first=first)
        within(lambda: states.backward(learnt.of_states) if len(placed) else None, self.device)
        return learnt

    def begin(self) -> None:
        """Before the passes of a step: take over what the optimizer has changed."""
        self.body.begin()

    def end(self) -> None:
        """After the passes of a step: hand all gradients to the optimizer."""
        self.body.end()

    def rank(self, placed: Placed, rows: torch.Tensor, answers: torch.Tensor, first: int = TOP) -> Ranks:
        """Where targets and right answers (symbols, of the sentence numbered in ``rows``) stand, and what is first."""
        outputs = self.outputs
        targets = placed.targets + outputs.offset
        with torch.no_grad():
            if self.shards is not None:
                return self._rank_sharded(placed, rows, answers, first)
            return rank(outputs, self.states(placed), targets, rows, answers + outputs.offset, first)

    def _rank_sharded(self, placed: Placed, rows: torch.Tensor, answers: torch.Tensor, first: int) -> Ranks:
        """Ranks of sentences that all processes have been given, of which each reads its share."""
        assert self.shards is not None
        every = self.shards.processes
        shares = [every.share(len(placed), rank) for rank in range(every.count)]
        own = placed[shares[every.rank]]
        states = self.states(own) if len(own) else torch.zeros(0, self.symbols.weight.shape[1], device=self.device)
        sizes = [share.stop - share.start for share in shares]
        return self.shards.rank(states, sizes, placed.targets, rows, answers, first)
