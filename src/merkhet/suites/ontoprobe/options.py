"""What a study may say about ontoprobe, checked before anything is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.engine.study import Study

MEMORIZING = ("TP", "SCO", "SPO", "DM", "RG")
RULES = {"rdfs2": "DM", "rdfs3": "RG", "rdfs5": "SPO", "rdfs7": "SPO", "rdfs9": "SCO", "rdfs11": "SCO"}
"""Each rule with the memorizing task that its first premise comes from."""
LEARNED_FOR = {
    **{"rdfs2": ("DM", "TP"), "rdfs3": ("RG", "TP"), "rdfs5": ("SPO",), "rdfs7": ("SPO",)},
    **{"rdfs9": ("SCO", "TP"), "rdfs11": ("SCO",)},
}
"""Each rule with the memorizing tasks whose soft templates stand in its premises and its hypothesis."""
CHOICE = tuple(f"{task}-choice" for task in (*MEMORIZING, *RULES))
PREDISPOSITION = "predisposition"
WAYS = ("manual", "soft")
LOSSES = ("bce", "nll")

HELP = {
    "templates": "kinds of templates that are asked in memorizing: [manual, soft]",
    "reasoning": "templates with conjunctions in reasoning: any of manual-manual (alone), soft-manual, manual-soft, "
    "soft-soft",
    "losses": "losses that soft prompts are learned with: [bce], nll besides it or instead",
    "premises": "how many first premises a rule is asked with at most, drawn by the seed (100; null: all)",
    "pairs": "how many pairs of pseudowords a hypothesis is asked with (10)",
    "alpha": "how near to the mask pseudowords lie, as a share of the nearest word's distance (0.5)",
    "instances": "how many instances of a class are asked about at most (20)",
    "patterns": "a YAML file with patterns of properties: {label: '[X] was born in [Y] .', …}",
    "predicates": "which predicates of the knowledge are {type: […], subclass: […], subproperty: […], domain: […], "
    "range: […]}",
    "compat": "paper: the input text and tokenisation of the code that was published with the paper, with its faults",
    "split": "the split whose questions are asked (test)",
    "leaks": "true: learn from given data although facts or prompts straddle its splits (they are refused)",
}


@dataclass(frozen=True)
class OntoprobeOptions:
    """The options of a study; see HELP."""

    templates: tuple[str, ...] = WAYS
    reasoning: tuple[str, ...] = ("manual-manual",)
    losses: tuple[str, ...] = ("bce",)
    premises: int | None = 100
    pairs: int = 10
    alpha: float = 0.5
    instances: int = 20
    compat: str | None = None


def read_options(study: Study) -> OntoprobeOptions:
    """The options of a study; refuses what cannot be meant."""
    given = study.options
    combined = tuple(f"{template}-{conjunction}" for conjunction in WAYS for template in WAYS)
    usual = OntoprobeOptions()
    premises = given.get("premises", usual.premises)
    alpha = given.get("alpha", usual.alpha)
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InputError(f"the option alpha is {alpha!r}, and should be a number between 0 and 1")
    compat = given.get("compat")
    if compat not in (None, "paper"):
        raise InputError(f"the option compat is {compat!r}, and can only be paper, or be left out")
    return OntoprobeOptions(
        templates=_some(given, "templates", WAYS, usual.templates),
        reasoning=_some(given, "reasoning", combined, usual.reasoning),
        losses=_some(given, "losses", LOSSES, usual.losses),
        premises=None if premises is None else _count("premises", premises),
        pairs=_count("pairs", given.get("pairs", usual.pairs)),
        alpha=float(alpha),
        instances=_count("instances", given.get("instances", usual.instances)),
        compat=compat,
    )


def _some(given: dict[str, Any], key: str, known: tuple[str, ...], usual: tuple[str, ...]) -> tuple[str, ...]:
    value = given.get(key)
    if value is None:
        return usual
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names:
        raise InputError(f"the option {key} is {value!r}, and should list some of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise InputError(f"the option {key} cannot have {name!r}; {did_you_mean(str(name), known)}")
    return tuple(name for name in known if name in names)


def _count(key: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"the option {key} is {value!r}, and should be a whole number above 0")
    return value
