"""Storing facts in a model: one output for each entity and time, trained to fill masks."""

from __future__ import annotations
