"""Probe ``choose``, in which a chat model names one of several lettered choices in random order."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from merkhet.core.ids import derived_seed
from merkhet.core.records import Answer, Question
from merkhet.core.settings import Bounds, NonNegativeInt, PositiveInt
from merkhet.models.chat.chat_messages import ChatModel, ChatReply, ChatRequest
from merkhet.models.protocol import CandidateScores, FloatArray, Model
from merkhet.probes.chat._chat_asking import describe_refusal
from merkhet.probes.chat._chat_prompts import LETTERS, build_messages, choose_prompt
from merkhet.probes.chat._few_shot import FewShotExamples
from merkhet.probes.chat._reply_parsing import ANSWERED, NO_ANSWER, REFUSED, parse_choice
from merkhet.probes.probe_support import check_probe_options, find_slot_problem, refuse_model, select_methods
from merkhet.probes.rank import rank_answers

PROBE = "choose"
BY_LETTERS, BY_TEXT = "letters", "text"
METHODS = (BY_LETTERS, BY_TEXT)
DEFAULT_MAX_CHOICES = 20
ChoiceCount = Annotated[int, Bounds(ge=2, le=len(LETTERS))]
MAX_TOKENS = 24
"""The maximum number of tokens of a reply, enough for a letter and the text of its choice."""


def choose(
    model: Model,
    questions: Sequence[Question],
    methods: Sequence[str] = (),
    *,
    orders: PositiveInt = 1,
    most: ChoiceCount = DEFAULT_MAX_CHOICES,
    mixed_letters: bool = False,
    shots: NonNegativeInt = 0,
    seed: int = 0,
    examples: Sequence[Question] = (),
) -> Iterator[Answer]:
    """Ask the model to choose one of the lettered candidates of each question.

    The method ``letters`` ranks the choices by the log-probabilities of their letters. The method ``text`` parses the
    reply. The default is ``letters`` if the model returns log-probabilities, else ``text``.

    Args:
        model: A chat model; any other model gives unusable answers.
        questions: The questions to ask.
        methods: ``letters``, ``text`` or both; empty for the default.
        orders: The number of times each question is asked, each time with the choices in another order. The positions
            of the right choice are spread evenly. A choice's score is its mean over the orders.
        most: The maximum number of choices. A question with more candidates shows its target and a sample of wrong
            candidates.
        mixed_letters: Whether letters are assigned at random. This separates a preference for a letter from a
            preference for a position.
        shots: The number of few-shot examples before each question.
        seed: The seed for all random draws.
        examples: The questions from which few-shot examples are drawn.
    """
    check_probe_options(PROBE, choose, {"orders": orders, "most": most})
    if not isinstance(model, ChatModel):
        yield from refuse_model(model, PROBE, questions, methods or (BY_TEXT,), describe_refusal(model), None)
        return
    known = METHODS if model.has_letter_logprobs() else (BY_TEXT,)
    selected = select_methods(model, methods, known)
    few_shot = FewShotExamples(examples, shots, seed, lambda example: _format_example(example, most, seed))
    started = time.perf_counter()
    tasks: list[_ChoiceTask] = []
    for question in questions:
        problem = _find_problem(question)
        if problem is not None:
            yield from refuse_model(model, PROBE, [question], selected, problem)
            continue
        choices = sample_choices(question, most, seed)
        lists = [
            _ChoiceList(
                order_choices(question, choices, number, orders, seed),
                draw_letters(question, len(choices), number, seed) if mixed_letters else LETTERS[: len(choices)],
            )
            for number in range(orders)
        ]
        tasks.append(_ChoiceTask(question, choices, lists))
    requests = [
        ChatRequest(
            build_messages(
                few_shot.for_task(task.question.task),
                choose_prompt(task.question, choice_list.choices, choice_list.letters),
            ),
            MAX_TOKENS if BY_TEXT in selected else 1,
            LETTERS[: len(choice_list.choices)] if BY_LETTERS in selected else (),
        )
        for task in tasks
        for choice_list in task.lists
    ]
    for index, replies in _group_replies(model.reply(requests), orders):
        seconds = (time.perf_counter() - started) / max(1, len(questions))
        for method in selected:
            yield _make_answer(model, tasks[index], replies, method, seconds)


choose.needs_chat = True  # type: ignore[attr-defined]


def sample_choices(question: Question, maximum: int, seed: int) -> tuple[str, ...]:
    """Return the candidates to show: all, or the target and a sample of wrong ones if they exceed ``maximum``."""
    candidates = tuple(dict.fromkeys(question.candidates))
    if len(candidates) <= maximum:
        return candidates
    right = set(question.answers)
    target = question.target if question.target in candidates else next(c for c in candidates if c in right)
    wrong = sorted(set(candidates) - right)
    count = min(maximum - 1, len(wrong))
    sample = random.Random(derived_seed("choices", seed, question.question_id)).sample(wrong, count)
    return (target, *sample)


def order_choices(question: Question, choices: Sequence[str], number: int, orders: int, seed: int) -> tuple[str, ...]:
    """Return the choices in order ``number`` of ``orders``: a random order, rotated by equal steps."""
    shuffled = sorted(choices)
    random.Random(derived_seed("order of choices", seed, question.question_id)).shuffle(shuffled)
    offset = number * len(shuffled) // orders
    return (*shuffled[offset:], *shuffled[:offset])


def draw_letters(question: Question, count: int, number: int, seed: int) -> tuple[str, ...]:
    """Return the first ``count`` letters, shuffled by the seed, the question and the order's ``number``."""
    letters = list(LETTERS[:count])
    random.Random(derived_seed("letters of choices", seed, question.question_id, number)).shuffle(letters)
    return tuple(letters)


