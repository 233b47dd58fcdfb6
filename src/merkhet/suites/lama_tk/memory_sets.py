"""What a memorizing study stores and asks: its conditions, and the sets of statements that they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import atomic_path, write_json
from merkhet.core.recall_schemas import STATEMENTS, SYMBOLS
from merkhet.core.schemas import read_table, write_table
from merkhet.engine.build_step import BuildContents
from merkhet.engine.plan import StepContext
from merkhet.engine.run_files import ABOUT_FACTS, ABOUT_SETS, FACTS_FILE, SYMBOLS_FILE, read_json
from merkhet.engine.study import Study
from merkhet.suites.lama_tk.options import LamaTkOptions
from merkhet.suites.lama_tk.questions.masked_statements import masked_statements, without_conflict
from merkhet.suites.lama_tk.questions.order_queries import order_queries
from merkhet.suites.lama_tk.questions.statement_sql import remarks_of
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts, subset
from merkhet.suites.lama_tk.questions.time_queries import boundary_queries, controlled, implicit_queries
from merkhet.suites.lama_tk.questions.wordings import Wordings, read_wordings

KNOWN_FILE = ".merkhet/known.parquet"
STATEMENT, UNSEEN, BOUNDARY, IMPLICIT, ORDER = "statement", "unseen", "boundary", "implicit", "order"
TASKS = {
    "storage": (STATEMENT, UNSEEN),
    "boundary": (STATEMENT, BOUNDARY),
    "implicit": (STATEMENT, IMPLICIT, ORDER),
}
"""Each experiment with the tasks that are asked in it."""
_WITHOUT = "-without-conflict"
_IMPLICIT = {"stored": STATEMENT, IMPLICIT: IMPLICIT, ORDER: ORDER}


@dataclass(frozen=True)
class Recipe:
    """How a set of statements is made from facts."""

    kind: str
    """Task that the statements are scored as."""
    facts: int | None
    """Number of facts; None for all."""
    conflict: bool | None = None
    """Whether statements with several right answers are kept; None where facts are chosen by their controls."""
    static: bool = False
    """Whether statements leave out times."""
    others: int = 0
    """Number of facts that are asked but not stored."""
    relation: str | None = None
    """Relation of the facts; any if None."""
    masks: tuple[str, ...] = ()
    """What may be masked; anything if empty."""


@dataclass(frozen=True)
class FactsParams:
    """The study as far as its facts depend on it, and the content of all that they are read from."""

    study: Study
    contents: BuildContents


@dataclass(frozen=True)
class FactsRuntime:
    """Options that decide whether the facts are enough."""

    options: LamaTkOptions


@dataclass(frozen=True)
class SetsParams:
    """The sets of statements to make."""

    recipes: Mapping[str, Recipe]
    stored: tuple[str, ...]
    """Sets that are stored, and so must not be empty."""
    entities: str
    seed: int
    remarks: tuple[str, ...]
    wordings: str | None
    """Hash of the user's wordings."""


@dataclass(frozen=True)
class SetsRuntime:
    """Where the user's wordings are."""

    wordings: str | None


@dataclass(frozen=True)
class Condition:
    """What a model stores, and what it is asked then.

    ``label`` follows the model's name in tables; ``stored`` and ``asked`` name sets, ``settings`` are those of learning
    that are different here. ``about`` is what analyses go by: facts, conflict, static, dynamic.
    """

    label: str
    stored: str
    asked: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Design:
    """The conditions of a study, how each of their sets is made, and what is to be said of them."""

    conditions: tuple[Condition, ...]
    recipes: Mapping[str, Recipe]
    remarks: tuple[str, ...] = ()


def set_file(name: str) -> str:
    """Where a set of statements lies in a run."""
    return f".merkhet/sets/{name}.parquet"


def write_facts(context: StepContext[FactsParams, FactsRuntime], facts: TemporalFacts, more: Mapping[str, Any]) -> None:
    """Write facts with times, their symbols and what is known of them; refuses what has none of the step's conditions.

    What is known is how many facts of which kind each relation has, and more.
    """
    counted = facts.table.group_by(["relation", "point"], use_threads=False).aggregate([("fact_id", "count")])
    relations: dict[str, dict[str, int]] = {}
    for row in sorted(counted.to_pylist(), key=lambda row: (row["relation"], row["point"])):
        kinds = relations.setdefault(row["relation"], {"intervals": 0, "points": 0})
        kinds["points" if row["point"] else "intervals"] += row["fact_id_count"]
    about = {
        "facts": facts.table.num_rows,
        "symbols": facts.symbols.num_rows,
        "relations": relations,
        "counts": dict(facts.counts),
        "labels": dict(facts.labels),
        "remarks": list(facts.remarks),
        **more,
    }
    design(context.runtime.options, about)
    for table, file in ((facts.table, FACTS_FILE), (facts.known, KNOWN_FILE)):
        with atomic_path(context.folder / file) as path:
            pq.write_table(table, path, compression="zstd")
    write_table(SYMBOLS, facts.symbols, context.folder / SYMBOLS_FILE)
    write_json(context.folder / ABOUT_FACTS, about)


