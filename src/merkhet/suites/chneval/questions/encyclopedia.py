"""Encyclopedia clozes: an item of a triple left out of a natural text that contains all three items."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product

from merkhet.suites.chneval.questions.cloze_selection import (
    anomaly_remarks,
    draw_clozes,
    filter_rows,
    has_askable_length,
    word_positions,
)
from merkhet.suites.chneval.questions.question_rows import ENCYCLOPEDIA, Cloze, DraftQuestions, Usage
from merkhet.suites.chneval.questions.sentences import sentence_spans
from merkhet.suites.chneval.questions.worded_triples import Text, Texts, Triple, Triples

SHORTEST, LONGEST = 16, 128
_SUBJECT_TEXT, _OTHER_TEXT = 0, 1


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
) -> DraftQuestions:
    """Make clozes of triples in texts that contain all three items, one for each triple; drawn by the seed.

    A triple is matched with the text it came with and with texts whose title is its subject, then with texts whose
    title is no subject. A text is cut to the fewest whole sentences that contain the three items and one that can be
    asked for: the object, else the relation, else the subject, if it occurs exactly once. The relation may be part of
    the object (目 in 翼手目); otherwise an occurrence within another item does not count. An item is not asked for if
    other triples give another answer. No sentence is asked twice.

    Args:
        shortest, longest: Number of characters of the sentences.
        per_relation, per_answer: Maximum number of clozes with the same relation or answer.
        characters: Number of characters of an answer; by default any number up to 8.
    """
    facts = {triple.fact for triple in triples.triples}
    answer_counts = Counter(_without(fact, item) for fact in facts for item in fact)
    contained, askable, unique = set(), set(), set()
    clozes: list[tuple[int, Cloze]] = []
    for priority, triple, text in _matches(triples.triples, texts.texts if texts else (), shortest, longest):
        windows = (window for window in text.windows if _contains(window, triple))
        first = next(windows, None)
        if first is None:
            continue
        contained.add(triple.fact)
        usage = _first_usage(chain([first], windows), triple, characters, text.where)
        if usage is None:
            continue
        askable.add(triple.fact)
        if answer_counts[_without(triple.fact, usage.word)] == 1:
            unique.add(triple.fact)
            clozes.append((priority, Cloze(usage, ENCYCLOPEDIA, None, triple.relation, triple.fact, language)))
    kept = draw_clozes(clozes, seed=seed, per_answer=per_answer, per_relation=per_relation)
    counts = {
        "rows": triples.rows,
        "repeated or bad rows": len(facts),
        "no text with all three items": len(contained),
        "length, or an answer that is repeated": len(askable),
        "more than one right answer": len(unique),
        "caps by answer and relation": len(kept),
    }
    remarks = [*triples.remarks, *(texts.remarks if texts else ()), *anomaly_remarks(kept)]
    return DraftQuestions(clozes=kept, filters=filter_rows(ENCYCLOPEDIA, counts), remarks=remarks)


@dataclass(frozen=True)
class _WindowedText:
    """A text and its windows: runs of whole sentences."""

    text: str
    where: str
    shortest: int
    longest: int

    @cached_property
    def windows(self) -> list[str]:
        """Windows of ``shortest`` to ``longest`` characters, those of fewer sentences first."""
        spans = sentence_spans(self.text)
        windows = []
        for first, (start, _) in enumerate(spans):
            for last in range(first, len(spans)):
                stop = spans[last][1]
                if stop - start > self.longest:
                    break
                if stop - start >= self.shortest:
                    windows.append((last - first, start, stop))
        return [self.text[start:stop] for _, start, stop in sorted(windows)]


def _without(fact: tuple[str, str, str], left_out: str) -> tuple[str | None, ...]:
    return tuple(None if item == left_out else item for item in fact)


def _matches(
    triples: Sequence[Triple], texts: Sequence[Text], shortest: int, longest: int
) -> Iterator[tuple[int, Triple, _WindowedText]]:
    """Yield triples with texts in which all three items occur, and whether the text is about the subject."""
    by_subject: dict[str, list[Triple]] = defaultdict(list)
    # A triple is looked up by its longest item, which is in the fewest texts.
    by_longest: dict[str, list[Triple]] = defaultdict(list)
    for triple in {triple.fact: triple for triple in reversed(triples)}.values():
        by_subject[triple.subject].append(triple)
        by_longest[max(triple.fact, key=len)].append(triple)
    for triple in triples:
        if all(item in triple.text for item in triple.fact):
            yield _SUBJECT_TEXT, triple, _WindowedText(triple.text, triple.where, shortest, longest)
    finder = _WordFinder(by_longest)
    for text in texts:
        about_subject = text.title in by_subject
        groups = [by_subject[text.title]] if about_subject else [by_longest[word] for word in finder.within(text.text)]
        cut = _WindowedText(text.text, text.where, shortest, longest)
        for triple in chain.from_iterable(groups):
            if all(item in text.text for item in triple.fact):
                yield _SUBJECT_TEXT if about_subject else _OTHER_TEXT, triple, cut


class _WordFinder:
    """Index of many words by their first two characters, to find those in a text."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = set(words)
        self._single = {word for word in self._words if len(word) == 1}
        lengths: dict[str, set[int]] = defaultdict(set)
        for word in self._words - self._single:
            lengths[word[:2]].add(len(word))
        self._lengths = {prefix: tuple(sorted(prefix_lengths)) for prefix, prefix_lengths in lengths.items()}

    def within(self, text: str) -> set[str]:
        """Return the words that occur anywhere in the text."""
        words = self._single.intersection(text)
        lengths = self._lengths
        for start in range(len(text) - 1):
            for length in lengths.get(text[start : start + 2], ()):
                word = text[start : start + length]
                if word in self._words:
                    words.add(word)
        return words


def _contains(window: str, triple: Triple) -> bool:
    """Check whether the items occur without overlap; the relation may be inside the object."""
    if not all(item in window for item in triple.fact):
        return False
    subjects, relations, objects = (
        [(start, start + len(item)) for start in word_positions(window, item)] for item in triple.fact
    )
    return any(
        _disjoint(subject, object_)
        and _disjoint(subject, relation)
        and (_disjoint(relation, object_) or (object_[0] <= relation[0] and relation[1] <= object_[1]))
        for subject, relation, object_ in product(subjects, relations, objects)
    )


def _disjoint(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return first[1] <= second[0] or second[1] <= first[0]


def _first_usage(windows: Iterable[str], triple: Triple, characters: int | None, where: str) -> Usage | None:
    """Return the first window with an item that occurs once, in the order object, relation, subject."""
    for window in windows:
        for item in (triple.object, triple.relation, triple.subject):
            if has_askable_length(item, characters):
                positions = word_positions(window, item)
                if len(positions) == 1 and window.count(item) == 1:
                    return Usage(window, positions[0], item, where)
    return None
