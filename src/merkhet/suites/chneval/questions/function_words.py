"""Function-word clozes: a conjunction, adverb, preposition, auxiliary word or direction noun left out."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.suites.chneval.questions.cloze_selection import word_positions
from merkhet.suites.chneval.questions.question_rows import SYNTACTIC, Cloze, DraftQuestions, Usage
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter, find_anomalies
from merkhet.suites.chneval.questions.word_tagging import CLASSES, tagged_sentences

_SENTENCE_END = re.compile(r"[。！？…｡.!?]\W*$")


class _FunctionWord(NamedTuple):
    """A function word in a sentence; of duplicate sentences, in one of them."""

    kind: str
    word: str
    sentence: str
    start: int
    language: str
    where: str


def function_word_clozes(
    sources: Path | Sequence[Path],
    *,
    seed: int,
    per_word: int = 500,
    shortest: int = 4,
    longest: int = 256,
    words: Collection[str] | None = None,
    max_characters: int | None = None,
    tags: Mapping[str, Sequence[str]] | None = None,
    language: str | None = None,
) -> DraftQuestions:
    """Make clozes of function words that occur once in their sentence, at most one of each sentence.

    A sentence must have an end mark, which headlines lack. The word to leave out is chosen in turns: the class with the
    fewest questions goes first, and within a class the word with the fewest. So small classes and rare words get their
    sentences before common words use them up. The sentence is drawn by the seed. The order of the sentences does not
    matter.

    Args:
        sources: Files and folders; see :func:`tagged_sentences`, also for ``tags`` and ``language``.
        per_word: Maximum number of questions of a word of a class.
        shortest: Minimum number of characters of a sentence.
        longest: Maximum number of characters of a sentence.
        words: The only words to ask for; all by default.
        max_characters: Maximum number of characters of a word; 1 in the published set.
    """
    if per_word < 1 or (max_characters is not None and max_characters < 1):
        raise InputError(f"per_word and max_characters must be at least 1, got {per_word} and {max_characters}")
    counter = RemarkCounter()
    usages = [
        _FunctionWord(word.kind, word.text, tagged.sentence.text, word.start, tagged.language, tagged.sentence.where)
        for tagged in tagged_sentences(sources, counter, tags=tags, language=language)
        for word in tagged.words
        if word.kind is not None
    ]
    filters: list[Mapping[str, Any]] = []

    def keep(name: str, kept: Iterable[_FunctionWord]) -> None:
        nonlocal usages
        count, usages = len(usages), list(kept)
        filters.append({"filter": name, "task": SYNTACTIC, "before": count, "after": len(usages)})

    keep("sentence length", (usage for usage in usages if shortest <= len(usage.sentence) <= longest))
    keep("ends as sentences do", (usage for usage in usages if _SENTENCE_END.search(usage.sentence)))
    keep(
        "a word in small letters",
        (usage for usage in usages if usage.word.isalpha() and usage.word == usage.word.lower()),
    )
    if max_characters is not None:
        keep("word length", (usage for usage in usages if len(usage.word) <= max_characters))
    if words is not None:
        keep("chosen words", (usage for usage in usages if usage.word in words))
    once = (usage for usage in usages if word_positions(usage.sentence, usage.word, ignore_case=True) == [usage.start])
    keep("once in its sentence", once)
    keep("same sentence again", {usage[:4]: usage for usage in reversed(usages)}.values())
    keep("one question a sentence, capped by word", _draw_usages(usages, seed, per_word))
    draft = DraftQuestions(filters=filters)
    for usage in usages:
        for kind, characters in find_anomalies(usage.sentence).items():
            counter.add(kind, f"{usage.where}: {characters}")
        blank = Usage(usage.sentence, usage.start, usage.word, usage.where)
        draft.clozes.append(Cloze(blank, SYNTACTIC, domain=usage.kind, language=usage.language))
    draft.remarks = counter.remarks()
    return draft


def _draw_usages(candidates: Sequence[_FunctionWord], seed: int, per_word: int) -> list[_FunctionWord]:
    """Draw usages in turns by class and word, no two of one sentence; return them by class, word and sentence."""
    remaining: dict[tuple[str, str], list[_FunctionWord]] = defaultdict(list)
    for usage in candidates:
        remaining[usage.kind, usage.word].append(usage)
    for name, usages in remaining.items():
        # Usages are drawn from the end of the list.
        usages.sort(key=lambda usage: (derived_seed(seed, *name, usage.sentence), usage.sentence), reverse=True)
    sizes: dict[str, int] = defaultdict(int)
    words: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for (kind, word), usages in remaining.items():
        sizes[kind] += len(usages)
        words[kind].append((0, len(usages), word))
    for queue in words.values():
        heapq.heapify(queue)
    classes = [(0, size, kind) for kind, size in sizes.items()]
    heapq.heapify(classes)
    used: set[str] = set()
    drawn = []
    while classes:
        count, size, kind = heapq.heappop(classes)
        next_usage = _next_of_class(words[kind], remaining, kind, used, per_word)
        if next_usage is not None:
            used.add(next_usage.sentence)
            drawn.append(next_usage)
            heapq.heappush(classes, (count + 1, size, kind))
    class_order = {kind: index for index, kind in enumerate(CLASSES)}
    return sorted(drawn, key=lambda usage: (class_order.get(usage.kind, len(class_order)), usage[:4]))


def _next_of_class(
    queue: list[tuple[int, int, str]],
    remaining: Mapping[tuple[str, str], list[_FunctionWord]],
    kind: str,
    used: Collection[str],
    per_word: int,
) -> _FunctionWord | None:
    """Pop a class's next usage in an unused sentence: of the word with the fewest questions, the rarer of ties."""
    while queue:
        count, size, word = heapq.heappop(queue)
        usages = remaining[kind, word]
        while usages:
            usage = usages.pop()
            if usage.sentence not in used:
                if count + 1 < per_word:
                    heapq.heappush(queue, (count + 1, size, word))
                return usage
    return None
