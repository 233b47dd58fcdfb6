"""Two engines, one plan: what DuckDB and Spark make of the same tables is the same, to the letter."""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from spark_sessions import LOCAL

from merkhet.core.compute_engines import Engine, choose_build_engine, choose_engines, parse_engine
from merkhet.core.errors import InputError
from merkhet.knowledge.database import LITERAL, TIME_KEY
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.engines.relational_engine import make_transitive_closure
from merkhet.knowledge.rules import _write_conclusions as conclusions
from merkhet.knowledge.rules.fixpoint import infer
from merkhet.knowledge.rules.rule_files import read_rules
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import import_knowledge
from merkhet.questions.splits import split_sql

pytest.importorskip("pyspark", reason="the engine spark is not installed")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)

# No letter above 0x1FFFF has another case; of those some are enough.
LETTERS = [chr(code) for code in (*range(1, 0xD800), *range(0xE000, 0x20000), *range(0x20000, 0x110000, 101))]
ODD = ['a "b"', "back\\slash", "é→中", "tab\tand\x1f\x0b", "ΣΊΣΥΦΟΣ", "İstanbul straße", "  spaced\u3000", "it's", ""]


@pytest.fixture
def duck():
    with KnowledgeBase() as knowledge:
        yield DuckTables(knowledge.connection)


def both(duck, spark, table, rows):
    for tables in (duck, spark):
        tables.load(table, rows)


def same(duck, spark, query):
    found, other = duck.rows(query), spark.rows(query)
    assert found == other
    return found


@pytest.mark.cluster
def test_every_letter_has_the_same_case_and_the_same_blanks_are_trimmed(duck, spark):
    both(duck, spark, "letters", pa.table({"letter": LETTERS}))
    query = """select count(*), sum(('0x' || left(md5(concat(letter, lower(letter), upper(letter), trim(letter),
        lower('Aσ' || letter))), 10))::bigint) from letters"""
    [(count, found)] = same(duck, spark, query)
    assert count == len(LETTERS) and found


@pytest.mark.cluster
def test_texts_are_drawn_split_and_quoted_alike(duck, spark):
    names = ODD + [f"name {number}" for number in range(300)]
    both(duck, spark, "named", pa.table({"name": names, "place": list(range(len(names)))}))
    shares = split_sql("a", "b", {"train": 0.5, "dev": 0.2, "test": 0.3}, 7)
    for tables in (duck, spark):
        tables.define_function("split_for", ["a", "b"], shares)
        tables.define_function("capital_of", ["t"], "upper(left(t, 1)) || substr(t, 2)")
    rows = same(
        duck,
        spark,
        """select n.place, md5_number_lower(concat_ws(chr(31), '7', n.name)) % 1000000007,
            md5_number_lower(n.name) // 2048 < 4503599627370496, split_for(n.name, 'x'), capital_of(n.name),
            json_text(n.name), json_list([replace(n.name, chr(31), ''), 'b']), sha256(n.name),
            regexp_extract(replace(n.name, chr(11), ''), '\\S+\\z', 0)
        from named n where n.name not like '%' || chr(11) || '%' order by n.place""",
    )
    quoted = [row[0] for row in same(duck, spark, "select json_text(name) from named order by place")]
    assert quoted == [json.dumps(name, ensure_ascii=False) for name in names]
    assert {row[3] for row in rows} == {"train", "dev", "test"}


@pytest.mark.cluster
def test_times_are_alike(duck, spark):
    texts = ["1957", "-0044-03-15", "1957-03", "+2001-09-11", "0", None]
    both(duck, spark, "times", pa.table({"t": pa.array(texts, pa.string()), "place": list(range(len(texts)))}))
    spark.define_function("time_key", ["t", "missing"], TIME_KEY)
    rows = same(duck, spark, "select time_key(t, 0), time_key(t, 99) from times order by place")
    assert rows[0] == (19570000, 19579999) and rows[1] == (-440000 + 315, -440000 + 315) and rows[-1] == (None, None)


@pytest.mark.cluster
def test_literals_are_alike(duck, spark):
    texts = ['"a"', '"a"@en', '"a"^^xsd:gYear', '"Weird Al" Yankovic', '"', '""', '"a\n"', '"a"\n', "a", '"a"@', None]
    both(duck, spark, "texts", pa.table({"t": pa.array(texts, pa.string()), "place": list(range(len(texts)))}))
    spark.define_function("is_literal", ["t"], LITERAL)
    rows = same(duck, spark, "select is_literal(t) from texts order by place")
    assert [row[0] for row in rows] == [*[True] * 3, False, False, True, True, *[False] * 3, None]


