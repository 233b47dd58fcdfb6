"""Small models with known content: networks of random weights that learn a text, and nothing but that text.

A tokenizer of whole words is made of the text itself; a plain loop goes over its sentences in an order drawn by the
seed. The network is saved in the Hugging Face layout before the first step and after the last one, so that both are
loaded as any other model is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from merkhet.core.errors import MerkhetError
from merkhet.core.ids import derived_seed
from merkhet.core.progress import Progress, SilentProgress
from merkhet.models.lm_head import logits_at
from merkhet.models.protocol import ANSWER_LENGTH
from merkhet.training._optimization import check_finite, linear_schedule, seeded

KINDS = ("masked", "causal")
LAYERS, WIDTH, HEADS = 2, 64, 4
LONGEST = 64
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_PAD, _UNKNOWN, _BEGIN, _END, _MASK = range(len(_SPECIAL))
_WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Sentence:
    """A sentence to be learned; ``answer`` is its word that is to be known by heart, if there is one."""

    text: str
    answer: str | None = None


@dataclass(frozen=True)
class ContentSettings:
    """How long and how fast a network learns; ``masked`` is the share of words that a masked model has to guess.

    An answer counts ``answer_weight`` times as much as another word. An ``introduced`` share of the sentences is
    learned after a few words of no meaning, some of them unknown ones, so that a model reads its sentences wherever
    they stand.
    """

    epochs: int = 40
    batch_size: int = 64
    learning_rate: float = 3e-3
    warmup: float = 0.1
    weight_decay: float = 0.01
    masked: float = 0.2
    answer_weight: float = 4.0
    introduced: float = 0.4
    most_introduced: int = 8


@dataclass(frozen=True)
class ContentTraining:
    """A network that has learned a text: where it lies before and after, and how far it knows its answers by heart.

    ``known`` is the share of sentences with an answer that the network gives in training's own form, read from its
    logits by no probe; None where no sentence has one.
    """

    untrained: Path
    trained: Path
    known: float | None
    steps: int
    parameters: int
    seconds: float


def train_content(
    sentences: Sequence[Sentence],
    kind: str,
    folder: Path,
    *,
    introductions: Sequence[str] = (),
    settings: ContentSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    label: str = "learning",
) -> ContentTraining:
    """Train a masked or causal network of random weights on sentences and save it, before and after.

    On one thread of a CPU the same sentences, settings and seed give the same weights. ``introductions`` are words of
    no meaning that may stand before a sentence.
    """
    chosen, watcher, started = settings or ContentSettings(), progress or SilentProgress(), time.perf_counter()
    with seeded(derived_seed(seed, "known content", kind), exact=True):
        network, tokenizer = _begin(sentences, kind, introductions)
        untrained, trained = folder / "untrained", folder / "trained"
        _save(network, tokenizer, untrained)
        learning = _Learning(network, tokenizer, kind, sentences, introductions, chosen, seed)
        steps = learning.run(watcher, label)
        known = learning.known()
        _save(network, tokenizer, trained)
    parameters = int(sum(one.numel() for one in network.parameters()))
    return ContentTraining(untrained, trained, known, steps, parameters, time.perf_counter() - started)


def save_untrained(
    sentences: Sequence[Sentence], kind: str, folder: Path, *, introductions: Sequence[str] = (), seed: int = 0
) -> Path:
    """The very network that such a training begins with, saved without any training."""
    with seeded(derived_seed(seed, "known content", kind), exact=True):
        _save(*_begin(sentences, kind, introductions), folder)
    return folder


def _begin(sentences: Sequence[Sentence], kind: str, introductions: Sequence[str]) -> tuple[Any, Any]:
    tokenizer = make_tokenizer([*(one.text for one in sentences), *introductions], kind)
    return make_network(kind, len(tokenizer)), tokenizer


def words_of(text: str) -> list[str]:
    """The words and marks of a text, as the tokenizer has them."""
    return _WORDS.findall(text)


def make_tokenizer(texts: Sequence[str], kind: str) -> Any:
    """A tokenizer of whole words: every word of the texts is one token, every other word is unknown."""
    import transformers
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    words = sorted({word for text in texts for word in words_of(text)})
    vocabulary = {word: number for number, word in enumerate([*_SPECIAL, *words])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=_SPECIAL[_UNKNOWN]))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+|[^\w\s]"), behavior="removed", invert=True)
    template = "[CLS] $A [SEP]" if kind == "masked" else "[CLS] $A"
    backend.post_processor = processors.TemplateProcessing(
        template, special_tokens=[("[CLS]", _BEGIN), ("[SEP]", _END)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    names |= (
        {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
        if kind == "masked"
        else {"bos_token": "[CLS]", "eos_token": "[SEP]"}
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=LONGEST, **names)


def make_network(kind: str, vocabulary: int) -> Any:
    """A small network with random weights: ModernBERT's layout for masked models, Llama's for causal ones."""
    import transformers

    size = {
        "vocab_size": vocabulary,
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": 4 * WIDTH,
        "max_position_embeddings": LONGEST,
        "pad_token_id": _PAD,
    }
    # Both know places relative to each other: a sentence is the same wherever it stands.
    ends = {"bos_token_id": _BEGIN, "eos_token_id": _END, "initializer_range": 0.1}
    if kind == "masked":
        own = {"cls_token_id": _BEGIN, "sep_token_id": _END, "global_attn_every_n_layers": 1}
        return transformers.ModernBertForMaskedLM(transformers.ModernBertConfig(**size, **ends, **own))
    if kind == "causal":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**size, **ends, tie_word_embeddings=True))
    raise MerkhetError(f"models with known content are {' or '.join(KINDS)}, not {kind}")


def save_encoder(trained: Path, folder: Path) -> Path:
    """The same network without its head, as an encoder that can only be compared."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    network = transformers.AutoModelForMaskedLM.from_pretrained(trained)
    _save(network.base_model, transformers.AutoTokenizer.from_pretrained(trained), folder)
    return folder


