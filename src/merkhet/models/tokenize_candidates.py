"""Tokenization of candidates in their sentences."""

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
_MAX_CHECKED = 3
_MAX_CACHED_WINDOWS = 200_000
_MAX_CACHED_LISTS = 1000
CHINESE = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f"
)
"""The characters that a BERT normalizer splits into single words, as ranges of a character class."""
_ONLY_CHINESE = re.compile(f"[{CHINESE}]+")
# For each kind of word: a pattern of a word, and of a word that another word separates from the slot.
_WORDS = {
    "blanks": (r"\S+", r"\S+(?=\s+\S)"),
    "characters": (
        rf"(?:[{CHINESE}]|[^\s{CHINESE}]+)",
        rf"(?:[{CHINESE}](?=\s*\S)|[^\s{CHINESE}]+(?=\s+\S|[{CHINESE}]))",
    ),
}
# Before the slot: a word of context, then the last word. After the slot: the rest of a word, then a word of context.
_TAILS = {kind: re.compile(rf"((?:{context})?)(\s*(?:{word})?\s*)$") for kind, (word, context) in _WORDS.items()}
_HEADS = {kind: re.compile(rf"((?:{word})?)(\s*(?:{word})?)") for kind, (word, _) in _WORDS.items()}
# Vocabulary entries in which a space follows something else, and whitespace that some tokens span.
_SPANS_SPACE = re.compile(r"[^\sĠ▁Ċĉč][Ġ▁ ]")
_UNUSUAL_SPACE = re.compile(r"[^\S ]|  ")

Cached = TypeVar("Cached")


class UnusableError(Exception):
    """Error for a question that a model cannot be asked; the message is the reason."""


@dataclass(frozen=True, slots=True)
class TokenizedCandidate:
    """The tokens of a sentence, or of a part of it, and the position of one candidate among them."""

    ids: tuple[int, ...]
    start: int
    """The index of the first token that overlaps the candidate."""
    stop: int
    """The index after the last token that overlaps the candidate."""
    continues_word: tuple[bool, ...]
    """Whether each token belongs to the same word as the token before it."""


@dataclass(frozen=True)
class CandidateWindows:
    """For each candidate of a list, its window: the tokens in and next to the slot that depend on the candidate.

    Prompts with the same words next to the slot share these windows.
    """

    candidates: list[TokenizedCandidate]
    problem: str | None
    """The reason why the model cannot score this list; None if it can."""
    duplicates: dict[int, int]
    """Indices of candidates with the same tokens as an earlier candidate, mapped to the earlier index."""
    _cache: dict[Hashable, Any] = field(default_factory=dict)

    def cached(self, key: Hashable, compute: Callable[[], Cached]) -> Cached:
        """Return the cached value of ``key``, which ``compute`` creates on first use."""
        if key not in self._cache:
            self._cache[key] = compute()
        value: Cached = self._cache[key]
        return value


@dataclass(frozen=True)
class TokenizedCandidates:
    """The tokens of one prompt with each candidate in its slot."""

    prefix: tuple[int, ...]
    """The tokens before the windows, common to all candidates."""
    windows: CandidateWindows
    suffix: tuple[int, ...]
    """The tokens after the windows, common to all candidates."""
    prefix_continues_word: tuple[bool, ...] = ()
    suffix_continues_word: tuple[bool, ...] = ()

    def __len__(self) -> int:
        return len(self.windows.candidates)

    def __iter__(self) -> Iterator[TokenizedCandidate]:
        """Iterate over the whole sentences, one per candidate."""
        return (self.sentence(index) for index in range(len(self)))

    def sentence(self, index: int) -> TokenizedCandidate:
        """Return the tokens of the whole sentence with the candidate at ``index``."""
        window, offset = self.windows.candidates[index], len(self.prefix)
        return TokenizedCandidate(
            (*self.prefix, *window.ids, *self.suffix),
            offset + window.start,
            offset + window.stop,
            (*self.prefix_continues_word, *window.continues_word, *self.suffix_continues_word),
        )


