"""``merkhet run --shard`` and ``merkhet merge`` as scripts rely on them, and what ``--engine`` refuses at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ASK = ("run", "quickstart", "--knowledge", "elements", "--model", "random", "--limit", "20")


def test_shards_are_asked_and_put_together(merkhet, tmp_path: Path) -> None:
    first = merkhet(*ASK, "--shard", "1/2", check=0)
    assert "Shard 1/2 is finished: runs/quickstart-shard-1-of-2." in first.stdout
    assert "merkhet merge runs/quickstart-shard-*-of-2 --out RUN" in first.stdout
    second = json.loads(merkhet(*ASK, "--shard", "2/2", "--out", "part-2", "--json", check=0).stdout)
    assert second == {
        **{"folder": "part-2", "shard": 2, "of": 2, "asked": second["asked"]},
        "merge": "merkhet merge part-* --out RUN",
    }
    shown = merkhet("merge", "runs/quickstart-shard-1-of-2", "part-2", "--out", "whole", check=0)
    assert "random" in shown.stdout and "Report: whole/report.html" in shown.stdout
    assert (tmp_path / "whole" / "report.html").is_file()
    merged = merkhet("merge", "runs/quickstart-shard-1-of-2", "part-2", "--out", "whole", "--json", check=0)
    alone = merkhet(*ASK, "--set", "report=none", "--out", "alone", "--json", check=0)
    assert json.loads(merged.stdout) == json.loads(alone.stdout)
    assert (tmp_path / "whole" / "scores.parquet").read_bytes() == (tmp_path / "alone" / "scores.parquet").read_bytes()
    refused = merkhet("merge", "part-2", "--out", "other", check=2)
    assert refused.stderr.startswith("merkhet: a shard is missing: 1/2;") and not (tmp_path / "other").exists()


REFUSED = (
    (("--shard", "0/2"), "shards are numbered from 1/2 to 2/2"),
    (("--engine", "rai"), "unknown engine 'rai'; did you mean 'ray'?"),
    (("--workers", "2"), "--workers is for asking on Ray; add --engine ray, or leave it out"),
    (("--cores-per-worker", "2"), "--cores-per-worker is for asking on Ray"),
)
REFUSED_BY_RAY = (
    (("--engine", "ray://127.0.0.1:1"), "there is no Ray cluster at ray://127.0.0.1:1 (Connection refused)"),
    (("--engine", "ray:127.0.0.1:1"), "there is no Ray cluster at 127.0.0.1:1 (Connection refused)"),
    (("--engine", "ray:nonsense"), "'nonsense' is not an address of a Ray cluster; write ray://HOST:10001"),
    (("--engine", "ray", "--engine", "ray://h:1"), "both ray and ray://h:1 are named as the engine to ask"),
)


@pytest.mark.parametrize("cases", [REFUSED, REFUSED_BY_RAY], ids=["options", "ray"])
def test_what_cannot_be_is_one_line_and_leaves_nothing(merkhet, tmp_path: Path, cases) -> None:
    if cases is REFUSED_BY_RAY:
        pytest.importorskip("ray", reason="Ray is not installed")
    wrong = []
    for options, reason in cases:
        done = merkhet(*ASK, *options, "--out", "run", check=2)
        line = done.stderr
        told = done.stdout == "" and len(line.splitlines()) == 1 and line.startswith("merkhet: ") and reason in line
        wrong += [] if told and not (tmp_path / "run").exists() else [(options, done)]
    assert wrong == []
