"""Combined tables of several runs of one suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison import Condition
from merkhet.core.errors import InputError
from merkhet.engine.headline import HeadlinePlan, choose_headline
from merkhet.engine.run_folder import Run
from merkhet.engine.suite_card import HeadlineScore
from merkhet.metrics.metrics import Metric, get_metric, is_available_metric
from merkhet.questions.question_files import QuestionSet

_COMBINED_LISTS = ("citations", "origins")
"""Lists of a card that combined runs concatenate."""


@dataclass(frozen=True)
class RunCollection:
    """Runs of one suite, with unique names for their models."""

    runs: tuple[Run, ...]
    labels: tuple[str, ...]
    """Short name of each run."""
    repeated: frozenset[str]
    """Names of models that occur in more than one run."""

    def name(self, model: str, run_index: int) -> str:
        """Return the unique name of a run's model.

        The name includes the run's label if the model occurs in several runs.
        """
        return f"{model} ({self.labels[run_index]})" if model in self.repeated else model

    @cached_property
    def questions(self) -> QuestionSet:
        """The questions of all runs, without duplicates."""
        return QuestionSet(
            concat_distinct([run.questions.questions for run in self.runs], "question_id"),
            concat_distinct([run.questions.candidates for run in self.runs], "candidate_set"),
            premises=_concat_premises([run.questions.premises for run in self.runs]),
        )

    @cached_property
    def scores(self) -> pa.Table:
        """The scores of all runs, with unique model names."""
        parts = [self._rename_models(run.scores, run_index) for run_index, run in enumerate(self.runs)]
        return pa.concat_tables(parts, promote_options="default")

    @cached_property
    def answers(self) -> pa.Table:
        """The answers of all runs, with unique model names."""
        return pa.concat_tables(
            [self._rename_models(run.answers, run_index) for run_index, run in enumerate(self.runs)]
        )

    @cached_property
    def repeated_answers(self) -> list[pa.Table]:
        """The answers of trained models after each further training in any run, with unique model names."""
        parts = [
            [self._rename_models(table, run_index) for table in run.trainings]
            for run_index, run in enumerate(self.runs)
        ]
        return [pa.concat_tables([table for table in tables if table is not None]) for tables in zip_longest(*parts)]

    @property
    def trained(self) -> frozenset[str]:
        """The unique names of the models that the runs trained, and not only asked."""
        return frozenset(
            record["name"]
            for record in self.model_records
            if (record.get("trained") or "learned" in record) and record.get("kind") != "baseline"
        )

    @cached_property
    def model_records(self) -> list[dict[str, Any]]:
        """The records of all models, with unique model names."""
        return [
            {**model, "name": self.name(model["name"], run_index)}
            for run_index, run in enumerate(self.runs)
            for model in run.record.get("models", [])
        ]

    @property
    def baselines(self) -> frozenset[str]:
        """The unique names of the baselines."""
        return frozenset(record["name"] for record in self.model_records if record.get("kind") == "baseline")

    @cached_property
    def headline(self) -> list[dict[str, str]]:
        """Task and metric of each headline score of the runs, chosen anew from the scores of all runs."""
        entries = [HeadlineScore(**entry) for run in self.runs for entry in run.record["card"]["headline"]]
        order = list(dict.fromkeys(task for run in self.runs for task in run.record["card"].get("tasks", ())))
        entries.sort(key=lambda entry: order.index(entry.task) if entry.task in order else len(order))
        plan = HeadlinePlan(tuple(dict.fromkeys(entries)), baselines=tuple(sorted(self.baselines)))
        return [asdict(entry) for entry in choose_headline(plan, (), self.scores)]

    @property
    def metrics(self) -> list[tuple[str, Metric]]:
        """Task and loaded metric of each headline score, without metrics that are foreign code."""
        entries = [(entry["task"], entry["metric"]) for entry in self.headline]
        return [(task, get_metric(metric)) for task, metric in entries if is_available_metric(metric)]

    @property
    def card(self) -> dict[str, Any]:
        """The suite's card from the first run, with the headline scores and the questions' texts of all runs."""
        cards = [run.record["card"] for run in self.runs]
        first, *others = cards
        texts = {
            key: separator.join(dict.fromkeys(text for card in cards if (text := card[key])))
            for key, separator in (("title", "; "), ("about", "; "), ("methods", " "))
        }
        lists = {key: _distinct(item for card in cards for item in card.get(key, ())) for key in _COMBINED_LISTS}
        return {**first, **(texts | lists if others else {}), "headline": self.headline}

    @property
    def memorized(self) -> bool:
        """Whether models were trained to memorize facts in all runs."""
        return all(run.record["card"].get("experiment") for run in self.runs)

    @cached_property
    def conditions(self) -> dict[str, Condition]:
        """The training condition of each model that has one.

        Base models of different runs count as different models.
        """
        return {
            self.name(model["name"], run_index): Condition(f"{run_index} {model['base']}", **model["condition"])
            for run_index, run in enumerate(self.runs)
            for model in run.record.get("models", [])
            if "condition" in model
        }

    def pair_ids(self, question_ids: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Return the ids by which questions are paired across runs.

        Variants of a memorized statement have the same id; other questions keep their question ids.
        """
        return pc.replace_substring_regex(question_ids, "~.*", "") if self.memorized else question_ids

    def _rename_models(self, table: pa.Table, run_index: int) -> pa.Table:
        models = pc.unique(table["model"])
        names = pa.array([self.name(model, run_index) for model in models.to_pylist()], pa.string())
        renamed = (
            names.take(pc.index_in(table["model"], value_set=models).combine_chunks())
            if len(models)
            else table["model"]
        )
        return table.set_column(table.column_names.index("model"), "model", renamed)


