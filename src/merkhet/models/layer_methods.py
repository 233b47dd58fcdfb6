"""Names of methods that read states of a network: ``word`` (the last layer), ``word@3``, ``word@all``."""

from __future__ import annotations

from collections.abc import Sequence

from merkhet.core.errors import InputError


def layered_methods(ways: Sequence[str], last: int) -> tuple[str, ...]:
    """All methods by these ways in a network with so many layers; layer 0 is what its embeddings give."""
    return tuple(name for way in ways for name in (way, *(f"{way}@{layer}" for layer in range(last + 1)), f"{way}@all"))


def expanded(methods: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Methods with ``@all`` written out, each once: the last layer has the plain name, those before it a number.

    What stands for several is read from the methods there are: a name for all layers of nothing stays as it is.
    """
    found: list[str] = []
    for method in methods:
        way, _, layer = method.partition("@")
        numbers = _layers(way, known) if layer == "all" else []
        found += [*(f"{way}@{number}" for number in numbers[:-1]), way] if numbers else [method]
    return tuple(dict.fromkeys(found))


def layer_of(method: str, last: int) -> tuple[str, int]:
    """The way and the layer of a method that stands for one."""
    way, _, layer = method.partition("@")
    return way, int(layer) if layer else last


def refuse_unknown_layers(name: str, methods: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a layer that a network does not have, and say which it has."""
    for method in methods:
        way, _, layer = method.partition("@")
        numbers = _layers(way, known)
        if numbers and layer.isdecimal() and int(layer) not in numbers:
            raise InputError(
                f"{name} has no layer {layer}; its layers are 0 (the embeddings) to {numbers[-1]} (the last)"
            )


def _layers(way: str, known: Sequence[str]) -> list[int]:
    named = (name.partition("@") for name in known)
    return sorted(int(layer) for own, _, layer in named if own == way and layer.isdecimal())
