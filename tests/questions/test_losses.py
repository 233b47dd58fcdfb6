"""Nothing is lost in silence: each fact with a template is asked, or counted with the reason why not."""

from __future__ import annotations

import pytest
from stated_losses import accounts_of, asked_facts, reasons
from temporal_worlds import random_rows

import merkhet
from merkhet.core.schemas import FACTS, NAMES, make_table
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.data_card import card_markdown
from merkhet.questions.losses import Account, Loss, LossCounter, losses_for_card, read_losses, summarize_losses
from merkhet.questions.makers.make_questions import TASKS, make_benchmark
from merkhet.questions.makers.question_builder import MakerOptions
from merkhet.questions.quality import Filter
from merkhet.questions.schema import Comparison, Hierarchy, Relation, Schema

BORN = Relation("born", ("born",), ("{subject} was born in {object}.",))
WEIGHS = Comparison("weight", ("weight",), ("Heaviest of {members}: [MASK].",), ("Lightest of {members}: [MASK].",))
KINDS = Hierarchy("kinds", ("kind",), templates=("Of {members}, no {category} is [MASK].",))
FRAMES = {"checking": ("{statement} This is [MASK].",)}


def knowledge_of(rows, unnamed=()):
    """A knowledge base of rows; every entity is called by its id up to a hash sign."""
    entities = {row[place] for row in rows for place in ("subject", "object") if row.get(place)}
    names = [
        {"entity": entity, "label": entity.partition("#")[0]}
        for entity in sorted(entities)
        if entity not in unnamed and not entity.startswith('"')
    ]
    return KnowledgeBase([Chunk(make_table(FACTS, rows), make_table(NAMES, names))])


def made_of(rows, *parts, tasks=TASKS, unnamed=(), filters=(), **options):
    schema = Schema(
        {},
        {part.name: part for part in parts if isinstance(part, Relation)},
        {part.name: part for part in parts if isinstance(part, Hierarchy)},
        {part.name: part for part in parts if isinstance(part, Comparison)},
        frames=FRAMES,
    )
    knowledge = knowledge_of(rows, unnamed)
    return make_benchmark(
        DuckTables(knowledge.connection), schema, MakerOptions("s", **{"checks": 100, **options}), tasks, filters
    )


def fact(subject, predicate, object_=None, **others):
    return {"subject": subject, "predicate": predicate, "object": object_, **others}


BIRTHS = [fact(f"p{n}", "born", f"town{n}") for n in range(6)]


def test_values_that_are_no_names_are_counted_by_kind():
    rows = [*BIRTHS, *(fact(f"q{n}", "born", f'"19{n:02}"') for n in range(4))]
    rows += [fact("t", "born", '"a small town"@en'), fact("u", "born", "nowhere")]
    rows += [fact("v", "born", '"1879-03-14"'), fact("w", "born", '"1880-01"')]  # Dates are said in words, and asked.
    rows += [fact("nobody", "born", "town1"), fact("Rome#1", "born", "Rome#2")]
    made = made_of(rows, BORN, unnamed=("nowhere", "nobody"))
    accounts = accounts_of(made)
    assert accounts["completion"].total == accounts["checking"].total == len(rows)
    expected = {
        "the object is a year or a date (xsd:gYear, xsd:date), not a name": 4,
        "the object is a text, not a name": 1,
        "the object has no name in 'en'": 1,
        "the subject has no name in 'en'": 1,
        "both items have the same name": 1,
    }
    assert reasons(accounts["completion"]) == reasons(accounts["checking"]) == expected
    dates = next(loss for loss in accounts["completion"].losses if "xsd:gYear" in loss.reason)
    assert dates.relation == "born" and dates.examples == ('q0 – "1900"', 'q3 – "1903"')
    assert {"14 March 1879", "January 1880"} <= {row["target"] for row in made.questions.to_pylist()}


def test_years_of_a_turtle_file_are_counted_in_the_terminal_and_the_card(tmp_path, merkhet):
    lines = ["@prefix : <http://e.org/> .", "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> ."]
    lines += ["@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."]
    for number in range(8):
        lines.append(f':p{number} rdfs:label "Person {number}" ; :born "19{number:02}"^^xsd:gYear ; :home :t{number} .')
        lines.append(f':t{number} rdfs:label "Town {number}" .')
    (tmp_path / "people.ttl").write_text("\n".join(lines))
    built = merkhet(
        *("build", "quickstart", "--knowledge", tmp_path / "people.ttl", "--task", "completion"),
        *("--out", tmp_path / "made"),
    )
    line = next(line for line in built.stdout.splitlines() if line.startswith("No question from"))
    assert line.startswith("No question from 8 of 16 facts in completion (8: the object is a year or a date (xsd:gYear")
    assert line.endswith("CARD.md")
    card = (tmp_path / "made" / "CARD.md").read_text()
    assert "## Losses" in card and "| completion | 16 | facts with a template |" in card
    assert 'Person 0 – "1900"' in card and "| completion | 8 | give a question |" in card


