"""Python processes that merkhet starts import nothing from the current folder, which may be somebody else's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from merkhet.core.child_python import hidden_folders, python_code, python_module
from merkhet.engine.distribute.ray_cluster import worker_class


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("json", "runpy", "theirs"):
        (tmp_path / f"{name}.py").write_text("print('theirs')")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("hostile")
def test_modules_of_the_current_folder_are_not_imported() -> None:
    done = subprocess.run([*python_module("json.tool"), "--compact"], input="[1, 2]", capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1,2]\n", "")
    done = subprocess.run([*python_code("print(sys.argv[1]); import theirs"), "x"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "x\n") and "No module named 'theirs'" in done.stderr


def test_workers_on_ray_import_nothing_from_the_current_folder(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = [folder for folder in sys.path if folder not in ("", str(hostile))]
    monkeypatch.setattr("sys.path", [*rest])
    hidden = hidden_folders()
    sys.path.insert(0, str(hostile))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    worker_class()({}, 1, hidden)
    assert sys.path == rest
    # ``python -m merkhet`` has it, and so have its workers.
    monkeypatch.setattr("sys.path", ["", *rest])
    assert hidden_folders() == []
