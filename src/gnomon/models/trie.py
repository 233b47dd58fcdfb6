"""Candidates of one prompt as a tree of tokens, so that what they share is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TokenTree:
    """Token sequences with their common beginnings merged.

    The nodes that something follows go through the model (``tokens``, ``depths``, ``parents``); an edge is a token to
    be predicted after a node (``sources``, ``targets``). ``paths`` holds the edges of each sequence, in order.
    A sequence's last token is only ever predicted, so it costs no position.
    """

    tokens: list[int]
    depths: list[int]
    parents: list[int]
    sources: list[int]
    targets: list[int]
    paths: list[list[int]]

    def attention(self) -> NDArray[np.bool_]:
        """Which node sees which: itself and what leads to it."""
        size = len(self.tokens)
        seen = np.zeros((size, size), dtype=np.bool_)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                seen[node] = seen[parent]
            seen[node, node] = True
        return seen


def build_tree(sequences: Sequence[Sequence[int]]) -> TokenTree:
    """The tree of sequences that all begin with the same token."""
    tokens, depths, parents = [sequences[0][0]], [0], [-1]
    sources: list[int] = []
    targets: list[int] = []
    edges: dict[tuple[int, int], int] = {}
    nodes: dict[int, int] = {}
    paths = []
    for sequence in sequences:
        node, path = 0, []
        for place, token in enumerate(sequence[1:], 1):
            edge = edges.setdefault((node, token), len(sources))
            if edge == len(sources):
                sources.append(node)
                targets.append(token)
            path.append(edge)
            if place < len(sequence) - 1:
                if edge not in nodes:
                    nodes[edge] = len(tokens)
                    tokens.append(token)
                    depths.append(place)
                    parents.append(node)
                node = nodes[edge]
        paths.append(path)
    return TokenTree(tokens, depths, parents, sources, targets, paths)
