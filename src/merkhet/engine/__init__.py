"""Executes a study: plan, cache, resume; and reads finished runs."""

from __future__ import annotations
