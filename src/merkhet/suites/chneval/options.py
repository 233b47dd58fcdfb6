"""The options of chneval, and what each means."""

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
    """How many questions there are at most, and of what length their answers are."""

    characters: int | None = None
    per_word: int = 500
    per_sense: int = 10
    per_polysemous_word: int = 50
    per_relation: int | None = None
    per_answer: int = 10


def read_caps(options: Mapping[str, Any]) -> Caps:
    """The numbers among the options; refuses what is no whole number above 0."""
    given = {one.name: options[one.name] for one in fields(Caps) if options.get(one.name) is not None}
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"the option {name} is {value!r}, and should be a whole number above 0")
    return Caps(**given)


def is_paper(options: Mapping[str, Any]) -> bool:
    """Whether the released code is to be followed; refuses another value."""
    compat = options.get("compat")
    if compat not in (None, "paper"):
        raise InputError(f"the option compat is {compat!r}, and should be 'paper'")
    return compat == "paper"
