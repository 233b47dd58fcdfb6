"""Tables of a run: read once, read anew if a file changes, and objects made only where they are needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from merkhet.core.records import question_column
from merkhet.core.schemas import ANSWERS, QUESTIONS, make_table
from merkhet.engine.shared_tables import release_tables, run_tables
from merkhet.metrics.answer_table import AnswerTable
from merkhet.metrics.metrics import get_metric
from merkhet.questions.question_files import QuestionSet, write_questions


def write_run(folder: Path, size: int = 20) -> None:
    rows = [
        {"question_id": f"q{n:02d}", "task": "t", "prompt": f"{n} is [MASK].", "answers": ["a"], "target": "a"}
        for n in range(size)
    ]
    questions = make_table(QUESTIONS, [{"suite": "own", "choices": ["a", "b"], **row} for row in rows])
    write_questions(QuestionSet(questions), folder)
    answers = [
        {
            **{"question_id": row["question_id"], "model": model, "probe": "rank", "method": "sum", "golds": ["a"]},
            **{"gold_ranks": [1.0 + n % 2], "gold_ties": [1], "prediction": "ab"[n % 2]},
            "ranked": [{"candidate": "ab"[n % 2], "score": -float(n)}],
        }
        for model in ("first", "second")
        for n, row in enumerate(rows)
    ]
    pq.write_table(make_table(ANSWERS, answers), folder / "answers.parquet", row_group_size=7)


def test_tables_are_read_once_until_a_file_changes(tmp_path: Path) -> None:
    write_run(tmp_path)
    tables = run_tables(tmp_path)
    answers = tables.answers
    assert run_tables(tmp_path) is tables
    assert tables.answers is answers
    pq.write_table(answers.table.slice(0, 3), tmp_path / "answers.parquet")
    assert run_tables(tmp_path) is tables
    assert len(tables.answers.ids) == 3
    write_run(tmp_path, size=5)
    assert len(run_tables(tmp_path).questions) == 5
    release_tables(tmp_path)
    assert run_tables(tmp_path) is not tables


def test_scores_of_ranks_make_no_question_objects(tmp_path: Path) -> None:
    write_run(tmp_path)
    tables = run_tables(tmp_path)
    cell = tables.answers.cell("second", "t", "rank", "sum")
    assert cell.values(get_metric("mrr")).tolist() == [1.0, 0.5] * 10
    assert question_column(tables.questions, "prompt", ["q03"]) == ["3 is [MASK]."]
    assert "_questions" not in vars(tables.questions)
    assert tables.questions["q03"].candidates == ("a", "b")
    assert dict(tables.questions) == {question.question_id: question for question in tables.question_set.as_questions()}


def test_a_file_of_answers_reads_like_its_table(tmp_path: Path) -> None:
    write_run(tmp_path)
    by_id = run_tables(tmp_path).questions
    file = AnswerTable(tmp_path / "answers.parquet", by_id)
    table = AnswerTable(pq.read_table(tmp_path / "answers.parquet"), by_id)
    for rows in ([], [5], [39, 0, 13, 14, 20, 6, 7]):
        chosen = np.array(rows, dtype=np.int64)
        assert file.take("ranked", chosen).to_pylist() == table.take("ranked", chosen).to_pylist()
    assert list(file.rows()) == list(table.rows())
    metric = get_metric("exact")
    for key in table.cell_rows:
        assert file.cell(*key).values(metric).tolist() == table.cell(*key).values(metric).tolist()
