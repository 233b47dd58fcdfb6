"""Conditions of a memorizing study, and the sets of statements that models store and are asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
from merkhet.suites.lama_tk.questions.masked_statements import drop_conflicts, make_masked_statements
from merkhet.suites.lama_tk.questions.order_queries import make_order_queries
from merkhet.suites.lama_tk.questions.statement_sql import read_remarks
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts, sample_facts
from merkhet.suites.lama_tk.questions.time_queries import (
    make_boundary_queries,
    make_implicit_queries,
    select_controlled,
)
from merkhet.suites.lama_tk.questions.wordings import Wordings, read_wordings

ALL_FACTS_FILE = ".merkhet/known.parquet"
STATEMENT, UNSEEN, BOUNDARY, IMPLICIT, ORDER = "statement", "unseen", "boundary", "implicit", "order"
COUNTED = "counted"
"""Name of the set of statements whose targets the baseline counts: those of facts that no statement asks about."""
TASKS = {
    "storage": (STATEMENT, UNSEEN),
    "boundary": (STATEMENT, BOUNDARY),
    "implicit": (STATEMENT, IMPLICIT, ORDER),
}
"""Tasks that models are asked in each experiment."""
_WITHOUT_SUFFIX = "-without-conflict"
_IMPLICIT_SETS = {"stored": STATEMENT, IMPLICIT: IMPLICIT, ORDER: ORDER}


@dataclass(frozen=True)
class Recipe:
    """Instructions for making a set of statements from facts."""

    kind: str
    """Task under which the statements are scored."""
    facts: int | None
    """Number of facts; None means all facts."""
    conflict: bool | None = None
    """Whether statements with several right answers are included.

    None includes them too. Without a ``relation``, None also selects facts by :func:`select_controlled`."""
    static: bool = False
    """Whether statements leave out times."""
    unseen_facts: int = 0
    """Number of facts that models are asked about without having stored them."""
    relation: str | None = None
    """Relation of the facts; None allows all relations."""
    masks: tuple[str, ...] = ()
    """Elements to mask, such as ``start`` and ``end``; empty for all."""


@dataclass(frozen=True)
class FactsParams:
    """Parameters of the step that gathers facts: relevant study settings and hashes of the sources."""

    study: Study
    contents: BuildContents


@dataclass(frozen=True)
class FactsRuntime:
    """Study options, to check whether the gathered facts suffice."""

    options: LamaTkOptions


@dataclass(frozen=True)
class SetsParams:
    """Parameters of the step that makes sets of statements."""

    recipes: Mapping[str, Recipe]
    stored: tuple[str, ...]
    """Names of the sets that models store; these sets must not be empty."""
    entities: str
    seed: int
    remarks: tuple[str, ...]
    wordings: str | None
    """Hash of the user's wordings file; None for the built-in wordings."""


@dataclass(frozen=True)
class SetsRuntime:
    """Path of the user's wordings file; None for the built-in wordings."""

    wordings: Path | None


@dataclass(frozen=True)
class Condition:
    """Experimental condition: the statements that a model stores, and those that it is asked afterwards."""

    label: str
    """Text that follows the model's name in tables."""
    stored: str
    """Name of the set of statements that the model stores."""
    asked: tuple[str, ...]
    """Names of the sets of statements that the model is asked."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Training settings that replace those of the study."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Experimental factors for analyses, such as ``facts``, ``conflict``, ``static`` and ``dynamic``."""


@dataclass(frozen=True)
class Design:
    """Design of a study: its conditions, the recipe of each set of statements by name, and remarks."""

    conditions: tuple[Condition, ...]
    recipes: Mapping[str, Recipe]
    remarks: tuple[str, ...] = ()


def set_file(name: str) -> str:
    """Return the path of a set of statements, relative to the run folder."""
    return f".merkhet/sets/{name}.parquet"


