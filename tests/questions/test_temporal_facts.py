"""Facts with times: what is kept, what is left out and counted, symbols, and subsets."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pyarrow.compute as pc
import pytest
from all_cases import check_all
from temporal_worlds import knowledge_of, moment, random_facts, random_rows

from merkhet.core.dates import format_date
from merkhet.core.errors import InputError
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import import_knowledge
from merkhet.suites.lama_tk.questions.temporal_facts import extract_temporal_facts, sample_facts

OBAMA = ("obama", "P39", "president", "2009-01-20", "2017-01-20")
PARTS = {"year": 1, "month": 2, "day": 3}
NAMED = {"P39": "position held", "P26": "spouse", "P166": "award received"}
ODD = ("merged", "early", "shared names", "unnamed", "unworded")


def cut(time, granularity):
    parts = moment(time)
    if len(parts) < PARTS[granularity]:
        return None
    sign = "-" if parts[0] < 0 else ""
    return sign + "-".join([f"{abs(parts[0]):04d}", *[f"{part:02d}" for part in parts[1 : PARTS[granularity]]]])


def expected(rows, granularity):
    """Which facts are kept, and the others by why they are not: one after the other, by hand."""
    kept, why = Counter(), Counter()
    for s, p, o, start, end in dict.fromkeys(rows):
        point = p == "P166"
        if start is None and end is None:
            why["without times"] += 1
        elif not point and start is None:
            why["without start"] += 1
        elif not point and end is None:
            why["without end"] += 1
        else:
            times = [cut(time, granularity) for time in (start, end) if time is not None]
            if None in times:
                why["coarse"] += 1
            elif point and len(set(times)) == 2:
                why["two times"] += 1
            else:
                kept[NAMED.get(p, p), s, o, times[0], times[-1], point] += 1
    return kept, why


def test_facts_are_kept_once_and_the_others_counted_by_why():
    worlds = [(rows, knowledge_of(rows)) for rows in (random_rows(seed, fine=True) for seed in range(3))]

    def check(granularity, seed):
        rows, knowledge = worlds[seed]
        facts = extract_temporal_facts(knowledge, granularity=granularity)
        kept, why = expected(rows, granularity)
        columns = ("relation", "subject", "object", "start", "end", "point")
        assert sorted(zip(*(facts.table[name].to_pylist() for name in columns), strict=True)) == sorted(kept)
        counts = dict(facts.counts)
        assert counts.pop("facts") == len(set(rows))
        assert counts.pop("kept") == len(kept)
        assert counts["merged"] == sum(kept.values()) - len(kept)
        assert counts["early"] == sum(moment(one[3])[0] < 1000 for one in kept)
        ends = {(one, one.partition("#")[0]) for fact in kept for one in fact[1:3]}
        assert counts["shared names"] == sum(n > 1 for n in Counter(name for _, name in ends).values())
        assert {name: n for name, n in counts.items() if n and name not in ODD} == dict(why)
        assert pc.is_in(facts.table["fact_id"], knowledge.facts()["fact_id"]).to_pylist() == [True] * len(kept)
        assert facts.table["fact_id"].to_pylist() == sorted(facts.table["fact_id"].to_pylist())

    check_all(check, product(["year", "month", "day"], range(3)))


def test_symbols_are_entities_and_then_times_in_their_order():
    def check(seed):
        facts = random_facts(seed)
        rows = facts.symbols.to_pylist()
        entities = [row for row in rows if row["kind"] == "entity"]
        times = [row for row in rows if row["kind"] == "time"]
        assert rows == entities + times
        found = {value for name in ("subject", "object") for value in facts.table[name].to_pylist()}
        assert [row["symbol"] for row in entities] == sorted(found)
        assert all(row["name"] == row["symbol"].partition("#")[0] for row in entities)
        known = {value for name in ("start", "end") for value in facts.table[name].to_pylist()}
        assert [row["symbol"] for row in times] == [f"@{time}" for time in sorted(known, key=moment)]
        assert times[0]["symbol"] == "@-0003", "there are years BC in these worlds, and they come first"

    check_all(check, range(3))


def test_times_in_words():
    def check(time, name):
        assert format_date(time) == name

    check_all(
        check,
        [
            *[("2009", "2009"), ("2009-04", "April 2009"), ("2009-04-07", "7 April 2009"), ("0476", "AD 476")],
            ("0999", "AD 999"),
            *[("-0044", "44 BC"), ("-0044-03-15", "15 March 44 BC"), ("1000", "1000"), ("12009", "12009")],
        ],
    )


LEFT_OUT = [
    (("x", "P39", "o", None, None), "without times", "1 fact has neither a start nor an end: left out."),
    (("x", "P39", "o", None, "2001"), "without start", "1 fact has no start: left out."),
    (("x", "P39", "o", "2001", None), "without end", "1 fact has no end: left out."),
    (("x", "P39", "o", "0000", "2001"), "year 0", "1 fact has a time in the year 0, which does not exist: left out."),
    (("x", "P166", "o", "2001", "2002"), "two times", "1 fact has two times, but their relation allows one: left out."),
    (("x", "P39", "the [MASK]", "2001", "2002"), "reserved", "1 fact has a name or an id with [MASK], ⟦ or ⟧ in it"),
    (("x⟧", "P39", "o", "2001", "2002"), "reserved", "1 fact has a name or an id with [MASK], ⟦ or ⟧ in it"),
]


def test_what_is_left_out_is_counted_and_told():
    def check(row, count, words):
        facts = extract_temporal_facts(knowledge_of([OBAMA, row]))
        assert facts.table["subject"].to_pylist() == ["obama"]
        assert (facts.counts["facts"], facts.counts["kept"], facts.counts[count]) == (2, 1, 1)
        assert [remark for remark in facts.remarks if remark.startswith(words)], facts.remarks
        assert "x" not in facts.symbols["symbol"].to_pylist()

    check_all(check, LEFT_OUT)


def test_a_value_and_a_time_that_is_too_coarse_are_left_out():
    knowledge = knowledge_of([OBAMA, ("x", "P39", "o", "2001", "2002-05-01")], values=[("x", "P39", 3.5)])
    facts = extract_temporal_facts(knowledge, granularity="month")
    assert facts.table.select(["subject", "start", "end"]).to_pylist() == [
        {"subject": "obama", "start": "2009-01", "end": "2017-01"}
    ]
    assert "1 fact has a time that is coarser than a month: left out." in facts.remarks
    assert "1 fact has a number instead of an object: left out." in facts.remarks


def test_an_end_before_the_start_is_left_out_even_if_the_store_has_it():
    knowledge = knowledge_of([OBAMA, ("x", "P39", "o", "-0044-03", "-0044-04")])
    for place, (start, end) in enumerate([("2005", "2004"), ("2004-05", "2004-04"), ("-0043", "-0044")]):
        knowledge.connection.execute(
            """insert into facts (fact_id, subject, predicate, object, "start", "end")
            values (?, 'y', 'P39', 'o', ?, ?)""",
            [f"f_{place}", start, end],
        )
    facts = extract_temporal_facts(knowledge)
    assert sorted(facts.table["subject"].to_pylist()) == ["obama", "x"]
    assert facts.counts["end before start"] == 3
    assert "3 facts have an end before their start: left out." in facts.remarks


def test_what_is_odd_is_kept_and_told():
    rows = [OBAMA, ("obama", "P39", "president", "2009", "2017"), ("a#1", "P39", "o", "0476", "0480")]
    rows += [("a#2", "P39", "o", "-0044", "0014"), ("n", "guides", "o", "2001", "2002")]
    facts = extract_temporal_facts(knowledge_of(rows, unnamed=["n"]))
    assert {name: facts.counts[name] for name in ODD} == {
        **{"merged": 1, "early": 2, "shared names": 1, "unnamed": 1, "unworded": 1}
    }
    assert facts.remarks == (
        "One fact is equal to another one at the granularity year: kept once.",
        "2 facts are from before the year 1000: kept, written as AD 476 or 44 BC.",
        "One name is shared by several entities: each entity that a sentence may mean is a right answer.",
        "1 entity has no name: named by the id.",
        "One relation is worded by the label of the predicate alone: guides.",
    )
    assert facts.labels == {"guides": "guides"}
    assert "n" in facts.symbols["name"].to_pylist()


def test_relations_are_found_by_name_predicate_or_label(packs):
    knowledge = knowledge_of([OBAMA, ("x", "P26", "y", "2001", "2002")])
    for asked in ("P39", "position held", "held-office"):
        assert extract_temporal_facts(knowledge, relations=[asked]).table["relation"].to_pylist() == ["position held"]
    assert extract_temporal_facts(packs, relations=["held the office of"]).counts["facts"] == 892
    with pytest.raises(InputError, match=r"relation 'spouses'; did you mean 'spouse'"):
        extract_temporal_facts(knowledge, relations=["spouses"])


def test_what_cannot_be_used_is_refused():
    with pytest.raises(InputError, match=r"granularity 'years'; did you mean 'year'"):
        extract_temporal_facts(knowledge_of([OBAMA]), granularity="years")
    with pytest.raises(InputError, match="no facts with times"):
        extract_temporal_facts(knowledge_of([("x", "P39", "o", None, None)]))
    with pytest.raises(InputError, match=r"times that can be asked about\. 1 fact has no end: left out\."):
        extract_temporal_facts(knowledge_of([("x", "P39", "o", "2001", None)]))
    with pytest.raises(InputError, match="the entity id '@2009' is reserved for a time"):
        extract_temporal_facts(knowledge_of([OBAMA, ("@2009", "P39", "o", "2001", "2002")]))
    with pytest.raises(InputError, match="the number of facts must be ≥ 1, got 0"):
        sample_facts(extract_temporal_facts(knowledge_of([OBAMA])), 0, 1)


def test_names_are_those_of_the_language():
    rows = [("x", "P39", "o", "2001", "2002")]
    knowledge = knowledge_of(rows)
    knowledge.connection.execute("insert into names (entity, language, label) values ('x', 'de', 'Ix\tund  Ypsilon')")
    facts = extract_temporal_facts(knowledge, language="de")
    assert facts.table.select(["subject_name", "object_name"]).to_pylist() == [
        {"subject_name": "Ix und Ypsilon", "object_name": "o"}
    ]
    assert facts.counts["unnamed"] == 1


def test_subsets_are_nested_and_do_not_depend_on_the_order_of_rows():
    rows = random_rows(7, facts=120)
    facts, again = extract_temporal_facts(knowledge_of(rows)), extract_temporal_facts(knowledge_of(rows[::-1]))
    assert again.table.equals(facts.table) and again.symbols.equals(facts.symbols)
    ids = [set(sample_facts(facts, size, 3).table["fact_id"].to_pylist()) for size in (1, 5, 20, 40)]
    assert [len(some) for some in ids] == [1, 5, 20, 40]
    assert ids[0] < ids[1] < ids[2] < ids[3]
    assert sample_facts(again, 20, 3).table["fact_id"].to_pylist() == sorted(ids[2])
    assert set(sample_facts(facts, 20, 4).table["fact_id"].to_pylist()) != ids[2]
    assert sample_facts(facts, 20, 3).symbols.equals(facts.symbols)
    assert sample_facts(facts, None, 3) is facts
    more = sample_facts(facts, 5000, 3)
    assert more.table.equals(facts.table)
    assert more.remarks[-1].startswith("5,000 facts were requested, but there are only ")


@pytest.mark.slow
def test_real_positions(shared, tmp_path):
    columns = {"subject": "subject_id", "subject_label": "subject", "object": "position"}
    options = {**{f"map.{name}": column for name, column in columns.items()}, "constant.predicate": "P39"}
    options |= {"map.start": "start", "map.end": "end"}
    into = tmp_path / "positions.duckdb"
    done = import_knowledge([str(shared / "data/temporal/positions.tsv")], into, options=options, skip_bad=True)
    with KnowledgeBase.open(into) as knowledge:
        counts = extract_temporal_facts(knowledge).counts
    # 87,569 rows have both times, 87,235 of them different by the year; in 29 the end is before the start.
    assert done[0].bad == 29
    assert (counts["kept"], counts["merged"]) == (87_207, 333)
    assert counts["kept"] + counts["merged"] + done[0].bad == 87_569
    assert counts["facts"] - counts["without end"] == counts["kept"] + counts["merged"]


@pytest.mark.slow
def test_real_yago(shared, tmp_path):
    into = tmp_path / "yago.duckdb"
    import_knowledge([str(shared / "data/temporal/yago11k")], into, skip_bad=True)
    with KnowledgeBase.open(into) as knowledge:
        facts = extract_temporal_facts(knowledge)
    counts = facts.counts
    left_out = [name for name in counts if name not in ("facts", "kept", *ODD)]
    assert counts["kept"] + counts["merged"] + sum(counts[name] for name in left_out) == counts["facts"]
    assert counts["unworded"] == 0, "all ten relations have words"
    by_relation = Counter(zip(facts.table["relation"].to_pylist(), facts.table["point"].to_pylist(), strict=True))
    # Of 3,341 births one is dated 195#.
    assert by_relation["place of birth", True] == 3340 and by_relation["place of death", True] == 1643
    assert by_relation["spouse", False] > 1000 and len(by_relation) == 10
