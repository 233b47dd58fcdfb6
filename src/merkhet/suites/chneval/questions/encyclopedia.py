"""Encyclopedia clozes: natural texts that contain the three items of a triple, with one item left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product

from merkhet.questions.losses import LossCounter
from merkhet.suites.chneval.questions.cloze_selection import (
    anomaly_remarks,
    count_undrawn,
    count_unusable_rows,
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
    """Draw clozes by the seed from texts that contain all three items of a triple, at most one cloze for each triple.

    A triple is matched first with its source text and with texts whose title is its subject. Then it is matched with
    texts whose title is not the subject of any triple. A text is cut to the fewest whole sentences that contain all
    three items, one of which can be left out. The item left out is the object, else the relation, else the subject; it
    must occur exactly once. Items must not overlap, but the relation may be part of the object (目 in 翼手目). An item
    is not left out if other triples give a different answer. Each cut text is used at most once.

    Args:
        shortest, longest: Minimum and maximum number of characters of the cut text.
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
    capped: set[object] = set()
    kept = draw_clozes(clozes, seed=seed, per_answer=per_answer, per_relation=per_relation, capped=capped)
    counter = LossCounter(ENCYCLOPEDIA, "triples")
    count_unusable_rows(counter, triples)
    counter.add_many("the row repeats another one", len(triples.triples) - len(facts))
    drawn = {cloze.fact for cloze in kept}
    for triple in {triple.fact: triple for triple in triples.triples if triple.fact not in drawn}.values():
        for stage, reason in (
            (contained, "no text with all three items"),
            (askable, "length, or an answer that is repeated"),
            (unique, "more than one right answer"),
        ):
            if triple.fact not in stage:
                counter.add(reason, triple.relation, triple.example)
                break
        else:
            count_undrawn(counter, triple, capped)
    counts = {
        "rows": triples.rows,
        "repeated or bad rows": len(facts),
        "no text with all three items": len(contained),
        "length, or an answer that is repeated": len(askable),
        "more than one right answer": len(unique),
        "caps by answer and relation": len(kept),
    }
    remarks = [*triples.remarks, *(texts.remarks if texts else ()), *anomaly_remarks(kept)]
    return DraftQuestions(
        clozes=kept,
        filters=filter_rows(ENCYCLOPEDIA, counts),
        accounts=[counter.account(triples.rows, len(kept))],
        remarks=remarks,
    )


@dataclass(frozen=True)
class _WindowedText:
    """Text with its windows, which are runs of whole sentences."""

    text: str
    where: str
    shortest: int
    longest: int

    @cached_property
    def windows(self) -> list[str]:
        """Windows of ``shortest`` to ``longest`` characters, sorted by their number of sentences."""
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
    """Yield triples with texts that contain all three items.

    Each triple and text has a priority: 0 if the text is about the subject, and 1 otherwise.
    """
    by_subject: dict[str, list[Triple]] = defaultdict(list)
    # A triple is looked up by its longest item, which tends to occur in the fewest texts.
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
    """Index of words by their first two characters, for finding indexed words in a text."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = set(words)
        self._single = {word for word in self._words if len(word) == 1}
        lengths: dict[str, set[int]] = defaultdict(set)
        for word in self._words - self._single:
            lengths[word[:2]].add(len(word))
        self._lengths = {prefix: tuple(sorted(prefix_lengths)) for prefix, prefix_lengths in lengths.items()}

    def within(self, text: str) -> set[str]:
        """Return the indexed words that occur anywhere in the text."""
        words = self._single.intersection(text)
        lengths = self._lengths
        for start in range(len(text) - 1):
            for length in lengths.get(text[start : start + 2], ()):
                word = text[start : start + length]
                if word in self._words:
                    words.add(word)
        return words


def _contains(window: str, triple: Triple) -> bool:
    """Check whether the window contains the triple's items without overlap; the relation may be inside the object."""
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
    """Return the object, relation or subject in the first window where it occurs once, or None.

    If several items of a window occur once, the order is object, relation, subject.
    """
    for window in windows:
        for item in (triple.object, triple.relation, triple.subject):
            if has_askable_length(item, characters):
                positions = word_positions(window, item)
                if len(positions) == 1 and window.count(item) == 1:
                    return Usage(window, positions[0], item, where)
    return None
