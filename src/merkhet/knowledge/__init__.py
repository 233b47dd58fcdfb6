"""Knowledge bases: import from sources, storage and inference of facts, names and ontologies."""

from __future__ import annotations

from merkhet.core.registry import PartType, Registry

_SOURCES_PACKAGE = "merkhet.knowledge.sources"
SOURCES = Registry(
    "source",
    {
        "pack": (f"{_SOURCES_PACKAGE}.pack:read_pack", "a folder with pack.yaml, facts.csv and names.csv"),
        "table": (
            f"{_SOURCES_PACKAGE}.fact_table:read_table_file",
            "facts in one .csv, .tsv, .jsonl or .parquet file, with a column map",
        ),
        "tables": (
            f"{_SOURCES_PACKAGE}.table_folder:read_tables",
            "a folder with facts.parquet and names.parquet, as written by 'export'",
        ),
        "store": (f"{_SOURCES_PACKAGE}.knowledge_base:read_store", "another knowledge base, a .duckdb file"),
        "rdf": (
            f"{_SOURCES_PACKAGE}.rdf:read_rdf",
            "N-Triples, Turtle, RDF/XML, JSON-LD, N-Quads or TriG; OWL ontologies, schema.org",
        ),
        "sparql": (f"{_SOURCES_PACKAGE}.sparql:read_endpoint", "the address of a SPARQL endpoint"),
        "wikidata": (f"{_SOURCES_PACKAGE}.wikidata:read_dump", "a Wikidata JSON dump, one entity per line"),
        "conceptnet": (f"{_SOURCES_PACKAGE}.conceptnet:read_assertions", "ConceptNet assertions (5.7, CSV)"),
        "wordnet": (f"{_SOURCES_PACKAGE}.wordnet:read_wordnet", "a folder of WordNet database files"),
        "quadruples": (
            f"{_SOURCES_PACKAGE}.quadruples:read_quadruples",
            "a folder of numeric temporal facts with dictionaries",
        ),
    },
    part_type=PartType("a function of a path, or of a path and a ReadContext", (1, 2)),
)
