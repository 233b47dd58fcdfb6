"""Source for WordNet database files: synsets become entities, pointers become facts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from merkhet.core.errors import InputError
from merkhet.knowledge.chunk import Chunk, ChunkBuilder, Predicate
from merkhet.knowledge.source_reader import ROWS_IN_CHUNK, ReadContext, read_lines

_PARTS_OF_SPEECH = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_SYNSET_TYPES = {"n": "n", "v": "v", "a": "as", "r": "r"}
_PREDICATES = {
    "@": Predicate("is-a", "is a kind of"),
    "@i": Predicate("instance-of", "is an instance of"),
    "#p": Predicate("part-of", "is a part of"),
    "#m": Predicate("member-of", "is a member of"),
    "#s": Predicate("substance-of", "is a substance of"),
    "!": Predicate("antonym", "is the opposite of", symmetric=True),
    "*": Predicate("entails", "entails"),
    ">": Predicate("causes", "causes"),
    "&": Predicate("similar-to", "is similar to", symmetric=True),
    ";c": Predicate("topic", "belongs to the topic"),
    ";r": Predicate("region", "belongs to the region"),
    ";u": Predicate("usage", "is used as"),
}
# WordNet stores these in both directions; only one of them is read.
_INVERSE_POINTERS = ("~", "~i", "%p", "%m", "%s", "-c", "-r", "-u")
_SKIPPED_POINTERS = {
    **dict.fromkeys(_INVERSE_POINTERS, "inverse pointers"),
    "+": "derivationally related forms",
    "\\": "pertainyms and adverbs' adjectives",
    "^": "see also",
    "$": "verb groups",
    "=": "attributes",
    "<": "participles",
}
_NOUNS = """
    Tops act animal artifact attribute body cognition communication event feeling food group location motive object
    person phenomenon plant possession process quantity relation shape state substance time
"""
_VERBS = """
    body change cognition communication competition consumption contact creation emotion motion perception possession
    social stative weather
"""
LEXICOGRAPHER_FILES = (
    *("adj.all", "adj.pert", "adv.all"),
    *(f"noun.{name}" for name in _NOUNS.split()),
    *(f"verb.{name}" for name in _VERBS.split()),
    "adj.ppl",
)
_SYNTACTIC_MARKER = re.compile(r"\((?:a|p|ip)\)$")


def read_wordnet(folder: Path, context: ReadContext) -> Iterator[Chunk]:
    """Yield the synsets and relations of WordNet 3.0 or 3.1: the files data.noun, data.verb, data.adj and data.adv.

    The id of a synset consists of its offset, which differs between versions, and its part of speech
    (``wordnet:02124272-n``). The first lemma is the label, the other lemmas are aliases. The kind of a synset is its
    lexicographer file (``noun.animal``).

    Facts are is-a, instance-of, part-of, member-of, substance-of, antonym, entails, causes, similar-to, topic, region
    and usage. Antonyms of words become antonyms of their synsets. Inverse pointers, derivations, attributes, verb
    groups and see-also pointers are counted as skipped. Glosses are not read. A malformed line is a bad row. There are
    no options.
    """
    context.check_options()
    files = {
        folder / f"data.{name}": letter
        for name, letter in _PARTS_OF_SPEECH.items()
        if (folder / f"data.{name}").is_file()
    }
    if not files:
        raise InputError(f"{folder} holds no WordNet; it needs data.noun, data.verb, data.adj and data.adv")
    yield Chunk(
        predicates={
            predicate.name: predicate for predicate in _PREDICATES.values() if context.wants_predicate(predicate.name)
        },
    )
    builder = ChunkBuilder("wordnet")
    for path, letter in files.items():
        for number, line in read_lines(path, context):
            if line and not line.startswith("  "):
                try:
                    _add_synset(builder, context, f"{path}:{number}", line, letter)
                except (ValueError, IndexError) as error:
                    context.reject(f"{path}:{number}", f"not a line of the WordNet database ({error})")
            if len(builder) >= ROWS_IN_CHUNK:
                yield builder.flush()
    if len(builder):
        yield builder.flush()


def _add_synset(builder: ChunkBuilder, context: ReadContext, where: str, line: str, letter: str) -> None:
    """Parse a line of a data file, and add its synset and facts.

    The fields of a line are offset, lexicographer file, synset type, words (count in hexadecimal), pointers, verb
    frames and gloss.
    """
    head, bar, _ = line.partition("| ")
    if not bar:
        raise ValueError("there is no gloss; the line ends early")
    fields = head.split()
    words_end = 4 + 2 * int(fields[3], 16)
    pointers_end = words_end + 1 + 4 * int(fields[words_end])
    if pointers_end > len(fields) or words_end == 4 or fields[2] not in _SYNSET_TYPES[letter]:
        raise ValueError(f"{line[:40]!r} has wrong counts or a wrong synset type")
    subject = _synset_id(fields[0], letter)
    kind = LEXICOGRAPHER_FILES[int(fields[1])]
    facts: dict[tuple[str, str], None] = {}
    skipped: list[str] = []
    for start in range(words_end + 1, pointers_end, 4):
        symbol, offset, target, _ = fields[start : start + 4]
        if symbol in _PREDICATES:
            fact = _PREDICATES[symbol].name, _synset_id(offset, target)
            if fact in facts:
                skipped.append("repeated pointers between two synsets")
            facts[fact] = None
        elif symbol in _SKIPPED_POINTERS:
            skipped.append(_SKIPPED_POINTERS[symbol])
        else:
            raise ValueError(f"unknown pointer {symbol!r}")
    for predicate, object_ in facts:
        if context.wants_predicate(predicate):
            builder.add_fact(where, subject, predicate, object_)
    for kind_skipped in skipped:
        context.count_skipped(kind_skipped)
    if context.wants_language("en"):
        lemmas = [_SYNTACTIC_MARKER.sub("", word).replace("_", " ") for word in fields[4:words_end:2]]
        label, *aliases = dict.fromkeys(lemmas)
        builder.add_name(subject, label, "en", aliases, kind)


def _synset_id(offset: str, part_of_speech: str) -> str:
    if len(offset) != 8 or not offset.isdecimal():
        raise ValueError(f"{offset!r} is not a synset offset")
    # Satellite adjectives are in data.adj too.
    letter = "a" if part_of_speech == "s" else part_of_speech
    if letter not in _SYNSET_TYPES:
        raise ValueError(f"unknown part of speech {part_of_speech!r}")
    return f"wordnet:{offset}-{letter}"
