"""Steps are reused while nothing they depend on has changed, and only then."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from small_packs import run_small, small_pack

import merkhet
from merkhet.core.errors import InputError


class Watcher:
    """Remembers which models were asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def start(self, label: str, total: int, unit: str) -> None:
        self.asked.append(label)

    def advance(self, label: str, done: int) -> None: ...

    def finish(self, label: str) -> None: ...

    def say(self, line: str) -> None: ...


@pytest.fixture
def run(made_once: Any) -> Callable[..., tuple[merkhet.Run, list[str]]]:
    """A function that runs a study of 50 facts, and returns the run and the models that were asked."""

    def start(out: Path, *models: object, **options: Any) -> tuple[merkhet.Run, list[str]]:
        watcher = Watcher()
        settings = ["controls=[]", *options.pop("settings", ())]
        made = run_small(small_pack(made_once), out, *models, limit=20, progress=watcher, settings=settings, **options)
        return made, watcher.asked

    return start


@pytest.fixture
def bert(model_folders: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(model_folders["bert-uncased"], tmp_path / "bert"))


def test_a_second_run_asks_nothing(run: Any, bert: Path, tmp_path: Path) -> None:
    first, asked = run(tmp_path / "run", str(bert), "random")
    assert asked == ["bert", "random"]
    files = [file for file in first.folder.iterdir() if file.is_file() and file.name != "log.txt"]
    before = {file.name: file.read_bytes() for file in files}
    again, asked = run(tmp_path / "run", str(bert), "random")
    assert asked == []
    assert before == {name: (again.folder / name).read_bytes() for name in before}


def test_another_model_never_gets_this_models_answers(run: Any, bert: Path, tmp_path: Path) -> None:
    before, _ = run(tmp_path / "run", str(bert))
    old = before.answers["ranked"].to_pylist()
    weights = bytearray((bert / "model.safetensors").read_bytes())
    weights[-2] ^= 0x40
    (bert / "model.safetensors").write_bytes(weights)
    after, asked = run(tmp_path / "run", str(bert))
    assert asked == ["bert"]
    assert after.answers["ranked"].to_pylist() != old


def test_a_further_model_leaves_the_others_alone(run: Any, bert: Path, tmp_path: Path) -> None:
    run(tmp_path / "run", str(bert))
    after, asked = run(tmp_path / "run", str(bert), "frequency")
    assert asked == ["frequency"]
    assert set(after.scores["model"].to_pylist()) == {"bert", "frequency"}


def test_other_questions_are_asked(run: Any, bert: Path, tmp_path: Path) -> None:
    run(tmp_path / "run", str(bert))
    _, asked = run(tmp_path / "run", str(bert), seed=1)
    assert asked == ["bert"]


def test_a_damaged_result_is_made_anew(run: Any, bert: Path, tmp_path: Path) -> None:
    first, _ = run(tmp_path / "run", str(bert))
    expected = (first.folder / "scores.json").read_bytes()
    (first.folder / "scores.json").write_text("[]")
    again, asked = run(tmp_path / "run", str(bert))
    assert asked == []
    assert (again.folder / "scores.json").read_bytes() == expected


def test_models_in_another_order_have_the_same_scores(run: Any, bert: Path, tmp_path: Path) -> None:
    one, _ = run(tmp_path / "one", str(bert), "random")
    two, _ = run(tmp_path / "two", "random", str(bert))
    key = [(name, "ascending") for name in ("model", "task", "metric", "domain", "relation")]
    assert one.scores.sort_by(key).equals(two.scores.sort_by(key))


def test_the_run_folder_says_how_it_was_made(run: Any, bert: Path, tmp_path: Path) -> None:
    done, _ = run(tmp_path / "run", str(bert), "random", settings=["report=html"])
    names = {file.name for file in done.folder.iterdir()}
    wanted = {"study.yaml", "run.json", "answers.parquet", "scores.parquet", "scores.json", "report.html", "log.txt"}
    assert wanted <= names
    record = json.loads((done.folder / "run.json").read_text())
    assert record["merkhet"] == merkhet.__version__
    assert record["versions"]["torch"]
    assert len(record["questions"]["digest"]) == 64
    assert all(len(model["fingerprint"]) == 64 for model in record["models"])
    assert done.study.models[0].model == str(bert)
    assert pq.read_table(done.folder / "answers.parquet").num_rows == 2 * record["questions"]["count"]
    columns = ["model", "suite", "task", "probe", "method", "metric", "value", "low", "high", "n", "unusable", "chance"]
    for score in json.loads((done.folder / "scores.json").read_text()):
        assert set(columns) <= set(score)
        assert score["value"] is None or 0 <= score["value"] <= 1


def test_one_run_at_a_time_in_a_folder(run: Any, tmp_path: Path) -> None:
    done, _ = run(tmp_path / "run", "random")
    with open(done.folder / ".merkhet" / "lock", "a+") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another merkhet"):
            run(tmp_path / "run", "random")


def test_a_probe_that_leaves_out_questions_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "lazy.py").write_text(
        "from merkhet.probes.rank import rank_candidates\n"
        "def half(model, questions, methods=()):\n"
        "    yield from rank_candidates(model, questions[::2], methods)\n"
    )
    (tmp_path / "study.yaml").write_text(
        "suite: quickstart\nknowledge: [elements]\nlimit: 10\nmodels: [random]\nprobes: ['lazy.py:half']\n"
    )
    with pytest.raises(merkhet.MerkhetError, match="gave no answer to"):
        merkhet.run(str(tmp_path / "study.yaml"), out=tmp_path / "run")


def test_a_model_given_as_an_object(run: Any, tmp_path: Path) -> None:
    from merkhet.models.baselines import RandomBaseline

    done, asked = run(tmp_path / "run", RandomBaseline("coin", seed=7))
    assert asked == ["coin"]
    assert set(done.scores["model"].to_pylist()) == {"coin"}
