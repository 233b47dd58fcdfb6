"""Reader of ChnEval's published files: function words, word senses, commonsense and encyclopedia."""

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
    DraftQuestions,
    SenseTriple,
    Usage,
)
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter, find_anomalies

CLASSES = {
    "conjunction.txt": "C",
    "adverb.txt": "D",
    "preposition.txt": "P",
    "auxiliary.txt": "U",
    "direction-noun.txt": "ND",
}
SENSES, PAIRS, FACTS = "semantic.txt", "commonsense.txt", "fact.txt"
FILES = (*(f"syntax/{name}" for name in CLASSES), SENSES, PAIRS, FACTS, *CLASSES)
"""Files of a published folder; those of syntax are in a folder of their own, or beside the others."""


@dataclass
class _Contents:
    """Contents of the files read so far."""

    paper: bool
    """Whether to leave out what the released code leaves out."""
    draft: DraftQuestions = field(default_factory=DraftQuestions)
    skipped: RemarkCounter = field(default_factory=RemarkCounter)
    """Lines that cannot be questions."""
    anomalies: RemarkCounter = field(default_factory=RemarkCounter)
    """Anomalies of sentences that are asked all the same."""

    def add_anomalies(self, sentence: str, where: str) -> None:
        """Note the anomalies of a sentence that is asked."""
        for kind, characters in find_anomalies(sentence).items():
            self.anomalies.add(kind, f"{where}: {characters}")


