"""Clozes of common sense: pairs of ConceptNet in sentences written for their relations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from merkhet.core import SLOT
from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import read_yaml
from merkhet.core.ids import derived_seed
from merkhet.questions.english import capitalize
from merkhet.questions.templates import check_placeholders, refuse_unknown_keys
from merkhet.suites.chneval.questions.cloze_selection import can_be_asked, draw, places, remarks_on, steps
from merkhet.suites.chneval.questions.question_rows import COMMONSENSE, Cloze, Gathered, Usage
from merkhet.suites.chneval.questions.word_pairs import Pair, Pairs

OWN_TEMPLATES = Path(__file__).with_name("commonsense.yaml")
ASKED = ("end", "start", "both")
LONGEST = {"zh": 24}
_LONGEST_ELSEWHERE = 96
_ENDS = ("start", "end")
_SYMMETRIC = frozenset(("Antonym", "Synonym", "SimilarTo", "DistinctFrom", "RelatedTo", "LocatedNear"))
_SYNONYM = "Synonym"

_CHINESE = re.compile("[\u4e00-\u9fff]+")
# Words for speaker or listener; those that end in a particle (not 目的), or begin as a sentence does (not 会议).
_UNFIT = re.compile(
    "[你妳您咱]|(?<!自)我|[他她它]们|(?<![目标])的$|[了吗呢啊吧喔哦嘛啦呀]$|^的|^会(?![议计场员馆长话面])|^(?:可以|可能|想要|应该|因为|所以|用来|拿来)"
)


@dataclass(frozen=True)
class Wording:
    """The sentences of a relation; ``apart``: start and end share no character; ``least``: so long each at least."""

    templates: tuple[str, ...]
    apart: bool = False
    least: int = 1


def read_wordings(path: Path | None = None, language: str = "zh") -> dict[str, Wording]:
    """The sentences of a language, by relation, from a YAML file or from merkhet's own.

    Any relation may have some. Refuses, by file and key, sentences that do not name {start} and {end} once each, and a
    language that the file has nothing for ("zh" serves for "zh-cn").
    """
    path = path or OWN_TEMPLATES
    content = read_yaml(path, "sentences by language and relation")
    if not isinstance(content, dict) or not all(isinstance(found, dict) and found for found in content.values()):
        raise InputError(f"{path}: sentences stand under a language and then a relation, as in 'zh:' and 'UsedFor:'")
    wordings = {
        str(spoken): {
            str(name).removeprefix("/r/"): _wording(body, f"{path}, {spoken}, {name}") for name, body in found.items()
        }
        for spoken, found in content.items()
    }
    key = language if language in wordings else language.partition("-")[0]
    if key not in wordings:
        raise InputError(f"{path}: there are no sentences in {language!r}; {did_you_mean(language, list(wordings))}")
    return wordings[key]


def _wording(body: Any, where: str) -> Wording:
    body = body if isinstance(body, dict) else {"templates": body}
    refuse_unknown_keys(body, ("templates", "apart", "least"), where)
    templates = body.get("templates")
    if not isinstance(templates, list) or not templates or not all(isinstance(text, str) for text in templates):
        raise InputError(f"{where}: there should be a list of sentences with {{start}} and {{end}}")
    for template in templates:
        if SLOT in template:
            raise InputError(f"{where}: {template!r} has a slot; write {{start}} and {{end}}, and one is asked for")
        check_placeholders(template, _ENDS, set(_ENDS), where)
        if re.search(r"\{\w+ \w+\}", template):
            raise InputError(f"{where}: {template!r} has a form such as {{a end}}; write {{start}} and {{end}} alone")
    apart, least = body.get("apart", False), body.get("least", 1)
    if not isinstance(apart, bool):
        raise InputError(f"{where}: 'apart' is true or false, and was given as {apart!r}")
    if isinstance(least, bool) or not isinstance(least, int) or least < 1:
        raise InputError(f"{where}: 'least' is a number from 1, and was given as {least!r}")
    return Wording(tuple(templates), apart, least)


def commonsense_clozes(
    pairs: Pairs,
    *,
    templates: Mapping[str, Wording],
    language: str = "zh",
    seed: int,
    per_answer: int | None = 10,
    per_relation: int | None = 400,
    longest: int | None = None,
    characters: int | None = None,
    ask: str = "end",
) -> Gathered:
    """Clozes of pairs whose relations have templates, each pair in at most one sentence; drawn by the seed.

    ``ask`` is the end of a pair, its start, or "both": the end where it can be asked for, else the start. Asked for is
    only what nothing else among the pairs fits: no other end of the same start and relation, nor of a synonym of the
    start, and no synonym of the answer. A sentence has up to ``longest`` characters (24 in Chinese, else 96), and its
    answer ``characters`` of them, or any number up to 8; the answer stands in it once. Words that read badly in
    Chinese sentences (foreign letters, rare characters, "you", particles at the end) are left out.
    """
    if ask not in ASKED:
        raise InputError(f"the end to ask for is {ask!r}; {did_you_mean(ask, ASKED)}")
    longest = longest or LONGEST.get(language.partition("-")[0], _LONGEST_ELSEWHERE)
    fitting = _Fitting(pairs.pairs)
    worded = [pair for pair in pairs.pairs if pair.relation in templates]
    fit = [pair for pair in worded if _fits(pair, templates[pair.relation], language)]
    asked = ("end", "start") if ask == "both" else (ask,)
    unique = {pair: [end for end in asked if fitting.is_unique(pair, end, language)] for pair in fit}
    found = []
    for pair, ends in unique.items():
        cloze = _cloze(pair, ends, templates[pair.relation], language, seed, longest, characters)
        if cloze is not None:
            found.append(cloze)
    kept = draw([(0, cloze) for cloze in found], seed=seed, per_answer=per_answer, per_relation=per_relation)
    counts = {
        "rows": pairs.rows,
        "repeated or bad rows": len(pairs.pairs),
        "relations without a sentence": len(worded),
        "words that read badly": len(fit),
        "more than one right answer": sum(bool(ends) for ends in unique.values()),
        "length, or an answer that is seen": len(found),
        "so many of an answer or a relation": len(kept),
    }
    return Gathered(clozes=kept, filters=steps(COMMONSENSE, counts), remarks=[*pairs.remarks, *remarks_on(kept)])


class _Fitting:
    """What else the pairs say would be right where an end is left out."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._others: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        self._synonyms: dict[str, set[str]] = defaultdict(set)
        for pair in pairs:
            self._others["end", pair.relation, pair.start].add(pair.end)
            self._others["start", pair.relation, pair.end].add(pair.start)
            if pair.relation in _SYMMETRIC:
                self._others["end", pair.relation, pair.end].add(pair.start)
                self._others["start", pair.relation, pair.start].add(pair.end)
            if pair.relation == _SYNONYM:
                self._synonyms[pair.start].add(pair.end)
                self._synonyms[pair.end].add(pair.start)

    def is_unique(self, pair: Pair, asked: str, language: str) -> bool:
        """Whether nothing but the pair's own word is right; synonyms that nobody would write do not count."""
        given = pair.start if asked == "end" else pair.end
        right = set(self._others[asked, pair.relation, given])
        for synonym in self._alike(given, language):
            right |= self._others.get((asked, pair.relation, synonym), set())
        for word in list(right):
            right |= self._alike(word, language)
        return len(right - {given}) == 1

    def _alike(self, word: str, language: str) -> set[str]:
        return {other for other in self._synonyms.get(word, ()) if _reads_well(other, language)}


