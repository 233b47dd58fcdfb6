"""Candidates tokenised in their sentence, and which tokens are theirs."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from merkhet.core import SLOT
from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models.protocol import CandidateScores, IntArray

IN_PLACE = "in place"
APART = "apart"
_CHECKED = 3
_KEPT_WINDOWS = 200_000
_KEPT_LISTS = 1000
CHINESE = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f"
)
"""The characters that a BERT normalizer makes words of their own, as ranges of a pattern."""
_ONLY_CHINESE = re.compile(f"[{CHINESE}]+")
# For each kind a word, and a word that the slot cannot touch: another one stands between.
_WORDS = {
    "blanks": (r"\S+", r"\S+(?=\s+\S)"),
    "characters": (
        rf"(?:[{CHINESE}]|[^\s{CHINESE}]+)",
        rf"(?:[{CHINESE}](?=\s*\S)|[^\s{CHINESE}]+(?=\s+\S|[{CHINESE}]))",
    ),
}
# Before the slot: a word as surroundings, then the last word. After it: the rest of a word, then a word.
_TAILS = {kind: re.compile(rf"((?:{apart})?)(\s*(?:{word})?\s*)$") for kind, (word, apart) in _WORDS.items()}
_HEADS = {kind: re.compile(rf"((?:{word})?)(\s*(?:{word})?)") for kind, (word, _) in _WORDS.items()}
# A piece of a vocabulary in which a blank follows something else; and blanks that some tokens do reach over.
_OVER_A_BLANK = re.compile(r"[^\sĠ▁Ċĉč][Ġ▁ ]")
_ODD_BLANKS = re.compile(r"[^\S ]|  ")

Made = TypeVar("Made")


class UnusableError(Exception):
    """A question cannot be asked of this model; the text says why."""


@dataclass(frozen=True, slots=True)
class TokenizedCandidate:
    """Tokens with one candidate among them: their ids, and the range of those that touch the candidate.

    ``joined`` says of each token whether it goes on with the word of the token before.
    """

    ids: tuple[int, ...]
    start: int
    stop: int
    joined: tuple[bool, ...]


@dataclass(frozen=True)
class CandidateWindows:
    """For each candidate of a list the tokens around the slot that depend on it; shared by prompts.

    ``problem`` says why this model cannot be asked about the list; ``same`` holds, for each candidate whose tokens are
    those of an earlier one, the number of that one. What models work out from a list of windows they keep here.
    """

    candidates: list[TokenizedCandidate]
    problem: str | None
    same: dict[int, int]
    _kept: dict[Hashable, Any] = field(default_factory=dict)

    def kept(self, name: Hashable, make: Callable[[], Made]) -> Made:
        """What was worked out under this name, made on first use."""
        if name not in self._kept:
            self._kept[name] = make()
        made: Made = self._kept[name]
        return made


@dataclass(frozen=True)
class TokenizedCandidates:
    """The candidates of one prompt in its slot: the tokens before and after that all have in common, and windows."""

    prefix: tuple[int, ...]
    windows: CandidateWindows
    suffix: tuple[int, ...]
    joined_before: tuple[bool, ...] = ()
    joined_after: tuple[bool, ...] = ()

    def __len__(self) -> int:
        return len(self.windows.candidates)

    def __iter__(self) -> Iterator[TokenizedCandidate]:
        """Every candidate in its whole sentence."""
        return (self.sentence(number) for number in range(len(self)))

    def sentence(self, number: int) -> TokenizedCandidate:
        """One candidate in its whole sentence."""
        one, shift = self.windows.candidates[number], len(self.prefix)
        return TokenizedCandidate(
            (*self.prefix, *one.ids, *self.suffix),
            shift + one.start,
            shift + one.stop,
            (*self.joined_before, *one.joined, *self.joined_after),
        )


class CandidateTokenizer:
    """Places the candidates of questions by one model's tokenizer, within what the model takes.

    A sentence is tokenised whole for one candidate; for the others only the words around the slot are tokenised
    anew, and once for all prompts that end and go on with the same words. Where no token of the vocabulary reaches
    over a blank this is the same; for some candidates of every prompt it is checked, and a prompt that fails is
    tokenised whole for each candidate.

    That is ``in place``. With ``apart`` a candidate has the tokens that it has alone, and the sentence those that it
    has around a mask: what many published programs do, and not what a model has read where a blank belongs to the
    word after it. ``unwritten`` are tokens that no candidate may hold. Without ``special_tokens`` none stands around a
    sentence; ``longest`` is how many tokens of a sentence with candidates are taken, where that is less than the model
    takes.
    """

    def __init__(
        self,
        name: str,
        tokenizer: Any,
        config: Any,
        candidates: str = IN_PLACE,
        unwritten: frozenset[int] = frozenset(),
        special_tokens: bool = True,
        longest: int | None = None,
    ) -> None:
        self.backend = fast_backend(tokenizer, name)
        self.unwritten = unwritten
        self.stand_in = _stand_in(tokenizer, self.backend) if candidates == APART else None
        self.unknown = tokenizer.unk_token_id
        self.special_tokens = special_tokens
        self.model_max_tokens = longest_input(config, tokenizer)
        self.max_tokens = min(self.model_max_tokens, longest or self.model_max_tokens)
        self.words = _kind_of_word(self.backend)
        self.kept_places: dict[tuple[str, ...], IntArray | None] = {}
        self._windows: dict[tuple[str, ...], dict[str, TokenizedCandidate]] = {}
        self._lists: dict[tuple[tuple[str, ...], tuple[str, ...]], CandidateWindows] = {}
        self._alone: dict[tuple[str, ...], bool] = {}

    def tokenize_questions(
        self, questions: Sequence[Question]
    ) -> tuple[dict[int, TokenizedCandidates], list[CandidateScores]]:
        """The placed candidates of each question that can be asked, by its index, and why the others cannot."""
        usable: dict[int, TokenizedCandidates] = {}
        unusable: list[CandidateScores] = []
        for index, question in enumerate(questions):
            try:
                placed = self.tokenize_candidates(question.prompt, question.candidates)
                _refuse_the_same(question, placed.windows)
                usable[index] = placed
            except UnusableError as reason:
                unusable.append(CandidateScores(index, unusable=str(reason)))
        return usable, unusable

    def tokenize_candidates(self, prompt: str, candidates: Sequence[str]) -> TokenizedCandidates:
        """Every candidate in the prompt's slot, tokenised with its sentence.

        Tokens are mapped by characters, so a token that spans the join belongs to the candidate and is never lost.
        Raises UnusableError where there is no candidate, one has no token, holds the unknown token, or makes the
        sentence too long.
        """
        if not candidates:
            raise UnusableError("the list of candidates is empty")
        before, after = prompt.split(SLOT)
        if self.stand_in is None:
            placed = self._by_windows(before, after, tuple(candidates))
        else:
            placed = self._apart(before, after, tuple(candidates), *self.stand_in)
        if placed is None:
            placed = TokenizedCandidates((), self._gathered(candidates, self._whole(before, after, candidates)), ())
        if placed.windows.problem:
            raise UnusableError(placed.windows.problem)
        longest = placed.windows.kept("longest", lambda: max(len(one.ids) for one in placed.windows.candidates))
        tokens = len(placed.prefix) + longest + len(placed.suffix)
        refuse_too_long(tokens, self.max_tokens)
        return placed

    def encode(self, sentences: Sequence[str]) -> list[Any]:
        """Whole sentences tokenised, within the special tokens that the model is asked with."""
        found: list[Any] = self.backend.encode_batch(list(sentences), add_special_tokens=self.special_tokens)
        return found

    def _whole(self, before: str, after: str, candidates: Sequence[str]) -> list[TokenizedCandidate]:
        """Every sentence tokenised from end to end."""
        encodings = self.encode([before + text + after for text in candidates])
        return [
            TokenizedCandidate(
                tuple(encoding.ids),
                *touching(encoding, len(before), len(before) + len(text)),
                tuple(_joined(encoding)),
            )
            for text, encoding in zip(candidates, encodings, strict=True)
        ]

    def _gathered(self, candidates: Sequence[str], windows: list[TokenizedCandidate]) -> CandidateWindows:
        first: dict[tuple[tuple[int, ...], int, int], int] = {}
        same = {}
        for number, one in enumerate(windows):
            earlier = first.setdefault((one.ids, one.start, one.stop), number)
            if earlier != number:
                same[number] = earlier
        return CandidateWindows(windows, self._problem(candidates, windows), same)

    def _problem(self, candidates: Sequence[str], windows: Sequence[TokenizedCandidate]) -> str | None:
        for text, one in zip(candidates, windows, strict=True):
            if one.start == one.stop:
                return f"the candidate {text!r} has no token in this model's vocabulary"
            if self.unknown is not None and self.unknown in one.ids[one.start : one.stop]:
                return f"the candidate {text!r} holds a token that this model does not know"
            if not self.unwritten.isdisjoint(one.ids[one.start : one.stop]):
                return f"the candidate {text!r} holds a word that this model reads and never writes"
        return None

    def _apart(
        self, before: str, after: str, candidates: tuple[str, ...], mask: str, backend: Any
    ) -> TokenizedCandidates:
        """Every candidate as it is alone, in the place of a mask in the sentence."""
        if ((), candidates) not in self._lists:
            self._make_room()
            encodings = self.backend.encode_batch(list(candidates), add_special_tokens=False)
            alone = [TokenizedCandidate(tuple(one.ids), 0, len(one.ids), tuple(_joined(one))) for one in encodings]
            self._lists[(), candidates] = self._gathered(candidates, alone)
        encoding = backend.encode(before + mask + after, add_special_tokens=self.special_tokens)
        joined = tuple(_joined(encoding))
        first, last = touching(encoding, len(before), len(before) + len(mask))
        return TokenizedCandidates(
            tuple(encoding.ids[:first]),
            self._lists[(), candidates],
            tuple(encoding.ids[last:]),
            joined[:first],
            joined[last:],
        )

    def _by_windows(self, before: str, after: str, candidates: tuple[str, ...]) -> TokenizedCandidates | None:
        """The same from one whole sentence and the windows of all candidates; None where that cannot be trusted."""
        if len(candidates) <= _CHECKED + 1 or self.words is None or _ODD_BLANKS.search(before + SLOT + after):
            return None
        windows = self._windows_for(before, after, candidates)
        if windows.kept("ends in a blank", lambda: any(not text[-1:].strip() for text in candidates)):
            return None  # It may share a token with a blank after the slot.
        checked = windows.kept("checked", lambda: _spread(candidates))
        sentences = self._whole(before, after, [candidates[number] for number in checked])
        reference, own = sentences[0], windows.candidates[checked[0]]
        left = reference.start - own.start
        right = len(reference.ids) - (reference.stop + len(own.ids) - own.stop)
        if left < 0 or right < 0 or own.start == own.stop:
            return None
        end = len(reference.ids) - right
        placed = TokenizedCandidates(
            reference.ids[:left], windows, reference.ids[end:], reference.joined[:left], reference.joined[end:]
        )
        same = all(placed.sentence(n) == whole for n, whole in zip(checked, sentences, strict=True))
        return placed if same else None

    def _windows_for(self, before: str, after: str, candidates: tuple[str, ...]) -> CandidateWindows:
        assert self.words is not None
        if self.words == "characters" and self._stands_alone(candidates):
            before = after = ""  # Whatever is around them does not change their tokens.
        tail, head = _TAILS[self.words].search(before), _HEADS[self.words].match(after)
        assert tail is not None and head is not None
        surroundings = (tail[1], tail[2], head[1], head[2])
        if (surroundings, candidates) not in self._lists:
            self._make_room()
            known = self._windows.setdefault(surroundings, {})
            missing = [text for text in dict.fromkeys(candidates) if text not in known]
            encodings = self.backend.encode_batch(
                [tail[0] + text + head[0] for text in missing], add_special_tokens=False
            )
            for text, encoding in zip(missing, encodings, strict=True):
                known[text] = _window(encoding, len(tail[1]), len(tail[0]), text, len(head[1]))
            self._lists[surroundings, candidates] = self._gathered(candidates, [known[text] for text in candidates])
        return self._lists[surroundings, candidates]

    def _stands_alone(self, candidates: tuple[str, ...]) -> bool:
        """Whether all of these consist of characters that are words of their own."""
        if candidates not in self._alone:
            self._alone[candidates] = all(_ONLY_CHINESE.fullmatch(text) for text in candidates)
        return self._alone[candidates]

    def _make_room(self) -> None:
        if len(self._lists) >= _KEPT_LISTS or sum(map(len, self._windows.values())) > _KEPT_WINDOWS:
            self._windows.clear()
            self._lists.clear()
            self._alone.clear()


def refuse_too_long(tokens: int, longest: int) -> None:
    """Refuse what the model does not take."""
    if tokens > longest:
        raise UnusableError(f"too long: {tokens} tokens, and the model takes {longest}")


def _refuse_the_same(question: Question, windows: CandidateWindows) -> None:
    """Refuse a question whose right answer has the very tokens of a wrong one: the model cannot tell them apart."""
    for later, earlier in windows.same.items():
        texts = question.candidates[earlier], question.candidates[later]
        if len({text in question.answers for text in texts}) > 1:
            raise UnusableError(
                f"the candidates {texts[0]!r} and {texts[1]!r} have the same tokens, and only one of them is right"
            )


def _window(encoding: Any, outer: int, first: int, text: str, head: int) -> TokenizedCandidate:
    """The tokens of the words around the slot, without those of their surroundings."""
    offsets = encoding.offsets
    end = first + len(text) + head
    own, past = touching(encoding, first, first + len(text))
    if own == past:
        return TokenizedCandidate((), 0, 0, ())
    # What lies between is meant too: a blank may be a token without characters.
    low = max((i + 1 for i, (start, stop) in enumerate(offsets) if start < stop <= outer), default=0)
    high = min((i for i, (start, stop) in enumerate(offsets) if end <= start < stop), default=len(offsets))
    return TokenizedCandidate(tuple(encoding.ids[low:high]), own - low, past - low, tuple(_joined(encoding)[low:high]))


def _spread(candidates: Sequence[str]) -> list[int]:
    """Some candidates to check by: the first, the last and the longest."""
    longest = max(range(len(candidates)), key=lambda number: (len(candidates[number]), -number))
    return list(dict.fromkeys((0, longest, len(candidates) - 1)))


def touching(encoding: Any, first: int, last: int) -> tuple[int, int]:
    """The range of tokens that touch the characters from first to last; empty if none does."""
    touching = [i for i, (start, stop) in enumerate(encoding.offsets) if start < last and stop > first and stop > start]
    return (touching[0], touching[-1] + 1) if touching else (0, 0)


def _joined(encoding: Any) -> list[bool]:
    words = encoding.word_ids
    return [word is not None and word == before for word, before in zip(words, [None, *words], strict=False)]


def _stand_in(tokenizer: Any, backend: Any) -> tuple[str, Any]:
    """What stands in the slot while a sentence is tokenised: the model's mask, or a token that is added for it."""
    if tokenizer.mask_token is not None:
        return str(tokenizer.mask_token), backend
    from tokenizers import AddedToken

    backend = copy.deepcopy(backend)
    backend.add_tokens([AddedToken(SLOT, lstrip=True, normalized=False)])
    return SLOT, backend


def _kind_of_word(backend: Any) -> str | None:
    """What no token of this vocabulary reaches over: blanks, or Chinese characters too; None if nothing is sure."""
    if any(_OVER_A_BLANK.search(piece) for piece in backend.get_vocab(False)):
        return None
    return "characters" if getattr(backend.normalizer, "handle_chinese_chars", False) else "blanks"


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
