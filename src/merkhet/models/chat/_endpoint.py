"""Chat models behind an OpenAI-compatible endpoint, with concurrent requests and retries."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from merkhet.core.byte_sizes import parse_size
from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.http_client import CertificateError, HttpClient, Limits
from merkhet.core.http_response import Response
from merkhet.core.http_retry import RetriesExhaustedError, RetryableError, RetryPolicy, retry
from merkhet.core.records import Question
from merkhet.core.redaction import redact_content
from merkhet.core.spooled_file import SpooledFile
from merkhet.core.text import counted
from merkhet.core.text_formats import LargeReplyError, parse_reply
from merkhet.models.chat._chat_settings import ChatSettings
from merkhet.models.chat._rate_limits import Budget, BudgetExhaustedError, RateLimiter
from merkhet.models.chat._reply_cache import ReplyCache, reply_key
from merkhet.models.chat._response_errors import ABORT, RETRY, UNSUPPORTED, UNUSABLE, Failure, classify_failure
from merkhet.models.chat.chat_messages import ChatReply, ChatRequest, strip_reasoning
from merkhet.models.protocol import CandidateScores, refuse_questions

logger = logging.getLogger("merkhet.models")

MAX_TOP_LOGPROBS = 20
"""The number of log-probabilities requested per token, which is the maximum that endpoints allow."""
_FIRST_PAUSE = 0.5
"""Seconds before the first retry."""
_MEMORY_PER_REPLY = 1 << 16
"""The maximum bytes of a reply in memory while it arrives; a larger one moves to a temporary file."""
_PARSING = threading.Lock()
"""Held while a reply is parsed, so that large replies to concurrent requests do not take memory at the same time."""
_CHARACTERS_PER_TOKEN = 3.0
"""The assumed number of characters per token, to reserve tokens before the endpoint reports them."""


class EndpointError(MerkhetError):
    """Error of an endpoint that keeps failing; cached replies are kept."""


@dataclass
class _PendingRequest:
    """A distinct request, with the indices of all equal requests in the caller's list."""

    request: ChatRequest
    body: dict[str, Any]
    key: str
    indices: list[int]


