"""Finished runs and questions that several tests of the command line read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from compared_runs import make_run
from small_packs import small_pack
from strangers import Stranger, stranger_in

COINS = tuple(f"coin{number}" for number in range(4))


@pytest.fixture
def coin_runs(made_once, tmp_path: Path) -> Path:
    """Copy two runs without a report: ``one`` asks three models that guess, ``two`` a fourth; both ask random."""

    def make(folder: Path) -> None:
        import merkhet

        (folder / "coins.py").write_text(
            "from merkhet.models.baselines import RandomBaseline\n"
            "class Coin(RandomBaseline):\n    kind = 'causal'\n"
            + "".join(f"def {name}():\n    return Coin('{name}', seed={seed})\n" for seed, name in enumerate(COINS))
        )
        for run, names in (("one", COINS[:3]), ("two", COINS[3:])):
            models = ["random", *(f"{folder / 'coins.py'}:{name}" for name in names)]
            merkhet.run(
                "quickstart",
                models=models,
                limit=20,
                knowledge=["elements"],
                settings=["report=none"],
                out=folder / run,
            )

    shutil.copytree(made_once("coin-runs", make), tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def able_and_weak(made_once) -> Path:
    """A run without a report of a model that knows 80% and one that knows 30% of the answers. Do not change it."""

    def make(folder: Path) -> None:
        make_run(folder / "one", {"able": 0.8, "weak": 0.3}, settings=["report=none"])

    return made_once("able-and-weak", make) / "one"


@pytest.fixture
def built(made_once, tmp_path: Path) -> Path:
    """Copy 60 questions of quickstart, as ``merkhet build`` leaves them, to ``built``."""

    def make(folder: Path) -> None:
        import merkhet

        merkhet.build("quickstart", limit=20, out=folder / "built")

    return Path(shutil.copytree(made_once("built-quickstart", make) / "built", tmp_path / "built"))


@pytest.fixture
def stranger(made_once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stranger]:
    """A study of a stranger in the test's folder, with code that leaves a trace when it is imported."""
    with stranger_in(tmp_path, small_pack(made_once), monkeypatch) as found:
        yield found
