"""What models write equals the obvious way: one question at a time, no cache, no padding, the whole head."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st
from writing_models import CAUSAL_WRITERS, MASKED_WRITERS, WRITERS, questions

from merkhet.core.records import Question
from merkhet.metrics.text_overlap import normalised_words
from merkhet.models._text_generation import cut_answer, rejoin_punctuation
from merkhet.models.lm_head import logits_at
from merkhet.models.loading import load_model
from merkhet.models.protocol import WritesAnswers

PROMPTS = (
    "The capital of France is [MASK].",
    "The capital of Germany is [MASK].",
    "[MASK] is the capital of Italy.",
    "New York is a [MASK] in the United States.",
    'They call it "[MASK]".',
    "This statement is true or [MASK]",
    "An element is a metal, a gas or a [MASK]",
    "The capital of France is [MASK].",
    "Is [MASK]?",
)
ASKED = [Question(f"q{i}", "t", prompt, ("Paris",), "Paris", ("Paris", "Rome")) for i, prompt in enumerate(PROMPTS)]


def masks_one_by_one(model, prompt: str, length: int = 8) -> tuple[str, float]:
    """Masks for a word that stands in the slot, the likeliest token at each, pads and other special tokens dropped."""
    before, after = prompt.split("[MASK]")
    encoded = model.tokenizer(before + "Paris" + after, return_offsets_mapping=True)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    own = [i for i, (start, stop) in enumerate(offsets) if start < len(before) + 5 and stop > max(start, len(before))]
    row = [*ids[: own[0]], *[model.tokenizer.mask_token_id] * length, *ids[own[-1] + 1 :]]
    with torch.no_grad():
        logits = model.model(input_ids=torch.tensor([row])).logits[0, own[0] : own[0] + length].log_softmax(-1)
    scores, tokens = logits.max(-1)
    kept = [token for token in tokens.tolist() if token not in model.tokenizer.all_special_ids]
    return rejoined_if_needed(model, model.tokenizer.decode(kept).strip()), scores.mean().item()


def rejoined_if_needed(model, text: str) -> str:
    words = type(model.tokenizer.backend_tokenizer.pre_tokenizer).__name__ == "BertPreTokenizer"
    return rejoin_punctuation(text) if words else text


def tokens_one_by_one(model, row: tuple[int, ...], mark: str, length: int = 8) -> str:
    ids = list(row)
    for _ in range(length):
        with torch.no_grad():
            token = int(model.model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
        if token in model.tokenizer.all_special_ids:
            break
        ids.append(token)
    return cut_answer(model.tokenizer.decode(ids[len(row) :]).replace("\ufffd", ""), mark, True)[0]


def test_masks_are_filled_as_one_by_one(writer_folders: dict[str, Path]) -> None:
    def check(family: str) -> None:
        model = load_model(str(writer_folders[family]))
        assert isinstance(model, WritesAnswers)
        expected = [masks_one_by_one(model, question.prompt) for question in ASKED]
        for budget in (16, 2048):
            model.token_budget = budget
            written = list(model.write_answers(ASKED, model.writing_methods))
            assert [one.index for one in written] == list(range(len(ASKED)))
            for one, (text, score) in zip(written, expected, strict=True):
                assert (one.text, one.method, one.unusable) == (text, "masks", None), budget
                assert one.score == pytest.approx(score, abs=1e-4), budget

    check_all(check, MASKED_WRITERS)


def test_the_masks_are_those_of_the_tokenizer_in_the_text(writer_folders: dict[str, Path]) -> None:
    def check(family: str) -> None:
        model = load_model(str(writer_folders[family]))
        for prompt in PROMPTS:
            row, first = model.writer.prompts.mask_slot(prompt, 8)
            text = prompt.replace("[MASK]", model.tokenizer.mask_token * 8)
            assert list(row) == model.tokenizer(text)["input_ids"]
            assert set(row[first : first + 8]) == {model.tokenizer.mask_token_id}

    check_all(check, [name for name in MASKED_WRITERS if name != "albert"])


def test_layers_that_share_their_weights_are_not_read_early(writer_folders: dict[str, Path]) -> None:
    """Tried all the same, it must be refused before an index out of range is used: a GPU does not recover from that."""
    model = load_model(str(writer_folders["albert"]))
    assert model.pick_after is None
    shared = model.model.albert.encoder.albert_layer_groups[0].albert_layers[0].attention
    places = torch.tensor([0]), torch.tensor([0])
    with pytest.raises(IndexError, match="positions cannot be picked twice"):
        logits_at(model.model, *places, shared, input_ids=torch.tensor([[5, 6, 7]]))


def test_a_text_goes_on_as_one_by_one(writer_folders: dict[str, Path]) -> None:
    def check(family: str) -> None:
        model = load_model(str(writer_folders[family]))
        prompts = model.writer.prompts
        methods = ("continue", "chat") if family == "chat" else ("continue",)
        expected = [
            (
                way,
                i,
                tokens_one_by_one(model, prompts.prompt_tokens(question, way, 8), prompts.closing_mark(question, way)),
            )
            for way in methods
            for i, question in enumerate(ASKED)
        ]
        for budget in (16, 2048):
            model.token_budget = budget
            written = list(model.write_answers(ASKED, methods))
            assert [(one.method, one.index, one.text) for one in written] == expected, budget
            assert len({one.text for one in written}) > 3
            assert all(one.score < 0 for one in written)

    check_all(check, CAUSAL_WRITERS)


def test_an_answer_does_not_depend_on_what_else_is_asked(writer_folders: dict[str, Path]) -> None:
    def check(family: str) -> None:
        model = load_model(str(writer_folders[family]))
        way = model.writing_methods[:1]
        together = [one.text for one in model.write_answers(ASKED, way)]
        alone = [next(iter(model.write_answers([question], way))).text for question in ASKED]
        backwards = {one.index: one.text for one in model.write_answers(ASKED[::-1], way)}
        assert together == alone == [backwards[len(ASKED) - 1 - i] for i in range(len(ASKED))]

    check_all(check, WRITERS)


def test_how_a_causal_model_is_asked(writer_folders: dict[str, Path]) -> None:
    model = load_model(str(writer_folders["chat"]))
    prompts, decode = model.writer.prompts, model.tokenizer.decode

    def text(prompt: str, method: str = "continue") -> str:
        return decode(prompts.prompt_tokens(Question("q", "t", prompt, ("x",), "x", ()), method, 8))

    assert text("The capital of France is [MASK].") == "The capital of France is"
    assert text('They call it "[MASK]" .') == 'They call it "'
    assert text("[MASK] is old.") == "____ is old.\nThe missing words are:"
    assert text("It is [MASK] °C.") == "It is ____ °C.\nThe missing words are:"
    chat = text("It is [MASK].", "chat")
    assert chat.startswith("<|im_start|>user\nFill in the blank") and "\nIt is ____.<|im_end|>" in chat
    assert chat.endswith("<|im_start|>assistant\n")


def test_what_cannot_be_written_says_why(writer_folders: dict[str, Path]) -> None:
    long = Question("long", "t", "The capital of France is " * 20 + "[MASK].", ("Paris",), "Paris", ())
    for family in ("bert", "gpt2"):
        model = load_model(str(writer_folders[family]))
        (one,) = model.write_answers([long], model.writing_methods[:1])
        assert one.unusable.startswith("too long: ") and one.unusable.endswith("the model takes 64")
    (one,) = model.write_answers(ASKED[:1], ("chat",))
    assert one.unusable == "its tokenizer has no chat template"


def test_stand_ins_write_one_of_the_candidates() -> None:
    random, frequency = load_model("random"), load_model("frequency")
    candidates = ("Paris", "Rome", "Oslo")
    asked = [Question(f"q{i}", "t", "It is [MASK].", ("Rome",), "Rome", candidates) for i in range(600)]
    texts = [one.text for one in random.write_answers(asked, random.writing_methods)]
    assert all(150 < texts.count(name) < 250 for name in candidates)
    frequency.prepare(asked, [{"task": "t", "relation": "t", "answer": "Rome", "count": 2}])
    assert {one.text for one in frequency.write_answers(asked, frequency.writing_methods)} == {"Rome"}
    empty = [Question("q", "t", "It is [MASK].", ("Rome",), "Rome", ())]
    assert next(iter(random.write_answers(empty, ("uniform",)))).unusable == "the list of candidates is empty"


def test_an_answer_is_cut_where_it_ends() -> None:
    def check(text: str, mark: str, answer: str) -> None:
        assert cut_answer(text, mark, True)[0] == answer

    cases = [
        (" Paris. It is", "", "Paris"),
        (" Paris", "", "Paris"),
        ("\n\nParis\nRome", "", "Paris"),
        (" 3.5 metres. And", "", "3.5 metres"),
        (" J. K. Rowling. She", "", "J. K. Rowling"),
        (" John F. Kennedy. He", "", "John F. Kennedy"),
        (" St. Petersburg, Russia. Then", "", "St. Petersburg, Russia"),
        (" vitamin C. It", "", "vitamin C"),
        (" John F.", "", "John F"),
        (" Paris... and", "", "Paris"),
        (" Yes! It", "", "Yes"),
        ('Rome", and it is', '"', "Rome"),
        ("罗马。它是", "", "罗马"),
        ("- Rome. It", "", "- Rome"),
        (". Rome", "", "Rome"),
        ("...", "", ""),
        ("", "", ""),
        (" Who? Me", "?", "Who"),
    ]
    check_all(check, cases)


@settings(deadline=None)
@given(
    pieces=st.lists(st.sampled_from([" Paris", ".", " J", "\n", '"', " It", "5", "!", "。", " St", "?"]), max_size=8)
)
def test_an_answer_that_is_sure_to_end_ends_there(pieces: list[str]) -> None:
    whole = "".join(pieces)
    for count in range(len(pieces)):
        answer, sure = cut_answer("".join(pieces[:count]), '"', False)
        if sure:
            assert cut_answer(whole, '"', True)[0] == answer


def test_words_and_numbers_are_whole_again() -> None:
    """As a vocabulary of words takes a text apart and puts it together, the words that are scored stay the same."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    def check(text: str) -> None:
        words = [word for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text)]
        tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(["[UNK]", *dict.fromkeys(words)])}))
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
        apart = tokenizer.decode(tokenizer.encode(text).ids)
        assert normalised_words(rejoin_punctuation(apart)) == normalised_words(text)

    cases = (
        *("Jean-Luc Picard", "rock-and-roll", "O'Brien", "the 1,000,000 people", "November 20, 1942", "3.14", "12:30"),
        *("Washington, D.C.", "J. K. Rowling", "AC/DC", "Berlin (Germany)", "St. Louis", "5 km", "U.S."),
        *("The Hitchhiker’s Guide", "1914–1918", "New York, Paris"),
    )
    check_all(check, cases)


def test_an_answer_is_spelled_as_it_was(writer_folders: dict[str, Path]) -> None:
    def check(family: str) -> None:
        model = load_model(str(writer_folders[family]))
        for question in questions():
            pieces = model.writer.prompts.answer_tokens(question.prompt, question.target, 8)
            assert len(pieces) == 8
            assert normalised_words(model.writer.decoder.decode(pieces)) == normalised_words(question.target)

    check_all(check, MASKED_WRITERS)
