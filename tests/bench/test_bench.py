"""The benchmarks run, say what they measured and agree on the scores; how fast they are is not tested."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from merkhet.knowledge.rules.rulebook import RULES

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"name", "quick", "repeats", "environment", "timings", "ratios", "table", "notes", "details"}
ENVIRONMENT = {"merkhet", "python", "packages", "cpu", "cores", "system", "date"}


def run_benchmark(name: str, results: Path, *options: str, peers: bool = True) -> tuple[str, dict]:
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [
            *(sys.executable, f"bench/{name}.py", "--quick", "--results", str(results)),
            *(["--no-peers"] if peers else []),
            *options,
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": source, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((results / f"{name}.json").read_text(encoding="utf-8"))


def check_common(name: str, printed: str, found: dict) -> None:
    assert set(found) == KEYS
    assert set(found["environment"]) == ENVIRONMENT
    assert found["name"] == name
    assert found["quick"] is True
    assert found["table"]["title"] in printed
    for seconds in found["timings"].values():
        assert len(seconds) == found["repeats"]
        assert min(seconds) > 0
    assert found["ratios"]
    for one in found["ratios"].values():
        assert 0 < one["low"] <= one["high"]
        assert one["value"] > 0


@pytest.mark.slow
def test_startup_times_each_command_and_says_that_the_peer_was_left_out(tmp_path):
    printed, found = run_benchmark("startup", tmp_path)
    check_common("startup", printed, found)
    assert set(found["timings"]) >= {"python -c pass", "import merkhet", "merkhet --help", "merkhet suites"}
    assert "peer not installed: left out (--no-peers)" in printed


@pytest.mark.slow
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "transformers", "merkhet_demo_models")),
    reason="needs torch, transformers and merkhet-demo-models",
)
def test_quickstart_rate_finds_the_scores_of_both_ways_equal(tmp_path):
    printed, found = run_benchmark("quickstart_rate", tmp_path, "--models", "minilm-mlm", "--repeats", "1")
    check_common("quickstart_rate", printed, found)
    details = found["details"]
    one = details["models"]["minilm-mlm"]
    assert details["equal"] is True
    assert 0 <= one["differences"]["plain"] <= details["tolerance"]
    assert one["questions"] + one["unusable"] == 24
    # One row for each candidate by the plain way; no more rows, and the head at fewer positions, by merkhet.
    assert one["counts"]["plain"]["rows"] == one["candidates"]
    assert one["counts"]["merkhet"]["rows"] <= one["candidates"]
    assert one["counts"]["merkhet"]["head_positions"] < one["counts"]["plain"]["head_positions"]
    assert set(found["ratios"]) == {"minilm-mlm: plain / merkhet"}


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pyoxigraph") is None, reason="needs pyoxigraph")
def test_inference_comes_to_what_the_peers_updates_come_to(tmp_path):
    printed, found = run_benchmark("inference", tmp_path, "--repeats", "1", peers=False)
    check_common("inference", printed, found)
    details = found["details"]
    assert details["equal"] is True
    assert details["inferred"] > details["stated"] > 4000
    assert details["form"] in details["forms tried"]
    # Every rule has something to do in this world.
    assert set(details["by rule"]) == {*RULES}
    assert set(found["timings"]) == {"merkhet infer", "  without ids and writing", "pyoxigraph updates"}


@pytest.mark.slow
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("pyoxigraph", "rdflib")),
    reason="needs pyoxigraph and rdflib",
)
def test_importing_tells_time_memory_and_growth(tmp_path):
    printed, found = run_benchmark("importing", tmp_path, "--repeats", "1", peers=False)
    check_common("importing", printed, found)
    assert list(found["details"]["peak_mb"]) == ["2000", "5000", "10000"]
    assert min(found["details"]["peak_mb"].values()) > 20
    assert found["details"]["triples"] > 1900
    assert set(found["ratios"]) == {"N-Triples: rdflib / merkhet", "N-Triples: pyoxigraph / merkhet"}


@pytest.mark.slow
def test_ranking_gives_equal_scores_by_every_way(tmp_path):
    printed, found = run_benchmark("ranking", tmp_path, "--jobs", "masks", "vocabulary")
    check_common("ranking", printed, found)
    assert found["details"]["equal"] is True
    ways = {outcome["way"]: outcome for outcome in found["details"]["outcomes"]}
    assert set(ways) == {"merkhet multiple-mean", "plain masked", "merkhet fill", "fill-mask pipeline"}
    for own, other in (("merkhet multiple-mean", "plain masked"), ("merkhet fill", "fill-mask pipeline")):
        assert ways[other]["difference"] < 1e-3
        assert ways[own]["per_prompt"]["rows"] <= ways[other]["per_prompt"]["rows"]
        assert ways[own]["per_prompt"]["head_positions"] < ways[other]["per_prompt"]["head_positions"]
    assert ways["merkhet multiple-mean"]["per_prompt"]["rows"] < 10 < ways["plain masked"]["per_prompt"]["rows"]
    assert all(outcome["peak_mb"] > 100 for outcome in ways.values())
    assert "Peers not installed: left out (--no-peers)" in printed


@pytest.mark.slow
def test_kmir_makes_all_four_types_at_every_size(tmp_path):
    printed, found = run_benchmark("kmir", tmp_path, "--repeats", "1", peers=False)
    check_common("kmir", printed, found)
    counts = list(found["details"]["counts"].values())
    assert all(set(one) == {"questions", "completion", "distinction", "checking", "reasoning"} for one in counts)
    assert counts[0]["questions"] < counts[1]["questions"] < counts[2]["questions"]


def test_interval_coverage_tells_how_often_the_truth_was_held(tmp_path):
    printed, found = run_benchmark("interval_coverage", tmp_path, peers=False)
    check_common("interval_coverage", printed, found)
    designs = found["details"]["designs"]
    assert len(designs) == 2 and found["details"]["runs"] == 20
    for design, one in designs.items():
        assert design in printed
        assert all(round(20 * share, 6) == round(20 * share) for share in one["coverage"].values())
        assert min(one["coverage"].values()) >= 0.6 and max(one["false"].values()) <= 0.4


@pytest.mark.slow
def test_explorer_asks_for_every_view_and_agrees_with_plain_scans(tmp_path):
    printed, found = run_benchmark("explorer", tmp_path, "--repeats", "2", peers=False)
    check_common("explorer", printed, found)
    views = {name.partition(": ")[2] for name in found["timings"]}
    assert views >= {"questions, first page", "search, few hits", "facets", "question", "compare"}
    assert {name.split(": ")[1] for name in found["ratios"]} == {
        *("by task", "search, few hits", "by model and result", "facets", "question", "compare")
    }
    assert found["details"]["2,000 questions × 2 models"]["megabytes on disk"] > 0


@pytest.mark.slow
def test_baselines_are_timed_with_one_and_with_several_sets(tmp_path):
    printed, found = run_benchmark("baselines", tmp_path, "--repeats", "1", peers=False)
    check_common("baselines", printed, found)
    assert set(found["timings"]) >= {"frequency, 1 set", "frequency, 8 sets", "random, 8 sets", "constant, 1 set"}
    assert set(found["timings"]) >= {"longest, 8 sets", "train-frequency, 8 sets", "overlap, 1 set"}


@pytest.mark.slow
def test_building_with_little_memory_is_measured_around_the_number_of_facts(tmp_path):
    printed, found = run_benchmark("build_memory", tmp_path, "--repeats", "1", peers=False)
    check_common("build_memory", printed, found)
    assert set(found["timings"]) == {f"quickstart, {n:,} facts" for n in (3999, 4000, 4001)} | {"kmir, 4,000 facts"}
    assert all(peak > 50 for peaks in found["details"]["peak_mb"].values() for peak in peaks)
