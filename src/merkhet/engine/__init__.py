"""Execution of studies (plan, cache, resume), and access to finished runs."""

from __future__ import annotations
