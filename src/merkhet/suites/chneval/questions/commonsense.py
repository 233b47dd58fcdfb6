"""Commonsense clozes: ConceptNet pairs, filled into template sentences of their relations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from merkhet.core import SLOT
from merkhet.core.errors import FaultList, InputError, did_you_mean
from merkhet.core.files import read_yaml
from merkhet.core.ids import derived_seed
from merkhet.questions.english import capitalize
from merkhet.questions.losses import LossCounter
from merkhet.questions.templates import check_placeholders, refuse_unknown_keys
from merkhet.suites.chneval.questions.cloze_selection import (
    anomaly_remarks,
    count_undrawn,
    count_unusable_rows,
    draw_clozes,
    filter_rows,
    has_askable_length,
    word_positions,
)
from merkhet.suites.chneval.questions.question_rows import COMMONSENSE, Cloze, DraftQuestions, Usage
from merkhet.suites.chneval.questions.text_anomalies import character_code
from merkhet.suites.chneval.questions.worded_triples import Triple, Triples

OWN_TEMPLATES = Path(__file__).with_name("commonsense.yaml")
ASKED = {"end": ("end",), "start": ("start",), "both": ("end", "start")}
_SIDES = ("start", "end")
_SYMMETRIC = frozenset(("Antonym", "Synonym", "SimilarTo", "DistinctFrom", "RelatedTo", "LocatedNear"))
_SYNONYM = "Synonym"

_CHINESE = re.compile("[\u4e00-\u9fff]+")
# Unfit words: pronouns of speaker and listener, words that end in a particle (but not 目的), and words that begin like
# a sentence (but not 会议).
_UNFIT = re.compile(
    "[你妳您咱]|(?<!自)我|[他她它]们|(?<![目标])的$|[了吗呢啊吧喔哦嘛啦呀]$|^的|^会(?![议计场员馆长话面])|^(?:可以|可能|想要|应该|因为|所以|用来|拿来)"
)


@dataclass(frozen=True)
class Wording:
    """Template sentences of a relation, and requirements for the pairs of this relation."""

    templates: tuple[str, ...]
    """Sentences with the placeholders {start} and {end}."""
    disjoint: bool = False
    """Whether the start word and the end word must have no character in common."""
    min_length: int = 1
    """Minimum number of characters of the start word, and of the end word."""


def read_wordings(path: Path | None = None, language: str = "zh") -> dict[str, Wording]:
    """Read the template sentences of a language, by relation.

    Args:
        path: YAML file; by default the file of merkhet.
        language: Language of the sentences. Without sentences in "zh-cn", sentences in "zh" are used.

    Raises:
        InputError: If a sentence does not contain {start} and {end} once each, or the language has no sentences.
    """
    path = path or OWN_TEMPLATES
    content = read_yaml(path, "sentences by language and relation")
    if not isinstance(content, dict) or not all(isinstance(entry, dict) and entry for entry in content.values()):
        raise InputError(f"{path}: write sentences under a language and a relation, such as 'zh:' and 'UsedFor:'")
    wordings: dict[str, dict[str, Wording]] = {}
    faults = FaultList()
    for key, relations in content.items():
        wordings[str(key)] = {}
        for relation, body in relations.items():
            with faults.collect():
                name = str(relation).removeprefix("/r/")
                wordings[str(key)][name] = _wording(body, f"{path}, {key}, {relation}")
    faults.refuse()
    key = language if language in wordings else language.partition("-")[0]
    if key not in wordings:
        raise InputError(f"{path}: there are no sentences in {language!r}; {did_you_mean(language, list(wordings))}")
    return wordings[key]


def _wording(body: Any, where: str) -> Wording:
    body = body if isinstance(body, dict) else {"templates": body}
    refuse_unknown_keys(body, ("templates", "apart", "least"), where)
    templates = body.get("templates")
    if not isinstance(templates, list) or not templates or not all(isinstance(text, str) for text in templates):
        raise InputError(f"{where}: must be a list of sentences with {{start}} and {{end}}, got {templates!r}")
    faults = FaultList()
    for template in templates:
        with faults.collect():
            if SLOT in template:
                raise InputError(
                    f"{where}: {template!r} has a slot; write {{start}} and {{end}}, one of which becomes the slot"
                )
            check_placeholders(template, _SIDES, set(_SIDES), where)
            if re.search(r"\{\w+ \w+\}", template):
                raise InputError(
                    f"{where}: {template!r} has a form such as {{a end}}; write {{start}} and {{end}} alone"
                )
    faults.refuse()
    disjoint, min_length = body.get("apart", False), body.get("least", 1)
    if not isinstance(disjoint, bool):
        raise InputError(f"{where}: 'apart' must be true or false, got {disjoint!r}")
    if isinstance(min_length, bool) or not isinstance(min_length, int) or min_length < 1:
        raise InputError(f"{where}: 'least' must be an integer ≥ 1, got {min_length!r}")
    return Wording(tuple(templates), disjoint, min_length)


def commonsense_clozes(
    pairs: Triples,
    *,
    templates: Mapping[str, Wording],
    language: str = "zh",
    seed: int,
    per_answer: int | None = 10,
    per_relation: int | None = 400,
    longest: int | None = None,
    characters: int | None = None,
    ask: str = "end",
) -> DraftQuestions:
    """Draw clozes by the seed from pairs whose relations have templates, at most one cloze for each pair.

    An answer must be the only right one according to the pairs. The start word and its synonyms must have no other end
    word with this relation, and the answer must have no synonym. The answer must occur once in its sentence. Words that
    read badly in Chinese sentences (foreign letters, rare characters, "you", final particles) are left out.

    Args:
        per_answer, per_relation: Maximum number of clozes with the same answer or relation.
        longest: Maximum number of characters of a sentence; by default 24 in Chinese, 96 otherwise.
        characters: Number of characters of an answer; by default any number up to 8.
        ask: Word of a pair to leave out: "end", "start", or "both" for the end if possible and otherwise the start.
    """
    if ask not in ASKED:
        raise InputError(f"the option ask cannot be {ask!r}; {did_you_mean(ask, list(ASKED))}")
    longest = longest or (24 if _is_chinese(language) else 96)
    answers = _PairAnswers(pairs.triples)
    counter = LossCounter(COMMONSENSE, "pairs")
    count_unusable_rows(counter, pairs)
    worded, fit, unique, clozes = [], [], [], {}
    for pair in pairs.triples:
        wording = templates.get(pair.relation)
        if wording is None:
            counter.add("the relation has no sentence", pair.relation, pair.example)
            continue
        worded.append(pair)
        if reason := _misfit(pair, wording, language):
            counter.add(reason, pair.relation, pair.example)
            continue
        fit.append(pair)
        sides = [side for side in ASKED[ask] if answers.is_unique(pair, side, language)]
        if not sides:
            counter.add("more than one right answer", pair.relation, pair.example)
            continue
        unique.append(pair)
        if cloze := _cloze(pair, sides, wording, language, seed, longest, characters):
            clozes[pair] = cloze
        else:
            counter.add("length, or an answer that is repeated", pair.relation, pair.example)
    capped: set[object] = set()
    kept = draw_clozes(
        [(0, cloze) for cloze in clozes.values()],
        seed=seed,
        per_answer=per_answer,
        per_relation=per_relation,
        capped=capped,
    )
    drawn = {cloze.fact for cloze in kept}
    for pair in clozes:
        if pair.fact not in drawn:
            count_undrawn(counter, pair, capped)
    counts = {
        "rows": pairs.rows,
        "repeated or bad rows": len(pairs.triples),
        "relations without a sentence": len(worded),
        "words that read badly": len(fit),
        "more than one right answer": len(unique),
        "length, or an answer that is repeated": len(clozes),
        "caps by answer and relation": len(kept),
    }
    return DraftQuestions(
        clozes=kept,
        filters=filter_rows(COMMONSENSE, counts),
        accounts=[counter.account(pairs.rows, len(kept))],
        remarks=[*pairs.remarks, *anomaly_remarks(kept)],
    )


class _PairAnswers:
    """Index of the right answers to clozes according to the pairs."""

    def __init__(self, pairs: Iterable[Triple]) -> None:
        self._answers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        self._synonyms: dict[str, set[str]] = defaultdict(set)
        for start, relation, end in (pair.fact for pair in pairs):
            self._answers["end", relation, start].add(end)
            self._answers["start", relation, end].add(start)
            if relation in _SYMMETRIC:
                self._answers["end", relation, end].add(start)
                self._answers["start", relation, start].add(end)
            if relation == _SYNONYM:
                self._synonyms[start].add(end)
                self._synonyms[end].add(start)

    def is_unique(self, pair: Triple, side: str, language: str) -> bool:
        """Check that the pair's word at ``side`` is the only right answer; synonyms that read badly do not count."""
        visible = pair.subject if side == "end" else pair.object
        right = set(self._answers[side, pair.relation, visible])
        for synonym in self._usable_synonyms(visible, language):
            right |= self._answers.get((side, pair.relation, synonym), set())
        for word in list(right):
            right |= self._usable_synonyms(word, language)
        return len(right - {visible}) == 1

    def _usable_synonyms(self, word: str, language: str) -> set[str]:
        return {synonym for synonym in self._synonyms.get(word, ()) if _reads_well(synonym, language)}


