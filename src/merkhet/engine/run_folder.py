"""Access to the tables and records of a finished run."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from merkhet.core.errors import InputError
from merkhet.core.files import file_digest
from merkhet.core.schemas import ANSWERS, SCORES, TRAININGS, read_table
from merkhet.engine.executor import INTERNAL
from merkhet.engine.run_files import CONTROL_SCORES, QUESTION_TABLES, SHARD_FILE, TRAININGS_FILE, read_json
from merkhet.engine.study import Study, make_study, read_study
from merkhet.engine.training_answers import split_trainings
from merkhet.questions.question_files import QuestionSet, read_questions


class Run:
    """A finished run. Its files are read on first access; ``run.scores.to_pandas()`` returns the scores."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / "scores.parquet").is_file():
            unfinished = (folder / ".merkhet").is_dir()
            hint = "start the same command again to finish it" if unfinished else "'merkhet run' makes one"
            if (folder / SHARD_FILE).is_file():
                hint = "it is a shard: merge all shards with 'merkhet merge'"
            raise InputError(f"{folder} is not a finished run; {hint}")

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    def verified_file(self, name: str) -> Path:
        """Return the path of the file ``name`` in the run's folder after checking its hash.

        Raises:
            InputError: The file was changed or damaged after the run wrote it.
        """
        file = self.folder / name
        hashes = self._output_hashes.get(name)
        if hashes and file.is_file() and file_digest(file) not in hashes:
            raise InputError(
                f"{file} is damaged or was changed after the run; repeat the command of the run to restore the file"
            )
        return file

    @cached_property
    def _output_hashes(self) -> dict[str, set[str]]:
        """Recorded hashes of each output file of the run's steps; empty if the folder has no records of steps."""
        hashes: dict[str, set[str]] = {}
        for file in sorted((self.folder / INTERNAL / "steps").glob("*.json")):
            for name, content in read_json(file).get("outputs", {}).items():
                hashes.setdefault(name, set()).add(content)
        return hashes

    @cached_property
    def scores(self) -> pa.Table:
        """The table of scores."""
        return read_table(SCORES, self.verified_file("scores.parquet"))

    @cached_property
    def answers(self) -> pa.Table:
        """The table of answers."""
        return read_table(ANSWERS, self.verified_file("answers.parquet"))

    @cached_property
    def trainings(self) -> list[pa.Table]:
        """Answers of trained models after each further training; empty if every model was trained at most once."""
        file = self.verified_file(TRAININGS_FILE)
        return split_trainings(read_table(TRAININGS, file)) if file.is_file() else []

    @cached_property
    def questions(self) -> QuestionSet:
        """The questions of the run, with their candidates and facts."""
        for name in QUESTION_TABLES:
            self.verified_file(name)
        return read_questions(self.folder)

    @cached_property
    def study(self) -> Study:
        """The resolved study of the run."""
        return make_study(read_study(self.verified_file("study.yaml")), str(self.folder / "study.yaml"))

    @cached_property
    def record(self) -> dict[str, Any]:
        """The content of run.json: versions, seed, hashes and machine."""
        return dict(read_json(self.verified_file("run.json")))

    @cached_property
    def findings(self) -> dict[str, Any]:
        """Sentences about the scores, and comparisons of the models."""
        return dict(read_json(self.verified_file("findings.json")))

    @cached_property
    def analyses(self) -> list[dict[str, Any]]:
        """Results of the suite's analyses; empty for a suite without analyses."""
        return self._read_list("analyses.json")

    @cached_property
    def calibration(self) -> list[dict[str, Any]]:
        """Calibration cards of the run's probes; empty for a run of an older version."""
        return self._read_list("calibration.json")

    @cached_property
    def control_scores(self) -> list[dict[str, Any]]:
        """Scores of the models' controls; empty for a run without controls."""
        file = self.verified_file(CONTROL_SCORES)
        return list(read_json(file)["scores"]) if file.is_file() else []

    def _read_list(self, name: str) -> list[dict[str, Any]]:
        file = self.verified_file(name)
        return list(read_json(file)) if file.is_file() else []

    @property
    def report(self) -> Path:
        """Path of the HTML report."""
        return self.folder / "report.html"


def open_run(folder: str | Path) -> Run:
    """Open a finished run.

    Raises:
        InputError: The folder does not contain a finished run.
    """
    return Run(Path(folder))
