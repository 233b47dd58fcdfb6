"""The explorer: a local page to look at a run question by question, to compare two models, and to play."""

from __future__ import annotations
