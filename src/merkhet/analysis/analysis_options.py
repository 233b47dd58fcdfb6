"""Study options of the analyses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core.registry import load_part


@dataclass(frozen=True)
class Option:
    """An option of an analysis."""

    analysis: str
    """The analysis that reads the option."""
    about: str
    """Help text."""
    identity: str
    """``module:function`` of (value, study folder, names of the models).

    It raises InputError for a value that the analysis cannot use, before any model is asked, and returns what the cache
    key contains for the value.
    """
    path: bool = False
    """Whether the value is a path relative to the study's folder."""


OPTIONS = {
    "pairs": Option(
        "compression",
        "[[model, smaller version], …]; without it, models whose names differ by distil-",
        "merkhet.analysis.compression:check_pairs",
    ),
    "corpus": Option(
        "cooccurrence",
        "a folder of .txt files or Wikipedia extracts (.jsonl, .jsonl.gz with 'text' and 'title'), or one such file",
        "merkhet.analysis._corpus_index:corpus_identity",
        path=True,
    ),
    "lengths": Option(
        "lengths",
        "{tasks: [encyclopedia], edges: [16, 32, 64]}: the tasks, and where buckets of characters begin",
        "merkhet.analysis.text_length:check_lengths",
    ),
    "downstream": Option(
        "extrinsic",
        "a CSV file of scores on other tasks: model,task,score, or model and a column for each task",
        "merkhet.analysis._downstream_scores:downstream_identity",
        path=True,
    ),
}


def available_options(analyses: Sequence[str]) -> dict[str, Option]:
    """List the options of these analyses."""
    return {name: option for name, option in OPTIONS.items() if option.analysis in analyses}


def option_identities(
    options: Mapping[str, Any], analyses: Sequence[str], home: Path, models: Sequence[str]
) -> dict[str, Any]:
    """Return what the options of the analyses contribute to the cache key.

    Args:
        home: The study's folder.
        models: Names of the study's models.

    Raises:
        InputError: An analysis cannot use a value.
    """
    return {
        name: load_part(option.identity)(options[name], home, models)
        for name, option in available_options(analyses).items()
        if options.get(name) is not None
    }


def resolve_option_paths(options: Mapping[str, Any], analyses: Sequence[str], home: Path) -> dict[str, Any]:
    """Select the options of these analyses, with paths relative to the working directory instead of ``home``."""
    return {
        name: str(home / str(options[name])) if option.path else options[name]
        for name, option in available_options(analyses).items()
        if options.get(name) is not None
    }
