"""What a run looks like to its reader: the report, its tables and its figures."""

from __future__ import annotations
