"""Shared fixtures: the command line, small trained models, finished runs, a browser."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # Before torch is imported: threads of tiny models wait for each other.
settings.register_profile("merkhet", deadline=None)  # A busy machine is no failure.
settings.load_profile("merkhet")

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that asks for a browser, so that no tier starts one by accident."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


@pytest.fixture(autouse=True)
def no_secrets() -> Iterator[None]:
    """Forget the secrets that a test makes known, since they would be removed from what other tests read."""
    yield
    from merkhet.core.redaction import forget_secrets

    forget_secrets()


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """Make a folder once per test run and share it between the worker processes.

    Call it with a name and a function that fills an empty folder. Tests must not change the result: copy it first.
    """
    from shared_folders import make_shared_folder

    return lambda name, make: make_shared_folder(tmp_path_factory, name, make)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data beside the repository; tests that need it skip where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder shared/ with real data is not beside the repository")
    return folder


@pytest.fixture(scope="session")
def model_folders(made_once) -> Mapping[str, Path]:
    """Tiny trained models, one of each family, in the Hugging Face layout; each is made when it is first asked for."""
    from tiny_models import FAMILIES, ModelFolders

    return ModelFolders(lambda name, make: made_once(f"models/{name}", make), FAMILIES)


@pytest.fixture(scope="session")
def writer_folders(made_once) -> Mapping[str, Path]:
    """Tiny trained models of every family that is tuned to write."""
    from tiny_models import ModelFolders
    from writing_models import WRITERS

    return ModelFolders(lambda name, make: made_once(f"writers/{name}", make), WRITERS)


@pytest.fixture
def merkhet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command line in this process; return what it printed and its exit code."""

    def call(*arguments: object, cwd: Path = tmp_path, check: int | None = None) -> subprocess.CompletedProcess[str]:
        from merkhet.cli import run_command

        words = [str(argument) for argument in arguments]
        stdout, stderr, code = io.StringIO(), io.StringIO(), 0
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["merkhet", *words])
            patch.setenv("HF_HUB_OFFLINE", "1")
            patch.chdir(cwd)
            with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
                try:
                    run_command()
                except SystemExit as stop:
                    code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        return _checked(subprocess.CompletedProcess(words, code, stdout.getvalue(), stderr.getvalue()), check)

    return call


@pytest.fixture
def merkhet_process(tmp_path: Path) -> Command:
    """Run the command line in a process of its own, as a shell does."""

    def call(*arguments: object, cwd: Path = tmp_path, check: int | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "merkhet", *map(str, arguments)]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=300)
        return _checked(done, check)

    return call


def _checked(done: subprocess.CompletedProcess[str], check: int | None) -> subprocess.CompletedProcess[str]:
    if check is not None:
        assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="session")
def browser() -> Iterator:
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