def _misfit(pair: Triple, wording: Wording, language: str) -> str | None:
    """Return why a pair cannot be put into the sentences of its relation; None if it can."""
    start, _, end = pair.fact
    if start in end or end in start:
        return "one word contains the other"
    if wording.disjoint and set(start) & set(end):
        return "the words share a character (apart)"
    if min(len(start), len(end)) < wording.min_length:
        return "a word is shorter than the relation requires (least)"
    if not (_reads_well(start, language) and _reads_well(end, language)):
        return "a word reads badly"
    return None


def _is_chinese(language: str) -> bool:
    return language.partition("-")[0] == "zh"


@lru_cache(maxsize=65_536)
def _reads_well(word: str, language: str) -> bool:
    """Check whether a word reads well in a Chinese sentence; in other languages every word passes."""
    if not _is_chinese(language):
        return True
    return bool(_CHINESE.fullmatch(word)) and not _UNFIT.search(word) and all(map(_is_common, word))


@cache
def _is_common(character: str) -> bool:
    """Check whether a character is in GB 2312 or among the common characters of Big5."""
    big5 = character_code(character, "big5")
    return character_code(character, "gb2312") is not None or (big5 is not None and big5 <= 0xC67E)


def _cloze(
    pair: Triple,
    sides: Sequence[str],
    wording: Wording,
    language: str,
    seed: int,
    longest: int,
    characters: int | None,
) -> Cloze | None:
    """Make a cloze from the first suitable template of the relation, or return None.

    The seed decides which template is tried first.
    """
    count = len(wording.templates)
    first = derived_seed(seed, *pair.fact) % count
    for side in sides:
        for number in ((first + turn) % count for turn in range(count)):
            template = wording.templates[number]
            usage = _fill_template(template, pair, side)
            if (
                has_askable_length(usage.word, characters)
                and len(usage.sentence) <= longest
                and len(word_positions(usage.sentence, usage.word)) == 1
                and not _repeats_neighbour(template, pair)
            ):
                return Cloze(usage, COMMONSENSE, None, f"{pair.relation}/{number + 1}", pair.fact, language)
    return None


def _fill_template(template: str, pair: Triple, side: str) -> Usage:
    words = {"start": pair.subject, "end": pair.object}
    start = len(template[: template.index(f"{{{side}}}")].format(**words))
    sentence = capitalize(template.format(**words))
    return Usage(sentence, start, sentence[start : start + len(words[side])], pair.where)


def _repeats_neighbour(template: str, pair: Triple) -> bool:
    """Check whether a word begins or ends with the template character next to it: 在海里里, 会会飞."""
    for side, word in zip(_SIDES, (pair.subject, pair.object), strict=True):
        prefix, _, suffix = template.partition(f"{{{side}}}")
        if word[0] == prefix[-1:] or word[-1] == suffix[:1]:
            return True
    return False