@pytest.mark.cluster
def test_lists_windows_and_joins_are_alike(duck, spark):
    rng = random.Random(3)
    rows = [
        {"key": rng.randrange(20), "name": rng.choice("abcdefgh"), "amount": rng.randrange(50) / 4} for _ in range(300)
    ]
    both(duck, spark, "things", pa.Table.from_pylist(rows))
    for query in (
        """select key, list(name order by -amount, name) as names, list(distinct name order by name) as kinds,
            count(distinct name) filter (amount > 3) as n from things group by key order by key""",
        """select * from (select key, name, amount from things
            qualify row_number() over (partition by key order by amount, name) = 1) t order by key""",
        """select key, list(name order by amount, name)[1] as first, array_length(list(name order by name)) as size,
            list_prepend('z', list_filter(list(distinct name order by name), lambda x: x != 'a')) as others
            from things group by key having count(*) > 3 order by key""",
        """select t.key, k from things t cross join (select unnest(range(2, 5)) as k) numbers
            anti join (select distinct key from things where name = 'a') a on a.key = t.key order by t.key, k""",
        "select key // 4, sum(key % 3), min(struct_pack(a := key, b := name)).b from things group by key // 4 "
        "order by key // 4",
        "select concat('x', null, 'y'), 'x' || name, [name, 'b'][2], case when name = 'a' then ['q'] end from things "
        "order by all",
    ):
        assert same(duck, spark, query)


@pytest.mark.cluster
def test_rows_are_numbered_alike_over_many_parts(duck, spark, monkeypatch):
    monkeypatch.setattr("merkhet.knowledge.engines._spark_engine._MAX_ROWS_IN_ONE_SORT", 100)
    names = [f"{number * 7919 % 1000:04d}" for number in range(1000)]
    both(duck, spark, "many", pa.table({"name": names}))
    spark.session.conf.set("spark.sql.adaptive.enabled", "false")  # It would put so few rows into one part.
    try:
        for tables in (duck, spark):
            tables.number_rows("numbered", "select name from many", ["name"], first=11)
        rows = same(duck, spark, "select n, name from numbered order by n")
    finally:
        spark.session.conf.set("spark.sql.adaptive.enabled", "true")
    assert rows[0] == (11, "0000") and rows[-1] == (1010, "0999")
    assert len(spark.files("numbered")) > 1


@pytest.mark.cluster
def test_python_changes_rows_in_both(duck, spark):
    both(duck, spark, "words", pa.table({"word": ["a", "b", "b"]}))
    for tables in (duck, spark):
        tables.map_batches(
            "long",
            "select distinct word from words",
            lambda piece: piece.append_column("twice", pa.array([2 * one for one in piece["word"].to_pylist()])),
        )
        tables.map_batches("none", "select word from words where word = 'q'", lambda piece: piece)
    assert same(duck, spark, "select word, twice from long order by word") == [("a", "aa"), ("b", "bb")]
    assert same(duck, spark, "select count(*) from none") == [(0,)]


@pytest.mark.cluster
def test_closure_finds_every_way_and_ends_in_circles(duck, spark):
    rng = random.Random(0)
    edges = {(f"n{rng.randrange(14)}", f"n{rng.randrange(14)}") for _ in range(16)}
    both(duck, spark, "steps", pa.Table.from_pylist([{"low": low, "high": high} for low, high in edges]))
    reached = set(edges)
    while more := {(a, d) for a, b in reached for c, d in edges if b == c} - reached:
        reached |= more
    assert len(reached) > 2 * len(edges) and any(low == high for low, high in reached - edges), "there is a circle"
    for tables in (duck, spark):
        make_transitive_closure(tables, "select low, high from steps", "ways")
    assert set(same(duck, spark, "select low, high from ways order by low, high")) == reached


def test_rows_made_by_python_may_be_more_than_memory_should_hold(monkeypatch):
    from merkhet.knowledge.engines import _duckdb_engine as module

    monkeypatch.setattr(module, "_BATCH_ROWS", 2048)
    with KnowledgeBase() as knowledge:
        tables = DuckTables(knowledge.connection)
        knowledge.connection.execute("begin")  # Rows of an open transaction have other numbers than those on disk.
        tables.make("many", "select range as n from range(20000)")
        tables.map_batches("changed", "select n from many", lambda piece: piece.append_column("twice", piece["n"]))
        assert tables.rows("select count(*), sum(twice) from changed") == [(20000, 199990000)]


