"""From where ontologies really are to questions: a SPARQL server with Wikidata's shape, and schema.org's."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "knowledge"))
from sparql_server import serving

import merkhet as package

CLASSES = {
    "Q1": ("work", None),
    "Q2": ("book", "Q1"),
    "Q3": ("novel", "Q2"),
    "Q4": ("film", "Q1"),
    "Q5": ("person", None),
}
INSTANCES = {"Q20": ("Emma", "Q3"), "Q21": ("Ivanhoe", "Q3"), "Q22": ("Vertigo", "Q4"), "Q23": ("Dracula", "Q2")}


def wikidata() -> bytes:
    lines = [
        "@prefix wd: <http://www.wikidata.org/entity/> .",
        "@prefix wdt: <http://www.wikidata.org/prop/direct/> .",
        "@prefix p: <http://www.wikidata.org/prop/> .",
        "@prefix ps: <http://www.wikidata.org/prop/statement/> .",
        "@prefix pq: <http://www.wikidata.org/prop/qualifier/> .",
        "@prefix s: <http://www.wikidata.org/entity/statement/> .",
        "@prefix wikibase: <http://wikiba.se/ontology#> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        'wd:P50 rdfs:label "author"@en ; wdt:P1647 wd:P170 ; p:P2302 s:a, s:b . wd:P170 rdfs:label "creator"@en .',
        "s:a ps:P2302 wd:Q21503250 ; pq:P2308 wd:Q1 ; wikibase:rank wikibase:NormalRank .",
        "s:b ps:P2302 wd:Q21510865 ; pq:P2308 wd:Q5, wd:Q1 ; wikibase:rank wikibase:NormalRank .",
    ]
    for name, (label, above) in CLASSES.items():
        lines.append(f'wd:{name} rdfs:label "{label}"@en, "{label}"@de .')
        lines += [f"wd:{name} wdt:P279 wd:{above} ."] if above else []
    lines += [f'wd:{name} rdfs:label "{label}"@en ; wdt:P31 wd:{kind} .' for name, (label, kind) in INSTANCES.items()]
    return "\n".join(lines).encode()


def test_wikidata_by_sparql_becomes_questions(merkhet, tmp_path):
    with serving(wikidata()) as address:
        for query, more in (("ontoprobe-classes", ["--set", "class=Q1"]), ("ontoprobe-properties", [])):
            merkhet("knowledge", "import", address, "--query", query, *more, "--into", "w.duckdb", check=0)
    made = package.build("ontoprobe", knowledge=[str(tmp_path / "w.duckdb")], out=tmp_path / "made")
    asked = {(row["task"], row["prompt"]): row["answers"] for row in made.questions.to_pylist()}
    assert asked["TP", "Emma is a particular [MASK] ."] == ["novel", "book", "work"]
    assert asked["SCO", "Novel has superclass [MASK] ."] == ["book", "work"]
    assert asked["SPO", "Author implies [MASK] ."] == ["creator"]
    assert asked["DM", "One has to be a particular [MASK] to have an author ."] == ["work"]
    assert not any(task == "RG" for task, _ in asked)


def test_a_query_without_its_class_is_refused(merkhet):
    given = ("http://127.0.0.1:9/query", "--query", "ontoprobe-classes", "--into", "w.duckdb")
    done = merkhet("knowledge", "import", *given, check=2)
    assert "needs the option 'class'" in done.stderr
