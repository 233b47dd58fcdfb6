"""All question kinds of a schema made from a knowledge base: a question set with its data card."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import CANDIDATES, ENTITIES, FACTS, FREQUENCIES, QUESTIONS, make_table, validate
from merkhet.knowledge.database import FACT_COLUMNS
from merkhet.knowledge.engines.relational_engine import Tables
from merkhet.questions.makers._template_sql import sql_literal
from merkhet.questions.makers.checking import make_checks
from merkhet.questions.makers.completion import make_completions
from merkhet.questions.makers.distinction import make_distinctions
from merkhet.questions.makers.number_comparison import make_comparisons
from merkhet.questions.makers.question_builder import MakerOptions, QuestionBuilder
from merkhet.questions.makers.reasoning import make_reasoning
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.schema import BenchmarkSchema

TASKS = ("completion", "distinction", "checking", "reasoning")
Filter = Callable[[pa.Table], tuple[pa.Table, Sequence[Mapping[str, Any]]]]


def make_benchmark(
    tables: Tables,
    schema: BenchmarkSchema,
    options: MakerOptions,
    tasks: Sequence[str] = (),
    control: Filter | None = None,
    draw: Callable[[pa.Table], pa.Table] | None = None,
) -> QuestionSet:
    """Questions of the tasks (all for none), after quality control, all or those that are drawn.

    What follows must have been inferred before (``knowledge infer``): conclusions are asked about as reasoning, count
    as right elsewhere, and are never offered as wrong. The card (``about``) tells what was made, left out and why.
    """
    builder = QuestionBuilder(tables, schema, options)
    wanted = tuple(tasks) or TASKS
    remarks: list[str] = []
    ambiguity: list[dict[str, Any]] = []
    if "completion" in wanted:
        ambiguity = [asdict(one) for one in make_completions(builder)]
    if "distinction" in wanted:
        remarks += make_distinctions(builder)
    if "checking" in wanted:
        remarks += make_checks(builder)
    if "reasoning" in wanted:
        remarks += make_reasoning(builder) + make_comparisons(builder)
    remarks += _unworded(builder)
    if builder.asked < builder.facts:
        remarks.append(
            f"questions are made of some {builder.asked:,} of {builder.facts:,} facts, drawn by their ids; "
            "all of them say what is right"
        )
    questions = _identified(builder)
    counts: Sequence[Mapping[str, Any]] = ()
    if control is not None:
        questions, counts = control(questions)
        questions = _balanced_checks(questions)
    made = _by_domain(questions)
    if draw is not None:
        questions = draw(questions)
    domains = list(schema.domains) + sorted(set(made) - set(schema.domains) - {"None"})
    return QuestionSet(
        questions,
        candidates=_candidates(builder, questions),
        facts=_facts(builder, questions),
        frequencies=_frequencies(builder, wanted),
        entities=_entities(builder, questions),
        about={
            "domains": domains,
            "knowledge_types": dict(schema.domains),
            "empty_domains": [name for name in domains if not made.get(name)],
            "filters": [dict(count) for count in counts],
            "ambiguity": ambiguity,
            "remarks": remarks,
        },
    )


def _identified(builder: QuestionBuilder) -> pa.Table:
    """The questions made, with ids, each once, by id: what ``foundation.tables.question_id`` gives."""
    suite, language = sql_literal(builder.options.suite), sql_literal(builder.options.language)
    parts = {"prompt": "text", "answers": "list", "target": "text", "choices": "list", "candidate_set": "text"}
    texts = ", ',', ".join(f"coalesce(json_{kind}({name}), 'null')" for name, kind in parts.items())
    heads = f"'[', json_text({suite}), ',', json_text(task), ',', json_text({language}), ',', "
    builder.make(
        "identified",
        f"""select * from (select 'q_' || left(sha256(concat({heads}{texts}, ']')), 20) as question_id, * from made) q
        qualify row_number() over (
            partition by question_id order by facts, template, qset, domain, rule, split, entities) = 1""",
    )
    builder.tables.drop("made")
    columns = ", ".join(name for name in QUESTIONS.schema.names if name not in ("suite", "language", "words"))
    found = builder.tables.arrow(
        f"select {columns}, {suite} as suite, {language} as language from identified order by question_id"
    )
    return validate(QUESTIONS, found)


def _entities(builder: QuestionBuilder, questions: pa.Table) -> pa.Table:
    """The names that stand in each question."""
    builder.tables.load("kept_questions", questions.select(["question_id"]))
    found = builder.tables.arrow(
        "select i.question_id, i.entities from identified i "
        "semi join kept_questions k on k.question_id = i.question_id order by i.question_id"
    )
    return validate(ENTITIES, found)


def _balanced_checks(questions: pa.Table) -> pa.Table:
    """As many true statements as false ones: what quality control took from one side goes from the other too."""
    checks = pc.equal(questions["task"], "checking")
    truth = pc.equal(pc.utf8_lower(questions["target"]), "yes")
    sides = [np.flatnonzero(pc.and_(checks, side).to_numpy()) for side in (truth, pc.invert(truth))]
    size = min(len(side) for side in sides)
    surplus = np.concatenate([side[size:] for side in sides])
    return questions if not len(surplus) else questions.filter(pa.array(~np.isin(np.arange(len(questions)), surplus)))


def _by_domain(questions: pa.Table) -> dict[str, int]:
    counted = questions.group_by("domain").aggregate([("question_id", "count")]).to_pylist()
    return {str(row["domain"]): row["question_id_count"] for row in counted}


def _candidates(builder: QuestionBuilder, questions: pa.Table) -> pa.Table:
    used = set(questions["candidate_set"].unique().to_pylist())
    kept = {name: texts for name, texts in sorted(builder.candidate_sets.items()) if name in used}
    if not kept:
        return make_table(CANDIDATES, [])
    offsets = np.concatenate([[0], np.cumsum([len(texts) for texts in kept.values()])])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.concat_arrays(list(kept.values())))
    return validate(CANDIDATES, pa.table({"candidate_set": pa.array(kept, pa.string()), "candidates": lists}))


def _facts(builder: QuestionBuilder, questions: pa.Table) -> pa.Table:
    """The stated facts, and of conclusions and rules those that questions are about, with all that they follow from.

    Where there are very many facts, of the stated ones too only those that questions are about.
    """
    tables = builder.tables
    tables.load("asked_about", questions.select(["facts"]))
    tables.make("used", "select distinct fact_id from (select unnest(facts) as fact_id from asked_about) a")
    tables.make("newly_used", "select fact_id from used")
    while tables.count("newly_used"):
        tables.make(
            "newly_used",
            """select distinct p.fact_id from (
                select unnest(f.premises) as fact_id from newly_used n join facts f on f.fact_id = n.fact_id
                where f.rule is not null
            ) p anti join used u on u.fact_id = p.fact_id""",
        )
        tables.add("used", "select fact_id from newly_used")
    stated = "rule is null and coalesce(source, '') not like 'rules/%'"
    everything = "false" if builder.many else stated
    found = tables.arrow(
        f"""select {FACT_COLUMNS} from facts where ({everything}) or fact_id in (select fact_id from used)
        order by fact_id"""
    )
    return validate(FACTS, found)


def _frequencies(builder: QuestionBuilder, tasks: Sequence[str]) -> pa.Table:
    """How many facts of a relation have each name in a place, as it stands in the slot of some template."""
    parts = []
    for (name, ask, form, begins), _ in builder.sets_by_form.items():
        plain = {"subject": "s", "object": "o", "start": '"start"', "end": '"end"'}[ask]
        column = f"{plain}_{form}" if form else plain
        shown = f"capital({column})" if begins else column
        for task in ("completion", "reasoning"):
            if task in tasks:
                parts.append(
                    f"select {sql_literal(task)} as task, {sql_literal(name)} as relation, {shown} as answer, "
                    f"count(*) as count from worded where rel = {builder.numbers[name]} and asked "
                    f"and {shown} is not null group by {shown}"
                )
    if not parts:
        return make_table(FREQUENCIES, [])
    found = builder.tables.arrow(
        f"select task, relation, answer, max(count) as count from ({' union all '.join(parts)}) counted "
        "group by task, relation, answer order by task, relation, answer"
    )
    return validate(FREQUENCIES, found)


def _unworded(builder: QuestionBuilder) -> list[str]:
    """Predicates that no relation has templates for: nothing is asked about their facts."""
    worded = {name for one in builder.relations.values() for name in one.predicates}
    worded |= {name for one in builder.schema.hierarchies.values() for name in one.predicates}
    worded |= {name for one in builder.schema.comparisons.values() for name in one.predicates}
    rows = builder.rows(
        "select predicate, count(*) from facts where rule is null group by predicate order by predicate"
    )
    missing = [
        (predicate, count)
        for predicate, count in rows
        if predicate not in worded and not predicate.startswith(("rdf:", "rdfs:", "owl:", "skos:", "schema:"))
    ]
    return [
        f"the predicate {predicate!r} has no templates: nothing is asked about its {count:,} facts"
        for predicate, count in missing
    ]
