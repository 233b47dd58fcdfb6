"""Causal language models, which score candidates in their sentence, including the text after the slot.

The sentences of a prompt go through the model as token tries. Each trie computes the prompt once and every common
prefix once. The last token of a sentence is only predicted and not computed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from merkhet.core import SLOT
from merkhet.core.records import Question
from merkhet.models._network import Network
from merkhet.models._text_generation import CAUSAL_METHODS, TextWriter
from merkhet.models._vocabulary_filter import drop_unwritable, restore_dropped
from merkhet.models.chat._chat_settings import ChatSettings
from merkhet.models.chat._local_chat import LocalChat
from merkhet.models.chat.chat_messages import ChatReply, ChatRequest
from merkhet.models.lm_head import log_probabilities, logits_at
from merkhet.models.protocol import ANSWER_LENGTH, CandidateScores, FloatArray, IntArray, WrittenAnswer
from merkhet.models.row_scheduler import Row
from merkhet.models.token_trie import TokenTrie, build_tries
from merkhet.models.tokenize_candidates import CandidateWindows, TokenizedCandidates

logger = logging.getLogger(__name__)

NODES_PER_TRIE = 256
BoolArray = NDArray[np.bool_]

_POOLINGS = ("sum", "mean", "per-character")
METHODS: dict[str, tuple[str, str]] = {
    **{pooling: ("given", pooling) for pooling in _POOLINGS},
    "first-token": ("candidate", "first-token"),
    **{f"{part}-{pooling}": (part, pooling) for part in ("candidate", "sentence") for pooling in _POOLINGS},
}
"""For each method, the scored part of the sentence and the pooling of its tokens' log-probabilities.

The part ``given`` is the candidate and the text after it, given the text before it.
"""


@dataclass(frozen=True)
class _Branches:
    """The windows of a list of candidates, split into a shared prefix and the rest of each window."""

    shared: Row
    """The tokens of the shared prefix."""
    sequences: list[Row]
    """The tokens of each window after the prefix."""
    starts: IntArray
    """The position of each candidate's first token in its entry of ``sequences``."""
    stops: IntArray
    """The position after each candidate's last token in its entry of ``sequences``."""


@dataclass(frozen=True)
class _PromptTrie:
    """One model input: the tokens of a prompt, followed by a trie of candidates of the question at ``index``."""

    index: int
    prompt: Row
    trie: TokenTrie

    def __len__(self) -> int:
        return len(self.prompt) + len(self.trie.tokens)


