"""A study of a stranger, and code in a file and in an installed package that leaves a trace when it is imported."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

PARTS = """
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

Path(__file__).with_suffix(".ran").touch()


def ones(responses):
    return np.ones(len(responses.answers))


ones.chance = ones


def ask(model, questions, methods=()):
    from merkhet.probes.rank import rank_candidates

    return rank_candidates(model, questions, methods)


def model():
    from merkhet.models.baselines import RandomBaseline

    return RandomBaseline("theirs")


def learn(model, training, folder, **rest):
    raise AssertionError


def read(path):
    from merkhet.core.schemas import FACTS, NAMES, make_table
    from merkhet.knowledge.chunk import Chunk

    lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
    rows = [dict(zip(("subject", "predicate", "object"), line)) for line in lines]
    names = sorted({row[key] for row in rows for key in ("subject", "object")})
    return Chunk(make_table(FACTS, rows), make_table(NAMES, [{"entity": name, "label": name} for name in names]))


def suite():
    from merkhet.suites.quickstart.suite import SUITE

    return replace(SUITE, name="theirs")


SUITE = suite()
"""
BASE = {"suite": "quickstart", "knowledge": ["small"], "limit": 5, "models": ["random"], "report": "none"}


@dataclass
class Stranger:
    """A folder with a study, and code beside this folder."""

    folder: Path
    code: Path

    def write(self, **keys: Any) -> Path:
        file = self.folder / "study" / "study.yaml"
        file.write_text(yaml.safe_dump({**BASE, **keys}))
        return file

    @property
    def ran(self) -> bool:
        """Whether the code was imported since the last call; forgets the modules."""
        markers = list(self.folder.rglob("*.ran"))
        self.forget_markers()
        return bool(markers)

    def forget_markers(self) -> None:
        for name in [*sys.modules]:
            if name.startswith(("their_package", "merkhet_local_")):
                del sys.modules[name]
        for marker in self.folder.rglob("*.ran"):
            marker.unlink()


@contextmanager
def stranger_in(folder: Path, pack: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stranger]:
    """A stranger whose study is in ``folder``; nothing has been agreed to, and no code is imported."""
    monkeypatch.setenv("MERKHET_CACHE", str(folder / "cache"))
    shutil.copytree(pack, folder / "study" / "small")
    (folder / "study" / "facts.csv").write_text(
        "subject,predicate,object\n" + "".join(f"place {n},capital,town {n}\n" for n in range(12))
    )
    code = folder / "elsewhere" / "parts.py"
    code.parent.mkdir()
    code.write_text(PARTS)
    installed = folder / "installed"
    (installed / "their_package").mkdir(parents=True)
    (installed / "their_package" / "__init__.py").write_text("")
    (installed / "their_package" / "parts.py").write_text(PARTS)
    info = installed / "brass-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brass\nVersion: 1.0\n")
    groups = {"metrics": "brass = their_package.parts:ones", "models": "brass = their_package.parts:model"}
    groups["suites"] = "brazen = their_package.parts:SUITE"
    (info / "entry_points.txt").write_text("".join(f"[merkhet.{name}]\n{line}\n" for name, line in groups.items()))
    monkeypatch.syspath_prepend(str(installed))
    stranger = Stranger(folder, code)
    stranger.forget_markers()
    yield stranger
    stranger.forget_markers()
