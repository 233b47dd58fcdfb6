"""From words in their sentences to rows of questions: clozes, and triples of usages of one word."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from merkhet.core import SLOT
from merkhet.core.ids import derived_seed
from merkhet.core.schemas import (
    CANDIDATES,
    FACTS,
    FREQUENCIES,
    QUESTIONS,
    candidate_set_id,
    fact_id,
    make_table,
    question_id,
)
from merkhet.questions.question_files import QuestionSet

SUITE = "chneval"
SYNTACTIC, SEMANTIC, COMMONSENSE, ENCYCLOPEDIA = "syntactic", "semantic", "commonsense", "encyclopedia"
CLASSES = {
    "C": "conjunctions",
    "D": "adverbs",
    "P": "prepositions",
    "U": "auxiliary words",
    "ND": "direction nouns",
}
TASKS = (SYNTACTIC, SEMANTIC, COMMONSENSE, ENCYCLOPEDIA)


@dataclass(frozen=True)
class Usage:
    """A word where it stands in a sentence; ``where`` names the file and the line that it was read from."""

    sentence: str
    start: int
    word: str
    where: str = ""

    @property
    def prompt(self) -> str:
        """The sentence with a slot instead of the word."""
        return f"{self.sentence[: self.start]}{SLOT}{self.sentence[self.start + len(self.word) :]}"


@dataclass(frozen=True)
class Cloze:
    """A word left out of its sentence.

    ``domain`` is the class of the word or what it is about, ``template`` how the sentence was made ("UsedFor/1"; the
    part before the slash is the relation). ``fact`` is the (subject, predicate, object) behind it.
    """

    usage: Usage
    task: str
    domain: str | None = None
    template: str | None = None
    fact: tuple[str, str, str] | None = None
    language: str = "zh"


@dataclass(frozen=True)
class SenseTriple:
    """Three usages of a word: the answer has the sense of the base, the distractor another one."""

    base: Usage
    answer: Usage
    distractor: Usage
    sense: str | None = None
    language: str = "zh"


@dataclass
class Gathered:
    """What was made, and what there is to say about it.

    ``filters`` are rows of the data card (filter, task, before, after) in the order in which they were applied;
    ``remarks`` are sentences that name what is odd or was left out, with file and line.
    """

    clozes: list[Cloze] = field(default_factory=list)
    triples: list[SenseTriple] = field(default_factory=list)
    filters: list[Mapping[str, Any]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def question_set(gathered: Gathered, *, seed: int, about: Mapping[str, Any] | None = None) -> QuestionSet:
    """The tables of all that was gathered; a cloze is asked among the answers of its task and class.

    What is there twice is asked twice, under ids of its own, and stands and falls together.
    """
    lists = _answers(gathered.clozes)
    counted_classes = Counter(cloze.domain for cloze in gathered.clozes if cloze.domain)
    classes = {
        name: counted_classes[name] for name in dict.fromkeys([*CLASSES, *counted_classes]) if name in counted_classes
    }
    rows, facts = [], {}
    seen: Counter[str] = Counter()
    for cloze in gathered.clozes:
        row = _cloze_row(cloze, lists[cloze.task, cloze.domain][0])
        if cloze.fact is not None:
            subject, predicate, value = cloze.fact
            fact = {"subject": subject, "predicate": predicate, "object": value}
            row["facts"] = [fact_id(fact)]
            facts[row["facts"][0]] = fact
        rows.append(_numbered(row, seen))
    for triple in gathered.triples:
        rows.append(_numbered(_triple_row(triple, seed), seen))
    rows.sort(key=lambda row: TASKS.index(row["task"]))
    candidates = [{"candidate_set": name, "candidates": list(texts)} for name, texts in lists.values()]
    # By class, not by relation: where a relation has few questions its answers would give themselves away.
    counted = Counter((row["task"], row["domain"] or row["task"], row["target"]) for row in rows if "words" not in row)
    frequencies = [
        {"task": task, "relation": relation, "answer": answer, "count": count}
        for (task, relation, answer), count in sorted(counted.items())
    ]
    return QuestionSet(
        make_table(QUESTIONS, rows),
        candidates=make_table(CANDIDATES, candidates),
        facts=make_table(FACTS, list(facts.values())),
        frequencies=make_table(FREQUENCIES, frequencies),
        about={
            "filters": list(gathered.filters),
            "remarks": [*_told(classes), *gathered.remarks],
            "domains": list(classes),
            "names": {name: CLASSES[name] for name in classes if name in CLASSES},
            **(about or {}),
        },
    )


def _told(classes: Mapping[str, int]) -> list[str]:
    """How many questions each class has, as a remark."""
    return [f"Function words: {', '.join(f'{count:,} {name}' for name, count in classes.items())}."] if classes else []


def _answers(clozes: Iterable[Cloze]) -> dict[tuple[str, str | None], tuple[str, tuple[str, ...]]]:
    """The answers of each task and class, as a candidate set with its name."""
    found: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for cloze in clozes:
        found[cloze.task, cloze.domain].add(cloze.usage.word)
    named = {}
    for (task, domain), words in found.items():
        texts = tuple(sorted(words))
        named[task, domain] = candidate_set_id("-".join(part for part in (task, domain) if part), texts), texts
    return named


def _cloze_row(cloze: Cloze, candidates: str) -> dict[str, Any]:
    return {
        "suite": SUITE,
        "task": cloze.task,
        "language": cloze.language,
        "prompt": cloze.usage.prompt,
        "answers": [cloze.usage.word],
        "target": cloze.usage.word,
        "candidate_set": candidates,
        "domain": cloze.domain,
        "template": cloze.template or cloze.domain,
    }


def _triple_row(triple: SenseTriple, seed: int) -> dict[str, Any]:
    right, wrong = triple.answer, triple.distractor
    # Whichever comes first is drawn, so that nothing can be had from the order.
    pair = [right, wrong] if derived_seed(seed, triple.base.prompt, right.prompt, wrong.prompt) % 2 else [wrong, right]
    words = [triple.base.word, *(usage.word for usage in pair)]
    return {
        "suite": SUITE,
        "task": SEMANTIC,
        "language": triple.language,
        "prompt": triple.base.prompt,
        "answers": [right.prompt],
        "target": right.prompt,
        "choices": [usage.prompt for usage in pair],
        "words": words[:1] if len(set(words)) == 1 else words,
        "qset": triple.base.word,
    }


def _numbered(row: dict[str, Any], seen: Counter[str]) -> dict[str, Any]:
    """The row with its id; one that was there before has a number in it, and the first one's name for its set."""
    name = question_id(row)
    seen[name] += 1
    if seen[name] == 1:
        return {**row, "question_id": name}
    return {**row, "question_id": f"{name}-{seen[name]}", "qset": row.get("qset") or name}