RULES = {
    "symmetric": ["near"],
    "transitive": ["part of"],
    "inverse": [["has", "part of"]],
    "subproperty": [["city in", "part of"], ["price", "amount"]],
    "subclass": [["city", "place"], ["place", "thing"]],
    "domain": [["city in", "city"]],
    "chain": [{"if": ["born in", "part of"], "then": "comes from"}, {"if": ["near", "near", "has"], "then": "by"}],
    "functional": ["near"],
}


def a_world(seed: int) -> pa.Table:
    rng = random.Random(seed)
    places = [f"p{number}" for number in range(16)] + ['odd "place"', "tab\tplace\x1f"]
    rows = []
    for number in range(12):
        rows.append({"subject": rng.choice(places), "predicate": "city in", "object": rng.choice(places)})
        rows.append({"subject": f"x{number}", "predicate": "born in", "object": rng.choice(places), "domain": "people"})
        rows.append({"subject": rng.choice(places), "predicate": "near", "object": rng.choice(places)})
        rows[-1] |= {"start": str(1900 + number), "end": f"{1950 + number}-03"} if number % 3 == 0 else {}
        value = rng.choice([5.0, 1e21, 0.1, 3.25, 1e-7])
        rows.append({"subject": f"x{number}", "predicate": "price", "value": value, "unit": 'e"ur'})
        rows.append({"subject": f"x{number}", "predicate": "price", "object": f'"about {number}"@en'})
    unique = {json.dumps(row, sort_keys=True): row for row in rows if row["subject"] != row.get("object")}
    columns = ("subject", "predicate", "object", "value", "unit", "start", "end", "domain")
    return pa.Table.from_pylist(
        [{name: row.get(name) for name in columns} for row in unique.values()],
        schema=pa.schema([(name, pa.float64() if name == "value" else pa.string()) for name in columns]),
    )


def inferred(store: Path) -> list[tuple]:
    with KnowledgeBase.open(store) as knowledge:
        return knowledge.connection.execute("select * from facts order by fact_id, source").fetchall()


@pytest.fixture
def store(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(a_world(1), tmp_path / "facts.parquet")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(RULES))
    import_knowledge([str(tmp_path / "facts.parquet")], tmp_path / "kb.duckdb")
    return tmp_path / "kb.duckdb"


@pytest.mark.cluster
def test_the_same_follows_on_spark(store, spark, tmp_path):
    rules = read_rules(tmp_path / "rules.yaml")
    other = tmp_path / "other.duckdb"
    shutil.copy(store, other)
    here = infer(store, declared=rules)
    there = infer(other, declared=rules, engine=LOCAL)
    assert here == there and here.inferred > 100 and len(here.by_rule) > 5 and here.contradicted
    assert inferred(store) == inferred(other)


def test_conclusions_are_the_same_by_arrays_and_relationally(store, tmp_path, monkeypatch):
    rules = read_rules(tmp_path / "rules.yaml")
    infer(store, declared=rules)
    quick = inferred(store)
    monkeypatch.setattr(conclusions, "MAX_IN_MEMORY", 0)
    infer(store, declared=rules)
    assert inferred(store) == quick and any(row[10] for row in quick)


def test_engines_are_named_by_words_and_addresses():
    assert parse_engine("spark://host:7077") == Engine("spark", "spark://host:7077")
    assert parse_engine("spark:local[2]") == Engine("spark", "local[2]")
    engines = choose_engines(["spark"], "4GB")
    assert engines.build == Engine("spark", None, "4GB") and engines.ask.name == "here"
    for text, said in (("sparc", "spark"), ("spark:", "address"), ("duckdb:x", "address")):
        with pytest.raises(InputError, match=said):
            parse_engine(text)
    with pytest.raises(InputError, match="ray asks questions, and this command builds; choose duckdb or spark"):
        choose_build_engine("ray")
    with pytest.raises(InputError, match="4GB"):
        choose_build_engine("spark", "four")


def test_a_machine_without_java_is_told_so(store, monkeypatch, tmp_path):
    before = store.read_bytes()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    with pytest.raises(InputError, match="needs Java"):
        infer(store, engine=Engine("spark"))
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="but there is none"):
        infer(store, engine=Engine("spark"))
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(InputError, match="is Java 11"):
        infer(store, engine=Engine("spark"))
    assert store.read_bytes() == before


def test_a_cluster_that_is_not_there_is_told_so(store):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InputError, match=f"no Spark cluster answers at spark://127.0.0.1:{port}"):
        infer(store, engine=Engine("spark", f"spark://127.0.0.1:{port}"))


def test_without_the_package_the_remedy_is_named(tmp_path):
    script = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from merkhet.core.compute_engines import parse_engine\n"
        "try:\n    parse_engine('spark')\nexcept Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ))
    assert "InputError" in done.stdout and "merkhet[spark]" in done.stdout, done
