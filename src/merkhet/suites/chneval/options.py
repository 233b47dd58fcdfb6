"""Options of chneval."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from merkhet.analysis.option_models import Several, StudyPath
from merkhet.engine.suite_options import SuiteOptions

Paths = Annotated[tuple[StudyPath, ...], Several]


class ChnevalOptions(SuiteOptions):
    """Options of a chneval study."""

    text: Paths = Field(
        (),
        description="text to make function-word questions of: .txt (Chinese, segmented by jieba), .conllu, .tagged, or "
        "folders",
    )
    senses: StudyPath | None = Field(
        None, description="sentences with tagged senses: a table with word, sense, sentence (and position)"
    )
    pairs: StudyPath | None = Field(
        None, description="pairs for commonsense questions: a table with start, relation, end, such as ConceptNet's"
    )
    triples: StudyPath | None = Field(
        None, description="triples for encyclopedia questions: a table with subject, relation, object (and text)"
    )
    texts: Paths = Field(
        (), description="texts that hold the items of triples: a table with title and text, .jsonl, or plain text"
    )
    templates: StudyPath | None = Field(
        None, description="a YAML file with your own sentences for the relations of pairs, by language"
    )
    tags: dict[str, Annotated[tuple[str, ...], Several]] | None = Field(
        None, description="tags of each class of function words ({C: [c], D: [d]}; jieba's, or universal ones)"
    )
    language: str | None = Field(None, description="language of the files and the knowledge (zh)")
    characters: int | None = Field(
        None, ge=1, description="number of characters of an answer (any); 1 as in the published set"
    )
    ask: Literal["end", "start", "both"] = Field("end", description="item of a pair that is left out")
    per_word: int = Field(500, ge=1, description="maximum number of questions of a function word")
    per_sense: int = Field(10, ge=1, description="maximum number of questions of a sense")
    per_polysemous_word: int = Field(50, ge=1, description="maximum number of questions of a word with several senses")
    per_relation: int | None = Field(
        None, ge=1, description="maximum number of questions of a relation of pairs (400) or triples (100)"
    )
    per_answer: int = Field(10, ge=1, description="maximum number of questions of pairs or triples with one answer")
    compat: Literal["paper"] | None = Field(
        None,
        description="paper: as the released code does it (no special tokens, unusable questions left out, masked "
        "senses)",
    )

    @property
    def is_paper(self) -> bool:
        """Whether to reproduce the released code."""
        return self.compat == "paper"

    @property
    def has_material(self) -> bool:
        """Whether the options name files to make questions from."""
        return any((self.text, self.senses, self.pairs, self.triples, self.texts))