def test_numbers_that_no_comparison_can_use_are_counted():
    close = [fact(f"c{n}", "weight", value=100.0 + n, unit="kg") for n in range(4)]
    accounts = accounts_of(made_of(close, WEIGHS))
    assert reasons(accounts["reasoning"]) == {"the two best values of the group differ by less than 'apart'": 4}
    clear = [fact(f"c{n}", "weight", value=10.0**n, unit="kg") for n in range(6)]
    others = [
        fact("long", "weight", value=3.0, unit="m"),
        fact("c0", "weight", value=1000.0, unit="g"),
        fact("torn", "weight", value=1.0, unit="kg"),
        fact("torn", "weight", value=9.0, unit="kg"),
        fact("x", "weight", "heavy"),
    ]
    made = made_of([*clear, *others], WEIGHS)
    accounts = accounts_of(made)
    told = reasons(accounts["reasoning"])
    assert told == {
        "another quantity than most numbers of the comparison": 1,
        "another fact gives the same question": 1,
        "the subject has several different values": 2,
        "the value is no number": 1,
        **{reason: count for reason, count in told.items() if "left over" in reason},
    }
    assert accounts["reasoning"].askable == len(asked_facts(made, "reasoning")) >= 4
    few = accounts_of(made_of(clear[:3], WEIGHS))
    assert reasons(few["reasoning"]) == {"fewer than four subjects have a number": 3}


def test_members_without_a_question_are_counted():
    rows = [fact(f"{kind}{n}", "kind", kind) for kind in ("cat", "dog") for n in range(4)]
    rows += [fact("lonely", "kind", "bird")]
    made = made_of(rows, KINDS)
    account = accounts_of(made)["distinction"]
    assert account.askable == len(asked_facts(made, "distinction"))
    assert reasons(account)["fewer than three members of the category remain for a group"] >= 1
    one = accounts_of(made_of(rows[:4], KINDS))["distinction"]
    assert reasons(one) == {"the hierarchy has only one category": 4}


def test_what_sentences_filters_and_distractors_lose_is_counted():
    timed = Relation("held", ("held",), ("In {start}, {subject} became {object}.",))
    rows = [
        fact("a", "held", "king", start="1990"),
        fact("b", "held", "queen"),
        fact("c", "held", "duke", start="1991"),
    ]
    assert reasons(accounts_of(made_of(rows, timed))["completion"]) == {"a time that the templates name is missing": 1}
    several = [*BIRTHS, fact("p0", "born", "town9")]
    account = accounts_of(made_of(several, BORN))["completion"]
    assert reasons(account) == {"the sentence has several right answers": 2}
    same = [fact(f"s{n}", "born", "x") for n in range(3)]
    assert set(reasons(accounts_of(made_of(same, BORN))["checking"])) == {
        "no other name is certainly wrong and different from the right answers"
    }
    inside = [*BIRTHS, fact("York", "born", "New York")]
    account = accounts_of(made_of(inside, BORN, distinct_names=True, choices=4, tasks=["completion"]))["completion"]
    assert reasons(account) == {"one name contains the other or a word of it": 1}

    def keep(table):
        import pyarrow.compute as pc

        return pc.invert(pc.match_substring(table["prompt"], "P3"))

    account = accounts_of(made_of(BIRTHS, BORN, filters=[Filter("no threes", "", keep)]))["completion"]
    assert reasons(account) == {"removed by the filter 'no threes'": 1}


def test_a_limit_is_no_loss_but_adds_up():
    made = made_of(BIRTHS * 1, BORN, choices=3, limit=2, tasks=["completion", "checking"])
    accounts = accounts_of(made)
    for task, account in accounts.items():
        assert account.askable == len(asked_facts(made, task))
        assert all(loss.intended for loss in account.losses) and account.losses
    assert summarize_losses(made.about, "x") is None


@pytest.mark.parametrize("task", ["statement", "boundary", "implicit", "order"])
def test_facts_with_times_add_up_task_by_task(tmp_path, task):
    header = "subject\trelation\tobject\tstart\tend\n"
    rows = [(s, p, o, a or "", b or "") for s, p, o, a, b in random_rows(3, 80) if (a or "0") <= (b or "9")]
    lines = ["\t".join(row) for row in dict.fromkeys(rows)]
    (tmp_path / "facts.tsv").write_text(header + "\n".join(lines) + "\n")
    made = merkhet.build("lama-tk", data=tmp_path / "facts.tsv", tasks=[task], out=tmp_path / "made")
    account = accounts_of(made)[task]
    assert account.askable == len(asked_facts(made, task)) and account.losses
    if task == "order":
        assert reasons(account)["the relation has no sentence about the order of its facts"] > 0


def test_accounts_are_read_as_they_were_written_and_damage_gives_none():
    losses = (Loss("t", "facts", "too | short", "r", 2, ("a – b",)), Loss("t", "facts", "not drawn", "r", 1, (), True))
    counter = LossCounter("u", "rows")
    for word in "cab":
        counter.add("odd", "s", word)
    accounts = [Account("t", "facts", 5, 2, losses), counter.account(4, 1), Account("v", "facts", 0, 0)]
    card = losses_for_card(accounts)
    assert read_losses(card) == accounts[:2]
    assert accounts[1].losses[0].examples == ("a", "b")
    assert (
        summarize_losses(card, "F")
        == "No question from 2 of 5 facts in t (2: too | short), 3 of 4 rows in u (3: odd); see F"
    )
    assert "too \\| short" in card_markdown(card) and "not drawn (as the study asks)" in card_markdown(card)
    assert read_losses({"accounts": [{"task": 1}], "losses": [{"odd": 2}]}) == []
    assert summarize_losses({}, "F") is None
