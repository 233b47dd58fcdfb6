"""Options of the quickstart suite."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from merkhet.analysis.option_models import StudyPath
from merkhet.engine.suite_options import SuiteOptions


class QuickstartOptions(SuiteOptions):
    """Options of a quickstart study."""

    choices: int = Field(10, ge=2, description="number of candidates of a completion question")
    evidence: Literal["declared", "assumed"] | None = Field(
        None,
        description="evidence that wrong options are wrong: declared or assumed (declared, or assumed if no relation "
        "declares any)",
    )
    templates: StudyPath | None = Field(None, description="a YAML file with your own templates")
