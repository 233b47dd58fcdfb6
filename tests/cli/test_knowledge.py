"""The commands on knowledge bases as a user runs them: what they print, as text and JSON, and what they refuse."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from merkhet.knowledge.rules.fixpoint import infer
from merkhet.knowledge.store_import import import_knowledge

FACTS = "subject,predicate,object\nHarlem,part of,Manhattan\nManhattan,part of,New York\nHarlem,part of,Manhattan\n"
ONTOLOGY = """\
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix : <http://a.b/> .
:partOf a owl:TransitiveProperty ; rdfs:label "part of"@en .
:Harlem :partOf :Manhattan ; rdfs:label "Harlem"@en .
:Manhattan :partOf :NewYork ; rdfs:label "Manhattan"@en .
:NewYork rdfs:label "New York"@en, "Big :apple:"@en ; :population 8336817 .
"""


@pytest.fixture
def refuse(merkhet, tmp_path: Path):
    """Runs a command that must be refused, and returns the one line it said."""

    def call(*arguments: object) -> str:
        before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
        done = merkhet("knowledge", *arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stdout == ""
        after = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
        assert after == before, "something was left behind"
        return done.stderr

    return call


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> bytes:
    """A store made of a small ontology, with what follows from it."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "city.ttl").write_text(ONTOLOGY)
    import_knowledge([str(folder / "city.ttl")], folder / "kb.duckdb")
    infer(folder / "kb.duckdb")
    return (folder / "kb.duckdb").read_bytes()


@pytest.fixture
def kb(made: bytes, tmp_path: Path) -> Path:
    (tmp_path / "kb.duckdb").write_bytes(made)
    return tmp_path / "kb.duckdb"


def test_import_says_what_came_and_what_to_do_next(merkhet, tmp_path: Path) -> None:
    (tmp_path / "parts.csv").write_text(FACTS)
    done = merkhet("knowledge", "import", "parts.csv", "--into", "my kb.duckdb", check=0)
    assert done.stdout.splitlines() == [
        "parts.csv (table): 3 facts, 2 new, 1 duplicate, 3 new names",
        "Knowledge base: my kb.duckdb    Contents: merkhet knowledge info 'my kb.duckdb'",
    ]
    assert done.stderr == ""
    done = merkhet("knowledge", "import", "parts.csv", "--into", "my kb.duckdb", check=0)
    assert done.stdout.startswith("parts.csv (table): 3 facts, 0 new, 1 duplicate\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my kb.duckdb", "parts.csv"]


def test_import_as_json_with_bad_rows_left_out(merkhet, tmp_path: Path) -> None:
    (tmp_path / "parts.csv").write_text(FACTS + "a,p\n" * 7)
    done = merkhet(
        "knowledge", "import", "parts.csv", "elements", "--into", "kb.duckdb", "--skip-bad", "--json", check=0
    )
    told = json.loads(done.stdout)
    assert told["store"] == "kb.duckdb"
    first, second = told["imports"]
    assert set(first) == {"place", "source", "facts", "added", "repeated", "names", "bad", "examples", "left_out"}
    assert (first["source"], first["facts"], first["added"], first["bad"]) == ("table", 3, 2, 7)
    assert first["examples"][0] == "parts.csv:5: 2 cells where the header has 3"
    assert (second["source"], second["bad"]) == ("pack", 0)
    text = merkhet("knowledge", "import", "parts.csv", "--into", "kb.duckdb", "--skip-bad", check=0).stdout
    assert "  7 bad rows skipped:\n    parts.csv:5: 2 cells" in text
    assert "    … and 2 more\n" in text


