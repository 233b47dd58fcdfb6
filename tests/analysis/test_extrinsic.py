from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from linguistic_runs import make_input

from merkhet.analysis._downstream_scores import downstream_identity, read_downstream
from merkhet.analysis.analysis_options import AnalysisOptions
from merkhet.analysis.extrinsic import extrinsic
from merkhet.core.errors import InputError
from merkhet.metrics.metrics import get_metric

MODELS = ("BERT", "BERT-wwm", "BERT-wwm-ext", "RoBERTa-wwm-ext")
INTRINSIC = {
    "syntactic": (0.388, 0.427, 0.424, 0.569),
    "semantic": (0.697, 0.698, 0.712, 0.731),
    "encyclopedia": (0.291, 0.348, 0.326, 0.603),
}
WIDE = "model,CMRC,XNLI\nBERT,68.7,77.5\nBERT-wwm,69.1,78.0\nBERT-wwm-ext,70.0,78.3\nRoBERTa-wwm-ext,71.4,78.3\n"


def paper(tmp_path: Path, text: str = WIDE, **changes):
    """The scores of the paper's table of results, and a file of its other tasks."""
    file = tmp_path / "other.csv"
    file.write_text(text, encoding="utf-8")
    scores = [
        {"model": model, "suite": "chneval", "task": task, "probe": "fill", "method": "mask", "metric": "p@1"}
        | {"value": values[place], "low": None, "high": None, "n": 100, "unusable": 0, "chance": None}
        for task, values in INTRINSIC.items()
        for place, model in enumerate(MODELS)
    ]
    headline = [(task, get_metric("p@1")) for task in INTRINSIC]
    content = {
        "scores": scores,
        "headline": headline,
        "baselines": frozenset(),
        "options": AnalysisOptions(downstream=file),
    }
    return replace(make_input(1), **{**content, **changes})


def test_the_papers_table(tmp_path):
    found = extrinsic(paper(tmp_path))
    together, correlations, spread = found.tables
    assert [column.name for column in together.columns] == [
        "Model", "syntactic P@1", "semantic P@1", "encyclopedia P@1", "CMRC", "XNLI",
    ]  # fmt: skip
    assert [row[0] for row in together.rows] == list(MODELS)
    assert [cell.value for cell in together.rows[0][1:]] == [0.388, 0.697, 0.291, 68.7, 77.5]
    rho = {(row[0], row[1]): row[2:] for row in correlations.rows}
    assert rho["semantic P@1", "CMRC"] == (4, pytest.approx(1.0), pytest.approx(2 / 24))
    assert rho["syntactic P@1", "CMRC"][1] == pytest.approx(0.8) and len(rho) == 6
    # The paper's third observation: intrinsic scores vary more than extrinsic ones.
    variation = {row[0]: row[6] for row in spread.rows}
    assert min(variation["syntactic P@1"], variation["encyclopedia P@1"]) > 5 * max(
        variation["CMRC"], variation["XNLI"]
    )
    lowest = next(row for row in spread.rows if row[0] == "CMRC")
    assert lowest[3:6] == (68.7, 71.4, pytest.approx(2.7))
    values = np.array([68.7, 69.1, 70.0, 71.4])
    assert lowest[6] == pytest.approx(values.std(ddof=1) / values.mean())
    assert "semantic P@1 with CMRC: rho 1.00 over 4 models (p = 0.083, uncorrected)" in found.sentences[0]


def test_long_form_says_the_same(tmp_path):
    rows = [line.split(",") for line in WIDE.splitlines()[1:]]
    lines = [f"{task};{row[0]};{row[place]}" for place, task in ((1, "CMRC"), (2, "XNLI")) for row in rows]
    text = "\ufeffTask;Model;Score\r\n" + "\r\n".join(lines) + "\r\n"
    wide, long = extrinsic(paper(tmp_path)), extrinsic(paper(tmp_path, text))
    assert (wide.tables, wide.sentences) == (long.tables, long.sentences)


def test_names_that_are_in_one_of_both_are_told(tmp_path):
    text = 'model,CMRC\nBERT,0.687\nbert-wwm,0.7\n"ERNIE, base",0.7\n'
    found = extrinsic(paper(tmp_path, text))
    assert found.sentences[0] == "In other.csv but not in this run: bert-wwm and “ERNIE, base”."
    assert "In this run but not in other.csv: BERT-wwm, BERT-wwm-ext and RoBERTa-wwm-ext." in found.sentences[1]
    assert "Only BERT has scores of both kinds; a correlation needs at least 3 models" in found.sentences[2]
    assert len(found.tables) == 1 and [column.kind for column in found.tables[0].columns][-1] == "share"
    silent = extrinsic(paper(tmp_path, text, baselines=frozenset(MODELS)))
    assert not any("In this run but" in sentence for sentence in silent.sentences)
    assert extrinsic(paper(tmp_path, "model,CMRC\nx,1\n")).sentences[-1].startswith("No model has scores of both")


