"""Planning and execution of studies, with caching and resuming, and access to finished runs."""

from __future__ import annotations
