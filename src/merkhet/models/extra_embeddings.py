"""Extra words: added words that a model reads as one token each, with an added input embedding.

An extra word cannot be predicted. It has no entry in the output vocabulary, so the scores of other words do not change.
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
    """An input embedding with a second table, which has the embeddings of the token ids from ``first`` on.

    The second table is not registered as a parameter of the network. The network does not count or save it, and its
    dtype does not affect the network's.
    """

    def __init__(self, base: torch.nn.Module, table: torch.nn.Parameter, first: int) -> None:
        super().__init__()
        self.base = base
        self.first = first
        self._unregistered = (table,)

    @property
    def table(self) -> torch.nn.Parameter:
        """The embeddings of the extra words, as a trainable float32 parameter."""
        return self._unregistered[0]

    @property
    def weight(self) -> Any:
        """The embeddings of the original vocabulary."""
        return self.base.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Look up the embeddings of a batch of token ids."""
        is_extra = ids >= self.first
        base: torch.Tensor = self.base(ids.masked_fill(is_extra, 0))
        extra = self.table[(ids - self.first).clamp(min=0, max=len(self.table) - 1)]
        return torch.where(is_extra.unsqueeze(-1), extra.to(base.dtype), base)


def with_extra_words(model: LanguageModel, words: Mapping[str, torch.Tensor]) -> LanguageModel:
    """Return a model that also reads extra words, given as a mapping from words to embeddings.

    The new model shares the network and has a copy of the tokenizer. A network has one set of extra words at a time, so
    ``words`` replaces earlier extra words. If ``words`` is empty, all extra words are removed.

    Raises:
        InputError: A word is already a token of the tokenizer, or an embedding has the wrong size.
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
    """Return the input embedding of a model with extra words; raise InputError if the model has none."""
    embedding = model.model.get_input_embeddings()
    if not isinstance(embedding, ExtraEmbeddings):
        raise InputError(f"{model.name} has no extra words; add them with with_extra_words")
    return embedding


def get_base_embedding(model: MaskedModel | CausalModel) -> Any:
    """Return the model's original input embedding, without extra words.

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
    """Return a copy of the model's tokenizer with consecutive token ids for ``words``, and the first of these ids.

    The token of a word includes the space before it, like a mask token. The text after a word is tokenized as after any
    other word. A test checks this for the first word. If the tokenizer puts a space before every text, it does not
    recognize an extra word without a space before it. Extra words are case-sensitive.
    """
    from tokenizers import AddedToken

    vocabulary = model.tokenizer.get_vocab()
    for normalized in (False, True):
        # Normalized tokens are needed by tokenizers that put a space before every text between added tokens.
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
    """Return whether a word is one token, at the start and after a space, without effect on the following tokens."""

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
