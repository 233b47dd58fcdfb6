"""Every view shows what a plain pass over the Parquet files comes to."""

from __future__ import annotations

import random

import pyarrow.parquet as pq
import pytest
from explored_runs import PLACES, WORDS
from plain_views import PlainRun

from merkhet.analysis.finding_types import FEW_QUESTIONS

RESULTS = ("right", "wrong", "unusable", "tied")


@pytest.fixture(scope="module")
def plain(made_up) -> PlainRun:
    return PlainRun(made_up)


def some_filters(draw: random.Random, plain: PlainRun) -> dict[str, list[str]]:
    """Filters as a reader may combine them."""
    params: dict[str, list[str]] = {}
    kinds = {
        "task": ("completion", "checking", "order", "no such task"),
        "domain": ("maps", "music", ""),
        "relation": ("lies-in", "near", "order"),
        "template": ("lies-in/1", "near", ""),
        "split": ("train", "test"),
        "rule": ("chain", ""),
        "language": ("en", "zh"),
        "model": tuple(way[0] for way in plain.ways),
        "method": tuple({way[2] for way in plain.ways}),
        "probe": ("rank", "write"),
        "result": RESULTS,
    }
    for name in draw.sample(sorted(kinds), draw.choice((0, 1, 1, 2, 3))):
        params[name] = draw.sample(sorted(set(kinds[name])), draw.choice((1, 1, 2)))
    if draw.random() < 0.3:
        params["low"] = [str(draw.choice((1, 1.5, 2, 4)))]
    if draw.random() < 0.3:
        params["high"] = [str(draw.choice((1, 3, 8)))]
    if draw.random() < 0.4:
        words = [draw.choice((word, word.upper(), word[:3])) for word in draw.sample(WORDS, draw.choice((1, 2)))]
        params["search"] = [" ".join(words + draw.choice(([], [draw.choice(PLACES)], ['"lie in"'])))]
    return params


