"""Findings of a memorizing run: comparisons of models under one condition, and of conditions of one model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.analysis.findings import describe_comparisons
from merkhet.analysis.memory_types import are_comparable
from merkhet.core.files import write_json
from merkhet.core.ids import derived_seed
from merkhet.engine.memorize_steps import RecallPart, RecallParts, RecallReader
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.run_files import read_json
from merkhet.engine.suite_card import HeadlineScore
from merkhet.metrics.recall_scores import paired_recall_details, paired_recall_difference

RunPart = tuple[Path, RecallPart]
"""A part with the folder of its run."""

ONE_TRAINING = (
    "Every model was trained once: intervals and p-values are about these trainings, and another seed may give other "
    "differences (options.trainings trains several times)."
)


@dataclass(frozen=True)
class RecallFindingsParams:
    """Parameters of the findings of a memorizing run."""

    headline: tuple[HeadlineScore, ...]
    seed: int
    trainings: int
    recalled: RecallParts


def write_recall_findings(context: StepContext[RecallFindingsParams, Nothing]) -> None:
    """Write findings.json: the comparisons, and the sentences of the comparisons and analyses."""
    params = context.params
    parts = [(context.folder, part) for part in params.recalled.parts]
    findings = recall_findings(parts, params.headline, params.seed)
    analyses = read_json(context.folder / "analyses.json")
    findings["sentences"] += [sentence for analysis in analyses for sentence in analysis["sentences"]]
    if params.trainings < 2:
        findings["sentences"].append(ONE_TRAINING)
    write_json(context.folder / "findings.json", findings)


def recall_findings(parts: Sequence[RunPart], headline: Sequence[HeadlineScore], seed: int) -> dict[str, Any]:
    """Compare parts in pairs over all the statements that they share.

    Two parts are compared if they have the same condition, or the same model and conditions that differ in one
    setting. The sentences are about the former; the analyses describe the latter.

    Args:
        parts: Parts, each with the folder of its run.
        headline: Tasks and metrics to compare.
        seed: Seed of the paired tests.
    """
    readers = {folder: RecallReader(folder) for folder, _ in parts}
    comparisons = []
    for entry in headline:
        task_parts = [(folder, part) for folder, part in parts if part.task == entry.task]
        for first, second in combinations(task_parts, 2):
            if _are_comparable(first, second):
                comparisons += _compare_parts(readers, first, second, entry.metric, seed)
    comparisons = correct_comparisons(comparisons)
    conditions = {part.model: part.condition for _, part in parts}
    sentences = describe_comparisons(
        [comparison for comparison in comparisons if conditions[comparison.model] == conditions[comparison.other]]
    )
    return {"sentences": sentences, "comparisons": [asdict(comparison) for comparison in comparisons], "unusable": []}


def _are_comparable(first: RunPart, second: RunPart) -> bool:
    part, other_part = first[1], second[1]
    # A model of another run is another model, whatever it is called.
    base = part.base if first[0] == second[0] else None
    return are_comparable(base, part.about, other_part.base, other_part.about)


def _compare_parts(
    readers: Mapping[Path, RecallReader], first: RunPart, second: RunPart, metric: str, seed: int
) -> list[Comparison]:
    """Compare two parts, the better one first; return nothing if they share too few statements."""
    statements = readers[first[0]].statements(first[1].asked)
    other_statements = readers[second[0]].statements(second[1].asked)
    if not statements.num_rows or not other_statements.num_rows:
        return []
    recalls = [
        readers[folder].recalls(part, part_statements)
        for (folder, part), part_statements in ((first, statements), (second, other_statements))
    ]
    names, task = [first[1].model, second[1].model], first[1].task
    test_seed = derived_seed(seed, task, metric)
    result, count = paired_recall_difference(statements, recalls[0], recalls[1], metric, test_seed)
    if result.difference < 0:
        names.reverse()
        recalls.reverse()
        result, count = paired_recall_difference(statements, recalls[0], recalls[1], metric, test_seed)
    if not count or any(map(math.isnan, (result.difference, result.low, result.high, result.p))):
        return []
    details = paired_recall_details(statements, recalls[0], recalls[1], metric)
    return [Comparison(task, metric, names[0], names[1], **asdict(result), n=count, **asdict(details))]
