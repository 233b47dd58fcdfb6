"""Explorer of a run: a local page to browse questions, compare two models, and try sentences."""

from __future__ import annotations
