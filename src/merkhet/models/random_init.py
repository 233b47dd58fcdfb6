"""Models that know nothing yet: random weights in a given shape, to be trained from the beginning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError, first_line
from merkhet.core.files import file_digest
from merkhet.core.ids import digest
from merkhet.core.records import Question
from merkhet.models.protocol import RANDOM_WEIGHTS, CandidateScores

_SHAPE = re.compile(r"(\d+)x(\d+)(?:x(\d+))?")
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_WIDTH_OF_A_HEAD = 64
_LONGEST = 512
_READ = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt")


@dataclass(frozen=True)
class Shape:
    """Layers, width and heads of a network in RoBERTa's layout."""

    layers: int
    width: int
    heads: int


@dataclass(frozen=True)
class UntrainedModel:
    """A masked model before it has learned anything: a shape with a tokenizer to be made, or another model's.

    ``folder`` holds the configuration and the tokenizer of the model whose architecture it has.
    """

    name: str
    fingerprint: str
    shape: Shape | None = None
    folder: Path | None = None
    kind: str = "blank"
    methods: tuple[str, ...] = ()

    def describe(self) -> dict[str, str | int | float]:
        """Nothing is known before it is made."""
        return {"architecture": "random weights"}

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Refuse: there is nothing to ask."""
        raise InputError(f"{self.name} knows nothing yet; let it memorize facts first (merkhet memorize)")

    def make(self, texts: Iterable[str], vocabulary: int, seed: int) -> tuple[Any, Any]:
        """A network of random weights and its tokenizer, which is made of texts where the model has none."""
        import torch
        import transformers

        if self.folder is not None:
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder)
                config = transformers.AutoConfig.from_pretrained(self.folder)
            except Exception as error:  # Broken files make the libraries raise anything.
                raise InputError(f"{self.name}: {self.folder} cannot be read: {first_line(error)}") from error
        else:
            assert self.shape is not None
            tokenizer = make_tokenizer(texts, vocabulary)
            config = transformers.RobertaConfig(
                vocab_size=len(tokenizer),
                hidden_size=self.shape.width,
                num_hidden_layers=self.shape.layers,
                num_attention_heads=self.shape.heads,
                intermediate_size=4 * self.shape.width,
                max_position_embeddings=_LONGEST + 2,
                type_vocab_size=1,
                pad_token_id=tokenizer.pad_token_id,
                bos_token_id=tokenizer.bos_token_id,
                eos_token_id=tokenizer.eos_token_id,
            )
        with torch.random.fork_rng():
            torch.manual_seed(seed % 2**63)
            network = transformers.AutoModelForMaskedLM.from_config(config)
        return network, tokenizer


def parse_untrained_model(text: str, folder_of: Any) -> UntrainedModel:
    """The blank model that ``random:WHAT`` means: a shape such as 2x128, or another model's architecture.

    ``folder_of`` finds the folder of another model by its name. Refuses a shape that cannot be.
    """
    what = text.removeprefix(RANDOM_WEIGHTS)
    found = _SHAPE.fullmatch(what)
    if found is None:
        wanted = "write random:LAYERSxWIDTH (random:2x128), or name a masked model whose architecture it is to have"
        try:
            folder: Path = folder_of(what)
        except InputError as error:
            raise InputError(f"{text}: {wanted}; {error}") from error
        if not (folder / "config.json").is_file():
            raise InputError(f"{text}: {wanted}")
        files = [[name, file_digest(folder / name)] for name in _READ if (folder / name).is_file()]
        return UntrainedModel(text, digest(["random", files]), folder=folder)
    layers, width = int(found[1]), int(found[2])
    heads = int(found[3]) if found[3] else max(1, width // _WIDTH_OF_A_HEAD)
    if not layers or not width or not heads or width % heads:
        raise InputError(
            f"{text}: a width of {width} does not divide among {heads} heads; write random:2x128 or 2x96x3"
        )
    return UntrainedModel(text, digest(["random", layers, width, heads]), Shape(layers, width, heads))


def make_tokenizer(texts: Iterable[str], vocabulary: int) -> Any:
    """A tokenizer of bytes and of the pairs that are frequent in texts, as RoBERTa has it; nothing is unknown to it."""
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
    begin, end = (_SPECIAL[place] for place in (0, 2))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in (begin, end)],
    )
    names = dict(zip(("bos", "pad", "eos", "unk", "mask"), (*_SPECIAL[:-1], mask), strict=True))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=_LONGEST,
        cls_token=begin,
        sep_token=end,
        **{f"{name}_token": token for name, token in names.items()},
    )