def write_facts(
    context: StepContext[FactsParams, FactsRuntime], facts: TemporalFacts, additional: Mapping[str, Any]
) -> None:
    """Write temporal facts, their symbols and a summary.

    The summary contains counts by relation and kind of time (interval or point), remarks, and ``additional``.

    Raises:
        InputError: The facts do not suffice for the study's options.
    """
    counts = facts.table.group_by(["relation", "point"], use_threads=False).aggregate([("fact_id", "count")])
    relations: dict[str, dict[str, int]] = {}
    for row in sorted(counts.to_pylist(), key=lambda row: (row["relation"], row["point"])):
        kinds = relations.setdefault(row["relation"], {"intervals": 0, "points": 0})
        kinds["points" if row["point"] else "intervals"] += row["fact_id_count"]
    summary = {
        "facts": facts.table.num_rows,
        "symbols": facts.symbols.num_rows,
        "relations": relations,
        "counts": dict(facts.counts),
        "labels": dict(facts.labels),
        "remarks": list(facts.remarks),
        **additional,
    }
    make_design(context.runtime.options, summary)
    for table, file in ((facts.table, FACTS_FILE), (facts.all_facts, ALL_FACTS_FILE)):
        with atomic_path(context.folder / file) as path:
            pq.write_table(table, path, compression="zstd")
    write_table(SYMBOLS, facts.symbols, context.folder / SYMBOLS_FILE)
    write_json(context.folder / ABOUT_FACTS, summary)


def summarize_sets(folder: Path) -> list[str]:
    """Return the remarks on a run's sets of statements as indented lines."""
    return [f"  {remark}" for remark in read_json(folder / ABOUT_SETS)["remarks"]]


def summarize_facts(folder: Path) -> list[str]:
    """Return lines that state the number of facts of a run and the remarks on them."""
    about = read_json(folder / ABOUT_FACTS)
    line = f"{about['experiment']}: {about['facts']:,} facts with times, {about['symbols']:,} entities and times"
    if "controlled" in about:
        line += f"; {about['controlled']:,} facts of subjects that have controls"
    return [line, *(f"  {remark}" for remark in about["remarks"])]


def make_sets(context: StepContext[SetsParams, SetsRuntime]) -> None:
    """Make the sets of statements that models store or are asked under the conditions of a study.

    Raises:
        InputError: A set that models store is empty.
    """
    params = context.params
    summary = read_json(context.folder / ABOUT_FACTS)
    facts = TemporalFacts(
        pq.read_table(context.folder / FACTS_FILE),
        read_table(SYMBOLS, context.folder / SYMBOLS_FILE),
        summary["counts"],
        tuple(summary["remarks"]),
        summary["labels"],
        pq.read_table(context.folder / ALL_FACTS_FILE),
    )
    wordings_path = context.runtime.wordings
    maker = _SetMaker(
        facts, read_wordings(context.home / wordings_path if wordings_path else None), params.entities, params.seed
    )
    remarks: dict[str, None] = {}
    sizes: dict[str, int] = {}
    asked: set[str] = set()
    for name, recipe in params.recipes.items():
        table = maker.make(recipe)
        asked.update(table["fact_id"].unique().to_pylist())
        remarks |= dict.fromkeys(read_remarks(table))
        sizes[name] = table.num_rows
        if not table.num_rows and name in params.stored:
            qualifier = " without conflict" if recipe.conflict is False else ""
            raise InputError(
                f"there is nothing to store: no statement{qualifier} can be made of these facts. Give more facts"
                + (", or --set options.conflict=[with]" if qualifier else "")
            )
        write_table(STATEMENTS, table, context.folder / set_file(name))
    counted = maker.make_unasked(asked)
    write_table(STATEMENTS, counted, context.folder / set_file(COUNTED))
    for name, size in sizes.items():
        if sizes.get(f"{name}{_WITHOUT_SUFFIX}") == size and name in params.stored:
            count = params.recipes[name].facts
            remarks[f"No statement of {count:,} facts has several right answers: both conditions are equal."] = None
    sizes[COUNTED] = counted.num_rows
    write_json(context.folder / ABOUT_SETS, {"statements": sizes, "remarks": [*params.remarks, *remarks]})


