"""Options of ontoprobe."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from merkhet.analysis.option_models import Several, StudyPath, in_order
from merkhet.engine.suite_options import SplitOptions

MEMORIZING = ("TP", "SCO", "SPO", "DM", "RG")
RULES = {"rdfs2": "DM", "rdfs3": "RG", "rdfs5": "SPO", "rdfs7": "SPO", "rdfs9": "SCO", "rdfs11": "SCO"}
"""Memorizing task that asks for the first premise of each rule."""
SOFT_TEMPLATE_TASKS = {
    **{"rdfs2": ("DM", "TP"), "rdfs3": ("RG", "TP"), "rdfs5": ("SPO",), "rdfs7": ("SPO",)},
    **{"rdfs9": ("SCO", "TP"), "rdfs11": ("SCO",)},
}
"""Memorizing tasks whose soft templates occur in the premises and the hypothesis of each rule."""
CHOICE = tuple(f"{task}-choice" for task in (*MEMORIZING, *RULES))
PREDISPOSITION = "predisposition"
PromptKind = Literal["manual", "soft"]
PROMPT_KINDS: tuple[PromptKind, ...] = get_args(PromptKind)
Combination = Literal["manual-manual", "soft-manual", "manual-soft", "soft-soft"]
"""Kind of the templates and kind of the conjunctions in a reasoning question."""
Loss = Literal["bce", "nll"]


class OntoprobeOptions(SplitOptions):
    """Options of an ontoprobe study."""

    templates: Annotated[tuple[PromptKind, ...], Several, in_order(PromptKind)] = Field(
        PROMPT_KINDS, min_length=1, description="kinds of templates that are asked in memorizing"
    )
    reasoning: Annotated[tuple[Combination, ...], Several, in_order(Combination)] = Field(
        ("manual-manual",), min_length=1, description="kinds of templates and of conjunctions in reasoning"
    )
    losses: Annotated[tuple[Loss, ...], Several, in_order(Loss)] = Field(
        ("bce",), min_length=1, description="losses that soft prompts are learned with"
    )
    premises: int | None = Field(
        100, ge=1, description="maximum number of first premises of a rule, drawn by the seed (null: all)"
    )
    pairs: int = Field(10, ge=1, description="number of pairs of pseudowords for a hypothesis")
    alpha: float = Field(
        0.5, gt=0, lt=1, description="distance of pseudowords from the mask, as a share of the nearest word's distance"
    )
    instances: int = Field(20, ge=1, description="maximum number of instances of a class that are asked about")
    patterns: StudyPath | None = Field(
        None, description="a YAML file with patterns of properties: {label: '[X] was born in [Y] .', …}"
    )
    predicates: dict[str, Annotated[tuple[str, ...], Several]] | None = Field(
        None,
        description="predicates of the roles: {type: […], subclass: […], subproperty: […], domain: […], range: […]}",
    )
    compat: Literal["paper"] | None = Field(
        None,
        description="paper: the input text and tokenization of the code published with the paper, with its faults",
    )

    @property
    def allows_leaks(self) -> bool:
        """Whether splits may share facts or prompts, as in the published code."""
        return self.leaks or self.compat is not None
