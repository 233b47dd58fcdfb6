"""The words in which a chat model is asked, in the question's language."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass

from merkhet.core import SLOT
from merkhet.core.records import Question
from merkhet.models.chat.chat_messages import Message

LETTERS = tuple(string.ascii_uppercase)
BLANK = "____"


@dataclass(frozen=True)
class Words:
    """How one asks in a language; ``true`` and ``false`` are what a statement is judged to be."""

    choose: str
    answer: str
    judge: str
    decide: str
    true: str
    false: str
    also_true: tuple[str, ...]
    also_false: tuple[str, ...]
    between: str


ENGLISH = Words(
    choose="Which of the choices belongs in the blank?\n\n{sentence}\n\n{choices}\n\nReply with the letter alone.",
    answer="Fill in the blank. Reply with the missing words alone.\n\n{sentence}",
    judge="Is this statement true or false?\n\n{sentence}\n\nReply with one word, true or false.",
    decide="Fill in the blank. Reply with one of these alone: {choices}.\n\n{sentence}",
    true="true",
    false="false",
    also_true=("yes", "correct", "right", "t"),
    also_false=("no", "incorrect", "wrong", "f"),
    between=" or ",
)
CHINESE = Words(
    choose="下列哪一个选项应填入空白处？\n\n{sentence}\n\n{choices}\n\n只回答选项的字母。",
    answer="请填写空白处缺少的词语，只回答缺少的词语。\n\n{sentence}",
    judge="下面的陈述是否正确？\n\n{sentence}\n\n只回答“正确”或“错误”。",
    decide="请填写空白处，只回答其中之一：{choices}。\n\n{sentence}",
    true="正确",
    false="错误",
    also_true=("对", "是", "真", "是的", "对的", "true", "yes"),
    also_false=("错", "否", "假", "不是", "不对", "不正确", "false", "no"),
    between="、",
)


def words_for(question: Question) -> Words:
    """The words of a question's language: Chinese for Chinese questions, English for all others."""
    return CHINESE if question.language.lower().startswith("zh") else ENGLISH


def sentence_of(question: Question, filled: str = BLANK) -> str:
    """A question's sentence with something in its slot, read as a person writes it."""
    return question.prompt.replace(SLOT, filled, 1).replace(" .", ".").replace(" ,", ",").strip()


def choose_text(question: Question, choices: Sequence[str], letters: Sequence[str] = LETTERS) -> str:
    """The sentence with a blank and the choices by letter."""
    listed = "\n".join(f"{letter}. {choice}" for letter, choice in zip(letters, choices, strict=False))
    return words_for(question).choose.format(sentence=sentence_of(question), choices=listed)


def answer_text(question: Question) -> str:
    """The sentence with a blank that is to be filled."""
    return words_for(question).answer.format(sentence=sentence_of(question))


def judge_text(question: Question, filled: str) -> str:
    """A statement that is to be judged."""
    return words_for(question).judge.format(sentence=sentence_of(question, filled))


def decide_text(question: Question) -> str:
    """A sentence with a blank for one of two words."""
    words = words_for(question)
    return words.decide.format(sentence=sentence_of(question), choices=words.between.join(question.candidates))


def conversation(shown: Sequence[tuple[str, str]], asked: str) -> tuple[Message, ...]:
    """Examples with their answers, as if they had been asked and answered, and then what is asked."""
    before = [message for text, reply in shown for message in (("user", text), ("assistant", reply))]
    return (*before, ("user", asked))
