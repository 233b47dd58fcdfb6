"""Tables of several runs put together: models told apart, questions once, all of the same suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.errors import InputError
from merkhet.engine.run_folder import Run
from merkhet.metrics.metrics import Metric, get_metric, is_metric
from merkhet.questions.question_files import QuestionSet


@dataclass(frozen=True)
class Together:
    """Runs as one. ``labels`` name each run shortly, ``repeated`` are the models that are in more than one."""

    runs: tuple[Run, ...]
    labels: tuple[str, ...]
    repeated: frozenset[str]

    def name(self, model: str, place: int) -> str:
        """How a model of the run at this place is called: with the run's name where several runs have it."""
        return f"{model} ({self.labels[place]})" if model in self.repeated else model

    @cached_property
    def asked(self) -> QuestionSet:
        """The questions of all runs, each once."""
        return QuestionSet(
            distinct([run.questions.questions for run in self.runs], "question_id"),
            distinct([run.questions.candidates for run in self.runs], "candidate_set"),
        )

    @cached_property
    def scores(self) -> pa.Table:
        """The scores of all runs."""
        parts = [self._named(run.scores, place) for place, run in enumerate(self.runs)]
        return pa.concat_tables(parts, promote_options="default")

    @cached_property
    def answers(self) -> pa.Table:
        """The answers of all runs."""
        return pa.concat_tables([self._named(run.answers, place) for place, run in enumerate(self.runs)])

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """What is known of every model, under the name that it has here."""
        return [
            {**model, "name": self.name(model["name"], place)}
            for place, run in enumerate(self.runs)
            for model in run.record.get("models", [])
        ]

    @property
    def baselines(self) -> frozenset[str]:
        """The names of the baselines."""
        return frozenset(record["name"] for record in self.records if record.get("kind") == "baseline")

    @property
    def headline(self) -> list[dict[str, str]]:
        """Tasks with their metrics, as any of the runs has them."""
        entries = [(entry["task"], entry["metric"]) for run in self.runs for entry in run.record["card"]["headline"]]
        return [{"task": task, "metric": metric} for task, metric in dict.fromkeys(entries)]

    @property
    def metrics(self) -> list[tuple[str, Metric]]:
        """The same as functions; what is no metric of merkhet is left out."""
        return [(one["task"], get_metric(one["metric"])) for one in self.headline if is_metric(one["metric"])]

    @property
    def card(self) -> dict[str, Any]:
        """The suite's card, with the headline of all."""
        return {**self.runs[0].record["card"], "headline": self.headline}

    @property
    def memorized(self) -> bool:
        """Whether the models of all runs stored what they were asked."""
        return all("recalls" in run.record for run in self.runs)

    def _named(self, table: pa.Table, place: int) -> pa.Table:
        own = pc.unique(table["model"])
        names = pa.array([self.name(model, place) for model in own.to_pylist()], pa.string())
        renamed = (
            names.take(pc.index_in(table["model"], value_set=own).combine_chunks()) if len(own) else table["model"]
        )
        return table.set_column(table.column_names.index("model"), "model", renamed)


def put_together(runs: Sequence[Run]) -> Together:
    """Runs of one suite as one; refuses those of several suites, and a run that is named twice."""
    labels = run_labels([run.folder for run in runs])
    by_suite: dict[str, list[str]] = {}
    for label, run in zip(labels, runs, strict=True):
        by_suite.setdefault(run.record["suite"], []).append(label)
    if len(by_suite) > 1:
        named = "; ".join(f"{suite}: {', '.join(own)}" for suite, own in sorted(by_suite.items()))
        raise InputError(f"runs of different suites cannot be put together ({named}); name runs of one suite")
    there = [pc.unique(run.scores["model"]).to_pylist() for run in runs]
    counts = Counter(model for models in there for model in models)
    return Together(tuple(runs), labels, frozenset(name for name, count in counts.items() if count > 1))


def run_labels(folders: Sequence[Path]) -> tuple[str, ...]:
    """A short name for each run's folder: its last part, or as many parts as tell them apart."""
    whole = [folder.resolve() for folder in folders]
    twice = next((folder for place, folder in enumerate(folders) if whole[place] in whole[:place]), None)
    if twice is not None:
        raise InputError(f"the run {twice} is named twice; name each run once")
    labels = [folder.name for folder in whole]
    depth = 1
    while len(set(labels)) < len(labels):
        depth += 1
        labels = [
            "/".join(folder.parts[-depth:]) if labels.count(label) > 1 else label
            for folder, label in zip(whole, labels, strict=True)
        ]
    return tuple(labels)


def distinct(tables: Sequence[pa.Table], key: str) -> pa.Table:
    """The rows of all tables, the first of each key."""
    together = pa.concat_tables(tables)
    if len(tables) == 1:
        return together
    first: dict[str, int] = {}
    for row, identity in enumerate(together[key].to_pylist()):
        first.setdefault(identity, row)
    return together.take(pa.array(sorted(first.values()), pa.int64()))
