"""Ancestors by distance in class and property hierarchies that may contain cycles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

Parents = Mapping[str, Collection[str]]
"""The direct parents of each class or property."""


def ancestor_distances(starts: Iterable[str], parents: Parents) -> dict[str, int]:
    """Count the steps from the nearest start node to each start node (0) and each of its ancestors."""
    distances = dict.fromkeys(starts, 0)
    queue = list(distances)
    for node in queue:
        for parent in parents.get(node, ()):
            if parent not in distances:
                distances[parent] = distances[node] + 1
                queue.append(parent)
    return distances


class Ancestry:
    """The ancestors of every node with their distances.

    A node is never its own ancestor. Nodes of a cycle are equivalent: none of them is an ancestor of another, and
    all of them share their ancestors outside the cycle.
    """

    def __init__(self, nodes: Iterable[str], parents: Parents) -> None:
        self.parents = parents
        self.ancestors: dict[str, dict[str, int]] = {}
        self.cycles: dict[str, frozenset[str]] = {}
        for node in nodes:
            distances = ancestor_distances([node], parents)
            if any(node in parents.get(ancestor, ()) for ancestor in distances if ancestor != node):
                self._find_cycle(node, distances)
                distances = {
                    ancestor: distance for ancestor, distance in distances.items() if ancestor not in self.cycles[node]
                }
            distances.pop(node, None)
            self.ancestors[node] = distances

    def _find_cycle(self, node: str, distances: Mapping[str, int]) -> None:
        """Find the nodes that the node reaches and that reach it, once for all of them."""
        if node in self.cycles:
            return
        children: dict[str, list[str]] = {}
        for member in distances:
            for parent in self.parents.get(member, ()):
                children.setdefault(parent, []).append(member)
        cycle = frozenset(ancestor_distances([node], children))
        self.cycles.update(dict.fromkeys(cycle, cycle))

    def most_specific(self, nodes: Collection[str]) -> set[str]:
        """Return the nodes that are no ancestor of another one of them."""
        ancestors = {ancestor for node in nodes for ancestor in self.ancestors[node]}
        return {node for node in nodes if node not in ancestors}
