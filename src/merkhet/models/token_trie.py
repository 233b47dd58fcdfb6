"""Sequences of tokens as trees, so that what they share is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merkhet.models.protocol import IntArray

ROOT = -1
"""Stands for the token that all sequences follow."""


@dataclass(frozen=True)
class TokenTrie:
    """Token sequences that follow one root, with their common beginnings merged.

    The nodes that something follows go through the model (``tokens``, ``depths`` below the root, ``seen``: which node
    sees which); an edge is a token to be predicted after a node or the root (``sources``, ``targets``). ``paths`` holds
    the edges of each sequence, one after another, beginning at ``starts``; ``members`` says which sequences these are.
    A sequence's last token is only ever predicted, so it costs no position.
    """

    tokens: IntArray
    depths: IntArray
    visible: NDArray[np.bool_]
    sources: IntArray
    targets: IntArray
    paths: IntArray
    starts: IntArray
    sequence_ids: IntArray


def build_tries(sequences: Sequence[Sequence[int]], most_nodes: int) -> list[TokenTrie]:
    """Trees that hold all the sequences, none with more nodes than allowed but where one sequence alone has more.

    Sequences that begin alike are neighbours, whatever the order in which they are given.
    """
    trees: list[TokenTrie] = []
    growing = _Growing()
    for number in sorted(range(len(sequences)), key=lambda number: tuple(sequences[number])):
        if growing.members and len(growing.tokens) + growing.missing(sequences[number]) > most_nodes:
            trees.append(growing.grown())
            growing = _Growing()
        growing.add(number, sequences[number])
    return [*trees, growing.grown()]


class _Growing:
    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.sources: list[int] = []
        self.targets: list[int] = []
        self.paths: list[int] = []
        self.starts: list[int] = [0]
        self.members: list[int] = []
        self._edges: dict[tuple[int, int], int] = {}
        self._nodes: dict[int, int] = {}

    def missing(self, sequence: Sequence[int]) -> int:
        """How many nodes a sequence would add."""
        node = ROOT
        for place, token in enumerate(sequence[:-1]):
            edge = self._edges.get((node, token))
            if edge is None or edge not in self._nodes:
                return len(sequence) - 1 - place
            node = self._nodes[edge]
        return 0

    def add(self, number: int, sequence: Sequence[int]) -> None:
        node = ROOT
        for place, token in enumerate(sequence):
            edge = self._edges.setdefault((node, token), len(self.sources))
            if edge == len(self.sources):
                self.sources.append(node)
                self.targets.append(token)
            self.paths.append(edge)
            if place < len(sequence) - 1:
                if edge not in self._nodes:
                    self._nodes[edge] = len(self.tokens)
                    self.tokens.append(token)
                    self.parents.append(node)
                node = self._nodes[edge]
        self.starts.append(len(self.paths))
        self.members.append(number)

    def grown(self) -> TokenTrie:
        size = len(self.tokens)
        seen = np.eye(size, dtype=np.bool_)
        depths = np.zeros(size, dtype=np.int64)
        for node, parent in enumerate(self.parents):
            if parent != ROOT:
                seen[node] |= seen[parent]
                depths[node] = depths[parent] + 1
        lists = (self.sources, self.targets, self.paths, self.starts, self.members)
        return TokenTrie(_whole(self.tokens), depths, seen, *(_whole(values) for values in lists))


def _whole(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