class CandidateTokenizer:
    """Tokenizer of candidates in the sentences of their questions.

    With ``in place``, the default, a candidate gets the tokens that it has in its sentence. In lists of more than four
    candidates, whole sentences are tokenized for at most three of them. For the others only the words next to the slot
    are tokenized, once for all prompts with the same words there. The tokens are equal if no token of the vocabulary
    spans a space; the whole sentences check this for every prompt. If the check fails, every sentence is tokenized
    whole.

    With ``apart``, the candidate is tokenized alone, and the sentence with a mask in its slot. Many published programs
    do this. The tokens differ from those in training if a token includes the space before its word.

    No candidate may contain a token of ``input_only``. :class:`merkhet.models._network.Network` documents the other
    arguments.
    """

    def __init__(
        self,
        name: str,
        tokenizer: Any,
        config: Any,
        candidates: str = IN_PLACE,
        input_only: frozenset[int] = frozenset(),
        special_tokens: bool = True,
        max_tokens: int | None = None,
    ) -> None:
        self.backend = fast_backend(tokenizer, name)
        self.input_only = input_only
        self.slot_token = _slot_token(tokenizer, self.backend) if candidates == APART else None
        self.unknown = tokenizer.unk_token_id
        self.special_tokens = special_tokens
        self.model_max_tokens = max_input_tokens(config, tokenizer)
        self.max_tokens = min(self.model_max_tokens, max_tokens or self.model_max_tokens)
        self.word_kind = _word_kind(self.backend)
        self.writable_indices: dict[tuple[str, ...], IntArray | None] = {}
        self._windows: dict[tuple[str, ...], dict[str, TokenizedCandidate]] = {}
        self._lists: dict[tuple[tuple[str, ...], tuple[str, ...]], CandidateWindows] = {}
        self._context_free: dict[tuple[str, ...], bool] = {}

    def tokenize_questions(
        self, questions: Sequence[Question]
    ) -> tuple[dict[int, TokenizedCandidates], list[CandidateScores]]:
        """Tokenize the candidates of each question.

        Returns:
            The tokenized candidates by question index, and for each unusable question a result with the reason.
        """
        usable: dict[int, TokenizedCandidates] = {}
        unusable: list[CandidateScores] = []
        for index, question in enumerate(questions):
            try:
                tokenized = self.tokenize_candidates(question.prompt, question.candidates)
                _check_duplicates(question, tokenized.windows)
                usable[index] = tokenized
            except UnusableError as reason:
                unusable.append(CandidateScores(index, unusable=str(reason)))
        return usable, unusable

    def tokenize_candidates(self, prompt: str, candidates: Sequence[str]) -> TokenizedCandidates:
        """Tokenize every candidate in the prompt's slot.

        Character offsets decide which tokens belong to the candidate. A token that spans the boundary of the slot
        belongs to the candidate too.

        Raises:
            UnusableError: The list is empty, or a candidate has no token, contains an unknown or an input-only token,
                or makes the sentence too long.
        """
        if not candidates:
            raise UnusableError("the list of candidates is empty")
        before, after = prompt.split(SLOT)
        if self.slot_token is None:
            tokenized = self._tokenize_by_windows(before, after, tuple(candidates))
        else:
            tokenized = self._tokenize_apart(before, after, tuple(candidates), *self.slot_token)
        if tokenized is None:
            windows = self._collect_windows(candidates, self._tokenize_whole(before, after, candidates))
            tokenized = TokenizedCandidates((), windows, ())
        if tokenized.windows.problem:
            raise UnusableError(tokenized.windows.problem)
        longest = tokenized.windows.cached(
            "longest", lambda: max(len(window.ids) for window in tokenized.windows.candidates)
        )
        check_length(len(tokenized.prefix) + longest + len(tokenized.suffix), self.max_tokens)
        return tokenized

    def encode(self, sentences: Sequence[str]) -> list[Any]:
        """Tokenize whole sentences, with special tokens if ``special_tokens`` is set."""
        encodings: list[Any] = self.backend.encode_batch(list(sentences), add_special_tokens=self.special_tokens)
        return encodings

    def _tokenize_whole(self, before: str, after: str, candidates: Sequence[str]) -> list[TokenizedCandidate]:
        encodings = self.encode([before + text + after for text in candidates])
        return [
            TokenizedCandidate(
                tuple(encoding.ids),
                *token_span(encoding, len(before), len(before) + len(text)),
                tuple(_continues_word(encoding)),
            )
            for text, encoding in zip(candidates, encodings, strict=True)
        ]

    def _collect_windows(self, candidates: Sequence[str], windows: list[TokenizedCandidate]) -> CandidateWindows:
        first: dict[tuple[tuple[int, ...], int, int], int] = {}
        duplicates = {}
        for index, window in enumerate(windows):
            earlier = first.setdefault((window.ids, window.start, window.stop), index)
            if earlier != index:
                duplicates[index] = earlier
        return CandidateWindows(windows, self._find_problem(candidates, windows), duplicates)

    def _find_problem(self, candidates: Sequence[str], windows: Sequence[TokenizedCandidate]) -> str | None:
        for text, window in zip(candidates, windows, strict=True):
            tokens = window.ids[window.start : window.stop]
            if window.start == window.stop:
                return f"the candidate {text!r} has no token in this model's vocabulary"
            if self.unknown is not None and self.unknown in tokens:
                return f"the candidate {text!r} holds a token that this model does not know"
            if not self.input_only.isdisjoint(tokens):
                return f"the candidate {text!r} holds a word that this model reads and never writes"
        return None

    def _tokenize_apart(
        self, before: str, after: str, candidates: tuple[str, ...], slot_text: str, backend: Any
    ) -> TokenizedCandidates:
        if ((), candidates) not in self._lists:
            self._limit_cache()
            encodings = self.backend.encode_batch(list(candidates), add_special_tokens=False)
            windows = [
                TokenizedCandidate(tuple(encoding.ids), 0, len(encoding.ids), tuple(_continues_word(encoding)))
                for encoding in encodings
            ]
            self._lists[(), candidates] = self._collect_windows(candidates, windows)
        encoding = backend.encode(before + slot_text + after, add_special_tokens=self.special_tokens)
        continues_word = tuple(_continues_word(encoding))
        start, stop = token_span(encoding, len(before), len(before) + len(slot_text))
        return TokenizedCandidates(
            tuple(encoding.ids[:start]),
            self._lists[(), candidates],
            tuple(encoding.ids[stop:]),
            continues_word[:start],
            continues_word[stop:],
        )

    def _tokenize_by_windows(self, before: str, after: str, candidates: tuple[str, ...]) -> TokenizedCandidates | None:
        """Tokenize a few whole sentences and the windows of all candidates; None if the tokens may be inexact."""
        few = len(candidates) <= _MAX_CHECKED + 1
        if few or self.word_kind is None or _UNUSUAL_SPACE.search(before + SLOT + after):
            return None
        windows = self._tokenize_windows(before, after, candidates)
        if windows.cached("ends in a blank", lambda: any(not text[-1:].strip() for text in candidates)):
            return None  # The candidate may share a token with a space after the slot.
        checked = windows.cached("checked", lambda: _select_checked(candidates))
        sentences = self._tokenize_whole(before, after, [candidates[index] for index in checked])
        reference, window = sentences[0], windows.candidates[checked[0]]
        left = reference.start - window.start
        right = len(reference.ids) - (reference.stop + len(window.ids) - window.stop)
        if left < 0 or right < 0 or window.start == window.stop:
            return None
        end = len(reference.ids) - right
        tokenized = TokenizedCandidates(
            reference.ids[:left],
            windows,
            reference.ids[end:],
            reference.continues_word[:left],
            reference.continues_word[end:],
        )
        equal = all(tokenized.sentence(index) == sentence for index, sentence in zip(checked, sentences, strict=True))
        return tokenized if equal else None

    def _tokenize_windows(self, before: str, after: str, candidates: tuple[str, ...]) -> CandidateWindows:
        assert self.word_kind is not None
        if self.word_kind == "characters" and self._is_context_free(candidates):
            before = after = ""
        tail, head = _TAILS[self.word_kind].search(before), _HEADS[self.word_kind].match(after)
        assert tail is not None and head is not None
        context = (tail[1], tail[2], head[1], head[2])
        if (context, candidates) not in self._lists:
            self._limit_cache()
            known = self._windows.setdefault(context, {})
            missing = [text for text in dict.fromkeys(candidates) if text not in known]
            encodings = self.backend.encode_batch(
                [tail[0] + text + head[0] for text in missing], add_special_tokens=False
            )
            for text, encoding in zip(missing, encodings, strict=True):
                known[text] = _cut_window(encoding, len(tail[1]), len(tail[0]), text, len(head[1]))
            self._lists[context, candidates] = self._collect_windows(candidates, [known[text] for text in candidates])
        return self._lists[context, candidates]

    def _is_context_free(self, candidates: tuple[str, ...]) -> bool:
        """Return whether candidates consist of Chinese characters only, whose tokens do not depend on the context."""
        if candidates not in self._context_free:
            self._context_free[candidates] = all(_ONLY_CHINESE.fullmatch(text) for text in candidates)
        return self._context_free[candidates]

    def _limit_cache(self) -> None:
        if len(self._lists) >= _MAX_CACHED_LISTS or sum(map(len, self._windows.values())) > _MAX_CACHED_WINDOWS:
            self._windows.clear()
            self._lists.clear()
            self._context_free.clear()