def summarize_sets(folder: Path) -> list[str]:
    """Return remarks on the sets of a run."""
    return [f"  {remark}" for remark in read_json(folder / ABOUT_SETS)["remarks"]]


def summarize_facts(folder: Path) -> list[str]:
    """Count the facts of a run, with remarks on them."""
    about = read_json(folder / ABOUT_FACTS)
    line = f"{about['experiment']}: {about['facts']:,} facts with times, {about['symbols']:,} entities and times"
    if "controlled" in about:
        line += f"; {about['controlled']:,} facts of subjects that have controls"
    return [line, *(f"  {remark}" for remark in about["remarks"])]


def make_sets(context: StepContext[SetsParams, SetsRuntime]) -> None:
    """Make the sets of statements that the conditions of a study store and ask; refuses one that stores nothing."""
    params = context.params
    about = read_json(context.folder / ABOUT_FACTS)
    facts = TemporalFacts(
        pq.read_table(context.folder / FACTS_FILE),
        read_table(SYMBOLS, context.folder / SYMBOLS_FILE),
        about["counts"],
        tuple(about["remarks"]),
        about["labels"],
        pq.read_table(context.folder / KNOWN_FILE),
    )
    given = context.runtime.wordings
    maker = _Maker(facts, read_wordings(context.home / given if given else None), params.entities, params.seed)
    remarks: dict[str, None] = {}
    sizes: dict[str, int] = {}
    for name, recipe in params.recipes.items():
        table = maker.make(recipe)
        remarks |= dict.fromkeys(remarks_of(table))
        sizes[name] = table.num_rows
        if not table.num_rows and name in params.stored:
            what = " without conflict" if recipe.conflict is False else ""
            raise InputError(
                f"no statement{what} can be made of these facts, so there is nothing to store. Give more "
                "facts" + (", or --set options.conflict=[with]" if what else "")
            )
        write_table(STATEMENTS, table, context.folder / set_file(name))
    for name, size in sizes.items():
        if sizes.get(f"{name}{_WITHOUT}") == size and name in params.stored:
            count = params.recipes[name].facts
            remarks[f"No statement of {count:,} facts has several right answers: with conflict is without."] = None
    write_json(context.folder / ABOUT_SETS, {"statements": sizes, "remarks": [*params.remarks, *remarks]})


def design(options: LamaTkOptions, about: Mapping[str, Any]) -> Design:
    """The conditions of a study of some options about facts of which ``about`` is known; refuses what has none."""
    made = {"storage": _storage, "boundary": _boundary, "implicit": _implicit}[options.experiment](options, about)
    used = dict.fromkeys(name for one in made.conditions for name in (one.stored, *one.asked))
    return replace(made, recipes={name: made.recipes[name] for name in used})


def remaining_conditions(made: Design, sizes: Mapping[str, int]) -> tuple[Condition, ...]:
    """The conditions that remain once it is known how many statements each set has.

    Where no statement has several right answers, there is nothing to leave out; a set without statements is not asked.
    """
    found = []
    for one in made.conditions:
        twin = one.stored.removesuffix(_WITHOUT)
        if twin == one.stored or sizes.get(twin) != sizes[one.stored]:
            found.append(replace(one, asked=tuple(name for name in one.asked if sizes[name])))
    return tuple(found)


def _storage(options: LamaTkOptions, about: Mapping[str, Any]) -> Design:
    total = about["facts"]
    sizes = list(dict.fromkeys(min(size or total, total) for size in options.sizes))
    more = sorted({size for size in options.sizes if size and size > total})
    remarks = [f"There are {total:,} facts, so that {size:,} cannot be stored: all are." for size in more]
    conditions = []
    recipes: dict[str, Recipe] = {}
    for size in sizes:
        others = min(*sizes, total - size)
        for conflict in [kind == "with" for kind in options.conflict]:
            stored = f"{size}-facts" + ("" if conflict else _WITHOUT)
            recipe = Recipe(STATEMENT, size, conflict)
            recipes[stored] = recipe
            recipes[f"{stored}-{UNSEEN}"] = replace(recipe, kind=UNSEEN, others=others)
            asked = (stored, *([f"{stored}-{UNSEEN}"] if others else []))
            label = f"{size:,} facts" + ("" if conflict else " without conflict")
            tells = {"facts": size, "conflict": conflict, "static": False}
            conditions.append(Condition(label, stored, asked, about=tells))
        if options.static:
            stored = f"{size}-facts-static"
            recipes[stored] = Recipe(STATEMENT, size, conflict=True, static=True)
            tells = {"facts": size, "conflict": True, "static": True}
            conditions.append(Condition(f"{size:,} facts, static", stored, (stored,), about=tells))
    return Design(tuple(conditions), recipes, tuple(remarks))


