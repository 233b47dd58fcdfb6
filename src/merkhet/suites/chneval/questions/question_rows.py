"""Drafts of questions (clozes and sense triples) and the tables made from them."""

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
    QUESTIONS,
    candidate_set_id,
    fact_id,
    make_table,
    question_id,
)
from merkhet.questions.losses import Account, losses_for_card
from merkhet.questions.question_files import QuestionSet

SUITE = "chneval"
SYNTACTIC, SEMANTIC, COMMONSENSE, ENCYCLOPEDIA = "syntactic", "semantic", "commonsense", "encyclopedia"
CLASSES = {"C": "conjunctions", "D": "adverbs", "P": "prepositions", "U": "auxiliary words", "ND": "direction nouns"}
TASKS = (SYNTACTIC, SEMANTIC, COMMONSENSE, ENCYCLOPEDIA)


@dataclass(frozen=True)
class Usage:
    """Word at a position in a sentence."""

    sentence: str
    start: int
    """Position of the word's first character in the sentence."""
    word: str
    where: str = ""
    """File and line of the sentence."""

    @property
    def prompt(self) -> str:
        """Sentence with a slot in place of the word."""
        return f"{self.sentence[: self.start]}{SLOT}{self.sentence[self.start + len(self.word) :]}"


@dataclass(frozen=True)
class Cloze:
    """Question for a word that is left out of its sentence."""

    usage: Usage
    task: str
    domain: str | None = None
    """Class of a function word; None in other tasks."""
    template: str | None = None
    """Template of the sentence, such as ``UsedFor/1``; the part before the slash is the relation."""
    fact: tuple[str, str, str] | None = None
    """Subject, predicate and object of the fact that the sentence states."""
    language: str = "zh"


@dataclass(frozen=True)
class SenseTriple:
    """Three usages of a word: base and answer have the same sense, and the distractor has another sense."""

    base: Usage
    answer: Usage
    distractor: Usage
    sense: str | None = None
    language: str = "zh"


@dataclass
class DraftQuestions:
    """Clozes and sense triples, with filter counts and remarks for the data card."""

    clozes: list[Cloze] = field(default_factory=list)
    triples: list[SenseTriple] = field(default_factory=list)
    filters: list[Mapping[str, Any]] = field(default_factory=list)
    """Rows of the data card with the keys filter, task, before and after, in the order of the filters."""
    accounts: list[Account] = field(default_factory=list)
    """Accounts of the material that gave no question."""
    remarks: list[str] = field(default_factory=list)
    """Remarks on anomalies and on skipped lines, with file and line."""


def make_question_set(draft: DraftQuestions, *, seed: int) -> QuestionSet:
    """Make the tables of a question set from draft questions.

    The candidates of a cloze are all answers of its task and word class. Duplicate questions are kept; they have
    different ids and form one cluster.
    """
    candidate_sets = _candidate_sets(draft.clozes)
    class_counts = Counter(cloze.domain for cloze in draft.clozes if cloze.domain)
    classes = {name: class_counts[name] for name in dict.fromkeys([*CLASSES, *class_counts]) if name in class_counts}
    class_counts_text = ", ".join(f"{count:,} {name}" for name, count in classes.items())
    rows, facts = [], {}
    id_counts: Counter[str] = Counter()
    for cloze in draft.clozes:
        row = _cloze_row(cloze, candidate_sets[cloze.task, cloze.domain][0])
        if cloze.fact is not None:
            subject, predicate, value = cloze.fact
            fact = {"subject": subject, "predicate": predicate, "object": value}
            row["facts"] = [fact_id(fact)]
            facts[row["facts"][0]] = fact
        rows.append(_assign_id(row, id_counts))
    rows += [_assign_id(_triple_row(triple, seed), id_counts) for triple in draft.triples]
    rows.sort(key=lambda row: TASKS.index(row["task"]))
    candidates = [{"candidate_set": name, "candidates": list(texts)} for name, texts in candidate_sets.values()]
    return QuestionSet(
        make_table(QUESTIONS, rows),
        candidates=make_table(CANDIDATES, candidates),
        facts=make_table(FACTS, list(facts.values())),
        about={
            "filters": list(draft.filters),
            **(losses_for_card(draft.accounts) if draft.accounts else {}),
            "remarks": [*([f"Function words: {class_counts_text}."] if classes else []), *draft.remarks],
            "domains": list(classes),
            "names": {name: CLASSES[name] for name in classes if name in CLASSES},
        },
    )


def _candidate_sets(clozes: Iterable[Cloze]) -> dict[tuple[str, str | None], tuple[str, tuple[str, ...]]]:
    """Return the id and the candidates of the candidate set of each task and word class."""
    answers: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for cloze in clozes:
        answers[cloze.task, cloze.domain].add(cloze.usage.word)
    sets = {}
    for (task, domain), words in answers.items():
        texts = tuple(sorted(words))
        sets[task, domain] = candidate_set_id("-".join(part for part in (task, domain) if part), texts), texts
    return sets


def _cloze_row(cloze: Cloze, candidate_set: str) -> dict[str, Any]:
    return {
        "suite": SUITE,
        "task": cloze.task,
        "language": cloze.language,
        "prompt": cloze.usage.prompt,
        "answers": [cloze.usage.word],
        "target": cloze.usage.word,
        "candidate_set": candidate_set,
        "domain": cloze.domain,
        "template": cloze.template or cloze.domain,
    }


def _triple_row(triple: SenseTriple, seed: int) -> dict[str, Any]:
    right, wrong = triple.answer, triple.distractor
    # A fixed order would reveal the answer.
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


def _assign_id(row: dict[str, Any], id_counts: Counter[str]) -> dict[str, Any]:
    """Return the row with a question id.

    A duplicate question gets a numbered id. If it has no question set (``qset``), the id of the first occurrence is its
    question set.
    """
    first_id = question_id(row)
    id_counts[first_id] += 1
    if id_counts[first_id] == 1:
        return {**row, "question_id": first_id}
    return {**row, "question_id": f"{first_id}-{id_counts[first_id]}", "qset": row.get("qset") or first_id}
