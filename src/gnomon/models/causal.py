"""Causal language models: candidates scored in their sentence, the text after the slot included.

All candidates of a prompt go through the model as one tree of tokens: the prompt is computed once, common beginnings
once, and the last token of each sentence not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gnomon.foundation import SLOT
from gnomon.foundation.records import Question
from gnomon.models.batching import run_batches, usual_budget
from gnomon.models.heads import describe_weights, log_probabilities, logits_at
from gnomon.models.placing import Placed, Placer
from gnomon.models.protocol import CandidateScores, FloatArray
from gnomon.models.trie import TokenTree, build_tree

logger = logging.getLogger(__name__)

NODES_PER_TREE = 1024


_POOLINGS: dict[str, Callable[[FloatArray, int], float]] = {
    "sum": lambda values, characters: float(values.sum()),
    "mean": lambda values, characters: float(values.mean()),
    "per-character": lambda values, characters: float(values.sum()) / max(1, characters),
}
METHODS: dict[str, tuple[str, str]] = {
    **{pooling: ("given", pooling) for pooling in _POOLINGS},
    "first-token": ("candidate", "first-token"),
    **{f"{part}-{pooling}": (part, pooling) for part in ("candidate", "sentence") for pooling in _POOLINGS},
}
"""Each method as the part of the sentence that is scored and a pooling of its log-probabilities."""


@dataclass(frozen=True)
class _Sentence:
    """A candidate's sentence as the model gets it: tokens, which are the candidate's, and characters of each part."""

    ids: tuple[int, ...]
    start: int
    stop: int
    characters: dict[str, int]


@dataclass(frozen=True)
class _Piece:
    """Some candidates of one question: their tree, and from which edge on a path counts."""

    index: int
    numbers: range
    sentences: list[_Sentence]
    tree: TokenTree
    first_edge: int


class CausalModel:
    """A causal language model from the Hugging Face library.

    Parts of a sentence that can be scored: the candidate and the text after it, given the text before (the usual one);
    the ``candidate`` alone, given the text before; the whole ``sentence``, given the model's own beginning.
    """

    kind = "causal"
    methods: tuple[str, ...] = tuple(METHODS)

    def __init__(
        self, name: str, fingerprint: str, model: Any, tokenizer: Any, token_budget: int | None = None
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.model = model
        self.tokenizer = tokenizer
        self.special = frozenset(tokenizer.all_special_ids)
        self.placer = Placer(name, tokenizer, model.config)
        self.token_budget = token_budget or usual_budget(model.device.type, on_cpu=2048)
        self.share_prefixes = self._sees_trees()

    def describe(self) -> dict[str, str | int | float]:
        """Parameters, dtype and device."""
        return describe_weights(self.model)

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Log-probabilities of each candidate's sentence, or a part of it, pooled by every method."""
        scores: dict[int, dict[str, FloatArray]] = {}
        usable, unusable = self.placer.place(questions)
        yield from unusable
        for index, placed in usable.items():
            scores[index] = {method: np.empty(len(placed)) for method in methods}
        for whole in (False, True):
            chosen = [method for method in methods if (METHODS[method][0] == "sentence") == whole]
            if chosen:
                pieces = [
                    piece
                    for index, placed in usable.items()
                    for piece in self._pieces(index, questions[index], placed, whole)
                ]
                self._score(pieces, chosen, scores)
        for index, by_method in scores.items():
            yield CandidateScores(index, by_method)

    def _pieces(self, index: int, question: Question, placed: list[Placed], whole: bool) -> Iterator[_Piece]:
        before, after = (len(part) for part in question.prompt.split(SLOT))
        start = 0 if whole else min(_common_prefix([one.ids for one in placed]), *(one.start for one in placed))
        if whole and placed[0].ids[0] in self.special:
            start = 1
        # Nothing stands before the first token: the model's own beginning does.
        beginning = () if start else (self._beginning(),)
        start = start or 1
        shift = len(beginning)
        sentences = [
            _Sentence(
                (*beginning, *one.ids),
                one.start + shift,
                one.stop + shift,
                {"given": len(text) + after, "candidate": len(text), "sentence": before + len(text) + after},
            )
            for text, one in zip(question.candidates, placed, strict=True)
        ]
        step = 1
        if self.share_prefixes:
            widest = max(len(one.ids) for one in sentences) - start
            step = max(1, (NODES_PER_TREE - start) // max(1, widest))
        for first in range(0, len(sentences), step):
            some = sentences[first : first + step]
            tree = build_tree([one.ids for one in some])
            yield _Piece(index, range(first, first + len(some)), some, tree, start - 1)

    def _beginning(self) -> int:
        """The token that a document begins after; a chat model's own beginning would announce a speaker instead."""
        separator = self.tokenizer.get_vocab().get("<|endoftext|>")
        for token in (separator, self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, self.tokenizer.pad_token_id):
            if token is not None:
                return int(token)
        return 0

    def _score(self, pieces: list[_Piece], methods: Sequence[str], scores: dict[int, dict[str, FloatArray]]) -> None:
        ways = [(method, *METHODS[method]) for method in methods]

        def forward(batch: list[int]) -> None:
            chosen = [pieces[i] for i in batch]
            values = self._edge_log_probabilities(chosen, self.share_prefixes)
            for piece, edges in zip(chosen, values, strict=True):
                found = scores[piece.index]
                for number, sentence, path in zip(piece.numbers, piece.sentences, piece.tree.paths, strict=True):
                    own = edges[path]
                    for method, part, pooling in ways:
                        if part == "candidate":
                            some = own[sentence.start - 1 : sentence.stop - 1]
                        else:
                            some = own[piece.first_edge :]
                        found[method][number] = (
                            some[0] if pooling == "first-token" else _POOLINGS[pooling](some, sentence.characters[part])
                        )

        self.token_budget = run_batches([len(piece.tree.tokens) for piece in pieces], self.token_budget, forward)

    def _edge_log_probabilities(self, pieces: list[_Piece], as_trees: bool) -> list[FloatArray]:
        """Log-probability of each edge of each tree; NaN for edges of the prompt, which the head is not asked for."""
        trees = [piece.tree for piece in pieces]
        longest = max(len(tree.tokens) for tree in trees)
        ids = torch.zeros((len(trees), longest), dtype=torch.long)
        positions = torch.zeros((len(trees), longest), dtype=torch.long)
        seen = torch.eye(longest, dtype=torch.bool).repeat(len(trees), 1, 1)
        for line, tree in enumerate(trees):
            size = len(tree.tokens)
            ids[line, :size] = torch.tensor(tree.tokens)
            positions[line, :size] = torch.tensor(tree.depths)
            if as_trees:
                seen[line, :size, :size] = torch.from_numpy(tree.attention())
        device = self.model.device
        inputs: dict[str, Any] = {"input_ids": ids.to(device)}
        if as_trees:
            # Additive, so that every attention implementation reads it the same way.
            mask = torch.zeros(seen.shape, dtype=self.model.dtype)
            mask.masked_fill_(~seen, torch.finfo(self.model.dtype).min)
            inputs["attention_mask"] = mask.unsqueeze(1).to(device)
            inputs["position_ids"] = positions.to(device)
        else:
            inputs["attention_mask"] = torch.tensor(
                [[1] * len(tree.tokens) + [0] * (longest - len(tree.tokens)) for tree in trees], device=device
            )
        # Every (tree, node) that predicts something, once; several edges may leave it.
        edges = [
            (line, source, target, number)
            for line, (piece, tree) in enumerate(zip(pieces, trees, strict=True))
            for number, (source, target) in enumerate(zip(tree.sources, tree.targets, strict=True))
            if tree.depths[source] >= piece.first_edge
        ]
        nodes = sorted({(line, source) for line, source, _, _ in edges})
        place = {node: i for i, node in enumerate(nodes)}
        at = torch.tensor([place[line, source] for line, source, _, _ in edges])
        targets = torch.tensor([target for _, _, target, _ in edges])
        with torch.inference_mode():
            logits = logits_at(
                self.model,
                torch.tensor([line for line, _ in nodes], device=device),
                torch.tensor([node for _, node in nodes], device=device),
                use_cache=False,
                **inputs,
            )
            values = log_probabilities(logits, at.to(device), targets.to(device))
        found = [np.full(len(tree.targets), np.nan) for tree in trees]
        for (line, _, _, number), value in zip(edges, values, strict=True):
            found[line][number] = value
        return found

    def _sees_trees(self) -> bool:
        """Whether this architecture reads a tree of tokens rightly: tried on a small one against plain rows."""
        vocabulary = int(self.model.config.get_text_config().vocab_size)
        first, *others = (7 % vocabulary, 11 % vocabulary, 13 % vocabulary, 17 % vocabulary)
        sequences = [[first, others[i % 3], others[(i + j) % 3], first, others[j]] for i in range(3) for j in range(3)]
        plain = [_Piece(0, range(1), [], build_tree([sequence]), 0) for sequence in sequences]
        try:
            tree = build_tree(sequences)
            edges = self._edge_log_probabilities([_Piece(0, range(len(sequences)), [], tree, 0)], as_trees=True)[0]
            shared = np.array([edges[path].sum() for path in tree.paths])
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            logger.info("%s does not take trees of tokens (%s): one row a candidate", self.name, error)
            return False
        single = np.array([values.sum() for values in self._edge_log_probabilities(plain, as_trees=False)])
        tolerance = 1e-3 if self.model.dtype == torch.float32 else 0.25
        same = bool(np.allclose(shared, single, atol=tolerance))
        if not same:
            logger.info("%s reads trees of tokens wrongly: one row a candidate", self.name)
        return same


def _common_prefix(sequences: Sequence[Sequence[int]]) -> int:
    for place, tokens in enumerate(zip(*sequences, strict=False)):
        if len(set(tokens)) > 1:
            return place
    return min(len(ids) for ids in sequences)
