"""Candidates tokenised in place in their sentence, and which tokens are theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gnomon.foundation import SLOT, InputError
from gnomon.foundation.records import Question
from gnomon.models.protocol import CandidateScores


class UnusableError(Exception):
    """A question cannot be asked of this model; the text says why."""


@dataclass(frozen=True)
class Placed:
    """A sentence with one candidate in the slot: its token ids, and the range of tokens that touch the candidate."""

    ids: tuple[int, ...]
    start: int
    stop: int


class Placer:
    """Places the candidates of questions by one model's tokenizer, within what the model takes."""

    def __init__(self, name: str, tokenizer: Any, config: Any) -> None:
        self.backend = fast_backend(tokenizer, name)
        self.unknown = tokenizer.unk_token_id
        self.longest = longest_input(config, tokenizer)

    def place(self, questions: Sequence[Question]) -> tuple[dict[int, list[Placed]], list[CandidateScores]]:
        """The placed candidates of each question that can be asked, by its index, and why the others cannot."""
        usable: dict[int, list[Placed]] = {}
        unusable: list[CandidateScores] = []
        for index, question in enumerate(questions):
            try:
                usable[index] = place_candidates(
                    self.backend, question.prompt, question.candidates, unknown=self.unknown, longest=self.longest
                )
            except UnusableError as reason:
                unusable.append(CandidateScores(index, unusable=str(reason)))
        return usable, unusable


def fast_backend(tokenizer: Any, name: str) -> Any:
    """The tokenizer's fast backend, set to cut and pad nothing; refuses a tokenizer without character offsets."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            f"{name}: its tokenizer gives no character offsets; a fast tokenizer (tokenizer.json) is needed"
        )
    backend.no_truncation()
    backend.no_padding()
    return backend


def place_candidates(
    backend: Any, prompt: str, candidates: Sequence[str], *, unknown: int | None, longest: int
) -> list[Placed]:
    """Every candidate in the prompt's slot, tokenised with its sentence.

    Tokens are mapped by characters, so a token that spans the join belongs to the candidate and is never lost.
    Raises UnusableError where a candidate has no token, holds the unknown token, or makes the sentence too long.
    """
    before, after = prompt.split(SLOT)
    encodings = backend.encode_batch([before + text + after for text in candidates], add_special_tokens=True)
    placed = []
    for text, encoding in zip(candidates, encodings, strict=True):
        first, last = len(before), len(before) + len(text)
        touching = [
            i for i, (start, stop) in enumerate(encoding.offsets) if start < last and stop > first and stop > start
        ]
        ids = encoding.ids
        if not touching:
            raise UnusableError(f"the candidate {text!r} has no token in this model's vocabulary")
        start, stop = touching[0], touching[-1] + 1
        if unknown is not None and unknown in ids[start:stop]:
            raise UnusableError(f"the candidate {text!r} holds a token that this model does not know")
        if len(ids) > longest:
            raise UnusableError(f"too long: {len(ids)} tokens, and the model takes {longest}")
        placed.append(Placed(tuple(ids), start, stop))
    return placed


def longest_input(config: Any, tokenizer: Any) -> int:
    """How many tokens the model takes: the smaller of what its positions and its tokenizer say."""
    limits = [getattr(config, "max_position_embeddings", None), getattr(config, "n_positions", None)]
    limits.append(getattr(tokenizer, "model_max_length", None))
    known = [int(limit) for limit in limits if isinstance(limit, int) and 0 < limit < 10**9]
    longest = min(known, default=10**9)
    if getattr(config, "model_type", "") in ("roberta", "xlm-roberta", "camembert", "longformer"):
        longest = min(longest, int(config.max_position_embeddings) - int(config.pad_token_id) - 1)
    return longest
