"""Foundations shared by all packages: errors, registries, table schemas, content ids, atomic files.

Only pyarrow is imported, and only by the modules that handle tables.
"""

SLOT = "[MASK]"
"""Marks where the answer goes in a prompt; each model family replaces it by its own form."""
