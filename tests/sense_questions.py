"""Questions that compare senses, in words that the tiny models know, and the obvious way to answer them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from merkhet.core import SLOT
from merkhet.core.records import Question


def sense_question(name: str, word: str, base: str, *choices: str, words: tuple[str, ...] = ()) -> Question:
    """Is the word of the base nearer to that of the first choice? Slots are written ``_``."""
    prompt, *texts = (text.replace("_", SLOT) for text in (base, *choices))
    return Question(name, "senses", prompt, (texts[0],), texts[0], tuple(texts), words=words or (word,))


ENGLISH = (
    sense_question(
        "pieces", "the United States", "New York is a city in _.", "_ is old.", "Is it a city in _ or in India?"
    ),
    sense_question("first", "capital", "The _ of the capital is Rome.", "The capital of the _ is Rome.", "_ of Italy"),
    sense_question("second", "capital", "The capital of the _ is Rome.", "The _ of the capital is Rome.", "It is a _."),
    sense_question(
        "same", "Paris", "The capital of France is _.", "The capital of France is _.", "_ is said to be old."
    ),
    sense_question("within", "fix", "The president presents a pre_.", "It is a pre_.", "_ it."),
    sense_question("each", "", "_ is a gas.", "A _ is old.", "The _ is true.", words=("It", "metal", "New York")),
    sense_question("three", "Rome", 'They call it "_", a city.', "_ is a city.", "_ is a metal.", "In _"),
)
CHINESE = (
    sense_question("zh", "首都", "法国的_是巴黎。", "北京是中国的_，也是一座城市。", "_是一座城市的首都。"),
    sense_question("zh-repeated", "的", "这句话是真_还是假的？", "这句话是真的还是假_？", "纽约是美国_一座城市。"),
    sense_question("zh-words", "一座城市", "纽约是美国的_。", "_是罗马。", "北京是_，也是首都。"),
)


def asked(family: str) -> list[Question]:
    """The questions that a family of tiny models can be asked."""
    return [*ENGLISH, *(CHINESE if family in ("bert-chinese", "xlm-roberta", "llama-sentencepiece") else ())]


def cosines_one_by_one(
    network: Any, tokenizer: Any, question: Question, way: str, layer: int, special: bool = True
) -> list[float]:
    """One sentence, one pass: tokens by offsets, their mean in a layer (-1: the last), the cosine with the prompt's."""
    words = question.words if len(question.words) > 1 else question.words * (1 + len(question.candidates))
    states = []
    for text, word in zip((question.prompt, *question.candidates), words, strict=True):
        before, after = text.split(SLOT)
        encoded = tokenizer(before + word + after, return_offsets_mapping=True, add_special_tokens=special)
        own = [
            place
            for place, (start, stop) in enumerate(encoded["offset_mapping"])
            if start < stop and start < len(before) + len(word) and stop > len(before)
        ]
        ids = list(encoded["input_ids"])
        for place in own if way == "masked" else ():
            ids[place] = tokenizer.mask_token_id
        with torch.no_grad():
            output = network(input_ids=torch.tensor([ids]), output_hidden_states=True)
        hidden = output.last_hidden_state if layer == -1 else output.hidden_states[layer]
        states.append(hidden[0, own].mean(dim=0).double())
    return [torch.cosine_similarity(states[0], other, dim=0).item() for other in states[1:]]


def similarities(model: Any, questions: Sequence[Question], *methods: str) -> dict[int, dict[str, list[float]]]:
    """What a model gives for questions all of which it can be asked."""
    found = {one.index: one for one in model.compare_senses(questions, methods)}
    assert sorted(found) == list(range(len(questions)))
    assert not [one.unusable for one in found.values() if one.unusable]
    return {index: {name: own.tolist() for name, own in one.by_method.items()} for index, one in found.items()}
