"""What every room stands on: errors, registries, the tables that travel, ids and atomic files.

Nothing here imports more than pyarrow, and that only when a table is touched.
"""

SLOT = "[MASK]"
"""The one place in a prompt where an answer goes; every model family gets it in its own form."""