def check_length(tokens: int, max_tokens: int) -> None:
    """Raise UnusableError if an input has more than ``max_tokens`` tokens."""
    if tokens > max_tokens:
        raise UnusableError(f"too long: {tokens} tokens, and the model takes {max_tokens}")


def _check_duplicates(question: Question, windows: CandidateWindows) -> None:
    """Raise UnusableError if a right and a wrong candidate have the same tokens, and so always the same score."""
    for later, earlier in windows.duplicates.items():
        texts = question.candidates[earlier], question.candidates[later]
        if len({text in question.answers for text in texts}) > 1:
            raise UnusableError(
                f"the candidates {texts[0]!r} and {texts[1]!r} have the same tokens, and only one of them is right"
            )


def _cut_window(encoding: Any, context_end: int, first: int, text: str, head: int) -> TokenizedCandidate:
    """Return the tokens of the candidate and of the words next to it, without those of the context words.

    Args:
        encoding: The tokens of the context, the words and the candidate.
        context_end: The number of characters of the context before the words.
        first: The position of the candidate's first character.
        text: The candidate.
        head: The number of characters directly after the candidate that belong to the window.
    """
    offsets = encoding.offsets
    end = first + len(text) + head
    candidate_start, candidate_stop = token_span(encoding, first, first + len(text))
    if candidate_start == candidate_stop:
        return TokenizedCandidate((), 0, 0, ())
    # Tokens between the context and the words stay in: a space may be a token without characters.
    low = max((i + 1 for i, (start, stop) in enumerate(offsets) if start < stop <= context_end), default=0)
    high = min((i for i, (start, stop) in enumerate(offsets) if end <= start < stop), default=len(offsets))
    return TokenizedCandidate(
        tuple(encoding.ids[low:high]),
        candidate_start - low,
        candidate_stop - low,
        tuple(_continues_word(encoding)[low:high]),
    )


