"""``merkhet calibrate`` as a user has it: a table and a verdict, an exit code, cards that are kept, clear refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from brief_calibration import brief_worlds

from merkhet.calibration.calibration_cards import find_cards

README = Path(__file__).parents[2] / "README.md"
BRIEF = ("--kind", "causal")
GUESSING = '''
import random

from merkhet.core.records import Answer


def guess(model, questions, methods=()):
    """Whatever the model says, take any candidate."""
    draw = random.Random(0)
    for question in questions:
        order = draw.sample(question.candidates, len(question.candidates))
        rank = 1.0 + order.index(question.target)
        yield Answer(question.question_id, model.name, "guess", "any", order[0],
                     golds=question.answers, gold_ranks=(rank,), gold_ties=(1,))
'''


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def refuse(merkhet, tmp_path: Path):
    """Call, and expect one line that says what is wrong, and nothing left behind."""

    def call(*arguments: object) -> tuple[int, str]:
        before = sorted(tmp_path.iterdir())
        done = merkhet("calibrate", *arguments)
        lines = done.stderr.strip().splitlines()
        assert done.stdout == "" and len(lines) == 1 and lines[0].startswith("merkhet: "), done.stderr
        assert sorted(tmp_path.iterdir()) == before
        return done.returncode, lines[0]

    return call


@pytest.mark.train
def test_the_probe_of_the_readme_passes_and_its_card_is_kept(merkhet, tmp_path: Path) -> None:
    """By ``file.py:function``, as JSON and into a file."""
    code = re.search(r"^# politely\.py\n.*?(?=^```$)", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "politely.py").write_text(code[0], encoding="utf-8")
    probe = "politely.py:politely"
    done = merkhet("calibrate", probe, *BRIEF, "--trainings", 2, "--json", "--out", "cards.json", check=0)
    (card,) = json.loads(done.stdout)
    assert card["probe"] == "politely" and card["kind"] == "causal" and card["passed"] is True
    assert card["made"]["command"] == f"merkhet calibrate {probe} --kind causal --trainings 2"
    assert json.loads((tmp_path / "cards.json").read_text(encoding="utf-8")) == [card]
    assert find_cards([probe], tmp_path) == [card]
    (tmp_path / "politely.py").write_text(f"{code[0]}\n# changed\n", encoding="utf-8")
    assert find_cards([probe], tmp_path) == []


def test_a_probe_that_guesses_fails_with_exit_code_1(merkhet, tmp_path: Path, monkeypatch) -> None:
    """Whatever its models have learned: they are trained for one epoch only."""
    monkeypatch.setattr("merkhet.calibration._trained_models.WORLDS", brief_worlds())
    (tmp_path / "guessing.py").write_text(GUESSING, encoding="utf-8")
    done = merkhet("calibrate", "guessing.py:guess", *BRIEF, "--trainings", 1, "--out", "cards", check=1)
    assert "Traceback" not in done.stderr and "causal model of facts, training 1 of 1" in done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80 and "\x1b[" not in done.stdout
    assert "guess, causal models: accuracy by any, chance 10.0" in lines
    (memorized,) = (line for line in lines if line.startswith("memorized"))
    assert re.fullmatch(r"memorized +trained +\d+\.\d +\[.*\] at least 90% +FAILED *", memorized)
    assert any(re.match(r" +bag of words ", line) for line in lines)
    words = " ".join(done.stdout.split())
    assert "FAILED: guess cannot be trusted on causal models. Sensitivity: it finds" in words
    (card,) = json.loads((tmp_path / "cards" / "guess.json").read_text(encoding="utf-8"))
    assert card["passed"] is False and find_cards(["guessing.py:guess"], tmp_path) == [card]


REFUSED = (
    (["rnk"], 2, "there is no probe called 'rnk'; did you mean 'rank'? (name your own probe as file.py:function)"),
    (["rank", "--kind", "causl"], 2, "there is no kind of model 'causl'; did you mean 'causal'?"),
    (["rank", "--kind", "encoder"], 1, "rank cannot be calibrated: it can ask none of the models (encoders: they"),
    (["nowhere.py:ask"], 2, "there is no file nowhere.py"),
    (["guessing.py:gues"], 2, "guessing.py has no 'gues'; did you mean 'guess'?"),
    (
        ["rank", "--out", "guessing.py"],
        2,
        "guessing.py is a file that does not end in .json; name a FILE.json or a folder",
    ),
    (["guessing.py:SIZE"], 2, "guessing.py:SIZE is of the type int; a probe must be a function that asks a model"),
)


def test_what_cannot_be_done_is_said_in_a_line(refuse, tmp_path: Path) -> None:
    (tmp_path / "guessing.py").write_text(f"SIZE = 3\n{GUESSING}", encoding="utf-8")
    wrong = []
    for arguments, code, words in REFUSED:
        found, line = refuse(*arguments)
        wrong += [(arguments, found, line)] if words not in line or found != code else []
    assert wrong == []


def test_a_number_of_trainings_below_one_is_refused(merkhet) -> None:
    done = merkhet("calibrate", "rank", "--trainings", 0)
    assert done.returncode == 2 and "--trainings" in done.stderr