class CausalModel(Network):
    """A causal language model from the Hugging Face library.

    By default, a score covers the candidate and the text after it, given the text before the candidate. ``first-token``
    and methods called ``candidate-…`` score the candidate alone, given the text before it. Methods called
    ``sentence-…`` score the whole sentence, given the model's start token.
    """

    kind = "causal"
    methods: tuple[str, ...] = tuple(METHODS)
    writing_methods: tuple[str, ...] = CAUSAL_METHODS
    compares_masked = False

    def __init__(self, *arguments: Any, chat: ChatSettings | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._input_only_text = re.compile("|".join(map(re.escape, self.input_only_words)) or "(?!)")
        self.share_prefixes = self._supports_tries()
        self.writer = TextWriter(self, self.start_token())
        self.chat = LocalChat(self.writer, chat or ChatSettings())

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Score each candidate by the pooled log-probabilities of the part of its sentence that each method covers."""
        shortened, remaining = drop_unwritable(self.candidate_tokenizer, questions)
        usable, unusable = self.candidate_tokenizer.tokenize_questions(shortened)
        yield from unusable
        scores: dict[int, dict[str, FloatArray]] = {index: {} for index in usable}
        for with_prompt in (False, True):
            selected = [method for method in methods if (METHODS[method][0] == "sentence") == with_prompt]
            if selected:
                self._score(shortened, usable, selected, with_prompt, scores)
        for index, by_method in scores.items():
            ordered = {method: by_method[method] for method in methods}
            count = len(questions[index].candidates)
            yield CandidateScores(index, restore_dropped(ordered, remaining.get(index), count))

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """Continue each prompt by greedy decoding until the answer ends."""
        for method in methods:
            yield from self.writer.write(questions, method, length)

    def reply(self, requests: Sequence[ChatRequest]) -> Iterator[ChatReply]:
        """Reply to each request by greedy decoding."""
        return self.chat.reply(requests)

    def has_letter_logprobs(self) -> bool:
        """Return True, because a local model computes the log-probabilities of letters."""
        return True

    def _score(
        self,
        questions: Sequence[Question],
        usable: dict[int, TokenizedCandidates],
        methods: Sequence[str],
        with_prompt: bool,
        scores: dict[int, dict[str, FloatArray]],
    ) -> None:
        """Fill ``scores`` by question index and method.

        If ``with_prompt``, all methods score whole sentences; else none does.
        """
        prompt_tries = []
        with_suffix = with_prompt or any(METHODS[method][0] != "candidate" for method in methods)
        for index, tokenized in usable.items():
            scores[index].update({method: np.empty(len(tokenized)) for method in methods})
            branches = split_shared_prefix(tokenized)
            prompt = (*tokenized.prefix, *branches.shared)
            if not prompt or (with_prompt and prompt[0] not in self.special):
                # The first token needs a token before it to be predicted from.
                prompt = (self.start_token(), *prompt)
            tries = self._build_tries(tokenized, branches, with_suffix)
            prompt_tries += [_PromptTrie(index, prompt, trie) for trie in tries]

        self.count_rows(prompt_tries)
        self.work["rows_one_by_one"] += len(methods) * sum(map(len, usable.values()))

        def forward(batch: list[int]) -> None:
            rows = [prompt_tries[i] for i in batch]
            values = self._edge_values(rows, self.share_prefixes, with_prompt)
            for row, (prompt_values, edge_values) in zip(rows, values, strict=True):
                branches = split_shared_prefix(usable[row.index])
                pooler = _TriePooler(row, edge_values, branches, prompt_values, self.can_write)
                for method in methods:
                    part, pooling = METHODS[method]
                    characters = self._count_characters(questions[row.index], row.trie.sequence_ids, part)
                    scores[row.index][method][row.trie.sequence_ids] = pooler.pool(part, pooling, characters)

        self.run_batches([len(row) for row in prompt_tries], forward)

    def _build_tries(self, tokenized: TokenizedCandidates, branches: _Branches, with_suffix: bool) -> list[TokenTrie]:
        """Build tries of the candidates; prompts with the same windows and suffix share them."""
        max_nodes = NODES_PER_TRIE if self.share_prefixes else 0

        def build() -> list[TokenTrie]:
            pairs = zip(branches.sequences, branches.stops, strict=True)
            if not with_suffix:
                return build_tries([sequence[:stop] for sequence, stop in pairs], max_nodes)
            return build_tries(
                [self.strip_end_tokens((*sequence, *tokenized.suffix), stop) for sequence, stop in pairs], max_nodes
            )

        return tokenized.windows.cached(("tries", max_nodes, tokenized.suffix if with_suffix else None), build)

    def strip_end_tokens(self, ids: Row, stop: int) -> Row:
        """Strip trailing special tokens from ``stop`` on, because they are not part of the sentence's text."""
        while len(ids) > stop and ids[-1] in self.special:
            ids = ids[:-1]
        return ids

    def start_token(self) -> int:
        """Return the token that marks the start of a document.

        ``<|endoftext|>`` is preferred to the BOS token, which starts a speaker's turn in some chat models.
        """
        separator = self.tokenizer.get_vocab().get("<|endoftext|>")
        for token in (separator, self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, self.tokenizer.pad_token_id):
            if token is not None:
                return int(token)
        return 0

    def _edge_values(
        self, rows: Sequence[_PromptTrie], as_tries: bool, with_prompts: bool
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Return for each input the log-probabilities of its prompt's tokens and of its trie's edges.

        The prompt's first token has no log-probability. The prompt's array is empty unless ``with_prompts`` is true.
        """
        longest = max(len(row) for row in rows)
        ids = np.zeros((len(rows), longest), dtype=np.int64)
        positions = np.zeros((len(rows), longest), dtype=np.int64)
        visible = np.broadcast_to(np.eye(longest, dtype=np.bool_), (len(rows), longest, longest)).copy()
        nodes, lines, columns, targets = 0, [], [], []
        ends = [0]
        for line, row in enumerate(rows):
            first, size = len(row.prompt), len(row)
            ids[line, :first], ids[line, first:size] = row.prompt, row.trie.tokens
            positions[line, :first], positions[line, first:size] = np.arange(first), first + row.trie.depths
            visible[line, :first, :first] = np.tri(first, dtype=np.bool_)
            visible[line, first:size, :first] = True
            visible[line, first:size, first:size] = row.trie.visible
            sources, tokens = first + row.trie.sources, row.trie.targets
            if with_prompts:
                sources = np.concatenate([np.arange(first - 1), sources])
                tokens = np.concatenate([np.array(row.prompt[1:], dtype=np.int64), tokens])
            # Several edges may leave one node, whose logits are computed once.
            distinct, inverse = np.unique(sources, return_inverse=True)
            columns.append(distinct)
            lines.append(nodes + inverse)
            targets.append(tokens)
            nodes += len(distinct)
            ends.append(ends[-1] + len(tokens))
        device = self.model.device
        inputs: dict[str, Any] = {"input_ids": torch.from_numpy(ids).to(device)}
        if as_tries:
            # An additive mask means the same to every attention implementation.
            hidden = torch.from_numpy(~visible).unsqueeze(1).to(device)
            mask = torch.zeros(hidden.shape, dtype=self.model.dtype, device=device)
            inputs["attention_mask"] = mask.masked_fill_(hidden, torch.finfo(self.model.dtype).min)
            inputs["position_ids"] = torch.from_numpy(positions).to(device)
        else:
            filled = np.arange(longest) < np.array([len(row) for row in rows])[:, None]
            inputs["attention_mask"] = torch.from_numpy(filled.astype(np.int64)).to(device)
        row_indices = np.repeat(np.arange(len(rows)), [len(distinct) for distinct in columns])
        with torch.inference_mode():
            logits = logits_at(
                self.model,
                torch.from_numpy(row_indices).to(device),
                torch.from_numpy(np.concatenate(columns)).to(device),
                use_cache=False,
                **inputs,
            )
            all_targets = np.concatenate(targets)
            writable = self.can_write(all_targets)
            values = log_probabilities(
                logits,
                torch.from_numpy(np.concatenate(lines)).to(device),
                torch.from_numpy(np.where(writable, all_targets, 0)).to(device),
            )
            values[~writable] = 0.0
        by_row = []
        for row, first, last in zip(rows, ends[:-1], ends[1:], strict=True):
            split = first + (len(row.prompt) - 1 if with_prompts else 0)
            by_row.append((values[first:split], values[split:last]))
        return by_row

    def can_write(self, tokens: IntArray) -> BoolArray:
        """Return for each token whether the model can predict it; input-only tokens cannot be predicted."""
        if not self.input_only:
            return np.ones(len(tokens), dtype=np.bool_)
        return np.isin(tokens, list(self.input_only), invert=True)

    def _count_characters(self, question: Question, indices: IntArray, part: str) -> FloatArray:
        """Count the characters of ``part`` of the sentence for each candidate index, without input-only words."""
        before, after = (len(self._input_only_text.sub("", text)) for text in question.prompt.split(SLOT))
        around = {"given": after, "candidate": 0, "sentence": before + after}[part]
        return np.array([len(question.candidates[index]) + around for index in indices], dtype=np.float64)

    def _supports_tries(self) -> bool:
        """Test on a small example whether the network scores sequences in a token trie as it scores them separately."""
        vocabulary = int(self.model.config.get_text_config().vocab_size)
        first, *others = (7 % vocabulary, 11 % vocabulary, 13 % vocabulary, 17 % vocabulary)
        sequences = [(others[i % 3], others[(i + j) % 3], first, others[j]) for i in range(3) for j in range(3)]
        plain = [_PromptTrie(0, (first,), trie) for trie in build_tries(sequences, 0)]
        try:
            trie = build_tries(sequences, 100)[0]
            shared = _sequence_sums(trie, self._edge_values([_PromptTrie(0, (first,), trie)], True, False)[0][1])
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            logger.info("%s does not support token tries (%s): using one row per candidate", self.name, error)
            return False
        single = [
            _sequence_sums(row.trie, edge_values)
            for row, (_, edge_values) in zip(plain, self._edge_values(plain, False, False), strict=True)
        ]
        tolerance = 1e-3 if self.model.dtype == torch.float32 else 0.25
        same = bool(np.allclose(shared, np.concatenate(single), atol=tolerance))
        if not same:
            logger.info("%s scores token tries inexactly: using one row per candidate", self.name)
        return same


class _TriePooler:
    """Pooling of the log-probabilities of one trie's edges over parts of each candidate's sentence."""

    def __init__(
        self,
        row: _PromptTrie,
        edge_values: FloatArray,
        branches: _Branches,
        prompt_values: FloatArray,
        can_write: Callable[[IntArray], BoolArray],
    ) -> None:
        self.trie = trie = row.trie
        # One value per token of each sequence, then a zero, because reduceat needs an index within the array.
        self.values = np.append(edge_values[trie.paths], 0.0)
        self.counted = np.append(can_write(trie.targets)[trie.paths].astype(np.float64), 0.0)
        self.prompt_values = prompt_values
        self.prompt_tokens = float(can_write(np.array(row.prompt[1:])).sum()) if len(prompt_values) else 0.0
        self.branches = branches

    def pool(self, part: str, pooling: str, characters: FloatArray) -> FloatArray:
        first, last = self.trie.starts[:-1], self.trie.starts[1:]
        if part == "candidate":
            last = first + self.branches.stops[self.trie.sequence_ids]
            first = first + self.branches.starts[self.trie.sequence_ids]
        if pooling == "first-token":
            return self.values[first]
        ranges = np.stack([first, last], axis=1).ravel()
        sums: FloatArray = np.add.reduceat(self.values, ranges)[::2]
        tokens = np.add.reduceat(self.counted, ranges)[::2]
        if part == "sentence":
            sums = sums + self.prompt_values.sum()
            tokens = tokens + self.prompt_tokens
        if pooling == "mean":
            return sums / tokens
        return sums / np.maximum(1.0, characters) if pooling == "per-character" else sums


def _sequence_sums(trie: TokenTrie, edge_values: FloatArray) -> FloatArray:
    sums: FloatArray = np.add.reduceat(edge_values[trie.paths], trie.starts[:-1])
    return sums


def split_shared_prefix(tokenized: TokenizedCandidates) -> _Branches:
    """Split the shared prefix off the candidates' windows; prompts with the same windows share the result."""
    return tokenized.windows.cached("branches", partial(_split_windows, tokenized.windows))


def _split_windows(windows: CandidateWindows) -> _Branches:
    """Split the windows where their tokens begin to differ, at the latest where the first candidate starts."""
    sequences = [window.ids for window in windows.candidates]
    shared = min(_common_prefix(sequences), *(window.start for window in windows.candidates))
    return _Branches(
        sequences[0][:shared],
        [ids[shared:] for ids in sequences],
        np.array([window.start - shared for window in windows.candidates]),
        np.array([window.stop - shared for window in windows.candidates]),
    )


def _common_prefix(sequences: Sequence[Sequence[int]]) -> int:
    for length, tokens in enumerate(zip(*sequences, strict=False)):
        if len(set(tokens)) > 1:
            return length
    return min(len(ids) for ids in sequences)
