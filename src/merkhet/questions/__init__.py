"""Questions: schemas, templates, makers, quality filters, splits, review and files."""

from __future__ import annotations
