"""What a study may say about its analyses, under ``options``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merkhet.core.registry import load_part


@dataclass(frozen=True)
class Option:
    """An option of an analysis.

    ``identity`` names a function of the option's value, the study's folder and the names of its models: it refuses
    what the analysis could not use, before anything is asked, and gives what a cache key holds of the value. ``path``
    says that the value is a place relative to the study's folder.
    """

    analysis: str
    about: str
    identity: str
    path: bool = False


OPTIONS = {
    "pairs": Option(
        "compression",
        "[[model, smaller version], …]; without it, models whose names differ by distil-",
        "merkhet.analysis.compression:checked_pairs",
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
        "merkhet.analysis.text_length:checked_lengths",
    ),
    "downstream": Option(
        "extrinsic",
        "a CSV file of scores on other tasks: model,task,score, or model and a column for each task",
        "merkhet.analysis._downstream_scores:downstream_identity",
        path=True,
    ),
}


def options_of(analyses: Sequence[str]) -> dict[str, Option]:
    """The options that a study with these analyses may have."""
    return {name: option for name, option in OPTIONS.items() if option.analysis in analyses}


def identities(
    options: Mapping[str, Any], analyses: Sequence[str], home: Path, models: Sequence[str]
) -> dict[str, Any]:
    """What a cache key holds of the options of these analyses; refuses a value that an analysis could not use."""
    return {
        name: load_part(option.identity)(options[name], home, models)
        for name, option in options_of(analyses).items()
        if options.get(name) is not None
    }


def opened(options: Mapping[str, Any], analyses: Sequence[str], home: Path) -> dict[str, Any]:
    """The options of these analyses as an analysis gets them: paths from where the process stands."""
    return {
        name: str(home / str(options[name])) if option.path else options[name]
        for name, option in options_of(analyses).items()
        if options.get(name) is not None
    }