@dataclass(frozen=True)
class _ChoiceList:
    """The choices in one order, each with its letter."""

    choices: tuple[str, ...]
    letters: tuple[str, ...]


@dataclass(frozen=True)
class _ChoiceTask:
    """A question with its choices, and one list of these choices per order."""

    question: Question
    choices: tuple[str, ...]
    lists: list[_ChoiceList]


def _find_problem(question: Question) -> str | None:
    if not question.words and not set(question.answers) & set(question.candidates):
        return "no right answer among the candidates"
    if not question.words and len(set(question.candidates)) < 2:
        return "there is only one candidate"
    return find_slot_problem(question)


def _format_example(question: Question, most: int, seed: int) -> tuple[str, str]:
    choices = order_choices(question, sample_choices(question, most, seed), 0, 1, seed)
    position = next(position for position, choice in enumerate(choices) if choice in question.answers)
    return choose_prompt(question, choices), LETTERS[position]


def _group_replies(replies: Iterable[ChatReply], orders: int) -> Iterator[tuple[int, list[ChatReply]]]:
    """Group replies by question, and yield each group with its question index once it is complete."""
    incomplete: dict[int, list[ChatReply]] = {}
    for reply in replies:
        index = reply.index // orders
        group = incomplete.setdefault(index, [])
        group.append(reply)
        if len(group) == orders:
            yield index, sorted(incomplete.pop(index), key=lambda reply: reply.index)


def _make_answer(model: Model, task: _ChoiceTask, replies: Sequence[ChatReply], method: str, seconds: float) -> Answer:
    answer = Answer(task.question.question_id, model.name, PROBE, method, seconds=seconds)
    for reply in replies:
        if reply.unusable is not None:
            return replace(answer, unusable=reply.unusable)
    scored = [
        _score_reply(task, choice_list, reply, method) for choice_list, reply in zip(task.lists, replies, strict=True)
    ]
    count = len(task.choices)
    answer = replace(
        answer,
        among=None if count == len(task.question.candidates) else count,
        replies=tuple(reply.text for reply in replies),
        **_positions(task, [position for _, position, _ in scored]),
    )
    scores = [choice_scores for choice_scores, _, _ in scored if choice_scores is not None]
    golds = tuple(choice for choice in task.choices if choice in task.question.answers)
    if not scores:
        outcome = REFUSED if all(outcome == REFUSED for _, _, outcome in scored) else NO_ANSWER
        last_ranks = tuple(float(count - position) for position in range(len(golds)))
        return replace(answer, outcome=outcome, golds=golds, gold_ranks=last_ranks, gold_ties=(1,) * len(golds))
    shown_question = replace(task.question, candidates=task.choices)
    means = np.sum(scores, axis=0) / len(task.lists)
    (ranked,) = rank_answers(model, PROBE, [shown_question], [CandidateScores(0, {method: means})], [method], seconds)
    copied = ("among", "replies", "positions", "right_positions", "letters", "right_letters")
    if ranked.tied_first:
        # Record all choices, because ``tied_first`` counts the question's candidates and not the choices shown.
        recorded = sorted(zip(task.choices, means.tolist(), strict=True), key=lambda choice: (-choice[1], choice[0]))
        ranked = replace(ranked, ranked=tuple(recorded), tied_first=())
    return replace(ranked, outcome=ANSWERED, **{name: getattr(answer, name) for name in copied})


def _positions(task: _ChoiceTask, chosen_positions: Sequence[int | None]) -> dict[str, Any]:
    """Return answer fields: positions and letters of the chosen and of the right choice in each list."""
    right_positions = [choice_list.choices.index(_right_choice(task)) for choice_list in task.lists]
    return {
        "positions": tuple(chosen_positions),
        "right_positions": tuple(right_positions),
        "letters": tuple(
            None if position is None else choice_list.letters[position]
            for choice_list, position in zip(task.lists, chosen_positions, strict=True)
        ),
        "right_letters": tuple(
            choice_list.letters[position] for choice_list, position in zip(task.lists, right_positions, strict=True)
        ),
    }


def _right_choice(task: _ChoiceTask) -> str:
    golds = [choice for choice in task.choices if choice in task.question.answers]
    return task.question.target if task.question.target in golds else golds[0]


def _score_reply(
    task: _ChoiceTask, choice_list: _ChoiceList, reply: ChatReply, method: str
) -> tuple[FloatArray | None, int | None, str]:
    """Score the choices by one reply; return their scores, the position of the chosen one, and the outcome.

    Scores and position are None if the reply has no answer.
    """
    choices, letters = choice_list.choices, choice_list.letters
    if method == BY_LETTERS and reply.letters:
        minimum = min(reply.letters.values())
        logprobs = np.array([reply.letters.get(letter, minimum - 1.0) for letter in letters])
        weights = np.exp(logprobs - np.max(logprobs))
        by_choice = dict(zip(choices, weights / weights.sum(), strict=True))
        return np.array([by_choice[choice] for choice in task.choices]), int(np.argmax(weights)), ANSWERED
    # Other names of the right choice name it, too. Those of wrong choices need not be known: no answer counts as wrong.
    right = _right_choice(task)
    aliases = {name: right for name in task.question.answers if name not in task.question.candidates}
    parsed = parse_choice(reply, letters, choices, aliases)
    if parsed.text is None:
        return None, None, parsed.outcome
    votes = np.array([float(choice == parsed.text) for choice in task.choices])
    return votes, choices.index(parsed.text), ANSWERED
