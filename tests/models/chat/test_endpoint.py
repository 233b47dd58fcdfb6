"""A model behind an endpoint: what is sent, what is tried again, what is kept, what stops a run and in which words."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from chat_servers import ScriptedServer, completion, running

from merkhet.core.errors import InputError, MerkhetError
from merkhet.models.chat._chat_settings import read_settings
from merkhet.models.chat._endpoint import EndpointError, EndpointModel
from merkhet.models.chat._rate_limits import BudgetExhaustedError
from merkhet.models.chat._reply_cache import ReplyCache
from merkhet.models.chat.chat_messages import ChatReply, ChatRequest

SECRET = "sk-Zq8-not-to-be-seen-anywhere"


def echo(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, completion(f"re: {body['messages'][-1]['content']}")


def asked(count: int, first: int = 0) -> list[ChatRequest]:
    return [ChatRequest((("user", f"question {number}"),), 8) for number in range(first, first + count)]


def model_at(server: ScriptedServer, folder: Path, **settings: Any) -> EndpointModel:
    given = read_settings("tester", server.endpoint, {"timeout": 5, **settings})
    return EndpointModel("tester", given, ReplyCache(folder / "replies.sqlite"))


def texts(replies: list[ChatReply]) -> list[str]:
    return [one.text for one in sorted(replies, key=lambda one: one.index)]


def test_every_request_has_its_reply_and_all_that_was_set(tmp_path: Path) -> None:
    with running(ScriptedServer(echo)) as server:
        model = model_at(server, tmp_path, system="Be brief.", seed=7, extra={"top_k": 1}, concurrency=4)
        found = list(model.reply(asked(25)))
        assert texts(found) == [f"re: question {number}" for number in range(25)]
        body = server.requests[0]
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    kept = {name: body[name] for name in ("model", "temperature", "seed", "max_tokens", "top_k", "stream")}
    assert kept == {"model": "tester", "temperature": 0.0, "seed": 7, "max_tokens": 8, "top_k": 1, "stream": False}


def test_what_was_replied_is_not_asked_again_in_this_run_or_a_later_one(tmp_path: Path) -> None:
    with running(ScriptedServer(echo)) as server:
        first = model_at(server, tmp_path)
        assert texts(list(first.reply([*asked(10), *asked(10)]))) == 2 * [f"re: question {n}" for n in range(10)]
        assert len(server.requests) == 10
        first.cache.close()
        again = model_at(server, tmp_path)
        assert texts(list(again.reply(asked(12)))) == [f"re: question {number}" for number in range(12)]
        assert len(server.requests) == 12
        # Another setting that decides the reply is another request; how fast it is asked is not.
        list(model_at(server, tmp_path, concurrency=1, timeout=9).reply(asked(12)))
        assert len(server.requests) == 12
        list(model_at(server, tmp_path, system="Other.").reply(asked(3)))
        assert len(server.requests) == 15


def test_as_many_are_in_flight_as_is_said_and_no_more(tmp_path: Path) -> None:
    now, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(6)

    def wait_for_others(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        # No reply before six are in flight; a seventh would have this time to come.
        together.wait(60)
        time.sleep(0.05)
        with lock:
            now -= 1
        return echo(body, headers)

    with running(ScriptedServer(wait_for_others)) as server:
        list(model_at(server, tmp_path, concurrency=6, timeout=60).reply(asked(30)))
    assert most == 6


def test_a_rate_spreads_requests_over_time(tmp_path: Path) -> None:
    times: list[float] = []

    def timed(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        times.append(time.monotonic())
        return echo(body, headers)

    with running(ScriptedServer(timed)) as server:
        model = model_at(server, tmp_path, concurrency=8, rate=600)
        begun = time.monotonic()
        list(model.reply(asked(11)))
    # Six hundred a minute are ten a second: eleven take a second at least, however late each arrives.
    assert all(time >= begun + 0.1 * place - 0.01 for place, time in enumerate(sorted(times)))
    assert len(times) == 11


@pytest.mark.parametrize(
    "fault",
    [
        (429, {"Retry-After": "0"}, b'{"error": {"message": "slow down"}}'),
        (429, {"retry-after-ms": "5"}, b"{}"),
        (500, {}, b"oh no"),
        (503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"{}"),
        (200, {}, b'{"choices": [{"mess'),
        (200, {}, b'{"choices": []}'),
        (200, {}, b"[]"),
    ],
)
def test_a_passing_fault_is_tried_again(tmp_path: Path, fault: tuple[int, dict[str, str], bytes]) -> None:
    seen: set[str] = set()

    def once(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        text = body["messages"][-1]["content"]
        if text not in seen:
            seen.add(text)
            return fault
        return echo(body, headers)

    with running(ScriptedServer(once)) as server:
        model = model_at(server, tmp_path, concurrency=1)
        assert texts(list(model.reply(asked(2)))) == ["re: question 0", "re: question 1"]
        assert len(server.requests) == 4
        assert model.work["requests_tried_again"] == 2


def test_retry_after_is_waited_for_by_all(tmp_path: Path) -> None:
    times: list[float] = []

    def once(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        times.append(time.monotonic())
        return (429, {"Retry-After": "0.5"}, b"{}") if len(times) == 1 else echo(body, headers)

    with running(ScriptedServer(once)) as server:
        list(model_at(server, tmp_path, concurrency=1).reply(asked(3)))
    assert times[1] - times[0] >= 0.5


def test_an_endpoint_that_goes_on_failing_stops_the_run_and_keeps_what_came(tmp_path: Path) -> None:
    def broken(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        return (500, {}, b"broken") if body["messages"][-1]["content"] == "question 5" else echo(body, headers)

    with running(ScriptedServer(broken)) as server:
        model = model_at(server, tmp_path, tries=2, concurrency=2)
        with pytest.raises(
            EndpointError, match=r"gave no reply in 2 attempts: broken \(500\).*are cached; start again to continue"
        ):
            list(model.reply(asked(6)))
        server.respond = echo
        before = len(server.requests)
        again = model_at(server, tmp_path)
        assert texts(list(again.reply(asked(6)))) == [f"re: question {number}" for number in range(6)]
        assert len(server.requests) == before + 1


def test_one_who_wants_to_be_left_alone_for_long_is_not_waited_for(tmp_path: Path) -> None:
    with running(ScriptedServer(lambda body, headers: (429, {"Retry-After": "86400"}, b"{}"))) as server:
        with pytest.raises(EndpointError, match="asks to wait 86,400 s"):
            list(model_at(server, tmp_path).reply(asked(1)))
        assert len(server.requests) == 1


def test_a_budget_of_requests_stops_cleanly_and_the_rest_is_asked_at_the_next_start(tmp_path: Path) -> None:
    with running(ScriptedServer(echo)) as server:
        for start in range(2):
            with pytest.raises(
                BudgetExhaustedError, match=r"the budget of 8 requests is exhausted\. \d+ requests are left"
            ):
                list(model_at(server, tmp_path, requests=8, concurrency=3).reply(asked(20)))
            assert len(server.requests) == 8 * (start + 1)
        assert len(list(model_at(server, tmp_path, requests=8).reply(asked(20)))) == 20
        assert len(server.requests) == 20


def test_a_budget_of_tokens_is_not_overdrawn(tmp_path: Path) -> None:
    with running(ScriptedServer(echo)) as server:
        model = model_at(server, tmp_path, tokens=100, concurrency=4)
        with pytest.raises(BudgetExhaustedError, match="the budget of 100 tokens is exhausted"):
            list(model.reply(asked(20)))
        # Each reply says that it took 12.
        assert model.work["tokens"] == 12 * len(server.requests) <= 100
        assert len(server.requests) >= 5


@pytest.mark.parametrize("name", ["seed", "logprobs", "temperature", "max_tokens"])
def test_a_parameter_that_is_not_taken_is_left_out_from_then_on(tmp_path: Path, name: str) -> None:
    def picky(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if name in body:
            return 400, {}, json.dumps({"error": {"message": f"Unsupported parameter: '{name}'"}}).encode()
        return echo(body, headers)

    with running(ScriptedServer(picky)) as server:
        model = model_at(server, tmp_path, concurrency=1)
        requests = [ChatRequest((("user", str(number)),), 8, ("A", "B")) for number in range(4)]
        assert len(list(model.reply(requests))) == 4
        assert len(server.requests) == 5
        assert name in model.describe()["left_out"]
        if name == "max_tokens":
            assert server.requests[-1]["max_completion_tokens"] == 8


def letters(**tops: float) -> dict[str, Any]:
    found = [{"token": token, "logprob": value} for token, value in tops.items()]
    return {"logprobs": {"content": [{"token": "B", "logprob": -0.1, "top_logprobs": found}]}}


def test_log_probabilities_of_letters_are_read_with_and_without_a_blank(tmp_path: Path) -> None:
    def likely(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        assert body["logprobs"] is True and body["top_logprobs"] == 20
        return 200, {}, completion("B", **letters(**{"B": -1.0, " B": -1.0, "A": -2.0, "The": -3.0}))

    with running(ScriptedServer(likely)) as server:
        model = model_at(server, tmp_path)
        (reply,) = model.reply([ChatRequest((("user", "?"),), 8, ("A", "B", "C"))])
        assert model.has_letter_logprobs()
    assert reply.letters == pytest.approx({"A": -2.0, "B": -0.3068528})


def test_an_endpoint_without_log_probabilities_is_seen_to_give_none(tmp_path: Path) -> None:
    with running(ScriptedServer(echo)) as server:
        assert not model_at(server, tmp_path).has_letter_logprobs()


@pytest.mark.parametrize(
    ("status", "message", "told"),
    [
        (401, f"Incorrect API key provided: {SECRET}.", "rejects the key in MERKHET_TEST_KEY"),
        (403, "forbidden", "rejects the key in MERKHET_TEST_KEY"),
        (404, "The model `tester` does not exist", "has no model 'tester': The model `tester` does not exist"),
        (400, "strange things", r"rejects the request: strange things \(400\)"),
        (429, "You exceeded your current quota, check your plan and billing details", "billing"),
    ],
)
def test_what_the_user_must_mend_is_said_at_once_and_without_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, message: str, told: str
) -> None:
    monkeypatch.setenv("MERKHET_TEST_KEY", SECRET)
    content = json.dumps({"error": {"message": message}}).encode()
    with running(ScriptedServer(lambda body, headers: (status, {}, content))) as server:
        with pytest.raises(MerkhetError, match=told) as caught:
            list(model_at(server, tmp_path, key="MERKHET_TEST_KEY", concurrency=1).reply(asked(3)))
        assert len(server.requests) == 1
        assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in str(caught.value)
    assert SECRET.encode() not in (tmp_path / "replies.sqlite").read_bytes()


def test_an_endpoint_that_wants_a_key_where_none_is_named(tmp_path: Path) -> None:
    with (
        running(ScriptedServer(lambda body, headers: (401, {}, b'{"error": "no key"}'))) as server,
        pytest.raises(InputError, match=r"needs a key: put it into an environment variable.*\(key: VARIABLE\): no key"),
    ):
        list(model_at(server, tmp_path).reply(asked(1)))


def test_a_key_may_stand_in_another_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERKHET_TEST_KEY", SECRET)
    with running(ScriptedServer(echo)) as server:
        list(model_at(server, tmp_path, key="MERKHET_TEST_KEY", key_header="api-key").reply(asked(1)))
        assert server.headers[0]["api-key"] == SECRET
        assert "authorization" not in server.headers[0]


def test_questions_that_cannot_be_asked_do_not_stop_the_others(tmp_path: Path) -> None:
    long = "This model's maximum context length is 2048 tokens. However, your messages resulted in 3000 tokens."

    def picky(body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        text = body["messages"][-1]["content"]
        if text == "question 1":
            return 400, {}, json.dumps({"error": {"message": long}}).encode()
        if text == "question 2":
            return (
                400,
                {},
                json.dumps({"error": {"message": "The response was filtered", "code": "content_filter"}}).encode(),
            )
        if text == "question 3":
            return 200, {}, completion(None, message={"role": "assistant", "content": None, "refusal": "No."})
        if text == "question 4":
            return 200, {}, completion("", finish_reason="content_filter")
        if text == "question 5":
            return 422, {}, b'{"detail": "odd"}'
        return 200, {}, completion("fine", strange={"more": [1]})

    with running(ScriptedServer(picky)) as server:
        found = sorted(model_at(server, tmp_path, concurrency=1).reply(asked(7)), key=lambda one: one.index)
    assert [one.text for one in (found[0], found[6])] == ["fine", "fine"]
    assert found[1].unusable == "too long for the model's context"
    assert [one.refused for one in found] == [False, False, True, True, True, False, False]
    assert found[5].unusable == "the endpoint refuses this question: odd (422)"


def test_nothing_is_there(tmp_path: Path) -> None:
    server = ScriptedServer(echo)
    server.server_close()
    with pytest.raises(EndpointError, match="the connection was refused"):
        list(model_at(server, tmp_path, tries=2).reply(asked(1)))


def test_a_reply_that_drips_has_no_more_time_than_a_silent_one(tmp_path: Path) -> None:
    class Dripping(ScriptedServer):
        def answer(self, handler: Any, body: dict[str, Any]) -> None:
            handler.send(200, {}, b"", claimed=1_000_000)
            while True:  # Until the client hangs up.
                handler.wfile.write(b" ")
                time.sleep(0.02)

    with (
        running(Dripping(echo)) as server,
        pytest.raises(EndpointError, match="gave no reply in 2 attempts: no reply in time"),
    ):
        list(model_at(server, tmp_path, tries=2, timeout=0.3).reply(asked(1)))
    assert len(server.requests) == 2


def test_a_reply_that_is_too_large_is_tried_again_and_then_refused(tmp_path: Path) -> None:
    lists = b"[" + b"[]," * 2_000_000 + b"[]]"
    for content, settings, told in (
        (completion("x" * 20_000), {"max_bytes": "20kB"}, "the reply is larger than 20,000 bytes"),
        (lists, {}, "the reply of 6,000,004 bytes may take more than 160,000,000 bytes of memory when parsed"),
    ):
        with (
            running(ScriptedServer(lambda body, headers, content=content: (200, {}, content))) as server,
            pytest.raises(EndpointError, match=f"gave no reply in 2 attempts: {told}"),
        ):
            list(model_at(server, tmp_path, tries=2, **settings).reply(asked(1)))
        assert len(server.requests) == 2


def test_a_large_reply_is_read_from_disk(tmp_path: Path) -> None:
    with running(ScriptedServer(lambda body, headers: (200, {}, completion("é" * 500_000)))) as server:
        (reply,) = model_at(server, tmp_path).reply(asked(1))
    assert reply.text == "é" * 500_000


def test_a_redirect_is_not_followed_and_its_target_is_named(tmp_path: Path) -> None:
    there = {"Location": "https://me:hunter2@elsewhere.invalid/v1?token=abc"}
    with (
        running(ScriptedServer(lambda body, headers: (307, there, b"Moved"))) as server,
        pytest.raises(
            InputError, match=r"rejects the request: Moved \(307\) \(redirected to https://elsewhere"
        ) as caught,
    ):
        list(model_at(server, tmp_path).reply(asked(1)))
    assert "hunter2" not in str(caught.value) and "abc" not in str(caught.value)


def test_no_part_of_a_key_is_left_where_a_message_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERKHET_TEST_KEY", SECRET)
    for start in range(270, 301, 5):
        content = json.dumps({"error": "x" * start + SECRET}).encode()
        with (
            running(ScriptedServer(lambda body, headers, content=content: (401, {}, content))) as server,
            pytest.raises(InputError) as caught,
        ):
            list(model_at(server, tmp_path, key="MERKHET_TEST_KEY").reply(asked(1)))
        assert SECRET[:3] not in str(caught.value)


def test_thoughts_are_no_part_of_a_reply(tmp_path: Path) -> None:
    with running(ScriptedServer(lambda body, headers: (200, {}, completion("<think>A? B!</think>\n\nB")))) as server:
        (reply,) = model_at(server, tmp_path).reply(asked(1))
    assert reply.text == "B"
