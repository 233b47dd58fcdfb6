"""Base classes of suite options, and validation of a study's options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import Field

from merkhet.analysis.analysis_options import AnalysisOptions, available_options, select_options
from merkhet.analysis.option_models import Options, named_fields, validate
from merkhet.core.errors import FaultList, did_you_mean, located
from merkhet.core.files import path_exists

if TYPE_CHECKING:
    from merkhet.engine.study import Study

OptionsType = TypeVar("OptionsType", bound="SuiteOptions")


class SuiteOptions(Options):
    """Base class of the options of suites. Each field has a description; suites without options use this class."""

    @classmethod
    def of(cls: type[OptionsType], study: Study) -> OptionsType:
        """Validate the suite's options in a study; options of analyses are ignored.

        Raises:
            InputError: A value is invalid.
        """
        known = cls.names()
        return validate(cls, {key: value for key, value in study.options.items() if key in known}, "options")

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the options as users write them."""
        return list(named_fields(cls))

    def paths(self) -> dict[str, Path]:
        """Return the option values that are paths, by option name.

        Several paths of one option are named ``name.0``, ``name.1`` and so on.
        """
        paths: dict[str, Path] = {}
        for name, value in self:
            values = value if isinstance(value, tuple) else (value,)
            key = type(self).model_fields[name].alias or name
            paths |= {
                f"{key}.{number}" if len(values) > 1 else key: entry
                for number, entry in enumerate(values)
                if isinstance(entry, Path)
            }
        return paths


class SplitOptions(SuiteOptions):
    """Options of suites whose questions have splits."""

    split: str | None = Field(None, description="split whose questions are asked (test)")
    leaks: bool = Field(
        False,
        description="true: accept training data whose splits share facts or prompts; by default such data are refused",
    )

    @property
    def asks_premises(self) -> bool:
        """Whether a limited run also asks the questions for the premises of drawn conclusions."""
        return False

    @property
    def allows_leaks(self) -> bool:
        """Whether splits of the study's data may share facts or prompts."""
        return self.leaks


def check_options(
    options: type[SuiteOptions], suite: str, analyses: Sequence[str], study: Study, home: Path, where: str
) -> None:
    """Check the options of a study, which belong to its suite or to the suite's analyses.

    Args:
        options: Options class of the suite.
        suite: Name of the suite, for error messages.
        where: Origin of the study, for error messages.

    Raises:
        InputError: An option is unknown or invalid, or names a missing file.
    """
    suite_names = options.names()
    known = [*suite_names, *available_options(analyses)]
    with located(where):
        faults = FaultList()
        for key in study.options:
            if key not in known:
                faults.add(f"{suite} has no option {key!r}; {did_you_mean(str(key), known)}")
        with faults.collect():
            for name, path in options.of(study).paths().items():
                if not path_exists(home / path):
                    faults.add(f"there is no file or folder {home / path} (options.{name}); correct the path")
        with faults.collect():
            chosen = select_options(study.options, analyses)
            validate(AnalysisOptions, {key: chosen[key] for key in chosen if key not in suite_names}, "options")
        faults.refuse()
