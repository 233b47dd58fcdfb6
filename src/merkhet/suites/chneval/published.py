"""ChnEval's published files: function words, word senses, commonsense and encyclopedia as their authors give them."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from merkhet.core import SLOT
from merkhet.core.errors import InputError
from merkhet.suites.chneval.questions.question_rows import (
    COMMONSENSE,
    ENCYCLOPEDIA,
    SYNTACTIC,
    Cloze,
    Gathered,
    SenseTriple,
    Usage,
)
from merkhet.suites.chneval.questions.text_anomalies import Counted, oddities

CLASSES = {
    "conjunction.txt": "C",
    "adverb.txt": "D",
    "preposition.txt": "P",
    "auxiliary.txt": "U",
    "direction-noun.txt": "ND",
}
SENSES, PAIRS, FACTS = "semantic.txt", "commonsense.txt", "fact.txt"
FILES = (*(f"syntax/{name}" for name in CLASSES), SENSES, PAIRS, FACTS, *CLASSES)
"""What there may be in a folder of published files; those of syntax stand in a folder of their own, or beside."""


@dataclass
class _Read:
    """What has been read so far, what was left out and why, and what is odd in what was kept."""

    paper: bool
    gathered: Gathered = field(default_factory=Gathered)
    left_out: Counted = field(default_factory=Counted)
    odd: Counted = field(default_factory=Counted)

    def look_at(self, sentence: str, where: str) -> None:
        """Remark what is odd in a sentence that is kept."""
        for kind, characters in oddities(sentence).items():
            self.odd.add(kind, f"{where}: {characters}")


class _LeftOutError(Exception):
    """A line cannot be a question: what kind of fault it has, and what is there."""

    def __init__(self, kind: str, found: str) -> None:
        super().__init__(kind)
        self.found = found


def read_published(place: Path, *, paper: bool = False) -> Gathered:
    """All questions of a folder of published files, or of one of them.

    Lines that cannot be questions are left out and remarked with file and line: a position outside its sentence, a
    target that is not there, a block of senses that has not three lines. What is merely odd (mixed scripts, full-width
    letters, emoji) is kept and remarked. Where no item of a fact is one character long, the first that occurs once is
    asked for; with ``paper`` such a fact is left out.
    """
    read = _Read(paper)
    files = [place] if place.is_file() else [place / name for name in FILES if (place / name).is_file()]
    for file in files:
        if file.name == SENSES:
            _read_senses(file, read)
        else:
            _read_clozes(file, read)
    gathered = read.gathered
    gathered.remarks = [
        *_told(len(read.left_out)),
        *read.left_out.remarks(),
        *_repeated(gathered),
        *_given_away(gathered),
        *read.odd.remarks(),
    ]
    return gathered


def _read_clozes(file: Path, read: _Read) -> None:
    cloze_of: Callable[[list[str], str, bool], Cloze] = {PAIRS: _pair, FACTS: _fact}.get(file.name, _function_word)
    for number, line in _lines(file):
        where = f"{file.name}, line {number}"
        if not line.strip():
            continue
        try:
            cloze = cloze_of(line.split("\t"), where, read.paper)
        except _LeftOutError as fault:
            read.left_out.add(str(fault), f"{where}: {fault.found}")
            continue
        read.look_at(cloze.usage.sentence, where)
        read.gathered.clozes.append(cloze)


def _function_word(cells: list[str], where: str, _paper: bool) -> Cloze:
    kind = CLASSES[where.partition(",")[0]]
    return Cloze(_at_position(cells, where), SYNTACTIC, domain=kind)


def _pair(cells: list[str], where: str, _paper: bool) -> Cloze:
    if len(cells) != 2:
        raise _LeftOutError("a sentence and its target should stand there, with a tab between", f"{len(cells)} cells")
    return Cloze(_only_usage(cells[0], cells[1], where), COMMONSENSE)


def _fact(cells: list[str], where: str, paper: bool) -> Cloze:
    if len(cells) != 4:
        raise _LeftOutError(
            "entity, relation, attribute and text should stand there, with tabs between", f"{len(cells)} cells"
        )
    entity, relation, attribute, text = cells
    items = (attribute, relation, entity)
    target = next((item for item in items if len(item) == 1), None)
    if target is None and not paper:
        target = next((item for item in items if item and text.count(item) == 1), None)
    if target is None:
        raise _LeftOutError("no item of the fact can be asked for", " / ".join(cells[:3]))
    return Cloze(_only_usage(text, target, where), ENCYCLOPEDIA, fact=(entity, relation, attribute))


def _at_position(cells: list[str], where: str) -> Usage:
    if len(cells) != 2:
        raise _LeftOutError("a sentence and a position should stand there, with a tab between", f"{len(cells)} cells")
    sentence, given = cells
    _refuse_slot(sentence)
    if not given.strip().isdecimal():
        raise _LeftOutError("the position is not a whole number", repr(given))
    # No sentence is so long that its positions have twenty digits; Python reads no number of thousands of them.
    position = int(given) if len(given.strip()) < 20 else sys.maxsize
    if position >= len(sentence):
        shown = given.strip()[:20]
        raise _LeftOutError("the position lies outside its sentence", f"{shown} of {len(sentence)} characters")
    word = sentence[position]
    if unicodedata.category(word)[0] not in "LMN" and not _is_beyond(word):
        raise _LeftOutError("no word stands at the position", f"{word!r} at {position}")
    return Usage(sentence, position, word, where)


def _only_usage(sentence: str, target: str, where: str) -> Usage:
    _refuse_slot(sentence)
    count = sentence.count(target) if target.strip() else 0
    if count != 1:
        kind = "the target is not in its sentence" if not count else "the target stands several times in its sentence"
        raise _LeftOutError(kind, f"{target!r} in {sentence[:24]}")
    return Usage(sentence, sentence.index(target), target, where)


def _refuse_slot(sentence: str) -> None:
    if SLOT in sentence:
        raise _LeftOutError(f"the sentence holds {SLOT} itself", sentence[:24])


def _read_senses(file: Path, read: _Read) -> None:
    for block in _blocks(file):
        where = f"{file.name}, line {block[0][0]}"
        try:
            triple = _triple(block, file.name)
        except _LeftOutError as fault:
            read.left_out.add(str(fault), f"{where}: {fault.found}")
            continue
        for usage in (triple.base, triple.answer, triple.distractor):
            read.look_at(usage.sentence, usage.where)
        read.gathered.triples.append(triple)


def _blocks(file: Path) -> Iterator[list[tuple[int, str]]]:
    """Lines that follow one another without an empty line between, with their numbers."""
    block: list[tuple[int, str]] = []
    for number, line in _lines(file):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _triple(block: list[tuple[int, str]], name: str) -> SenseTriple:
    if len(block) != 3:
        raise _LeftOutError(
            "a block should have three lines (base, answer, distractor) and no empty line within it",
            f"{len(block)} {'line' if len(block) == 1 else 'lines'}",
        )
    usages = [_at_position(line.split("\t"), f"{name}, line {number}") for number, line in block]
    words = [usage.word for usage in usages]
    if len(set(words)) > 1:
        beyond = any(_is_beyond(character) for usage in usages for character in usage.sentence[: usage.start])
        hint = ": are positions counted in UTF-16 units?" if beyond else ""
        raise _LeftOutError(
            "the three words of a block differ, so that a target is not at its position", "".join(words) + hint
        )
    if usages[1].prompt == usages[2].prompt:
        raise _LeftOutError("answer and distractor of a block are the same", usages[1].sentence[:24])
    base, answer, distractor = usages
    return SenseTriple(base, answer, distractor)


def _told(left_out: int) -> list[str]:
    """How much was left out in all, if anything was."""
    lines = "1 line that cannot be asked is" if left_out == 1 else f"{left_out:,} lines that cannot be asked are"
    return [f"{lines} left out."] if left_out else []


def _repeated(gathered: Gathered) -> list[str]:
    """What is there several times, as a remark."""
    counts = Counter((cloze.task, cloze.domain, cloze.usage.prompt, cloze.usage.word) for cloze in gathered.clozes)
    more = sum(count - 1 for count in counts.values())
    if not more:
        return []
    (*_, prompt, word), times = counts.most_common(1)[0]
    return [
        f"{more:,} {'line repeats another one' if more == 1 else 'lines repeat others'} "
        f"({prompt.replace(SLOT, word)!r} is there {times} times): all are asked as published, and stand and fall "
        "together in the intervals."
    ]


def _given_away(gathered: Gathered) -> list[str]:
    """Blocks in which nothing is to be compared, as a remark."""
    same = [triple.base.where for triple in gathered.triples if triple.base.prompt == triple.answer.prompt]
    if not same:
        return []
    blocks = "1 block has" if len(same) == 1 else f"{len(same):,} blocks have"
    return [f"{blocks} the base as its own answer, which every model finds ({same[0]}): asked as published."]


def _is_beyond(character: str) -> bool:
    return ord(character) > 0xFFFF


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file by their numbers; other separators than line ends are part of a sentence."""
    try:
        content = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = file.read_bytes()[: error.start].count(b"\n") + 1
        raise InputError(f"{file}, line {number}: the text is not UTF-8; fetch the file anew") from error
    for number, line in enumerate(content.split("\n"), 1):
        yield number, line.removesuffix("\r")
