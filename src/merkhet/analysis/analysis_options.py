"""Study options of the analyses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, Field

from merkhet.analysis.option_models import Listed, Options, StudyPath, Unique
from merkhet.core.registry import load_part
from merkhet.core.settings import Expected


@dataclass(frozen=True)
class ReadBy:
    """Annotation of an option: the analysis that reads it, and a function for its cache key."""

    analysis: str
    identity: str | None = None
    """Reference ``module:function`` of the function; None uses the value itself as the cache key.

    The function receives the value, the study folder and the names of the models. It raises InputError, before any
    model is asked, if the analysis cannot use the value.
    """


def _increasing(edges: tuple[int, ...]) -> tuple[int, ...]:
    if any(first >= second for first, second in pairwise(edges)):
        raise ValueError
    return edges


EDGES = (16, 32, 48, 64, 96, 128)
"""Default edges of the text-length buckets, in characters."""


class LengthOptions(Options):
    """Tasks and bucket edges of the analysis of text lengths."""

    tasks: Annotated[tuple[str, ...], Listed, Unique] = ("encyclopedia",)
    edges: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...],
        Listed,
        AfterValidator(_increasing),
        Expected("a list of increasing integers ≥ 1"),
    ] = Field(default=EDGES, min_length=1)


class AnalysisOptions(Options):
    """Options of the analyses, available in every suite."""

    pairs: Annotated[
        tuple[Annotated[tuple[str, str], Listed], ...] | None,
        Listed,
        Expected("a list [[model, smaller version], …]"),
        ReadBy("compression", "merkhet.analysis.compression:check_pairs"),
    ] = Field(
        default=None, description="[[model, smaller version], …]; without it, models whose names differ by distil-"
    )
    corpus: Annotated[StudyPath | None, ReadBy("cooccurrence", "merkhet.analysis._corpus_index:corpus_identity")] = (
        Field(
            default=None,
            description="a folder of .txt files or Wikipedia extracts (.jsonl with 'text' and 'title'), compressed "
            "or not, or one such file",
        )
    )
    lengths: Annotated[LengthOptions, ReadBy("lengths")] = Field(
        default=LengthOptions(),
        description="{tasks: [encyclopedia], edges: [16, 32, 64]}: the tasks, and where buckets of characters begin",
    )
    downstream: Annotated[
        StudyPath | None, ReadBy("extrinsic", "merkhet.analysis._downstream_scores:downstream_identity")
    ] = Field(
        default=None,
        description="a CSV file of scores on other tasks: model,task,score, or model and a column for each task",
    )

    def at(self, home: Path) -> AnalysisOptions:
        """Return the options with all paths resolved against the folder ``home``."""
        paths = {name: home / value for name, value in self if isinstance(value, Path)}
        return self.model_copy(update=paths)


def available_options(analyses: Sequence[str]) -> dict[str, ReadBy]:
    """Return the options of ``analyses`` by name."""
    entries = {
        name: next(entry for entry in field.metadata if isinstance(entry, ReadBy))
        for name, field in AnalysisOptions.model_fields.items()
    }
    return {name: entry for name, entry in entries.items() if entry.analysis in analyses}


def reads_files(analysis: str) -> bool:
    """Return whether an analysis has an option that names a file or a folder."""
    return any(
        StudyPath in get_args(AnalysisOptions.model_fields[name].annotation) for name in available_options([analysis])
    )


def select_options(options: Mapping[str, Any], analyses: Sequence[str]) -> dict[str, Any]:
    """Select the options of ``analyses`` from the options of a study."""
    return {name: options[name] for name in available_options(analyses) if options.get(name) is not None}


def option_identities(
    options: Mapping[str, Any], analyses: Sequence[str], home: Path, models: Sequence[str]
) -> dict[str, Any]:
    """Return the cache-key value of each option that ``analyses`` read.

    Args:
        home: Folder of the study.
        models: Names of the study's models.

    Raises:
        InputError: An analysis cannot use the value of an option.
    """
    known = available_options(analyses)
    return {
        name: load_part(identity)(value, home, models) if (identity := known[name].identity) else value
        for name, value in select_options(options, analyses).items()
    }