@pytest.mark.parametrize("seed", range(60))
def test_a_list_holds_and_orders_what_a_plain_pass_does(served, plain, seed):
    draw = random.Random(seed)
    params = some_filters(draw, plain)
    first, second = draw.sample(plain.labels, 2)
    if draw.random() < 0.4:
        params |= {"first": [first], "second": [second]}
        if draw.random() < 0.7:
            params["cell"] = [draw.choice(("both", "first", "second", "neither", "apart"))]
    sorts = ["run", "hardest", "easiest", "rank", "text"] + ["difference"] * 3 * ("first" in params)
    params["sort"] = [draw.choice(sorts)]
    size = draw.choice((1, 7, 25, 100))
    wanted = plain.listed(params)
    pages = -(-len(wanted) // size)
    for page in {1, pages, draw.randint(1, pages + 1)} - {0}:
        found = served.get("questions", size=size, page=page, **params)
        assert found["total"] == len(wanted)
        assert [row["id"] for row in found["questions"]] == wanted[size * (page - 1) : size * page], params


@pytest.mark.parametrize("seed", range(40))
def test_counts_beside_the_filters_are_those_of_a_plain_pass(served, plain, seed):
    params = some_filters(random.Random(1000 + seed), plain)
    found, wanted = served.get("facets", **params), plain.counts(params)
    assert found["results"] == wanted["results"], params
    assert found["ways"] == wanted["ways"], params
    for name, facet in found["facets"].items():
        counts = {one["value"]: one["count"] for one in facet["values"] if one["count"]}
        assert counts == wanted["facets"][name], (name, params)


@pytest.mark.parametrize("seed", range(30))
def test_two_ways_compare_as_in_a_plain_pass(served, plain, seed):
    draw = random.Random(2000 + seed)
    first, second = draw.sample(plain.labels, 2)
    params = some_filters(draw, plain) | {"first": [first], "second": [second]}
    found = served.get("compare", **params)
    wanted = plain.compared(params)
    assert {name: found[name] for name in wanted} == wanted, params


def test_pages_put_together_are_all_questions_once(served, plain):
    for sort in ("run", "hardest", "rank", "text"):
        found = [
            row["id"] for page in range(1, 9) for row in served.get("questions", page=page, sort=sort)["questions"]
        ]
        assert sorted(found) == sorted(row["question_id"] for row in plain.questions)


def test_a_line_of_the_list_shows_what_became_of_the_question(served, plain):
    for row in served.get("questions", size=100)["questions"]:
        (asked,) = (one for one in plain.questions if one["question_id"] == row["id"])
        assert f"{row['before']}[MASK]{row['after']}" == asked["prompt"]
        assert row["golds"] == asked["answers"]
        cells = [plain.cell(way, asked) for way in range(len(plain.ways))]
        assert row["verdicts"] == [cell["verdict"] for cell in cells]
        assert row["tied"] == [cell["tied"] for cell in cells]
        assert row["ranks"] == pytest.approx([cell["rank"] for cell in cells])


def test_one_question_shows_its_ranked_candidates_its_fact_its_proof_and_its_set(served, made_up):
    answers = pq.read_table(made_up / "answers.parquet").to_pylist()
    questions = pq.read_table(made_up / "questions.parquet").to_pylist()
    ways = served.get("run")["ways"]
    for row in questions[::9]:
        found = served.get("question", id=row["question_id"])
        own = [one for one in answers if one["question_id"] == row["question_id"]]
        assert len(found["model_answers"]) == len(own)
        for said in found["model_answers"]:
            way = ways[said["way"]]
            (given,) = (
                one
                for one in own
                if [one[name] for name in ("model", "probe", "method", "repeat")]
                == [way["model"], way["probe"], way["method"], said["repeat"]]
            )
            shown = [(one["text"], one["score"]) for one in said["ranked"]]
            assert shown == [(one["candidate"], one["score"]) for one in given["ranked"] or ()]
            assert all(one["gold"] == (one["text"] in row["answers"]) for one in said["ranked"])
        assert found["candidates"] == list(PLACES)
        siblings = [
            one["question_id"] for one in questions if row["qset"] and one["qset"] == row["qset"] and one is not row
        ]
        assert [one["id"] for one in found["qset_questions"]] == siblings
        (fact,) = found["facts"]
        number = int(row["facts"][0][2:])
        assert (fact["subject"], fact["object"]) == (f"thing:{number}", f"place:{number}")
        if number % 2:
            assert [one["fact_id"] for one in fact["premises"]] == [f"f_{number - 1}", "f_gone"]
            assert fact["premises"][1]["missing"] and fact["rule"] == "chain"
        else:
            assert fact["premises"] == [] and fact["source"] == "a book"


@pytest.mark.parametrize(
    ("view", "params", "said"),
    [
        ("questions", {"result": "splendid"}, "The result must be one of right, wrong, unusable, tied."),
        ("questions", {"sort": "size"}, "Sort by one of"),
        ("questions", {"sort": "difference"}, "Name two models"),
        ("questions", {"page": "-1"}, "page must be an integer"),
        ("questions", {"page": "1e9"}, "page must be an integer"),
        ("questions", {"low": "low"}, "A rank must be a number, got 'low'."),
        ("questions", {"low": "nan"}, "A rank must be a number"),
        ("questions", {"search": "x" * 401}, "at most 400 characters"),
        ("questions", {"search": " ".join("abcdefghijklmn")}, "at most 12 words"),
        ("questions", {"first": "small (sum)", "second": "nobody"}, "There is no such model in this run."),
        ("questions", {"first": "large", "second": "writer", "cell": "all"}, "The cell must be one of"),
        ("compare", {}, "Name two models to compare."),
        ("compare", {"first": "large"}, "Name two models to compare."),
        ("question", {}, "There is no such question in this run."),
        ("question", {"id": "q_none"}, "There is no such question in this run."),
        ("play", {"job": "one", "seen": "0"}, "job and seen must be integers"),
    ],
)
def test_what_means_nothing_is_refused_in_words(served, view, params, said):
    assert said in served.get(view, 400, **params)["error"]


def test_a_page_beyond_the_last_is_empty_and_says_how_many_there_are(served):
    found = served.get("questions", page=10**12 - 1)
    assert found["questions"] == [] and found["total"] == 180


def test_heads_of_columns_are_short_and_distinct_and_the_page_knows_which_counts_are_few(served):
    about = served.get("run")
    assert about["few"] == FEW_QUESTIONS
    short = [way["short"] for way in about["ways"]]
    assert len(set(short)) == len(short) and max(map(len, short)) <= 40
