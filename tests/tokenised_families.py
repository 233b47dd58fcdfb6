"""Tokenizers of every family, loaded as models load them, and two more kinds that no tiny model has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import transformers as hf
from tiny_models import CHINESE_SENTENCES, FAMILIES, SENTENCES, byte_level_lines, sentencepiece_bpe

from merkhet.models.tokenize_candidates import CandidateTokenizer

OVER_BLANKS = "llama-over-blanks"
LINES = "llama-lines"
BOTH = (*CHINESE_SENTENCES, *SENTENCES)
PLAIN = ("Paris", "Berlin", "Rome", "New York", "the United States", "New Delhi", "São Paulo", "a metal")


@dataclass(frozen=True)
class Tokenised:
    """A family's tokenizer as it is loaded, and the sentences that it was trained on."""

    name: str
    tokenizer: Any = field(repr=False)
    sentences: tuple[str, ...] = field(repr=False)

    def candidate_tokenizer(self, longest: int = 10**6) -> CandidateTokenizer:
        candidate_tokenizer = CandidateTokenizer(self.name, self.tokenizer, SimpleNamespace())
        candidate_tokenizer.max_tokens = longest
        return candidate_tokenizer


def load_tokenizers(folders: Mapping[str, Path]) -> dict[str, Tokenised]:
    """Load every family's tokenizer, and make the two others, by name."""
    found = {
        name: Tokenised(name, hf.AutoTokenizer.from_pretrained(folders[name]), family.sentences)
        for name, family in FAMILIES.items()
    }
    found[OVER_BLANKS] = Tokenised(OVER_BLANKS, sentencepiece_bpe(BOTH, over_blanks=True), BOTH)
    found[LINES] = Tokenised(LINES, byte_level_lines(SENTENCES), SENTENCES)
    return found
