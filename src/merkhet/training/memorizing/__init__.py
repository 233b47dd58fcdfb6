"""Memorizing of facts: a model with one output for each entity and time, trained to fill masks in statements."""

from __future__ import annotations
