"""Names of methods that read hidden states: ``word`` (the last layer), ``word@3``, ``word@all``."""

from __future__ import annotations

from collections.abc import Sequence

from merkhet.core.errors import InputError


def list_layer_methods(input_forms: Sequence[str], last: int) -> tuple[str, ...]:
    """List the methods of a network with ``last`` layers, for input forms such as ``word`` and ``masked``.

    Layer 0 is the output of the embeddings.
    """
    return tuple(
        method
        for form in input_forms
        for method in (form, *(f"{form}@{layer}" for layer in range(last + 1)), f"{form}@all")
    )


def expand_layers(methods: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Replace each method ``FORM@all`` by one method per layer in ``known``, without duplicates.

    The last layer is called ``FORM``, the others ``FORM@NUMBER``. If ``known`` lists no layers of a form, its ``@all``
    method stays unchanged.
    """
    expanded: list[str] = []
    for method in methods:
        form, _, layer = method.partition("@")
        layers = _known_layers(form, known) if layer == "all" else []
        expanded += [*(f"{form}@{layer}" for layer in layers[:-1]), form] if layers else [method]
    return tuple(dict.fromkeys(expanded))


def parse_layer(method: str, last: int) -> tuple[str, int]:
    """Split a method into its input form and its layer, which is ``last`` if the method names none."""
    form, _, layer = method.partition("@")
    return form, int(layer) if layer else last


def check_layers(name: str, methods: Sequence[str], known: Sequence[str]) -> None:
    """Raise InputError if a method names a layer that the model called ``name`` does not have."""
    for method in methods:
        form, _, layer = method.partition("@")
        layers = _known_layers(form, known)
        if layers and layer.isdecimal() and int(layer) not in layers:
            raise InputError(
                f"{name} has no layer {layer}; its layers are 0 (the embeddings) to {layers[-1]} (the last)"
            )


def _known_layers(input_form: str, known: Sequence[str]) -> list[int]:
    parts = (method.partition("@") for method in known)
    return sorted(int(layer) for form, _, layer in parts if form == input_form and layer.isdecimal())