def make_design(options: LamaTkOptions, fact_summary: Mapping[str, Any]) -> Design:
    """Design the conditions of a memorizing study and the sets of statements that they use.

    Args:
        fact_summary: The summary that :func:`write_facts` writes.

    Raises:
        InputError: The facts do not suffice for the options.
    """
    designers = {"storage": _design_storage, "boundary": _design_boundary, "implicit": _design_implicit}
    design = designers[options.experiment](options, fact_summary)
    used = dict.fromkeys(name for condition in design.conditions for name in (condition.stored, *condition.asked))
    return replace(design, recipes={name: design.recipes[name] for name in used})


def remaining_conditions(design: Design, sizes: Mapping[str, int]) -> tuple[Condition, ...]:
    """Return the conditions that are worth running, given the number of statements in each set (``sizes``).

    A condition without conflict is dropped if it equals the one with conflict. Empty sets are not asked.
    """
    conditions = []
    for condition in design.conditions:
        with_conflict = condition.stored.removesuffix(_WITHOUT_SUFFIX)
        if with_conflict == condition.stored or sizes.get(with_conflict) != sizes[condition.stored]:
            conditions.append(replace(condition, asked=tuple(name for name in condition.asked if sizes[name])))
    return tuple(conditions)


def _design_storage(options: LamaTkOptions, fact_summary: Mapping[str, Any]) -> Design:
    total = fact_summary["facts"]
    sizes = list(dict.fromkeys(min(size or total, total) for size in options.sizes))
    too_large = sorted({size for size in options.sizes if size and size > total})
    remarks = [f"There are {total:,} facts, so that {size:,} cannot be stored: all are." for size in too_large]
    conditions = []
    recipes: dict[str, Recipe] = {}
    for size in sizes:
        unseen_facts = min(*sizes, total - size)
        for conflict in [kind == "with" for kind in options.conflict]:
            stored = f"{size}-facts" + ("" if conflict else _WITHOUT_SUFFIX)
            recipe = Recipe(STATEMENT, size, conflict)
            recipes[stored] = recipe
            recipes[f"{stored}-{UNSEEN}"] = replace(recipe, kind=UNSEEN, unseen_facts=unseen_facts)
            asked = (stored, *([f"{stored}-{UNSEEN}"] if unseen_facts else []))
            label = f"{size:,} facts" + ("" if conflict else " without conflict")
            attributes = {"facts": size, "conflict": conflict, "static": False}
            conditions.append(Condition(label, stored, asked, attributes=attributes))
        if options.static:
            stored = f"{size}-facts-static"
            recipes[stored] = Recipe(STATEMENT, size, conflict=True, static=True)
            attributes = {"facts": size, "conflict": True, "static": True}
            conditions.append(Condition(f"{size:,} facts, static", stored, (stored,), attributes=attributes))
    return Design(tuple(conditions), recipes, tuple(remarks))


def _design_boundary(options: LamaTkOptions, fact_summary: Mapping[str, Any]) -> Design:
    relations, requested = fact_summary["relations"], options.relation
    interval_counts = {name: kinds["intervals"] for name, kinds in relations.items() if kinds["intervals"]}
    if requested is not None and requested not in relations:
        raise InputError(
            f"no fact has the relation {requested!r} (options.relation); {did_you_mean(requested, relations)}"
        )
    if requested is not None and requested not in interval_counts:
        raise InputError(
            f"facts of {requested!r} (options.relation) are points in time without a start and an end to ask for; "
            + (did_you_mean("", interval_counts) if interval_counts else "no other relation has any either")
        )
    if not interval_counts:
        raise InputError("there are no boundaries to ask for: no fact has a start and an end. Give other knowledge.")
    relation = requested or max(interval_counts, key=lambda name: interval_counts[name])
    count, remarks = _limit_count(options.facts, interval_counts[relation], f"facts of {relation!r}")
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


def _design_implicit(options: LamaTkOptions, fact_summary: Mapping[str, Any]) -> Design:
    # All facts of a subject are selected, so there may be a few more facts than requested.
    _, remarks = _limit_count(options.facts, fact_summary["controlled"], "facts with controls")
    recipes = {name: Recipe(kind, options.facts) for name, kind in _IMPLICIT_SETS.items()}
    condition = Condition("stored", "stored", tuple(_IMPLICIT_SETS), attributes={"facts": fact_summary["controlled"]})
    return Design((condition,), recipes, remarks)


