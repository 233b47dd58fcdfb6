"""The folder of a stranger's run or shard runs no code and sends no key, whatever command opens it."""

from __future__ import annotations

import html
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from all_cases import check_all
from small_packs import small_run
from strangers import PARTS, Stranger

FOREIGN = ("their_package.parts:ones", "brass", "merkhet.api:run", "os:system", "{code}:ones", "own.py:ones")


def change_json(file: Path, change: Any) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def strange_run(made_once, stranger: Stranger, metric: str, name: str = "run") -> Path:
    """A finished run whose headline metric and analysis are code; without the hashes that would tell."""
    run = Path(shutil.copytree(small_run(made_once), stranger.folder / name, dirs_exist_ok=True))
    shutil.rmtree(run / ".merkhet", ignore_errors=True)
    (stranger.folder / "own.py").write_text(PARTS)  # In the current folder.
    scores = pq.read_table(run / "scores.parquet")
    names = pa.array([metric] * scores.num_rows)
    pq.write_table(scores.set_column(scores.column_names.index("metric"), "metric", names), run / "scores.parquet")

    def change(record: dict[str, Any]) -> None:
        for entry in record["card"]["headline"]:
            entry["metric"] = metric
        record["card"]["analyses"] = [metric]
        record["suite"] = "brazen"

    change_json(run / "run.json", change)
    study = yaml.safe_load((run / "study.yaml").read_text())
    study |= {"suite": "brazen", "metrics": [metric], "probes": ["their_package.parts:ask"]}
    study["models"] = [{"model": "their_package.parts:model"}, {"model": "random", "trust_remote_code": True}]
    (run / "study.yaml").write_text(yaml.safe_dump(study))
    return run


def check_commands(merkhet, made_once, stranger: Stranger, metric: str) -> None:
    metric = metric.replace("{code}", str(stranger.code))
    for name in ("run", "other"):
        strange_run(made_once, stranger, metric, name)
    merkhet("report", "run", "other", "--out", "r.html", check=0)
    page = html.unescape((stranger.folder / "r.html").read_text())
    assert f"The analysis {metric} is not one of merkhet's" in page and not stranger.ran
    done = merkhet("compare", "run", "other", check=1)  # There is nothing else to compare by.
    assert "is not built into merkhet" in " ".join(done.stdout.split()) and not stranger.ran


def test_no_command_imports_what_a_run_names(merkhet, made_once, stranger: Stranger) -> None:
    check_commands(merkhet, made_once, stranger, "their_package.parts:ones")
    merkhet("compare", "run", "--metric", "their_package.parts:ones")
    assert stranger.ran, "the user may name code"


@pytest.mark.slow
def test_no_command_imports_any_kind_of_code_that_a_run_names(merkhet, made_once, stranger: Stranger) -> None:
    def check(metric: str) -> None:
        check_commands(merkhet, made_once, stranger, metric)
        merkhet("report", "run", "--out", "r.html", check=0)
        merkhet("tables", "run", "--out", "tables")
        merkhet("figures", "run", "--out", "figures")
        assert not stranger.ran

    check_all(check, FOREIGN)


PLAYABLE = (
    ({"model": "their_package.parts:model", "label": "theirs"}, "it is created by code"),
    ({"model": "own.py:model", "label": "theirs"}, "it is created by code"),
    ({"model": "brass", "label": "theirs"}, "it is created by code; to run that code, start with --model brass"),
    ({"model": "theirs", "endpoint": "http://127.0.0.1:9/v1", "chat": {"key": "THEIR_KEY"}}, "behind an endpoint"),
    ({"model": "chat:theirs@http://127.0.0.1:9/v1", "label": "theirs"}, "behind an endpoint"),
    ({"model": "folder", "label": "theirs", "trust_remote_code": True}, ""),
)


def test_the_explorer_loads_no_code_and_sends_no_key(made_once, stranger: Stranger, monkeypatch) -> None:
    from merkhet.cli.explore_command import _run_models
    from merkhet.engine.run_folder import open_run

    monkeypatch.chdir(stranger.folder)
    # A folder of this name must not make the endpoint a path.
    (stranger.folder / "chat:theirs@http:" / "127.0.0.1:9" / "v1").mkdir(parents=True)

    def check(model: dict[str, Any], reason: str) -> None:
        run = strange_run(made_once, stranger, "ones")
        record = {"name": "theirs", "kind": "causal", "fingerprint": "0", "source": ""}
        change_json(run / "run.json", lambda content: content.update(models=[record]))
        study = yaml.safe_load((run / "study.yaml").read_text())
        (run / "study.yaml").write_text(yaml.safe_dump({**study, "models": [model]}))
        (player,) = _run_models(open_run(run), trusted=False)
        assert reason in player.reason and (player.load is None) == bool(reason)
        assert not stranger.ran

    check_all(check, PLAYABLE)


