"""Options of chneval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from merkhet.core.errors import InputError

HELP = {
    "text": "text to make function-word questions of: .txt (Chinese, segmented by jieba), .conllu, .tagged, or folders",
    "senses": "sentences with tagged senses to compare words in: a table with word, sense, sentence (and position)",
    "pairs": "pairs to make commonsense questions of: a table with start, relation, end, such as ConceptNet's",
    "triples": "triples to make encyclopedia questions of: a table with subject, relation, object (and text)",
    "texts": "texts that hold the items of triples: a table with title and text, .jsonl, or plain text",
    "templates": "a YAML file with your own sentences for the relations of pairs, by language",
    "tags": "which tags are which class of function words ({C: [c], D: [d]}; jieba's, or universal ones)",
    "language": "the language of what is given (zh)",
    "characters": "how many characters an answer has (any); 1 as in the published set",
    "ask": "which item of a pair is left out: end, start or both (end)",
    "per_word": "how many questions a function word gets at most (500)",
    "per_sense": "how many questions a sense gets at most (10)",
    "per_polysemous_word": "how many questions a word with several senses gets at most (50)",
    "per_relation": "how many questions a relation of pairs or triples gets at most (400 and 100)",
    "per_answer": "how many questions of pairs or triples have the same answer at most (10)",
    "compat": "paper: as the released code does it (no special tokens, unusable ones left out, masked senses)",
}
FILES = ("text", "senses", "pairs", "triples", "texts", "templates")
"""Options that name files or folders."""


@dataclass(frozen=True)
class Caps:
    """Maximum numbers of questions, and the length of answers; see HELP."""

    characters: int | None = None
    per_word: int = 500
    per_sense: int = 10
    per_polysemous_word: int = 50
    per_relation: int | None = None
    per_answer: int = 10


def read_caps(options: Mapping[str, Any]) -> Caps:
    """Read and check the options that are numbers."""
    values = {field.name: options[field.name] for field in fields(Caps) if options.get(field.name) is not None}
    for name, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"the option {name} must be an integer ≥ 1, got {value!r}")
    return Caps(**values)


def is_paper(options: Mapping[str, Any]) -> bool:
    """Check whether the option compat asks for the behaviour of the released code."""
    compat = options.get("compat")
    if compat not in (None, "paper"):
        raise InputError(f"the option compat must be 'paper' or be left out, got {compat!r}")
    return compat == "paper"
