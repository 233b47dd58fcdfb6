"""Word-sense questions from usages of words with their senses: which of two has the sense of a third?"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from merkhet.core import SLOT
from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.suites.chneval.questions.cloze_selection import places
from merkhet.suites.chneval.questions.question_rows import SEMANTIC, Gathered, SenseTriple, Usage
from merkhet.suites.chneval.questions.sentences import read_lines
from merkhet.suites.chneval.questions.text_anomalies import Counted, oddities

COLUMNS = ("word", "sense", "sentence")
"""The columns that a file of senses has; ``position``, ``language`` and ``form`` are optional."""


class _Tagged(NamedTuple):
    """A usage of a word with its sense."""

    language: str
    word: str
    sense: str
    usage: Usage

    @property
    def place(self) -> tuple[str, int]:
        return self.usage.sentence, self.usage.start


class _BadRowError(Exception):
    pass


def word_sense_triples(
    path: Path, *, seed: int, per_sense: int = 10, per_word: int = 50, language: str = "zh"
) -> Gathered:
    """Triples of usages from a table of (word, sense, sentence), .tsv or .csv, plain or with .gz.

    ``position`` is the character, from 0, where the word stands; it is needed where the word is there several times.
    ``form`` is what stands in the sentence where it is not the word itself ("banks" for bank), ``language`` that of the
    row. Base and answer have the same sense, the distractor another; their sentences differ. No usage is the base of
    two questions. The senses of a word take turns up to ``per_word`` questions, each up to ``per_sense``; answers and
    distractors are those used the least, by seed where equal. A sense with a single sentence is a distractor only. Rows
    that cannot be used are counted in the remarks by file and line. The order of the rows does not matter.
    """
    if per_sense < 1 or per_word < 1:
        raise InputError("per_sense and per_word are at least 1")
    remarked = Counted()
    rows = list(_rows(path, language, remarked))
    read = _consistent([row for row in rows if row is not None], remarked)
    by_word: dict[tuple[str, str], dict[str, list[_Tagged]]] = defaultdict(lambda: defaultdict(list))
    for one in read:
        by_word[one.language, one.word][one.sense].append(one)
    several = {name: senses for name, senses in by_word.items() if len(senses) > 1}
    triples: list[SenseTriple] = []
    for name, senses in sorted(several.items()):
        triples += _of_word(senses, derived_seed(seed, *name), per_sense, per_word)
    kept = [one for senses in several.values() for usages in senses.values() for one in usages]
    asked = {(usage.sentence, usage.start) for one in triples for usage in (one.base, one.answer, one.distractor)}
    for one in kept:
        if one.place in asked:
            for kind, characters in oddities(one.usage.sentence).items():
                remarked.add(kind, f"{one.usage.where}: {characters}")
    remarks = remarked.remarks()
    single = sorted(word for (_, word), senses in by_word.items() if len(senses) == 1)
    if single:
        shown = ", ".join(single[:5]) + (" and others" if len(single) > 5 else "")
        remarks.append(f"{len(single):,} {'word has' if len(single) == 1 else 'words have'} one sense only ({shown}).")
    filters: list[Mapping[str, Any]] = [
        {"filter": "usages that can be read", "task": SEMANTIC, "before": len(rows), "after": len(read)},
        {"filter": "words of several senses", "task": SEMANTIC, "before": len(read), "after": len(kept)},
        {
            "filter": "a base once, capped by sense and word",
            "task": SEMANTIC,
            "before": len(kept),
            "after": len(triples),
        },
    ]
    return Gathered(triples=triples, filters=filters, remarks=remarks)


def _rows(path: Path, language: str, remarked: Counted) -> Iterator[_Tagged | None]:
    """The rows of a table of senses, nothing for one that cannot be used; refuses a table without its columns."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; it should hold a table with the columns {', '.join(COLUMNS)}")
    name = path.name
    commas = ".csv" in path.suffixes[-2:]
    lines = (line for _, line in read_lines(path))
    # In a table with tabs a quotation mark is part of the sentence.
    reader = csv.reader(lines) if commas else csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    try:
        columns = [cell.strip().lower() for cell in next(reader, [])]
        missing = [column for column in COLUMNS if column not in columns]
        if missing:
            raise InputError(
                f"{path}, line 1: there is no column {', '.join(missing)}. A table of senses has the columns "
                f"{', '.join(COLUMNS)}, and may have position, form and language."
            )
        for cells in reader:
            if any(cell.strip() for cell in cells):
                where = f"{name}, line {reader.line_num}"
                try:
                    yield _tagged(dict(zip(columns, cells, strict=False)), where, language)
                except _BadRowError as error:
                    remarked.add(f"left out, for {error}", where)
                    yield None
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not a table of senses ({error})") from error


