"""Which clozes are kept: the answer stands once in its sentence, no sentence twice, so many for each answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from merkhet.core.ids import derived_seed
from merkhet.questions.quality import MAX_ANSWER_TOKENS
from merkhet.suites.chneval.questions.question_rows import Cloze
from merkhet.suites.chneval.questions.text_anomalies import Counted, oddities

_HAN = "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_HAN}]|[^\W{_HAN}]+|[^\w\s]")
_BLANKS_BETWEEN_WORDS = 0x0E00  # Of the scripts from Thai on, most do without blanks.


def places(text: str, word: str, any_case: bool = False) -> list[int]:
    """Where a word stands in a text, overlaps too; within a longer word of letters it does not stand.

    In Chinese there are no blanks between words, so that 不 is also found in 不但.
    """
    if any_case and len(text.lower()) == len(text):
        text, word = text.lower(), word.lower()
    begins, ends = _is_letter(word[0]), _is_letter(word[-1])
    found, start = [], text.find(word)
    while start >= 0:
        stop = start + len(word)
        if not ((begins and _is_letter(text[start - 1 : start])) or (ends and _is_letter(text[stop : stop + 1]))):
            found.append(start)
        start = text.find(word, start + 1)
    return found


def _is_letter(character: str) -> bool:
    """Whether it is a letter or digit of a script that puts blanks between words."""
    return character.isalnum() and ord(character) < _BLANKS_BETWEEN_WORDS


def can_be_asked(word: str, characters: int | None) -> bool:
    """Whether a word has the length wanted: so many characters, or else up to 8 characters of Chinese or words."""
    if characters is not None:
        return len(word) == characters
    return len(_TOKEN.findall(word)) <= MAX_ANSWER_TOKENS


def draw(
    found: Iterable[tuple[int, Cloze]], *, seed: int, per_answer: int | None, per_relation: int | None
) -> list[Cloze]:
    """Clozes in an order drawn by the seed and their content, those with a lower number first.

    Left out is a sentence or a fact that was there before, and what is more than so many of an answer or a relation.
    """
    lots = [
        (number, derived_seed(seed, cloze.usage.prompt, cloze.fact), cloze.usage.where, cloze)
        for number, cloze in found
    ]
    seen: set[object] = set()
    answers: Counter[str] = Counter()
    relations: Counter[str] = Counter()
    kept = []
    for *_, cloze in sorted(lots, key=lambda lot: lot[:3]):
        word, relation = cloze.usage.word, (cloze.template or "").partition("/")[0]
        if seen & {cloze.usage.sentence, cloze.fact}:
            continue
        if _full(answers[word], per_answer) or _full(relations[relation], per_relation):
            continue
        seen |= {cloze.usage.sentence, cloze.fact}
        answers[word] += 1
        relations[relation] += 1
        kept.append(cloze)
    return kept


def _full(count: int, most: int | None) -> bool:
    return most is not None and count >= most


def remarks_on(clozes: Iterable[Cloze]) -> list[str]:
    """What is odd in the sentences that are asked, with where they come from."""
    counted = Counted()
    for cloze in clozes:
        for kind, characters in oddities(cloze.usage.sentence).items():
            counted.add(kind, f"{cloze.usage.where} {characters}".strip())
    return counted.remarks()


def steps(task: str, counts: Mapping[str, int]) -> list[Mapping[str, Any]]:
    """Rows of the data card: what each filter left of what the one before it had left; the first is no filter."""
    return [
        {"filter": name, "task": task, "before": counts[last], "after": counts[name]} for last, name in pairwise(counts)
    ]
