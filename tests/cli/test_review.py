"""``merkhet review`` as a user runs it: draw a sheet, fill it in, read it back."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from merkhet.questions.question_files import read_questions


def filled(sheet: Path, out: Path, verdict) -> Path:
    with open(sheet, encoding="utf-8-sig", newline="") as handle:
        rows = list(csv.DictReader(handle))
    with open(out, "w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, rows[0])
        writer.writeheader()
        writer.writerows(row | {"verdict": verdict(number)} for number, row in enumerate(rows))
    return out


def test_from_questions_to_a_sheet_and_back(merkhet, built: Path, tmp_path: Path) -> None:
    done = merkhet("review", built, "--out", "sheet.csv", "--count", 12, "--seed", 4, check=0)
    assert done.stdout == "12 questions to review: sheet.csv\n"
    filled(tmp_path / "sheet.csv", tmp_path / "one.csv", lambda number: ("good", "bad", "unsure")[number % 3])
    filled(tmp_path / "sheet.csv", tmp_path / "two.csv", lambda number: "bad" if number == 1 else "")
    arguments = ("review", built, "--verdicts", "one.csv", "--verdicts", "two.csv", "--out", "new", "--least", 1)
    said = merkhet(*arguments, check=0).stdout
    assert "12 questions judged: 4 good, 4 bad, 4 unsure\none.csv and two.csv: kappa 1.00 on 1 question\n" in said
    assert "4 left out, 56 questions: new/questions.parquet" in said and "bad more often than good: " in said
    content = json.loads(merkhet(*arguments, "--json", check=0).stdout)
    assert content["judged"] == {"good": 4, "bad": 4, "unsure": 4} and len(content["left_out"]) == 4
    before, after = read_questions(built), read_questions(tmp_path / "new")
    gone = set(before.questions["question_id"].to_pylist()) - set(after.questions["question_id"].to_pylist())
    assert gone == set(content["left_out"])
    card = json.loads((tmp_path / "new" / "card.json").read_text())
    assert card["questions"] == 56 and card["suite"] == "quickstart" and "capital" in card["names"]
    assert sum(step["before"] - step["after"] for step in card["filters"]) == 4
    assert "| review |" in (tmp_path / "new" / "CARD.md").read_text()
    ask = ("run", "quickstart", "--data", "new", "--model", "random", "--set", "report=none", "-q")
    assert "random" in merkhet(*ask, "--out", "run", check=0).stdout


def test_a_sheet_for_the_browser(merkhet, built: Path, tmp_path: Path) -> None:
    content = json.loads(merkhet("review", built, "--out", "sheet.html", "--count", 3, "--json", check=0).stdout)
    assert content == {"sheet": "sheet.html", "questions": 3}
    assert (tmp_path / "sheet.html").read_text().count("<article") == 3


def test_what_cannot_be_done_is_refused_in_one_line(merkhet, built: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("question_id,verdict\nq_0,good\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for arguments, said in (
        ((built, "--out", "sheet.pdf"), "must be a .csv or .html file"),
        ((tmp_path / "absent", "--out", "sheet.csv"), "there is no folder or file"),
        ((built, "--verdicts", "bad.csv", "--out", "new"), "bad.csv, row 2: there is no question 'q_0'"),
        ((built, "--verdicts", "absent.csv", "--out", "new"), "there is no file absent.csv"),
        ((built, "--verdicts", "bad.csv", "--out", built), "is the folder of the source questions"),
        ((built, "--verdicts", "bad.csv", "--out", "full"), "holds other files"),
    ):
        done = merkhet("review", *arguments, check=2)
        assert said in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""
    assert not (tmp_path / "new").exists() and not (tmp_path / "sheet.pdf").exists()


def test_the_report_writes_predictions_beside_it(merkhet, built: Path, tmp_path: Path) -> None:
    ask = ("run", "quickstart", "--data", built, "--model", "random", "--set", "report=none", "-q")
    merkhet(*ask, "--out", "run", check=0)
    done = merkhet("report", "run", "--predictions", check=0)
    assert "Predictions: run/predictions-random.csv" in done.stdout
    with open(tmp_path / "run" / "predictions-random.csv", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 60 and all(len(json.loads(row["ret"])) == 1 for row in rows)
