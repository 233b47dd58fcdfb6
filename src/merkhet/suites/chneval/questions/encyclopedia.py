"""Clozes of encyclopedia facts: an item of a triple left out of a natural text that holds all three."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product

from merkhet.suites.chneval.questions.cloze_selection import can_be_asked, draw, places, remarks_on, steps
from merkhet.suites.chneval.questions.question_rows import ENCYCLOPEDIA, Cloze, Gathered, Usage
from merkhet.suites.chneval.questions.sentences import sentence_spans
from merkhet.suites.chneval.questions.worded_triples import Text, Texts, Triple, Triples

SHORTEST, LONGEST = 16, 128
_OWN_TEXT, _OTHER_TEXT = 0, 1


def encyclopedia_clozes(
    triples: Triples,
    texts: Texts | None = None,
    *,
    language: str = "zh",
    seed: int,
    shortest: int = SHORTEST,
    longest: int = LONGEST,
    per_relation: int | None = 100,
    per_answer: int | None = 10,
    characters: int | None = None,
) -> Gathered:
    """Clozes of triples in texts that hold all three items, one a triple; drawn by the seed.

    A triple is looked for in the text it came with and in the texts whose title is its subject, then in texts whose
    title is no subject at all. A text is cut to the fewest whole sentences, of ``shortest`` to ``longest`` characters
    together, that hold the three items and have one to ask for: the object, else the relation, else the subject,
    whichever stands there exactly once and has ``characters`` of them, or any number up to 8. The relation may stand
    within the object (目 in 翼手目); otherwise no item counts where it stands within another. What other triples answer
    otherwise is not asked, and no sentence twice.
    """
    facts = {triple.fact for triple in triples.triples}
    right = _Right(facts)
    held, asked, unique = set(), set(), set()
    found: list[tuple[int, Cloze]] = []
    for turn, triple, text in _matches(triples.triples, texts.texts if texts else (), shortest, longest):
        windows = (window for window in text.windows if _holds(window, triple))
        first = next(windows, None)
        if first is None:
            continue
        held.add(triple.fact)
        usage = _first_usage(chain([first], windows), triple, characters, text.where)
        if usage is None:
            continue
        asked.add(triple.fact)
        if right.is_unique(triple.fact, usage.word):
            unique.add(triple.fact)
            found.append((turn, Cloze(usage, ENCYCLOPEDIA, None, triple.relation, triple.fact, language)))
    kept = draw(found, seed=seed, per_answer=per_answer, per_relation=per_relation)
    counts = {
        "rows": triples.rows,
        "repeated or bad rows": len(facts),
        "no text holds all three": len(held),
        "length, or an answer that is seen": len(asked),
        "more than one right answer": len(unique),
        "so many of an answer or a relation": len(kept),
    }
    said = [*triples.remarks, *(texts.remarks if texts else ())]
    return Gathered(clozes=kept, filters=steps(ENCYCLOPEDIA, counts), remarks=[*said, *remarks_on(kept)])


@dataclass(frozen=True)
class _Cut:
    """A text and the runs of whole sentences that can be cut out of it."""

    text: str
    where: str
    shortest: int
    longest: int

    @cached_property
    def windows(self) -> list[str]:
        """Runs of sentences of the lengths wanted, those of fewer sentences first."""
        spans = sentence_spans(self.text)
        found = []
        for first, (start, _) in enumerate(spans):
            for last in range(first, len(spans)):
                stop = spans[last][1]
                if stop - start > self.longest:
                    break
                if stop - start >= self.shortest:
                    found.append((last - first, start, stop))
        return [self.text[start:stop] for _, start, stop in sorted(found)]


class _Right:
    """What else the triples say would be right where an item is left out."""

    def __init__(self, facts: Iterable[tuple[str, str, str]]) -> None:
        self._answers: dict[tuple[str | None, ...], int] = defaultdict(int)
        for fact in facts:
            for place in range(3):
                self._answers[_without(fact, place)] += 1

    def is_unique(self, fact: tuple[str, str, str], word: str) -> bool:
        """Whether no other triple has another item in the place of this one."""
        return self._answers[_without(fact, fact.index(word))] == 1


def _without(fact: tuple[str, str, str], place: int) -> tuple[str | None, ...]:
    return tuple(None if number == place else item for number, item in enumerate(fact))


def _matches(
    triples: Sequence[Triple], texts: Sequence[Text], shortest: int, longest: int
) -> Iterator[tuple[int, Triple, _Cut]]:
    """Triples with texts in which all three items occur, and whether the text is the triple's own."""
    by_subject: dict[str, list[Triple]] = defaultdict(list)
    # Of all triples only those are looked at whose longest item is in the text: it is in the fewest.
    by_longest: dict[str, list[Triple]] = defaultdict(list)
    for triple in {triple.fact: triple for triple in reversed(triples)}.values():
        by_subject[triple.subject].append(triple)
        by_longest[max(triple.fact, key=len)].append(triple)
    for triple in triples:
        if all(item in triple.text for item in triple.fact):
            yield _OWN_TEXT, triple, _Cut(triple.text, triple.where, shortest, longest)
    finder = _Finder(by_longest)
    for text in texts:
        own = text.title in by_subject
        groups = [by_subject[text.title]] if own else [by_longest[word] for word in finder.within(text.text)]
        cut = _Cut(text.text, text.where, shortest, longest)
        for triple in chain.from_iterable(groups):
            if triple.object in text.text and triple.subject in text.text and triple.relation in text.text:
                yield _OWN_TEXT if own else _OTHER_TEXT, triple, cut


class _Finder:
    """Finds which of many words occur in a text, by their first two characters."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = set(words)
        self._single = {word for word in self._words if len(word) == 1}
        lengths: dict[str, set[int]] = defaultdict(set)
        for word in self._words - self._single:
            lengths[word[:2]].add(len(word))
        self._lengths = {first: tuple(sorted(found)) for first, found in lengths.items()}

    def within(self, text: str) -> set[str]:
        """The words that stand anywhere in the text."""
        found = self._single.intersection(text)
        lengths = self._lengths
        for start in range(len(text) - 1):
            for length in lengths.get(text[start : start + 2], ()):
                word = text[start : start + length]
                if word in self._words:
                    found.add(word)
        return found


def _holds(window: str, triple: Triple) -> bool:
    """Whether each item stands in a place of its own, the relation perhaps within the object."""
    if not all(item in window for item in triple.fact):
        return False
    subjects, relations, objects = (
        [(start, start + len(item)) for start in places(window, item)] for item in triple.fact
    )
    return any(
        _apart(subject, object_)
        and _apart(subject, relation)
        and (_apart(relation, object_) or _inside(relation, object_))
        for subject, relation, object_ in product(subjects, relations, objects)
    )


def _apart(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[1] <= other[0] or other[1] <= one[0]


def _inside(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return other[0] <= one[0] and one[1] <= other[1]


def _first_usage(windows: Iterable[str], triple: Triple, characters: int | None, where: str) -> Usage | None:
    """The first window in which an item stands once, with that item: the object before the relation and the subject."""
    for window in windows:
        for item in (triple.object, triple.relation, triple.subject):
            if can_be_asked(item, characters):
                found = places(window, item)
                if len(found) == 1 and window.count(item) == 1:
                    return Usage(window, found[0], item, where)
    return None