def _tagged(row: Mapping[str, str], where: str, language: str) -> _Tagged:
    word, sense = row.get("word", "").strip(), row.get("sense", "").strip()
    sentence = row.get("sentence", "")
    form = row.get("form", "").strip() or word
    given = row.get("position", "").strip()
    if not word or not sense or not sentence.strip():
        raise _BadRowError("a cell is empty")
    if SLOT in sentence:
        raise _BadRowError(f"the sentence holds the text {SLOT}")
    start = _placed(sentence, form, given)
    before = len(sentence) - len(sentence.lstrip())
    # What stands there may have a capital.
    usage = Usage(sentence.strip(), start - before, sentence[start : start + len(form)], where)
    return _Tagged(row.get("language", "").strip() or language, word, sense, usage)


def _placed(sentence: str, form: str, given: str) -> int:
    if given:
        if not given.isascii() or not given.isdigit():
            raise _BadRowError("the position is no number")
        start = int(given)
        if start + len(form) > len(sentence):
            raise _BadRowError("the position is outside the sentence")
        if sentence[start : start + len(form)].lower() != form.lower():
            raise _BadRowError("the word is not at the position")
        return start
    found = places(sentence, form, any_case=True)
    if not found:
        raise _BadRowError("the word is not in the sentence")
    if len(found) > 1:
        raise _BadRowError("the word is in the sentence several times, and there is no position")
    return found[0]


def _consistent(rows: Sequence[_Tagged], remarked: Counted) -> list[_Tagged]:
    """The usages once each, without those that have several senses."""
    by_place: dict[tuple[str, str, tuple[str, int]], list[_Tagged]] = defaultdict(list)
    for row in rows:
        by_place[row.language, row.word, row.place].append(row)
    found = []
    for same in by_place.values():
        if len({row.sense for row in same}) > 1:
            for row in same:
                remarked.add("left out, for the same usage has several senses", row.usage.where)
            continue
        found.append(same[0])
        for row in same[1:]:
            remarked.add("left out, for the same usage is there before", row.usage.where)
    return found


def _of_word(senses: Mapping[str, Sequence[_Tagged]], seed: int, per_sense: int, per_word: int) -> list[SenseTriple]:
    """The questions of a word: its senses take turns, each with its next base, until none has one or room for it."""

    def drawn(*parts: Any) -> int:
        return derived_seed(seed, *parts)

    bases = {
        sense: sorted(usages, key=lambda one: (drawn("base", *one.place), one.place), reverse=True)
        for sense, usages in senses.items()
    }
    turns = sorted(senses, key=lambda sense: (drawn("sense", sense), sense))
    as_answer: Counter[tuple[str, int]] = Counter()
    as_distractor: Counter[tuple[str, int]] = Counter()
    of_sense: Counter[str] = Counter()
    made: Counter[str] = Counter()
    triples: list[SenseTriple] = []
    while turns:
        for sense in list(turns):
            triple = None
            while bases[sense] and triple is None and made[sense] < per_sense and len(triples) < per_word:
                base = bases[sense].pop()
                answers = [one for one in senses[sense] if one.usage.sentence != base.usage.sentence]
                if not answers:
                    continue
                answer = min(answers, key=lambda one: (as_answer[one.place], drawn(*base.place, *one.place), one.place))
                said = {base.usage.sentence, answer.usage.sentence}
                others = [
                    one
                    for other, usages in senses.items()
                    for one in usages
                    if other != sense and one.usage.sentence not in said
                ]
                if not others:
                    continue
                other = min(
                    others,
                    key=lambda one: (
                        of_sense[one.sense],
                        as_distractor[one.place],
                        drawn(*base.place, *one.place),
                        one.place,
                    ),
                )
                as_answer[answer.place] += 1
                as_distractor[other.place] += 1
                of_sense[other.sense] += 1
                made[sense] += 1
                triple = SenseTriple(base.usage, answer.usage, other.usage, sense, base.language)
            if triple is None:
                turns.remove(sense)
            else:
                triples.append(triple)
    return triples
