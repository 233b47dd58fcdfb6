"""Models of one or several runs compared: who knows more, by how much, on which questions, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.analysis.comparison_text import give_verdict, summarize_groups
from merkhet.analysis.difference_text import is_clear, orient_to
from merkhet.analysis.types import join_names, quote_name
from merkhet.core.errors import InputError, did_you_mean
from merkhet.engine._comparability import remarks, say_questions, shared_questions
from merkhet.engine._paired_answers import PairedAnswers
from merkhet.engine._paired_recalls import PairedRecalls
from merkhet.engine._run_collection import Together, put_together
from merkhet.engine.combine_runs import report_data, set_against
from merkhet.engine.run_folder import Run
from merkhet.engine.study import GROUPS
from merkhet.metrics.metrics import get_metric, is_metric
from merkhet.reports.comparison_page import ComparisonData

Pair = tuple[str, str]


@dataclass(frozen=True)
class ComparisonChoice:
    """What is compared: every pair of models, or all ``against`` one; these tasks and metrics; also ``by`` a column.

    Without tasks and metrics, those of the headline; baselines if they are wanted, or if there is one model only.
    """

    against: str | None = None
    tasks: Sequence[str] = ()
    metrics: Sequence[str] = ()
    by: str | None = None
    baselines: bool = False


EVERY_PAIR = ComparisonChoice()


class _Paired(Protocol):
    models: list[str]

    def compare(self, pairs: Sequence[Pair]) -> list[dict[str, Any]]: ...
    def compare_groups(self, pairs: Sequence[Pair], column: str) -> list[dict[str, Any]]: ...
    def reasons(self, pairs: Sequence[Pair], comparisons: Sequence[Mapping[str, Any]]) -> list[str]: ...
    def asked_by(self, pairs: Sequence[Pair]) -> dict[str, dict[str, tuple[str, str]]]: ...
    def asked_in(self, place: int) -> pa.Array: ...


def compare_runs(
    runs: Sequence[Run], choice: ComparisonChoice = EVERY_PAIR, downstream: Path | None = None
) -> ComparisonData:
    """Compare the models of runs of one suite on the questions that they share.

    Refuses runs of different suites, and a model, task, metric or column that none of them has. Where nothing can be
    compared, the result has no comparisons and says why.
    """
    together = put_together(runs)
    everyone = pc.unique(together.scores["model"]).to_pylist()
    if choice.against is not None and choice.against not in everyone:
        raise InputError(f"no run has the model {choice.against!r}; {did_you_mean(choice.against, everyone)}")
    able = [name for name in everyone if name not in together.baselines]
    alone = len(able) == 1 < len(everyone) and not choice.baselines
    models = everyone if choice.baselines or alone else [*able, *_named_too(choice.against, able)]
    headline, unknown = _headline(together, choice)
    paired = _paired(together, models, headline)
    with_all = choice.against or (able[0] if alone else None)
    pairs = _pairs(paired.models, with_all)
    comparisons = paired.compare(pairs)
    groups = paired.compare_groups(pairs, _column(choice.by, together)) if choice.by else []
    if choice.against is not None:
        comparisons = [_to_reference(one, choice.against) for one in comparisons]
    asked = [paired.asked_in(place) for place in range(len(runs))]
    shared = shared_questions(together, asked)
    verb = "recalls more" if together.memorized else "knows more"
    verb = verb if together.baselines.isdisjoint(paired.models) else "scores higher"
    verdict = give_verdict(comparisons, with_all, verb)
    side = {frozenset((one.model, one.other)): one.model for one in verdict.pairs}
    if choice.against is not None:
        side = {pair: next(name for name in pair if name != choice.against) for pair in side}
    groups = _sided(sorted(groups, key=lambda one: (not is_clear(one), -abs(one["difference"]))), side)
    said = list(verdict.sentences) if comparisons else [_nothing(together, paired.models, everyone, shared, asked)]
    if comparisons and alone:
        said.insert(0, f"Only one model answered, {quote_name(able[0])}: it is compared with the baselines.")
    return ComparisonData(
        data=report_data(together, {"comparisons": comparisons}),
        runs=[_about(together, place, len(asked[place])) for place in range(len(runs))],
        models=paired.models,
        reference=choice.against,
        verdict=said,
        order=verdict.order,
        pairs=[asdict(pair) for pair in verdict.pairs],
        comparisons=comparisons,
        oriented=_sided(comparisons, side),
        column=choice.by,
        groups=groups,
        group_sentences=summarize_groups(groups, choice.by) if choice.by and comparisons else [],
        shared=shared,
        question_remarks=say_questions(shared, "statements" if together.memorized else "questions"),
        remarks=[
            *unknown,
            *paired.reasons(pairs, comparisons),
            *remarks(together, set(paired.models), asked, paired.asked_by(pairs)),
        ],
        extrinsic=set_against(together, downstream) if downstream is not None else [],
    )


def _paired(together: Together, models: Sequence[str], headline: Sequence[tuple[str, str]]) -> _Paired:
    if together.memorized:
        return PairedRecalls(together, models, headline)
    return PairedAnswers(together, models, [(task, get_metric(metric, Path.cwd())) for task, metric in headline])


def _headline(together: Together, choice: ComparisonChoice) -> tuple[list[tuple[str, str]], list[str]]:
    """The tasks with their metrics that are compared, and a remark on what cannot be."""
    scored: dict[str, list[str]] = {}
    for row in (
        together.scores.select(["task", "metric"])
        .group_by(["task", "metric"], use_threads=False)
        .aggregate([])
        .to_pylist()
    ):
        scored.setdefault(row["task"], []).append(row["metric"])
    usual: dict[str, list[str]] = {}
    for entry in together.headline:
        usual.setdefault(entry["task"], []).append(entry["metric"])
    for task in choice.tasks:
        if task not in scored:
            raise InputError(f"no run has the task {task!r}; {did_you_mean(task, scored)}")
    for metric in choice.metrics:
        if not together.memorized:
            get_metric(metric, Path.cwd())
        elif not any(metric in own for own in scored.values()):
            known = {name for own in scored.values() for name in own}
            raise InputError(f"no run has the metric {metric!r}; {did_you_mean(metric, known)}")
    tasks = choice.tasks or [task for task in usual if task in scored] or list(scored)
    wanted = [(task, metric) for task in tasks for metric in choice.metrics or usual.get(task) or scored[task][:1]]
    own = [one for one in wanted if choice.metrics or together.memorized or is_metric(one[1])]
    strange = sorted({metric for _, metric in wanted} - {metric for _, metric in own})
    said = [
        f"The metric {metric} is not merkhet's own, so models are not compared by it; name its file with --metric "
        f"FILE.py:{metric}."
        for metric in strange
    ]
    return own, said


def _pairs(models: Sequence[str], reference: str | None) -> list[Pair]:
    if reference is None:
        return list(combinations(models, 2))
    return [(model, reference) for model in models if model != reference]


def _named_too(reference: str | None, models: Sequence[str]) -> list[str]:
    return [] if reference is None or reference in models else [reference]


def _column(column: str, together: Together) -> str:
    if column not in GROUPS and not together.memorized:
        raise InputError(f"models cannot be compared by {column!r}; {did_you_mean(column, GROUPS)}")
    return column


def _to_reference(one: Mapping[str, Any], reference: str) -> dict[str, Any]:
    """A comparison told from the side of the model that is not the reference."""
    return orient_to(one, one["other"] if one["model"] == reference else one["model"])


def _sided(comparisons: Sequence[Mapping[str, Any]], side: Mapping[frozenset[str], str]) -> list[dict[str, Any]]:
    """Comparisons told from the same model's side in each pair."""
    pairs = (frozenset((one["model"], one["other"])) for one in comparisons)
    return [orient_to(one, side.get(pair, one["model"])) for one, pair in zip(comparisons, pairs, strict=True)]


