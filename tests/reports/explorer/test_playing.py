"""Playing: what is refused and in which words, and rankings by real models that equal those of a run's probe."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from merkhet.core.errors import MerkhetError
from merkhet.core.records import Question
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec
from merkhet.models.protocol import Model
from merkhet.probes import PROBES
from merkhet.reports.explorer.playground import Playable

SENTENCE = "The capital of France is [MASK]."
FILLED = {"text": SENTENCE, "candidates": "Paris, Berlin, Rome", "models": [{"name": "bert"}]}


@pytest.fixture(scope="module")
def bert(model_folders) -> Model:
    return load_model(ModelSpec(str(model_folders["bert-cased"]), label="bert"))


def until_done(client: Any, content: Any) -> dict[str, Any]:
    """Play, and wait for the end as the page does."""
    job, seen = client.post(content)["job"], -1
    while True:
        found = client.get("play", job=job, seen=seen)
        if found["state"] in ("done", "replaced"):
            return found
        seen = found["version"]


@pytest.fixture
def playing(explorer, made_up, bert):
    return explorer(
        made_up,
        [
            Playable("bert", "masked", lambda: bert),
            Playable("frequency", "baseline", None, "a baseline counts or guesses"),
        ],
    )


def test_a_ranking_is_that_of_the_probe_of_a_run(playing, bert):
    question = Question("q", "t", SENTENCE, ("Paris",), "Paris", candidates=("Paris", "Berlin", "Rome"))
    (answer,) = PROBES.get("rank")(bert, [question], [])
    done = until_done(playing, FILLED)
    (result,) = done["results"]
    shown = [(item["text"], item["score"]) for item in result["ranked"]]
    assert shown == [(text, pytest.approx(score, abs=1e-5)) for text, score in answer.ranked]
    assert [item["rank"] for item in result["ranked"]] == [1, 2, 3]
    assert result["method"] == answer.method and result["among"] == 3


def test_every_method_of_a_model_can_be_chosen_and_another_is_not_taken(playing, bert):
    for method in bert.methods:
        done = until_done(playing, FILLED | {"models": [{"name": "bert", "method": method}]})
        assert done["results"][0]["method"] == method
        assert done["results"][0]["methods"] == list(bert.methods)
    done = until_done(playing, FILLED | {"models": [{"name": "bert", "method": "no such method"}]})
    assert done["results"][0]["method"] == bert.methods[0]


@pytest.mark.parametrize("slot", ["[MASK]", "[mask]", "___", "_____"])
def test_a_slot_may_be_written_in_several_ways(playing, slot):
    first, other = (
        until_done(playing, FILLED | {"text": f"The capital of France is {own}."})["results"][0]["ranked"]
        for own in ("[MASK]", slot)
    )
    assert first == other


def test_candidates_may_stand_on_lines_or_between_commas_and_count_once(playing):
    for text in ("Paris,Berlin ,, Rome,Paris", "Paris\nBerlin\n\nRome\nParis\n", "Paris，Berlin、Rome"):
        (result,) = until_done(playing, FILLED | {"candidates": text})["results"]
        assert sorted(item["text"] for item in result["ranked"]) == ["Berlin", "Paris", "Rome"]
    (result,) = until_done(playing, FILLED | {"candidates": "Paris, France\nRome, Italy"})["results"]
    assert sorted(item["text"] for item in result["ranked"]) == ["Paris, France", "Rome, Italy"]


def test_a_slot_can_be_filled_freely(playing):
    (result,) = until_done(playing, FILLED | {"probe": "fill", "candidates": ""})["results"]
    scores = [item["score"] for item in result["ranked"]]
    assert len(scores) >= 5 and scores == sorted(scores, reverse=True)


def test_a_model_that_cannot_is_said_so_and_the_others_answer(playing):
    done = until_done(playing, FILLED | {"models": [{"name": "frequency"}, {"name": "bert"}]})
    assert done["results"][0] == {"model": "frequency", "error": "a baseline counts or guesses"}
    assert done["results"][1]["ranked"][0]["text"]


def test_hostile_and_foreign_candidates_come_back_as_they_are(explorer, made_up, model_folders):
    client = explorer(made_up, [Playable("bytes", "causal", lambda: load_model(str(model_folders["gpt2"])))])
    candidates = ["<script>1</script>", "القاهرة", '"', "北京"]
    wish = {"text": SENTENCE, "candidates": "\n".join(candidates), "models": [{"name": "bytes"}]}
    (result,) = until_done(client, wish)["results"]
    assert sorted(item["text"] for item in result["ranked"]) == sorted(candidates)


def test_what_a_model_cannot_read_is_unusable_and_says_why(playing):
    (result,) = until_done(playing, FILLED | {"candidates": "Paris, 北京"})["results"]
    assert result["ranked"] == [] and "北京" in result["unusable"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text": ""}, "Write a sentence with [MASK] or ___"),
        ({"text": "   "}, "Write a sentence"),
        ({"text": None}, "Write a sentence"),
        ({"text": ["[MASK]"]}, "Write a sentence"),
        ({"text": "No slot."}, "The sentence has no slot"),
        ({"text": "[MASK] and [MASK]"}, "The sentence has 2 slots"),
        ({"text": "[MASK]" + "x" * 4000}, "4,006 characters; write at most 4,000"),
        ({"candidates": ""}, "Write two candidates or more"),
        ({"candidates": "Paris"}, "Write two candidates or more"),
        ({"candidates": "Paris, Paris"}, "Write two candidates or more"),
        ({"candidates": ["Paris"]}, "Candidates must be a text"),
        ({"candidates": "\n".join(map(str, range(2001)))}, "There are 2,001 candidates; write at most 2,000."),
        ({"candidates": "x" * 501 + ", y"}, "at most 500 characters"),
        ({"candidates": "Paris, [MASK]"}, "cannot contain [MASK]"),
        ({"models": []}, "Choose a model."),
        ({"models": "bert"}, "Choose a model."),
        ({"models": ["bert"]}, "There is no such model"),
        ({"models": [{"name": "/etc/passwd"}]}, "There is no such model"),
        ({"models": [{"name": "bert", "method": 1}]}, "There is no such model"),
        ({"models": [{"name": "bert"}] * 9}, "Choose at most 8 models."),
        ({"probe": "compare"}, "The probe must be one of rank, fill, write."),
        ({"probe": ["rank"]}, "The probe must be one of rank, fill, write."),
    ],
)
def test_what_cannot_be_played_is_said_in_words(playing, change, said):
    assert said in playing.post(FILLED | change)["refused"]


@pytest.mark.parametrize("content", [[], "text", None, 3])
def test_content_that_is_no_object_is_refused(playing, content):
    assert "A play request must be an object" in playing.post(content)["refused"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"X_Merkhet_Token": ""}, 403),
        ({"X_Merkhet_Token": "guess"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Type": ""}, 415),
        ({"Content_Length": "many"}, 411),
        ({"Content_Length": "-1"}, 411),
        ({"Transfer_Encoding": "chunked"}, 411),
        ({"Content_Length": str(2**20 + 1)}, 413),
        ({"Content_Length": "9" * 30}, 413),
    ],
)
def test_a_foreign_page_cannot_play_and_what_is_too_large_is_not_read(playing, headers, status):
    playing.post(FILLED, status, **{name: text.format(port=playing.port) for name, text in headers.items()})
    assert playing.server.player._latest is None, "nothing was asked"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"{'text': 1}", b"[" * 100_000])
def test_content_that_is_no_json_is_refused(playing, body):
    assert "not valid JSON" in playing.post(body, 400)["error"]


def test_there_is_nothing_else_to_post_to(playing):
    headers = {"Origin": playing.url[:-1], "X_Merkhet_Token": playing.server.token, "Content_Type": "application/json"}
    for target in ("/", "/api/run", "/api/questions", "/nowhere"):
        assert playing.ask(target, method="POST", body=b"{}", **headers)[0] == 404


@contextmanager
def held() -> Iterator[tuple[Callable[[], Model], threading.Event, threading.Event]]:
    """A loader that waits until it is let go."""
    begun, free = threading.Event(), threading.Event()

    def load() -> Model:
        begun.set()
        assert free.wait(30)
        raise MerkhetError("its files are gone")

    try:
        yield load, begun, free
    finally:
        free.set()


def test_only_the_latest_sentence_is_answered(explorer, made_up, bert):
    with held() as (load, begun, free):
        client = explorer(made_up, [Playable("slow", "masked", load), Playable("bert", "masked", lambda: bert)])
        first = client.post(FILLED | {"models": [{"name": "slow"}]})["job"]
        assert begun.wait(30)
        assert client.get("play", job=first, seen=-1)["message"] == "slow: loading …"
        second = client.post(FILLED | {"text": "Rome is [MASK]."})["job"]
        third = client.post(FILLED)["job"]
        for replaced in (first, second):
            assert client.get("play", job=replaced, seen=-1)["state"] == "replaced"
        assert client.get("play", job=third, seen=-1)["state"] == "waiting"
        free.set()
        seen = 0
        while (found := client.get("play", job=third, seen=seen))["state"] != "done":
            seen = found["version"]
        assert found["results"][0]["ranked"][0]["text"] in ("Paris", "Berlin", "Rome")


def test_a_model_that_does_not_load_says_why_and_the_rest_goes_on(explorer, made_up):
    with held() as (load, _, free):
        free.set()
        client = explorer(made_up, [Playable("gone", "masked", load), Playable("odd", "masked", lambda: 1 / 0)])
        done = until_done(client, FILLED | {"models": [{"name": "gone"}, {"name": "odd"}]})
    assert [one["error"] for one in done["results"]] == ["its files are gone", "ZeroDivisionError: division by zero"]
    assert client.get("run")["questions"] == 180


def test_models_that_are_no_longer_wanted_are_let_go(explorer, made_up, bert):
    client = explorer(made_up, [Playable(name, "masked", lambda: bert) for name in ("a", "b")])
    for name in ("a", "b"):
        until_done(client, FILLED | {"models": [{"name": name}]})
        loaded = [one["name"] for one in client.get("run")["models"] if one["loaded"]]
        assert loaded == [name]


def test_the_page_s_secret_is_new_each_time(explorer, made_up):
    first, second = explorer(made_up), explorer(made_up)
    assert first.server.token != second.server.token
    assert first.server.token.encode() in first.ask("/")[2]
    assert first.server.token not in json.dumps(first.get("run"))