def test_columns_constants_filters_and_options(merkhet, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("who;what;since\nAda;queen;1990\n")
    options = ["--map", "subject=who", "--map", "object=what", "--map", "start=since", "--set", "delimiter=;"]
    given = ["--constant", "predicate=held = office", "--constant", "language=de", "--predicate", "held = office"]
    merkhet("knowledge", "import", "people.csv", *options, *given, "--into", "kb.duckdb", check=0)
    done = merkhet("knowledge", "explain", "kb.duckdb", "Ada|held = office|queen", check=0)
    assert done.stdout == "Ada · held = office · queen  (1990 – …)   [stated: people.csv]\n"


def test_infer_and_explain(merkhet, kb: Path) -> None:
    done = merkhet("knowledge", "infer", kb.name, check=0)
    assert "1 fact inferred from 4 stated, in 1 round" in done.stdout
    assert "transitive" in done.stdout and "no contradictions" in done.stdout
    assert "Proof of a fact: merkhet knowledge explain kb.duckdb SUBJECT PREDICATE OBJECT" in done.stdout
    told = json.loads(merkhet("knowledge", "infer", kb.name, "--json", check=0).stdout)
    assert (told["stated"], told["inferred"], told["by_rule"]) == (4, 1, {"transitive": 1})
    assert {"store", "rounds", "contradictions", "contradicted", "cycles"} < set(told)
    lines = merkhet("knowledge", "explain", kb.name, "Harlem", "part of", "New York", check=0).stdout.splitlines()
    assert lines[0] == "Harlem · part of · Big :apple:   [by transitive]"
    assert len(lines) == 4 and lines[1].startswith("├─ ") and lines[-1].startswith("└─ ")
    (proof,) = json.loads(merkhet("knowledge", "explain", kb.name, "Harlem|part of|New York", "--json", check=0).stdout)
    assert proof["rule"] == "transitive"
    assert [set(one) >= {"fact_id", "subject", "predicate", "object", "source"} for one in proof["premises"]] == [
        True
    ] * 3
    population = merkhet("knowledge", "explain", kb.name, "New York", "http://a.b/population", "8336817", check=0)
    assert "8336817   [stated" in population.stdout


def test_info(merkhet, kb: Path) -> None:
    text = merkhet("knowledge", "info", kb.name, check=0).stdout
    assert text.startswith("kb.duckdb: 5 facts (4 stated, 1 inferred) on 4 subjects by 3 predicates; 1 with a number")
    assert "inferred: 1 by transitive" in text and "names: en 4" in text and "from city.ttl (rdf)" in text
    told = json.loads(merkhet("knowledge", "info", kb.name, "--json", check=0).stdout)
    keys = {"store", "bytes", "facts", "stated", "inferred", "numbers", "timed", "subjects", "predicates", "by_rule"}
    assert keys | {"ontology", "top_predicates", "languages", "shared_labels", "imports", "inference", "cycles"} == set(
        told
    )
    assert (told["facts"], told["inference"]["stale"]) == (5, False)
    (kb.parent / "more.csv").write_text(FACTS)
    merkhet("knowledge", "import", "more.csv", "--into", kb.name, check=0)
    text = merkhet("knowledge", "info", kb.name, check=0).stdout
    assert "Facts were imported after the last inference. Infer again: merkhet knowledge infer kb.duckdb" in text
    assert "ambiguous: 2 labels" in text


def test_export(merkhet, kb: Path, tmp_path: Path) -> None:
    done = merkhet("knowledge", "export", kb.name, "--out", "out", check=0)
    assert done.stdout == "5 facts, 4 names, 0 details: out\n"
    told = json.loads(merkhet("knowledge", "export", kb.name, "--out", "out.csv", "--stated", "--json", check=0).stdout)
    assert told == {"out": "out.csv", "facts": 4}
    done = merkhet("knowledge", "export", kb.name, "--out", "o.nt", "--predicate", "http://a.b/partOf", check=0)
    assert done.stdout.splitlines()[0] == "3 facts, 5 names: o.nt"
    assert "Export to a folder to keep them" in done.stdout
    merkhet("knowledge", "import", "out", "--into", "again.duckdb", check=0)
    one, other = (
        merkhet("knowledge", "explain", name, "Harlem|part of|New York", check=0).stdout
        for name in (kb.name, "again.duckdb")
    )
    assert one == other


def test_lists(merkhet) -> None:
    for command, known in (("sources", "table"), ("queries", "wikidata-facts"), ("rules", "chain")):
        rows = json.loads(merkhet("knowledge", command, "--json", check=0).stdout)
        assert all(set(row) == {"name", "about"} and row["about"] for row in rows), command
        assert known in [row["name"] for row in rows]
        text = merkhet("knowledge", command, check=0).stdout
        assert [row["name"] for row in rows if row["name"] not in text] == [], command


def test_what_is_refused_when_importing(refuse, merkhet, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(FACTS)
    (tmp_path / "bad.csv").write_text(FACTS + "a,p\n")
    into = ["--into", "new/kb.duckdb"]
    line = refuse("import", "bad.csv", *into)
    assert (
        "bad.csv:5: 2 cells where the header has 3. Nothing was imported. Correct the row, or pass --skip-bad" in line
    )
    assert "did you mean 'delimiter'?" in refuse("import", "a.csv", "--set", "delimter=;", *into)
    line = refuse("import", "a.csv", "--map", "sbject=subject", *into)
    assert "no option 'map.sbject'; did you mean 'map.subject'?" in line
    assert "--set must have the form NAME=VALUE, got 'retries'" in refuse("import", "a.csv", "--set", "retries", *into)
    assert "did you mean 'elements'?" in refuse("import", "elments", *into)
    assert "the file name of a knowledge base must end in .duckdb" in refuse("import", "a.csv", "--into", "kb.db")
    with socket.socket() as held:  # A port that is bound and does not listen refuses everybody.
        held.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{held.getsockname()[1]}/sparql"
        query = ["--query", "wikidata-subclasses", "--set", "retries=0"]
        done = merkhet("knowledge", "import", address, *query, *into)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith(f"merkhet: {address} cannot be reached: Connection refused")
        assert not (tmp_path / "new").exists()
    assert merkhet("knowledge", "import", "a.csv").returncode == 2


def test_what_is_refused_of_a_store(refuse, kb: Path) -> None:
    for command in ("info", "infer", ["explain", "x"], ["export", "--out", "o"]):
        name, *rest = [command] if isinstance(command, str) else command
        line = refuse(name, "absent.duckdb", *rest)
        assert "there is no knowledge base absent.duckdb; create one with: merkhet knowledge import" in line
    assert "there is no rule called 'transitiv'; did you mean 'transitive'?" in refuse(
        "infer", kb.name, "--rule", "transitiv"
    )
    assert "there is no fact about 'Bronx'" in refuse("explain", kb.name, "Bronx", "part of", "New York")
    assert "unknown suffix; use .parquet" in refuse("export", kb.name, "--out", "out.xlsx")
    (kb.parent / "text.duckdb").write_text("no database\n" * 500)
    assert "text.duckdb is not a merkhet knowledge base" in refuse("info", "text.duckdb")
