"""What every room stands on: errors, registries, the tables that travel, ids and atomic files.

Nothing here imports more than pyarrow, and that only when a table is touched.
"""

from gnomon.foundation.errors import GnomonError, InputError, did_you_mean
from gnomon.foundation.files import (
    atomic_path,
    cache_folder,
    file_digest,
    read_yaml,
    refuse_foreign_folder,
    write_json,
    write_text,
)
from gnomon.foundation.identity import content_id, derived_seed, digest
from gnomon.foundation.progress import Progress, SilentProgress
from gnomon.foundation.registry import Registry, load_part, part_identity

SLOT = "[MASK]"
"""The one place in a prompt where an answer goes; every model family gets it in its own form."""

__all__ = [
    "SLOT",
    "GnomonError",
    "InputError",
    "Progress",
    "Registry",
    "SilentProgress",
    "atomic_path",
    "cache_folder",
    "content_id",
    "derived_seed",
    "did_you_mean",
    "digest",
    "file_digest",
    "load_part",
    "part_identity",
    "read_yaml",
    "refuse_foreign_folder",
    "write_json",
    "write_text",
]
