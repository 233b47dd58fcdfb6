"""Shards put together are the run that one process makes; what does not belong together is refused by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from ray_runs import Listener, same_answers, same_bytes
from small_packs import run_small, small_pack, small_run

from merkhet.api import run_shard
from merkhet.core.errors import InputError
from merkhet.engine.distribute.merge_shards import merge_runs
from merkhet.engine.run_files import SHARD_FILE

FILES = ("scores.parquet", "scores.json", "study.yaml", "findings.json", "questions.parquet", "calibration.json")


@pytest.fixture(scope="module")
def models(model_folders) -> tuple[str, ...]:
    return (str(model_folders["bert-uncased"]), "frequency")


@pytest.fixture(scope="module")
def ask(made_once):
    """A function that asks a shard of a run on 50 facts: 106 questions in four blocks."""

    def start(out: Path, number: int, of: int, models, **options) -> Path:
        given = {"knowledge": [str(small_pack(made_once))], "settings": ["report=none"], "limit": 120, **options}
        return run_shard("quickstart", f"{number}/{of}", models=models, out=out, **given).folder

    return start


@pytest.fixture(scope="module")
def whole(made_once):
    """A function that makes the run that shards are set beside."""
    return lambda out, *models, **options: run_small(small_pack(made_once), out, *models, **{"limit": 120, **options})


@pytest.fixture(scope="module")
def shards(ask, models, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three shards, asked on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("shards")
    yield [ask(folder / f"part-{number}", number, 3, models) for number in (1, 2, 3)]
    torch.set_num_threads(threads)


def copied(shards: list[Path], folder: Path) -> list[Path]:
    return [Path(shutil.copytree(shard, folder / shard.name)) for shard in shards]


def test_three_shards_are_the_run_of_one_process(shards, whole, models, tmp_path: Path) -> None:
    alone = whole(tmp_path / "alone", *models)
    merged = merge_runs([shards[2], shards[0], shards[1]], tmp_path / "merged")
    assert same_bytes(alone.folder, merged.folder, *FILES) and same_answers(alone.folder, merged.folder)
    # What is told of the models is what one process tells, but for times; the record names the shards.
    told = ("name", "kind", "fingerprint", "questions", "parameters", "dtype", "rows", "tokens")
    for one, other in zip(alone.record["models"], merged.record["models"], strict=True):
        assert {key: one.get(key) for key in told} == {key: other.get(key) for key in told}
    assert [shard["shard"] for shard in merged.record["shards"]] == ["1/3", "2/3", "3/3"]
    assert "shards" not in alone.record
    # An ordinary run goes on from there, and asks nothing again.
    listener = Listener()
    again = whole(merged.folder, *models, progress=listener)
    assert listener.done == {} and same_bytes(alone.folder, again.folder, *FILES)


def test_shards_are_put_together_where_no_model_is(ask, model_folders, tmp_path: Path) -> None:
    bert = Path(shutil.copytree(model_folders["bert-uncased"], tmp_path / "bert"))
    given = {"limit": 20, "settings": ["report=html"]}
    parts = [ask(tmp_path / str(number), number, 2, [str(bert)], **given) for number in (1, 2)]
    shutil.rmtree(bert)
    merged = merge_runs(parts, tmp_path / "merged")
    assert merged.scores.num_rows > 0 and merged.report.stat().st_size > 10_000


def test_a_merge_that_was_stopped_goes_on(shards, tmp_path: Path) -> None:
    class StoppedError(Exception):
        """Stands for a kill between two steps."""

    class Stops(Listener):
        def say(self, line: str) -> None:
            raise StoppedError

    with pytest.raises(StoppedError):
        merge_runs(shards, tmp_path / "merged", Stops())
    whole = merge_runs(shards, tmp_path / "merged")
    shutil.rmtree(whole.folder / ".merkhet" / "answers")
    (whole.folder / "scores.parquet").write_bytes(b"cut off")
    assert merge_runs(shards, tmp_path / "merged").scores.num_rows > 0


def test_gaps_and_overlaps_are_refused(shards, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a shard is missing: 2/3; run it with 'merkhet run … --shard 2/3'"):
        merge_runs([shards[0], shards[2]], tmp_path / "merged")
    with pytest.raises(InputError, match=r"shards are missing: 1/3, 2/3"):
        merge_runs([shards[2]], tmp_path / "merged")
    with pytest.raises(InputError, match=r"the shard 1/3 is given twice: .*part-1 and .*part-1"):
        merge_runs([shards[0], shards[0], shards[1], shards[2]], tmp_path / "merged")
    twin = Path(shutil.copytree(shards[0], tmp_path / "twin"))
    with pytest.raises(InputError, match=r"the shard 1/3 is given twice: .*(part-1 and .*twin|twin and .*part-1)"):
        merge_runs([*shards, twin], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_mixed_studies_are_refused_by_the_key_that_differs(ask, shards, models, tmp_path: Path) -> None:
    def refused(other: Path, reason: str) -> None:
        with pytest.raises(InputError, match=reason):
            merge_runs([shards[0], other, shards[2]], tmp_path / "merged")
        assert not (tmp_path / "merged").exists()

    refused(ask(tmp_path / "seed", 2, 3, models, seed=7), r"different studies: seed is not the same \(0 and 7\)")
    refused(ask(tmp_path / "limit", 2, 3, models, limit=20), r"limit is not the same \(120 and 20\)")
    refused(ask(tmp_path / "count", 2, 4, models), r"different runs: the number of shards is not the same \(3 and 4\)")
    refused(ask(tmp_path / "model", 2, 3, ["random"]), r"different studies: models is not the same")
    part = copied(shards, tmp_path)[1]
    content = json.loads((part / SHARD_FILE).read_text())
    (part / SHARD_FILE).write_text(json.dumps({**content, "merkhet": "0.0.9"}))
    refused(part, r"part-2 was made by merkhet 0\.0\.9, and this is")


def test_another_model_of_the_same_place_is_refused(ask, model_folders, tmp_path: Path) -> None:
    bert = Path(shutil.copytree(model_folders["bert-uncased"], tmp_path / "bert"))
    one = ask(tmp_path / "1", 1, 2, [str(bert)], limit=20)
    weights = bytearray((bert / "model.safetensors").read_bytes())
    weights[-2] ^= 0x40
    (bert / "model.safetensors").write_bytes(weights)
    two = ask(tmp_path / "2", 2, 2, [str(bert)], limit=20)
    with pytest.raises(InputError, match=r"different models: the fingerprint of bert is not the same \(\w{12} and"):
        merge_runs([one, two], tmp_path / "merged")


def test_other_questions_are_refused(shards, tmp_path: Path) -> None:
    parts = copied(shards, tmp_path)
    file = parts[1] / ".merkhet" / "steps" / "build.json"
    record = json.loads(file.read_text())
    record["outputs"]["questions.parquet"] = "0" * 64
    file.write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"different questions: the digest of the questions is not the same"):
        merge_runs(parts, tmp_path / "merged")


def test_unfinished_and_damaged_shards_are_refused_and_asked_again(ask, shards, models, tmp_path: Path) -> None:
    parts = copied(shards, tmp_path)
    (record,) = (parts[1] / ".merkhet" / "steps").glob("ask-frequency*.json")
    record.unlink()
    again = r"start its command again to resume it: merkhet\.run_shard"
    with pytest.raises(
        InputError, match=rf"the shard 2/3 in .*part-2 is not finished: it lacks answers of freq.*{again}"
    ):
        merge_runs(parts, tmp_path / "merged")
    ask(parts[1], 2, 3, models)
    file = next((parts[2] / ".merkhet" / "shards").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"the shard 3/3 in .*part-3 is not finished: it lacks answers of"):
        merge_runs(parts, tmp_path / "merged")
    ask(parts[2], 3, 3, models)
    (parts[0] / ".merkhet" / "steps" / "build.json").unlink()
    with pytest.raises(InputError, match=r"the shard 1/3 in .*part-1 is not finished: it has no questions yet"):
        merge_runs(parts, tmp_path / "merged")
    ask(parts[0], 1, 3, models)
    assert same_bytes(
        merge_runs(parts, tmp_path / "merged").folder, merge_runs(shards, tmp_path / "two").folder, *FILES
    )


def test_what_is_no_shard_is_refused(made_once, shards, tmp_path: Path) -> None:
    whole = shutil.copytree(small_run(made_once), tmp_path / "whole")
    (tmp_path / "empty").mkdir()
    for folder, reason in (
        (whole, "whole is not a shard of a run: it holds a whole run"),
        (tmp_path / "empty", "empty is not a shard of a run: 'merkhet run --shard' makes one"),
        (tmp_path / "nowhere", "there is no folder .*nowhere"),
    ):
        with pytest.raises(InputError, match=reason):
            merge_runs([*shards[:2], folder], tmp_path / "merged")
    with pytest.raises(InputError, match=r"part-1 is one of the shards; choose another folder with --out"):
        merge_runs(shards, shards[0])
    with pytest.raises(InputError, match="holds other files"):
        (tmp_path / "empty" / "mine.txt").touch()
        merge_runs(shards, tmp_path / "empty")
    part = copied(shards, tmp_path)[0]
    (part / SHARD_FILE).write_text("{}")
    with pytest.raises(InputError, match=r"shard\.json is damaged; run this shard again"):
        merge_runs([part, *shards[1:]], tmp_path / "merged")


def test_one_shard_of_one_is_a_run(ask, whole, tmp_path: Path) -> None:
    part = ask(tmp_path / "part", 1, 1, ["random"], limit=20)
    alone = whole(tmp_path / "alone", "random", limit=20)
    assert same_bytes(alone.folder, merge_runs([part], tmp_path / "merged").folder, *FILES)


def test_a_shard_without_a_question_is_put_together_too(ask, whole, tmp_path: Path) -> None:
    """There are fewer blocks than shards: the last ones have nothing to ask."""
    parts = [ask(tmp_path / str(number), number, 4, ["random"], limit=5) for number in (1, 2, 3, 4)]
    alone = whole(tmp_path / "alone", "random", limit=5)
    assert same_bytes(alone.folder, merge_runs(parts, tmp_path / "merged").folder, *FILES)
