"""A generated knowledge base for benchmarks of question making: ten domains in Wikidata's vocabulary, any size.

At scale 1 it has KMIR's own size: 95,532 entities and 192,078 triples. Names are made of syllables, unique within
their kind; every relation is one that the suite kmir has templates for.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import duckdb

ENTITIES, TRIPLES = 95_532, 192_078
_SYLLABLES = [first + second for first in "bdfglmnprst" for second in "aeiou"][:20]
# kind: share of the entities, and what follows its made-up name.
KINDS = {
    "country": (0.002, ""),
    "continent": (0.0002, "ia"),
    "city": (0.08, "ville"),
    "occupation": (0.002, "er"),
    "taxon": (0.12, "us"),
    "disease": (0.05, "itis"),
    "drug": (0.04, "ol"),
    "specialty": (0.0005, "ology"),
    "law": (0.04, " Act"),
    "conflict": (0.01, " War"),
    "branch": (0.0005, " Corps"),
    "film": (0.12, " Night"),
    "song": (0.12, " Song"),
    "genre": (0.001, "core"),
    "thing": (0.03, "le"),
    "element": (0.03, "ium"),
    "person": (0.0, ""),
}
# predicate, subject kind, object kind, domain, share of the subjects that have it.
RELATIONS = (
    ("P17", "city", "country", "geography", 1.0),
    ("P30", "country", "continent", "geography", 1.0),
    ("P36", "country", "city", "geography", 1.0),
    ("P19", "person", "city", "history", 0.6),
    ("P27", "person", "country", "history", 0.7),
    ("P106", "person", "occupation", "history", 0.8),
    ("P26", "person", "person", "history", 0.2),
    ("P171", "taxon", "taxon", "biology", 1.0),
    ("P1995", "disease", "specialty", "medicine", 1.0),
    ("P2176", "disease", "drug", "medicine", 1.0),
    ("P1001", "law", "country", "law", 1.0),
    ("P241", "person", "branch", "military", 0.1),
    ("P607", "person", "conflict", "military", 0.1),
    ("P57", "film", "person", "film-tv", 1.0),
    ("P136", "film", "genre", "film-tv", 1.0),
    ("P175", "song", "person", "music", 1.0),
    ("P86", "song", "person", "music", 0.8),
    ("P461", "thing", "thing", "commonsense", 0.8),
    ("P279", "thing", "thing", "commonsense", 0.9),
    ("P2101", "element", None, "physics", 1.0),
    ("P61", "element", "person", "chemistry", 1.0),
)


_ALIASES = """case when n % 100 = 0 then ['old ' || label, lead(label) over (order by n)]
    when n % 3 = 0 then ['old ' || label] else [] end"""
"""Every third entity has an alias, and every hundredth is also called as the next one is."""


def make_world(folder: Path, scale: float = 1.0) -> tuple[int, int]:
    """Write facts.parquet and names.parquet; how many triples and entities there are."""
    folder.mkdir(parents=True, exist_ok=True)
    entities, triples = round(ENTITIES * scale), round(TRIPLES * scale)
    counts = {kind: max(2, int(entities * share)) for kind, (share, _) in KINDS.items() if kind != "person"}
    counts["person"] = entities - sum(counts.values())
    connection = duckdb.connect()
    connection.execute(
        "create table names (entity varchar, language varchar, label varchar, aliases varchar[], kind varchar)"
    )
    connection.execute(
        "create table facts (subject varchar, predicate varchar, object varchar, value double, unit varchar, "
        "domain varchar)"
    )
    for kind, count in counts.items():
        connection.execute(
            f"insert into names select '{kind}:' || n, 'en', label, {_ALIASES}, '{kind}' from ("
            f"select n, {_name(kind)} as label from range({count}) as r(n))"
        )
    for number, (predicate, subject, object_, domain, share) in enumerate(RELATIONS):
        connection.execute(_facts(number, predicate, subject, object_, domain, share, counts))
    [(made,)] = connection.execute("select count(*) from facts").fetchall()
    if made < triples:
        # What is missing are further people's occupations: with several of them the answer is not unique.
        connection.execute(
            f"""insert into facts select distinct 'person:' || n, 'P106', 'occupation:' || (hash(n, 'more') %
            {counts["occupation"]}), null::double, null, 'history' from range({counts["person"]}) as r(n)
            where not exists (select 1 from facts f where f.predicate = 'P106' and f.subject = 'person:' || n
                and f.object = 'occupation:' || (hash(n, 'more') % {counts["occupation"]}))
            order by hash(n) limit {triples - made}"""
        )
    kept = f"select * from facts order by predicate = 'P106', hash(subject, predicate, object) limit {triples}"
    connection.execute(f"copy ({kept}) to '{folder / 'facts.parquet'}' (format parquet)")
    connection.execute(f"copy (select * from names) to '{folder / 'names.parquet'}' (format parquet)")
    [(facts,)] = connection.execute(f"select count(*) from '{folder / 'facts.parquet'}'").fetchall()
    [(named,)] = connection.execute("select count(*) from names").fetchall()
    return int(facts), int(named)


def _name(kind: str) -> str:
    """SQL for a name made of syllables that tell the number n."""
    syllables = "[" + ", ".join(f"'{one}'" for one in _SYLLABLES) + "]"

    def word(first: int, last: int) -> str:
        parts = [f"{syllables}[(n // {20**place}) % 20 + 1]" for place in range(first, last)]
        joined = " || ".join(parts)
        return f"upper(left({joined}, 1)) || substr({joined}, 2)"

    if kind == "person":
        return f"{word(0, 2)} || ' ' || {word(2, 6)}"
    plain = f"{word(0, 5)} || '{KINDS[kind][1]}'"
    return f"lower({plain})" if kind in ("thing", "element", "drug", "disease", "occupation", "genre") else plain


def _facts(
    number: int, predicate: str, subject: str, object_: str | None, domain: str, share: float, counts: dict[str, int]
) -> str:
    wanted = f"(hash(n, {number}) % 1000) < {int(share * 1000)}"
    head = f"insert into facts select '{subject}:' || n, '{predicate}', "
    tail = f"'{domain}' from range({counts[subject]}) as r(n) where {wanted}"
    if object_ is None:
        return f"{head} null, 300 + (hash(n, {number}) % 30000) / 10.0, 'K', {tail}"
    count = counts[object_]
    if predicate in ("P171", "P279"):  # A tree: everything lies below something with a smaller number.
        other = f"(case when n < 20 then null else hash(n, {number}) % greatest(n // 12, 1) end)"
    elif predicate in ("P26", "P461"):  # Pairs, stated once.
        return f"{head} '{object_}:' || (n + 1), null, null, {tail} and n % 2 = 0 and n + 1 < {count}"
    elif predicate == "P36":
        other = f"(n * ({count} // {counts[subject]}))"
    else:
        other = f"hash(n, {number}) % {count}"
    return f"{head} '{object_}:' || {other}, null, null, {tail} and {other} is not null"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    facts, entities = make_world(options.folder, options.scale)
    print(f"{facts:,} triples, {entities:,} entities")


if __name__ == "__main__":
    main()
