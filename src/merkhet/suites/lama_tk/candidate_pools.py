"""What a question about a fact with times offers: all years, or right answers among names of the same place."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.ids import derived_seed, digest
from merkhet.core.schemas import CANDIDATES, candidate_set_id, make_table
from merkhet.suites.lama_tk.options import LamaTkOptions
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts

TIME = "time"
"""The place of starts, ends and points in time; names have the places subject and object."""
PLACE = f"case when mask in ('subject', 'object') then mask else '{TIME}' end"
"""SQL for the place that a mask is in."""
RIGHT = 10
"""One in so many names that are offered is right at most."""
TRIES = 20
"""How often a name is drawn for one that is to be found; the rest is drawn from the names whatever their frequency."""


@dataclass(frozen=True)
class Pools:
    """The names that occur in each place of a relation, by the name of their candidate set.

    ``drawn`` are sets that are too large to be offered whole: ``count`` names of each are. ``stated`` has their names
    once for each fact. ``near`` are the names in a place by the name in the other: who held an office, what somebody
    held. ``ends`` are the names of the subject and the object of each fact.
    """

    names: Mapping[str, Sequence[str]]
    table: pa.Table
    drawn: frozenset[str]
    count: int
    seed: int
    stated: Mapping[str, Sequence[str]]
    near: Mapping[tuple[str, str, str], Sequence[str]]
    ends: Mapping[str, tuple[str, str]]


def read_pools(statements: pa.Table, facts: TemporalFacts, options: LamaTkOptions, seed: int) -> Pools:
    """What stands in the places of facts, and what is right there: in a marriage, either may be the subject."""
    numbered = facts.symbols.append_column("number", pa.array(range(facts.symbols.num_rows)))
    with duckdb.connect() as connection:
        connection.register("statements", statements)
        connection.register("facts", facts.table)
        connection.register("symbols", numbered)
        rows = connection.sql(
            f"""with stood as (
                select relation, 'subject' as place, subject as symbol from facts
                union select relation, 'object', object from facts
                union select relation, '{TIME}', '@' || "start" from facts
                union select relation, '{TIME}', '@' || "end" from facts
                union select relation, {PLACE}, unnest(answers) from statements
            ), named as (
                select relation, place, name, min(case when kind = 'time' then number else 0 end) as number
                from stood join symbols using (symbol) group by relation, place, name
            ) select relation, place, list(name order by number, name) from named
            group by relation, place order by relation, place"""
        ).fetchall()
        stated = connection.sql(
            f"""with stood as (
                select relation, 'subject' as place, subject_name as name from facts
                union all select relation, 'object', object_name from facts
                union all select relation, '{TIME}', name from facts join symbols on symbol = '@' || "start"
                union all select relation, '{TIME}', name from facts join symbols on symbol = '@' || "end"
            ) select relation, place, list(name order by name) from stood group by relation, place"""
        ).fetchall()
        near = connection.sql(
            """with pairs as (
                select relation, 'subject' as place, object_name as other, subject_name as name from facts
                union select relation, 'object', subject_name, object_name from facts
            ) select relation, place, other, list(name order by name) from pairs
            group by relation, place, other order by relation, place, other"""
        ).fetchall()
    sets = [candidate_set_id(f"{relation}/{place}", names) for relation, place, names in rows]
    count = options.candidates
    whole = options.granularity == "year"
    drawn = {
        name
        for name, (_, place, names) in zip(sets, rows, strict=True)
        if count is not None and len(names) > count and not (whole and place == TIME)
    }
    content = digest([near, sorted(stated)]) if drawn else ""
    by_place = {(relation, place): names for relation, place, names in stated}
    table = pa.table(
        {
            "relation": [row[0] for row in rows],
            "place": [row[1] for row in rows],
            "candidate_set": sets,
            # What a question offers is part of what it is, and so of its id.
            "offered": [f"{name}/{count}/{seed}/{content}" if name in drawn else name for name in sets],
        }
    )
    ends = (facts.table[name].to_pylist() for name in ("fact_id", "subject_name", "object_name"))
    return Pools(
        names={name: row[2] for name, row in zip(sets, rows, strict=True)},
        table=table,
        drawn=frozenset(drawn),
        count=count or 0,
        seed=seed,
        stated={name: by_place[row[:2]] for name, row in zip(sets, rows, strict=True) if name in drawn},
        near={(relation, place, other): names for relation, place, other, names in near},
        ends={fact: (subject, other) for fact, subject, other in zip(*ends, strict=True)},
    )


def with_candidates(asked: pa.Table, pools: Pools) -> tuple[pa.Table, pa.Table, int]:
    """The questions with what they offer, the sets that are offered whole, and how many questions were left out.

    Left out are those that would offer nothing but right answers.
    """
    sets: list[str | None] = []
    choices: list[list[str] | None] = []
    kept = []
    for row in asked.select(
        ["question_id", "prompt", "answers", "target", "candidate_set", "facts", "domain", "template"]
    ).to_pylist():
        name = row["candidate_set"]
        drawn = _drawn(row, pools) if name in pools.drawn else None
        kept.append(not set(row["answers"]).issuperset(pools.names[name] if drawn is None else drawn))
        sets.append(name if drawn is None else None)
        choices.append(drawn)
    columns = {name: asked[name] for name in asked.column_names}
    columns["candidate_set"] = pa.array(sets, pa.string())
    columns["choices"] = pa.array(choices, pa.list_(pa.string()))
    table = pa.table(columns).filter(pa.array(kept, pa.bool_()))
    rows = [
        {"candidate_set": name, "candidates": list(pools.names[name])}
        for name in sorted(pc.unique(table["candidate_set"]).drop_null().to_pylist())
    ]
    return table, make_table(CANDIDATES, rows), asked.num_rows - table.num_rows


def _drawn(row: Mapping[str, Any], pools: Pools) -> list[str]:
    """As many names as are to be offered: the one that was left out, others that are right, and wrong ones.

    Right ones are at most a tenth of all: of a parliament's members, hundreds are right, and a guess would be. Up to
    half of the wrong ones stood in the relation to the same at another time. The others are drawn as facts have them,
    so that what is right is not told by its being frequent. No wrong one stands in the prompt, where it would merely be
    repeated, or differs from a right answer by case alone.
    """
    mask = row["template"].rpartition("/")[2]
    subject, other = pools.ends[row["facts"][0]]
    near = pools.near.get((row["domain"], mask, other if mask == "subject" else subject), ())
    generator = random.Random(derived_seed("lama-tk candidates", pools.seed, row["question_id"]))
    others = [name for name in row["answers"] if name != row["target"]]
    right = [row["target"], *generator.sample(others, min(len(others), max(0, pools.count // RIGHT - 1)))]
    wrong = _Wrong(row["prompt"], row["answers"], generator)
    wanted = pools.count - len(right)
    wrong.draw(near, wanted // 2)
    wrong.draw_frequent(pools.stated[row["candidate_set"]], wanted)
    wrong.draw(pools.names[row["candidate_set"]], wanted)
    return sorted([*right, *wrong.names])


class _Wrong:
    """Names that are wrong in a prompt, drawn one after another; none twice, in whatever case."""

    def __init__(self, prompt: str, answers: Sequence[str], generator: random.Random) -> None:
        self.names: list[str] = []
        self._prompt = prompt
        self._generator = generator
        self._taken = {name.casefold() for name in answers}

    def draw(self, names: Sequence[str], count: int) -> None:
        """Go on until there are so many, or no more of these names; each is as likely as another."""
        for size in (min(len(names), count + 2 * len(self._taken)), len(names)):
            for name in self._generator.sample(names, size) if len(self.names) < count else ():
                self._take(name, count)

    def draw_frequent(self, stated: Sequence[str], count: int) -> None:
        """Go on until there are so many, or they do not turn up; a name is as likely as it is frequent."""
        for _ in range(TRIES * count):
            if len(self.names) == count:
                break
            self._take(stated[self._generator.randrange(len(stated))], count)

    def _take(self, name: str, count: int) -> None:
        if len(self.names) < count and name.casefold() not in self._taken and name not in self._prompt:
            self.names.append(name)
            self._taken.add(name.casefold())