def _select_checked(candidates: Sequence[str]) -> list[int]:
    """Return the indices of the candidates whose tokens are checked: the first, the longest and the last."""
    longest = max(range(len(candidates)), key=lambda index: (len(candidates[index]), -index))
    return list(dict.fromkeys((0, longest, len(candidates) - 1)))


def token_span(encoding: Any, first: int, last: int) -> tuple[int, int]:
    """Return the range of tokens that overlap the characters from ``first`` to ``last``; (0, 0) if none does."""
    tokens = [i for i, (start, stop) in enumerate(encoding.offsets) if start < last and stop > first and stop > start]
    return (tokens[0], tokens[-1] + 1) if tokens else (0, 0)


def _continues_word(encoding: Any) -> list[bool]:
    words = encoding.word_ids
    return [word is not None and word == previous for word, previous in zip(words, [None, *words], strict=False)]


def _slot_token(tokenizer: Any, backend: Any) -> tuple[str, Any]:
    """Return a text to put into the slot during tokenization, and a backend that reads this text as one token."""
    if tokenizer.mask_token is not None:
        return str(tokenizer.mask_token), backend
    from tokenizers import AddedToken

    backend = copy.deepcopy(backend)
    backend.add_tokens([AddedToken(SLOT, lstrip=True, normalized=False)])
    return SLOT, backend


def _word_kind(backend: Any) -> str | None:
    """Return the boundaries that no token crosses: ``blanks`` for spaces, ``characters`` also for Chinese characters.

    None if a token may span a space.
    """
    if any(_SPANS_SPACE.search(token) for token in backend.get_vocab(False)):
        return None
    return "characters" if getattr(backend.normalizer, "handle_chinese_chars", False) else "blanks"


def fast_backend(tokenizer: Any, name: str) -> Any:
    """Return the tokenizer's fast backend, without truncation and padding.

    Raises:
        InputError: The tokenizer has no character offsets.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            f"{name}: its tokenizer gives no character offsets; use a model with a fast tokenizer (tokenizer.json)"
        )
    backend.no_truncation()
    backend.no_padding()
    return backend


def max_input_tokens(config: Any, tokenizer: Any) -> int:
    """Return the maximum input length in tokens: the lowest limit that configuration and tokenizer declare."""
    limits = [getattr(config, "max_position_embeddings", None), getattr(config, "n_positions", None)]
    limits.append(getattr(tokenizer, "model_max_length", None))
    known = [int(limit) for limit in limits if isinstance(limit, int) and 0 < limit < 10**9]
    maximum = min(known, default=10**9)
    if getattr(config, "model_type", "") in ("roberta", "xlm-roberta", "camembert", "longformer"):
        maximum = min(maximum, int(config.max_position_embeddings) - int(config.pad_token_id) - 1)
    return maximum
