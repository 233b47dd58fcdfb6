"""Broken files: each is refused in one line that names the file and the row."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.core.schemas import ANSWERS, FACTS, QUESTIONS, make_table, read_table, write_table

GOOD = {"prompt": "[MASK] is big.", "answers": ["Jupiter"], "target": "Jupiter", "choices": ["Jupiter", "Mars"]}


def refusal(kind, path) -> str:
    [said] = refusals(kind, path)
    return said


def refusals(kind, path) -> list[str]:
    with pytest.raises(InputError) as refused:
        read_table(kind, path)
    lines = str(refused.value).split("\n")
    assert all(str(path) in said for said in lines if not said.startswith("…"))
    return lines


def line(**changed) -> bytes:
    return json.dumps({**GOOD, **changed}).encode()


def whole_file(path) -> bytes:
    """Write a table of questions and return the bytes of its file."""
    write_table(QUESTIONS, make_table(QUESTIONS, [{**GOOD, "prompt": f"{i} [MASK]"} for i in range(200)]), path)
    return path.read_bytes()


def test_a_file_that_is_no_parquet(tmp_path):
    path = tmp_path / "questions.parquet"

    def check(content):
        path.write_bytes(content)
        assert "is not a complete Parquet file" in refusal(QUESTIONS, path)

    check_all(check, [b"", b"not parquet at all", b"PAR1" + bytes(range(256)) * 4 + b"PAR1"])


def test_a_cut_off_parquet_file(tmp_path):
    path = tmp_path / "questions.parquet"
    content = whole_file(path)

    def check(share):
        path.write_bytes(content[: int(len(content) * share)])
        assert "is not a complete Parquet file" in refusal(QUESTIONS, path)

    check_all(check, [0.1, 0.5, 0.9, 0.99])


def test_a_parquet_file_with_flipped_bytes_is_refused_or_read_but_never_crashes(tmp_path):
    path = tmp_path / "questions.parquet"
    content = whole_file(path)

    def check(place):
        start = int(len(content) * place)
        path.write_bytes(content[:start] + bytes(40) + content[start + 40 :])
        try:
            read_table(QUESTIONS, path)
        except InputError as error:
            assert str(path) in str(error)
            assert "\n" not in str(error)

    check_all(check, [0.1, 0.3, 0.6])


def test_a_broken_row_of_json_lines_is_named_by_its_line(tmp_path):
    path = tmp_path / "questions.jsonl"

    def check(broken, said):
        path.write_bytes(line() + b"\n\n" + broken + b"\n" + line(prompt="Last [MASK]") + b"\n")
        found = refusal(QUESTIONS, path)
        assert said in found
        assert found.startswith(f"{path}, row 3: ")

    cases = [
        (b'{"prompt": "[MASK]"', "row 3: not valid JSON (Expecting ',' delimiter at column 20). Correct the row."),
        (b'{"prompt": "caf\xe9 [MASK]"}', "row 3: the text is not UTF-8; save the file as UTF-8"),
        (b"[1, 2]", "row 3: a row must be a JSON object, got list"),
        (b"null", "row 3: a row must be a JSON object, got NoneType"),
        (line(choices="Jupiter"), "row 3: 'choices' must be list<item: string>, got 'Jupiter'"),
        (line(target=7), "row 3: 'target' must be string, got 7"),
        (line(answers=[1]), "row 3: 'answers' must be list<item: string>, got [1]"),
        (line(awnsers=["x"]), "row 3: there is no column 'awnsers' in a table of questions; did you mean 'answers'?"),
        (line(prompt="no slot"), "row 3: the prompt 'no slot' has no slot"),
        (line(prompt="[MASK] [MASK]"), "row 3: the prompt '[MASK] [MASK]' has 2 slots"),
        (line(prompt="x [MASK]", answers=[]), "row 3: 'answers' is empty"),
        (line(prompt="x [MASK]", candidate_set="c"), "row 3: a question has either 'choices' or a 'candidate_set'"),
        (line(target=None), "row 3: 'target' is empty; every row of questions needs it"),
        (line(), "questions.jsonl, row 1 ('[MASK] is big.'). Remove one."),
    ]
    check_all(check, cases)


def test_json_lines_without_a_needed_column(tmp_path):
    path = tmp_path / "facts.jsonl"
    path.write_text('{"subject": "a", "object": "b"}\n')
    assert refusal(FACTS, path) == f"{path}: the column 'predicate' is missing from the table of facts; add it"


def test_json_lines_get_ids_and_defaults(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b"\n" + line(prompt="Größe: [MASK]"))
    (row,) = read_table(QUESTIONS, path).to_pylist()
    assert row == make_table(QUESTIONS, [{**GOOD, "prompt": "Größe: [MASK]"}]).to_pylist()[0]
    assert (row["suite"], row["task"], row["language"]) == ("own", "completion", "en")


def test_a_file_of_another_kind_or_none(tmp_path):
    assert "must be a .parquet or .jsonl file" in refusal_of(tmp_path, "questions.xlsx")
    with pytest.raises(InputError, match="there is no file"):
        read_table(QUESTIONS, tmp_path / "absent.parquet")


def refusal_of(folder, name) -> str:
    (folder / name).write_text("x")
    return refusal(QUESTIONS, folder / name)


def test_all_faults_of_a_file_are_named_at_once_up_to_twenty(tmp_path):
    path = tmp_path / "questions.jsonl"
    faulty = [b'{"prompt"', line(target=7), line(prompt="no slot"), line(choices=None), line(awnsers=["x"])]
    path.write_bytes(b"\n".join([line(prompt="Sound [MASK]"), *faulty, line(prompt="[MASK] [MASK]")]))
    faults = refusals(QUESTIONS, path)
    assert sorted(fault.split(": ")[0].rpartition(" ")[2] for fault in faults) == ["2", "3", "4", "5", "6", "7"]
    assert all(fault.startswith(f"{path}, row ") for fault in faults)
    path.write_bytes(b"\n".join(line(prompt=f"no slot {number}") for number in range(51)))
    faults = refusals(QUESTIONS, path)
    assert len(faults) == 21 and faults[-1] == "… and 31 more"
    assert [f"'no slot {number}'" in fault for number, fault in enumerate(faults[:20])] == [True] * 20


def test_all_faults_of_a_parquet_file_are_named_with_labels(tmp_path):
    path = tmp_path / "facts.parquet"
    good = {"subject": "a", "predicate": "p", "object": "b"}
    rows = [good, {**good, "object": None}, {**good, "start": "1990", "end": "1980"}, good]
    columns = {name: [row.get(name) for row in rows] for name in ("subject", "predicate", "object", "start", "end")}
    pq.write_table(pa.table({"fact_id": ["f_1", "f_2", "f_3", "f_1"], **columns}), path)
    faults = refusals(FACTS, path)
    assert len(faults) == 3
    assert any("row 2: a fact has either an object or a value" in fault for fault in faults)
    assert any("row 3: end 1980 is before start 1990 for 'a'" in fault for fault in faults)
    assert any("row 4: repeats" in fault and "('a p b')" in fault for fault in faults)
    assert "f_1" not in "".join(faults)


def test_a_column_that_an_older_file_lacks_is_null(tmp_path):
    row = {"question_id": "q", "model": "m", "probe": "rank", "method": "sum", "prediction": "a"}
    path = tmp_path / "answers.parquet"
    pq.write_table(make_table(ANSWERS, [row]).drop_columns(["tied_first", "right"]), path)
    columns = ["question_id", "model", "probe", "method", "prediction", "tied_first"]
    (read,) = read_table(ANSWERS, path, columns=columns).to_pylist()
    assert (read["prediction"], read["tied_first"], read["right"]) == ("a", None, None)
    pq.write_table(make_table(ANSWERS, [row]).drop_columns(["model"]), path)
    assert "the column 'model' is missing" in refusal(ANSWERS, path)
