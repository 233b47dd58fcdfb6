"""Options of ontoprobe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from merkhet.core.errors import InputError, did_you_mean
from merkhet.engine.study import Study

MEMORIZING = ("TP", "SCO", "SPO", "DM", "RG")
RULES = {"rdfs2": "DM", "rdfs3": "RG", "rdfs5": "SPO", "rdfs7": "SPO", "rdfs9": "SCO", "rdfs11": "SCO"}
"""Memorizing task of each rule's first premise."""
SOFT_TEMPLATE_TASKS = {
    **{"rdfs2": ("DM", "TP"), "rdfs3": ("RG", "TP"), "rdfs5": ("SPO",), "rdfs7": ("SPO",)},
    **{"rdfs9": ("SCO", "TP"), "rdfs11": ("SCO",)},
}
"""Memorizing tasks whose soft templates are part of each rule's premises and hypothesis."""
CHOICE = tuple(f"{task}-choice" for task in (*MEMORIZING, *RULES))
PREDISPOSITION = "predisposition"
PROMPT_KINDS = ("manual", "soft")
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
    """Options of a study; see HELP."""

    templates: tuple[str, ...] = PROMPT_KINDS
    reasoning: tuple[str, ...] = ("manual-manual",)
    losses: tuple[str, ...] = ("bce",)
    premises: int | None = 100
    pairs: int = 10
    alpha: float = 0.5
    instances: int = 20
    compat: str | None = None


def read_options(study: Study) -> OntoprobeOptions:
    """Read and check the options of a study."""
    options = study.options
    combined = tuple(f"{template}-{conjunction}" for conjunction in PROMPT_KINDS for template in PROMPT_KINDS)
    defaults = OntoprobeOptions()
    premises = options.get("premises", defaults.premises)
    alpha = options.get("alpha", defaults.alpha)
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InputError(f"the option alpha must be a number between 0 and 1, got {alpha!r}")
    compat = options.get("compat")
    if compat not in (None, "paper"):
        raise InputError(f"the option compat must be 'paper' or be left out, got {compat!r}")
    return OntoprobeOptions(
        templates=_read_names(options, "templates", PROMPT_KINDS, defaults.templates),
        reasoning=_read_names(options, "reasoning", combined, defaults.reasoning),
        losses=_read_names(options, "losses", LOSSES, defaults.losses),
        premises=None if premises is None else _check_count("premises", premises),
        pairs=_check_count("pairs", options.get("pairs", defaults.pairs)),
        alpha=float(alpha),
        instances=_check_count("instances", options.get("instances", defaults.instances)),
        compat=compat,
    )


def _read_names(options: dict[str, Any], key: str, known: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
    value = options.get(key)
    if value is None:
        return default
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names:
        raise InputError(f"the option {key} must list some of {', '.join(known)}, got {value!r}")
    for name in names:
        if name not in known:
            raise InputError(f"the option {key} cannot have {name!r}; {did_you_mean(str(name), known)}")
    return tuple(name for name in known if name in names)


def _check_count(key: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"the option {key} must be an integer ≥ 1, got {value!r}")
    return value
