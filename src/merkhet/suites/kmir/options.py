"""Options of the KMIR suite."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from merkhet.analysis.option_models import Listed, Several, StudyPath, in_order
from merkhet.engine.suite_options import SplitOptions

SENSITIVE_CLASSES = (
    *("disputed territory", "ethnic slur", "pornographic film", "pornographic actor", "sex position"),
    *("genocide", "massacre", "terrorist attack"),
)
"""Default classes, by name or id, whose entities are excluded from questions."""
Book = Literal["closed", "open"]
SHARES = {"train": 0.6, "dev": 0.1, "test": 0.3}


class KmirOptions(SplitOptions):
    """Options of a KMIR study."""

    # Not called "schema", because BaseModel has a method of that name.
    schema_file: StudyPath | None = Field(
        None, alias="schema", description="a YAML file with your own domains, relations and templates"
    )
    rules: StudyPath | None = Field(None, description="a YAML file with your own rules for reasoning questions")
    sensitive: StudyPath | None = Field(None, description="a YAML file with further sensitive words")
    classes: Annotated[tuple[str, ...], Listed] = Field(
        SENSITIVE_CLASSES, description="classes whose entities are not asked about, by name or id"
    )
    paraphrases: int | None = Field(
        None, ge=1, description="maximum number of templates per fact and asked placeholder (all)"
    )
    checks: int = Field(10_000, ge=1, description="number of checked statements, half of them false")
    rounds: int = Field(
        4, ge=1, description="number of groupings of categories and numbers for distinction and comparison"
    )
    asked: int | None = Field(
        None, ge=1, description="number of facts that questions are made of (all, but at most 100,000)"
    )
    evidence: Literal["declared", "assumed"] | None = Field(
        None,
        description="evidence that wrong options are wrong: declared or assumed (declared, or assumed if no relation "
        "declares any)",
    )
    balance: bool | None = Field(
        None,
        description="whether to leave out common answers and thin large relations and domains, so that each domain has "
        "5% to 15% of the questions (only with the default packs)",
    )
    splits: dict[str, float] = Field(SHARES, description="shares of the facts by split")
    split_by: Literal["premise", "fact"] = Field(
        "premise",
        description="premise: no conclusion has a premise in another split; fact: facts are split one by one, as in "
        "the paper",
    )
    books: Annotated[tuple[Book, ...], Several, in_order(Book), Field(min_length=1)] = Field(
        ("closed",), description="how reasoning questions are asked: closed, open (with premises in the text), or both"
    )
    premise_questions: bool = Field(
        False, description="true: a limited run also asks the completion questions of the premises of its conclusions"
    )

    @property
    def asks_premises(self) -> bool:
        """Whether a limited run also asks the completion questions of the premises of drawn conclusions."""
        return self.premise_questions
