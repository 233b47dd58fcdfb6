"""The fuzzer finds what it should, goes on after it, and makes the same inputs of the same seed."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import merkhet.cli  # noqa: E402
from fuzz import harness, worker  # noqa: E402
from fuzz.campaign import Campaign  # noqa: E402
from fuzz.targets import Target, targets_of  # noqa: E402

BROKEN = targets_of(["broken_readers"])


def campaign(monkeypatch, tmp_path, names, inputs, guided=False):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("FUZZ_LIMIT", "0.4")
    monkeypatch.setattr("fuzz.campaign._PATIENCE", 2.0)
    done = Campaign({name: BROKEN[name] for name in names}, inputs, 3, tmp_path / "found", guided=guided, workers=2)
    done.run(300)
    return done


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("key_error", "KeyError"),
        ("sleeps", "slow"),
        ("panics", "Panic"),
        ("litters", "left behind"),
        ("half_written", "left behind"),
        ("empty_folder", "left behind"),
        ("beside", "left behind"),
    ],
)
def test_a_fault_of_a_reader_is_a_finding_and_its_folder_goes_away(name, kind, tmp_path):
    found = [harness.try_input(BROKEN[name], data, tmp_path, limit=0.3) for data in (b"xyz", b"b")]
    assert found[0].kind == kind
    assert found[0].is_finding
    if name in ("key_error", "sleeps"):
        assert found[1].kind == harness.ACCEPTED
    assert not list(tmp_path.iterdir())


def test_what_is_taken_or_refused_is_no_finding(tmp_path):
    outcomes = [harness.try_input(BROKEN["good"], data, tmp_path).kind for data in (b"abc", b"abcd")]
    assert outcomes == [harness.ACCEPTED, harness.REFUSED]


@pytest.mark.slow
def test_a_campaign_goes_on_after_findings_hangs_and_crashes(monkeypatch, tmp_path):
    done = campaign(monkeypatch, tmp_path, ["key_error", "deaf", "dies", "good"], 24)
    kinds = {(one.target, one.kind) for one in done.findings.values()}
    assert kinds == {("key_error", "KeyError"), ("deaf", "hang"), ("dies", "crash (SIGSEGV)")}
    assert done.tried == 24
    assert done.tallies["good"].accepted + done.tallies["good"].refused == 6
    assert done.tallies["good"].accepted
    kept = sorted((tmp_path / "found").glob("key-error-*.bin"))
    assert len(kept) == 1
    assert b"b" not in kept[0].read_bytes()
    assert "KeyError" in kept[0].with_suffix(".txt").read_text(encoding="utf-8")
    assert "findings by kind: " in done.table()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
def test_coverage_leads_to_what_chance_does_not_find(monkeypatch, tmp_path):
    monkeypatch.setattr("fuzz.campaign._WAYS", {"plain": 0.01, "guided": 0.99})
    done = campaign(monkeypatch, tmp_path, ["hidden"], 10_000, guided=True)
    assert done.tallies["hidden"].ways["guided"] > 0
    assert [one.data[:2] for one in done.findings.values()] == [b"GN"]


class Gathering:
    def __init__(self, target):
        self.target, self.inputs = target, []

    def one(self, data):
        self.inputs.append(data)


@pytest.mark.parametrize("make", [worker.plain_inputs, worker.structured_inputs])
def test_the_same_seed_gives_the_same_inputs(make, monkeypatch):
    monkeypatch.setattr(worker, "common_bombs", list)
    target = replace(targets_of(["fuzz.readers.studies"])["study"], bombs=None)
    first, second, other = (Gathering(target) for _ in range(3))
    make(first, 40, "1 x 0")
    make(second, 40, "1 x 0")
    make(other, 40, "2 x 0")
    assert len(first.inputs) == 40
    assert first.inputs == second.inputs != other.inputs
    assert len(set(first.inputs)) > 20


def test_every_reader_takes_its_first_example(tmp_path):
    wrong = {}
    for name, target in targets_of().items():
        outcome = harness.try_input(target, target.seeds[0], tmp_path, limit=None)
        if outcome.kind != harness.ACCEPTED:
            wrong[name] = outcome
    assert not wrong


@pytest.mark.parametrize(
    ("said", "code", "kind"),
    [
        ("merkhet: no file x.\n", 2, harness.REFUSED),
        ("merkhet: one.\nand another\n", 2, "several lines"),
        ("Traceback (most recent call last):\n  x\n", 1, "exit code"),
        ("", 2, "no word"),
        ("merkhet: no.\n", 7, "exit code"),
        ("merkhet: " + "x" * 9000 + "\n", 2, "long line"),
        ("", 0, harness.ACCEPTED),
    ],
)
def test_what_the_command_line_says_is_judged(said, code, kind, monkeypatch, tmp_path):
    def main():
        sys.stderr.write(said)
        sys.exit(code)

    monkeypatch.setattr(merkhet.cli, "run_command", main)
    target = Target("x", lambda data, place: None, (b"x",), command=lambda data, place: ["x"])
    assert harness.try_input(target, b"x", tmp_path, command=True).kind == kind
