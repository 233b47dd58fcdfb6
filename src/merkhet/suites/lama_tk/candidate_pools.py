"""Candidate pools of temporal questions: the names or times that occur in one role of a relation."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.ids import derived_seed, digest
from merkhet.core.schemas import CANDIDATES, candidate_set_id, make_table
from merkhet.suites.lama_tk.options import LamaTkOptions
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts, open_workbench

TIME = "time"
"""Role of starts, ends and points in time; entity names have the role ``subject`` or ``object``."""
ROLE_SQL = f"case when mask in ('subject', 'object') then mask else '{TIME}' end"
"""SQL expression that maps the column ``mask`` to a role."""
RIGHT_DIVISOR = 10
"""Minimum number of sampled candidates per right answer."""
DRAWS_PER_NAME = 20
"""Number of draws by frequency per distractor; distractors still missing afterwards are drawn uniformly."""


@dataclass(frozen=True)
class Pools:
    """Candidate pools: the names and times that occur in each role of each relation."""

    names: Mapping[str, Sequence[str]]
    """All names of each candidate set, by the id of the set."""
    table: pa.Table
    """Candidate set of each relation and role; ``offered`` identifies the candidates in question ids."""
    sampled: frozenset[str]
    """Ids of candidate sets that are too large to be offered completely; a question gets a sample of the names."""
    count: int
    """Number of candidates in a sample."""
    seed: int
    mentions: Mapping[str, Sequence[str]]
    """Names of each sampled set; a name is repeated for each fact that mentions it."""
    related: Mapping[tuple[str, str, str], Sequence[str]]
    """Names by relation, role and the name in the other role, such as all holders of an office."""
    fact_names: Mapping[str, tuple[str, str]]
    """Names of the subject and the object of each fact."""


def make_pools(statements: pa.Table, facts: TemporalFacts, options: LamaTkOptions, seed: int) -> Pools:
    """Collect the names and times in each role of each relation.

    Right answers of the statements are included, because either entity of a symmetric relation may be its subject.
    """
    numbered = facts.symbols.append_column("number", pa.array(range(facts.symbols.num_rows)))
    with open_workbench(statements=statements, facts=facts.table, symbols=numbered) as connection:
        rows = connection.sql(
            f"""with occurring as (
                select relation, 'subject' as role, subject as symbol from facts
                union select relation, 'object', object from facts
                union select relation, '{TIME}', '@' || "start" from facts
                union select relation, '{TIME}', '@' || "end" from facts
                union select relation, {ROLE_SQL}, unnest(answers) from statements
            ), named as (
                select relation, role, name, min(case when kind = 'time' then number else 0 end) as number
                from occurring join symbols using (symbol) group by relation, role, name
            ) select relation, role, list(name order by number, name) from named
            group by relation, role order by relation, role"""
        ).fetchall()
        mentions = connection.sql(
            f"""with mentioned as (
                select relation, 'subject' as role, subject_name as name from facts
                union all select relation, 'object', object_name from facts
                union all select relation, '{TIME}', name from facts join symbols on symbol = '@' || "start"
                union all select relation, '{TIME}', name from facts join symbols on symbol = '@' || "end"
            ) select relation, role, list(name order by name) from mentioned group by relation, role"""
        ).fetchall()
        related = connection.sql(
            """with pairs as (
                select relation, 'subject' as role, object_name as counterpart, subject_name as name from facts
                union select relation, 'object', subject_name, object_name from facts
            ) select relation, role, counterpart, list(name order by name) from pairs
            group by relation, role, counterpart order by relation, role, counterpart"""
        ).fetchall()
    sets = [candidate_set_id(f"{relation}/{role}", names) for relation, role, names in rows]
    count, all_years = options.candidates, options.granularity == "year"
    sampled = {
        set_id
        for set_id, (_, role, names) in zip(sets, rows, strict=True)
        if count is not None and len(names) > count and not (all_years and role == TIME)
    }
    content = digest([related, sorted(mentions)]) if sampled else ""
    mentions_by_role = {(relation, role): names for relation, role, names in mentions}
    table = pa.table(
        {
            "relation": [row[0] for row in rows],
            "role": [row[1] for row in rows],
            "candidate_set": sets,
            # The candidates are part of a question's identity, so they enter its id.
            "offered": [f"{set_id}/{count}/{seed}/{content}" if set_id in sampled else set_id for set_id in sets],
        }
    )
    fact_columns = (facts.table[column].to_pylist() for column in ("fact_id", "subject_name", "object_name"))
    return Pools(
        names={set_id: row[2] for set_id, row in zip(sets, rows, strict=True)},
        table=table,
        sampled=frozenset(sampled),
        count=count or 0,
        seed=seed,
        mentions={
            set_id: mentions_by_role[row[:2]] for set_id, row in zip(sets, rows, strict=True) if set_id in sampled
        },
        related={(relation, role, counterpart): names for relation, role, counterpart, names in related},
        fact_names={
            fact_id: (subject, object_name) for fact_id, subject, object_name in zip(*fact_columns, strict=True)
        },
    )


def add_candidates(questions: pa.Table, pools: Pools) -> tuple[pa.Table, pa.Table, int]:
    """Add candidates to questions; drop questions whose candidates are all right answers.

    Returns:
        The remaining questions, the candidate sets that are offered completely, and the number of dropped questions.
    """
    sets: list[str | None] = []
    choices: list[list[str] | None] = []
    answerable = []
    for row in questions.select(
        ["question_id", "prompt", "answers", "target", "candidate_set", "facts", "domain", "template"]
    ).to_pylist():
        set_id = row["candidate_set"]
        sampled = _draw_choices(row, pools) if set_id in pools.sampled else None
        answerable.append(not set(row["answers"]).issuperset(pools.names[set_id] if sampled is None else sampled))
        sets.append(set_id if sampled is None else None)
        choices.append(sampled)
    columns = {column: questions[column] for column in questions.column_names}
    columns["candidate_set"] = pa.array(sets, pa.string())
    columns["choices"] = pa.array(choices, pa.list_(pa.string()))
    table = pa.table(columns).filter(pa.array(answerable, pa.bool_()))
    rows = [
        {"candidate_set": set_id, "candidates": list(pools.names[set_id])}
        for set_id in sorted(pc.unique(table["candidate_set"]).drop_null().to_pylist())
    ]
    return table, make_table(CANDIDATES, rows), questions.num_rows - table.num_rows


def _draw_choices(row: Mapping[str, Any], pools: Pools) -> list[str]:
    """Draw the choices of a question: the target, other right answers, and distractors.

    At most a tenth of the choices are right; otherwise, guessing would succeed if there are hundreds of right answers
    (members of a parliament). Up to half of the distractors are names that other facts relate to the same entity, such
    as other holders of an office. The remaining distractors are drawn by their frequency in the facts, so frequency
    does not reveal the right answers. No distractor occurs in the prompt or equals a right answer except for case.
    """
    mask = row["template"].rpartition("/")[2]
    subject_name, object_name = pools.fact_names[row["facts"][0]]
    related = pools.related.get((row["domain"], mask, object_name if mask == "subject" else subject_name), ())
    generator = random.Random(derived_seed("lama-tk candidates", pools.seed, row["question_id"]))
    other_answers = [name for name in row["answers"] if name != row["target"]]
    right = [
        row["target"],
        *generator.sample(other_answers, min(len(other_answers), max(0, pools.count // RIGHT_DIVISOR - 1))),
    ]
    distractors = _Distractors(row["prompt"], row["answers"], generator)
    wrong_count = pools.count - len(right)
    distractors.draw(related, wrong_count // 2)
    distractors.draw_frequent(pools.mentions[row["candidate_set"]], wrong_count)
    distractors.draw(pools.names[row["candidate_set"]], wrong_count)
    return sorted([*right, *distractors.names])


class _Distractors:
    """Distractors of one prompt, distinct regardless of case."""

    def __init__(self, prompt: str, answers: Sequence[str], generator: random.Random) -> None:
        self.names: list[str] = []
        self._prompt = prompt
        self._generator = generator
        self._excluded = {name.casefold() for name in answers}

    def draw(self, names: Sequence[str], count: int) -> None:
        """Draw distractors uniformly from ``names`` until there are ``count`` in total or ``names`` is exhausted."""
        for size in (min(len(names), count + 2 * len(self._excluded)), len(names)):
            for name in self._generator.sample(names, size) if len(self.names) < count else ():
                self._add(name, count)

    def draw_frequent(self, mentions: Sequence[str], count: int) -> None:
        """Draw distractors by frequency until there are ``count`` in total or no draws are left."""
        for _ in range(DRAWS_PER_NAME * count):
            if len(self.names) == count:
                break
            self._add(mentions[self._generator.randrange(len(mentions))], count)

    def _add(self, name: str, count: int) -> None:
        if len(self.names) < count and name.casefold() not in self._excluded and name not in self._prompt:
            self.names.append(name)
            self._excluded.add(name.casefold())