def collect_runs(runs: Sequence[Run]) -> RunCollection:
    """Combine runs of one suite into a collection.

    Raises:
        InputError: The runs are of different suites, or the same folder is named twice.
    """
    labels = run_labels([run.folder for run in runs])
    by_suite: dict[str, list[str]] = {}
    for label, run in zip(labels, runs, strict=True):
        by_suite.setdefault(run.record["suite"], []).append(label)
    if len(by_suite) > 1:
        suites = "; ".join(f"{suite}: {', '.join(names)}" for suite, names in sorted(by_suite.items()))
        raise InputError(f"runs of different suites cannot be combined ({suites}); name runs of one suite")
    counts = Counter(model for run in runs for model in pc.unique(run.scores["model"]).to_pylist())
    return RunCollection(tuple(runs), labels, frozenset(name for name, count in counts.items() if count > 1))


def run_labels(folders: Sequence[Path]) -> tuple[str, ...]:
    """Label each run with its folder name, extended by parent folders until all labels are unique."""
    paths = [folder.resolve() for folder in folders]
    repeated = next((folder for index, folder in enumerate(folders) if paths[index] in paths[:index]), None)
    if repeated is not None:
        raise InputError(f"the run {repeated} is named twice; name each run once")
    labels = [path.name for path in paths]
    depth = 1
    while len(set(labels)) < len(labels):
        depth += 1
        labels = [
            "/".join(path.parts[-depth:]) if labels.count(label) > 1 else label
            for path, label in zip(paths, labels, strict=True)
        ]
    return tuple(labels)


def _concat_premises(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate the premises of several runs; those of a question are taken from the first run that has it."""
    first, *others = tables
    for table in others:
        is_known = pc.is_in(table["question_id"], first["question_id"].combine_chunks())
        first = pa.concat_tables([first, table.filter(pc.invert(is_known))])
    return first


def _distinct(items: Iterable[Any]) -> list[Any]:
    """Return the items without duplicates, in order; items may be unhashable."""
    distinct: list[Any] = []
    for item in items:
        distinct += [] if item in distinct else [item]
    return distinct


def concat_distinct(tables: Sequence[pa.Table], key: str) -> pa.Table:
    """Concatenate tables, and keep the first row for each value of the column ``key``."""
    combined = pa.concat_tables(tables)
    if len(tables) == 1:
        return combined
    first_rows: dict[str, int] = {}
    for row, identity in enumerate(combined[key].to_pylist()):
        first_rows.setdefault(identity, row)
    return combined.take(pa.array(sorted(first_rows.values()), pa.int64()))
