"""Selection of clozes: positions of words, length of answers, distinct sentences, caps by answer and relation."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import Any

from merkhet.core.ids import derived_seed
from merkhet.questions.losses import LossCounter
from merkhet.questions.quality import MAX_ANSWER_TOKENS
from merkhet.suites.chneval.questions.question_rows import Cloze
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter
from merkhet.suites.chneval.questions.worded_triples import Triple, Triples

CAPPED = "beyond the largest number of questions per answer or relation"
_HAN = "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_HAN}]|[^\W{_HAN}]+|[^\w\s]")
_FIRST_UNSPACED = 0x0E00  # Thai: most scripts from here on put no spaces between words.


def word_positions(text: str, word: str, ignore_case: bool = False) -> list[int]:
    """Return all positions of a word in a text, including overlapping occurrences.

    Occurrences inside a longer word are left out, except in scripts without spaces: 不 also occurs in 不但.
    """
    if ignore_case and len(text.lower()) == len(text):
        text, word = text.lower(), word.lower()
    starts_with_letter, ends_with_letter = _is_letter(word[0]), _is_letter(word[-1])
    positions, start = [], text.find(word)
    while start >= 0:
        stop = start + len(word)
        continues_left = starts_with_letter and _is_letter(text[start - 1 : start])
        if not continues_left and not (ends_with_letter and _is_letter(text[stop : stop + 1])):
            positions.append(start)
        start = text.find(word, start + 1)
    return positions


def _is_letter(character: str) -> bool:
    """Check for a letter or digit of a script that puts spaces between words."""
    return character.isalnum() and ord(character) < _FIRST_UNSPACED


def has_askable_length(word: str, characters: int | None) -> bool:
    """Check whether an answer has exactly ``characters`` characters.

    If ``characters`` is None, the answer may have up to 8 Chinese characters or words of other scripts.
    """
    if characters is not None:
        return len(word) == characters
    return len(_TOKEN.findall(word)) <= MAX_ANSWER_TOKENS


def draw_clozes(
    clozes: Iterable[tuple[int, Cloze]],
    *,
    seed: int,
    per_answer: int | None,
    per_relation: int | None,
    capped: set[object] | None = None,
) -> list[Cloze]:
    """Draw clozes in order of priority; the seed decides the order of clozes with equal priority.

    A cloze is left out if its sentence or fact was drawn before, or if its answer or relation has reached its cap.

    Args:
        clozes: Pairs of priority and cloze; lower priorities come first.
        per_answer, per_relation: Maximum number of clozes with the same answer or relation.
        capped: Receives the facts of clozes that a maximum excludes.
    """
    lots = [
        (priority, derived_seed(seed, cloze.usage.prompt, cloze.fact), cloze.usage.where, cloze)
        for priority, cloze in clozes
    ]
    answer_cap, relation_cap = per_answer or math.inf, per_relation or math.inf
    used: set[object] = set()
    answers: Counter[str] = Counter()
    relations: Counter[str] = Counter()
    drawn = []
    for *_, cloze in sorted(lots, key=lambda lot: lot[:3]):
        word, relation = cloze.usage.word, (cloze.template or "").partition("/")[0]
        is_capped = answers[word] >= answer_cap or relations[relation] >= relation_cap
        if not is_capped and not used & {cloze.usage.sentence, cloze.fact}:
            used |= {cloze.usage.sentence, cloze.fact}
            answers[word] += 1
            relations[relation] += 1
            drawn.append(cloze)
        elif is_capped and capped is not None:
            capped.add(cloze.fact)
    return drawn


def count_unusable_rows(counter: LossCounter, triples: Triples) -> None:
    """Count the rows that are no distinct triples; remarks name them by file and line."""
    counter.add_many("the row repeats another one", triples.repeated)
    counter.add_many(
        "the row is no triple of names (see Remarks)", triples.rows - triples.repeated - len(triples.triples)
    )


def count_undrawn(counter: LossCounter, triple: Triple, capped: Collection[object]) -> None:
    """Count a triple that has clozes, none of which was drawn."""
    if triple.fact in capped:
        counter.add(CAPPED, triple.relation, triple.example, intended=True)
    else:
        counter.add("another question has the same sentence", triple.relation, triple.example)


def anomaly_remarks(clozes: Iterable[Cloze]) -> list[str]:
    """Return remarks on anomalies in the sentences of the clozes."""
    counter = RemarkCounter()
    for cloze in clozes:
        counter.add_anomalies(cloze.usage.sentence, cloze.usage.where)
    return counter.remarks()


def filter_rows(task: str, counts: Mapping[str, int]) -> list[Mapping[str, Any]]:
    """Make the rows of the data card that count the items before and after each filter.

    Args:
        counts: Number of items after each filter, by filter name; the first entry is the number before all filters.
    """
    return [
        {"filter": name, "task": task, "before": counts[previous], "after": counts[name]}
        for previous, name in pairwise(counts)
    ]