class EndpointModel:
    """A chat model behind an endpoint, whose replies are cached on disk."""

    kind = "chat"
    methods: tuple[str, ...] = ()

    def __init__(self, name: str, settings: ChatSettings, cache: ReplyCache | None = None) -> None:
        self.name, self.settings = name, settings
        self.fingerprint = settings.identity
        self._cache = cache
        self.unsupported: set[str] = set()
        self.rate_limiter = RateLimiter(settings.rate)
        self.retry_policy = RetryPolicy(settings.tries, _FIRST_PAUSE)
        self.budget = Budget(settings.requests, settings.tokens)
        self.counts: dict[str, int] = defaultdict(int)
        self.lock = threading.Lock()

    @property
    def cache(self) -> ReplyCache:
        """The reply cache, which is opened on first use."""
        if self._cache is None:
            self._cache = ReplyCache()
        return self._cache

    @property
    def work(self) -> dict[str, int]:
        """The numbers of requests, tokens, cached replies and retries so far."""
        return {
            "requests": self.budget.requests,
            "tokens": self.budget.tokens,
            "replies_kept_before": self.counts["cached"],
            "requests_tried_again": self.counts["retried"],
        }

    def describe(self) -> dict[str, str | int | float]:
        """Describe the endpoint and its settings, without the key."""
        facts: dict[str, Any] = {
            "endpoint": self.settings.endpoint,
            "model": self.settings.name,
            "temperature": self.settings.temperature,
            "seed": self.settings.seed,
            "system": self.settings.system,
            "left_out": ", ".join(sorted(self.unsupported)) or None,
        }
        return {name: value for name, value in facts.items() if value is not None}

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Mark every question as unusable, because endpoints do not return the probability of a given text."""
        return refuse_questions(questions, "a chat endpoint ranks no candidates; ask it to choose or to answer")

    def has_letter_logprobs(self) -> bool:
        """Send one small request, and return whether its reply has log-probabilities of letters."""
        request = ChatRequest((("user", "Reply with the letter A."),), 1, ("A", "B"))
        (reply,) = self.reply([request])
        return reply.letters is not None

    def reply(self, requests: Sequence[ChatRequest]) -> Iterator[ChatReply]:
        """Yield the replies as they arrive; equal requests are sent once, and cached ones are not sent.

        Raises:
            InputError: The key or the model is wrong.
            BudgetExhaustedError: The budget is exhausted.
            EndpointError: The endpoint keeps failing.
        """
        pending: dict[str, _PendingRequest] = {}
        for index, request in enumerate(requests):
            body = self._body(request)
            key = reply_key(self.settings.endpoint, body)
            pending.setdefault(key, _PendingRequest(request, body, key, [])).indices.append(index)
        cached = self.cache.find(list(pending))
        self.counts["cached"] += len(cached)
        for key, content in cached.items():
            yield from self._replies(pending.pop(key), content)
        if pending:
            yield from self._send_all(list(pending.values()))

    def _send_all(self, requests: Sequence[_PendingRequest]) -> Iterator[ChatReply]:
        limits = Limits(self.settings.timeout, parse_size("chat.max_bytes", self.settings.max_bytes))
        client = HttpClient(self.settings.url, limits, credentials=self._credentials())
        failed, stopped = threading.Event(), threading.Event()

        def send(pending: _PendingRequest) -> list[ChatReply]:
            try:
                # Nothing else of a reply stays in memory until the caller takes it.
                return [] if failed.is_set() else list(self._replies(pending, self._send(pending, client, stopped)))
            except BaseException:
                failed.set()  # No further request starts.
                raise

        executor = ThreadPoolExecutor(min(self.settings.concurrency, len(requests)), "merkhet-chat")
        pending_of = {executor.submit(send, pending): pending for pending in requests}
        try:
            for future in as_completed(list(pending_of)):
                try:
                    replies = future.result()
                except BudgetExhaustedError as error:
                    raise BudgetExhaustedError(
                        f"{self.name}: {error}. {counted(len(pending_of), 'request is', 'requests are')} left, and all "
                        "replies so far are cached; start again to continue with a new budget."
                    ) from error
                if replies:
                    del pending_of[future]
                    yield from replies
        finally:
            # Requests in flight are paid for, so wait for their replies and cache them.
            stopped.set()
            executor.shutdown(cancel_futures=True)
            client.close()

    def _send(self, pending: _PendingRequest, client: HttpClient, stopped: threading.Event) -> dict[str, Any] | Failure:
        """Send a request with retries; return the reply's content, or the failure that concerns this request alone."""

        def wait(failure: RetryableError, attempt: int, pause: float) -> None:
            with self.lock:
                self.counts["retried"] += 1
            logger.info("%s: attempt %d failed: %s", self.name, attempt, failure)
            if failure.retry_after is not None:
                self.rate_limiter.pause(pause)
            else:
                stopped.wait(pause)

        try:
            return retry(lambda: self._try(pending, client, stopped), self.retry_policy, wait)
        except RetriesExhaustedError as error:
            raise self._exhausted_error(error) from error
        except CertificateError as error:
            raise EndpointError(f"{self.name}: {self.settings.endpoint}: {error}") from error

    def _try(self, pending: _PendingRequest, client: HttpClient, stopped: threading.Event) -> dict[str, Any] | Failure:
        """Send a request once; send it again only to drop parameters that the endpoint does not support."""
        while True:
            self.rate_limiter.wait(stopped)
            if stopped.is_set():
                raise EndpointError(f"{self.name}: stopped")
            body = self._supported_body(pending.body)
            response, content = self._request(pending, body, client)
            if content is not None:
                with self.lock:
                    self.counts["replied"] += 1
                self.cache.store(pending.key, self.settings.endpoint, pending.body, content)
                return content
            if response.status == 200:
                raise RetryableError("the reply is not a chat completion, or was cut off")
            failure = classify_failure(response, body)
            if failure.action == RETRY:
                raise RetryableError(failure.message, failure.retry_after)
            if failure.action == UNSUPPORTED:
                self._drop_parameters(failure)
                continue
            if failure.action == ABORT:
                # The endpoint has answered other requests, so the problem is this request.
                if response.status in (400, 422) and (self.counts["replied"] or self.counts["cached"]):
                    return Failure(UNUSABLE, f"the endpoint refuses this question: {failure.message}")
                raise self._fatal_error(response, failure)
            return failure

    def _request(
        self, pending: _PendingRequest, body: Mapping[str, Any], client: HttpClient
    ) -> tuple[Response, dict[str, Any] | None]:
        """Send a request within the budget; return the response, and its chat completion, if it is one."""
        expected = self._expected_tokens(pending)
        self.budget.reserve(expected)
        tokens: int | None = 0
        try:
            with SpooledFile(_MEMORY_PER_REPLY) as file:
                with client.stream(json.dumps(body, ensure_ascii=False).encode(), "application/json") as (
                    response,
                    blocks,
                ):
                    for block in blocks:
                        file.write(block)
                completion = _read_completion(file) if response.status == 200 else None
            if completion is not None:
                tokens = _total_tokens(completion)
        finally:
            self.budget.settle(expected, tokens)
        return response, completion

    def _exhausted_error(self, error: RetriesExhaustedError) -> EndpointError:
        summary = f"{self.name}: {self.settings.endpoint} gave no reply in {error.attempts} attempts: {error.failure}"
        if not error.wait_too_long:
            return EndpointError(f"{summary}. All replies so far are cached; start again to continue.")
        return EndpointError(
            f"{summary}; it asks to wait {error.failure.retry_after:,.0f} s. All replies so far are cached; start "
            "again then to continue."
        )

    def _supported_body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request body without the parameters that the endpoint does not support."""
        supported = {name: value for name, value in body.items() if name not in self.unsupported}
        if "max_tokens" in self.unsupported:
            supported["max_completion_tokens"] = body["max_tokens"]
        return supported

    def _drop_parameters(self, failure: Failure) -> None:
        with self.lock:
            new = set(failure.parameters) - self.unsupported
            self.unsupported |= new
            if "top_logprobs" in self.unsupported or "logprobs" in self.unsupported:
                self.unsupported |= {"logprobs", "top_logprobs"}
        if new:
            logger.info("%s does not support %s: %s", self.name, ", ".join(sorted(new)), failure.message)

    def _fatal_error(self, response: Response, failure: Failure) -> MerkhetError:
        endpoint, variable = self.settings.endpoint, self.settings.key_variable
        if response.status in (401, 403):
            problem = (
                f"rejects the key in {variable}"
                if variable
                else "needs a key: put it into an environment variable, and name that variable (key: VARIABLE)"
            )
            return InputError(f"{self.name}: {endpoint} {problem}: {failure.message}")
        if response.status == 404:
            return InputError(f"{self.name}: {endpoint} has no model {self.settings.name!r}: {failure.message}")
        return InputError(f"{self.name}: {endpoint} rejects the request: {failure.message}")

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        settings = self.settings
        system = [("system", settings.system)] if settings.system else []
        body: dict[str, Any] = {
            "model": settings.name,
            "messages": [{"role": role, "content": text} for role, text in (*system, *request.messages)],
            "max_tokens": max(request.max_tokens, settings.length or 0),
            "temperature": settings.temperature,
            "stream": False,
        }
        if settings.seed is not None:
            body["seed"] = settings.seed
        if request.letters:
            body |= {"logprobs": True, "top_logprobs": MAX_TOP_LOGPROBS}
        return {**body, **settings.extra}

    def _credentials(self) -> dict[str, str]:
        key = self.settings.read_key()
        if key is None:
            return {}
        header = self.settings.key_header
        return {header: f"Bearer {key}" if header.lower() == "authorization" else key}

    def _expected_tokens(self, pending: _PendingRequest) -> int:
        characters = sum(len(text) for _, text in pending.request.messages) + len(self.settings.system or "")
        return math.ceil(characters / _CHARACTERS_PER_TOKEN) + int(pending.body["max_tokens"])

    def _replies(self, pending: _PendingRequest, result: Mapping[str, Any] | Failure) -> Iterator[ChatReply]:
        for index in pending.indices:
            if isinstance(result, Failure):
                reason = result.message if result.action == UNUSABLE else None
                yield ChatReply(index, unusable=reason, refused=reason is None)
            else:
                yield _parse_reply(index, result, pending.request.letters)


def _read_completion(file: SpooledFile) -> dict[str, Any] | None:
    """Parse a reply; return None if it is not a chat completion, so that no other reply stays in memory."""
    with _PARSING:
        try:
            content = redact_content(parse_reply(file.read()))
        except LargeReplyError as error:
            reason = str(error)
        else:
            return content if _is_reply(content) else None
    # Not within the except clause: the traceback of the first error would keep the reply until the retry.
    raise RetryableError(reason)


def _is_reply(content: Any) -> bool:
    """Return whether parsed JSON is a chat completion; unknown fields are ignored."""
    try:
        message = content["choices"][0]["message"]
        return isinstance(message, dict) and isinstance(message.get("content"), str | None)
    except (KeyError, IndexError, TypeError):
        return False


def _parse_reply(index: int, content: Mapping[str, Any], letters: Sequence[str]) -> ChatReply:
    choice = content["choices"][0]
    message = choice["message"]
    finish_reason = choice.get("finish_reason")
    refused = bool(message.get("refusal")) or finish_reason == "content_filter"
    text = strip_reasoning(message.get("content") or "")
    return ChatReply(index, text, _letter_logprobs(choice, letters), refused, finish_reason == "length")


def _letter_logprobs(choice: Mapping[str, Any], letters: Sequence[str]) -> dict[str, float] | None:
    """Return the log-probability of each letter that is among the alternatives to the reply's first token.

    None if the reply has no log-probabilities.
    """
    try:
        alternatives = choice["logprobs"]["content"][0]["top_logprobs"]
        logprobs = [(str(entry["token"]).strip(), float(entry["logprob"])) for entry in alternatives]
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        return None
    by_letter: dict[str, list[float]] = defaultdict(list)
    for token, logprob in logprobs:
        if token in letters and not math.isnan(logprob):
            by_letter[token].append(max(logprob, -1e3))
    return {letter: float(_log_sum_exp(values)) for letter, values in by_letter.items()}


def _log_sum_exp(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))


def _total_tokens(content: Mapping[str, Any]) -> int | None:
    try:
        return int(content["usage"]["total_tokens"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


__all__ = ["BudgetExhaustedError", "EndpointError", "EndpointModel"]
