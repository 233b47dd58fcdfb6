"""What replies say: every form that is read, and all that counts as no answer or as a refusal."""

from __future__ import annotations

import pytest

from gnomon.models.chat.talk import ChatReply, without_thoughts
from gnomon.probes.talking.parsing import ANSWERED, NO_ANSWER, REFUSED, Said, chosen, decided, written

LETTERS = ("A", "B", "C", "D")
CHOICES = ("Berlin", "Paris", "Rome", "I")


def said(text: str) -> ChatReply:
    return ChatReply(0, text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "B",
            "B.",
            "(B)",
            " b)".upper(),
            "B)",
            "[B]",
            "**B**",
            "`B`",
            '"B"',
            "B: Paris",
            "B. Paris",
            "B\n",
            "B, because",
        ),
        *("Paris", "paris.", " PARIS ", "“Paris”", "**Paris**", "The answer is B", "The correct answer is B."),
        *(
            "Answer: B",
            "answer is (B)",
            "Option B",
            "The answer is Paris.",
            "答案是B",
            "答案：B。",
            "选项 B",
            "B、Paris",
            "（B）",
        ),
        *("I think the answer is B", "B.\nI hope that helps!", "Answer:\n\nB", "The correct choice is **B**."),
    ],
)
def test_a_choice_that_is_named(text: str) -> None:
    assert chosen(said(text), LETTERS, CHOICES) == Said(ANSWERED, "Paris")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "   ",
            "E",
            "Z.",
            "b",
            "A or B",
            "Answer: A. No, the answer is B",
            "B. Rome",
            "Better",
            "Madrid",
            "A river",
        ),
        *("I don't know.", "Paris and Rome", "巴黎", "¿Qué?", "The letter", "None of them", "1", "ABCD"),
    ],
)
def test_a_reply_that_names_no_choice_or_two(text: str) -> None:
    assert chosen(said(text), LETTERS, CHOICES) == Said(NO_ANSWER)


@pytest.mark.parametrize(
    "text",
    [
        *("I'm sorry, but I can't help with that.", "Sorry, I cannot answer.", "I cannot assist with this request."),
        *(
            "As an AI language model, I have no opinion.",
            "抱歉，我无法回答这个问题。",
            "我不能提供这些信息。",
            "I am unable to choose.",
        ),
        *("Unfortunately, I can't answer that question.", "对不起", "作为一个人工智能，我没有观点。"),
    ],
)
def test_a_refusal(text: str) -> None:
    assert chosen(said(text), LETTERS, CHOICES) == Said(REFUSED)
    assert written(said(text)) == Said(REFUSED)
    assert decided(said(text), (("true",), ("false",))) == Said(REFUSED)


def test_a_choice_that_looks_like_the_beginning_of_a_refusal() -> None:
    assert chosen(said("I"), LETTERS, CHOICES) == Said(ANSWERED, "I")
    assert chosen(said("D. I"), LETTERS, CHOICES) == Said(ANSWERED, "I")
    assert chosen(ChatReply(0, "B", refused=False), LETTERS, CHOICES).outcome == ANSWERED


def test_whoever_serves_the_model_may_refuse() -> None:
    assert written(ChatReply(0, "", refused=True)) == Said(REFUSED)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paris", "Paris"),
        ("Paris.", "Paris"),
        ("**Paris**", "Paris"),
        ("The answer is Paris.", "Paris"),
        ("Answer: Paris", "Paris"),
        ("The missing words are: “Paris”", "Paris"),
        ("\n\nParis\n\nIt lies on the Seine.", "Paris"),
        ("The capital of France is Paris.", "Paris"),
        ("the capital of france is Paris", "Paris"),
        ("The capital of Spain is Madrid.", "The capital of Spain is Madrid"),
        ("The answer is:\nParis", "Paris"),
        ("答案是：巴黎。", "巴黎"),
        ("1,000", "1,000"),
    ],
)
def test_an_answer_in_words(text: str, answer: str) -> None:
    assert written(said(text), "The capital of France is ", ".") == Said(ANSWERED, answer)


@pytest.mark.parametrize("text", ["", " \n ", "...", "____", "?!", "x" * 300])
def test_no_words(text: str) -> None:
    assert written(said(text)) == Said(NO_ANSWER)


NAMES = (("true", "yes", "correct"), ("false", "no", "incorrect"))


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("true", "true"),
        ("True.", "true"),
        ("**Yes**", "true"),
        ("False. It lies in Spain.", "false"),
        ("No, it does not.", "false"),
        ("The answer is false.", "false"),
        ("Correct!", "true"),
        ("Incorrect", "false"),
        ("yes\n\nbecause", "true"),
    ],
)
def test_a_verdict(text: str, verdict: str) -> None:
    assert decided(said(text), NAMES) == Said(ANSWERED, verdict)


@pytest.mark.parametrize("text", ["", "perhaps", "Nothing is known.", "Trueish", "It is true.", "是", "Yesterday"])
def test_no_verdict(text: str) -> None:
    assert decided(said(text), NAMES) == Said(NO_ANSWER)


def test_chinese_verdicts_need_no_blank() -> None:
    names = (("正确", "对"), ("错误", "错", "不对"))
    assert decided(said("正确。"), names).text == "正确"
    assert decided(said("错误的说法"), names).text == "错误"
    assert decided(said("不对，应该是北京"), names).text == "错误"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>A or B?</think>B", "B"),
        ("<think>\nlong\n</think>\n\n**B**", "**B**"),
        ("<think>it never ends", ""),
        ("B <think>", "B <think>"),
    ],
)
def test_thoughts_are_left_out(text: str, rest: str) -> None:
    assert without_thoughts(text) == rest
