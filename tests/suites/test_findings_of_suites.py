"""The findings of every suite, computed again from the scores of stub models, and what their sentences may say."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import merkhet
from merkhet.analysis.finding_text import render
from merkhet.analysis.finding_types import FEW_QUESTIONS, Finding, Kind, Verdict
from merkhet.engine.run_folder import Run

STUBS = Path(__file__).parents[1] / "stub_models.py"
NAMES = ("constant", "guesser", "perfect", "two_faced")
BASELINES = ("random", "frequency")
SUITES: dict[str, dict[str, Any]] = {
    "quickstart": {"limit": 40, "settings": ["metrics=[accuracy, r@1]"]},
    "kmir": {"limit": 24, "settings": ["metrics=[exact, accuracy]"]},
    "lama-tk": {"limit": 30, "settings": ["metrics=[acc@1]", "options.candidates=8"]},
    "chneval": {"limit": 40, "settings": ["metrics=[accuracy, p@1]"]},
    "ontoprobe": {
        "limit": 60,
        "tasks": ["SCO", "DM", "rdfs9", "SCO-choice"],
        "settings": ["learning=null", "metrics=[r@1, accuracy]"],
    },
}
TWO_METHODS = "probes=[{probe: rank, methods: {stub: [first, second]}}]"
FAST = ("quickstart", "kmir")


@pytest.fixture(params=[pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in SUITES])
def run(request: pytest.FixtureRequest, made_once: Any, kmir_few: Path) -> Run:
    name = request.param

    def make(folder: Path) -> None:
        more = dict(SUITES[name])
        if name == "kmir":
            more["data"] = kmir_few
        if name != "chneval":
            more["settings"] = [*more["settings"], TWO_METHODS]
        models = [*BASELINES, *(f"{STUBS}:{stub}" for stub in NAMES)]
        more["settings"] = [*more["settings"], "report=none"]
        merkhet.run(name, models=models, out=folder / "run", **more)

    from merkhet.engine.run_folder import open_run

    return open_run(made_once(f"stubs-{name}", make) / "run")


def records(run: Run, *kinds: Kind) -> list[Finding]:
    return [finding for finding in map(Finding.from_json, run.findings["findings"]) if finding.kind in kinds]


def expected(row: dict[str, Any], facts: int) -> str:
    """The verdict on a share, from its numbers alone."""
    low, high, chance = row["low"], row["high"], row["chance"]
    if row["probe"] in ("write", "answer") or None in (low, high, chance) or row["n"] < FEW_QUESTIONS:
        return "none"
    if 0.025 ** (1 / facts) <= chance:
        return "none"
    if low > chance + 1e-9:
        return "above chance"
    far = chance - row["value"] > 1.96 * math.sqrt(chance * (1 - chance) / facts)
    return "below chance" if high < chance - 1e-9 and far else "at chance"


def count_facts(run: Run) -> dict[tuple[Any, ...], int]:
    """The number of facts behind every score of a task, and of its relations and domains."""
    clusters = run.questions.clusters()
    rows = {row["question_id"]: row for row in run.questions.questions.to_pylist()}
    facts = defaultdict(set)
    wrong = run.record["card"].get("unusable_is_wrong") or (run.record["card"].get("scoring") or {}).get(
        "unusable_is_wrong"
    )
    for answer in run.answers.select(["model", "probe", "method", "question_id", "unusable"]).to_pylist():
        question = rows[answer["question_id"]]
        relation = (question["template"] or question["task"]).split("/")[0]
        way = (answer["model"], question["task"], answer["probe"], answer["method"])
        if answer["unusable"] is None or wrong:
            for group in (None, ("relation", relation), ("domain", question["domain"])):
                facts[(*way, group)].add(clusters[answer["question_id"]])
    return {key: len(members) for key, members in facts.items()}


def test_records_follow_from_the_scores(run: Run) -> None:
    rows = json.loads((run.folder / "scores.json").read_text(encoding="utf-8"))
    fixed = {*("model", "suite", "task", "probe", "method", "metric", "value", "low", "high", "n"), "unusable"}
    headline = {(entry["task"], entry["metric"]) for entry in run.record["card"]["headline"]}
    facts = count_facts(run)
    stored = {
        (one.model, one.task, one.metric, one.probe, one.method, one.group_column, one.group): one
        for one in records(run, Kind.SCORE, Kind.GROUP)
    }
    checked = 0
    for row in rows:
        groups = {key: row[key] for key in row if key not in {*fixed, "chance", "adjusted", "wording_sd", "wording_n"}}
        column, group = next(iter(groups.items()), (None, None))
        key = (*(row[name] for name in ("model", "task", "metric", "probe", "method")), column, group)
        is_headline = (row["task"], row["metric"]) in headline and row["model"] not in BASELINES
        if len(groups) > 1 or not is_headline or key not in stored:
            assert not is_headline or groups, f"no record of {key}"
            continue
        one = stored.pop(key)
        assert (one.value, one.low, one.high, one.chance, one.n) == tuple(
            row[name] for name in ("value", "low", "high", "chance", "n")
        )
        behind = facts.get((*key[:2], *key[3:5], column and (column, group)), 0)
        assert one.facts == behind and one.verdict.value == expected(row, behind or 1), one
        checked += 1
    assert not stored, "every record has a row"
    assert checked >= 8


def test_comparisons_follow_from_their_p_values(run: Run) -> None:
    comparisons = run.findings["comparisons"]
    found = records(run, Kind.COMPARISON)
    assert len(found) == len(comparisons) > 0
    for one, row in zip(found, comparisons, strict=True):
        assert (one.model, one.other, one.value, one.p, one.n) == tuple(
            row[name] for name in ("model", "other", "difference", "p", "n")
        )
        if one.verdict is Verdict.AHEAD:
            assert one.p < 0.05 and one.value > 0
        elif one.verdict is Verdict.NO_DIFFERENCE:
            assert one.p >= 0.05
        elif one.verdict is Verdict.EQUAL:
            assert one.value == 0 and {one.model, one.other} == {"perfect", "two-faced"}
        else:
            assert {one.model, one.other} == {"constant", "guesser"}, "only ties may take a verdict away"


def test_sentences_are_rendered_from_the_stored_findings(run: Run) -> None:
    stored = [Finding.from_json(row) for row in json.loads((run.folder / "findings.json").read_text())["findings"]]
    assert render(stored) == run.findings["sentences"]


def test_models_of_known_scores_are_described_as_they_are(run: Run) -> None:
    judged = records(run, Kind.SCORE, Kind.GROUP)
    verdicts = defaultdict(list)
    for one in judged:
        verdicts[one.model].append(one.verdict)
    assert set(verdicts["constant"]) <= {Verdict.AT_CHANCE, Verdict.NONE} and Verdict.AT_CHANCE in verdicts["constant"]
    assert set(verdicts["perfect"]) <= {Verdict.ABOVE_CHANCE, Verdict.NONE}
    assert Verdict.ABOVE_CHANCE in verdicts["perfect"]
    guesses = [verdict for verdict in verdicts["guesser"] if verdict is not Verdict.NONE]
    assert sum(verdict is not Verdict.AT_CHANCE for verdict in guesses) <= max(1, 0.05 * len(guesses))
    about = {
        name: " ".join(
            text
            for text in run.findings["sentences"]
            if text.startswith((name, f"On {task_of(text)}, {name}"))
            and "ahead" not in text
            and " and two-faced" not in text
        )
        for name in ("constant", "perfect")
    }
    assert " not " not in about["perfect"] and "below" not in about["perfect"] and "above chance" in about["perfect"]
    assert "above" not in about["constant"] and "below" not in about["constant"]
    assert not any("prefers" in text for text in run.findings["sentences"])
    for analysis in run.analyses:
        for text in analysis["sentences"]:
            assert "perfect" not in text or "not " not in text or "no room" in text, text


def task_of(text: str) -> str:
    return text.removeprefix("On ").partition(",")[0]


def test_no_sentence_mixes_two_methods(run: Run) -> None:
    """By its first method the model is always right, by its second always wrong; some tasks are asked by one method."""
    rows = [one for one in records(run, Kind.SCORE) if one.model == "two-faced" and one.verdict is not Verdict.NONE]
    for one in rows:
        assert one.value == (1.0 if one.method != "second" else 0.0)
    ways = {(one.task, one.method) for one in records(run, Kind.SCORE) if one.model == "two-faced"}
    several = [task for task, method in ways if method == "second"]
    for text in run.findings["sentences"]:
        if text.startswith("two-faced is"):
            for clause in text.split("; it "):
                if not any(re.search(rf"\b{task}\b(?!-)", clause) for task in several):
                    continue
                assert ("rank, first" in clause) != ("rank, second" in clause) or "methods" in clause, clause
                assert "second (100.0%" not in clause and "first (0.0%" not in clause
