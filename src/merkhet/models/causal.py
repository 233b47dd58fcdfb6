"""Causal language models: candidates scored in their sentence, the text after the slot included.

All candidates of a prompt go through the model as trees of tokens: the prompt is computed once a tree, common
beginnings once, and the last token of each sentence not at all.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from merkhet.core import SLOT
from merkhet.core.records import Question
from merkhet.models._text_generation import CAUSAL_METHODS, TextWriter
from merkhet.models._vocabulary_filter import with_the_rest_last, without_unwritable
from merkhet.models._word_embeddings import WordStates
from merkhet.models.batching import run_batches, usual_budget
from merkhet.models.chat.chat_messages import ChatReply, ChatRequest
from merkhet.models.chat.chat_settings import ChatSettings
from merkhet.models.chat.local_chat import LocalChat
from merkhet.models.lm_head import describe_weights, log_probabilities, logits_at
from merkhet.models.protocol import ANSWER_LENGTH, CandidateScores, FloatArray, IntArray, WrittenAnswer
from merkhet.models.row_scheduler import Row
from merkhet.models.token_trie import TokenTrie, build_tries
from merkhet.models.tokenize_candidates import IN_PLACE, CandidateTokenizer, CandidateWindows, TokenizedCandidates

logger = logging.getLogger(__name__)

NODES_PER_TRIE = 256
BoolArray = NDArray[np.bool_]

_POOLINGS = ("sum", "mean", "per-character")
METHODS: dict[str, tuple[str, str]] = {
    **{pooling: ("given", pooling) for pooling in _POOLINGS},
    "first-token": ("candidate", "first-token"),
    **{f"{part}-{pooling}": (part, pooling) for part in ("candidate", "sentence") for pooling in _POOLINGS},
}
"""Each method as the part of the sentence that is scored and a pooling of its log-probabilities."""


@dataclass(frozen=True)
class _Branches:
    """The candidates of a list from where they begin to differ: where that is, and their own tokens from there on."""

    shared: Row
    sequences: list[Row]
    starts: IntArray
    stops: IntArray


@dataclass(frozen=True)
class _Rooted:
    """A tree of candidates of one question below the tokens of its prompt."""

    index: int
    prompt: Row
    tree: TokenTrie

    def __len__(self) -> int:
        return len(self.prompt) + len(self.tree.tokens)


class CausalModel:
    """A causal language model from the Hugging Face library.

    Parts of a sentence that can be scored: the candidate and the text after it, given the text before (the usual one);
    the ``candidate`` alone, given the text before; the whole ``sentence``, given the model's own beginning.

    ``unwritten`` are words, with their tokens, that the model reads and that no head can write: they have no part in a
    score; ``plain`` is the same model without them. ``work`` counts what was done for scores: rows that went through
    the network, their tokens, and the rows that one pass for each candidate, question and method would have needed.
    """

    kind = "causal"
    methods: tuple[str, ...] = tuple(METHODS)
    writing_methods: tuple[str, ...] = CAUSAL_METHODS
    original: CausalModel | None = None

    def __init__(
        self,
        name: str,
        fingerprint: str,
        model: Any,
        tokenizer: Any,
        token_budget: int | None = None,
        candidates: str = IN_PLACE,
        unwritten: Mapping[str, int] | None = None,
        special_tokens: bool = True,
        longest: int | None = None,
        chat: ChatSettings | None = None,
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.model = model
        self.tokenizer = tokenizer
        self.special = frozenset(tokenizer.all_special_ids)
        self.unwritten = frozenset((unwritten or {}).values())
        self.candidates = candidates
        self.candidate_tokenizer = CandidateTokenizer(
            name, tokenizer, model.config, candidates, self.unwritten, special_tokens, longest
        )
        self.token_budget = token_budget or usual_budget(model.device.type, on_cpu=2048)
        self.work = {"rows": 0, "rows_one_by_one": 0, "tokens": 0}
        self.states = WordStates(name, model, tokenizer, self.candidate_tokenizer, self.work, masks=False)
        self.comparing_methods = self.states.methods
        self.share_prefixes = self._sees_trees()
        self._only_read = re.compile("|".join(map(re.escape, unwritten or {})) or "(?!)")
        self.writer = TextWriter(model, tokenizer, self.candidate_tokenizer, self.start_token())
        self.chat = LocalChat(self.writer, tokenizer, chat or ChatSettings())

    def describe(self) -> dict[str, str | int | float]:
        """Parameters, dtype and device."""
        return describe_weights(self.model)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Log-probabilities of each candidate's sentence, or a part of it, pooled by every method."""
        asked, kept = without_unwritable(self.candidate_tokenizer, questions)
        usable, unusable = self.candidate_tokenizer.tokenize_questions(asked)
        yield from unusable
        scores: dict[int, dict[str, FloatArray]] = {index: {} for index in usable}
        for whole in (False, True):
            chosen = [method for method in methods if (METHODS[method][0] == "sentence") == whole]
            if chosen:
                self._score(asked, usable, chosen, whole, scores)
        for index, by_method in scores.items():
            ordered = {method: by_method[method] for method in methods}
            count = len(questions[index].candidates)
            yield CandidateScores(index, with_the_rest_last(ordered, kept.get(index), count))

    def compare_senses(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Cosines of the states of words, by every method; a word knows what stands before it alone."""
        compared, self.token_budget = self.states.compare(questions, methods, self.token_budget)
        yield from compared

    def write_answers(
        self, questions: Sequence[Question], methods: Sequence[str], length: int = ANSWER_LENGTH
    ) -> Iterator[WrittenAnswer]:
        """What the model goes on with, greedily, until the answer ends."""
        for method in methods:
            written, self.token_budget = self.writer.write(questions, method, length, self.token_budget)
            yield from written

    def reply(self, requests: Sequence[ChatRequest]) -> Iterator[ChatReply]:
        """What the model replies, greedily."""
        for one, budget in self.chat.reply(requests, self.token_budget):
            self.token_budget = budget
            yield one

    def gives_letters(self) -> bool:
        """Log-probabilities of letters are at hand."""
        return True

    def _score(
        self,
        questions: Sequence[Question],
        usable: dict[int, TokenizedCandidates],
        methods: Sequence[str],
        whole: bool,
        scores: dict[int, dict[str, FloatArray]],
    ) -> None:
        """The scores by methods that all score the whole sentence, or all a part that is given its beginning."""
        rooted = []
        rest = whole or any(METHODS[method][0] != "candidate" for method in methods)
        for index, placed in usable.items():
            scores[index].update({method: np.empty(len(placed)) for method in methods})
            branches = split_shared_prefix(placed)
            prompt = (*placed.prefix, *branches.shared)
            if not prompt or (whole and prompt[0] not in self.special):
                # Nothing stands before the first token: the model's own beginning does.
                prompt = (self.start_token(), *prompt)
            rooted += [_Rooted(index, prompt, tree) for tree in self._trees(placed, branches, rest)]

        self.work["rows"] += len(rooted)
        self.work["tokens"] += sum(map(len, rooted))
        self.work["rows_one_by_one"] += len(methods) * sum(map(len, usable.values()))

        def forward(batch: list[int]) -> None:
            some = [rooted[i] for i in batch]
            for one, (prompts, edges) in zip(some, self._edges(some, self.share_prefixes, whole), strict=True):
                branches = split_shared_prefix(usable[one.index])
                own = _Values(one, edges, branches, prompts, self.can_write)
                for method in methods:
                    part, pooling = METHODS[method]
                    characters = self._characters(questions[one.index], one.tree.sequence_ids, part)
                    scores[one.index][method][one.tree.sequence_ids] = own.pooled(part, pooling, characters)

        self.token_budget = run_batches([len(one) for one in rooted], self.token_budget, forward)

    def _trees(self, placed: TokenizedCandidates, branches: _Branches, rest: bool) -> list[TokenTrie]:
        """The candidates as trees, with the ``rest`` of the sentence if it counts; shared where prompts go on alike."""
        most = NODES_PER_TRIE if self.share_prefixes else 0

        def make() -> list[TokenTrie]:
            ends = zip(branches.sequences, branches.stops, strict=True)
            if not rest:
                return build_tries([one[:stop] for one, stop in ends], most)
            return build_tries([self.strip_end_tokens((*one, *placed.suffix), stop) for one, stop in ends], most)

        return placed.windows.kept(("trees", most, placed.suffix if rest else None), make)

    def strip_end_tokens(self, ids: Row, stop: int) -> Row:
        """Tokens without those that a tokenizer sets after a sentence: they are no text to be scored."""
        while len(ids) > stop and ids[-1] in self.special:
            ids = ids[:-1]
        return ids

    def start_token(self) -> int:
        """The token that a document begins after; a chat model's own beginning would announce a speaker instead."""
        separator = self.tokenizer.get_vocab().get("<|endoftext|>")
        for token in (separator, self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, self.tokenizer.pad_token_id):
            if token is not None:
                return int(token)
        return 0

    def _edges(
        self, some: Sequence[_Rooted], as_trees: bool, with_prompts: bool
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Log-probabilities of each tree's edges; before them, if asked for, of its prompt's tokens after the first."""
        longest = max(len(one) for one in some)
        ids = np.zeros((len(some), longest), dtype=np.int64)
        places = np.zeros((len(some), longest), dtype=np.int64)
        seen = np.broadcast_to(np.eye(longest, dtype=np.bool_), (len(some), longest, longest)).copy()
        nodes, lines, columns, targets = 0, [], [], []
        ends = [0]
        for line, one in enumerate(some):
            first, size = len(one.prompt), len(one)
            ids[line, :first], ids[line, first:size] = one.prompt, one.tree.tokens
            places[line, :first], places[line, first:size] = np.arange(first), first + one.tree.depths
            seen[line, :first, :first] = np.tri(first, dtype=np.bool_)
            seen[line, first:size, :first] = True
            seen[line, first:size, first:size] = one.tree.visible
            sources, tokens = first + one.tree.sources, one.tree.targets
            if with_prompts:
                sources = np.concatenate([np.arange(first - 1), sources])
                tokens = np.concatenate([np.array(one.prompt[1:], dtype=np.int64), tokens])
            # Every node that predicts something, once; several edges may leave it.
            distinct, at = np.unique(sources, return_inverse=True)
            columns.append(distinct)
            lines.append(nodes + at)
            targets.append(tokens)
            nodes += len(distinct)
            ends.append(ends[-1] + len(tokens))
        device = self.model.device
        inputs: dict[str, Any] = {"input_ids": torch.from_numpy(ids).to(device)}
        if as_trees:
            # Additive, so that every attention implementation reads it the same way.
            hidden = torch.from_numpy(~seen).unsqueeze(1).to(device)
            mask = torch.zeros(hidden.shape, dtype=self.model.dtype, device=device)
            inputs["attention_mask"] = mask.masked_fill_(hidden, torch.finfo(self.model.dtype).min)
            inputs["position_ids"] = torch.from_numpy(places).to(device)
        else:
            filled = np.arange(longest) < np.array([len(one) for one in some])[:, None]
            inputs["attention_mask"] = torch.from_numpy(filled.astype(np.int64)).to(device)
        rows = np.repeat(np.arange(len(some)), [len(own) for own in columns])
        with torch.inference_mode():
            logits = logits_at(
                self.model,
                torch.from_numpy(rows).to(device),
                torch.from_numpy(np.concatenate(columns)).to(device),
                use_cache=False,
                **inputs,
            )
            wanted = np.concatenate(targets)
            written = self.can_write(wanted)
            values = log_probabilities(
                logits,
                torch.from_numpy(np.concatenate(lines)).to(device),
                torch.from_numpy(np.where(written, wanted, 0)).to(device),
            )
            values[~written] = 0.0
        found = []
        for one, first, last in zip(some, ends[:-1], ends[1:], strict=True):
            split = first + (len(one.prompt) - 1 if with_prompts else 0)
            found.append((values[first:split], values[split:last]))
        return found

    def can_write(self, tokens: IntArray) -> BoolArray:
        """Which tokens the model can write."""
        if not self.unwritten:
            return np.ones(len(tokens), dtype=np.bool_)
        return np.isin(tokens, list(self.unwritten), invert=True)

    def _characters(self, question: Question, members: IntArray, part: str) -> FloatArray:
        """How many characters the scored part of each candidate's sentence has, without words that are not written."""
        before, after = (len(self._only_read.sub("", text)) for text in question.prompt.split(SLOT))
        more = {"given": after, "candidate": 0, "sentence": before + after}[part]
        return np.array([len(question.candidates[number]) + more for number in members], dtype=np.float64)

    def _sees_trees(self) -> bool:
        """Whether this architecture reads a tree of tokens rightly: tried on a small one against plain rows."""
        vocabulary = int(self.model.config.get_text_config().vocab_size)
        first, *others = (7 % vocabulary, 11 % vocabulary, 13 % vocabulary, 17 % vocabulary)
        sequences = [(others[i % 3], others[(i + j) % 3], first, others[j]) for i in range(3) for j in range(3)]
        plain = [_Rooted(0, (first,), tree) for tree in build_tries(sequences, 0)]
        try:
            tree = build_tries(sequences, 100)[0]
            shared = _sums(tree, self._edges([_Rooted(0, (first,), tree)], True, False)[0][1])
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            logger.info("%s does not take trees of tokens (%s): one row a candidate", self.name, error)
            return False
        single = [_sums(one.tree, edges[1]) for one, edges in zip(plain, self._edges(plain, False, False), strict=True)]
        tolerance = 1e-3 if self.model.dtype == torch.float32 else 0.25
        same = bool(np.allclose(shared, np.concatenate(single), atol=tolerance))
        if not same:
            logger.info("%s reads trees of tokens wrongly: one row a candidate", self.name)
        return same


class _Values:
    """The log-probabilities of one tree's edges, to be pooled over parts of each candidate's sentence."""

    def __init__(
        self,
        rooted: _Rooted,
        edges: FloatArray,
        branches: _Branches,
        prompt: FloatArray,
        written: Callable[[IntArray], BoolArray],
    ) -> None:
        self.tree = tree = rooted.tree
        # One value a token of each path, then a zero that ranges may end at.
        self.values = np.append(edges[tree.paths], 0.0)
        self.counted = np.append(written(tree.targets)[tree.paths].astype(np.float64), 0.0)
        self.prompt = prompt
        self.prompt_tokens = float(written(np.array(rooted.prompt[1:])).sum()) if len(prompt) else 0.0
        self.branches = branches

    def pooled(self, part: str, pooling: str, characters: FloatArray) -> FloatArray:
        first, last = self.tree.starts[:-1], self.tree.starts[1:]
        if part == "candidate":
            last = first + self.branches.stops[self.tree.sequence_ids]
            first = first + self.branches.starts[self.tree.sequence_ids]
        if pooling == "first-token":
            return self.values[first]
        ranges = np.stack([first, last], axis=1).ravel()
        sums: FloatArray = np.add.reduceat(self.values, ranges)[::2]
        tokens = np.add.reduceat(self.counted, ranges)[::2]
        if part == "sentence":
            sums = sums + self.prompt.sum()
            tokens = tokens + self.prompt_tokens
        if pooling == "mean":
            return sums / tokens
        return sums / np.maximum(1.0, characters) if pooling == "per-character" else sums


def _sums(tree: TokenTrie, edges: FloatArray) -> FloatArray:
    sums: FloatArray = np.add.reduceat(edges[tree.paths], tree.starts[:-1])
    return sums


def split_shared_prefix(placed: TokenizedCandidates) -> _Branches:
    """The candidates of a prompt from where they begin to differ, worked out once for all that go on alike."""
    return placed.windows.kept("branches", partial(_branches, placed.windows))


def _branches(windows: CandidateWindows) -> _Branches:
    """Candidates begin to differ where their tokens do, or where the first of them begins."""
    each = [one.ids for one in windows.candidates]
    shared = min(_common_prefix(each), *(one.start for one in windows.candidates))
    return _Branches(
        each[0][:shared],
        [ids[shared:] for ids in each],
        np.array([one.start - shared for one in windows.candidates]),
        np.array([one.stop - shared for one in windows.candidates]),
    )


def _common_prefix(sequences: Sequence[Sequence[int]]) -> int:
    for place, tokens in enumerate(zip(*sequences, strict=False)):
        if len(set(tokens)) > 1:
            return place
    return min(len(ids) for ids in sequences)
