"""Retries: how often, after which pauses, and with which error at the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from merkhet.core.http_retry import RetriesExhaustedError, RetryableError, RetryPolicy, retry

Wait = tuple[str, int, float]


def script(*outcomes: RetryableError | str) -> Callable[[], str]:
    remaining = iter(outcomes)

    def send() -> str:
        outcome = next(remaining)
        if isinstance(outcome, RetryableError):
            raise outcome
        return outcome

    return send


def run(policy: RetryPolicy, *outcomes: RetryableError | str) -> tuple[str | RetriesExhaustedError, list[Wait]]:
    waits: list[Wait] = []
    try:
        result: str | RetriesExhaustedError = retry(
            script(*outcomes), policy, lambda failure, attempt, pause: waits.append((str(failure), attempt, pause))
        )
    except RetriesExhaustedError as error:
        result = error
    return result, waits


def test_pauses_double_within_half_and_one_and_a_half_up_to_a_minute() -> None:
    policy = RetryPolicy(2000, 0.5)
    for attempt, usual in [(1, 0.5), (2, 1.0), (3, 2.0), (7, 32.0), (8, 60.0), (9, 60.0), (1999, 60.0)]:
        pauses = [policy.pause(attempt) for _ in range(200)]
        assert 0.5 * usual <= min(pauses) < 0.8 * usual
        assert 1.2 * usual < max(pauses) <= 1.5 * usual


def test_a_failure_is_retried_until_it_passes() -> None:
    result, waits = run(RetryPolicy(3, 1.0), RetryableError("a"), RetryableError("b", 0.0), "done")
    assert result == "done"
    assert [(failure, attempt) for failure, attempt, _ in waits] == [("a", 1), ("b", 2)]
    assert 0.5 <= waits[0][2] <= 1.5
    assert waits[1][2] == 0.0


def test_the_last_failure_is_told_with_the_number_of_attempts() -> None:
    for attempts in (1, 3):
        failures = [RetryableError(str(number), 900.0 if number == attempts else None) for number in (1, 2, 3, 4)]
        result, waits = run(RetryPolicy(attempts, 1.0), *failures)
        assert isinstance(result, RetriesExhaustedError)
        assert (str(result), result.attempts, result.wait_too_long) == (str(attempts), attempts, False)
        assert len(waits) == attempts - 1


def test_a_server_that_asks_for_a_long_wait_is_not_waited_for() -> None:
    result, waits = run(RetryPolicy(9, 1.0), RetryableError("busy", 600.0), RetryableError("busier", 600.1))
    assert isinstance(result, RetriesExhaustedError)
    assert (result.attempts, result.wait_too_long) == (2, True)
    assert result.failure.retry_after == 600.1
    assert waits == [("busy", 1, 600.0)]


def test_other_errors_pass_at_once() -> None:
    def send() -> str:
        raise KeyError("x")

    with pytest.raises(KeyError):
        retry(send, RetryPolicy(9, 1.0), lambda failure, attempt, pause: pytest.fail("no retry is due"))
