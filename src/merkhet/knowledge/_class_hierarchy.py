"""What stands above what, nearest first, in hierarchies that may run in circles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

Parents = Mapping[str, Collection[str]]
"""Each class or property, and those directly above it."""


def steps_above(starts: Iterable[str], parents: Parents) -> dict[str, int]:
    """How many steps it takes from the nearest of the starts to each of them (0) and to all that stands above."""
    steps = dict.fromkeys(starts, 0)
    waiting = list(steps)
    for node in waiting:
        for parent in parents.get(node, ()):
            if parent not in steps:
                steps[parent] = steps[node] + 1
                waiting.append(parent)
    return steps


class Ancestry:
    """The ancestors of every node with their distances.

    A node is never its own ancestor, and nodes in a circle (each stands above the other: they mean the same) are not
    ancestors of each other. Whatever stands above one of them stands above all.
    """

    def __init__(self, nodes: Iterable[str], parents: Parents) -> None:
        self.parents = parents
        self.above: dict[str, dict[str, int]] = {}
        self.circles: dict[str, frozenset[str]] = {}
        for node in nodes:
            steps = steps_above([node], parents)
            if any(node in parents.get(other, ()) for other in steps if other != node):
                self._find_circle(node, steps)
                steps = {other: step for other, step in steps.items() if other not in self.circles[node]}
            steps.pop(node, None)
            self.above[node] = steps

    def _find_circle(self, node: str, steps: Mapping[str, int]) -> None:
        """What is reached from the node and reaches it, for all of the circle at once."""
        if node in self.circles:
            return
        children: dict[str, list[str]] = {}
        for other in steps:
            for parent in self.parents.get(other, ()):
                children.setdefault(parent, []).append(other)
        circle = frozenset(steps_above([node], children))
        self.circles.update(dict.fromkeys(circle, circle))

    def lowest(self, nodes: Collection[str]) -> set[str]:
        """Those of the nodes that stand above no other one of them."""
        above = {high for node in nodes for high in self.above[node]}
        return {node for node in nodes if node not in above}
