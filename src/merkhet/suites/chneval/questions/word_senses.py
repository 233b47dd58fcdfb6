"""Word-sense questions: which of two usages of a word has the same sense as a third usage?"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from merkhet.core import SLOT
from merkhet.core.compressed_files import format_suffix
from merkhet.core.delimited_text import find_delimiter
from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.core.text import counted, join_some
from merkhet.questions.losses import LossCounter
from merkhet.suites.chneval.questions.cloze_selection import filter_rows, word_positions
from merkhet.suites.chneval.questions.question_rows import SEMANTIC, DraftQuestions, SenseTriple, Usage
from merkhet.suites.chneval.questions.sentences import read_lines
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter

COLUMNS = ("word", "sense", "sentence")
"""Required columns of a table of senses; ``position``, ``language`` and ``form`` are optional."""


class _TaggedUsage(NamedTuple):
    """Usage of a word, tagged with the sense of the word."""

    language: str
    word: str
    sense: str
    usage: Usage

    @property
    def position(self) -> tuple[str, int]:
        return self.usage.sentence, self.usage.start


class _BadRowError(Exception):
    pass


def word_sense_triples(
    path: Path, *, seed: int, per_sense: int = 10, per_word: int = 50, language: str = "zh"
) -> DraftQuestions:
    """Build word-sense triples from a .tsv or .csv table of words, senses and sentences, compressed or not.

    The table has three optional columns. ``position`` is the index of the word's first character; it is required if the
    word occurs several times. ``form`` is the word as written in the sentence ("banks" for bank). ``language`` is the
    language of the sentence.

    Base and answer have the same sense, and the distractor has another sense. The three sentences differ. Each usage is
    the base of at most one question. The senses of a word take turns. Answers and distractors are the least used usages
    so far; the seed breaks ties. A sense with a single sentence only provides distractors. Unusable rows are reported
    in remarks with file and line. The order of the rows has no effect.

    Args:
        per_sense, per_word: Maximum number of questions for each sense, and for each word.
        language: Language of rows without a language.
    """
    if per_sense < 1 or per_word < 1:
        raise InputError(f"per_sense and per_word must be at least 1, got {per_sense} and {per_word}")
    counter = RemarkCounter()
    rows = list(_read_rows(path, language, counter))
    readable = _consistent_usages([row for row in rows if row is not None], counter)
    by_word: dict[tuple[str, str], dict[str, list[_TaggedUsage]]] = defaultdict(lambda: defaultdict(list))
    for tagged in readable:
        by_word[tagged.language, tagged.word][tagged.sense].append(tagged)
    polysemous = {name: senses for name, senses in by_word.items() if len(senses) > 1}
    triples: list[SenseTriple] = []
    for name, senses in sorted(polysemous.items()):
        triples += _word_triples(senses, derived_seed(seed, *name), per_sense, per_word)
    polysemous_usages = [tagged for senses in polysemous.values() for usages in senses.values() for tagged in usages]
    asked = {
        (usage.sentence, usage.start) for triple in triples for usage in (triple.base, triple.answer, triple.distractor)
    }
    for tagged in polysemous_usages:
        if tagged.position in asked:
            counter.add_anomalies(tagged.usage.sentence, tagged.usage.where)
    remarks = counter.remarks()
    single = sorted(word for (_, word), senses in by_word.items() if len(senses) == 1)
    if single:
        words = counted(len(single), "word has", "words have")
        remarks.append(f"{words} one sense only ({join_some(single, 5)}).")
    counts = {
        "rows": len(rows),
        "readable usages": len(readable),
        "words of several senses": len(polysemous_usages),
        "one question a base, capped by sense and word": len(triples),
    }
    losses = LossCounter(SEMANTIC, "usages of words")
    losses.add_many("the row cannot be used (see Remarks)", len(rows) - len(readable))
    for (_, word), senses in by_word.items():
        for usages in senses.values():
            is_single = len({tagged.usage.sentence for tagged in usages}) == 1
            for tagged in usages:
                if len(senses) == 1:
                    losses.add("the word has one sense only", None, word)
                elif tagged.position not in asked and is_single:
                    losses.add("the sense has one sentence only", None, word)
                elif tagged.position not in asked:
                    losses.add("beyond the largest number of questions per sense or word", None, word, intended=True)
    return DraftQuestions(
        triples=triples,
        filters=filter_rows(SEMANTIC, counts),
        accounts=[losses.account(len(rows), sum(tagged.position in asked for tagged in readable))],
        remarks=remarks,
    )


def _read_rows(path: Path, language: str, counter: RemarkCounter) -> Iterator[_TaggedUsage | None]:
    """Yield the usage in each row of a table of senses, or None for a row that cannot be used."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; name a table with the columns {', '.join(COLUMNS)}")
    commas = format_suffix(path) == ".csv"
    lines = (line for _, line in read_lines(path))
    header = next(lines, "")
    delimiter = find_delimiter(
        *(header, f"{path}, line 1", COLUMNS), default="," if commas else "\t", quoted=commas, remedy="Rename a column."
    )
    # In a .tsv file a quotation mark is part of the sentence.
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if commas else csv.QUOTE_NONE
    reader = csv.reader(chain([header], lines), delimiter=delimiter, quoting=quoting)
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
                where = f"{path.name}, line {reader.line_num}"
                try:
                    yield _parse_row(dict(zip(columns, cells, strict=False)), where, language)
                except _BadRowError as error:
                    counter.skip(str(error), where)
                    yield None
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not a table of senses ({error})") from error


