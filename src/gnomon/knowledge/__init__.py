"""Facts, names and validity times: where they come from and where they are kept."""

from gnomon.foundation.registry import Registry
from gnomon.knowledge.embedded import PackCard, embedded_packs, pack_card
from gnomon.knowledge.material import Material, Predicate, load_material
from gnomon.knowledge.store import KnowledgeBase

SOURCES = Registry(
    "source",
    {
        "pack": ("gnomon.knowledge.sources.pack:read_pack", "a folder with pack.yaml, facts.csv and names.csv"),
        "table": ("gnomon.knowledge.sources.table:read_table_file", "facts in one .csv, .tsv, .jsonl or .parquet file"),
    },
)

__all__ = [
    "SOURCES",
    "KnowledgeBase",
    "Material",
    "PackCard",
    "Predicate",
    "embedded_packs",
    "load_material",
    "pack_card",
]
