"""Reader of ChnEval's published files: function words, word senses, commonsense and encyclopedia."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from merkhet.core import SLOT
from merkhet.core.text import counted, join_names
from merkhet.suites.chneval.questions.question_rows import (
    COMMONSENSE,
    ENCYCLOPEDIA,
    SYNTACTIC,
    Cloze,
    DraftQuestions,
    SenseTriple,
    Usage,
)
from merkhet.suites.chneval.questions.sentences import read_blocks
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter

CLASSES = {
    "conjunction.txt": "C",
    "adverb.txt": "D",
    "preposition.txt": "P",
    "auxiliary.txt": "U",
    "direction-noun.txt": "ND",
}
SENSES, PAIRS, FACTS = "semantic.txt", "commonsense.txt", "fact.txt"
FILES = (*(f"syntax/{name}" for name in CLASSES), SENSES, PAIRS, FACTS, *CLASSES)
"""Paths in a published folder. The files of function words are in the folder ``syntax``, or beside the other files."""


class _SkippedLineError(Exception):
    """Exception for a line that no question can be made from."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind)
        self.detail = detail


def read_published(path: Path, *, paper: bool = False) -> DraftQuestions:
    """Read all questions from a folder of published files, or from one file.

    Invalid lines are left out and reported in remarks with file and line. Examples are a position outside the sentence,
    a target that is not in the sentence, and a block of senses without exactly three lines. Sentences with anomalies
    (mixed scripts, full-width letters, emoji) are kept and reported in remarks.

    Args:
        paper: Whether to leave out facts in which no item is a single character, as the released code does. Otherwise
            such a fact gives a cloze for its first item that occurs once in the text.

    Raises:
        InputError: If a file is not UTF-8.
    """
    draft, skipped, anomalies = DraftQuestions(), RemarkCounter(), RemarkCounter()
    parsers: dict[str, Callable[[list[str], str, bool], Cloze]] = {PAIRS: _pair, FACTS: _fact}
    files = [path] if path.is_file() else [path / name for name in FILES if (path / name).is_file()]
    for file in files:
        blocks = read_blocks(file)
        for block in blocks if file.name == SENSES else ([line] for lines in blocks for line in lines):
            where = f"{file.name}, line {block[0][0]}"
            try:
                if file.name == SENSES:
                    triple = _triple(block, file.name)
                    usages = [triple.base, triple.answer, triple.distractor]
                    draft.triples.append(triple)
                else:
                    cloze = parsers.get(file.name, _function_word)(block[0][1].split("\t"), where, paper)
                    usages = [cloze.usage]
                    draft.clozes.append(cloze)
            except _SkippedLineError as error:
                skipped.skip(str(error), f"{where}: {error.detail}")
            else:
                for usage in usages:
                    anomalies.add_anomalies(usage.sentence, usage.where)
    if skipped:
        total = counted(len(skipped), "line that cannot be asked is", "lines that cannot be asked are")
        draft.remarks.append(f"{total} left out.")
    draft.remarks += skipped.remarks()
    draft.remarks += [*_repeated_remarks(draft), *_identical_remarks(draft), *anomalies.remarks()]
    return draft


def _function_word(cells: list[str], where: str, _paper: bool) -> Cloze:
    kind = CLASSES[where.partition(",")[0]]
    return Cloze(_at_position(cells, where), SYNTACTIC, domain=kind)


def _pair(cells: list[str], where: str, _paper: bool) -> Cloze:
    sentence, target = _check_cells(cells, "sentence", "target")
    return Cloze(_only_usage(sentence, target, where), COMMONSENSE)


def _fact(cells: list[str], where: str, paper: bool) -> Cloze:
    entity, relation, attribute, text = _check_cells(cells, "entity", "relation", "attribute", "text")
    items = (attribute, relation, entity)
    target = next((item for item in items if len(item) == 1), None)
    if target is None and not paper:
        target = next((item for item in items if item and text.count(item) == 1), None)
    if target is None:
        raise _SkippedLineError("no item of the fact can be asked for", " / ".join(cells[:3]))
    return Cloze(_only_usage(text, target, where), ENCYCLOPEDIA, fact=(entity, relation, attribute))


