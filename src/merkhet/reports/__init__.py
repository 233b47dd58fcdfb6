"""Reports of a run: HTML report, tables, figures and explorer."""

from __future__ import annotations
