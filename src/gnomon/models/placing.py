"""Candidates tokenised in place in their sentence, and which tokens are theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gnomon.foundation import SLOT, InputError
from gnomon.foundation.records import Question
from gnomon.models.protocol import CandidateScores

_CHECKED = 3
_KEPT_WINDOWS = 200_000
_KEPT_SURROUNDINGS = 1000
# Before the slot: a word as surroundings, then the last word. After it: the rest of a word, then a word.
_TAIL = re.compile(r"(\S*)((?:\s+\S+)?\s*)$")
_HEAD = re.compile(r"(\S*)(\s*\S*)")


class UnusableError(Exception):
    """A question cannot be asked of this model; the text says why."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A sentence with one candidate in the slot: its token ids, and the range of tokens that touch the candidate.

    ``joined`` says of each token whether it goes on with the word of the token before; empty if that was not asked.
    """

    ids: tuple[int, ...]
    start: int
    stop: int
    joined: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class _Window:
    """The tokens around a slot that depend on the candidate, and which of them touch it."""

    ids: tuple[int, ...]
    start: int
    stop: int
    joined: tuple[bool, ...]


class Placer:
    """Places the candidates of questions by one model's tokenizer, within what the model takes.

    A sentence is tokenised whole for one candidate; for the others only the words around the slot are tokenised
    anew, and once for all prompts that end and go on with the same words. Tokens do not reach over a blank, so
    this is the same; for some candidates of every prompt it is checked, and a prompt that fails is tokenised whole
    for each candidate.
    """

    def __init__(self, name: str, tokenizer: Any, config: Any) -> None:
        self.backend = fast_backend(tokenizer, name)
        self.unknown = tokenizer.unk_token_id
        self.longest = longest_input(config, tokenizer)
        self._windows: dict[tuple[str, str, str, str], dict[str, _Window | None]] = {}

    def place(
        self, questions: Sequence[Question], *, words: bool = False
    ) -> tuple[dict[int, list[Placed]], list[CandidateScores]]:
        """The placed candidates of each question that can be asked, by its index, and why the others cannot."""
        usable: dict[int, list[Placed]] = {}
        unusable: list[CandidateScores] = []
        for index, question in enumerate(questions):
            try:
                usable[index] = self.place_candidates(question.prompt, question.candidates, words=words)
            except UnusableError as reason:
                unusable.append(CandidateScores(index, unusable=str(reason)))
        return usable, unusable

    def place_candidates(self, prompt: str, candidates: Sequence[str], *, words: bool = False) -> list[Placed]:
        """Every candidate in the prompt's slot, tokenised with its sentence.

        Tokens are mapped by characters, so a token that spans the join belongs to the candidate and is never lost.
        Raises UnusableError where there is no candidate, one has no token, holds the unknown token, or makes the
        sentence too long.
        """
        if not candidates:
            raise UnusableError("the list of candidates is empty")
        before, after = prompt.split(SLOT)
        placed = self._by_windows(before, after, candidates, words) or self._whole(before, after, candidates, words)
        for text, one in zip(candidates, placed, strict=True):
            if one.start == one.stop:
                raise UnusableError(f"the candidate {text!r} has no token in this model's vocabulary")
            if self.unknown is not None and self.unknown in one.ids[one.start : one.stop]:
                raise UnusableError(f"the candidate {text!r} holds a token that this model does not know")
            if len(one.ids) > self.longest:
                raise UnusableError(f"too long: {len(one.ids)} tokens, and the model takes {self.longest}")
        return placed

    def _whole(self, before: str, after: str, candidates: Sequence[str], words: bool) -> list[Placed]:
        """Every sentence tokenised from end to end."""
        encodings = self.backend.encode_batch([before + text + after for text in candidates], add_special_tokens=True)
        return [
            Placed(
                tuple(encoding.ids),
                *_touching(encoding, len(before), len(before) + len(text)),
                _joined(encoding) if words else (),
            )
            for text, encoding in zip(candidates, encodings, strict=True)
        ]

    def _by_windows(self, before: str, after: str, candidates: Sequence[str], words: bool) -> list[Placed] | None:
        """The same from one whole sentence and the windows of all candidates; None where that cannot be trusted."""
        if len(candidates) <= _CHECKED + 1:
            return None
        windows = self._windows_for(before, after, candidates)
        if windows is None:
            return None
        checked = _spread(candidates)
        sentences = self._whole(before, after, [candidates[number] for number in checked], words)
        reference, own = sentences[0], windows[checked[0]]
        left = reference.start - own.start
        right = len(reference.ids) - (reference.stop + len(own.ids) - own.stop)
        if left < 0 or right < 0 or reference.ids[left : len(reference.ids) - right] != own.ids:
            return None
        first, last = reference.ids[:left], reference.ids[len(reference.ids) - right :]
        if words:
            early, late = reference.joined[:left], reference.joined[len(reference.ids) - right :]
            placed = [
                Placed((*first, *one.ids, *last), left + one.start, left + one.stop, (*early, *one.joined, *late))
                for one in windows
            ]
        else:
            placed = [Placed((*first, *one.ids, *last), left + one.start, left + one.stop) for one in windows]
        return placed if all(placed[n] == whole for n, whole in zip(checked, sentences, strict=True)) else None

    def _windows_for(self, before: str, after: str, candidates: Sequence[str]) -> list[_Window] | None:
        tail, head = _TAIL.search(before), _HEAD.match(after)
        if tail is None or head is None:
            return None
        surroundings = (tail[1], tail[2], head[1], head[2])
        known = self._windows.setdefault(surroundings, {})
        if len(known) > _KEPT_WINDOWS or len(self._windows) > _KEPT_SURROUNDINGS:
            known = {}
            self._windows = {surroundings: known}
        missing = [text for text in dict.fromkeys(candidates) if text not in known]
        if missing:
            texts = [tail[0] + text + head[0] for text in missing]
            for text, encoding in zip(missing, self.backend.encode_batch(texts, add_special_tokens=False), strict=True):
                known[text] = _window(encoding, len(tail[1]), len(tail[0]), text, len(head[1]))
        found = [known[text] for text in candidates]
        return [one for one in found if one is not None] if None not in found else None


def _window(encoding: Any, outer: int, first: int, text: str, head: int) -> _Window | None:
    """The tokens of the words around the slot, without those of their surroundings; None if the candidate has none."""
    offsets = encoding.offsets
    end = first + len(text) + head
    inner = [i for i, (start, stop) in enumerate(offsets) if stop > outer and start < end and stop > start]
    own = [i for i in inner if offsets[i][0] < first + len(text) and offsets[i][1] > first]
    if not own:
        return None
    low, high = inner[0], inner[-1] + 1
    return _Window(tuple(encoding.ids[low:high]), own[0] - low, own[-1] + 1 - low, _joined(encoding)[low:high])


def _spread(candidates: Sequence[str]) -> list[int]:
    """Some candidates to check by: the first, the last and the longest."""
    longest = max(range(len(candidates)), key=lambda number: (len(candidates[number]), -number))
    return list(dict.fromkeys((0, longest, len(candidates) - 1)))


def _touching(encoding: Any, first: int, last: int) -> tuple[int, int]:
    """The range of tokens that touch the characters from first to last; empty if none does."""
    touching = [i for i, (start, stop) in enumerate(encoding.offsets) if start < last and stop > first and stop > start]
    return (touching[0], touching[-1] + 1) if touching else (0, 0)


def _joined(encoding: Any) -> tuple[bool, ...]:
    words = encoding.word_ids
    return tuple(word is not None and word == before for word, before in zip(words, [None, *words], strict=False))


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


def longest_input(config: Any, tokenizer: Any) -> int:
    """How many tokens the model takes: the smaller of what its positions and its tokenizer say."""
    limits = [getattr(config, "max_position_embeddings", None), getattr(config, "n_positions", None)]
    limits.append(getattr(tokenizer, "model_max_length", None))
    known = [int(limit) for limit in limits if isinstance(limit, int) and 0 < limit < 10**9]
    longest = min(known, default=10**9)
    if getattr(config, "model_type", "") in ("roberta", "xlm-roberta", "camembert", "longformer"):
        longest = min(longest, int(config.max_position_embeddings) - int(config.pad_token_id) - 1)
    return longest
