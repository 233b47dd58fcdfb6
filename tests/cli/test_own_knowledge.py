"""The worked example of docs/knowledge.md runs as it stands there, and shows what it gives."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

from merkhet.questions.question_files import read_questions

ROOT = Path(__file__).parents[2]


def section() -> str:
    text = (ROOT / "docs" / "knowledge.md").read_text(encoding="utf-8")
    return text.split("## Your own knowledge in minutes\n")[1].split("\n## ")[0]


def test_the_example_runs_and_gives_the_questions_that_it_shows(tmp_path: Path, merkhet) -> None:
    blocks = re.findall(r"^```\w*\n(.*?)^```$", section(), re.MULTILINE | re.DOTALL)
    commands = [
        shlex.split(line)
        for block in blocks
        for line in re.sub(r"\\\n\s*", "", block).splitlines()
        if line.startswith("merkhet ")
    ]
    assert [words[1:3] for words in commands] == [["knowledge", "import"], ["knowledge", "schema"], ["build", "kmir"]]
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    for words in commands:
        merkhet(*words[1:], check=0)
    table = (tmp_path / "docs" / "examples" / "products.csv").read_text().splitlines()
    assert len(table) == 61 and blocks[0].splitlines() == table[:7]
    written = (tmp_path / "products.yaml").read_text().splitlines()
    shown = next(block for block in blocks if block.startswith("relations:")).splitlines()
    assert [line for line in shown if line not in written] == []
    prompts = {row["prompt"]: row for row in read_questions(tmp_path / "products-questions").questions.to_pylist()}
    rows = re.findall(r"^\| `(\w+)` \| (.*) \((.*)\) \|$", section(), re.MULTILINE)
    assert len(rows) == 5
    for task, prompt, answer in rows:
        if task == "completion":  # Which of the other questions are drawn depends on all makers.
            assert prompts[prompt]["task"] == task and prompts[prompt]["target"] == answer, prompt


def test_the_command_counts_guesses_and_refuses_to_overwrite(tmp_path: Path, merkhet) -> None:
    merkhet("knowledge", "import", ROOT / "docs" / "examples" / "products.csv", "--into", "kb.duckdb", check=0)
    printed = merkhet("knowledge", "schema", "kb.duckdb", "--out", "s.yaml", check=0).stdout
    assert "s.yaml: 4 relations, 3 hierarchies, 1 comparison; 14 guesses to review" in printed
    command = "merkhet build kmir --knowledge kb.duckdb --set options.schema=s.yaml --out questions"
    assert command in printed and f"#   {command}" in (tmp_path / "s.yaml").read_text().splitlines()
    refused = merkhet("knowledge", "schema", "kb.duckdb", "--out", "s.yaml", check=2)
    assert "s.yaml exists" in refused.stderr
    counts = json.loads(merkhet("knowledge", "schema", "kb.duckdb", "--out", "t.yaml", "--json", check=0).stdout)
    assert counts == {
        "out": "t.yaml",
        "relations": 4,
        "hierarchies": 3,
        "comparisons": 1,
        "reviews": 14,
        "left_out": [],
    }
