"""A suite is one folder and one registry line: without them the rest imports, lists and runs."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import merkhet
from merkhet.suites import SUITES

FOLDERS = {"quickstart": "quickstart", "kmir": "kmir", "ontoprobe": "ontoprobe", "chneval": "chneval"}
FOLDERS["lama-tk"] = "lama_tk"
IMPORT_ALL = """
import importlib, pkgutil, merkhet
for module in pkgutil.walk_packages(merkhet.__path__, "merkhet."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("merkhet"):
            raise
"""


def remove(source: Path, suite: str) -> None:
    """Delete a suite's folder and its line in the registry."""
    shutil.rmtree(source / "merkhet" / "suites" / FOLDERS[suite])
    registry = source / "merkhet" / "suites" / "__init__.py"
    text = registry.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == suite:
                    assert value.end_lineno is not None
                    del lines[key.lineno - 1 : value.end_lineno]
                    registry.write_text("".join(lines), encoding="utf-8")
                    return
    raise AssertionError(f"{suite} has no registry line")


def run_python(source: Path, cwd: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(source), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, *arguments], env=environment, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def copy_without(suite: str, tmp_path: Path) -> Path:
    source = tmp_path / "src"
    original = Path(merkhet.__file__).parent
    shutil.copytree(original, source / "merkhet", ignore=shutil.ignore_patterns("__pycache__"))
    remove(source, suite)
    return source


def check_rest(suite: str, tmp_path: Path) -> None:
    source = copy_without(suite, tmp_path)
    run_python(source, tmp_path, "-c", IMPORT_ALL)
    listed = {entry["name"] for entry in json.loads(run_python(source, tmp_path, "-m", "merkhet", "suites", "--json"))}
    assert listed == set(FOLDERS) - {suite} and set(FOLDERS) <= set(SUITES)
    other = "lama-tk" if suite == "quickstart" else "quickstart"
    command = ("run", other, "--model", "random", "--limit", "4", "--out", "run", "--quiet", "--set", "report=none")
    run_python(source, tmp_path, "-m", "merkhet", *command)
    assert (tmp_path / "run" / "scores.json").is_file()


def test_the_rest_works_without_lama_tk(tmp_path: Path) -> None:
    check_rest("lama-tk", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("suite", sorted(set(FOLDERS) - {"lama-tk"}))
def test_the_rest_works_without_any_other_suite(suite: str, tmp_path: Path) -> None:
    check_rest(suite, tmp_path)
