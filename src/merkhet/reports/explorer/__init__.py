"""Explorer of a run: a local web page to browse questions, compare two models, and test sentences."""

from __future__ import annotations
