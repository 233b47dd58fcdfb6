"""The plain way to ask, as a careful user writes it with transformers: one row for each candidate; merkhet is not used.

As a script it loads a model, asks the questions of a JSON file and writes the scores, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

SLOT = "[MASK]"
BATCH = 32
"""Rows in a batch. Rows are sorted by length first, so that little is padded."""


def load(folder: str | Path, kind: str) -> tuple[Any, Any]:
    """The network and the tokenizer, in float32, on the accelerator where there is one."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    factory = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    network = factory.from_pretrained(folder, dtype=torch.float32)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return network.to(device).eval(), AutoTokenizer.from_pretrained(folder)


def score(network: Any, tokenizer: Any, kind: str, questions: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """The score of each candidate of each question (``prompt``, ``candidates``)."""
    sentences, spans = [], []
    for question in questions:
        before, after = question["prompt"].split(SLOT)
        for candidate in question["candidates"]:
            sentences.append(before + candidate + after)
            spans.append((len(before), len(before) + len(candidate)))
    encoded = tokenizer(sentences, return_offsets_mapping=True)
    rows = encoded["input_ids"]
    # The tokens of each candidate: those that share a character with it.
    places = [
        [i for i, (start, stop) in enumerate(offsets) if start < last and stop > first and stop > start]
        for offsets, (first, last) in zip(encoded["offset_mapping"], spans, strict=True)
    ]
    if kind == "causal":
        places = _from_a_common_start(questions, rows, places)
    way = _masked if kind == "masked" else _causal
    flat = [0.0] * len(rows)
    order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
    for first in range(0, len(order), BATCH):
        batch = order[first : first + BATCH]
        values = way(network, tokenizer, [rows[i] for i in batch], [places[i] for i in batch])
        for i, value in zip(batch, values, strict=True):
            flat[i] = value
    scores = iter(flat)
    return [[next(scores) for _ in question["candidates"]] for question in questions]


def _from_a_common_start(
    questions: Sequence[Mapping[str, Any]], rows: list[list[int]], places: list[list[int]]
) -> list[list[int]]:
    """The tokens from the slot on, counted from the same place for all the candidates of a question.

    Before some candidates a space is a token of its own, before others it is part of their first token: counted from
    each candidate's own first token, the former would be spared the space's probability.
    """
    counted: list[list[int]] = []
    for question in questions:
        group = range(len(counted), len(counted) + len(question["candidates"]))
        start = min(places[row][0] for row in group)
        counted += [list(range(start, len(rows[row]))) for row in group]
    return counted


def _masked(network: Any, tokenizer: Any, rows: list[list[int]], places: list[list[int]]) -> Iterator[float]:
    """Mean log-probability of the candidate's tokens, each at its own mask."""
    masked = [
        [tokenizer.mask_token_id if i in set(own) else token for i, token in enumerate(row)]
        for row, own in zip(rows, places, strict=True)
    ]
    targets = [[row[i] for i in own] for row, own in zip(rows, places, strict=True)]
    for values in _log_probabilities(network, tokenizer, masked, places, targets):
        yield float(values.mean())


def _causal(network: Any, tokenizer: Any, rows: list[list[int]], places: list[list[int]]) -> Iterator[float]:
    """Sum of the log-probabilities of the sentence's tokens from the slot on."""
    rows = [row if own[0] else [tokenizer.bos_token_id, *row] for row, own in zip(rows, places, strict=True)]
    starts = [max(1, own[0]) for own in places]
    before = [list(range(start - 1, len(row) - 1)) for row, start in zip(rows, starts, strict=True)]
    targets = [row[start:] for row, start in zip(rows, starts, strict=True)]
    for values in _log_probabilities(network, tokenizer, rows, before, targets, use_cache=False):
        yield float(values.sum())


def _log_probabilities(
    network: Any,
    tokenizer: Any,
    rows: list[list[int]],
    columns: list[list[int]],
    targets: list[list[int]],
    **settings: Any,
) -> Iterator[Any]:
    """Log-probabilities of each row's targets at its columns, from one padded forward pass."""
    import torch

    pad = 0 if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    longest = max(len(row) for row in rows)
    ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
    seen = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    with torch.inference_mode():
        device = network.device
        logits = network(input_ids=ids.to(device), attention_mask=seen.to(device), **settings).logits
        lines = torch.tensor([line for line, own in enumerate(columns) for _ in own], device=logits.device)
        flat_columns = torch.tensor([column for own in columns for column in own], device=logits.device)
        flat_targets = torch.tensor([token for own in targets for token in own], device=logits.device)
        chosen = torch.log_softmax(logits[lines, flat_columns].float(), dim=-1)
        values = chosen.gather(1, flat_targets[:, None])[:, 0].double().cpu()
    yield from values.split([len(own) for own in columns])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=Path, required=True, help="a JSON list of prompts with candidates")
    parser.add_argument("--model", type=Path, required=True, help="a model's folder")
    parser.add_argument("--kind", choices=("masked", "causal"), required=True)
    parser.add_argument("--out", type=Path, required=True, help="the JSON file for the scores")
    options = parser.parse_args()
    questions = json.loads(options.questions.read_text(encoding="utf-8"))
    network, tokenizer = load(options.model, options.kind)
    options.out.write_text(json.dumps(score(network, tokenizer, options.kind, questions)), encoding="utf-8")


if __name__ == "__main__":
    main()