def test_scores_that_are_missing_or_do_not_vary(tmp_path):
    text = "model,a,b\nBERT,1,5\nBERT-wwm,1,\nBERT-wwm-ext,1,7\nRoBERTa-wwm-ext,1,6\n"
    _, correlations, spread = extrinsic(paper(tmp_path, text)).tables
    assert {row[2:] for row in correlations.rows if row[1] == "a"} == {(4, None, None)}
    assert {row[2] for row in correlations.rows if row[1] == "b"} == {3}
    assert next(row for row in spread.rows if row[0] == "a")[6] == 0.0


def test_scales_that_differ_are_told(tmp_path):
    text = "model,a\nBERT,70\nBERT-wwm,0.7\nBERT-wwm-ext,71\n"
    assert "a has scores up to 1 and above 1" in " ".join(extrinsic(paper(tmp_path, text)).sentences)


def test_a_model_is_taken_by_its_first_way_of_asking(tmp_path):
    given = paper(tmp_path)
    more = [{**row, "method": "other", "value": 0.0} for row in given.scores]
    layer = [{**row, "method": "word@0", "value": 0.0} for row in given.scores]
    assert extrinsic(replace(given, scores=[*layer, *given.scores, *more])).tables == extrinsic(given).tables
    assert extrinsic(replace(given, options=AnalysisOptions())) is None


REFUSED = (
    ("", "other.csv:1: no column 'model' (columns: none)"),
    ("name,CMRC\nBERT,1\n", "other.csv:1: no column 'model' (columns: name, CMRC)"),
    ("model,CMRC\n", "other.csv contains no score"),
    ("model,CMRC\nBERT,high\n", "other.csv:2: the score on 'CMRC' must be a number such as 71.4 or 0.714, got 'high'"),
    (
        "model,task,score\n\nBERT,CMRC,nan\n",
        "other.csv:3: the score on 'CMRC' must be a number such as 71.4 or 0.714, got 'nan'",
    ),
    (
        "model,task,score\nBERT,CMRC,\n",
        "other.csv:2: the score on 'CMRC' must be a number such as 71.4 or 0.714, got ''",
    ),
    ("model,task,score\nBERT,CMRC,1\nBERT,CMRC,2\n", "other.csv:3: duplicate score of 'BERT' on 'CMRC'"),
    ("model,CMRC\nBERT,1\nBERT,1\n", "other.csv:3: duplicate score of 'BERT' on 'CMRC'"),
    ("model,task,score,seed\nBERT,CMRC,1,0\n", "unexpected column 'seed'"),
    ("model,CMRC,CMRC\nBERT,1,2\n", "duplicate column 'CMRC'"),
    ("model,,CMRC\nBERT,1,2\n", "column 2 has no name"),
    ("model,CMRC\n,1\n", "other.csv:2: the model has no name"),
    ("model,task,score\nBERT,,1\n", "other.csv:2: the task has no name"),
    ("model,CMRC\nBERT,1,2\n", "other.csv:2: 3 cells for 2 columns"),
)


def test_what_is_no_table_of_scores_is_refused_by_its_line(tmp_path):
    wrong = []
    for text, words in REFUSED:
        (tmp_path / "other.csv").write_text(text, encoding="utf-8")
        with pytest.raises(InputError) as refused:
            downstream_identity("other.csv", tmp_path, [])
        said = str(refused.value)
        wrong += [(text, said)] if words not in said or "\n" in said else []
    assert wrong == []


def test_what_is_no_file_or_no_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="file not found"):
        read_downstream(tmp_path / "absent.csv")
    (tmp_path / "latin.csv").write_bytes("model,größe\nBERT,1\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_downstream(tmp_path / "latin.csv")
    (tmp_path / "good.csv").write_text(WIDE)
    first = downstream_identity("good.csv", tmp_path, [])
    (tmp_path / "good.csv").write_text(WIDE.replace("68.7", "68.8"))
    assert downstream_identity("good.csv", tmp_path, []) != first
