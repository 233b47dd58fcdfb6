"""Questions made of the embedded packs: each has one slot, one right choice, and no other that is right."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from functools import partial
from itertools import product

import pytest
from all_cases import check_all
from template_wording import fill_template

from merkhet.core import SLOT
from merkhet.metrics.text_overlap import normalised_words

LIMIT = 600
TASKS = ("completion", "checking", "distinction")


@pytest.fixture(scope="module")
def made(packs, schema, make):
    return {task: make(packs, schema, task, limit=LIMIT, rounds=2).questions.to_pylist() for task in TASKS}


@pytest.fixture(scope="module")
def facts(packs):
    return {row["fact_id"]: row for row in packs.facts().to_pylist()}


@pytest.fixture(scope="module")
def truths(packs, schema, closure):
    """For each relation, every answer that is right after what else the sentence says, found by plain loops."""
    labels = packs.labels()
    right = defaultdict(set)
    for name, relation in schema.relations.items():
        (predicate,) = relation.predicates
        above = closure(packs, predicate) if relation.transitive else {}
        for row in packs.facts(predicate).to_pylist():
            subject = labels[row["subject"]]
            value = f"{row['value']:g}" if row["object"] is None else labels[row["object"]]
            if relation.asks == ("subject",):
                right[name, value, row["start"]].add(subject)
            else:
                right[name, subject, None] |= {value} | above.get(subject, set())
    return right


def key_of(question, facts, labels, relation):
    row = facts[question["facts"][0]]
    if relation.asks == ("subject",):
        return relation.name, labels[row["object"]], row["start"]
    return relation.name, labels[row["subject"]], None


def written(name):
    """All the ways a name may stand in a slot."""
    forms = {name, f"a {name}", f"an {name}", f"the {name}"}
    return forms | {form[:1].upper() + form[1:] for form in forms}


def test_every_question_is_a_good_row(made, facts):
    def check(task):
        rows = made[task]
        assert len(rows) == LIMIT
        for row in rows:
            assert row["prompt"].count(SLOT) == 1
            assert "{" not in row["prompt"]
            assert row["prompt"][0].isupper() or row["prompt"].startswith(SLOT)
            assert row["target"] in row["choices"]
            assert row["target"] in row["answers"]
            assert len(set(row["choices"])) == len(row["choices"]) >= 2
            assert row["task"] == task
            assert all(fact in facts for fact in row["facts"])
            assert row["qset"] in row["facts"] or (task == "distinction" and row["qset"])
            assert row["domain"]
            assert row["split"] == "test"
        assert len({row["question_id"] for row in rows}) == LIMIT

    check_all(check, TASKS)


@pytest.fixture(scope="module")
def other_names(packs, schema):
    """For each relation and name, the aliases of the entities with this name in the relation, found by plain loops."""
    labels, aliases = packs.labels(), defaultdict(set)
    given = {row["entity"]: row["aliases"] or [] for row in packs.names().to_pylist() if row["language"] == "en"}
    for name, relation in schema.relations.items():
        place = relation.asks[0]
        for row in packs.facts(relation.predicates[0]).to_pylist():
            if row[place] is not None:
                aliases[name, labels[row[place]]].update(given[row[place]])
    return aliases


def test_no_other_choice_of_a_completion_is_right(made, facts, packs, schema, truths, other_names):
    labels = packs.labels()
    several = 0
    for row in made["completion"]:
        relation = schema.relations[row["template"].partition("/")[0]]
        right = truths[key_of(row, facts, labels, relation)]
        assert right
        spelled = {form for name in right for form in written(name)}
        assert row["target"] in spelled
        aliases = {alias for name in right for alias in other_names[relation.name, name]}
        assert set(row["answers"]) <= spelled | {form for alias in aliases for form in written(alias)}
        assert all(written(alias) & set(row["answers"]) for alias in aliases), row
        several += bool(aliases)
        wrong = [normalised_words(choice) for choice in row["choices"] if choice != row["target"]]
        assert not [words for words in map(normalised_words, row["answers"]) if words in wrong], row
        assert not spelled & (set(row["choices"]) - {row["target"]}), row
        assert len(row["choices"]) <= 20
        said = labels[facts[row["facts"][0]]["subject" if relation.asks == ("object",) else "object"]]
        assert not written(said) & (set(row["choices"]) - {row["target"]}), row
    assert several > LIMIT / 20


def test_wrong_office_holders_held_the_same_office_where_they_can(made, packs):
    labels = packs.labels()
    holders = defaultdict(set)
    for row in packs.facts("held-office").to_pylist():
        holders[labels[row["object"]]].add(labels[row["subject"]])
    asked = [row for row in made["completion"] if row["template"].startswith("held-office")]
    for row in asked:
        (office,) = [name for name in sorted(holders, key=len)[::-1] if name in row["prompt"]][:1]
        others = set(row["choices"]) - {row["target"]}
        possible = holders[office] - set(row["answers"])
        assert len(others & possible) >= min(len(others), len(possible))


def statement(prompt):
    if prompt.startswith('The statement "'):
        return prompt.removeprefix('The statement "').removesuffix(f'" is {SLOT}.')
    return prompt.removesuffix(f" This statement is {SLOT}.")


def test_statements_are_true_or_false_as_they_say(made, packs, schema, facts, truths):
    labels = packs.labels()
    sentences = defaultdict(set)
    for (name, said, start), right in truths.items():
        relation = schema.relations[name]
        (ask,) = relation.asks
        other = "object" if ask == "subject" else "subject"
        for template in relation.templates:
            for answer in right:
                sentences[name].add(fill_template(template, {other: said, ask: answer, "start": start or ""}))
    for row in made["checking"]:
        name = row["template"].partition("/")[0]
        assert (statement(row["prompt"]) in sentences[name]) == (row["target"] == "true"), row
        assert row["choices"] == ["true", "false"]
        assert key_of(row, facts, labels, schema.relations[name]) in truths


def check_balance(packs, schema, make, limit):
    rows = make(packs, schema, "checking", limit=limit).questions.to_pylist()
    for group in (rows, *by_relation(rows).values()):
        counts = Counter(row["target"] for row in group)
        assert abs(counts["true"] - counts["false"]) <= 1


def test_true_and_false_statements_are_equally_many_overall_and_by_relation(packs, schema, make):
    check_all(partial(check_balance, packs, schema, make), [2, 23, 100])


@pytest.mark.slow
def test_true_and_false_statements_are_equally_many_whatever_the_limit(packs, schema, make):
    check_all(partial(check_balance, packs, schema, make), [1, 7, 599, 20_000])


def by_relation(rows):
    groups = defaultdict(list)
    for row in rows:
        groups[row["template"].partition("/")[0]].append(row)
    return groups


def test_three_belong_to_the_category_and_the_odd_one_does_not(packs, schema, made, facts, closure):
    labels = packs.labels()
    above = {name: closure(packs, *one.predicates) for name, one in schema.hierarchies.items()}
    plain = {form: name for name in labels.values() for form in (name, f"the {name}")}
    for row in made["distinction"]:
        up = above[row["template"].partition("/")[0]]
        *three, odd = row["facts"]
        (category,) = {labels[facts[fact]["object"]] for fact in three}
        assert plain[row["target"]] == labels[facts[odd]["subject"]]
        assert len(row["choices"]) == 4
        inside = {choice: category in up.get(plain[choice], set()) for choice in row["choices"]}
        assert [choice for choice, holds in inside.items() if not holds] == [row["target"]], row
        assert plain[row["target"]] not in up.get(category, set()) | {category}
        assert category in row["prompt"]
        assert all(choice in row["prompt"] for choice in row["choices"])


def test_the_odd_one_stands_in_each_place_equally_often(packs, schema, make):
    def check(limit):
        rows = make(packs, schema, "distinction", limit=limit).questions.to_pylist()
        counts = Counter(row["choices"].index(row["target"]) for row in rows)
        assert max(counts.values()) - min(counts[place] for place in range(4)) <= len(schema.hierarchies)
        for group in by_relation(rows).values():
            places = Counter(row["choices"].index(row["target"]) for row in group)
            assert max(places.values()) - min(places[place] for place in range(4)) <= 1

    check_all(check, [10, 100, 600])


def test_a_seed_gives_the_same_questions_whatever_the_order_of_the_facts(packs, schema, make, shuffled):
    mixed = shuffled(packs, random.Random(1))

    def check(task):
        expected = make(packs, schema, task, limit=90)
        assert make(packs, schema, task, limit=90).questions.equals(expected.questions)
        assert make(mixed, schema, task, limit=90).questions.equals(expected.questions)
        other = make(packs, schema, task, limit=90, seed=1)
        same = set(other.questions["question_id"].to_pylist()) & set(expected.questions["question_id"].to_pylist())
        assert len(same) < 20

    check_all(check, TASKS)


def test_the_limit_is_kept_and_spread_over_relations(packs, schema, make):
    def check(task, limit):
        rows = make(packs, schema, task, limit=limit).questions.to_pylist()
        material = schema.hierarchies if task == "distinction" else schema.relations
        declared = set(packs.complete_predicates())
        declared |= {name for one in schema.relations.values() if one.complete for name in one.predicates}
        asked = [one for one in material.values() if getattr(one, task, True) and set(one.predicates) <= declared]
        assert len(rows) == limit
        counts = Counter(row["template"].partition("/")[0] for row in rows)
        assert len(counts) == min(limit, len(asked))
        assert max(counts.values()) - min(counts.values()) <= 1

    check_all(check, product(TASKS, [1, 5, 45]))
