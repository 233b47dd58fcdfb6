"""A finished run: its tables, read when they are asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from gnomon.foundation import InputError
from gnomon.foundation.tables import ANSWERS, SCORES, read_table
from gnomon.questions import QuestionSet, read_questions
from gnomon.runs.scoring import read_json
from gnomon.runs.study import Study, make_study, read_study


class Run:
    """A run's folder. ``run.scores.to_pandas()`` is the table of scores."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / "scores.parquet").is_file():
            unfinished = (folder / ".gnomon").is_dir()
            hint = "it is not finished: start the same command again" if unfinished else "'gnomon run' makes one"
            raise InputError(f"{folder} is no finished run; {hint}")

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @cached_property
    def scores(self) -> pa.Table:
        """The table of scores."""
        return read_table(SCORES, self.folder / "scores.parquet")

    @cached_property
    def answers(self) -> pa.Table:
        """The table of answers."""
        return read_table(ANSWERS, self.folder / "answers.parquet")

    @cached_property
    def questions(self) -> QuestionSet:
        """The questions with their candidates and facts."""
        return read_questions(self.folder)

    @cached_property
    def study(self) -> Study:
        """The study as it was resolved."""
        return make_study(read_study(self.folder / "study.yaml"), str(self.folder / "study.yaml"))

    @cached_property
    def record(self) -> dict[str, Any]:
        """How the run was made: versions, seeds, hashes, machine."""
        found: dict[str, Any] = read_json(self.folder / "run.json")
        return found

    @cached_property
    def findings(self) -> dict[str, Any]:
        """What the scores say in words, and the comparisons."""
        found: dict[str, Any] = read_json(self.folder / "findings.json")
        return found

    @cached_property
    def analyses(self) -> list[dict[str, Any]]:
        """What the suite's analyses found; none in a run of a suite without them."""
        file = self.folder / "analyses.json"
        found: list[dict[str, Any]] = read_json(file) if file.is_file() else []
        return found

    @cached_property
    def calibration(self) -> list[dict[str, Any]]:
        """The calibration cards of the run's probes; none in a run of an older version."""
        file = self.folder / "calibration.json"
        found: list[dict[str, Any]] = read_json(file) if file.is_file() else []
        return found

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.folder / "report.html"


def open_run(folder: str | Path) -> Run:
    """A finished run; refuses a folder that holds none."""
    return Run(Path(folder))
