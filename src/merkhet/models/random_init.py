"""Untrained models: networks with random weights, to be trained from scratch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, first_line
from merkhet.core.files import file_digest
from merkhet.core.ids import digest
from merkhet.core.records import Question
from merkhet.models.protocol import RANDOM_PREFIX, CandidateScores

_SHAPE = re.compile(r"(\d+)x(\d+)(?:x(\d+))?")
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_HEAD_WIDTH = 64
_MAX_TOKENS = 512
_HASHED_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt")


@dataclass(frozen=True)
class Shape:
    """The number of layers, hidden size and number of attention heads of a RoBERTa network."""

    layers: int
    width: int
    heads: int


@dataclass(frozen=True)
class UntrainedModel:
    """A masked model with random weights."""

    name: str
    fingerprint: str
    shape: Shape | None = None
    """The shape of a new network; its tokenizer is trained too. None if ``folder`` is set."""
    folder: Path | None = None
    """The folder of another model whose configuration and tokenizer are used. None if ``shape`` is set."""
    kind: str = "blank"
    methods: tuple[str, ...] = ()

    def describe(self) -> dict[str, str | int | float]:
        """Describe the model as random weights, because its network does not exist yet."""
        return {"architecture": "random weights"}

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Raise InputError, because an untrained model cannot be evaluated."""
        raise InputError(f"{self.name} knows nothing yet; let it memorize facts first (merkhet memorize)")

    def make(self, texts: Iterable[str], vocabulary: int, seed: int) -> tuple[Any, Any]:
        """Create the network and its tokenizer.

        The tokenizer comes from ``folder`` if it is set. Otherwise it is trained on ``texts``.
        """
        import torch
        import transformers

        if self.folder is not None:
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, trust_remote_code=False)
                config = transformers.AutoConfig.from_pretrained(self.folder, trust_remote_code=False)
            except Exception as error:  # The libraries raise anything for broken files.
                raise InputError(
                    f"{self.name}: {self.folder} cannot be read: {first_line(error)}. Copy its files again."
                ) from error
        else:
            assert self.shape is not None
            tokenizer = train_tokenizer(texts, vocabulary)
            config = transformers.RobertaConfig(
                vocab_size=len(tokenizer),
                hidden_size=self.shape.width,
                num_hidden_layers=self.shape.layers,
                num_attention_heads=self.shape.heads,
                intermediate_size=4 * self.shape.width,
                max_position_embeddings=_MAX_TOKENS + 2,
                type_vocab_size=1,
                pad_token_id=tokenizer.pad_token_id,
                bos_token_id=tokenizer.bos_token_id,
                eos_token_id=tokenizer.eos_token_id,
            )
        with torch.random.fork_rng():
            torch.manual_seed(seed % 2**63)
            network = transformers.AutoModelForMaskedLM.from_config(config)
        return network, tokenizer


def parse_untrained_model(text: str, find_folder: Callable[[str], Path]) -> UntrainedModel:
    """Parse ``random:LAYERSxWIDTH``, ``random:LAYERSxWIDTHxHEADS`` or ``random:NAME``.

    ``NAME`` is a model whose architecture is used; ``find_folder`` returns its folder.

    Raises:
        InputError: The shape is invalid, or no model is called ``NAME``.
    """
    description = text.removeprefix(RANDOM_PREFIX)
    shape = _SHAPE.fullmatch(description)
    if shape is None:
        hint = (
            "write random:LAYERSxWIDTH (random:2x128), or random:NAME, with a masked model of the wanted architecture"
        )
        try:
            folder = find_folder(description)
        except InputError as error:
            raise InputError(f"{text}: {hint}; {error}") from error
        if not (folder / "config.json").is_file():
            raise InputError(f"{text}: {hint}")
        files = [[name, file_digest(folder / name)] for name in _HASHED_FILES if (folder / name).is_file()]
        return UntrainedModel(text, digest(["random", files]), folder=folder)
    layers, width = int(shape[1]), int(shape[2])
    heads = int(shape[3]) if shape[3] else max(1, width // _HEAD_WIDTH)
    if not layers or not width or not heads or width % heads:
        raise InputError(
            f"{text}: a width of {width} does not divide among {heads} heads; write random:2x128 or 2x96x3"
        )
    return UntrainedModel(text, digest(["random", layers, width, heads]), Shape(layers, width, heads))


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Any:
    """Train a byte-level BPE tokenizer like RoBERTa's, which can encode every character."""
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    mask = AddedToken(_SPECIAL[-1], lstrip=True, special=True)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[*_SPECIAL[:-1], mask],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    begin, end = _SPECIAL[0], _SPECIAL[2]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(name, tokenizer.token_to_id(name)) for name in (begin, end)]
    )
    names = dict(zip(("bos", "pad", "eos", "unk", "mask"), (*_SPECIAL[:-1], mask), strict=True))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=_MAX_TOKENS,
        cls_token=begin,
        sep_token=end,
        **{f"{name}_token": token for name, token in names.items()},
    )