def _nothing(
    together: Together,
    models: Sequence[str],
    everyone: Sequence[str],
    shared: Sequence[Mapping[str, Any]],
    asked: Sequence[pa.Array],
) -> str:
    """Why nothing was compared, and what to do."""
    if not sum(map(len, asked)) or not everyone:
        return (
            "There is nothing to compare: no question of these tasks was answered in "
            + join_names(together.labels)
            + "."
        )
    if len(models) < 2:
        who = f"only one model, {quote_name(models[0])}," if models else "only baselines"
        there = [name for name in everyone if name not in models]
        hint = f" --baselines compares with {join_names(list(map(quote_name, there)))} too." if there else ""
        more = "Name a second run of the same questions." if len(together.runs) == 1 else "Name a run of another model."
        return f"There is nothing to compare: {who} answered in {join_names(together.labels)}. {more}{hint}"
    if shared and not any(one["both"] for one in shared):
        return (
            "The runs share no question, so nothing can be compared in pairs. Their scores stand side by side below, "
            "without differences or p: they are of different questions. Ask both models the same ones ('merkhet "
            "build', then 'merkhet run --data')."
        )
    return "No two models have questions about two facts or more in common, so nothing can be compared in pairs."


def _about(together: Together, place: int, asked: int) -> dict[str, Any]:
    run = together.runs[place]
    record = run.record
    return {
        "name": together.labels[place],
        "folder": str(run.folder),
        "date": record.get("date"),
        "merkhet": record.get("merkhet"),
        "seed": record.get("seed"),
        "command": record.get("command"),
        "questions": asked,
    }