class _SkippedLineError(Exception):
    """Raised for a line that cannot be a question."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind)
        self.detail = detail


def read_published(path: Path, *, paper: bool = False) -> DraftQuestions:
    """Read all questions of a folder of published files, or of one file.

    Lines that cannot be questions are left out and remarked with file and line: a position outside its sentence, a
    target that is not in it, a block of senses without exactly three lines. Sentences with anomalies (mixed scripts,
    full-width letters, emoji) are kept and remarked.

    Args:
        paper: Whether to leave out a fact without an item of one character, as the released code does. Otherwise its
            first item that occurs once is asked for.

    Raises:
        InputError: If a file is not UTF-8.
    """
    contents = _Contents(paper)
    files = [path] if path.is_file() else [path / name for name in FILES if (path / name).is_file()]
    for file in files:
        if file.name == SENSES:
            _read_senses(file, contents)
        else:
            _read_clozes(file, contents)
    draft = contents.draft
    draft.remarks = [
        *_skipped_remarks(len(contents.skipped)),
        *contents.skipped.remarks(),
        *_repeated_remarks(draft),
        *_identical_remarks(draft),
        *contents.anomalies.remarks(),
    ]
    return draft


def _read_clozes(file: Path, contents: _Contents) -> None:
    parsers: dict[str, Callable[[list[str], str, bool], Cloze]] = {PAIRS: _pair, FACTS: _fact}
    parse_cloze = parsers.get(file.name, _function_word)
    for number, line in _lines(file):
        where = f"{file.name}, line {number}"
        if not line.strip():
            continue
        try:
            cloze = parse_cloze(line.split("\t"), where, contents.paper)
        except _SkippedLineError as error:
            contents.skipped.add(str(error), f"{where}: {error.detail}")
            continue
        contents.add_anomalies(cloze.usage.sentence, where)
        contents.draft.clozes.append(cloze)


def _function_word(cells: list[str], where: str, _paper: bool) -> Cloze:
    kind = CLASSES[where.partition(",")[0]]
    return Cloze(_at_position(cells, where), SYNTACTIC, domain=kind)


def _pair(cells: list[str], where: str, _paper: bool) -> Cloze:
    if len(cells) != 2:
        raise _SkippedLineError(
            "a sentence and its target should stand there, with a tab between", f"{len(cells)} cells"
        )
    return Cloze(_only_usage(cells[0], cells[1], where), COMMONSENSE)


def _fact(cells: list[str], where: str, paper: bool) -> Cloze:
    if len(cells) != 4:
        raise _SkippedLineError(
            "entity, relation, attribute and text should stand there, with tabs between", f"{len(cells)} cells"
        )
    entity, relation, attribute, text = cells
    items = (attribute, relation, entity)
    target = next((item for item in items if len(item) == 1), None)
    if target is None and not paper:
        target = next((item for item in items if item and text.count(item) == 1), None)
    if target is None:
        raise _SkippedLineError("no item of the fact can be asked for", " / ".join(cells[:3]))
    return Cloze(_only_usage(text, target, where), ENCYCLOPEDIA, fact=(entity, relation, attribute))


def _at_position(cells: list[str], where: str) -> Usage:
    if len(cells) != 2:
        raise _SkippedLineError(
            "a sentence and a position should stand there, with a tab between", f"{len(cells)} cells"
        )
    sentence, cell = cells
    _refuse_slot(sentence)
    if not cell.strip().isdecimal():
        raise _SkippedLineError("the position is not a whole number", repr(cell))
    # Python refuses to parse numbers of thousands of digits. No sentence has a position of twenty.
    position = int(cell) if len(cell.strip()) < 20 else sys.maxsize
    if position >= len(sentence):
        start = cell.strip()[:20]
        raise _SkippedLineError("the position lies outside its sentence", f"{start} of {len(sentence)} characters")
    word = sentence[position]
    if unicodedata.category(word)[0] not in "LMN" and not _is_astral(word):
        raise _SkippedLineError("no word stands at the position", f"{word!r} at {position}")
    return Usage(sentence, position, word, where)


def _only_usage(sentence: str, target: str, where: str) -> Usage:
    _refuse_slot(sentence)
    count = sentence.count(target) if target.strip() else 0
    if count != 1:
        kind = "the target is not in its sentence" if not count else "the target stands several times in its sentence"
        raise _SkippedLineError(kind, f"{target!r} in {sentence[:24]}")
    return Usage(sentence, sentence.index(target), target, where)


def _refuse_slot(sentence: str) -> None:
    if SLOT in sentence:
        raise _SkippedLineError(f"the sentence holds {SLOT} itself", sentence[:24])


def _read_senses(file: Path, contents: _Contents) -> None:
    for block in _blocks(file):
        where = f"{file.name}, line {block[0][0]}"
        try:
            triple = _triple(block, file.name)
        except _SkippedLineError as error:
            contents.skipped.add(str(error), f"{where}: {error.detail}")
            continue
        for usage in (triple.base, triple.answer, triple.distractor):
            contents.add_anomalies(usage.sentence, usage.where)
        contents.draft.triples.append(triple)


def _blocks(file: Path) -> Iterator[list[tuple[int, str]]]:
    """Yield blocks of consecutive non-empty lines, with line numbers."""
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
        raise _SkippedLineError(
            "a block should have three lines (base, answer, distractor) and no empty line within it",
            f"{len(block)} {'line' if len(block) == 1 else 'lines'}",
        )
    usages = [_at_position(line.split("\t"), f"{name}, line {number}") for number, line in block]
    words = [usage.word for usage in usages]
    if len(set(words)) > 1:
        has_astral = any(_is_astral(character) for usage in usages for character in usage.sentence[: usage.start])
        hint = ": are positions counted in UTF-16 units?" if has_astral else ""
        raise _SkippedLineError(
            "the three words of a block differ, so that a target is not at its position", "".join(words) + hint
        )
    if usages[1].prompt == usages[2].prompt:
        raise _SkippedLineError("answer and distractor of a block are the same", usages[1].sentence[:24])
    base, answer, distractor = usages
    return SenseTriple(base, answer, distractor)


def _skipped_remarks(count: int) -> list[str]:
    lines = "1 line that cannot be asked is" if count == 1 else f"{count:,} lines that cannot be asked are"
    return [f"{lines} left out."] if count else []


def _repeated_remarks(draft: DraftQuestions) -> list[str]:
    """Remark on duplicate lines."""
    counts = Counter((cloze.task, cloze.domain, cloze.usage.prompt, cloze.usage.word) for cloze in draft.clozes)
    repeats = sum(count - 1 for count in counts.values())
    if not repeats:
        return []
    (*_, prompt, word), times = counts.most_common(1)[0]
    return [
        f"{repeats:,} {'line repeats another one' if repeats == 1 else 'lines repeat others'} "
        f"({prompt.replace(SLOT, word)!r} is there {times} times): all are asked as published, and stand and fall "
        "together in the intervals."
    ]


def _identical_remarks(draft: DraftQuestions) -> list[str]:
    """Remark on blocks whose base and answer are identical."""
    same = [triple.base.where for triple in draft.triples if triple.base.prompt == triple.answer.prompt]
    if not same:
        return []
    blocks = "1 block has" if len(same) == 1 else f"{len(same):,} blocks have"
    return [f"{blocks} the base as its own answer, which every model finds ({same[0]}): asked as published."]


def _is_astral(character: str) -> bool:
    return ord(character) > 0xFFFF


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a file; separators other than line ends are part of a sentence."""
    try:
        content = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = file.read_bytes()[: error.start].count(b"\n") + 1
        raise InputError(f"{file}, line {number}: the text is not UTF-8; fetch the file anew") from error
    for number, line in enumerate(content.split("\n"), 1):
        yield number, line.removesuffix("\r")
