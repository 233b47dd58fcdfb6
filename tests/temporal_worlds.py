"""Small worlds of facts with times, and the obvious way to put a sentence together, for tests of temporal questions."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from functools import cache

from merkhet.core.schemas import FACTS, NAMES, make_table
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.english import add_definite_article
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts, extract_temporal_facts

Row = tuple[str, str, str, str | None, str | None]
YEARS = [*range(-3, 0), *range(1, 4), *range(1998, 2006)]


def knowledge_of(rows: Iterable[Row], unnamed: Sequence[str] = (), values: Iterable[tuple[str, str, float]] = ()):
    """A knowledge base of (subject, predicate, object, start, end); an entity's name is its id up to a hash sign."""
    rows = list(dict.fromkeys(rows))
    facts = [{"subject": s, "predicate": p, "object": o, "start": a, "end": b} for s, p, o, a, b in rows]
    facts += [{"subject": s, "predicate": p, "value": v, "start": "2001", "end": "2002"} for s, p, v in values]
    entities = {row[place] for row in rows for place in (0, 2)} - set(unnamed)
    names = [{"entity": entity, "label": entity.partition("#")[0]} for entity in sorted(entities)]
    return KnowledgeBase([Chunk(make_table(FACTS, facts), make_table(NAMES, names))])


def year(number: int) -> str:
    return f"{number:04d}" if number > 0 else f"-{-number:04d}"


def random_rows(seed: int, facts: int = 60, fine: bool = False) -> list[Row]:
    """Facts with homonyms, overlaps, times unknown, two ways of marrying, points, and a predicate without a wording."""
    rng = random.Random(seed)
    rows: list[Row] = []
    for _ in range(facts):
        predicate = rng.choice(["P39", "P39", "P26", "P166", "guides"])
        subject = f"{rng.choice('abcd')}#{rng.choice('12')}"
        object_ = f"{rng.choice('abcd' if predicate == 'P26' else 'AB')}#{rng.choice('12')}"
        pair = sorted(rng.sample(YEARS, 2)) if rng.random() < 0.8 else [rng.choice(YEARS)] * 2
        times: list[str | None] = [year(one) for one in pair]
        if fine:
            times = [_finer(rng, str(time), later) for later, time in enumerate(times)]
        if predicate == "P166" and rng.random() < 0.8:
            times = [times[0], times[0] if rng.random() < 0.5 else None]
        if rng.random() < 0.08:
            times[rng.randrange(2)] = None
        rows.append((subject, predicate, object_, times[0], times[1]))
    return rows


@cache
def random_facts(seed: int, facts: int = 60) -> TemporalFacts:
    """The temporal facts of :func:`random_rows` by the year, made once for all tests that read them."""
    return extract_temporal_facts(knowledge_of(random_rows(seed, facts)))


def _finer(rng: random.Random, time: str, later: int) -> str:
    """A year with a month or a day, early for a start and late for an end."""
    kind = rng.randrange(3)
    month, day = (f"{rng.randint(7, 12):02d}", "28") if later else (f"{rng.randint(1, 6):02d}", "03")
    return time if kind == 0 else f"{time}-{month}" if kind == 1 else f"{time}-{month}-{day}"


def moment(time: str) -> tuple[int, ...]:
    """A time as numbers that compare as times do."""
    head, *rest = time.removeprefix("-").split("-")
    return (-int(head) if time.startswith("-") else int(head), *map(int, rest))


def said(text: str, mask: str, **values: str) -> str:
    """A sentence with its places filled and one of them masked, the obvious way."""

    def put(found: re.Match[str]) -> str:
        form, place = found[1], found[2]
        if place == mask:
            return "[MASK]"
        return add_definite_article(values[place]) if form and not values[place].startswith("⟦") else values[place]

    full = re.sub(r"\{(?:(the) )?(\w+)\}", put, text)
    full = full[:-1] if full.endswith("..") else full
    return full if re.match("[a-z][A-Z]", full) else full[:1].upper() + full[1:]
