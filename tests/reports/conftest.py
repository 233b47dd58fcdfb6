from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Render reports with their tables only, as on a machine without ``gnomon[report]``: for what no figure shows."""
    monkeypatch.setattr("gnomon.reports.figures.can_draw", lambda: False, raising=False)
