"""Runs that train: no verdict after one training, and after several the verdict of a t test over the trainings."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from scipy import stats
from small_packs import write_pack
from statsmodels.stats.multitest import multipletests
from tiny_models import SENTENCES

import merkhet
from merkhet.analysis.finding_text import render
from merkhet.analysis.finding_types import FEW_QUESTIONS, Finding
from merkhet.analysis.training_text import ONE_TRAINING
from merkhet.engine.combine_runs import combine_runs
from merkhet.engine.planning import make_standard_plan
from merkhet.engine.resolve_study import Request, resolve_study
from merkhet.engine.run_comparison import ComparisonChoice, compare_runs
from merkhet.suites import SUITES

VERDICTS = re.compile(
    r"\bis ahead|\bahead of|\bbehind\b|\bcosts accuracy|\bincreases accuracy|\bruled out|\bno cost\b|\babove the\b"
    r"|\bbelow the\b|\bnot significantly|\bno significant|\brecalls more|\bknows more|\bp (=|<)|\bdiffer significantly"
)
SETTINGS = {"epochs": 2, "batch_size": 32, "learning_rate": 0.003, "evaluate_every": 2, "vocabulary": 300}


def memorize(folder: Path, trainings: int, report: str, **options: object) -> merkhet.Run:
    content = {
        "suite": "lama-tk",
        "models": [{"model": f"random:1x{width}", "label": f"small {width}"} for width in (16, 32)],
        "learning": {"learner": "memorize", "settings": SETTINGS, "trainings": trainings},
        "options": options,
        "report": report,
    }
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(content))
    return merkhet.run(str(folder / "study.yaml"), out=folder / "run")


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> merkhet.Run:
    options = {"experiment": "boundary", "facts": 15, "dynamic": [0, 100]}
    return memorize(tmp_path_factory.mktemp("once") / "study", 1, "html", **options)


@pytest.fixture(scope="module")
def thrice(tmp_path_factory: pytest.TempPathFactory) -> merkhet.Run:
    options = {"sizes": [20, 40], "conflict": ["with"]}
    return memorize(tmp_path_factory.mktemp("thrice") / "study", 3, "none", **options)


def words_of(page: str) -> str:
    """The text of a page, without its explanations of what a verdict needs."""
    text = re.sub(r"<style.*?</style>|<script.*?</script>|<dl.*?</dl>|<[^>]+>", " ", page, flags=re.S)
    return text.replace("filled points are significant differences (Holm-corrected p < 0.05), open points are not", "")


def test_after_one_training_nothing_is_a_verdict(once: merkhet.Run) -> None:
    found = once.findings
    said = [*found["sentences"], *(text for analysis in once.analyses for text in analysis["sentences"])]
    assert not [text for text in said if VERDICTS.search(text)]
    assert found["sentences"].count(ONE_TRAINING) == 1
    compared = found["comparisons"]
    assert compared and all(row["p"] is None and row["q"] is None and row["trainings"] == 1 for row in compared)
    assert all(row["verdict"] == "none" for analysis in once.analyses for row in analysis["findings"])
    page = (once.folder / "report.html").read_text()
    assert not VERDICTS.findall(words_of(page)) and "none: one training" in page
    assert page.count(ONE_TRAINING[:60]) == 1


def test_the_comparison_of_models_trained_once_has_no_verdict(once: merkhet.Run) -> None:
    for choice in (ComparisonChoice(), ComparisonChoice(by="template"), ComparisonChoice(baselines=True)):
        found = compare_runs([once], choice)
        assert found.comparisons and all(row["p"] is None for row in [*found.comparisons, *found.groups])
        assert not [text for text in (*found.verdict, *found.group_sentences, *found.remarks) if VERDICTS.search(text)]
        assert found.verdict.count(ONE_TRAINING) == 1 and found.order is None


def test_several_trainings_give_the_verdict_of_a_t_test_on_shared_statements(thrice: merkhet.Run) -> None:
    """By a plain reading of the files: whether a right answer is first, on the statements that both models share."""
    tables = [thrice.answers, *(table for table in thrice.trainings)]
    assert len(tables) == 3 and (thrice.folder / "trainings.parquet").is_file()

    def known(table, model: str) -> dict[str, float]:
        rows = [row for row in table.to_pylist() if row["model"] == model and "-statement~" in row["question_id"]]
        assert all(tie == 1 for row in rows for tie in row["gold_ties"])
        return {row["question_id"].partition("~")[0]: float(min(row["gold_ranks"]) == 1.0) for row in rows}

    rows = [row for row in thrice.findings["comparisons"] if row["task"] == "statement"]
    assert len(rows) == 4
    raw = []
    for row in rows:
        sides = [[known(table, row[side]) for table in tables] for side in ("model", "other")]
        shared = sorted(sides[0][0].keys() & sides[1][0].keys())
        assert row["n"] == len(shared) and row["trainings"] == 3
        per_seed = [np.mean([a[name] - b[name] for name in shared]) for a, b in zip(*sides, strict=True)]
        expected = stats.ttest_1samp(per_seed, 0.0)
        ends = expected.confidence_interval(0.95)
        assert (row["difference"], row["low"], row["high"]) == pytest.approx((np.mean(per_seed), ends.low, ends.high))
        assert row["p_raw"] == pytest.approx(expected.pvalue)
        raw.append(expected.pvalue)
    every = thrice.findings["comparisons"]
    assert len(every) == len(rows) or {row["task"] for row in every} == {"statement", "unseen"}
    corrected = multipletests([row["p_raw"] for row in every], method="holm")[1]
    assert [row["p"] for row in every] == pytest.approx(corrected.tolist())
    assert ONE_TRAINING not in thrice.findings["sentences"]
    different = [text for text in thrice.findings["sentences"] if text.startswith("On statement, models were asked")]
    assert len(different) == 1 and "(80 to 160)" in different[0]
    found = compare_runs([thrice])
    by_pair = {frozenset((row["model"], row["other"])): row for row in found.comparisons if row["task"] == "statement"}
    for row in rows:
        assert by_pair[frozenset((row["model"], row["other"]))]["p_raw"] == pytest.approx(row["p_raw"])
    combined = combine_runs([thrice])
    assert combined.findings["comparisons"] == every


def test_further_trainings_are_forgotten_when_the_study_has_one_again(tmp_path: Path) -> None:
    options = {"experiment": "boundary", "facts": 10, "dynamic": [0]}
    run = memorize(tmp_path / "study", 2, "none", **options)
    assert (run.folder / "trainings.parquet").is_file() and len(run.trainings) == 1
    again = merkhet.run(str(tmp_path / "study" / "study.yaml"), settings=["learning.trainings=1"], out=run.folder)
    assert not (run.folder / "trainings.parquet").exists() and again.trainings == []
    assert ONE_TRAINING in again.findings["sentences"]


def pretraining(folder: Path, model: Path, trainings: int) -> Path:
    (folder / "corpus.txt").write_text("\n\n".join(" ".join(SENTENCES[i : i + 3]) for i in range(7)), encoding="utf-8")
    write_pack(folder / "small")
    settings = {"corpus": "corpus.txt", "steps": 3, "batch_size": 4, "max_length": 32, "learning_rate": 0.01}
    content = {
        "suite": "quickstart",
        "knowledge": ["small"],
        "limit": 12,
        "models": [{"model": str(model), "label": "bert"}],
        "learning": {
            "learner": "pretrain",
            "settings": {**settings, "objectives": ["mlm", "mlm+nsp"]},
            "trainings": trainings,
        },
        "report": "none",
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(content))
    return folder / "study.yaml"


@pytest.mark.parametrize("trainings", [1, 3])
def test_objectives_are_compared_by_training(model_folders: dict[str, Path], tmp_path: Path, trainings: int) -> None:
    study = pretraining(tmp_path, model_folders["bert-uncased"], trainings)
    run = merkhet.run(str(study), out=tmp_path / "run")
    rows = run.findings["comparisons"]
    assert {row["trainings"] for row in rows} == {trainings}
    assert all((row["p"] is None) == (trainings == 1 or row["n"] < FEW_QUESTIONS) for row in rows)
    assert any(row["n"] >= FEW_QUESTIONS for row in rows)
    names = {name for row in rows for name in (row["model"], row["other"])}
    assert names == {"bert", "bert, mlm", "bert, mlm+nsp"}
    seeds = [json.loads(file.read_text())["seed"] for file in run.folder.glob(".merkhet/learned/*/learned.json")]
    assert len(seeds) == 2 * trainings and len(set(seeds)) == trainings
    # Controls are about a single model, not about what the training has changed.
    of_controls = render([Finding.from_json(row) for row in run.findings["findings"] if row["kind"] == "control"])
    said = " ".join(text for text in run.findings["sentences"] if text not in of_controls)
    if trainings == 1:
        assert (
            not VERDICTS.search(
                said.replace("does not differ significantly from chance", "").replace(
                    "not significantly above chance", ""
                )
            )
            and ONE_TRAINING in said
        )
    else:
        assert ONE_TRAINING not in said and "over 3 trainings, p" in said
        assert set(pq.read_table(run.folder / "trainings.parquet")["training"].to_pylist()) == {2, 3}
        assert not set(pq.read_table(run.folder / "answers.parquet").column_names) & {"training"}


@pytest.mark.parametrize(
    ("suite", "learner", "settings"),
    [
        ("kmir", "cloze", ["tasks=[completion]", "probes=[rank]"]),
        ("ontoprobe", "soft", ["tasks=[TP]", "options.templates=[manual, soft]"]),
    ],
)
def test_every_learner_plans_several_trainings_with_seeds_of_their_own(
    model_folders: dict[str, Path], suite: str, learner: str, settings: list[str]
) -> None:
    learning = [f"learning.learner={learner}", "learning.trainings=3"]
    request = Request(suite, models=[str(model_folders["bert-uncased"])], settings=[*settings, *learning])
    plan = make_standard_plan(resolve_study(request, SUITES), "merkhet run")
    learns = [step for step in plan.steps if step.kind == "learn"]
    assert len({step.params.seed for step in learns}) == len(learns) == 3
    assert len({step.params.name for step in learns}) == 1 and len({step.outputs for step in learns}) == 3
    collected = next(step for step in plan.steps if step.name == "collect trainings")
    assert collected.params.numbers == (2, 3) and collected.outputs == ("trainings.parquet",)
    asks = {step.outputs[0]: step for step in plan.steps if step.kind == "ask"}
    for file, learn in zip(collected.inputs, learns[1:], strict=True):
        used = asks[file].params.learned or asks[file].params.soft[0]
        assert used == learn.outputs[0] and asks[file].params.name == learn.params.name
    findings = next(step for step in plan.steps if step.name == "analyse")
    assert findings.params.trained == (learns[0].params.name,) and "trainings.parquet" in findings.inputs
