"""Prompts of chat probes, in English or Chinese according to the question's language."""

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
class PromptTexts:
    """The prompt templates and verdicts in one language."""

    choose: str
    answer: str
    judge: str
    decide: str
    true: str
    """The verdict on a true statement."""
    false: str
    """The verdict on a false statement."""
    also_true: tuple[str, ...]
    """Other replies with the same meaning as ``true``."""
    also_false: tuple[str, ...]
    """Other replies with the same meaning as ``false``."""
    separator: str
    """The text between the two candidates in the prompt :attr:`decide`."""


ENGLISH = PromptTexts(
    choose="Which of the choices belongs in the blank?\n\n{sentence}\n\n{choices}\n\nReply with the letter alone.",
    answer="Fill in the blank. Reply with the missing words alone.\n\n{sentence}",
    judge="Is this statement true or false?\n\n{sentence}\n\nReply with one word, true or false.",
    decide="Fill in the blank. Reply with one of these alone: {choices}.\n\n{sentence}",
    true="true",
    false="false",
    also_true=("yes", "correct", "right", "t"),
    also_false=("no", "incorrect", "wrong", "f"),
    separator=" or ",
)
CHINESE = PromptTexts(
    choose="下列哪一个选项应填入空白处？\n\n{sentence}\n\n{choices}\n\n只回答选项的字母。",
    answer="请填写空白处缺少的词语，只回答缺少的词语。\n\n{sentence}",
    judge="下面的陈述是否正确？\n\n{sentence}\n\n只回答“正确”或“错误”。",
    decide="请填写空白处，只回答其中之一：{choices}。\n\n{sentence}",
    true="正确",
    false="错误",
    also_true=("对", "是", "真", "是的", "对的", "true", "yes"),
    also_false=("错", "否", "假", "不是", "不对", "不正确", "false", "no"),
    separator="、",
)


def prompt_texts(question: Question) -> PromptTexts:
    """Return the prompt templates for a question: Chinese for Chinese questions, English for all others."""
    return CHINESE if question.language.lower().startswith("zh") else ENGLISH


def fill_sentence(question: Question, filler: str = BLANK) -> str:
    """Return the question's sentence with ``filler`` in its slot, without spaces before periods and commas."""
    return question.prompt.replace(SLOT, filler, 1).replace(" .", ".").replace(" ,", ",").strip()


def choose_prompt(question: Question, choices: Sequence[str], letters: Sequence[str] = LETTERS) -> str:
    """Return a prompt that asks which of the lettered choices belongs in the blank."""
    listed = "\n".join(f"{letter}. {choice}" for letter, choice in zip(letters, choices, strict=False))
    return prompt_texts(question).choose.format(sentence=fill_sentence(question), choices=listed)


def answer_prompt(question: Question) -> str:
    return prompt_texts(question).answer.format(sentence=fill_sentence(question))


def judge_prompt(question: Question, filler: str) -> str:
    """Return a prompt that asks whether the question's sentence is true with ``filler`` in its slot."""
    return prompt_texts(question).judge.format(sentence=fill_sentence(question, filler))


def decide_prompt(question: Question) -> str:
    """Return a prompt that asks which of the question's candidates fills the blank."""
    texts = prompt_texts(question)
    return texts.decide.format(sentence=fill_sentence(question), choices=texts.separator.join(question.candidates))


def build_messages(examples: Sequence[tuple[str, str]], prompt: str) -> tuple[Message, ...]:
    """Build a conversation of few-shot examples (pairs of prompt and reply) that ends with ``prompt``."""
    turns = [message for text, reply in examples for message in (("user", text), ("assistant", reply))]
    return (*turns, ("user", prompt))
