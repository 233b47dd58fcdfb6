"""A finished run: its tables, read when they are asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from merkhet.core.errors import InputError
from merkhet.core.files import file_digest
from merkhet.core.schemas import ANSWERS, SCORES, read_table
from merkhet.engine.executor import INTERNAL
from merkhet.engine.run_files import SHARD_FILE, read_json
from merkhet.engine.study import Study, make_study, read_study
from merkhet.questions.question_files import QuestionSet, read_questions

_READ = ("questions", "candidates", "facts", "frequencies", "entities", "premises")


class Run:
    """A run's folder. ``run.scores.to_pandas()`` is the table of scores."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / "scores.parquet").is_file():
            unfinished = (folder / ".merkhet").is_dir()
            hint = "it is not finished: start the same command again" if unfinished else "'merkhet run' makes one"
            if (folder / SHARD_FILE).is_file():
                hint = "it is a shard of one: put all shards together with 'merkhet merge'"
            raise InputError(f"{folder} is no finished run; {hint}")

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    def whole(self, name: str) -> Path:
        """A file of the run; refuses one that is no longer what the run has written, as after a power cut."""
        file = self.folder / name
        written = self._written.get(name)
        if written and file.is_file() and file_digest(file) not in written:
            raise InputError(
                f"{file} is damaged, or was changed after the run: it is not what the run has written. Start the "
                "command that made the run again: it makes this file anew."
            )
        return file

    @cached_property
    def _written(self) -> dict[str, set[str]]:
        """The hashes of what the run's steps have written; none in a folder without their records."""
        found: dict[str, set[str]] = {}
        for file in sorted((self.folder / INTERNAL / "steps").glob("*.json")):
            for name, content in read_json(file).get("outputs", {}).items():
                found.setdefault(name, set()).add(content)
        return found

    @cached_property
    def scores(self) -> pa.Table:
        """The table of scores."""
        return read_table(SCORES, self.whole("scores.parquet"))

    @cached_property
    def answers(self) -> pa.Table:
        """The table of answers."""
        return read_table(ANSWERS, self.whole("answers.parquet"))

    @cached_property
    def questions(self) -> QuestionSet:
        """The questions with their candidates and facts."""
        for name in (*(f"{table}.parquet" for table in _READ), "about.json"):
            self.whole(name)
        return read_questions(self.folder)

    @cached_property
    def study(self) -> Study:
        """The study as it was resolved."""
        return make_study(read_study(self.whole("study.yaml")), str(self.folder / "study.yaml"))

    @cached_property
    def record(self) -> dict[str, Any]:
        """How the run was made: versions, seeds, hashes, machine."""
        found: dict[str, Any] = read_json(self.whole("run.json"))
        return found

    @cached_property
    def findings(self) -> dict[str, Any]:
        """What the scores say in words, and the comparisons."""
        found: dict[str, Any] = read_json(self.whole("findings.json"))
        return found

    @cached_property
    def analyses(self) -> list[dict[str, Any]]:
        """What the suite's analyses found; none in a run of a suite without them."""
        file = self.whole("analyses.json")
        found: list[dict[str, Any]] = read_json(file) if file.is_file() else []
        return found

    @cached_property
    def calibration(self) -> list[dict[str, Any]]:
        """The calibration cards of the run's probes; none in a run of an older version."""
        file = self.whole("calibration.json")
        found: list[dict[str, Any]] = read_json(file) if file.is_file() else []
        return found

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.folder / "report.html"


def open_run(folder: str | Path) -> Run:
    """A finished run; refuses a folder that holds none."""
    return Run(Path(folder))
