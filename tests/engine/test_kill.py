"""Killed at any moment and started again, a run ends with the same bytes."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
from killed_runs import forked_server, run_killed, run_quietly
from ray_runs import Listener, same_answers, same_bytes
from small_packs import BASELINES, run_small, small_pack

KILLS = 20


def test_killed_once_within_a_block_and_resumed(made_once: Any, tmp_path: Path) -> None:
    """The process ends while it asks the second model; blocks that were answered are not asked again."""
    pack = small_pack(made_once)
    expected = run_small(pack, tmp_path / "undisturbed")
    killed = {"label": "coin", "after": 70}
    options = {"models": list(BASELINES), "knowledge": [str(pack)], "settings": ["report=none"]}
    run_killed("quickstart", killed, tmp_path, out=str(tmp_path / "run"), **options)
    assert not (tmp_path / "run" / "scores.json").exists()
    parts = sorted(file.name for file in (tmp_path / "run").rglob(".merkhet/work/*/*/*.parquet"))
    assert parts == ["00000.parquet", "00001.parquet"]
    listener = Listener()
    done = run_small(pack, tmp_path / "run", progress=listener)
    assert listener.first == {"coin": 64} and listener.done == {"coin": 97}
    assert same_bytes(expected.folder, done.folder, "scores.json", "scores.parquet", "findings.json")
    assert same_answers(expected.folder, done.folder)
    assert not list(done.folder.rglob("*.tmp")) and not (done.folder / ".merkhet" / "work").exists()


@pytest.mark.slow
def test_killed_at_twenty_random_moments(made_once: Any, model_folders: dict[str, Path], tmp_path: Path) -> None:
    """Kills follow one another in a folder until a run gets through; then another folder begins."""
    pack, context = small_pack(made_once), forked_server()

    def start(out: Path) -> Any:
        models = [str(model_folders["llama"]), "frequency"]
        options = {"models": models, "knowledge": [str(pack)], "out": str(out)}
        process = context.Process(target=run_quietly, args=("quickstart", options))
        process.start()
        return process

    def finish(process: Any) -> None:
        process.join(300)
        assert process.exitcode == 0

    finish(start(tmp_path / "warm"))  # It waits until all is imported.
    began = time.monotonic()
    finish(start(tmp_path / "undisturbed"))
    whole = time.monotonic() - began
    expected = (tmp_path / "undisturbed" / "scores.json").read_bytes()

    def check(folder: Path) -> None:
        assert (folder / "scores.json").read_bytes() == expected
        assert (folder / "report.html").stat().st_size > 10_000
        assert not list(folder.rglob("*.tmp"))

    draw = random.Random(20)
    kills = folders = 0
    out = tmp_path / "killed-0"
    while kills < KILLS:
        process = start(out)
        process.join(draw.uniform(0.0, whole))
        if process.exitcode is None:
            process.kill()
            process.join()
        if process.exitcode:
            assert process.exitcode == -9
            kills += 1
        else:
            check(out)
            folders += 1
            out = tmp_path / f"killed-{folders}"
    finish(start(out))
    check(out)
    print(f"{kills} kills over {folders + 1} runs of {whole:.1f} s: every scores.json is the same")
