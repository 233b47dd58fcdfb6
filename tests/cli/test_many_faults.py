"""The command line names all faults of an input, one per line, with the remedy."""

from __future__ import annotations

import json

import pytest

from merkhet.core.errors import FaultList, FaultsError, InputError, located


def lines_of(refused) -> list[str]:
    assert refused.returncode == 2 and not refused.stdout
    return refused.stderr.splitlines()


def test_all_bad_rows_of_a_table_of_facts_are_named(merkhet, tmp_path):
    rows = ["subject,predicate,object", "a,p,b", "a,,b", "a,p", "b,p,c", ",p,c"]
    (tmp_path / "facts.csv").write_text("\n".join(rows) + "\n")
    told = lines_of(merkhet("knowledge", "import", tmp_path / "facts.csv", "--into", tmp_path / "kb.duckdb"))
    assert told[0] == f"merkhet: {tmp_path / 'facts.csv'}:3: the predicate is empty."
    assert told[1:3] == [
        f"  {tmp_path / 'facts.csv'}:4: 2 cells where the header has 3.",
        f"  {tmp_path / 'facts.csv'}:6: the subject is empty.",
    ]
    assert told[3].startswith("  Nothing was imported. Correct the row") and len(told) == 4
    assert not (tmp_path / "kb.duckdb").exists()
    told = lines_of(merkhet("build", "quickstart", "--knowledge", tmp_path / "facts.csv", "--out", tmp_path / "made"))
    assert [line.split(":")[-2] for line in told[:3]] == ["3", "4", "6"] and told[3] == "  Correct the row."
    (tmp_path / "facts.csv").write_text("\n".join([rows[0], *["a,,b"] * 51]) + "\n")
    told = lines_of(merkhet("build", "quickstart", "--knowledge", tmp_path / "facts.csv", "--out", tmp_path / "made"))
    assert len(told) == 21 and "Reading stopped here" in told[-1]
    assert [line.split(":")[-2] for line in told[:20]] == [str(number) for number in range(2, 22)]


def test_all_wrong_questions_and_candidates_are_named(merkhet, tmp_path):
    good = {"prompt": "[MASK] is big.", "answers": ["a"], "choices": ["a", "b"]}
    rows = [good, {**good, "prompt": "1 [MASK]", "choices": ["b", "c"]}]
    rows += [{**good, "prompt": "2 [MASK]", "target": "b"}, {**good, "prompt": "3 [MASK]", "choices": ["a", "b", "b"]}]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    told = lines_of(merkhet("build", "quickstart", "--data", tmp_path, "--out", tmp_path / "made"))
    assert [line.partition(", row ")[2] for line in told] == [
        "2: the target 'a' is not among the candidates. Add it.",
        "3: the target 'b' is not among the answers. Add it.",
        "4: the candidate 'b' occurs twice. Remove one.",
    ]


def test_all_wrong_keys_of_a_study_are_named(merkhet, tmp_path):
    study = {"suite": "quickstart", "limmit": 3, "seed": "x", "options": {"choises": 4}}
    (tmp_path / "study.yaml").write_text(json.dumps(study))
    told = lines_of(merkhet("run", tmp_path / "study.yaml", "--out", tmp_path / "run"))
    text = "\n".join(told)
    assert "'limmit'; did you mean 'limit'?" in text and "seed must be" in text
    assert all("study.yaml" in line for line in told)


def test_faults_are_sorted_counted_and_located():
    faults = FaultList()
    faults.add("second", row=2)
    faults.add("first", row=1)
    with faults.collect():
        raise InputError("nowhere")
    with pytest.raises(FaultsError) as refused, located("here"):
        faults.refuse("Do something.")
    assert str(refused.value).split("\n") == ["nowhere (here)", "first (here)", "second (here)", "Do something."]
    FaultList().refuse()
