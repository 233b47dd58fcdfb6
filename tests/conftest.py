"""Small real models, made once a session, and the command line as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data beside the repository; tests that need it skip where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder shared/ with real data is not beside the repository")
    return folder


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny trained models, one of each family, in the Hugging Face layout."""
    from tiny_models import build_models

    return build_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def writer_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny trained models of every family that is tuned to write."""
    from tiny_models import build_models
    from writing_models import WRITERS

    return build_models(tmp_path_factory.mktemp("writers"), WRITERS)


@pytest.fixture
def gnomon(tmp_path: Path):
    """The command line in its own process: returns what it printed and its exit code."""

    def call(*arguments: object, cwd: Path = tmp_path, check: int | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "gnomon", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            timeout=300,
        )
        if check is not None:
            assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return call


@pytest.fixture(scope="session")
def browser():
    """A real browser; tests that need one skip where there is none."""
    from browsing import open_browser

    with open_browser() as opened:
        yield opened


@pytest.fixture
def page(browser):
    """A fresh page whose errors, blocked requests and refused scripts are failures; its ``problems`` lists them."""
    from browsing import watched_page

    with watched_page(browser) as fresh:
        yield fresh