def _boundary(options: LamaTkOptions, about: Mapping[str, Any]) -> Design:
    relations, wanted = about["relations"], options.relation
    lasting = {name: kinds["intervals"] for name, kinds in relations.items() if kinds["intervals"]}
    if wanted is not None and wanted not in relations:
        raise InputError(f"no fact has the relation {wanted!r} (options.relation); {did_you_mean(wanted, relations)}")
    if wanted is not None and wanted not in lasting:
        raise InputError(
            f"{wanted!r} (options.relation) is a relation of points in time, which have no start and end to ask for; "
            + (did_you_mean("", lasting) if lasting else "and no other relation here has any")
        )
    if not lasting:
        raise InputError("no fact has a start and an end, so there are no boundaries to ask for. Give other knowledge.")
    relation = wanted or max(lasting, key=lambda name: lasting[name])
    count, remarks = _count(options.facts, lasting[relation], f"facts of {relation!r}")
    recipes = {
        "stored": Recipe(STATEMENT, count, relation=relation, masks=("start", "end")),
        BOUNDARY: Recipe(BOUNDARY, count, relation=relation),
    }
    conditions = tuple(
        Condition(
            f"times left out {share}%",
            "stored",
            ("stored", BOUNDARY),
            {"dynamic": share},
            {"facts": count, "dynamic": share, "relation": relation},
        )
        for share in options.dynamic
    )
    return Design(conditions, recipes, remarks)


def _implicit(options: LamaTkOptions, about: Mapping[str, Any]) -> Design:
    # Subjects are taken whole, so that there may be a few more facts than were asked for.
    _, remarks = _count(options.facts, about["controlled"], "facts with controls")
    recipes = {name: Recipe(kind, options.facts) for name, kind in _IMPLICIT.items()}
    condition = Condition("stored", "stored", tuple(_IMPLICIT), about={"facts": about["controlled"]})
    return Design((condition,), recipes, remarks)


def _count(wanted: int | None, there: int, what: str) -> tuple[int, tuple[str, ...]]:
    if not wanted or wanted <= there:
        return wanted or there, ()
    return there, (f"There are {there:,} {what}, so that {wanted:,} cannot be stored: all are.",)


class _Maker:
    """Sets of statements from facts, each by its recipe."""

    def __init__(self, facts: TemporalFacts, wordings: Wordings, entities: str, seed: int) -> None:
        self.facts, self.wordings, self.entities, self.seed = facts, wordings, entities, seed

    def make(self, recipe: Recipe) -> pa.Table:
        """The statements of a set, named by the task that they are scored as."""
        kind = recipe.kind
        if kind == BOUNDARY:
            return boundary_queries(self._lasting(recipe), self.wordings, entities=self.entities)
        if kind in (IMPLICIT, ORDER):
            facts = controlled(self.facts, recipe.facts, self.seed)
            if kind == ORDER:
                return order_queries(facts, self.wordings, entities=self.entities)
            return implicit_queries(facts, self.wordings, seed=self.seed, entities=self.entities)
        return self._unseen(recipe) if kind == UNSEEN else self._stored(recipe)

    def _stored(self, recipe: Recipe) -> pa.Table:
        if recipe.relation:
            facts = self._lasting(recipe)
        elif recipe.conflict is not None:
            facts = subset(self.facts, recipe.facts, self.seed)
        else:
            facts = controlled(self.facts, recipe.facts, self.seed)
        made = self._statements(facts, recipe.masks, static=recipe.static)
        return without_conflict(made) if recipe.conflict is False else made

    def _unseen(self, recipe: Recipe) -> pa.Table:
        """Statements of as many facts that are not stored; those that read like a stored one are no such statements."""
        stored = subset(self.facts, recipe.facts, self.seed)
        more = subset(self.facts, (recipe.facts or 0) + recipe.others, self.seed)
        new = pc.invert(pc.is_in(more.table["fact_id"], value_set=stored.table["fact_id"].combine_chunks()))
        asked = self._statements(replace(more, table=more.table.filter(new)), ())
        known = self._statements(stored, ())["prompt"].combine_chunks()
        asked = asked.filter(pc.invert(pc.is_in(asked["prompt"], value_set=known)))
        asked = without_conflict(asked) if recipe.conflict is False else asked
        named = pa.array([UNSEEN] * asked.num_rows, pa.string())
        return asked.set_column(asked.column_names.index("task"), "task", named)

    def _lasting(self, recipe: Recipe) -> TemporalFacts:
        table = self.facts.table
        own = pc.and_(pc.equal(table["relation"], recipe.relation), pc.invert(table["point"]))
        return subset(replace(self.facts, table=table.filter(own)), recipe.facts, self.seed)

    def _statements(self, facts: TemporalFacts, masks: Sequence[str], *, static: bool = False) -> pa.Table:
        return masked_statements(facts, self.wordings, entities=self.entities, masks=tuple(masks), static=static)
