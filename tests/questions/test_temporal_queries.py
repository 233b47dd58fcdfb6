"""Queries about boundaries, what held in between, and order, against the obvious way to answer them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import product

import pytest
from all_cases import check_all
from temporal_worlds import knowledge_of, moment, random_facts, random_rows, said, year

from merkhet.core.dates import format_date
from merkhet.core.errors import InputError
from merkhet.suites.lama_tk.questions.masked_statements import make_masked_statements
from merkhet.suites.lama_tk.questions.order_queries import make_order_queries
from merkhet.suites.lama_tk.questions.statement_sql import read_remarks
from merkhet.suites.lama_tk.questions.temporal_facts import extract_temporal_facts, sample_facts
from merkhet.suites.lama_tk.questions.time_queries import (
    make_boundary_queries,
    make_implicit_queries,
    select_controlled,
)
from merkhet.suites.lama_tk.questions.wordings import read_wordings

WORDINGS = read_wordings()


def shown(fact, entities):
    if entities == "symbols":
        return {place: f"⟦{fact[place]}⟧" for place in ("subject", "object")}
    return {place: fact[f"{place}_name"] for place in ("subject", "object")}


def shown_time(time, entities):
    return f"⟦@{time}⟧" if entities == "symbols" else format_date(time)


def wording(facts, fact):
    return WORDINGS.wording_for(fact["relation"], facts.labels.get(fact["relation"], ""), fact["point"])


def both_ways(facts):
    """All facts, those of a symmetric relation also the other way round."""
    for fact in facts.table.to_pylist():
        yield fact, False
        if wording(facts, fact).symmetric:
            turned = {"subject": "object", "object": "subject"}
            yield {**fact, **{a: fact[b] for a, b in turned.items()}, **_names(fact, turned)}, True


def _names(fact, turned):
    return {f"{a}_name": fact[f"{b}_name"] for a, b in turned.items()}


def test_boundaries_have_all_starts_and_ends_of_the_pair():
    def check(entities, seed):
        facts = random_facts(seed)
        answers, asked = defaultdict(set), set()
        for fact, mirrored in both_ways(facts):
            for template, mask in (("begin", "start"), ("finish", "end")):
                text = wording(facts, fact).sentences.get(template)
                if text:
                    prompt = said(text, mask, **shown(fact, entities))
                    answers[prompt].add(f"@{fact[mask]}")
                    asked |= set() if mirrored else {(template, mask, prompt, f"@{fact[mask]}")}
        made = make_boundary_queries(facts, WORDINGS, entities=entities).to_pylist()
        assert {(row["template"], row["mask"], row["prompt"], row["target"]) for row in made} == asked
        assert len(made) == len(asked)
        assert all(row["answers"] == sorted(answers[row["prompt"]]) for row in made)
        assert all(row["task"] == "boundary" and row["bare_prompt"] is None for row in made)
        assert {row["conflict"] for row in made} == {True, False}
        kinds = {
            row["fact_id"]: row["cardinality"]
            for row in make_masked_statements(facts, WORDINGS, entities=entities).to_pylist()
        }
        assert all(row["cardinality"] == kinds.get(row["fact_id"], row["cardinality"]) for row in made)

    check_all(check, product(["text", "symbols"], range(3)))


def test_points_have_no_boundaries():
    rows = [("ann", "P39", "mayor", "2001", "2004"), ("ann", "P166", "prize", "2003", None)]
    made = make_boundary_queries(extract_temporal_facts(knowledge_of(rows)), WORDINGS)
    assert [(row["prompt"], row["target"]) for row in made.to_pylist()] == [
        ("Ann was elected mayor in [MASK].", "@2001"),
        ("Ann resigned as mayor in [MASK].", "@2004"),
    ]
    assert read_remarks(made) == ("1 fact is not asked about: no sentence says when it began or ended.",)


def test_what_held_in_between_is_all_whose_interval_holds_the_time():
    def check(entities, seed):
        facts = random_facts(seed, facts=90)
        made = make_implicit_queries(facts, WORDINGS, seed=seed, entities=entities).to_pylist()
        by_id = {fact["fact_id"]: fact for fact in facts.table.to_pylist()}
        times = [row["symbol"][1:] for row in facts.symbols.to_pylist() if row["kind"] == "time"]
        every = [] if entities == "symbols" else [year(one) for one in range(-3, 2006) if one]

        def inner(fact):
            """The times of which one is drawn: those known, or where there are none (and years need no symbol) all."""
            start, end = moment(fact["start"]), moment(fact["end"])
            known = [t for t in times if start < moment(t) < end]
            return known or [t for t in every if start < moment(t) < end]

        asked = defaultdict(set)
        for row in made:
            fact = by_id[row["fact_id"]]
            text = wording(facts, fact).sentences[row["template"]]
            told = {said(text, "object", **shown(fact, entities), time=shown_time(t, entities)): t for t in inner(fact)}
            time = told[row["prompt"]]
            inside = moment(time)
            holding = {
                other["object"]
                for other, _ in both_ways(facts)
                if other["relation"] == fact["relation"]
                and shown(other, entities)["subject"] == shown(fact, entities)["subject"]
                and moment(other["start"]) <= inside <= moment(other["end"])
            }
            assert row["answers"] == sorted(holding)
            assert row["target"] == fact["object"] and row["mask"] == "object"
            asked[row["template"]].add((fact["relation"], shown(fact, entities)["subject"], fact["object"], time))
        assert asked["within"] == asked["paraphrase"]
        assert {row["conflict"] for row in made} == {True, False}
        between = [fact for fact in by_id.values() if not fact["point"] and inner(fact)]
        told = {(f["relation"], shown(f, entities)["subject"], f["object"]) for f in between}
        assert {one[:3] for one in asked["within"]} == told

    check_all(check, product(["text", "symbols"], range(2)))


def test_where_no_known_time_lies_inside_any_year_does():
    rows = [("ann", "P39", "mayor", "-0002", "0002"), ("bob", "P39", "mayor", "0002", "0003")]
    facts = extract_temporal_facts(knowledge_of(rows))
    seen = set()
    for seed in range(12):
        made = make_implicit_queries(facts, WORDINGS, seed=seed)
        seen |= {row["prompt"] for row in made.to_pylist() if row["template"] == "paraphrase"}
    assert seen == {"Ann served as [MASK] in 1 BC.", "Ann served as [MASK] in AD 1."}, "there is no year 0"
    assert read_remarks(made) == ("1 fact is not asked about: no time lies strictly inside, or no sentence says it.",)
    assert make_implicit_queries(facts, WORDINGS, seed=0, entities="symbols").num_rows == 0, (
        "these years have no symbol"
    )


def test_the_time_inside_is_drawn_by_the_seed_and_the_fact_alone():
    rows = random_rows(8, facts=90)
    facts, again = extract_temporal_facts(knowledge_of(rows)), extract_temporal_facts(knowledge_of(rows[::-1]))
    made = make_implicit_queries(facts, WORDINGS, seed=1)
    assert make_implicit_queries(again, WORDINGS, seed=1).equals(made)
    assert make_implicit_queries(facts, WORDINGS, seed=2)["prompt"].to_pylist() != made["prompt"].to_pylist()
    few = sample_facts(facts, 30, 0)
    drawn = {(row["fact_id"], row["template"]): row["prompt"] for row in made.to_pylist()}
    fewer = make_implicit_queries(few, WORDINGS, seed=1).to_pylist()
    assert fewer and all(drawn.get((row["fact_id"], row["template"]), row["prompt"]) == row["prompt"] for row in fewer)


def test_days_inside():
    rows = [("ann", "P39", "mayor", "2001-02-28", "2004-05-06"), ("bob", "P39", "abbot", "2002-01-01", "2002-01-02")]
    facts = extract_temporal_facts(knowledge_of(rows), granularity="day")
    prompts = set(make_implicit_queries(facts, WORDINGS, seed=0)["prompt"].to_pylist())
    assert prompts in (
        {f"Ann {verb} [MASK] on {day} January 2002." for verb in ("served as", "held the position of")}
        for day in (1, 2)
    )


def test_controlled_facts_have_their_controls():
    def check(seed):
        facts = random_facts(seed, facts=70)
        rows = facts.table.to_pylist()
        eligible = {
            a["subject"]
            for a in rows
            for b in rows
            if not a["point"]
            and (a["subject"], a["relation"]) == (b["subject"], b["relation"])
            and a["object"] != b["object"]
            and _inside(a)
        }
        every = select_controlled(facts, None, seed).table.to_pylist()
        assert every == [row for row in rows if row["subject"] in eligible]
        sets = [select_controlled(facts, count, seed).table.to_pylist() for count in (1, 8, 16)]
        for count, some in zip((1, 8, 16), sets, strict=True):
            subjects = {row["subject"] for row in some}
            assert subjects <= eligible
            assert some == [row for row in rows if row["subject"] in subjects], "whole subjects"
            largest = max(Counter(row["subject"] for row in some).values())
            assert count <= len(some) < count + largest
        ids = [{row["fact_id"] for row in some} for some in sets]
        assert ids[0] <= ids[1] <= ids[2]
        more = select_controlled(facts, 1000, seed)
        assert more.table.to_pylist() == every
        assert (
            more.remarks[-1]
            == f"1,000 facts with controls were requested, but there are only {len(every)}: all are used."
        )
        assert more.symbols.equals(facts.symbols)

    check_all(check, range(3))


def _inside(fact):
    years = [moment(fact[end])[0] for end in ("start", "end")]
    return any(years[0] < one < years[1] for one in range(-5, 2010) if one)


def test_facts_without_controls_are_refused():
    facts = extract_temporal_facts(
        knowledge_of([("ann", "P39", "mayor", "2001", "2004"), ("bob", "P39", "mayor", "2001", "2004")])
    )
    with pytest.raises(InputError, match="no fact has both a time strictly inside its interval and a control"):
        select_controlled(facts, 5, 0)
    with pytest.raises(InputError, match="the number of facts with controls must be ≥ 1, got 0"):
        select_controlled(facts, 0, 0)


def order_rows(seed):
    """Offices with holders one after the other, of which some overlap, leave a gap, come back or are not all known."""
    rng = random.Random(seed)
    rows = []
    for office in "ABCDEFGHIJ":
        now = rng.choice([-5, 990])
        for _ in range(rng.randint(2, 7)):
            start = now + rng.choice([0, 0, 0, 1, 1, 3, -1])
            end = start + rng.choice([0, 1, 2, 4])
            now = end
            times = [year(one + (one >= 0)) if one < 900 else year(one) for one in (start, end)]
            if rng.random() < 0.07:
                times[rng.randrange(2)] = None
            rows.append(
                (f"{rng.choice('abcdefghijklm')}#{rng.choice('12')}", "P39", f"{office}#{rng.choice('1112')}", *times)
            )
    return rows


def by_hand(rows, kept, entities):
    """All order questions with their answer, by comparing every term of an office with every other."""
    named = (lambda one: f"⟦{one}⟧") if entities == "symbols" else (lambda one: one.partition("#")[0])
    sentences = WORDINGS.relations["position held"].sentences
    low, high = (-(10**6),), (10**6,)
    offices = defaultdict(set)
    for s, _, o, start, end in rows:
        offices[named(o)].add((moment(start) if start else low, moment(end) if end else high, s))
    asked = {}
    for office, terms in offices.items():
        stored = {term for term in terms if (term[2], office, *term[:2]) in kept}
        for x in stored:
            others = [y for y in terms if y != x]
            if _clear(x, terms) and len({one[2] for one in stored}) >= 3:
                if all(x[1] <= y[0] for y in others):
                    asked["first", said(sentences["first"], "subject", object=office)] = x[2]
                if all(y[1] <= x[0] for y in others):
                    asked["last", said(sentences["last"], "subject", object=office)] = x[2]
            earlier = [y for y in others if y[1] <= x[0]]
            later = [y for y in others if x[1] <= y[0]]
            beside = {"before": max(earlier, default=None), "after": min(later, default=None)}
            for template, y in beside.items():
                once = sum(named(term[2]) == named(x[2]) for term in terms) == 1
                if y in stored and _clear(x, terms) and _clear(y, terms) and once and _gap(x, y) <= 1:
                    prompt = said(sentences[template], "subject", object=office, other=named(x[2]))
                    asked[template, prompt] = y[2]
    return asked


def _clear(x, terms):
    return all(x[:2] != y[:2] and (x[1] <= y[0] or y[1] <= x[0]) for y in terms if y != x)


def _gap(x, y):
    first, second = sorted([x, y])
    return YEAR_LINE.index(second[0][0]) - YEAR_LINE.index(first[1][0])


YEAR_LINE = [one for one in range(-30, 1100) if one]


def test_order_is_what_comparing_all_terms_gives():
    worlds = [(rows, extract_temporal_facts(knowledge_of(rows))) for rows in map(order_rows, range(3))]

    def check(entities, seed):
        rows, facts = worlds[seed]
        named = (lambda one: f"⟦{one}⟧") if entities == "symbols" else (lambda one: one.partition("#")[0])
        for some in (facts, sample_facts(facts, facts.table.num_rows * 2 // 3, seed)):
            kept = {
                (row["subject"], named(row["object"]), moment(row["start"]), moment(row["end"]))
                for row in some.table.to_pylist()
            }
            asked = by_hand(rows, kept, entities)
            made = make_order_queries(some, WORDINGS, entities=entities).to_pylist()
            assert {(row["template"], row["prompt"]): row["target"] for row in made} == asked
            assert len(made) == len(asked)
            assert all(row["answers"] == [row["target"]] and not row["conflict"] for row in made)
            assert all(row["mask"] == "subject" and row["task"] == "order" for row in made)
            subjects = dict(zip(some.table["fact_id"].to_pylist(), some.table["subject"].to_pylist(), strict=True))
            assert all(subjects[row["fact_id"]] == row["target"] for row in made), "the fact is the answer's"
        assert len(asked) >= 5

    check_all(check, product(["text", "symbols"], range(3)))


TERMS = [("ann", "P39", "mayor", "2000", "2004"), ("bob", "P39", "mayor", "2004", "2008")]
TERMS += [("cy", "P39", "mayor", "2009", "2012")]


def order_of(*rows, **changed):
    made = make_order_queries(extract_temporal_facts(knowledge_of(rows)), WORDINGS, **changed)
    return {row["prompt"]: row["target"] for row in made.to_pylist()}, read_remarks(made)


def test_how_order_reads():
    assert order_of(*TERMS) == (
        {
            "The first known holder of the position of mayor was [MASK].": "ann",
            "The last known holder of the position of mayor was [MASK].": "cy",
            "Immediately before bob, the position of mayor was held by [MASK].": "ann",
            "Immediately after ann, the position of mayor was held by [MASK].": "bob",
            "Immediately before cy, the position of mayor was held by [MASK].": "bob",
            "Immediately after bob, the position of mayor was held by [MASK].": "cy",
        },
        ("Who came before or after is not asked in 2 cases: in 2 nobody is known who came before or after.",),
    )


def test_what_is_not_decided_is_not_asked():
    before, _ = order_of(*TERMS)

    def check(row, gone, words):
        after, remarks = order_of(*TERMS, row)
        lost = {prompt for prompt, target in before.items() if after.get(prompt) != target}
        told = {"first": "The first", "last": "The last"}
        assert {prompt for prompt in before if any(told.get(one, one) in prompt for one in gone)} == lost
        assert any(words in remark for remark in remarks)

    check_all(
        check,
        [
            (
                ("dan", "P39", "mayor", "2011", "2013"),
                ("last", "after bob", "before cy"),
                "somebody else's time overlaps",
            ),
            (
                ("dan", "P39", "mayor", "2012", None),
                ("last",),
                "in 1 the one who came before or after is not among the facts",
            ),
            (
                ("dan", "P39", "mayor", None, "2015"),
                ("first", "last", "before bob", "before cy", "after ann", "after bob"),
                "",
            ),
            (("dan", "P39", "mayor", "1990", "1995"), ("first",), "in 2 more than a year lies between"),
            (
                ("ann", "P39", "mayor", "2012", "2014"),
                ("last", "after ann"),
                "in 2 the one who is named held it more than once",
            ),
            (
                ("dan", "P39", "mayor", "2009", "2012"),
                ("last", "after bob", "before cy"),
                "somebody else's time overlaps",
            ),
        ],
    )


def test_other_relations_have_no_order():
    made = make_order_queries(extract_temporal_facts(knowledge_of([("a", "P26", "b", "2001", "2002")])), WORDINGS)
    assert made.num_rows == 0 and read_remarks(made) == ()
