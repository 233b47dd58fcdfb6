"""The fast step of memorizing against the obvious one: autograd over the library's own network, all positions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from stored_facts import world
from tiny_models import MASKED, build_models
from transformers import AutoModelForMaskedLM, AutoTokenizer
from writing_models import WRITERS

from merkhet.training._trainer import Trainer
from merkhet.training.memorizing._memorize_task import MemorizeTask
from merkhet.training.memorizing._memory_network import MemoryNetwork
from merkhet.training.memorizing._model_body import FusedBody, LibraryBody, make_body
from merkhet.training.memorizing._statement_arrays import BatchLoader, epoch_batches, pack_statements
from merkhet.training.memorizing._symbol_head import (
    Outputs,
    SymbolTable,
    fusable_target_softmax,
    head_gradients,
    rank_symbols,
    target_softmax,
)
from merkhet.training.memorizing.memorize_settings import MemorizeSettings

FUSED = ("bert", "roberta")
OTHERS = ("albert", "distilbert", "electra")


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folders(one_thread, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    known = {**WRITERS, **MASKED}
    chosen = {name: known[name] for name in (*FUSED, *OTHERS) if name in known}
    assert len(chosen) >= 4
    families = {
        name: replace(family, settings={**family.settings, "initializer_range": 0.1}) for name, family in chosen.items()
    }
    return build_models(tmp_path_factory.mktemp("models"), families)


def _memory(folder: Path, symbols: int, **settings):
    network = AutoModelForMaskedLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(5)
    table = SymbolTable(symbols, network.get_output_embeddings().weight.shape[1])
    torch.nn.init.normal_(table.bias, std=0.3)
    chosen = MemorizeSettings(**{"batch_size": 8, "epochs": 2, "warmup": 0.0, **settings})
    return MemoryNetwork(network, table, chosen, torch.device("cpu"), tokenizer.pad_token_id), tokenizer


def _fed(memory, tokenizer, facts: int = 6, longest: int = 62, **given):
    statements, symbols = world(facts, offices=5, **given)
    arrays = pack_statements(statements, symbols, tokenizer, memory.vocabulary, longest, None)
    return arrays, BatchLoader(arrays, memory.device, memory.pad)


@pytest.fixture(params=[*FUSED, *OTHERS])
def family(request, folders) -> Path:
    if request.param not in folders:
        pytest.skip(f"there is no tiny {request.param}")
    return folders[request.param]


def test_lean_ways_are_taken_by_the_families_that_have_them(folders):
    for name, folder in folders.items():
        network = AutoModelForMaskedLM.from_pretrained(folder).eval()
        assert isinstance(make_body(network, torch.float32), FusedBody if name in FUSED else LibraryBody), name


def test_states_are_those_of_the_library(family):
    memory, tokenizer = _memory(family, 111)
    arrays, loader = _fed(memory, tokenizer)
    batches = epoch_batches(arrays, 0, batch_size=8, seed=3)
    assert any(batch.padded for batch in batches)
    decoder = memory.network.get_output_embeddings()
    for batch, device_batch in loader.load(batches):
        with torch.no_grad():
            logits = decoder(memory.states(device_batch))
        for row, number in enumerate(batch.rows):
            ids = torch.tensor(arrays.ids[arrays.starts[number] : arrays.starts[number + 1]]).long()
            with torch.no_grad():
                alone = memory.network(input_ids=ids[None]).logits[0, arrays.columns[number]]
            torch.testing.assert_close(logits[row], alone, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("head", ["separate", "vocabulary"])
def test_gradients_are_those_of_autograd(family, head):
    _, symbols = world(6, offices=5)
    memory, tokenizer = _memory(family, symbols.num_rows, head=head)
    arrays, loader = _fed(memory, tokenizer)
    [(batch, device_batch)] = list(loader.load(epoch_batches(arrays, 0, batch_size=len(arrays.targets), seed=1)))
    memory.begin_step()
    gradients = memory.backward(device_batch, 1 / len(device_batch), overwrite=True)
    memory.end_step()
    found = {name: one.grad.clone() for name, one in _named(memory).items() if one.grad is not None}
    for one in memory.parameters():
        one.grad = None
    loss = _plain_loss(memory, arrays, batch, head)
    loss.backward()
    assert float(gradients.loss) / len(device_batch) == pytest.approx(float(loss.detach()), rel=1e-5)
    expected = {name: one.grad for name, one in _named(memory).items() if one.grad is not None}
    assert len(expected) > 20
    for name, gradient in expected.items():
        if float(gradient.abs().max()) or name in found:
            torch.testing.assert_close(found[name], gradient, atol=2e-6, rtol=2e-4, msg=name)


def _named(memory) -> dict[str, torch.nn.Parameter]:
    return {**dict(memory.network.named_parameters()), **dict(memory.symbols.named_parameters(prefix="symbols"))}


def _plain_loss(memory, arrays, batch, head: str) -> torch.Tensor:
    """One sentence after another through the library, all logits, the cross entropy of the target."""
    losses = []
    decoder = memory.network.get_output_embeddings()
    for row, number in zip(batch.rows, batch.statements, strict=True):
        ids = torch.tensor(arrays.ids[arrays.starts[row] : arrays.starts[row + 1]]).long()
        kept = []
        handle = decoder.register_forward_pre_hook(lambda _module, given, kept=kept: kept.append(given[0]))
        words = memory.network(input_ids=ids[None]).logits[0, arrays.columns[row]]
        handle.remove()
        own = kept[0][0, arrays.columns[row]] @ memory.symbols.weight.t() + memory.symbols.bias
        scores = own if head == "separate" else torch.cat([words, own])
        target = int(arrays.targets[number]) + len(scores) - len(own)
        losses.append(torch.nn.functional.cross_entropy(scores[None], torch.tensor([target])))
    return torch.stack(losses).mean()


def test_symbols_that_are_read_have_gradients_of_both_kinds(folders):
    _, symbols = world(6, offices=5, symbols_in=True)
    memory, tokenizer = _memory(folders["roberta"], symbols.num_rows)
    memory.reads_symbols = True
    arrays, loader = _fed(memory, tokenizer, symbols_in=True)
    assert arrays.ids.max() >= memory.vocabulary
    [(batch, device_batch)] = list(loader.load(epoch_batches(arrays, 0, batch_size=len(arrays.targets), seed=1)))
    memory.begin_step()
    memory.backward(device_batch, 1 / len(device_batch), overwrite=True)
    found = memory.symbols.weight.grad.clone()
    memory.symbols.weight.grad = None
    losses = []
    words = memory.network.get_input_embeddings().weight
    decoder = memory.network.get_output_embeddings()
    for row, number in zip(batch.rows, batch.statements, strict=True):
        ids = torch.tensor(arrays.ids[arrays.starts[row] : arrays.starts[row + 1]]).long()
        vectors = torch.cat([words, memory.symbols.weight])[ids]
        kept = []
        handle = decoder.register_forward_pre_hook(lambda _module, given, kept=kept: kept.append(given[0]))
        memory.network(inputs_embeds=vectors[None])
        handle.remove()
        own = kept[0][0, arrays.columns[row]] @ memory.symbols.weight.t() + memory.symbols.bias
        losses.append(torch.nn.functional.cross_entropy(own[None], torch.tensor([int(arrays.targets[number])])))
    torch.stack(losses).mean().backward()
    torch.testing.assert_close(found, memory.symbols.weight.grad, atol=2e-6, rtol=2e-4)


@pytest.mark.parametrize("change", [{"checkpoints": "yes"}, {"precision": "bfloat16"}, {"micro_batch": 3}])
def test_other_ways_learn_the_same(folders, change):
    """Layers computed twice, a batch in parts: to the last digits. Half precision: nearly."""
    micro_batch, settings = (
        change.get("micro_batch"),
        {key: value for key, value in change.items() if key != "micro_batch"},
    )
    weights, losses = [], []
    for more in ({}, settings):
        _, symbols = world(6, offices=5)
        memory, tokenizer = _memory(folders["roberta"], symbols.num_rows, learning_rate=1e-3, **more)
        arrays, _ = _fed(memory, tokenizer)
        trainer = Trainer(MemorizeTask("t", memory, arrays, memory.settings, 1))
        if micro_batch and more is settings:
            trainer.state.micro_batch = micro_batch
        trainer.run()
        losses.append([line["loss"] for line in trainer.state.curve])
        weights.append(memory.symbols.weight.detach().clone())
    loose = "precision" in change
    assert losses[1] == pytest.approx(losses[0], rel=2e-2 if loose else 1e-4)
    assert losses[0][1] < losses[0][0]
    torch.testing.assert_close(weights[1], weights[0], atol=5e-3 if loose else 1e-4, rtol=1e-2)


def test_out_of_memory_is_learned_in_parts(folders, monkeypatch):
    _, symbols = world(6, offices=5)
    memory, tokenizer = _memory(folders["roberta"], symbols.num_rows)
    arrays, _ = _fed(memory, tokenizer)
    trainer = Trainer(MemorizeTask("t", memory, arrays, memory.settings, 1))
    usual, sizes = memory.backward, []

    def limited(device_batch, scale, *, overwrite):
        sizes.append(len(device_batch))
        if len(device_batch) > 3:
            raise RuntimeError("CUDA out of memory")
        return usual(device_batch, scale, overwrite=overwrite)

    monkeypatch.setattr(memory, "backward", limited)
    loss = trainer.run().curve[0]["loss"]
    assert trainer.state.micro_batch == 2 and max(sizes) == 8
    memory, tokenizer = _memory(folders["roberta"], symbols.num_rows)
    whole = Trainer(MemorizeTask("t", memory, arrays, memory.settings, 1)).run()
    assert loss == pytest.approx(whole.curve[0]["loss"], rel=1e-5)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("halved", [False, True])
def test_the_head_against_autograd(parts, halved):
    torch.manual_seed(parts)
    sizes = (21, 37)[-parts:]
    outputs = Outputs(
        tuple(torch.nn.Parameter(torch.randn(size, 16) * 0.3) for size in sizes),
        tuple(torch.nn.Parameter(torch.randn(size) * 0.1) for size in sizes),
    )
    states, targets = torch.randn(9, 16), torch.randint(0, 37, (9,))
    given = states.bfloat16() if halved else states
    gradients = head_gradients(
        outputs, given, targets, 0.25, fusable_target_softmax if halved else target_softmax, overwrite=True
    )
    found = [one.grad.clone() for one in (*outputs.weights, *outputs.biases)]
    again = head_gradients(outputs, given, targets, 0.25, target_softmax, overwrite=False)
    twice = [one.grad.clone() for one in (*outputs.weights, *outputs.biases)]
    for one in (*outputs.weights, *outputs.biases):
        one.grad = None
    states.requires_grad_()
    scores = states @ torch.cat(outputs.weights).t() + torch.cat(outputs.biases)
    loss = torch.nn.functional.cross_entropy(scores, targets + outputs.offset, reduction="sum")
    (loss * 0.25).backward()
    tolerance = 6e-3 if halved else 1e-6
    assert float(gradients.loss) == pytest.approx(float(loss.detach()), rel=1e-2 if halved else 1e-6)
    assert float(again.loss) == pytest.approx(float(loss.detach()), rel=1e-2 if halved else 1e-6)
    torch.testing.assert_close(gradients.state_gradients.float(), states.grad, atol=tolerance, rtol=tolerance)
    for own, double, one in zip(found, twice, (*outputs.weights, *outputs.biases), strict=True):
        torch.testing.assert_close(own, one.grad, atol=tolerance, rtol=tolerance)
        torch.testing.assert_close(double, 2 * one.grad, atol=2 * tolerance, rtol=tolerance)


def test_ranks_are_counted_as_anybody_would(monkeypatch):
    from merkhet.training.memorizing import _symbol_head as head

    monkeypatch.setitem(head._CELLS, "cpu", 40)  # Several parts.
    generator = np.random.default_rng(4)
    states = torch.from_numpy(generator.integers(-1, 2, (17, 3)).astype(np.float32))
    weight = torch.nn.Parameter(torch.from_numpy(generator.integers(-1, 2, (13, 3)).astype(np.float32)))
    outputs = Outputs((weight,), (torch.nn.Parameter(torch.zeros(13)),))
    answers = [sorted(generator.choice(13, generator.integers(1, 4), replace=False).tolist()) for _ in range(17)]
    targets = torch.tensor([generator.choice(own) for own in answers])
    rows = torch.tensor([row for row, own in enumerate(answers) for _ in own])
    found = rank_symbols(outputs, states, targets, rows, torch.tensor([one for own in answers for one in own]))
    scores = (states @ weight.t()).tolist()
    quick = rank_symbols(outputs, states, targets, rows, torch.tensor([one for own in answers for one in own]), 0)
    assert quick.best_above.equal(found.best_above) and quick.top.shape == (17, 0)
    for row, own in enumerate(answers):
        mine = scores[row][targets[row]]
        best = max(scores[row][one] for one in own)
        assert found.target_above[row] == sum(one > mine for one in scores[row])
        assert found.target_ties[row] == sum(one == mine for one in scores[row])
        assert found.best_above[row] == sum(one > best for one in scores[row])
        assert found.best_ties[row] == sum(one == best for one in scores[row])
        assert found.best_golds[row] == sum(scores[row][one] == best for one in own)
        assert [scores[row][one] for one in found.top[row]] == sorted(scores[row], reverse=True)[:10]
        total = np.log(np.exp(np.array(scores[row])).sum())
        assert found.top_scores[row].tolist() == pytest.approx(
            [one - total for one in sorted(scores[row], reverse=True)[:10]], abs=1e-5
        )
        assert all(one >= other for one, other in pairwise(found.top_scores[row].tolist()))
