"""What was recalled, compared: models under the same condition, and conditions of the same model, on all they share."""

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
    """What the findings of a memorizing run are about."""

    headline: tuple[HeadlineScore, ...]
    seed: int
    trainings: int
    recalled: RecallParts


def write_recall_findings(context: StepContext[RecallFindingsParams, Nothing]) -> None:
    """Write findings.json: the comparisons, and in words what they and the analyses say."""
    params = context.params
    parts = [(context.folder, part) for part in params.recalled.parts]
    found = recall_findings(parts, params.headline, params.seed)
    analyses = read_json(context.folder / "analyses.json")
    found["sentences"] += [sentence for one in analyses for sentence in one["sentences"]]
    if params.trainings < 2:
        found["sentences"].append(ONE_TRAINING)
    write_json(context.folder / "findings.json", found)


def recall_findings(parts: Sequence[RunPart], headline: Sequence[HeadlineScore], seed: int) -> dict[str, Any]:
    """The findings of parts, each with the folder of its run: paired comparisons over all the statements they share.

    Two parts are compared where they are of one condition, or of one model and differ in one thing; the sentences are
    of the former, for the analyses tell of the latter.
    """
    readers = {folder: RecallReader(folder) for folder, _ in parts}
    found = []
    for entry in headline:
        own = [(folder, part) for folder, part in parts if part.task == entry.task]
        for first, second in combinations(own, 2):
            if _comparable(first, second):
                found += _compared(readers, first, second, entry.metric, seed)
    found = correct_comparisons(found)
    models = {part.model: part.condition for _, part in parts}
    said = describe_comparisons([one for one in found if models[one.model] == models[one.other]])
    return {"sentences": said, "comparisons": [asdict(one) for one in found], "unusable": []}


def _comparable(first: RunPart, second: RunPart) -> bool:
    one, other = first[1], second[1]
    # A model of another run is another model, whatever it is called.
    base = one.base if first[0] == second[0] else None
    return are_comparable(base, one.about, other.base, other.about)


def _compared(
    readers: Mapping[Path, RecallReader], first: RunPart, second: RunPart, metric: str, seed: int
) -> list[Comparison]:
    """The comparison of two parts, the better one first; none where they share too little to tell."""
    statements = readers[first[0]].statements(first[1].asked)
    others = readers[second[0]].statements(second[1].asked)
    if not statements.num_rows or not others.num_rows:
        return []
    recalls = [readers[folder].recalls(part, own) for (folder, part), own in ((first, statements), (second, others))]
    names, task = [first[1].model, second[1].model], first[1].task
    own_seed = derived_seed(seed, task, metric)
    result, count = paired_recall_difference(statements, recalls[0], recalls[1], metric, own_seed)
    if result.difference < 0:
        names.reverse()
        recalls.reverse()
        result, count = paired_recall_difference(statements, recalls[0], recalls[1], metric, own_seed)
    if not count or any(map(math.isnan, (result.difference, result.low, result.high, result.p))):
        return []
    details = paired_recall_details(statements, recalls[0], recalls[1], metric)
    return [Comparison(task, metric, names[0], names[1], **asdict(result), n=count, **asdict(details))]
