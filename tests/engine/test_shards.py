"""A shard asks its share of the questions, says what it is, and goes on where it was stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_packs import run_small, small_pack, small_run

import merkhet
from merkhet.api import run_shard
from merkhet.core.errors import InputError
from merkhet.engine._ask_step import select_questions
from merkhet.engine.asker import AskParams
from merkhet.engine.distribute.shards import Shard, parse_shard, strip_shard_option
from merkhet.engine.run_files import SHARD_FILE


@pytest.fixture(scope="module")
def ask(made_once):
    """A function that asks a shard of a run on 50 facts."""

    def start(out: Path, shard: str, *models: object):
        knowledge = [str(small_pack(made_once))]
        return run_shard("quickstart", shard, models=models, knowledge=knowledge, limit=60, out=out)

    return start


def answers(folder: Path) -> list[str]:
    (file,) = (folder / ".merkhet" / "shards").glob("*.parquet")
    return pq.read_table(file)["question_id"].to_pylist()


def test_each_question_is_asked_by_one_shard_alone(ask, made_once, tmp_path: Path) -> None:
    shares = []
    for number in (1, 2, 3):
        shard = ask(tmp_path / str(number), f"{number}/3", "random")
        assert shard.shard == Shard(number, 3) and shard.asked == len(answers(shard.folder))
        assert not (shard.folder / "scores.parquet").exists()
        shares.append(answers(shard.folder))
    whole = run_small(small_pack(made_once), tmp_path / "whole", "random", limit=60)
    asked = sorted(question for share in shares for question in share)
    assert all(shares) and asked == sorted(whole.answers["question_id"].to_pylist())


@settings(deadline=None, max_examples=20)
@given(count=st.integers(1, 9), kind=st.sampled_from(["masked", "chat"]))
def test_shares_are_whole_blocks_and_make_up_the_whole(asked_folder: Path, count: int, kind: str) -> None:
    def blocks(shard: tuple[int, int] | None) -> list[tuple[str, ...]]:
        params = AskParams("model", kind, "", "auto", "rank", "rank", shard=shard)
        found = select_questions(asked_folder, params, Path())
        return [tuple(question.question_id for question in block) for block in found.blocks]

    whole = blocks(None)
    dealt = [block for number in range(1, count + 1) for block in blocks((number, count))]
    assert sorted(sum(dealt, ())) == sorted(sum(whole, ()))
    if kind == "masked":  # What is read together is read together in a shard too.
        assert sorted(dealt) == sorted(whole)


@pytest.fixture(scope="module")
def asked_folder(made_once) -> Path:
    return small_run(made_once)


def test_a_shard_is_reused_and_says_what_it_is(ask, tmp_path: Path) -> None:
    folder = ask(tmp_path / "one", "1/2", "random").folder
    content = json.loads((folder / SHARD_FILE).read_text())
    assert (content["number"], content["of"], content["study"]["limit"]) == (1, 2, 60)
    before = {file: file.stat().st_mtime_ns for file in (folder / ".merkhet" / "shards").iterdir()}
    ask(tmp_path / "one", "1/2", "random")
    assert before == {file: file.stat().st_mtime_ns for file in before}
    with pytest.raises(InputError, match=r"is not a finished run; it is a shard: .*merkhet merge"):
        merkhet.open_run(folder)


def test_another_shard_is_not_asked_in_the_same_folder(ask, tmp_path: Path) -> None:
    ask(tmp_path / "one", "1/2", "random")
    with pytest.raises(InputError, match=r"one holds the shard 1/2 of a run; choose another folder"):
        ask(tmp_path / "one", "2/2", "random")


def test_what_is_no_shard_is_refused() -> None:
    for text, reason in (
        ("0/8", "numbered from 1/8 to 8/8"),
        ("9/8", "there is no shard 9/8"),
        ("0/0", "there is no shard 0/0"),
        ("3", "must have the form 3/8"),
        ("a/b", "must have the form 3/8"),
        ("-1/2", "must have the form 3/8"),
        ("/", "must have the form 3/8"),
    ):
        with pytest.raises(InputError, match=reason):
            parse_shard(text)


def test_a_study_that_learns_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"this study trains a model.*--set learning=null.*--engine ray"):
        run_shard("lama-tk", "1/2", settings=["learning.learner=memorize"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_command_of_the_whole_is_that_of_a_shard_without_its_number() -> None:
    assert strip_shard_option("merkhet run kmir --shard 3/8 --out 'a b'") == "merkhet run kmir --out 'a b'"
    assert strip_shard_option("merkhet run kmir --shard=3/8") == "merkhet run kmir"
    assert strip_shard_option("merkhet run kmir") == "merkhet run kmir"