def _parse_row(row: Mapping[str, str], where: str, language: str) -> _TaggedUsage:
    word, sense = row.get("word", "").strip(), row.get("sense", "").strip()
    sentence = row.get("sentence", "")
    form = row.get("form", "").strip() or word
    position = row.get("position", "").strip()
    if not word or not sense or not sentence.strip():
        raise _BadRowError("a cell is empty")
    if SLOT in sentence:
        raise _BadRowError(f"the sentence contains the text {SLOT}")
    start = _find_start(sentence, form, position)
    indent = len(sentence) - len(sentence.lstrip())
    # The sentence may spell the form with a capital.
    usage = Usage(sentence.strip(), start - indent, sentence[start : start + len(form)], where)
    return _TaggedUsage(row.get("language", "").strip() or language, word, sense, usage)


def _find_start(sentence: str, form: str, position: str) -> int:
    if position:
        if not position.isascii() or not position.isdigit():
            raise _BadRowError("the position is not a number")
        # Python converts no number of thousands of digits.
        start = int(position) if len(position) < 10 else len(sentence)
        if start + len(form) > len(sentence):
            raise _BadRowError("the position is outside the sentence")
        if sentence[start : start + len(form)].lower() != form.lower():
            raise _BadRowError("the word is not at the position")
        return start
    starts = word_positions(sentence, form, ignore_case=True)
    if not starts:
        raise _BadRowError("the word is not in the sentence")
    if len(starts) > 1:
        raise _BadRowError("the word is in the sentence several times; add its position")
    return starts[0]


def _consistent_usages(rows: Sequence[_TaggedUsage], counter: RemarkCounter) -> list[_TaggedUsage]:
    """Drop duplicate usages, and usages that are tagged with several senses."""
    by_position: dict[tuple[str, str, tuple[str, int]], list[_TaggedUsage]] = defaultdict(list)
    for row in rows:
        by_position[row.language, row.word, row.position].append(row)
    usages = []
    for duplicates in by_position.values():
        if len({row.sense for row in duplicates}) > 1:
            for row in duplicates:
                counter.skip("the usage has several senses", row.usage.where)
            continue
        usages.append(duplicates[0])
        for row in duplicates[1:]:
            counter.skip("the usage is a duplicate", row.usage.where)
    return usages


def _word_triples(
    senses: Mapping[str, Sequence[_TaggedUsage]], seed: int, per_sense: int, per_word: int
) -> list[SenseTriple]:
    """Make the questions of a word.

    The senses of the word take turns in providing a base, until all senses are exhausted or capped.
    """

    def order(*parts: Any) -> int:
        return derived_seed(seed, *parts)

    bases = {
        sense: sorted(usages, key=lambda usage: (order("base", *usage.position), usage.position), reverse=True)
        for sense, usages in senses.items()
    }
    turns = sorted(senses, key=lambda sense: (order("sense", sense), sense))
    answer_counts: Counter[tuple[str, int]] = Counter()
    distractor_counts: Counter[tuple[str, int]] = Counter()
    distractor_senses: Counter[str] = Counter()

    def next_triple(sense: str) -> SenseTriple | None:
        """Pop bases of the sense until a base has an answer and a distractor in other sentences; None if none has."""
        while bases[sense]:
            base = bases[sense].pop()
            answer = min(
                (usage for usage in senses[sense] if usage.usage.sentence != base.usage.sentence),
                key=lambda usage: (
                    answer_counts[usage.position],
                    order(*base.position, *usage.position),
                    usage.position,
                ),
                default=None,
            )
            if answer is None:
                continue
            used = {base.usage.sentence, answer.usage.sentence}
            others = (usage for other, usages in senses.items() if other != sense for usage in usages)
            distractor = min(
                (usage for usage in others if usage.usage.sentence not in used),
                key=lambda usage: (
                    distractor_senses[usage.sense],
                    distractor_counts[usage.position],
                    order(*base.position, *usage.position),
                    usage.position,
                ),
                default=None,
            )
            if distractor is not None:
                answer_counts[answer.position] += 1
                distractor_counts[distractor.position] += 1
                distractor_senses[distractor.sense] += 1
                return SenseTriple(base.usage, answer.usage, distractor.usage, sense, base.language)
        return None

    question_counts: Counter[str] = Counter()
    triples: list[SenseTriple] = []
    while turns:
        for sense in list(turns):
            is_capped = question_counts[sense] >= per_sense or len(triples) >= per_word
            triple = None if is_capped else next_triple(sense)
            if triple is None:
                turns.remove(sense)
            else:
                question_counts[sense] += 1
                triples.append(triple)
    return triples