def _check_cells(cells: list[str], *names: str) -> list[str]:
    if len(cells) != len(names):
        raise _SkippedLineError(f"a line must have {join_names(names)}, with tabs between", counted(len(cells), "cell"))
    return cells


def _at_position(cells: list[str], where: str) -> Usage:
    sentence, cell = _check_cells(cells, "sentence", "position")
    _refuse_slot(sentence)
    if not cell.strip().isdecimal():
        raise _SkippedLineError("the position is not an integer", repr(cell))
    # Python refuses to parse thousands of digits; a position of 20 digits is outside every sentence anyway.
    position = int(cell) if len(cell.strip()) < 20 else sys.maxsize
    if position >= len(sentence):
        start = cell.strip()[:20]
        raise _SkippedLineError("the position is outside the sentence", f"{start} of {len(sentence)} characters")
    word = sentence[position]
    if unicodedata.category(word)[0] not in "LMN" and not _is_astral(word):
        raise _SkippedLineError("there is no word at the position", f"{word!r} at {position}")
    return Usage(sentence, position, word, where)


def _only_usage(sentence: str, target: str, where: str) -> Usage:
    _refuse_slot(sentence)
    count = sentence.count(target) if target.strip() else 0
    if count != 1:
        kind = "the target is not in the sentence" if not count else "the target is in the sentence several times"
        raise _SkippedLineError(kind, f"{target!r} in {sentence[:24]}")
    return Usage(sentence, sentence.index(target), target, where)


def _refuse_slot(sentence: str) -> None:
    if SLOT in sentence:
        raise _SkippedLineError(f"the sentence contains the text {SLOT}", sentence[:24])


def _triple(block: list[tuple[int, str]], name: str) -> SenseTriple:
    if len(block) != 3:
        raise _SkippedLineError(
            "a block must have three lines (base, answer, distractor) without an empty line",
            counted(len(block), "line"),
        )
    usages = [_at_position(line.split("\t"), f"{name}, line {number}") for number, line in block]
    words = [usage.word for usage in usages]
    if len(set(words)) > 1:
        has_astral = any(_is_astral(character) for usage in usages for character in usage.sentence[: usage.start])
        hint = ": are positions counted in UTF-16 units?" if has_astral else ""
        raise _SkippedLineError("the three words of a block differ", "".join(words) + hint)
    if usages[1].prompt == usages[2].prompt:
        raise _SkippedLineError("answer and distractor of a block are equal", usages[1].sentence[:24])
    base, answer, distractor = usages
    return SenseTriple(base, answer, distractor)


def _repeated_remarks(draft: DraftQuestions) -> list[str]:
    """Return a remark on duplicate lines, or an empty list."""
    counts = Counter((cloze.task, cloze.domain, cloze.usage.prompt, cloze.usage.word) for cloze in draft.clozes)
    repeats = sum(count - 1 for count in counts.values())
    if not repeats:
        return []
    (*_, prompt, word), times = counts.most_common(1)[0]
    lines = counted(repeats, "line repeats another one", "lines repeat others")
    return [
        f"{lines} ({prompt.replace(SLOT, word)!r} occurs {counted(times, 'time')}): all are asked as published; "
        "duplicates form one cluster in the intervals."
    ]


def _identical_remarks(draft: DraftQuestions) -> list[str]:
    """Return a remark on blocks of senses whose base and answer are identical, or an empty list."""
    same = [triple.base.where for triple in draft.triples if triple.base.prompt == triple.answer.prompt]
    if not same:
        return []
    blocks = counted(len(same), "block has the same", "blocks have the same")
    return [f"{blocks} base and answer, so every model ranks the answer first ({same[0]}): asked as published."]


def _is_astral(character: str) -> bool:
    return ord(character) > 0xFFFF
