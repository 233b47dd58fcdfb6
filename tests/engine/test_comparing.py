"""Runs compared: what is paired with what, by a plain oracle, and what is said where nothing can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from compared_runs import changed, half, make_run

import merkhet
from merkhet import InputError, open_run
from merkhet.engine.combine_runs import combine_runs
from merkhet.engine.run_comparison import ComparisonChoice, compare_runs

TASKS = {"completion": "r@1", "checking": "accuracy", "distinction": "accuracy"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run") / "one", {"able": 0.8, "weak": 0.3})


def compared(*folders: Path, **choice: Any) -> Any:
    return compare_runs([open_run(folder) for folder in folders], ComparisonChoice(**choice))


def values(folder: Path, model: str, task: str) -> dict[str, float]:
    """Whether the first answer is right, by question: ranks read from the file, ties shared."""
    tasks = {row["question_id"]: row["task"] for row in pq.read_table(folder / "questions.parquet").to_pylist()}
    found = {}
    for row in pq.read_table(folder / "answers.parquet").to_pylist():
        if row["model"] == model and tasks.get(row["question_id"]) == task and row["unusable"] is None:
            assert len(row["gold_ranks"]) == 1 and row["gold_ties"] == [1]
            found[row["question_id"]] = float(row["gold_ranks"][0] == 1.0)
    return found


def check_against_the_files(one: dict[str, Any], first: tuple[Path, str], second: tuple[Path, str]) -> None:
    own, others = (values(*place, one["task"]) for place in (first, second))
    shared = sorted(own.keys() & others.keys())
    assert one["n"] == one["facts"] == len(shared)
    assert one["value"] == pytest.approx(np.mean([own[name] for name in shared]))
    assert one["other_value"] == pytest.approx(np.mean([others[name] for name in shared]))
    assert one["difference"] == pytest.approx(one["value"] - one["other_value"])
    only = [sum(a[name] > b[name] for name in shared) for a, b in ((own, others), (others, own))]
    if all(only):
        assert one["odds"] == pytest.approx(only[0] / only[1])


def test_models_of_one_run_are_paired_by_question(run: Path) -> None:
    found = compared(run)
    assert found.models == ["able", "weak"] and {one["task"]: one["metric"] for one in found.comparisons} == TASKS
    for one in found.comparisons:
        check_against_the_files(one, (run, one["model"]), (run, one["other"]))
    assert found.verdict[0].startswith("able knows more than weak: it is ahead on ")
    assert found.shared == [] and found.question_remarks == [] and found.remarks == []


def test_runs_that_share_some_questions_are_compared_on_these_alone(run: Path, tmp_path: Path) -> None:
    part = changed(
        run,
        tmp_path / "part",
        questions=lambda rows: half(rows, first=True),
        names={"able": "better", "weak": "worse"},
    )
    found = compared(run, part, against="weak")
    assert [(one["model"], one["other"]) for one in found.comparisons[:3]] == [("able", "weak")] * 3
    both = [one for one in found.comparisons if one["model"] == "better"]
    assert {one["task"] for one in both} == set(TASKS) and all(one["n"] < 40 for one in both)
    for one in both:
        check_against_the_files(one, (part, "better"), (run, "weak"))
    total = sum(one["n"] for one in both)
    assert found.shared == [{"run": "one", "other": "part", "both": total, "only_run": 120 - total, "only_other": 0}]
    assert found.question_remarks == [
        f"Across runs, models are compared on the {total} questions that both runs asked; {120 - total} only in one, "
        "0 only in part."
    ]


def test_what_two_runs_share_is_paired_by_id_in_whatever_order(run: Path, tmp_path: Path) -> None:
    part = changed(
        run,
        tmp_path / "part",
        questions=lambda rows: half(rows, first=True)[::-1],
        answers=lambda rows: rows[::-1],
        names={"weak": "able", "able": "weak"},
    )
    found = compared(run, part)
    assert set(found.models) == {"able (one)", "weak (one)", "able (part)", "weak (part)"}
    places = {"able (one)": (run, "able"), "weak (one)": (run, "weak")}
    places |= {"able (part)": (part, "able"), "weak (part)": (part, "weak")}
    assert len(found.comparisons) == 6 * len(TASKS)
    for one in found.comparisons:
        check_against_the_files(one, places[one["model"]], places[one["other"]])
    same = [one for one in found.comparisons if {one["model"], one["other"]} == {"able (one)", "weak (part)"}]
    assert len(same) == 3 and all(one["equal"] and one["difference"] == 0.0 for one in same)


def test_against_a_reference_all_is_told_from_the_side_of_the_others(run: Path) -> None:
    found = compared(run, against="able")
    assert {(one["model"], one["other"]) for one in (*found.comparisons, *found.oriented)} == {("weak", "able")}
    assert all(one["difference"] < 0 and one["high"] < 0 for one in found.comparisons)
    for one in found.comparisons:
        check_against_the_files(one, (run, "weak"), (run, "able"))


def test_p_is_corrected_over_all_that_is_compared_and_nothing_else(run: Path) -> None:
    """Holm by hand: the smallest p times the number of tests, and so on downward."""
    for choice in ({}, {"baselines": True}, {"tasks": ["checking"]}, {"against": "weak", "metrics": ["mrr", "r@1"]}):
        rows = sorted(compared(run, **choice).comparisons, key=lambda one: one["p_raw"])
        least = 0.0
        for place, one in enumerate(rows):
            least = max(least, min(1.0, (len(rows) - place) * one["p_raw"]))
            assert one["p"] == pytest.approx(least)


def test_groups_are_compared_within_and_corrected_over_all_of_them(run: Path) -> None:
    found = compared(run, by="domain", tasks=["completion"])
    domains = {row["question_id"]: row["domain"] for row in pq.read_table(run / "questions.parquet").to_pylist()}
    assert found.column == "domain" and len(found.groups) > 2
    for one in found.groups:
        own, others = (values(run, one[side], "completion") for side in ("model", "other"))
        inside = [name for name in own if domains[name] == one["group"]]
        assert one["n"] == len(inside) and one["model"] == "able"
        assert one["value"] == pytest.approx(np.mean([own[name] for name in inside]))
        assert one["other_value"] == pytest.approx(np.mean([others[name] for name in inside]))
        assert one["difference"] == pytest.approx(one["value"] - one["other_value"])
    rows = sorted(found.groups, key=lambda one: one["p_raw"])
    expected = [len(rows) * one["p_raw"] / place for place, one in enumerate(rows, 1)]
    for place, one in enumerate(rows):
        assert one["q"] == pytest.approx(min(1.0, *expected[place:], 1.0))


def test_runs_without_a_common_question_say_so_and_compare_nothing(run: Path, tmp_path: Path) -> None:
    folders = []
    for first, name in ((True, "able"), (False, "weak")):
        folders.append(
            changed(
                run,
                tmp_path / name,
                questions=lambda rows, first=first: half(rows, first=first),
                answers=lambda rows, name=name: [row for row in rows if row["model"] == name],
            )
        )
    found = compared(*folders, against="able (able)")
    assert found.comparisons == [] and found.pairs == [] and found.order is None
    assert "share no question" in found.verdict[0] and "'merkhet run --data'" in found.verdict[0]
    assert found.question_remarks[0].startswith("able and weak share no question (")
    assert found.shared[0]["both"] == 0


def test_what_else_stands_between_two_runs_is_remarked_on(run: Path, tmp_path: Path) -> None:
    def older(record: dict[str, Any]) -> None:
        record["merkhet"] = "0.0.9"
        for model in record["models"]:
            model["fingerprint"] = f"other {model['name']}"
        record["card"]["unusable_is_wrong"] = True
        record["card"]["headline"] = [
            {**entry, "metric": "mrr" if entry["task"] == "completion" else entry["metric"]}
            for entry in record["card"]["headline"]
        ]

    old = changed(
        run,
        tmp_path / "old",
        answers=lambda rows: [{**row, "method": "sum" if row["model"] == "able" else row["method"]} for row in rows],
        questions=lambda rows: [{**row, "template": f"old {row['template']}"} for row in rows],
        record=older,
    )
    said = "\n".join(compared(run, old).remarks)
    for words in (
        "able has different weights under one name (",
        "weak has different weights under one name (",
        "Models were asked in different ways: able (one), weak (one) and weak (old) by rank (uniform); "
        "able (old) by rank (sum).",
        "Only one asks by the templates ",
        "Only old asks by the templates old ",
        "different versions of merkhet: ",
        "0.0.9 in old",
        "completion is scored by different metrics: r@1 in one; mrr in old. Models are compared by each of them.",
        "The runs differ in counting unusable questions as wrong (no in one; True in old); all are compared by the "
        "rule of one.",
    ):
        assert words in said
    assert "same weights" in "\n".join(compared(run, changed(run, tmp_path / "copy")).remarks)


def test_models_asked_by_different_probes_are_not_compared_and_it_is_said_why(run: Path, tmp_path: Path) -> None:
    other = changed(
        run,
        tmp_path / "other",
        answers=lambda rows: [{**row, "probe": "write"} if row["model"] == "weak" else row for row in rows],
    )
    found = compared(other)
    assert found.comparisons == []
    assert "(asked by different probes: rank, write): able and weak." in found.remarks[0]


def test_the_methods_of_models_that_were_asked_by_several_are_named(tmp_path: Path) -> None:
    stubs = Path(__file__).parents[1] / "stub_models.py"
    settings = ["report=none", "probes=[{probe: rank, methods: {stub: [first, second]}}]"]
    models = [f"{stubs}:perfect", f"{stubs}:two_faced"]
    made = merkhet.run("quickstart", models=models, limit=12, tasks=["checking"], settings=settings, out=tmp_path / "r")
    assert compared(made.folder).verdict[-1] == (
        "Models were asked by several methods; on checking they are compared by rank (first)."
    )


def test_where_there_is_nothing_to_compare_it_is_said_why(run: Path, tmp_path: Path) -> None:
    for number, (answers, words) in enumerate(
        (
            (lambda rows: [], "no question of these tasks was answered in odd"),
            (lambda rows: [row for row in rows if row["model"] != "weak"], "only one model, able, answered in odd"),
            (lambda rows: [row for row in rows if row["model"] == "random"], "only baselines answered in odd"),
            (
                lambda rows: [row for row in rows if row["question_id"] == rows[0]["question_id"]],
                "questions about at least two facts",
            ),
        )
    ):
        found = compared(changed(run, tmp_path / str(number) / "odd", answers=answers))
        assert found.comparisons == [] and len(found.verdict) == 1
        assert words in found.verdict[0]


def test_one_model_alone_is_compared_with_the_baselines(run: Path, tmp_path: Path) -> None:
    alone = make_run(tmp_path / "alone", {"able": 0.8}, limit=10, knowledge=["elements"])
    for choice in ({}, {"against": "random"}, {"baselines": True}):
        found = compared(alone, **choice)
        assert {(one["model"], one["other"]) for one in found.oriented} == {("able", "random")}
        said = "Only one model answered, able: it is compared with the baselines."
        assert (found.verdict[0] == said) == (not choice.get("baselines"))
        assert any(words.startswith("able scores higher than random") for words in found.verdict)
    two = changed(run, tmp_path / "two", record=lambda found: found["models"][-1].update(kind="baseline"))
    found = compared(two)
    assert {frozenset((one["model"], one["other"])) for one in found.comparisons} == {
        frozenset(("able", "weak")),
        frozenset(("able", "random")),
    }
    assert found.verdict[1] == "Compared with able, behind: random and weak."
    assert set(compared(run, against="random").models) == {"able", "weak", "random"}


def test_one_question_alone_is_named_as_the_reason(run: Path, tmp_path: Path) -> None:
    odd = changed(run, tmp_path / "odd", questions=lambda rows: rows[:1])
    assert any("(only one question): able and weak." in said for said in compared(odd).remarks)


def test_answers_without_a_number_are_left_out(run: Path, tmp_path: Path) -> None:
    """NaN scores and ranks: one question is dropped from the pairs; where there is nothing else, it is said."""

    def spoilt(every: int):
        def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
            ids = sorted({row["question_id"] for row in rows})[::every]
            return [
                {
                    **row,
                    "gold_ranks": [float("nan")],
                    "ranked": [{**one, "score": float("nan")} for one in row["ranked"] or []],
                }
                if row["question_id"] in ids and row["model"] == "able"
                else row
                for row in rows
            ]

        return change

    some = compared(changed(run, tmp_path / "some", answers=spoilt(10)), metrics=["mrr"])
    assert sum(one["n"] for one in some.comparisons) == 120 - 12
    every = compared(changed(run, tmp_path / "all", answers=spoilt(1)), metrics=["mrr"])
    assert every.comparisons == [] and "no question scored for both" in every.remarks[0]


def test_what_no_run_has_is_refused(run: Path) -> None:
    for choice, words in (
        ({"against": "abel"}, "no run has the model 'abel'; did you mean 'able'?"),
        ({"tasks": ["compleation"]}, "no run has the task 'compleation'; did you mean 'completion'?"),
        ({"metrics": ["acuracy"]}, "there is no metric called 'acuracy'; did you mean 'accuracy'?"),
        ({"by": "domains"}, "models cannot be compared by 'domains'; did you mean 'domain'?"),
    ):
        with pytest.raises(InputError) as refused:
            compared(run, **choice)
        assert words in str(refused.value)


def test_the_same_run_twice_and_runs_of_two_suites_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is named twice"):
        compared(run, run.parent / "." / run.name)
    other = changed(run, tmp_path / "other", record=lambda found: found.update(suite="kmir"))
    with pytest.raises(InputError, match=r"different suites cannot be combined \(kmir: other; quickstart: one\)"):
        compared(run, other)


def test_runs_in_folders_of_one_name_are_told_apart_by_the_folders_above(run: Path, tmp_path: Path) -> None:
    folders = [changed(run, tmp_path / name / "run") for name in ("left", "right")]
    assert compared(*folders).models[0] == "able (left/run)"


def test_a_report_of_runs_says_which_questions_are_compared(run: Path, tmp_path: Path) -> None:
    def said(first: bool, name: str, folder: Path) -> tuple[list[str], list[dict[str, Any]]]:
        names = {"able": f"able {name}", "weak": f"weak {name}"}
        part = changed(run, tmp_path / name, questions=lambda rows: half(rows, first=first), names=names)
        findings = combine_runs([open_run(folder), open_run(part)]).findings
        return findings["sentences"], findings["comparisons"]

    sentences, comparisons = said(True, "part", run)
    for task in TASKS:
        own, other = (
            len(values(folder, model, task)) for folder, model in ((run, "able"), (tmp_path / "part", "able part"))
        )
        expected = (
            f"On {task}, models were asked different questions ({other} to {own}): each pair is compared on those"
        )
        assert any(text.startswith(expected) for text in sentences)
    assert all(row["n"] <= 40 for row in comparisons)
    sentences, comparisons = said(False, "rest", tmp_path / "part")
    between = [row for row in comparisons if (" rest" in row["model"]) != (" rest" in row["other"])]
    assert not between and "Not compared, because they share no question: part and rest. " in " ".join(sentences)
