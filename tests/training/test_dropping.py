"""Dropout by example: what is dropped of one hangs on the seed and its slot, not on its neighbours."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from merkhet.training.distributed._example_dropout import example_dropout
from merkhet.training.distributed._gradient_sync import GradientSum, tree_nodes
from merkhet.training.distributed._process_group import ProcessGroup


def dropped(slots, *shape: int, seed: int = 3, p: float = 0.25, calls: int = 1) -> list[torch.Tensor]:
    with example_dropout(seed, slots):
        return [functional.dropout(torch.ones(len(slots), *shape), p) for _ in range(calls)]


@pytest.mark.parametrize("shape", [(9, 16), (4, 9, 9), (16,)])
def test_an_example_loses_the_same_in_any_company_at_any_length(shape):
    together = dropped([4, 5, 6], *shape, calls=2)
    alone = dropped([5], *(size + 3 if size == 9 else size for size in shape), calls=2)
    inside = tuple(slice(0, size) for size in shape)
    for many, one in zip(together, alone, strict=True):
        assert torch.equal(many[1], one[0][inside])
    assert not torch.equal(together[0], together[1]) and not torch.equal(together[0][0], together[0][1])
    assert not torch.equal(together[0], dropped([4, 5, 6], *shape, seed=4)[0])


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_share_is_dropped_and_the_mean_stays(p):
    [found] = dropped(list(range(40)), 50, 64, p=p)
    values = found.unique().tolist()
    assert values == pytest.approx([0.0, 1 / (1 - p)])
    error = (p * (1 - p) / found.numel()) ** 0.5
    assert float((found == 0).double().mean()) == pytest.approx(p, abs=4 * error)
    for axis in (0, 1, 2):  # Neighbours along no axis have anything to do with each other.
        kept = (found != 0).double() - (1 - p)
        one, other = kept.narrow(axis, 0, kept.shape[axis] - 1), kept.narrow(axis, 1, kept.shape[axis] - 1)
        assert abs(float((one * other).mean())) < 4 * p * (1 - p) / one.numel() ** 0.5


def test_attention_is_the_librarys_but_for_what_is_dropped():
    torch.manual_seed(0)
    query, key, value = (torch.randn(3, 2, 7, 4) for _ in range(3))
    there = torch.ones(3, 1, 1, 7, dtype=torch.bool)
    there[1, ..., 5:] = False
    weights = torch.softmax((query @ key.transpose(-2, -1) / 2).masked_fill(~there, -torch.inf), -1)
    for mask in (there, torch.zeros(there.shape).masked_fill(~there, -1e30)):
        with example_dropout(1, [0, 1, 2]):
            found = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=0.3)
        with example_dropout(1, [0, 1, 2]):
            kept = functional.dropout(torch.ones_like(weights), 0.3)
        torch.testing.assert_close(found, (weights * kept) @ value)
        with example_dropout(1, [0, 1, 2]):
            whole = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        torch.testing.assert_close(whole, weights @ value)


def test_nothing_is_dropped_where_nothing_is_trained():
    given = torch.randn(2, 3)
    with example_dropout(1, [0, 1]):
        assert functional.dropout(given, 0.5, False) is given
        assert torch.equal(functional.dropout(given, 1.0), torch.zeros(2, 3))


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 8, 12])
def test_parts_go_to_processes_as_whole_sums_of_one_tree(parts):
    """Each part once, in sums that a tree over all parts has."""
    width = 1 << (parts - 1).bit_length()
    tree = {(start, 1 << level) for level in range(width.bit_length()) for start in range(0, width, 1 << level)}
    for count in range(1, parts + 1):
        nodes = [node for rank in range(count) for node in tree_nodes(ProcessGroup(rank, count).shard(parts), parts)]
        assert set(nodes) <= tree
        covered = [part for first, size in nodes for part in range(first, first + size) if part < parts]
        assert covered == list(range(parts))
    assert tree_nodes(slice(0, parts), parts) == [(0, width)]


@pytest.mark.parametrize("rows", [1, 3, 10])
def test_the_sum_in_parts_is_that_of_the_tree(rows):
    torch.manual_seed(rows)
    used, unused = torch.nn.Parameter(torch.zeros(5)), torch.nn.Parameter(torch.zeros(2))
    given = torch.randn(rows, 5)

    def learn(some: slice) -> torch.Tensor:
        used.grad = given[some].sum(0) if some.stop > some.start else None
        return given[some].sum().reshape(1)

    total = GradientSum([used, unused], ProcessGroup(), 4)(rows, learn)
    parts = [given[rows * part // 4 : rows * (part + 1) // 4].sum(0) for part in range(4)]
    assert torch.equal(used.grad, (parts[0] + parts[1]) + (parts[2] + parts[3])) and unused.grad is None
    assert float(total) == pytest.approx(float(given.sum()), abs=1e-5)
