"""Suites asked of chat models: every kind of question, few shots, keys, kills, budgets, and what a stranger reads."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from chat_servers import ScriptedServer, completion, running
from small_packs import write_pack

SECRET = "sk-Wv3-never-to-be-written"
NO_REPORT = ("--set", "report=none")


def first_choice(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    """One who names the first choice, fills blanks with Paris, and finds everything true."""
    text = body["messages"][-1]["content"]
    if "\nA. " in text:
        return 200, {}, completion("A")
    for said, reply in (("true or false", "true"), ("“正确”", "正确"), ("one of these alone: ", "")):
        if said in text:
            reply = reply or text.partition(said)[2].split(" or ")[0]
            return 200, {}, completion(reply)
    return 200, {}, completion("Paris")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with running(ScriptedServer(first_choice)) as found:
        yield found


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("MERKHET_CACHE", str(folder))
    return folder


def answers(run: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(run / "answers.parquet").to_pylist())


def scores(run: Path, **wanted: str) -> dict[str, float]:
    rows = json.loads((run / "scores.json").read_text())
    plain = [row for row in rows if "domain" not in row and "relation" not in row]
    return {row["task"]: row["value"] for row in plain if all(row[key] == value for key, value in wanted.items())}


def test_all_types_of_kmir_by_three_probes(
    server: ScriptedServer, merkhet: Any, kmir_few: Path, tmp_path: Path
) -> None:
    model = f"chat:tester@{server.endpoint}"
    done = merkhet(
        *(
            "run",
            "kmir",
            "--data",
            kmir_few,
            "--model",
            model,
            "--model",
            "random",
            "--limit",
            "6",
            "--out",
            "r",
            "--quiet",
        ),
        *NO_REPORT,
        check=0,
    )
    assert "forms" in {one["name"] for one in json.loads((tmp_path / "r" / "analyses.json").read_text())}
    assert {row["probe"] for row in answers(tmp_path / "r") if row["model"] == "tester"} == {"choose"}
    assert set(scores(tmp_path / "r", model="tester", metric="no-answer").values()) == {0.0}
    assert "tester" in done.stdout
    merkhet(
        *("run", "kmir", "--data", kmir_few, "--model", model, "--limit", "6", "--out", "r3", "--quiet"),
        *("--set", "probes=[choose, answer, judge]", *NO_REPORT),
        check=0,
    )
    found = answers(tmp_path / "r3")
    assert {row["probe"] for row in found} == {"choose", "answer", "judge"}
    asked = pq.read_table(tmp_path / "r3" / "questions.parquet").to_pylist()
    assert {row["question_id"] for row in found} == {row["question_id"] for row in asked}
    assert len({(row["task"], row["qset"]) for row in asked}) == 4 * 6
    assert all(row["outcome"] == "answered" and row["replies"] for row in found)
    # Whoever finds everything true is right about half of what is asked in pairs.
    assert scores(tmp_path / "r3", probe="judge", metric="accuracy")["completion"] == 0.5
    assert set(scores(tmp_path / "r3", probe="answer", metric="exact")) == {
        "reasoning",
        "completion",
        "checking",
        "distinction",
    }


def test_the_headline_of_choosers_is_accuracy(
    server: ScriptedServer, merkhet: Any, kmir_few: Path, tmp_path: Path
) -> None:
    def headline(run: str) -> set[str]:
        return {entry["metric"] for entry in json.loads((tmp_path / run / "run.json").read_text())["card"]["headline"]}

    model = ("--model", f"chat:tester@{server.endpoint}")
    kmir = ("run", "kmir", "--data", kmir_few, "--limit", "6", "--quiet", *NO_REPORT)
    merkhet(*kmir, "--model", "random", "--out", "ranked", check=0)
    for run, metrics in (("chosen", "[f1, accuracy]"), ("mrr", "[mrr]")):
        done = merkhet(*kmir, *model, "--model", "random", "--set", f"metrics={metrics}", "--out", run, check=0)
        assert headline(run) == {"accuracy"} and "MRR" not in done.stdout and "F1" not in done.stdout
    assert headline("ranked") == {"f1"}
    both = merkhet("report", "ranked", "chosen", "--out", "both.html", check=0)
    page = (tmp_path / "both.html").read_text()
    assert both.returncode == 0 and "completion accuracy" in page and "completion F1" not in page
    merkhet("run", "lama-tk", *model, "--limit", "3", "--out", "times", "--quiet", *NO_REPORT, check=0)
    assert headline("times") == {"accuracy"}, "the suite computes no accuracy for other models"


def test_several_orders_cancel_a_pull_to_the_first(
    server: ScriptedServer, merkhet: Any, kmir_few: Path, tmp_path: Path
) -> None:
    probe = "probes=[{probe: choose, options: {orders: 4}}]"
    model = f"chat:tester@{server.endpoint}"
    arguments = ("run", "kmir", "--data", kmir_few, "--model", model, "--task", "distinction", "--limit", "20")
    merkhet(*arguments, "--set", probe, "--out", "r", "--quiet", check=0)
    assert scores(tmp_path / "r", metric="accuracy") == {"distinction": 0.25}
    report = (tmp_path / "r" / "report.html").read_text()
    assert "tester prefers the letter A" in report
    assert "Each question was asked in 4 orders of its choices" in report
    assert f"tester was asked at {server.endpoint} (temperature 0, seed 0)." in report
    assert "hash of all weights" not in report
    bad = merkhet(*arguments, "--set", "probes=[{probe: choose, options: {order: 4}}]", "--out", "b", check=2)
    assert "the probe choose has no option 'order'; did you mean 'orders'?" in bad.stderr
    bad = merkhet(*arguments, "--set", "probes=[{probe: choose, options: {orders: many}}]", "--out", "b", check=2)
    assert "orders must be an integer ≥ 1, got 'many'" in bad.stderr


def test_examples_come_from_the_training_questions(
    server: ScriptedServer, merkhet: Any, kmir_few: Path, tmp_path: Path
) -> None:
    model = f"chat:tester@{server.endpoint}"
    arguments = (
        "run",
        "kmir",
        "--data",
        kmir_few,
        "--model",
        model,
        "--task",
        "checking",
        "--limit",
        "5",
        "--quiet",
        *NO_REPORT,
    )
    merkhet(*arguments, "--set", "probes=[{probe: choose, options: {shots: 3}}]", "--out", "r", check=0)
    bodies = [one for one in server.requests if len(one["messages"]) > 1]
    assert len(bodies) == 5 and {len(one["messages"]) for one in bodies} == {7}
    shown = {one["messages"][0]["content"].split("\n\n")[1] for one in bodies}
    assert len(shown) == 1
    asked = {
        row["prompt"].replace("[MASK]", "____") for row in pq.read_table(tmp_path / "r/questions.parquet").to_pylist()
    }
    assert not shown & asked
    none = merkhet(
        *("run", "quickstart", "--model", model, "--out", "q"),
        *("--set", "probes=[{probe: choose, options: {shots: 3}}]"),
        check=2,
    )
    assert "quickstart has no training questions to show as examples (shots)" in none.stderr


def test_twenty_choices_and_rules_of_ontoprobe(server: ScriptedServer, merkhet: Any, tmp_path: Path) -> None:
    tasks = [word for task in ("SCO-choice", "RG-choice", "rdfs9-choice", "rdfs11-choice") for word in ("--task", task)]
    model = f"chat:tester@{server.endpoint}"
    given = ("--model", model, "--limit", "10", "--set", "learning=null", *NO_REPORT)
    merkhet("run", "ontoprobe", *tasks, *given, "--out", "r", check=0)
    found = answers(tmp_path / "r")
    assert {row["probe"] for row in found} == {"choose"}
    names = {one["name"]: one for one in json.loads((tmp_path / "r" / "analyses.json").read_text())}
    assert {"memorizing", "premises", "forms"} <= set(names)
    settings = {row["premises"] for row in pq.read_table(tmp_path / "r" / "settings.parquet").to_pylist()}
    assert settings >= {"EX/EX", "NO/EX"}


@pytest.mark.slow
def test_chinese_clozes_and_questions_about_times(server: ScriptedServer, merkhet: Any, tmp_path: Path) -> None:
    model = f"chat:tester@{server.endpoint}"
    merkhet("run", "chneval", "--model", model, "--limit", "4", "--out", "zh", "--quiet", *NO_REPORT, check=0)
    assert any("下列哪一个选项应填入空白处" in one["messages"][-1]["content"] for one in server.requests)
    chosen = [row for row in answers(tmp_path / "zh") if row["probe"] == "choose" and row["unusable"] is None]
    assert chosen and all(row["outcome"] == "answered" for row in chosen)
    merkhet("run", "lama-tk", "--model", model, "--limit", "4", "--out", "tk", "--quiet", *NO_REPORT, check=0)
    assert {row["outcome"] for row in answers(tmp_path / "tk")} == {"answered"}


def test_a_key_is_nowhere_but_in_the_request(
    server: ScriptedServer, merkhet: Any, tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MERKHET_TEST_KEY", SECRET)
    chat = {"key": "MERKHET_TEST_KEY", "concurrency": 4}
    study = {
        "suite": "quickstart",
        "knowledge": [str(write_pack(tmp_path / "small"))],
        "limit": 5,
        "models": [{"model": "tester", "endpoint": server.endpoint, "label": "a tester", "chat": chat}],
    }
    (tmp_path / "study.yaml").write_text(json.dumps(study))
    done = merkhet("run", "study.yaml", "--out", "r", "--quiet", "--trust", check=0)
    assert {one["authorization"] for one in server.headers} == {f"Bearer {SECRET}"}
    files = [file for folder in (tmp_path / "r", own_cache) for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 10
    for file in files:
        assert SECRET.encode() not in file.read_bytes(), file
    assert SECRET not in done.stdout + done.stderr
    monkeypatch.delenv("MERKHET_TEST_KEY")
    for file in (tmp_path / "r" / ".merkhet").rglob("*.parquet"):
        file.unlink()
    missing = merkhet("run", "study.yaml", "--limit", "6", "--out", "r2", check=2)
    assert "chat.key must be the name of an environment variable that is set" in missing.stderr
    assert "MERKHET_TEST_KEY" not in missing.stderr


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_and_asks_nothing_again_that_was_answered(
    server: ScriptedServer, merkhet: Any, tmp_path: Path
) -> None:
    """The server answers 50 questions, and then nothing until the process is gone."""
    answered, gone = itertools.count(1), threading.Event()

    def some(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if next(answered) > 50:
            gone.wait(300)
        return first_choice(body, headers)

    server.respond = some
    pack = write_pack(tmp_path / "small")
    given = ["run", "quickstart", "--knowledge", str(pack), "--model", f"chat:tester@{server.endpoint}", *NO_REPORT]
    given += ["--out", "r", "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "merkhet", *given],
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while len(server.requests) <= 50 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    gone.set()
    assert 50 < len(server.requests) < 97
    server.respond = first_choice
    merkhet(*given, check=0)
    sent = Counter(json.dumps(one, sort_keys=True) for one in server.requests)
    # What was in flight when it was killed (eight, and one more each) was never received.
    assert sum(count - 1 for count in sent.values()) <= 16
    assert len(answers(tmp_path / "r")) == 97
    again = len(server.requests)
    merkhet(*given, check=0)
    assert len(server.requests) == again


def test_a_budget_stops_the_run_in_clear_words_and_it_goes_on(
    server: ScriptedServer, merkhet: Any, tmp_path: Path
) -> None:
    model = {"model": "tester", "endpoint": server.endpoint, "chat": {"requests": 40}}
    study = {"suite": "quickstart", "limit": 20, "models": [model], "report": "none"}
    study["knowledge"] = [str(write_pack(tmp_path / "small"))]
    (tmp_path / "study.yaml").write_text(json.dumps(study))
    first = merkhet("run", "study.yaml", "--out", "r", "--quiet", check=1)
    assert "tester: the budget of 40 requests is exhausted." in first.stderr
    assert "start again to continue" in first.stderr
    assert len(server.requests) == 40
    merkhet("run", "study.yaml", "--out", "r", "--quiet", check=0)
    assert len(answers(tmp_path / "r")) == 46
    assert len(server.requests) <= 48


def test_what_is_wrong_is_said_in_one_line(server: ScriptedServer, merkhet: Any, tmp_path: Path) -> None:
    given = ("--knowledge", write_pack(tmp_path / "small"), "--model", f"chat:tester@{server.endpoint}")
    for status, said, told in (
        (401, "bad key", "needs a key"),
        (404, "no such model", "has no model 'tester': no such model (404)"),
    ):
        content = json.dumps({"error": {"message": said}}).encode()
        server.respond = lambda body, headers, status=status, content=content: (status, {}, content)
        done = merkhet("run", "quickstart", *given, "--limit", "3", "--out", str(status), check=2)
        assert told in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_model_here_is_asked_in_all_forms_and_they_are_compared(merkhet: Any, tmp_path: Path) -> None:
    probes = "probes=[rank, {probe: choose, options: {orders: 2}}, answer]"
    given = (
        "--model",
        "smollm2-135m",
        "--task",
        "completion",
        "--limit",
        "6",
        "--set",
        probes,
        "--out",
        "r",
        *NO_REPORT,
    )
    merkhet("run", "quickstart", *given, "--quiet", check=0)
    forms = next(one for one in json.loads((tmp_path / "r/analyses.json").read_text()) if one["name"] == "forms")
    pairs = [row[1] for table in forms["tables"] for row in table["rows"] if "–" in str(row[1])]
    assert pairs == [
        "ranked by likelihood – chosen by letter",
        "ranked by likelihood – answered freely",
        "chosen by letter – answered freely",
    ]
    assert len(forms["figures"]) == 2
    assert {row["method"] for row in answers(tmp_path / "r") if row["probe"] == "choose"} == {"letters"}


def test_a_model_here_may_be_of_the_kind_chat(tmp_path: Path) -> None:
    from merkhet.engine.ask_planning import select_probes
    from merkhet.engine.resolve_study import Request, resolve_study
    from merkhet.suites import SUITES

    models = [{"model": "smollm2-135m", "kind": "chat", "chat": {"system": "Be brief."}}, {"model": "minilm-mlm"}]
    resolved = resolve_study(Request("quickstart", models=models), SUITES)
    talked, ranked = resolved.models
    assert (talked.kind, ranked.kind) == ("causal", "masked")
    assert [one.probe for one in select_probes(talked, resolved.study.probes)] == ["choose"]
    assert [one.probe for one in select_probes(ranked, resolved.study.probes)] == ["rank"]
    usual = resolve_study(Request("quickstart", models=["smollm2-135m"]), SUITES).models[0]
    assert usual.fingerprint != talked.fingerprint
