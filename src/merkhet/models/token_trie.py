"""Tries of token sequences; a prefix that sequences share goes through the model once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merkhet.models.protocol import IntArray

ROOT = -1
"""The value of ``sources`` for edges that leave the root, which is the last token before all sequences."""


@dataclass(frozen=True)
class TokenTrie:
    """Token sequences that follow one root token, with their common prefixes merged.

    A node is a token with a successor; only nodes go through the model. An edge is a token to predict after a node or
    the root. The last token of a sequence is only predicted, so it is an edge without a node.
    """

    tokens: IntArray
    """The token of each node."""
    depths: IntArray
    """The depth of each node below the root."""
    visible: NDArray[np.bool_]
    """A square matrix: ``visible[i, j]`` is true if node j is node i or one of its ancestors."""
    sources: IntArray
    """The index of the node that each edge leaves, or ``ROOT``."""
    targets: IntArray
    """The token that each edge predicts."""
    paths: IntArray
    """The edge indices of all sequences, concatenated."""
    starts: IntArray
    """The start of each sequence in ``paths``, followed by the end of the last sequence."""
    sequence_ids: IntArray
    """The index of each sequence in the list that the trie was built from."""


def build_tries(sequences: Sequence[Sequence[int]], max_nodes: int) -> list[TokenTrie]:
    """Build tries that together contain all sequences, each trie with at most ``max_nodes`` nodes.

    A sequence that needs more nodes gets a trie to itself. Sorting puts sequences with a common prefix into one trie.
    """
    tries: list[TokenTrie] = []
    builder = _TrieBuilder()
    for index in sorted(range(len(sequences)), key=lambda index: tuple(sequences[index])):
        if builder.sequence_ids and len(builder.tokens) + builder.count_new_nodes(sequences[index]) > max_nodes:
            tries.append(builder.build())
            builder = _TrieBuilder()
        builder.add(index, sequences[index])
    return [*tries, builder.build()]


class _TrieBuilder:
    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.sources: list[int] = []
        self.targets: list[int] = []
        self.paths: list[int] = []
        self.starts: list[int] = [0]
        self.sequence_ids: list[int] = []
        self._edges: dict[tuple[int, int], int] = {}
        self._nodes: dict[int, int] = {}

    def count_new_nodes(self, sequence: Sequence[int]) -> int:
        node = ROOT
        for depth, token in enumerate(sequence[:-1]):
            edge = self._edges.get((node, token))
            if edge is None or edge not in self._nodes:
                return len(sequence) - 1 - depth
            node = self._nodes[edge]
        return 0

    def add(self, index: int, sequence: Sequence[int]) -> None:
        node = ROOT
        for depth, token in enumerate(sequence):
            edge = self._edges.setdefault((node, token), len(self.sources))
            if edge == len(self.sources):
                self.sources.append(node)
                self.targets.append(token)
            self.paths.append(edge)
            if depth < len(sequence) - 1:
                if edge not in self._nodes:
                    self._nodes[edge] = len(self.tokens)
                    self.tokens.append(token)
                    self.parents.append(node)
                node = self._nodes[edge]
        self.starts.append(len(self.paths))
        self.sequence_ids.append(index)

    def build(self) -> TokenTrie:
        size = len(self.tokens)
        visible = np.eye(size, dtype=np.bool_)
        depths = np.zeros(size, dtype=np.int64)
        for node, parent in enumerate(self.parents):
            if parent != ROOT:
                visible[node] |= visible[parent]
                depths[node] = depths[parent] + 1
        lists = (self.sources, self.targets, self.paths, self.starts, self.sequence_ids)
        return TokenTrie(_int_array(self.tokens), depths, visible, *(_int_array(values) for values in lists))


def _int_array(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
