"""Foundations shared by all packages: errors, registries, table schemas, content ids, atomic files.

Only pyarrow is imported, and only by the modules that handle tables.
"""

SLOT = "[MASK]"
"""Placeholder of the answer in a prompt; each model family replaces it, for example by a mask token."""