def _limit_count(requested: int | None, available: int, kind: str) -> tuple[int, tuple[str, ...]]:
    if not requested or requested <= available:
        return requested or available, ()
    return available, (f"There are {available:,} {kind}, so that {requested:,} cannot be stored: all are.",)


class _SetMaker:
    """Maker of sets of statements from recipes."""

    def __init__(self, facts: TemporalFacts, wordings: Wordings, entities: str, seed: int) -> None:
        self.facts, self.wordings, self.entities, self.seed = facts, wordings, entities, seed

    def make(self, recipe: Recipe) -> pa.Table:
        """Make the statements of a recipe, labelled with the task under which they are scored."""
        kind = recipe.kind
        if kind == BOUNDARY:
            return make_boundary_queries(self._interval_facts(recipe), self.wordings, entities=self.entities)
        if kind in (IMPLICIT, ORDER):
            facts = select_controlled(self.facts, recipe.facts, self.seed)
            if kind == ORDER:
                return make_order_queries(facts, self.wordings, entities=self.entities)
            return make_implicit_queries(facts, self.wordings, seed=self.seed, entities=self.entities)
        return self._unseen_statements(recipe) if kind == UNSEEN else self._stored_statements(recipe)

    def make_unasked(self, asked: Collection[str]) -> pa.Table:
        """Make the statements of facts that share neither their id nor their two entities with the facts ``asked``."""
        table = self.facts.table
        is_asked = pc.is_in(table["fact_id"], value_set=pa.array(sorted(asked), pa.string()))
        ends = [table[name].to_pylist() for name in ("subject", "object")]
        pairs = [frozenset(pair) for pair in zip(*ends, strict=True)]
        asked_pairs = {pair for pair, is_in in zip(pairs, is_asked.to_pylist(), strict=True) if is_in}
        is_free = pa.array([pair not in asked_pairs for pair in pairs], pa.bool_())
        return self._statements(replace(self.facts, table=table.filter(is_free)), ())

    def _stored_statements(self, recipe: Recipe) -> pa.Table:
        if recipe.relation:
            facts = self._interval_facts(recipe)
        elif recipe.conflict is not None:
            facts = sample_facts(self.facts, recipe.facts, self.seed)
        else:
            facts = select_controlled(self.facts, recipe.facts, self.seed)
        statements = self._statements(facts, recipe.masks, static=recipe.static)
        return drop_conflicts(statements) if recipe.conflict is False else statements

    def _unseen_statements(self, recipe: Recipe) -> pa.Table:
        """Make statements of facts that are not stored; drop statements whose prompt is also stored."""
        stored = sample_facts(self.facts, recipe.facts, self.seed)
        larger_sample = sample_facts(self.facts, (recipe.facts or 0) + recipe.unseen_facts, self.seed)
        is_new = pc.invert(pc.is_in(larger_sample.table["fact_id"], value_set=stored.table["fact_id"].combine_chunks()))
        statements = self._statements(replace(larger_sample, table=larger_sample.table.filter(is_new)), ())
        stored_prompts = self._statements(stored, ())["prompt"].combine_chunks()
        statements = statements.filter(pc.invert(pc.is_in(statements["prompt"], value_set=stored_prompts)))
        statements = drop_conflicts(statements) if recipe.conflict is False else statements
        tasks = pa.array([UNSEEN] * statements.num_rows, pa.string())
        return statements.set_column(statements.column_names.index("task"), "task", tasks)

    def _interval_facts(self, recipe: Recipe) -> TemporalFacts:
        table = self.facts.table
        matches = pc.and_(pc.equal(table["relation"], recipe.relation), pc.invert(table["point"]))
        return sample_facts(replace(self.facts, table=table.filter(matches)), recipe.facts, self.seed)

    def _statements(self, facts: TemporalFacts, masks: Sequence[str], *, static: bool = False) -> pa.Table:
        return make_masked_statements(facts, self.wordings, entities=self.entities, masks=tuple(masks), static=static)
