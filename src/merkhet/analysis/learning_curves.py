"""Learning curves of cloze tuning: loss and dev score by epoch, and the epoch whose weights are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from merkhet.analysis.types import Analysis, AnalysisInput, Figure, Table, TableRow, make_columns

_SCORE = "dev_f1"
_EXPLANATION = (
    "Each model is tuned on the training questions of one question type at a time. After every epoch it writes the "
    "answers to the dev questions. The weights of the epoch with the best word F1 are kept; without dev questions, "
    "those of the last epoch. Epochs are counted from 1."
)
_COLUMNS = make_columns(
    *("Model", "Task", "epochs:count", "loss at first:number", "loss at last:number"),
    *("F1 on dev at first:share", "at last:share", "best:share", "epoch kept:count"),
)


def learning_curves(inputs: AnalysisInput) -> Analysis | None:
    """Chart the tuning of each model and task, and tabulate the kept epochs; None if no model was tuned on clozes.

    Of several trainings with different seeds, the first is shown.
    """
    records = [record for record in inputs.training_records if record.get("learner") == "cloze"]
    if not records:
        return None
    caption = "Cloze tuning" + (", first training of each model and task." if inputs.repeated_answers else ".")
    return Analysis(
        "learning",
        "Tuning: learning curves and kept epochs",
        _EXPLANATION,
        (Table(caption, _COLUMNS, tuple(map(_row, records))),),
        tuple(_figures(records)),
    )


def _row(record: Mapping[str, Any]) -> TableRow:
    epochs = list(record.get("epochs") or ())
    losses, scores = (
        [epoch[column] for epoch in epochs if epoch.get(column) is not None] for column in ("loss", _SCORE)
    )
    ends = [(values[0], values[-1]) if values else (None, None) for values in (losses, scores)]
    head = (record["model"], record["task"], len(epochs))
    return (*head, *ends[0], *ends[1], max(scores, default=None), record.get("kept_epoch"))


def _figures(records: Sequence[Mapping[str, Any]]) -> Iterator[Figure]:
    for model in dict.fromkeys(record["model"] for record in records):
        for column, title, share in ((_SCORE, "F1 on the dev questions", True), ("loss", "training loss", False)):
            points = tuple(
                {"x": number, "line": record["task"], "value": epoch[column]}
                for record in records
                if record["model"] == model
                for number, epoch in enumerate(record.get("epochs") or (), 1)
                if epoch.get(column) is not None
            )
            if points:
                yield Figure("lines", f"{model}: {title} by epoch", points, "epoch", percent=share, y=title)
