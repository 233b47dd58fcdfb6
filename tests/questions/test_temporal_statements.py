"""Masked statements against the obvious way to make them, in random worlds; and the words they are made of."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import pyarrow as pa
import pytest
from all_cases import check_all
from temporal_worlds import knowledge_of, random_rows, said

from merkhet.core.dates import format_date
from merkhet.core.errors import InputError
from merkhet.core.ids import content_id
from merkhet.core.recall_schemas import STATEMENTS
from merkhet.core.schemas import validate
from merkhet.suites.lama_tk.questions.masked_statements import drop_conflicts, make_masked_statements
from merkhet.suites.lama_tk.questions.statement_sql import read_remarks
from merkhet.suites.lama_tk.questions.temporal_facts import extract_temporal_facts, sample_facts
from merkhet.suites.lama_tk.questions.wordings import read_wordings

WORDINGS = read_wordings()
LASTING = [
    ("obama", "P39", "President of the United States", "2009", "2017"),
    ("macron", "P39", "President of France", "2017", "2022"),
    ("iPhone fan club", "guides", "Netherlands", "-0044", "0476"),
]
POINTS = [("curie", "P166", "Nobel Prize", "1903", None), ("curie", "P19", "Netherlands", "1867", "1867")]
EVERY_KIND = [("lone#1", "P39", "post#1", "1500", "1510")]
EVERY_KIND += [(f"f#{n}", "P39", "F#1", "1700", "1710") for n in "12"]
EVERY_KIND += [(f"e#{n}", "P39", f"E#{m}", "1600", "1610") for n in "12" for m in "12"]
MASKS = ("subject", "object", "start", "end", "time")


def by_hand(facts, wordings, entities, static, masks=MASKS):
    """Statements one by one: a dictionary of prompts with their answers, and what is asked."""
    answers, asked = defaultdict(set), {}
    for fact in facts.table.to_pylist():
        wording = wordings.wording_for(fact["relation"], facts.labels.get(fact["relation"], ""), fact["point"])
        for mirrored in (False, True) if wording.symmetric else (False,):
            ends = ("object", "subject") if mirrored else ("subject", "object")
            right = dict(zip(("subject", "object"), (fact[end] for end in ends), strict=True))
            right |= {"start": f"@{fact['start']}", "end": f"@{fact['end']}", "time": f"@{fact['start']}"}
            if entities == "symbols":
                shown = {place: f"⟦{symbol}⟧" for place, symbol in right.items()}
            else:
                shown = dict(zip(("subject", "object"), (fact[f"{end}_name"] for end in ends), strict=True))
                shown |= {place: format_date(right[place][1:]) for place in ("start", "end", "time")}
            text = wording.sentences["static" if static else "statement"]
            for mask in masks:
                if f"{{{mask}}}" not in text and f"{{the {mask}}}" not in text:
                    continue
                prompt = said(text, mask, **shown)
                answers[prompt].add(right[mask])
                if not mirrored:
                    bare = said(wording.sentences[mask], mask, **shown) if mask in ("start", "end") else None
                    key = (mask, prompt, right[mask])
                    asked[key] = min((fact["fact_id"], bare), asked.get(key, (fact["fact_id"], bare)))
    return answers, asked


def cardinality(facts, wordings, entities, static):
    """By fact: how many ends have several right answers, with the times given."""
    answers, asked = by_hand(facts, wordings, entities, static, ("subject", "object"))
    several = {key: len(answers[key[1]]) > 1 for key in asked}
    found = {}
    for fact in facts.table.to_pylist():
        one = facts.table.filter(pa.compute.equal(facts.table["fact_id"], fact["fact_id"]))
        _, own = by_hand(_with(facts, one), wordings, entities, static, ("subject", "object"))
        found[fact["fact_id"]] = ["1-1", "1-N", "N-M"][sum(several[key] for key in own)]
    return found


def _with(facts, table):
    return type(facts)(table, facts.symbols, facts.counts, facts.remarks, facts.labels)


def test_statements_are_those_made_by_hand():
    worlds = [extract_temporal_facts(knowledge_of(random_rows(seed) + EVERY_KIND)) for seed in range(3)]

    def check(entities, static, seed):
        facts = worlds[seed]
        made = make_masked_statements(facts, WORDINGS, entities=entities, static=static)
        answers, asked = by_hand(facts, WORDINGS, entities, static)
        cardinalities = cardinality(facts, WORDINGS, entities, static)
        rows = {(row["mask"], row["prompt"], row["target"]): row for row in made.to_pylist()}
        assert len(rows) == made.num_rows
        assert set(rows) == set(asked)
        for key, row in rows.items():
            assert row["answers"] == sorted(answers[row["prompt"]])
            assert row["conflict"] == (len(row["answers"]) > 1)
            assert (row["fact_id"], row["bare_prompt"]) == asked[key]
            assert row["cardinality"] == cardinalities[row["fact_id"]]
            assert (row["task"], row["template"]) == ("statement", "static" if static else "statement")
            assert row["prompt"].count("[MASK]") == 1
            parts = (row[name] for name in ("task", "template", "mask", "prompt", "target"))
            assert row["statement_id"] == content_id("s", *parts)
        assert {row["cardinality"] for row in rows.values()} == {"1-1", "1-N", "N-M"}, "the worlds have all of them"
        assert any(row["conflict"] for row in rows.values()) and not all(row["conflict"] for row in rows.values())
        clear = drop_conflicts(made)
        assert set(clear["statement_id"].to_pylist()) == {r["statement_id"] for r in rows.values() if not r["conflict"]}

    check_all(check, product(["text", "symbols"], [False, True], range(3)))


def test_two_of_one_name_make_one_prompt_with_both_answers():
    rows = [("ann#1", "P39", "mayor", "2001", "2004"), ("ann#2", "P39", "abbess", "2001", "2004")]
    rows += [("ann#2", "P39", "mayor", "2001", "2004")]
    facts = extract_temporal_facts(knowledge_of(rows))
    made = {(row["mask"], row["target"]): row for row in make_masked_statements(facts, WORDINGS).to_pylist()}
    assert made["object", "mayor"]["prompt"] == "Ann held the position of [MASK] from 2001 to 2004."
    assert made["object", "mayor"]["answers"] == ["abbess", "mayor"]
    assert made["subject", "ann#1"]["answers"] == ["ann#1", "ann#2"]
    assert made["start", "@2001"]["answers"] == ["@2001"]
    assert read_remarks(make_masked_statements(facts, WORDINGS)) == (
        "3 statements duplicate another one; duplicates are asked once.",
    )
    apart = make_masked_statements(facts, WORDINGS, entities="symbols")
    assert apart.num_rows == 12 and read_remarks(apart) == ()
    assert "⟦ann#1⟧ held the position of [MASK] from ⟦@2001⟧ to ⟦@2004⟧." in apart["prompt"].to_pylist()


def test_marriages_hold_both_ways():
    rows = [("ann", "P26", "bob", "2001", "2004"), ("cy", "P26", "ann", "2001", "2004")]
    made = make_masked_statements(extract_temporal_facts(knowledge_of(rows)), WORDINGS)
    found = {row["prompt"]: row["answers"] for row in made.to_pylist()}
    assert found["Ann was married to [MASK] from 2001 to 2004."] == ["bob", "cy"]
    assert found["[MASK] was married to bob from 2001 to 2004."] == ["ann"]
    assert "Bob was married to [MASK] from 2001 to 2004." not in found, "it is not stated, only right"


def test_how_statements_read():
    made = make_masked_statements(extract_temporal_facts(knowledge_of(LASTING + POINTS)), WORDINGS)
    prompts = {row["prompt"]: row["bare_prompt"] for row in made.to_pylist()}
    obama = "Obama held the position of President of the United States"
    assert prompts[f"{obama} from [MASK] to 2017."] == f"{obama} from [MASK]."
    assert prompts[f"{obama} from 2009 to [MASK]."] == f"{obama} until [MASK]."
    assert prompts["Obama held the position of [MASK] from 2009 to 2017."] is None
    assert prompts["Curie received the award [MASK] in 1903."] is None
    assert "Curie was born in the Netherlands in [MASK]." in prompts
    assert "The guides of iPhone fan club was [MASK] from 44 BC to AD 476." in prompts
    assert "The guides of iPhone fan club was the Netherlands from [MASK] to AD 476." in prompts


def test_a_name_with_a_full_stop_ends_its_sentence():
    facts = extract_temporal_facts(knowledge_of([("iPod Inc.", "P54", "Rangers F.C.", "2001", "2004")]))
    static = make_masked_statements(facts, WORDINGS, static=True)["prompt"].to_pylist()
    assert static == ["[MASK] played for Rangers F.C.", "iPod Inc. played for [MASK]."]
    made = make_masked_statements(facts, WORDINGS)["prompt"].to_pylist()
    assert "iPod Inc. played for Rangers F.C. from [MASK] to 2004." in made


@pytest.mark.parametrize(
    ("granularity", "lasting", "point"),
    [
        ("month", "from [MASK] to May 2004.", "in March 2003."),
        ("day", "from [MASK] to 6 May 2004.", "on 3 March 2003."),
    ],
)
def test_months_and_days(granularity, lasting, point):
    rows = [("ann", "P39", "mayor", "2001-02-28", "2004-05-06"), ("ann", "P166", "prize", "2003-03-03", None)]
    facts = extract_temporal_facts(knowledge_of(rows), granularity=granularity)
    prompts = {row["prompt"]: row["target"] for row in make_masked_statements(facts, WORDINGS).to_pylist()}
    start = {"month": "@2001-02", "day": "@2001-02-28"}[granularity]
    assert prompts[f"Ann held the position of mayor {lasting}"] == start
    assert prompts[f"[MASK] received the award prize {point}"] == "ann"
    preposition = point[:2]
    assert f"Ann received the award prize {preposition} [MASK]." in prompts


def test_some_masks_give_the_same_statements_as_all():
    facts = extract_temporal_facts(knowledge_of(random_rows(4)))
    every = make_masked_statements(facts, WORDINGS).to_pylist()
    some = make_masked_statements(facts, WORDINGS, masks=["start", "end"]).to_pylist()
    assert some == [row for row in every if row["mask"] in ("start", "end")]
    with pytest.raises(InputError, match="mask 'begin'; there are: end, object"):
        make_masked_statements(facts, WORDINGS, masks=["begin"])
    with pytest.raises(InputError, match=r"'symbol'; did you mean 'symbols'"):
        make_masked_statements(facts, WORDINGS, entities="symbol")


def test_statements_do_not_depend_on_the_order_of_rows_and_fit_their_table():
    rows = random_rows(5)
    made = [make_masked_statements(extract_temporal_facts(knowledge_of(some)), WORDINGS) for some in (rows, rows[::-1])]
    assert made[0].equals(made[1])
    assert validate(STATEMENTS, made[0]).num_rows == made[0].num_rows > 100


def test_answers_are_those_of_the_facts_given():
    facts = extract_temporal_facts(knowledge_of(random_rows(6)))
    few = sample_facts(facts, 12, 0)
    made = make_masked_statements(few, WORDINGS)
    assert {symbol for row in made.to_pylist() for symbol in row["answers"]} <= {
        value
        for row in few.table.to_pylist()
        for value in (row["subject"], row["object"], f"@{row['start']}", f"@{row['end']}")
    }
    none = make_masked_statements(_with(facts, facts.table.slice(0, 0)), WORDINGS)
    assert none.num_rows == 0 and none.schema.names == STATEMENTS.schema.names


def test_own_wordings(tmp_path):
    path = tmp_path / "words.yaml"
    path.write_text(
        "relations:\n  guide:\n    predicates: [guides]\n    points: true\n"
        '    statement: "In {time}, {the object} followed {subject}."\n'
        '    static: "{the object} followed {subject}."\n'
    )
    wordings = read_wordings(path)
    knowledge = knowledge_of([("iPod", "guides", "Netherlands", "2001", None), *LASTING[:1]])
    facts = extract_temporal_facts(knowledge, wordings=wordings)
    assert facts.labels == {"P39": "P39"}
    found = {
        row["mask"]: row["prompt"] for row in make_masked_statements(facts, wordings).to_pylist() if "iPod" in str(row)
    }
    assert found["time"] == "In [MASK], the Netherlands followed iPod."
    static = make_masked_statements(facts, wordings, static=True)["prompt"].to_pylist()
    assert "The Netherlands followed [MASK]." in static
    # Without the file, the relation has no words of its own, and its facts are no points.
    assert extract_temporal_facts(knowledge).counts["without end"] == 1


GOOD = {"statement": "{subject} led {object} from {start} to {end}.", "static": "{subject} led {object}."}
GOOD |= {"start": "{subject} led {object} from {start}.", "end": "{subject} led {object} until {end}."}


def test_wordings_that_cannot_be_used_are_refused(tmp_path):
    def check(changed, message):
        path = tmp_path / "words.yaml"
        body = {key: value for key, value in {**GOOD, **changed}.items() if value is not None}
        lines = [
            f"    {key}: {value if isinstance(value, bool | list) else repr(value)}\n" for key, value in body.items()
        ]
        other = [f"    {key}: {value!r}\n" for key, value in GOOD.items()]
        path.write_text("".join(["relations:\n  leads:\n", *lines, "  other:\n", *other]).replace("True", "true"))
        with pytest.raises(InputError, match=message):
            read_wordings(path)

    check_all(
        check,
        [
            ({"statement": None}, "has no 'statement'"),
            ({"static": "{subject} led."}, r"must name \{object\} exactly once"),
            ({"start": "{subject} led {object} until {end}."}, r"\{end\} in .* is not a placeholder"),
            ({"within": "{subject} led [MASK] in {time}."}, "must be a sentence with placeholders"),
            ({"before": "{subject} led {object}."}, r"must name \{other\} exactly once"),
            ({"beginning": "x"}, "there is no key 'beginning'"),
            ({"points": True}, "there is no key 'start'|is not a placeholder"),
            ({"points": "yes"}, "'points' must be true or false, got 'yes'"),
            ({"predicates": "P39"}, "'predicates' must be a list"),
            ({"predicates": ["other"]}, "'other' refers to the relation 'leads' and to 'other'"),
        ],
    )


def test_a_file_without_wordings_is_refused(tmp_path):
    path = tmp_path / "words.yaml"
    path.write_text("relations: {}\n")
    with pytest.raises(InputError, match="no wordings; write them by name under 'relations'"):
        read_wordings(path)
    path.write_text("relations:\n  leads:\n")
    with pytest.raises(InputError, match="'leads' has no sentences"):
        read_wordings(path)
