from __future__ import annotations

from examined_runs import make_input

from merkhet.analysis.learning_curves import learning_curves
from merkhet.analysis.model_descriptions import ModelDescription, format_size


def record(task: str, *epochs: tuple[float, float | None], kept: int, learner: str = "cloze") -> dict[str, object]:
    points = [{"loss": loss, "dev_f1": score} for loss, score in epochs]
    return {"learner": learner, "model": "bert, tuned", "task": task, "epochs": points, "kept_epoch": kept}


def test_curves_and_kept_epochs_are_those_of_the_records():
    records = [
        record("completion", (3.0, 0.2), (2.0, 0.5), (1.0, 0.4), kept=2),
        record("checking", (0.7, None), (0.6, None), kept=2),
        record("distinction", (0.7, 0.1), kept=1, learner="soft"),
    ]
    found = learning_curves(make_input(training_records=records))
    assert found.tables[0].rows == (
        ("bert, tuned", "completion", 3, 3.0, 1.0, 0.2, 0.4, 0.5, 2),
        ("bert, tuned", "checking", 2, 0.7, 0.6, None, None, None, 2),
    )
    dev, loss = found.figures
    assert [(point["line"], point["x"], point["value"]) for point in dev.rows] == [
        ("completion", 1, 0.2),
        ("completion", 2, 0.5),
        ("completion", 3, 0.4),
    ]
    assert len(loss.rows) == 5 and {point["line"] for point in loss.rows} == {"completion", "checking"}
    assert learning_curves(make_input(training_records=records[2:])) is None


def test_sizes_are_written_as_in_papers():
    sizes = {999: "999", 66_955_010: "67M", 109_482_240: "109M", 11_683_584: "12M", 1_540_000_000: "1.5B"}
    sizes |= {999_499: "999,499", 999_500: "1M", 4_385_920: "4.4M", 9_960_000: "10M", 7_000_000_000: "7B"}
    assert {number: format_size(number) for number in sizes} == sizes
    assert ModelDescription(None, "Wikipedia").size is None
