"""Clozes of function words: a conjunction, adverb, preposition, auxiliary word or direction noun left out."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.suites.chneval.questions.cloze_selection import places
from merkhet.suites.chneval.questions.question_rows import SYNTACTIC, Cloze, Gathered, Usage
from merkhet.suites.chneval.questions.text_anomalies import Counted, oddities
from merkhet.suites.chneval.questions.word_tagging import CLASSES, tagged_sentences

_WHOLE = re.compile(r"[。！？…｡.!?]\W*$")


class _Found(NamedTuple):
    """A function word of a sentence. Of a sentence that is there twice, this is the word in one of them."""

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
    most_characters: int | None = None,
    tags: Mapping[str, Sequence[str]] | None = None,
    language: str | None = None,
) -> Gathered:
    """Function words that occur once in their sentence, each sentence asked once; see :func:`tagged_sentences`.

    A sentence has ``shortest`` to ``longest`` characters and an end mark, which headlines lack. ``words`` are the only
    ones asked for, ``most_characters`` keeps short ones (1 as in the published set), ``per_word`` is the most questions
    that a word of a class gets. Which word of a sentence is left out: classes take turns, the one with the fewest
    questions first, and in a class its words in the same way; the sentence is drawn by seed. So small classes and rare
    words have their sentences before common ones use them up. The same sentences in another order give the same
    questions.
    """
    if per_word < 1 or (most_characters is not None and most_characters < 1):
        raise InputError("per_word and most_characters are at least 1")
    remarked = Counted()
    found = [
        _Found(word.kind, word.text, one.sentence.text, word.start, one.language, one.sentence.where)
        for one in tagged_sentences(sources, remarked, tags=tags, language=language)
        for word in one.words
        if word.kind is not None
    ]
    filters: list[Mapping[str, Any]] = []

    def narrowed(name: str, kept: Iterable[_Found]) -> None:
        nonlocal found
        before, found = len(found), list(kept)
        filters.append({"filter": name, "task": SYNTACTIC, "before": before, "after": len(found)})

    narrowed("sentence length", (one for one in found if shortest <= len(one.sentence) <= longest))
    narrowed("ends as sentences do", (one for one in found if _WHOLE.search(one.sentence)))
    narrowed("a word in small letters", (one for one in found if one.word.isalpha() and one.word == one.word.lower()))
    if most_characters is not None:
        narrowed("word length", (one for one in found if len(one.word) <= most_characters))
    if words is not None:
        narrowed("chosen words", (one for one in found if one.word in words))
    once = (one for one in found if places(one.sentence, one.word, any_case=True) == [one.start])
    narrowed("once in its sentence", once)
    narrowed("same sentence again", {one[:4]: one for one in reversed(found)}.values())
    narrowed("one question a sentence, capped by word", _drawn(found, seed, per_word))
    gathered = Gathered(filters=filters)
    for one in found:
        for kind, characters in oddities(one.sentence).items():
            remarked.add(kind, f"{one.where}: {characters}")
        usage = Usage(one.sentence, one.start, one.word, one.where)
        gathered.clozes.append(Cloze(usage, SYNTACTIC, domain=one.kind, language=one.language))
    gathered.remarks = remarked.remarks()
    return gathered


def _drawn(found: Sequence[_Found], seed: int, per_word: int) -> list[_Found]:
    """Usages of which no two share a sentence, in turn by class and word; by class, word and sentence."""
    left: dict[tuple[str, str], list[_Found]] = defaultdict(list)
    for one in found:
        left[one.kind, one.word].append(one)
    for name, usages in left.items():
        # The last is the first to be drawn.
        usages.sort(key=lambda one: (derived_seed(seed, *name, one.sentence), one.sentence), reverse=True)
    sizes: dict[str, int] = defaultdict(int)
    words: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for (kind, word), usages in left.items():
        sizes[kind] += len(usages)
        words[kind].append((0, len(usages), word))
    for queue in words.values():
        heapq.heapify(queue)
    classes = [(0, size, kind) for kind, size in sizes.items()]
    heapq.heapify(classes)
    used: set[str] = set()
    drawn = []
    while classes:
        taken, size, kind = heapq.heappop(classes)
        chosen = _next_of_class(words[kind], left, kind, used, per_word)
        if chosen is not None:
            used.add(chosen.sentence)
            drawn.append(chosen)
            heapq.heappush(classes, (taken + 1, size, kind))
    places = {kind: place for place, kind in enumerate(CLASSES)}
    return sorted(drawn, key=lambda one: (places.get(one.kind, len(places)), one[:4]))


def _next_of_class(
    queue: list[tuple[int, int, str]],
    left: Mapping[tuple[str, str], list[_Found]],
    kind: str,
    used: Collection[str],
    per_word: int,
) -> _Found | None:
    """A class's next usage in a sentence not used: of the word with the fewest questions, the rarer where equal."""
    while queue:
        taken, size, word = heapq.heappop(queue)
        usages = left[kind, word]
        while usages:
            one = usages.pop()
            if one.sentence not in used:
                if taken + 1 < per_word:
                    heapq.heappush(queue, (taken + 1, size, word))
                return one
    return None