@pytest.fixture
def shard(merkhet, stranger: Stranger) -> Path:
    """The only shard of a study with code of its own, as the stranger has run it."""
    (stranger.folder / "study" / "own.py").write_text(PARTS)
    stranger.write(metrics=["own.py:ones"], probes=["own.py:ask"], tasks=["completion"], limit=2)
    merkhet("run", "study/study.yaml", "--shard", "1/1", "--out", "part", "--quiet", check=0)
    stranger.forget_markers()
    return stranger.folder / "part"


MERGE = ("merge", "part", "--out", "whole", "--quiet")


@pytest.mark.usefixtures("shard")
def test_shards_of_somebody_else_are_merged_with_trust(merkhet, stranger: Stranger) -> None:
    merkhet(*MERGE, check=0)
    shutil.rmtree(stranger.folder / "whole")
    assert stranger.ran, "who has asked the shards has agreed"
    shutil.rmtree(stranger.folder / "cache")
    done = merkhet(*MERGE, check=2)
    own = stranger.folder / "study" / "own.py"
    first, second, remedy = done.stderr.splitlines()
    assert {line.partition("shard.json ")[2] for line in (first, second)} == {
        f"runs {own}:ones (metrics)",
        f"runs {own}:ask (probes)",
    }
    assert "--trust" in remedy and not stranger.ran and not (stranger.folder / "whole").exists()
    assert len(merkhet(*MERGE, "--trust", check=0).stderr.splitlines()) >= 2 and stranger.ran
    merkhet(*MERGE, check=0)
    own.write_text(own.read_text() + "#\n")
    stranger.forget_markers()
    merkhet(*MERGE, check=2)
    assert not stranger.ran


def test_shards_whose_steps_would_load_a_model_are_refused(merkhet, stranger: Stranger, shard: Path) -> None:
    def model_of(step: dict[str, Any]) -> None:
        step["runtime"]["model"] |= {"model": "their_package.parts:model", "trust_remote_code": True}

    def as_score(step: dict[str, Any]) -> None:
        model_of(step)
        step["kind"] = "score"

    def as_learning(step: dict[str, Any]) -> None:
        model_of(step)
        step["function"] = "merkhet.engine.training_steps:learn"
        params = {"name", "kind", "fingerprint", "dtype"}
        step["params"] = {key: value for key, value in step["params"].items() if key in params}
        step["params"] |= {"task": None, "learner": "their_package.parts:learn", "identity": "", "settings": {}}
        step["params"] |= {"seed": 0}
        step["runtime"].pop("engine")

    def outside(step: dict[str, Any]) -> None:
        step["outputs"] = ["../../outside.parquet", *step["outputs"][1:]]

    def absolute(step: dict[str, Any]) -> None:
        step["inputs"] = [str(stranger.code), *step["inputs"]]

    def command(step: dict[str, Any]) -> None:
        step["function"] = "merkhet.__main__:main"

    file = shard / ".merkhet" / "shard.json"
    kept = file.read_text()

    def check(spoil: Any) -> None:
        content = json.loads(kept)
        (step,) = [step for step in content["steps"] if step["kind"] == "ask"]
        spoil(step)
        file.write_text(json.dumps(content))
        done = merkhet(*MERGE, "--trust", check=2)
        assert "shard.json is damaged" in done.stderr and not stranger.ran
        assert not (stranger.folder / "whole").exists()

    check_all(check, [as_score, as_learning, outside, absolute, command])


def test_shards_with_steps_that_load_a_source_or_a_learner_are_refused(
    merkhet, stranger: Stranger, shard: Path
) -> None:
    """Steps after the asking ones are executed, and these have a name or kind that hides what they do."""
    knowledge = [f"{stranger.code}:read={stranger.folder / 'study' / 'facts.csv'}"]
    study = {"suite": "lama-tk", "knowledge": knowledge}
    facts = {
        "function": "merkhet.suites.lama_tk.plan:gather_facts",
        "params": {"study": study, "contents": {"suite": "lama-tk"}},
    }
    learning = {
        "function": "merkhet.engine.training_steps:learn",
        "params": {
            **{"name": "theirs", "kind": "causal", "fingerprint": "", "dtype": "auto", "settings": {}, "seed": 0},
            **{"task": None, "learner": f"{stranger.code}:learn", "identity": ""},
        },
    }
    file = shard / ".merkhet" / "shard.json"
    kept = file.read_text()

    def check(kind: str, runtime: Any, step: dict[str, Any]) -> None:
        content = json.loads(kept)
        content["steps"].append(
            {**step, "name": "last", "kind": kind, "runtime": runtime, "inputs": [], "outputs": ["last.txt"]}
        )
        file.write_text(json.dumps(content))
        assert "shard.json is damaged" in merkhet(*MERGE, "--trust", check=2).stderr
        assert not stranger.ran and not (stranger.folder / "whole").exists()

    check_all(
        check,
        [
            *((kind, None, step) for step in (facts, learning) for kind in ("build", "score")),
            ("score", {"options": {"experiment": "storage"}}, facts),
        ],
    )
