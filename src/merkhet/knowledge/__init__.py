"""Facts, names, ontologies and validity times: where they come from, where they are kept, what follows from them."""

from __future__ import annotations

from merkhet.core.registry import Registry

_HERE = "merkhet.knowledge.sources"
SOURCES = Registry(
    "source",
    {
        "pack": (f"{_HERE}.pack:read_pack", "a folder with pack.yaml, facts.csv and names.csv"),
        "table": (
            f"{_HERE}.fact_table:read_table_file",
            "facts in one .csv, .tsv, .jsonl or .parquet file, with a column map",
        ),
        "tables": (
            f"{_HERE}.table_folder:read_tables",
            "a folder with facts.parquet and names.parquet, as 'export' writes it",
        ),
        "store": (f"{_HERE}.knowledge_base:read_store", "another knowledge base, a .duckdb file"),
        "rdf": (
            f"{_HERE}.rdf:read_rdf",
            "N-Triples, Turtle, RDF/XML, JSON-LD, N-Quads or TriG; OWL ontologies, schema.org",
        ),
        "sparql": (f"{_HERE}.sparql:read_endpoint", "a SPARQL endpoint, by its address"),
        "wikidata": (f"{_HERE}.wikidata:read_dump", "a Wikidata JSON dump, one entity a line"),
        "conceptnet": (f"{_HERE}.conceptnet:read_assertions", "ConceptNet's assertions, 5.7 CSV"),
        "wordnet": (f"{_HERE}.wordnet:read_wordnet", "a folder of WordNet database files"),
        "quadruples": (f"{_HERE}.quadruples:read_quadruples", "a folder of numeric temporal facts with dictionaries"),
    },
)
