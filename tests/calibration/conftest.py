"""Models with known content, trained once for all tests that ask them."""

from __future__ import annotations

import pytest
from brief_calibration import brief_worlds

from merkhet.calibration import calibration_models


@pytest.fixture(scope="session")
def models():
    """Models of the seed 0, trained when the first test asks for them."""
    with calibration_models(seed=0) as made:
        yield made


@pytest.fixture(scope="session")
def brief_models():
    """Models of the seed 0 that were trained for one epoch: for probes that do not listen to them."""
    with calibration_models(seed=0) as made:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("merkhet.calibration._trained_models.WORLDS", brief_worlds())
            for number in range(2):
                made.get("facts", "causal", number, 2)
        yield made


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Cards that a test makes are gone with it."""
    monkeypatch.setenv("MERKHET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
