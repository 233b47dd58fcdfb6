"""Function-word clozes: a conjunction, adverb, preposition, auxiliary word or direction noun left out."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.questions.losses import LossCounter
from merkhet.suites.chneval.questions.cloze_selection import word_positions
from merkhet.suites.chneval.questions.question_rows import CLASSES, SYNTACTIC, Cloze, DraftQuestions, Usage
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter
from merkhet.suites.chneval.questions.word_tagging import tagged_sentences

_REASONS = {
    "sentence length": "the sentence is too short or too long",
    "end mark": "the sentence has no end mark",
    "a word in small letters": "the word is not in small letters",
    "word length": "the word is too long (characters)",
    "once in its sentence": "the word is in its sentence several times",
    "same sentence again": "another usage gives the same question",
    "one question a sentence, capped by word": "the sentence asks another word, or the word has enough questions",
}
"""Reason for a loss, by name of the filter."""
_SENTENCE_END = re.compile(r"[。！？…｡.!?]\W*$")


def function_word_clozes(
    sources: Path | Sequence[Path],
    *,
    seed: int,
    per_word: int = 500,
    shortest: int = 4,
    longest: int = 256,
    max_characters: int | None = None,
    tags: Mapping[str, Sequence[str]] | None = None,
    language: str | None = None,
) -> DraftQuestions:
    """Make clozes for function words that occur once in their sentence, at most one cloze from each sentence.

    Sentences without an end mark, such as headlines, are left out. The next cloze is always for the class with the
    fewest questions and, within this class, for the word with the fewest questions. Rare words thus get their sentences
    before common words use these sentences up. The seed decides which sentence of a word is drawn. The order of the
    sentences has no effect.

    Args:
        sources: Files and folders to read. See :func:`tagged_sentences`, also for ``tags`` and ``language``.
        per_word: Maximum number of questions for each word in each class.
        shortest, longest: Minimum and maximum number of characters of a sentence.
        max_characters: Maximum number of characters of a word. The published questions have words of 1 character.
    """
    if per_word < 1 or (max_characters is not None and max_characters < 1):
        raise InputError(f"per_word and max_characters must be at least 1, got {per_word} and {max_characters}")
    counter = RemarkCounter()
    clozes = [
        Cloze(
            Usage(tagged.sentence.text, word.start, word.text, tagged.sentence.where),
            SYNTACTIC,
            domain=word.kind,
            language=tagged.language,
        )
        for tagged in tagged_sentences(sources, counter, tags=tags, language=language)
        for word in tagged.words
        if word.kind is not None
    ]
    filters: list[Mapping[str, Any]] = []
    total, losses = len(clozes), LossCounter(SYNTACTIC, "usages of function words")

    def keep(name: str, kept: Iterable[Cloze], *, intended: bool = False) -> None:
        nonlocal clozes
        before, clozes = clozes, list(kept)
        filters.append({"filter": name, "task": SYNTACTIC, "before": len(before), "after": len(clozes)})
        remaining = set(map(id, clozes))
        for cloze in before if len(clozes) < len(before) else ():
            if id(cloze) not in remaining:
                losses.add(_REASONS[name], cloze.domain, cloze.usage.word, intended=intended)

    def keep_usages(name: str, is_kept: Callable[[Usage], bool]) -> None:
        keep(name, (cloze for cloze in clozes if is_kept(cloze.usage)))

    keep_usages("sentence length", lambda usage: shortest <= len(usage.sentence) <= longest)
    keep_usages("end mark", lambda usage: bool(_SENTENCE_END.search(usage.sentence)))
    keep_usages("a word in small letters", lambda usage: usage.word.isalpha() and usage.word == usage.word.lower())
    if max_characters is not None:
        keep_usages("word length", lambda usage: len(usage.word) <= max_characters)
    keep_usages(
        "once in its sentence",
        lambda usage: word_positions(usage.sentence, usage.word, ignore_case=True) == [usage.start],
    )
    # Of duplicate sentences, the first is kept.
    keep("same sentence again", {_content(cloze): cloze for cloze in reversed(clozes)}.values())
    keep("one question a sentence, capped by word", _draw_clozes(clozes, seed, per_word), intended=True)
    for cloze in clozes:
        counter.add_anomalies(cloze.usage.sentence, cloze.usage.where)
    accounts = [losses.account(total, len(clozes))]
    return DraftQuestions(clozes=clozes, filters=filters, accounts=accounts, remarks=counter.remarks())


def _content(cloze: Cloze) -> tuple[str, str, str, int]:
    return str(cloze.domain), cloze.usage.word, cloze.usage.sentence, cloze.usage.start


def _draw_clozes(candidates: Sequence[Cloze], seed: int, per_word: int) -> list[Cloze]:
    """Draw clozes in turns by class and word, at most one from each sentence.

    Returns:
        Clozes sorted by class, word and sentence.
    """
    remaining: dict[tuple[str, str], list[Cloze]] = defaultdict(list)
    for cloze in candidates:
        remaining[str(cloze.domain), cloze.usage.word].append(cloze)
    sizes: dict[str, int] = defaultdict(int)
    words: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for (kind, word), clozes in remaining.items():
        # Clozes are drawn from the end of the list.
        order = {cloze.usage.sentence: derived_seed(seed, kind, word, cloze.usage.sentence) for cloze in clozes}
        clozes.sort(key=lambda cloze: (order[cloze.usage.sentence], cloze.usage.sentence), reverse=True)
        sizes[kind] += len(clozes)
        words[kind].append((0, len(clozes), word))
    for queue in words.values():
        heapq.heapify(queue)
    classes = [(0, size, kind) for kind, size in sizes.items()]
    heapq.heapify(classes)
    used: set[str] = set()
    drawn = []
    while classes:
        count, size, kind = heapq.heappop(classes)
        next_cloze = _next_of_class(words[kind], remaining, kind, used, per_word)
        if next_cloze is not None:
            used.add(next_cloze.usage.sentence)
            drawn.append(next_cloze)
            heapq.heappush(classes, (count + 1, size, kind))
    class_order = {kind: index for index, kind in enumerate(CLASSES)}
    return sorted(drawn, key=lambda cloze: (class_order.get(str(cloze.domain), len(class_order)), _content(cloze)))


def _next_of_class(
    queue: list[tuple[int, int, str]],
    remaining: Mapping[tuple[str, str], list[Cloze]],
    kind: str,
    used: Collection[str],
    per_word: int,
) -> Cloze | None:
    """Pop the next cloze of a class, which is in an unused sentence; None if the class has no such cloze.

    The word with the fewest questions goes first; ties go to the rarer word.
    """
    while queue:
        count, size, word = heapq.heappop(queue)
        clozes = remaining[kind, word]
        while clozes:
            cloze = clozes.pop()
            if cloze.usage.sentence not in used:
                if count + 1 < per_word:
                    heapq.heappush(queue, (count + 1, size, word))
                return cloze
    return None
