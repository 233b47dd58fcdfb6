"""Calibration models: small networks trained from scratch on a few known sentences.

The vocabulary consists of the words of the sentences. The untrained and the trained network are both saved in the
Hugging Face layout, so they load like any other model.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from merkhet.core.errors import MerkhetError
from merkhet.core.ids import derived_seed
from merkhet.core.progress import Progress
from merkhet.core.settings import NonNegativeFloat, PositiveFloat, PositiveInt, Settings, Share
from merkhet.models.protocol import ANSWER_LENGTH
from merkhet.training._optimization import seeded
from merkhet.training._token_rows import TokenBatch, TokenRow
from merkhet.training._trainer import Trainer
from merkhet.training._training_task import STEPS, AutogradTask

KINDS = ("masked", "causal")
LAYERS, WIDTH, HEADS = 2, 64, 4
MAX_LENGTH = 64
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_PAD, _UNKNOWN, _BEGIN, _END, _MASK = range(len(_SPECIAL))
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Sentence:
    """A sentence to train on."""

    text: str
    answer: str | None = None
    """The word of the sentence that the model shall memorize, if any."""


@dataclass(frozen=True)
class ContentSettings(Settings):
    """Training settings of a calibration model."""

    epochs: PositiveInt = 40
    batch_size: PositiveInt = 64
    learning_rate: PositiveFloat = 3e-3
    warmup: Share = 0.1
    """Share of all steps during which the learning rate rises."""
    weight_decay: NonNegativeFloat = 0.01
    masked: Share = 0.2
    """Share of words that are masked at random in the training of a masked model."""
    answer_weight: PositiveFloat = 4.0
    """Weight of an answer in the loss; other words have the weight 1."""
    introduced: Share = 0.4
    """Share of sentences with meaningless words before them, so that the model learns sentences at any position."""
    most_introduced: PositiveInt = 8
    """Maximum number of meaningless words before a sentence."""


@dataclass(frozen=True)
class ContentTraining:
    """Result of training a calibration model."""

    untrained: Path
    """Folder of the network before training."""
    trained: Path
    """Folder of the network after training."""
    train_accuracy: float | None
    """Share of training sentences in which the answer has the highest logit; None if no sentence has an answer."""
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
    """Train a network with random initial weights on sentences, and save it before and after the training.

    ``kind`` is ``masked`` or ``causal``. ``introductions`` are meaningless words that may precede a sentence. On a
    single CPU thread the same sentences, settings and seed give the same weights.
    """
    settings, started = settings or ContentSettings(), time.perf_counter()
    with seeded(derived_seed(seed, "known content", kind), exact=True):
        network, tokenizer = _initialize(sentences, kind, introductions)
        untrained, trained = folder / "untrained", folder / "trained"
        _save(network, tokenizer, untrained)
        task = ContentTask(label, network, tokenizer, kind, sentences, introductions, settings, seed)
        steps = Trainer(task, progress).run().step
        train_accuracy = task.train_accuracy()
        _save(network, tokenizer, trained)
    parameters = int(sum(parameter.numel() for parameter in network.parameters()))
    return ContentTraining(untrained, trained, train_accuracy, steps, parameters, time.perf_counter() - started)


def save_untrained(
    sentences: Sequence[Sentence], kind: str, folder: Path, *, introductions: Sequence[str] = (), seed: int = 0
) -> Path:
    """Save the untrained network from which ``train_content`` starts, and return its folder."""
    with seeded(derived_seed(seed, "known content", kind), exact=True):
        _save(*_initialize(sentences, kind, introductions), folder)
    return folder


def _initialize(sentences: Sequence[Sentence], kind: str, introductions: Sequence[str]) -> tuple[Any, Any]:
    tokenizer = make_tokenizer([*(sentence.text for sentence in sentences), *introductions], kind)
    return make_network(kind, len(tokenizer)), tokenizer


def split_words(text: str) -> list[str]:
    """Split a text into words and punctuation marks, as the tokenizer does."""
    return _WORD.findall(text)


def make_tokenizer(texts: Sequence[str], kind: str) -> Any:
    """Return a word-level tokenizer, in which every word of ``texts`` is one token and any other word is unknown."""
    import transformers
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    words = sorted({word for text in texts for word in split_words(text)})
    vocabulary = {word: number for number, word in enumerate([*_SPECIAL, *words])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=_SPECIAL[_UNKNOWN]))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+|[^\w\s]"), behavior="removed", invert=True)
    template = "[CLS] $A [SEP]" if kind == "masked" else "[CLS] $A"
    backend.post_processor = processors.TemplateProcessing(
        template, special_tokens=[("[CLS]", _BEGIN), ("[SEP]", _END)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    if kind == "masked":
        names |= {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    else:
        names |= {"bos_token": "[CLS]", "eos_token": "[SEP]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=MAX_LENGTH, **names)


def make_network(kind: str, vocabulary: int) -> Any:
    """Return a small network with random weights: a ModernBERT if ``kind`` is masked, a Llama if it is causal."""
    import transformers

    # Both architectures use relative positions, so a sentence is read in the same way at any position.
    shared = {
        "vocab_size": vocabulary,
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": 4 * WIDTH,
        "max_position_embeddings": MAX_LENGTH,
        "initializer_range": 0.1,
        **{"pad_token_id": _PAD, "bos_token_id": _BEGIN, "eos_token_id": _END},
    }
    if kind == "masked":
        modernbert = {"cls_token_id": _BEGIN, "sep_token_id": _END, "global_attn_every_n_layers": 1}
        return transformers.ModernBertForMaskedLM(transformers.ModernBertConfig(**shared, **modernbert))
    if kind == "causal":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**shared, tie_word_embeddings=True))
    raise MerkhetError(f"kind must be {' or '.join(KINDS)}, got {kind}")


def save_encoder(trained: Path, folder: Path) -> Path:
    """Save a masked network without its language-model head, as an encoder that only embeds texts."""
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
class _Row(TokenRow):
    weights: Sequence[float] = ()
    """Weight of each target in the loss."""


class ContentTask(AutogradTask[list[_Row]]):
    """The training of a calibration model on sentences with random masks and introductions.

    A single random generator draws all examples in sequence, so the training cannot be resumed.
    """

    def __init__(
        self,
        label: str,
        network: Any,
        tokenizer: Any,
        kind: str,
        sentences: Sequence[Sentence],
        introductions: Sequence[str],
        settings: ContentSettings,
        seed: int,
    ) -> None:
        super().__init__(label, settings, {"network": network}, examples=len(sentences), unit=STEPS)
        self.network, self.kind = network, kind
        self.generator = np.random.default_rng(derived_seed(seed, "known content", kind, "rows"))

        def tokenize(text: str) -> list[int]:
            ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
            return ids

        self.sentences: list[tuple[list[int], int | None]] = []
        """Tokens of each sentence, and the position of its answer (None without an answer)."""
        for sentence in sentences:
            ids, answer = tokenize(sentence.text), sentence.answer
            self.sentences.append((ids, ids.index(tokenizer.convert_tokens_to_ids(answer)) if answer else None))
        self.introductions = [token for text in introductions for token in tokenize(text)]

    def batches(self, epoch: int, start: int) -> Iterator[list[_Row]]:
        """Yield batches of all sentences in random order."""
        order = self.generator.permutation(len(self.sentences))
        for first in range(start * self.batch_size, len(order), self.batch_size):
            yield [self._make_row(*self.sentences[index]) for index in order[first : first + self.batch_size]]

    def weight(self, batch: Sequence[_Row]) -> float:
        """Return the sum of the weights of all targets."""
        return sum(weight for row in batch for weight in row.weights)

    def loss(self, batch: Sequence[_Row]) -> torch.Tensor:
        """Return the weighted sum of the cross-entropies of all targets."""
        tokens = TokenBatch.pad(batch, _PAD, self.device)
        losses = torch.nn.functional.cross_entropy(self._logits(tokens), tokens.targets, reduction="none")
        return (losses * torch.tensor([weight for row in batch for weight in row.weights])).sum()

    def train_accuracy(self) -> float | None:
        """Return the share of sentences, without introductions, in which the answer has the highest logit.

        Return None if no sentence has an answer.
        """
        questions = [(ids, position) for ids, position in self.sentences if position is not None]
        if not questions:
            return None
        if self.kind == "masked":
            rows = [
                _Row([_BEGIN, *ids[:position], _MASK, *ids[position + 1 :], _END], [position + 1], [ids[position]])
                for ids, position in questions
            ]
        else:
            rows = [_Row([_BEGIN, *ids[:position]], [position], [ids[position]]) for ids, position in questions]
        with torch.inference_mode():
            batch = TokenBatch.pad(rows, _PAD, self.device)
            predictions = self._logits(batch).argmax(dim=1)
        return float((predictions == batch.targets).double().mean())

    def _logits(self, batch: TokenBatch) -> torch.Tensor:
        return batch.logits(self.network, **({"use_cache": False} if self.kind == "causal" else {}))

    def _make_row(self, ids: list[int], position: int | None) -> _Row:
        make_row = self._masked_row if self.kind == "masked" else self._causal_row
        return make_row([_BEGIN, *self._draw_introduction()], ids, position)

    def _draw_introduction(self) -> list[int]:
        """Draw some tokens of meaningless or unknown words, or none with the probability 1 - ``introduced``."""
        if not self.introductions or self.generator.random() >= self.settings.introduced:
            return []
        count = int(self.generator.integers(1, self.settings.most_introduced + 1))
        draws = self.generator.integers(0, 2 * len(self.introductions), count)
        return [self.introductions[draw] if draw < len(self.introductions) else _UNKNOWN for draw in draws.tolist()]

    def _causal_row(self, prefix: list[int], ids: list[int], position: int | None) -> _Row:
        """Return an example for a causal model: predict every token of the sentence, then the end token."""
        row = [*prefix, *ids]
        weights = [self.settings.answer_weight if index == position else 1.0 for index in range(len(ids) + 1)]
        return _Row(row, list(range(len(prefix) - 1, len(row))), [*ids, _END], weights)

    def _masked_row(self, prefix: list[int], ids: list[int], position: int | None) -> _Row:
        """Return an example for a masked model, with random tokens masked or only the answer.

        The answer is replaced by one mask or, as in the write probe, by ``ANSWER_LENGTH`` masks.
        """
        draw, offset, settings = self.generator.random(), len(prefix), self.settings
        if position is None or draw < 0.1:
            masked = (self.generator.random(len(ids)) < settings.masked).nonzero()[0].tolist()
            masked = masked or [int(self.generator.integers(len(ids)))]
            row = [_MASK if index in masked else token for index, token in enumerate(ids)]
            weights = [settings.answer_weight if index == position else 1.0 for index in masked]
            columns, targets = [offset + index for index in masked], [ids[index] for index in masked]
            return _Row([*prefix, *row, _END], columns, targets, weights)
        length = 1 if draw < 0.7 else ANSWER_LENGTH
        row = [*prefix, *ids[:position], *[_MASK] * length, *ids[position + 1 :], _END]
        columns = [offset + position + index for index in range(length)]
        weights = [settings.answer_weight, *[1.0 / ANSWER_LENGTH] * (length - 1)]
        return _Row(row, columns, [ids[position], *[_PAD] * (length - 1)], weights)
