"""A model behind an OpenAI-compatible endpoint: many requests in flight, each tried again until there is a reply."""

from __future__ import annotations

import json
import logging
import math
import queue
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.records import Question
from merkhet.models.chat._http_connection import BrokenConnectionError, Connections, Response
from merkhet.models.chat._reply_cache import KeptReplies, key_of
from merkhet.models.chat._response_errors import Budget, BudgetSpentError, Fault, Pace, back_off, fault_of
from merkhet.models.chat.chat_messages import ChatReply, ChatRequest, without_thoughts
from merkhet.models.chat.chat_settings import ChatSettings
from merkhet.models.protocol import CandidateScores

logger = logging.getLogger("merkhet.models")

MOST_LETTERS = 20
"""How many log-probabilities endpoints give at most."""
_PATIENCE = 600.0
"""For longer than so many seconds an endpoint is not waited for."""
_CHARACTERS = 3.0
"""A token has about so many characters: for what a request may need, before it is known."""


class EndpointError(MerkhetError):
    """An endpoint gives no more replies; those that came are kept."""


@dataclass
class _Asked:
    """A request with the places that wait for its reply."""

    request: ChatRequest
    body: dict[str, Any]
    key: str
    places: list[int]


class EndpointModel:
    """A chat model behind an endpoint. Replies are kept on disk, and what is kept is not asked again."""

    kind = "chat"
    methods: tuple[str, ...] = ()

    def __init__(self, name: str, settings: ChatSettings, kept: KeptReplies | None = None) -> None:
        self.name, self.settings = name, settings
        self.fingerprint = settings.identity
        self._kept = kept
        self.left_out: set[str] = set()
        self.pace = Pace(settings.rate)
        self.budget = Budget(settings.requests, settings.tokens)
        self.counts: dict[str, int] = defaultdict(int)
        self.lock = threading.Lock()

    @property
    def kept(self) -> KeptReplies:
        """The replies that were had before."""
        if self._kept is None:
            self._kept = KeptReplies()
        return self._kept

    @property
    def work(self) -> dict[str, int]:
        """What it took so far."""
        return {
            "requests": self.budget.requests,
            "tokens": self.budget.tokens,
            "replies_kept_before": self.counts["kept"],
            "requests_tried_again": self.counts["again"],
        }

    def describe(self) -> dict[str, str | int | float]:
        """Where it is and how it is asked; never its key."""
        own: dict[str, Any] = {
            "endpoint": self.settings.endpoint,
            "model": self.settings.name,
            "temperature": self.settings.temperature,
            "seed": self.settings.seed,
            "system": self.settings.system,
            "left_out": ", ".join(sorted(self.left_out)) or None,
        }
        return {key: value for key, value in own.items() if value is not None}

    def score_candidates(self, questions: Sequence[Question], methods: Sequence[str]) -> Iterator[CandidateScores]:
        """Nothing: an endpoint does not say how likely a given text is."""
        for index in range(len(questions)):
            yield CandidateScores(index, unusable="a chat endpoint ranks no candidates; ask it to choose or to answer")

    def gives_letters(self) -> bool:
        """Whether replies come with log-probabilities, seen by one small request."""
        request = ChatRequest((("user", "Reply with the letter A."),), 1, ("A", "B"))
        (reply,) = self.reply([request])
        return reply.letters is not None

    def reply(self, requests: Sequence[ChatRequest]) -> Iterator[ChatReply]:
        """The replies as they come; equal requests are sent once, and one whose reply is kept is not sent.

        Raises InputError for what the user can mend (key, model), BudgetSpentError, and EndpointError when the endpoint
        goes on failing. Replies that came by then are kept.
        """
        asked: dict[str, _Asked] = {}
        for place, request in enumerate(requests):
            body = self._body(request)
            key = key_of(self.settings.endpoint, body)
            asked.setdefault(key, _Asked(request, body, key, [])).places.append(place)
        found = self.kept.find(list(asked))
        self.counts["kept"] += len(found)
        for key, content in found.items():
            yield from self._replies(asked.pop(key), content)
        if asked:
            yield from self._ask(list(asked.values()))

    def _ask(self, asked: Sequence[_Asked]) -> Iterator[ChatReply]:
        headers = self._headers()
        connections = Connections(self.settings.url, self.settings.timeout)
        waiting, done = queue.SimpleQueue[_Asked](), queue.SimpleQueue[Any]()
        for one in asked:
            waiting.put(one)
        stopped = threading.Event()

        def work() -> None:
            while not stopped.is_set():
                try:
                    one = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    done.put((one, self._until_replied(one, connections, headers, stopped)))
                except BaseException as error:  # Whoever waits for the replies must hear of it.
                    done.put((one, error))
                    return

        threads = [
            threading.Thread(target=work, daemon=True, name=f"merkhet-chat-{number}")
            for number in range(min(self.settings.concurrency, len(asked)))
        ]
        for thread in threads:
            thread.start()
        try:
            for number in range(len(asked)):
                one, found = done.get()
                if isinstance(found, BudgetSpentError):
                    raise BudgetSpentError(
                        f"{self.name}: {found}. {len(asked) - number:,} requests are left, and what was replied is "
                        "kept; start again to go on, with as large a budget once more."
                    ) from found
                if isinstance(found, BaseException):
                    raise found
                yield from self._replies(one, found)
        finally:
            # What is in flight has been paid for: its replies are waited for, and kept.
            stopped.set()
            for thread in threads:
                thread.join()
            connections.close()

    def _until_replied(
        self, one: _Asked, connections: Connections, headers: Mapping[str, str], stopped: threading.Event
    ) -> dict[str, Any] | Fault:
        """The content of the reply, or why this question has none."""
        attempt = 0
        expected = self._expected(one)
        while True:
            self.pace.wait(stopped)
            if stopped.is_set():
                raise EndpointError(f"{self.name}: stopped")
            body = self._taken(one.body)
            self.budget.take(expected)
            stale = False
            try:
                response = connections.post(json.dumps(body, ensure_ascii=False).encode(), headers)
                content = response.content
                if response.status == 200 and _is_reply(content):
                    self.budget.used(expected, _tokens(content))
                    self.counts["replied"] += 1
                    self.kept.keep(one.key, self.settings.endpoint, one.body, content)
                    return dict(content)
                self.budget.used(expected, 0)
                fault = self._fault(response, body)
            except BrokenConnectionError as error:
                self.budget.used(expected, 0)
                fault, stale = Fault("again", str(error)), error.stale
            if fault.meaning == "parameter":
                self._leave_out(fault)
                continue
            if fault.meaning in ("question", "refused"):
                return fault
            if fault.meaning == "stop":
                # An endpoint that replies to others does not take this one question.
                if response.status in (400, 422) and (self.counts["replied"] or self.counts["kept"]):
                    return Fault("question", f"the endpoint refuses this question: {fault.said}")
                raise self._stopping(response, fault)
            attempt += 1
            self._wait(fault, attempt, 0.0 if stale else back_off(attempt), stopped)

    def _wait(self, fault: Fault, attempt: int, pause: float, stopped: threading.Event) -> None:
        """Wait before the next attempt; raises where there should be none."""
        told = f"{self.name}: {self.settings.endpoint} gave no reply {attempt} times: {fault.said}"
        if attempt >= self.settings.tries:
            raise EndpointError(f"{told}. The replies that came are kept; start again to go on.")
        if fault.wait is not None and fault.wait > _PATIENCE:
            raise EndpointError(
                f"{told}, and wants to be left alone for {fault.wait:,.0f} s. The replies that came are kept; start "
                "again then to go on."
            )
        with self.lock:
            self.counts["again"] += 1
        logger.info("%s: attempt %d failed: %s", self.name, attempt, fault.said)
        if fault.wait is not None:
            self.pace.leave_alone(fault.wait)
        else:
            stopped.wait(pause)

    def _fault(self, response: Response, body: Mapping[str, Any]) -> Fault:
        if response.status == 200:
            return Fault("again", "the reply is not a chat completion, or was cut off")
        fault = fault_of(response, dict(body))
        return replace(fault, said=self._without_key(fault.said))

    def _taken(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What is sent of a request: without what the endpoint was seen not to take."""
        sent = {key: value for key, value in body.items() if key not in self.left_out}
        if "max_tokens" in self.left_out:
            sent["max_completion_tokens"] = body["max_tokens"]
        return sent

    def _leave_out(self, fault: Fault) -> None:
        with self.lock:
            new = set(fault.parameters) - self.left_out
            self.left_out |= new
            if "top_logprobs" in self.left_out or "logprobs" in self.left_out:
                self.left_out |= {"logprobs", "top_logprobs"}
        if new:
            logger.info("%s does not take %s: %s", self.name, ", ".join(sorted(new)), fault.said)

    def _stopping(self, response: Response, fault: Fault) -> MerkhetError:
        where, variable = self.settings.endpoint, self.settings.key_variable
        if response.status in (401, 403):
            told = (
                f"does not take the key in {variable}"
                if variable
                else "wants a key: put it into an environment variable, and name that variable (key: VARIABLE)"
            )
            return InputError(f"{self.name}: {where} {told}: {fault.said}")
        if response.status == 404:
            return InputError(f"{self.name}: {where} has no model {self.settings.name!r}: {fault.said}")
        return InputError(f"{self.name}: {where} refuses what it was sent: {fault.said}")

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        own = self.settings
        said = [("system", own.system)] if own.system else []
        body: dict[str, Any] = {
            "model": own.name,
            "messages": [{"role": role, "content": text} for role, text in (*said, *request.messages)],
            "max_tokens": max(request.length, own.length or 0),
            "temperature": own.temperature,
            "stream": False,
        }
        if own.seed is not None:
            body["seed"] = own.seed
        if request.letters:
            body |= {"logprobs": True, "top_logprobs": MOST_LETTERS}
        return {**body, **own.extra}

    def _headers(self) -> dict[str, str]:
        secret = self.settings.secret()
        if secret is None:
            return {}
        header = self.settings.key_header
        return {header: f"Bearer {secret}" if header.lower() == "authorization" else secret}

    def _without_key(self, text: str) -> str:
        secret = self.settings.secret()
        return text.replace(secret, "(the key)") if secret else text

    def _expected(self, one: _Asked) -> int:
        said = sum(len(text) for _, text in one.request.messages) + len(self.settings.system or "")
        return math.ceil(said / _CHARACTERS) + int(one.body["max_tokens"])

    def _replies(self, one: _Asked, found: Mapping[str, Any] | Fault) -> Iterator[ChatReply]:
        for place in one.places:
            if isinstance(found, Fault):
                reason = found.said if found.meaning == "question" else None
                yield ChatReply(place, unusable=reason, refused=reason is None)
            else:
                yield _reply(place, found, one.request.letters)


def _is_reply(content: Any) -> bool:
    """Whether this is a chat completion; fields that are not known do no harm."""
    try:
        message = content["choices"][0]["message"]
        return isinstance(message, dict) and isinstance(message.get("content"), str | None)
    except (KeyError, IndexError, TypeError):
        return False


def _reply(place: int, content: Mapping[str, Any], letters: Sequence[str]) -> ChatReply:
    choice = content["choices"][0]
    message = choice["message"]
    ended = choice.get("finish_reason")
    refused = bool(message.get("refusal")) or ended == "content_filter"
    text = without_thoughts(message.get("content") or "")
    return ChatReply(place, text, _letters(choice, letters), refused, ended == "length")


def _letters(choice: Mapping[str, Any], letters: Sequence[str]) -> dict[str, float] | None:
    """The log-probabilities of the letters among the tokens that the reply could have begun with."""
    try:
        tops = choice["logprobs"]["content"][0]["top_logprobs"]
        given = [(str(one["token"]).strip(), float(one["logprob"])) for one in tops]
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        return None
    found: dict[str, list[float]] = defaultdict(list)
    for token, value in given:
        if token in letters and not math.isnan(value):
            found[token].append(max(value, -1e3))
    return {letter: float(_log_sum(values)) for letter, values in found.items()}


def _log_sum(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))


def _tokens(content: Mapping[str, Any]) -> int | None:
    try:
        return int(content["usage"]["total_tokens"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


__all__ = ["BudgetSpentError", "EndpointError", "EndpointModel"]
