"""Every command and every piece of code in the README runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"^# ([\w.-]+\.(?:py|yaml|csv))\n")


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def commands() -> list[str]:
    """Every command line; one that ends in a backslash goes on in the next line."""
    shown = [text.replace("\\\n", " ") for language, text in blocks() if language == "sh"]
    return [line for text in shown for line in text.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the README shows."""
    folder = tmp_path_factory.mktemp("readme")
    for language, text in blocks():
        named = FILE_NAME.match(text)
        if named:
            (folder / named[1]).write_text(text[named.end() :] if language == "csv" else text, encoding="utf-8")
        elif language == "json":
            (folder / "questions.jsonl").write_text(text, encoding="utf-8")
        elif language == "text":
            (folder / "notes.txt").write_text(text, encoding="utf-8")
    return folder


def test_the_readme_shows_files_for_all_that_can_be_added(folder: Path) -> None:
    for name in ("half_credit.py", "politely.py", "headings.py", "doubles.py", "study.yaml", "rivers.csv", "notes.txt"):
        assert (folder / name).is_file(), name
    assert len(commands()) >= 10


def test_the_commands_run(folder: Path) -> None:
    """In the order of the README, in one folder."""
    for command in commands():
        assert command.startswith("gnomon "), command
        full = f"{sys.executable} -m {command}"
        done = subprocess.run(full, shell=True, capture_output=True, text=True, cwd=folder, timeout=300)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    metrics = (folder / "runs" / "metric" / "scores.json").read_text()
    assert '"half_credit"' in metrics
    assert '"politely"' in (folder / "runs" / "probe" / "scores.json").read_text()
    assert (folder / "notes" / "questions.parquet").is_file()
    assert '"doubling"' in (folder / "runs" / "doubles" / "scores.json").read_text()


def test_the_python_runs(folder: Path) -> None:
    loose = [text for language, text in blocks() if language == "python" and not FILE_NAME.match(text)]
    assert loose
    for code in loose:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "minilm-mlm" in done.stdout
