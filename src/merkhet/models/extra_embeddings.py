"""Extra words: texts that a model reads as one token each, with an added input embedding.

An extra word is input only. It has no entry in the output vocabulary, so the scores of everything else stay the same.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import torch

from merkhet.core.errors import InputError
from merkhet.core.ids import digest
from merkhet.models.causal import CausalModel
from merkhet.models.masked import MaskedModel

LanguageModel = TypeVar("LanguageModel", bound=MaskedModel | CausalModel)


class ExtraEmbeddings(torch.nn.Module):  # type: ignore[misc]
    """An input embedding with added rows: token ids from ``first`` on are looked up in a second table.

    The table is not registered as a weight of the network: it is not counted, not saved with it, and does not decide
    its dtype.
    """

    def __init__(self, base: torch.nn.Module, table: torch.nn.Parameter, first: int) -> None:
        super().__init__()
        self.base = base
        self.first = first
        self._unregistered = (table,)

    @property
    def table(self) -> torch.nn.Parameter:
        """The embeddings of the extra words, in float32; they can be trained."""
        return self._unregistered[0]

    @property
    def weight(self) -> Any:
        """The embeddings of the model's own vocabulary."""
        return self.base.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Look up the embeddings of a batch of tokens."""
        is_extra = ids >= self.first
        base: torch.Tensor = self.base(ids.masked_fill(is_extra, 0))
        extra = self.table[(ids - self.first).clamp(min=0, max=len(self.table) - 1)]
        return torch.where(is_extra.unsqueeze(-1), extra.to(base.dtype), base)


def with_extra_words(model: LanguageModel, words: Mapping[str, torch.Tensor]) -> LanguageModel:
    """Return the same model with extra words.

    The network is shared and the tokenizer is copied. A network has one set of extra words at a time: earlier ones are
    removed unless they are passed again. Without words all extra words are removed.

    Raises:
        InputError: The tokenizer already has a word as a token, or an embedding has another size.
    """
    original = cast(LanguageModel, model.original or model)
    network, base = original.model, get_base_embedding(original)
    width = int(base.weight.shape[1])
    for text, vector in words.items():
        if tuple(vector.shape) != (width,):
            raise InputError(
                f"{original.name}: the word {text} has an embedding of {tuple(vector.shape)}, not ({width},)"
            )
    if not words:
        network.set_input_embeddings(base)
        return original
    tokenizer, first = _extend_tokenizer(original, list(words))
    table = torch.stack([vector.detach() for vector in words.values()]).to(base.weight.device, torch.float32)
    network.set_input_embeddings(ExtraEmbeddings(base, torch.nn.Parameter(table), first))
    contents = [[text, vector.detach().float().cpu().numpy().tobytes().hex()] for text, vector in words.items()]
    extended = type(original)(
        original.name,
        digest(["made words", original.fingerprint, contents]),
        network,
        tokenizer,
        original.token_budget,
        original.candidates,
        {word: first + index for index, word in enumerate(words)},
        original.candidate_tokenizer.special_tokens,
        original.candidate_tokenizer.max_tokens,
    )
    extended.original = original
    return extended


def get_extra_embeddings(model: MaskedModel | CausalModel) -> ExtraEmbeddings:
    """Return the embedding of a model with extra words; its table can be trained."""
    embedding = model.model.get_input_embeddings()
    if not isinstance(embedding, ExtraEmbeddings):
        raise InputError(f"{model.name} has no extra words; add them with with_extra_words")
    return embedding


def get_base_embedding(model: MaskedModel | CausalModel) -> Any:
    """Return the model's own input embedding, without extra words.

    Raises:
        InputError: The model has no table of input embeddings.
    """
    embedding = model.model.get_input_embeddings()
    if isinstance(embedding, ExtraEmbeddings):
        embedding = embedding.base
    if getattr(getattr(embedding, "weight", None), "ndim", 0) != 2:
        raise InputError(f"{model.name} has no table of input embeddings, so it cannot be given extra words")
    return embedding


def _extend_tokenizer(model: MaskedModel | CausalModel, words: Sequence[str]) -> tuple[Any, int]:
    """Return a copy of the model's tokenizer with consecutive tokens for the words, and the id of the first.

    A word includes the space before it, as a mask does, and the text after it is tokenized as after any other word;
    both are checked. If the tokenizer puts a space before every text, a word without a space before it is not
    recognized. Words are case-sensitive.
    """
    from tokenizers import AddedToken

    vocabulary = model.tokenizer.get_vocab()
    for normalized in (False, True):
        # Normalized tokens are for tokenizers that put a space before every text between added tokens.
        tokenizer = copy.deepcopy(model.tokenizer)
        tokenizer.add_tokens([AddedToken(word, lstrip=True, normalized=normalized, special=False) for word in words])
        ids = [int(tokenizer.convert_tokens_to_ids(word)) for word in words]
        first = max(vocabulary.values()) + 1
        if ids != list(range(first, first + len(words))):
            raise InputError(f"{model.name}: its tokenizer already has some of these as tokens: {', '.join(words)}")
        if _is_single_token(tokenizer, words[0], ids[0]):
            return tokenizer, first
    raise InputError(f"{model.name}: its tokenizer cannot be extended by words of one token each")


def _is_single_token(tokenizer: Any, word: str, token: int) -> bool:
    """Whether a word is one token at the start and after a space, and changes no token of the text after it."""

    def tokenize(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    at_start = tokenize(f"{word} of")
    after_space = tokenize(f"of {word} of")
    rest = at_start[1:]
    return (
        at_start[0] == token
        and after_space == [*tokenize("of"), *at_start]
        and bool(rest)
        and tokenize("of of")[-len(rest) :] == rest
    )
