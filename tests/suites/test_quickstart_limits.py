"""A limited quickstart reads the facts it needs, and asks what it would ask of all facts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from merkhet.core.errors import InputError
from merkhet.engine.study import Study, make_study
from merkhet.knowledge.store import KnowledgeBase
from merkhet.suites.quickstart import suite as quickstart
from merkhet.suites.quickstart.options import QuickstartOptions

PACKS = ["elements", "countries", "offices", "taxonomy"]


def limited_study(limit: int, tasks: list[str], seed: int) -> Study:
    return make_study(
        {"suite": "quickstart", "knowledge": PACKS, "limit": limit, "tasks": tasks, "seed": seed}, "a test"
    )


@pytest.fixture(scope="module")
def whole() -> KnowledgeBase:
    return KnowledgeBase.load(PACKS)


def test_questions_are_those_of_all_facts() -> None:
    different = []
    for limit, tasks, seed in ((1, ["completion"], 0), (10, [], 0), (14, ["checking"], 3)):
        study = limited_study(limit, tasks, seed)
        options = QuickstartOptions.of(study)
        every = quickstart._make(study, Path(), options, quickstart._schema(options, Path()))
        made = quickstart.build(study, Path())
        if not made.questions.equals(every.questions) or made.facts.num_rows > every.facts.num_rows:
            different.append((limit, tasks, seed))
    assert not different


def test_ten_questions_leave_most_facts_unread(whole: KnowledgeBase) -> None:
    made = quickstart.build(limited_study(10, ["completion"], 0), Path())
    assert made.questions.num_rows == 10
    assert made.facts.num_rows < whole.facts().num_rows / 4


def test_a_turn_that_made_no_question_is_noticed() -> None:
    """A relation without a question passes its turn to one that was not read: all facts are needed then."""
    study = limited_study(10, ["completion"], 0)
    schema = quickstart._limit_relations(study, quickstart._schema(QuickstartOptions.of(study), Path()))
    made = quickstart.build(study, Path())
    assert quickstart._covers(made, schema, study)
    first = made.questions.filter([not row.startswith("symbol/") for row in made.questions["template"].to_pylist()])
    assert not quickstart._covers(type(made)(first, facts=made.facts), schema, study)


def test_options_are_checked() -> None:
    for options, said in (
        ({"choices": 1}, "options.choices must be an integer ≥ 2, got 1"),
        ({"choices": "x"}, "options.choices must be an integer ≥ 2, got 'x'"),
        ({"templates": 3}, "options.templates must be a path or null, got 3"),
    ):
        study = make_study({"suite": "quickstart", "knowledge": PACKS, "options": options}, "a test")
        with pytest.raises(InputError) as refused:
            quickstart.build(study, Path())
        assert str(refused.value) == said


def test_no_member_of_a_distinction_contains_the_name_of_its_category() -> None:
    """Three of "tennis ball, golf ball, bowling ball, beetle" are a kind of ball: such a question answers itself."""
    made = quickstart.build(limited_study(150, ["distinction"], 0), Path()).questions.to_pylist()
    categories = [re.search(r"a kind of (.+?)(?:,| is)", row["prompt"]) for row in made]
    asked = [(match[1], row["choices"]) for match, row in zip(categories, made, strict=True) if match]
    assert len(asked) > 50
    assert not [(category, names) for category, names in asked if any(category in name for name in names)]
