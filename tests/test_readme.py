"""Every command and every piece of code in the README runs as it stands there."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"^# ([\w.-]+\.(?:py|yaml|csv))\n")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
NEEDS_A_SHELL = re.compile(r"[|<>*?$;&`]")
ADDED = {"half_credit.py": '"half_credit"', "politely.py": '"politely"', "doubles.py": '"doubling"'}
"""What the scores have of a part in a file that the README shows."""


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def commands() -> list[str]:
    """Every command line; one that ends in a backslash goes on in the next line."""
    shown = [re.sub(r"\\\n\s*", "", text) for language, text in blocks() if language == "sh"]
    return [line for text in shown for line in text.splitlines()]


def loose_python() -> list[str]:
    return [text for language, text in blocks() if language == "python" and not FILE_NAME.match(text)]


def write_files(folder: Path) -> None:
    """Write every file that the README shows."""
    for language, text in blocks():
        named = FILE_NAME.match(text)
        if named:
            (folder / named[1]).write_text(text[named.end() :] if language == "csv" else text, encoding="utf-8")
        elif language == "json":
            (folder / "questions.jsonl").write_text(text, encoding="utf-8")
        elif language == "text":
            (folder / "notes.txt").write_text(text, encoding="utf-8")


def words_of(command: str) -> list[str]:
    return shlex.split(command, comments=True)


def values_of(command: str, *options: str) -> list[str]:
    words = words_of(command)
    return [value for option, value in pairwise(words) if option in options]


def makes(command: str) -> set[str]:
    """The paths that a command writes; inference changes the store that it is given."""
    words = words_of(command)
    changed = words[3:4] if words[1:3] == ["knowledge", "infer"] else []
    return {*values_of(command, "--out", "--into"), *changed}


def names(command: str, path: str) -> bool:
    """Whether a command reads or writes a path: as a word, after an equals sign, or something in that folder."""
    words = [word for word in words_of(command) if not word.startswith("-")]
    return any(word in (path, f"{path}/") or word.endswith(f"={path}") or word.startswith(f"{path}/") for word in words)


def needed_by(command: str) -> list[str]:
    """The commands before this one that write what it names, in the order of the README."""
    before = commands()[: commands().index(command)]
    return [other for other in before if any(names(command, path) for path in makes(other))]


def is_expensive(command: str) -> bool:
    """Whether it or what it needs asks or trains a model with weights, or makes questions of all embedded facts."""
    models = values_of(command, "--model")
    guesses = bool(models) and set(models) <= {"random", "frequency"}
    asks = words_of(command)[1] in ("run", "memorize", "calibrate") and not guesses
    builds_all = words_of(command)[1] == "build" and not values_of(command, "--knowledge", "--data")
    return asks or builds_all or any(is_expensive(other) for other in needed_by(command))


def call(command: str, folder: Path) -> str:
    """Run a command in this process, or in a shell where it needs one; it must not fail. Return what it printed."""
    assert command.startswith("merkhet "), command
    if NEEDS_A_SHELL.search(QUOTED.sub("", command)):
        full = f"{sys.executable} -m {command}"
        done = subprocess.run(full, shell=True, capture_output=True, text=True, cwd=folder, timeout=300)
        code, printed = done.returncode, done.stdout + done.stderr
    else:
        code, printed = call_here(words_of(command), folder)
    assert code == 0, f"{command}\n{printed}"
    return printed


def call_here(words: list[str], folder: Path) -> tuple[int, str]:
    from merkhet.cli import run_command

    printed, code = io.StringIO(), 0
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        patch.setattr(sys, "argv", words)
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.chdir(folder)
        try:
            run_command()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return code, printed.getvalue()


Runner = Callable[[str], Path]


@pytest.fixture(scope="session")
def done_once(made_once) -> Runner:
    """Run a command once per test run, after those that it needs; return the folder in which it ran."""

    def done(command: str) -> Path:
        def make(folder: Path) -> None:
            write_files(folder)
            for other in needed_by(command):
                shutil.copytree(done(other), folder, dirs_exist_ok=True)
            call(command, folder)

        return made_once(f"readme-{commands().index(command)}", make)

    return done


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with every file that the README shows, which is also the working directory."""
    write_files(tmp_path)
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def test_the_readme_shows_files_for_all_that_can_be_added(folder: Path) -> None:
    for name in ("half_credit.py", "politely.py", "headings.py", "doubles.py", "study.yaml", "rivers.csv", "notes.txt"):
        assert (folder / name).is_file(), name
    assert len(commands()) >= 10 and len(set(commands())) == len(commands())
    used = [name for name in ADDED if any(name in command for command in commands())]
    assert used == list(ADDED), "each is used by a command"


def test_what_a_command_needs_is_found_by_the_paths_it_names() -> None:
    """Of every command that reads a run, a store or a folder of questions, the README makes that before."""
    made = {path for command in commands() for path in makes(command)}
    for command in commands():
        for path in made - makes(command):
            if names(command, path):
                assert any(path in makes(other) for other in needed_by(command)), (command, path)
    assert any(needed_by(command) for command in commands())


@pytest.mark.parametrize(
    "command",
    [pytest.param(one, marks=[pytest.mark.slow] if is_expensive(one) else []) for one in commands()],
    ids=lambda command: " ".join(words_of(command)[1:]).replace("/", "|")[:60],
)
def test_the_command_runs(done_once: Runner, command: str) -> None:
    folder = done_once(command)
    assert [path for path in makes(command) if not (folder / path).exists()] == []
    for out in values_of(command, "--out"):
        if words_of(command)[1] == "build":
            assert (folder / out / "questions.parquet").is_file()
        for file, scored in ADDED.items():
            if names_part(command, file):
                assert scored in (folder / out / "scores.json").read_text(encoding="utf-8")


def names_part(command: str, file: str) -> bool:
    return f"{file}:" in command


COIN = """
from merkhet.models.baselines import RandomBaseline

class Coin(RandomBaseline):
    kind = "causal"

def coin():
    return Coin("coin", seed=0)
"""


def test_what_the_readme_adds_runs_with_a_model_that_guesses(folder: Path) -> None:
    """The metric, the probe and the suite that it shows, each by its own command, without weights and report."""
    (folder / "coin.py").write_text(COIN, encoding="utf-8")
    for file, scored in ADDED.items():
        command = next(command for command in commands() if names_part(command, file))
        words = words_of(command)
        models = [place for place, word in enumerate(words) if word == "--model"]
        kept = [word for place, word in enumerate(words) if place not in models and place - 1 not in models]
        small = ["--knowledge", "elements"] if "quickstart" in words else []
        code, printed = call_here([*kept, *small, "--model", "coin.py:coin", "--set", "report=none"], folder)
        assert code == 0, printed
        assert scored in (folder / values_of(command, "--out")[0] / "scores.json").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("code", loose_python(), ids=lambda code: code.strip().splitlines()[-1][:60])
def test_the_python_runs(folder: Path, code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "minilm-mlm" in done.stdout


def test_the_readme_shows_python() -> None:
    assert loose_python()
