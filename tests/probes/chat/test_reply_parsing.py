"""What replies say: every form that is read, and all that counts as no answer or as a refusal."""

from __future__ import annotations

from all_cases import check_all

from merkhet.models.chat.chat_messages import ChatReply, strip_reasoning
from merkhet.probes.chat._reply_parsing import (
    ANSWERED,
    NO_ANSWER,
    REFUSED,
    ParsedReply,
    parse_answer,
    parse_choice,
    parse_verdict,
)

LETTERS = ("A", "B", "C", "D")
CHOICES = ("Berlin", "Paris", "Rome", "I")
NAMED = (
    *("B", "B.", "(B)", " B)", "B)", "[B]", "**B**", "`B`", '"B"', "B: Paris", "B. Paris", "B\n", "B, because"),
    *("Paris", "paris.", " PARIS ", "“Paris”", "**Paris**", "The answer is B", "The correct answer is B."),
    *("Answer: B", "answer is (B)", "Option B", "The answer is Paris.", "I think the answer is B"),
    *("答案是B", "答案：B。", "选项 B", "B、Paris", "（B）"),
    *("B.\nI hope that helps!", "Answer:\n\nB", "The correct choice is **B**."),
)
NOT_NAMED = (
    *("", "   ", "E", "Z.", "b", "A or B", "Answer: A. No, the answer is B", "B. Rome", "Better", "Madrid", "A river"),
    *("I don't know.", "Paris and Rome", "巴黎", "¿Qué?", "The letter", "None of them", "1", "ABCD"),
)
REFUSALS = (
    *("I'm sorry, but I can't help with that.", "Sorry, I cannot answer.", "I cannot assist with this request."),
    *("As an AI language model, I have no opinion.", "I am unable to choose."),
    *("Unfortunately, I can't answer that question.", "抱歉，我无法回答这个问题。", "我不能提供这些信息。"),
    *("对不起", "作为一个人工智能，我没有观点。"),
)
WRITTEN = (
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
)
NAMES = (("true", "yes", "correct"), ("false", "no", "incorrect"))
VERDICTS = (
    ("true", "true"),
    ("True.", "true"),
    ("**Yes**", "true"),
    ("False. It lies in Spain.", "false"),
    ("No, it does not.", "false"),
    ("The answer is false.", "false"),
    ("Correct!", "true"),
    ("Incorrect", "false"),
    ("yes\n\nbecause", "true"),
)
NO_VERDICTS = ("", "perhaps", "Nothing is known.", "Trueish", "It is true.", "是", "Yesterday")
THOUGHTS = (
    ("<think>A or B?</think>B", "B"),
    ("<think>\nlong\n</think>\n\n**B**", "**B**"),
    ("<think>it never ends", ""),
    ("B <think>", "B <think>"),
)


def said(text: str) -> ChatReply:
    return ChatReply(0, text)


def test_a_choice_that_is_named() -> None:
    def check(text: str) -> None:
        assert parse_choice(said(text), LETTERS, CHOICES) == ParsedReply(ANSWERED, "Paris")

    check_all(check, NAMED)


def test_a_reply_that_names_no_choice_or_two() -> None:
    def check(text: str) -> None:
        assert parse_choice(said(text), LETTERS, CHOICES) == ParsedReply(NO_ANSWER)

    check_all(check, NOT_NAMED)


def test_a_refusal() -> None:
    def check(text: str) -> None:
        assert parse_choice(said(text), LETTERS, CHOICES) == ParsedReply(REFUSED)
        assert parse_answer(said(text)) == ParsedReply(REFUSED)
        assert parse_verdict(said(text), (("true",), ("false",))) == ParsedReply(REFUSED)

    check_all(check, REFUSALS)


def test_a_choice_that_looks_like_the_beginning_of_a_refusal() -> None:
    assert parse_choice(said("I"), LETTERS, CHOICES) == ParsedReply(ANSWERED, "I")
    assert parse_choice(said("D. I"), LETTERS, CHOICES) == ParsedReply(ANSWERED, "I")
    assert parse_choice(ChatReply(0, "B", refused=False), LETTERS, CHOICES).outcome == ANSWERED


def test_whoever_serves_the_model_may_refuse() -> None:
    assert parse_answer(ChatReply(0, "", refused=True)) == ParsedReply(REFUSED)


def test_an_answer_in_words() -> None:
    def check(text: str, answer: str) -> None:
        assert parse_answer(said(text), "The capital of France is ", ".") == ParsedReply(ANSWERED, answer)

    check_all(check, WRITTEN)


def test_no_words() -> None:
    def check(text: str) -> None:
        assert parse_answer(said(text)) == ParsedReply(NO_ANSWER)

    check_all(check, ("", " \n ", "...", "____", "?!", "x" * 300))


def test_a_verdict() -> None:
    def check(text: str, verdict: str) -> None:
        assert parse_verdict(said(text), NAMES) == ParsedReply(ANSWERED, verdict)

    check_all(check, VERDICTS)


def test_no_verdict() -> None:
    def check(text: str) -> None:
        assert parse_verdict(said(text), NAMES) == ParsedReply(NO_ANSWER)

    check_all(check, NO_VERDICTS)


def test_chinese_verdicts_need_no_blank() -> None:
    names = (("正确", "对"), ("错误", "错", "不对"))
    assert parse_verdict(said("正确。"), names).text == "正确"
    assert parse_verdict(said("错误的说法"), names).text == "错误"
    assert parse_verdict(said("不对，应该是北京"), names).text == "错误"


def test_thoughts_are_left_out() -> None:
    def check(text: str, rest: str) -> None:
        assert strip_reasoning(text) == rest

    check_all(check, THOUGHTS)
