"""Words that are made: texts that a model reads as one token each, with an input embedding of their own.

A made word is read and never written: it has no place in the model's vocabulary of answers, so what the model says of
everything else stays the same.
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
    """An input embedding with further rows: numbers from ``first`` on are looked up in a table beside it.

    The table is no weight of the network: it is neither counted nor saved with it, nor does it decide its precision.
    """

    def __init__(self, base: torch.nn.Module, table: torch.nn.Parameter, first: int) -> None:
        super().__init__()
        self.base = base
        self.first = first
        self._beside = (table,)

    @property
    def table(self) -> torch.nn.Parameter:
        """The embeddings of the made words, in float32; they may be learned."""
        return self._beside[0]

    @property
    def weight(self) -> Any:
        """The rows of the model's own vocabulary."""
        return self.base.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The embeddings of a batch of tokens."""
        made = ids >= self.first
        known: torch.Tensor = self.base(ids.masked_fill(made, 0))
        own = self.table[(ids - self.first).clamp(min=0, max=len(self.table) - 1)]
        return torch.where(made.unsqueeze(-1), own.to(known.dtype), known)


def with_extra_words(model: LanguageModel, words: Mapping[str, torch.Tensor]) -> LanguageModel:
    """The same model with further words, each text with its input embedding.

    The network is shared and the tokenizer is copied. A network wears one set of words at a time: words that it had
    before are gone unless they are given again. Refuses a text that the tokenizer knows as a token of its own, and
    embeddings of another size.
    """
    plain = cast(LanguageModel, model.original or model)
    network, base = plain.model, get_base_embedding(plain)
    width = int(base.weight.shape[1])
    for text, vector in words.items():
        if tuple(vector.shape) != (width,):
            raise InputError(f"{plain.name}: the word {text} has an embedding of {tuple(vector.shape)}, not ({width},)")
    if not words:
        network.set_input_embeddings(base)
        return plain
    tokenizer, first = _taught(plain, list(words))
    table = torch.stack([vector.detach() for vector in words.values()]).to(base.weight.device, torch.float32)
    network.set_input_embeddings(ExtraEmbeddings(base, torch.nn.Parameter(table), first))
    contents = [[text, vector.detach().float().cpu().numpy().tobytes().hex()] for text, vector in words.items()]
    dressed = type(plain)(
        plain.name,
        digest(["made words", plain.fingerprint, contents]),
        network,
        tokenizer,
        plain.token_budget,
        plain.candidates,
        {word: first + number for number, word in enumerate(words)},
        plain.candidate_tokenizer.special_tokens,
        plain.candidate_tokenizer.max_tokens,
    )
    dressed.original = plain
    return dressed


def get_extra_embeddings(model: MaskedModel | CausalModel) -> ExtraEmbeddings:
    """The embedding of a model that has made words; its table may be learned."""
    found = model.model.get_input_embeddings()
    if not isinstance(found, ExtraEmbeddings):
        raise InputError(f"{model.name} has no made words")
    return found


def get_base_embedding(model: MaskedModel | CausalModel) -> Any:
    """A model's own input embedding, made words put aside; refuses a model that has none."""
    found = model.model.get_input_embeddings()
    if isinstance(found, ExtraEmbeddings):
        found = found.base
    if getattr(getattr(found, "weight", None), "ndim", 0) != 2:
        raise InputError(f"{model.name} has no table of input embeddings, so it cannot be given further words")
    return found


def missing_words(prompts: Sequence[str], words: Sequence[str], known: Sequence[str]) -> list[str]:
    """Which of these words stand in a prompt although the model does not know them."""
    return [word for word in words if word not in known and any(word in prompt for prompt in prompts)]


def _taught(model: MaskedModel | CausalModel, words: Sequence[str]) -> tuple[Any, int]:
    """A copy of a model's tokenizer that knows these words, and the number of the first: the others follow it.

    A blank before a word belongs to it, as before a mask, and what stands after it has the tokens that it has after
    any word; both are tried. In families that set a blank before every text, a word that is glued to the one before
    it is not found. Upper and lower case stay as they are.
    """
    from tokenizers import AddedToken

    known = model.tokenizer.get_vocab()
    for normalized in (False, True):
        # Normalized words are for tokenizers that set a blank before every text that they are given a part of.
        tokenizer = copy.deepcopy(model.tokenizer)
        tokenizer.add_tokens([AddedToken(word, lstrip=True, normalized=normalized, special=False) for word in words])
        numbers = [int(tokenizer.convert_tokens_to_ids(word)) for word in words]
        first = max(known.values()) + 1
        if numbers != list(range(first, first + len(words))):
            raise InputError(f"{model.name}: its tokenizer knows some of these as tokens already: {', '.join(words)}")
        if _reads(tokenizer, words[0], numbers[0]):
            return tokenizer, first
    raise InputError(f"{model.name}: its tokenizer cannot be taught words that are one token each")


def _reads(tokenizer: Any, word: str, number: int) -> bool:
    """Whether a word is one token at the beginning and after a blank, and changes nothing of what follows."""

    def tokens(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    after = tokens(f"{word} of")
    within = tokens(f"of {word} of")
    rest = after[1:]
    return (
        after[0] == number
        and within == [*tokens("of"), *after]
        and bool(rest)
        and tokens("of of")[-len(rest) :] == rest
    )