def _fits(pair: Pair, wording: Wording, language: str) -> bool:
    if pair.start in pair.end or pair.end in pair.start or (wording.apart and set(pair.start) & set(pair.end)):
        return False
    if min(len(pair.start), len(pair.end)) < wording.least:
        return False
    return _reads_well(pair.start, language) and _reads_well(pair.end, language)


@lru_cache(maxsize=65_536)
def _reads_well(word: str, language: str) -> bool:
    """Whether a word goes into a sentence as it is; of other languages than Chinese nothing is known here."""
    if language.partition("-")[0] != "zh":
        return True
    return bool(_CHINESE.fullmatch(word)) and not _UNFIT.search(word) and all(map(_is_common, word))


@cache
def _is_common(character: str) -> bool:
    """Whether GB 2312 holds a character, or Big5 among its common ones."""
    try:
        character.encode("gb2312")
        return True
    except UnicodeEncodeError:
        pass
    try:
        return int.from_bytes(character.encode("big5"), "big") <= 0xC67E
    except UnicodeEncodeError:
        return False


def _cloze(
    pair: Pair,
    ends: Sequence[str],
    wording: Wording,
    language: str,
    seed: int,
    longest: int,
    characters: int | None,
) -> Cloze | None:
    """A pair in the first of its relation's sentences, beginning with a drawn one, in which an end can be asked for."""
    fact = (pair.start, pair.relation, pair.end)
    count = len(wording.templates)
    first = derived_seed(seed, *fact) % count
    for asked in ends:
        for number in ((first + turn) % count for turn in range(count)):
            template = wording.templates[number]
            usage = _filled(template, pair, asked)
            if (
                can_be_asked(usage.word, characters)
                and len(usage.sentence) <= longest
                and len(places(usage.sentence, usage.word)) == 1
                and not _stammers(template, pair)
            ):
                return Cloze(usage, COMMONSENSE, None, f"{pair.relation}/{number + 1}", fact, language)
    return None


def _filled(template: str, pair: Pair, asked: str) -> Usage:
    before = template[: template.index(f"{{{asked}}}")]
    values = {"start": pair.start, "end": pair.end}
    word = values[asked]
    place = len(before.format(**values))
    sentence = capitalize(template.format(**values))
    return Usage(sentence, place, sentence[place : place + len(word)], pair.where)


def _stammers(template: str, pair: Pair) -> bool:
    """Whether a word repeats the character that stands beside its place: 在海里里, 会会飞."""
    for end, word in (("start", pair.start), ("end", pair.end)):
        before, _, after = template.partition(f"{{{end}}}")
        if word[0] == before[-1:] or word[-1] == after[:1]:
            return True
    return False