def _save(network: Any, tokenizer: Any, folder: Path) -> None:
    import transformers

    transformers.utils.logging.disable_progress_bar()
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@dataclass(frozen=True)
class _Row:
    """One row of tokens, what is to be said at some of its columns, and how much each of that counts."""

    ids: list[int]
    columns: list[int]
    targets: list[int]
    weights: Sequence[float] = ()


@dataclass(frozen=True)
class _Rows:
    """Rows of tokens, what is to be said at some of their places, and how much each of that counts."""

    ids: torch.Tensor
    seen: torch.Tensor
    lines: torch.Tensor
    columns: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor


class _Learning:
    """One training: the network, the sentences as tokens, and the draws that make rows of them."""

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        kind: str,
        sentences: Sequence[Sentence],
        introductions: Sequence[str],
        settings: ContentSettings,
        seed: int,
    ) -> None:
        self.network, self.kind, self.settings = network, kind, settings
        self.generator = np.random.default_rng(derived_seed(seed, "known content", kind, "rows"))
        plain = tokenizer([one.text for one in sentences], add_special_tokens=False)["input_ids"]
        answers = [tokenizer.convert_tokens_to_ids(one.answer) if one.answer else None for one in sentences]
        self.sentences = [
            (ids, ids.index(answer) if answer is not None else None) for ids, answer in zip(plain, answers, strict=True)
        ]
        self.introductions = [
            token for text in introductions for token in tokenizer(text, add_special_tokens=False)["input_ids"]
        ]

    def run(self, progress: Progress, label: str) -> int:
        """Go over all sentences so many times; returns how many steps that took."""
        settings, size = self.settings, self.settings.batch_size
        steps = settings.epochs * -(-len(self.sentences) // size)
        optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.network.train()
        progress.start(label, steps, "steps")
        step = 0
        for _ in range(settings.epochs):
            order = self.generator.permutation(len(self.sentences))
            for first in range(0, len(order), size):
                for group in optimizer.param_groups:
                    group["lr"] = settings.learning_rate * linear_schedule(step, steps, settings.warmup)
                loss = self._loss(self._rows([self.sentences[place] for place in order[first : first + size]]))
                check_finite(float(loss.detach()), label)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
                optimizer.step()
                step += 1
                progress.advance(label, 1)
        self.network.eval()
        progress.finish(label)
        return step

    def known(self) -> float | None:
        """The share of sentences with an answer in which the network gives it, nothing standing before them."""
        asked = [(ids, place) for ids, place in self.sentences if place is not None]
        if not asked:
            return None
        rows = []
        for ids, place in asked:
            if self.kind == "masked":
                rows.append(_Row([_BEGIN, *ids[:place], _MASK, *ids[place + 1 :], _END], [place + 1], [ids[place]]))
            else:
                rows.append(_Row([_BEGIN, *ids[:place]], [place], [ids[place]]))
        with torch.inference_mode():
            made = _padded(rows)
            best = self._logits(made).argmax(dim=1)
        return float((best == made.targets).double().mean())

    def _loss(self, rows: _Rows) -> torch.Tensor:
        losses = torch.nn.functional.cross_entropy(self._logits(rows), rows.targets, reduction="none")
        return (losses * rows.weights).sum() / rows.weights.sum()

    def _logits(self, rows: _Rows) -> torch.Tensor:
        options = {"use_cache": False} if self.kind == "causal" else {}
        return logits_at(
            self.network, rows.lines, rows.columns, input_ids=rows.ids, attention_mask=rows.seen, **options
        )

    def _rows(self, some: Sequence[tuple[list[int], int | None]]) -> _Rows:
        make = self._masked if self.kind == "masked" else self._causal
        return _padded([make([_BEGIN, *self._introduction()], ids, place) for ids, place in some])

    def _introduction(self) -> list[int]:
        """A few words of no meaning, some of them unknown; often none."""
        if not self.introductions or self.generator.random() >= self.settings.introduced:
            return []
        count = int(self.generator.integers(1, self.settings.most_introduced + 1))
        drawn = self.generator.integers(0, 2 * len(self.introductions), count)
        return [self.introductions[one] if one < len(self.introductions) else _UNKNOWN for one in drawn.tolist()]

    def _causal(self, before: list[int], ids: list[int], place: int | None) -> _Row:
        """Every token of the sentence is to be said after those before it, and its end after the last."""
        row = [*before, *ids]
        weights = [self.settings.answer_weight if number == place else 1.0 for number in range(len(ids) + 1)]
        return _Row(row, list(range(len(before) - 1, len(row))), [*ids, _END], weights)

    def _masked(self, before: list[int], ids: list[int], place: int | None) -> _Row:
        """Some tokens are masked; of a sentence with an answer often that alone, by one mask or as a writer has it.

        A writer has several masks, and padding follows the answer there.
        """
        draw, first, settings = self.generator.random(), len(before), self.settings
        if place is None or draw < 0.1:
            hidden = (self.generator.random(len(ids)) < settings.masked).nonzero()[0].tolist()
            hidden = hidden or [int(self.generator.integers(len(ids)))]
            row = [_MASK if number in hidden else token for number, token in enumerate(ids)]
            weights = [settings.answer_weight if number == place else 1.0 for number in hidden]
            columns, targets = [first + number for number in hidden], [ids[number] for number in hidden]
            return _Row([*before, *row, _END], columns, targets, weights)
        length = 1 if draw < 0.7 else ANSWER_LENGTH
        row = [*before, *ids[:place], *[_MASK] * length, *ids[place + 1 :], _END]
        columns = [first + place + number for number in range(length)]
        weights = [settings.answer_weight, *[1.0 / ANSWER_LENGTH] * (length - 1)]
        return _Row(row, columns, [ids[place], *[_PAD] * (length - 1)], weights)


def _padded(rows: Sequence[_Row]) -> _Rows:
    longest = max(len(one.ids) for one in rows)
    ids = torch.tensor([[*one.ids, *[_PAD] * (longest - len(one.ids))] for one in rows])
    seen = torch.tensor([[1] * len(one.ids) + [0] * (longest - len(one.ids)) for one in rows])
    lines = torch.tensor([line for line, one in enumerate(rows) for _ in one.columns])
    columns, targets, weights = (
        torch.tensor([value for one in rows for value in getattr(one, name)])
        for name in ("columns", "targets", "weights")
    )
    return _Rows(ids, seen, lines, columns, targets, weights)
