"""Making of benchmarks: all kinds of questions from a knowledge base and a schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import CANDIDATES, ENTITIES, FACTS, FREQUENCIES, PREMISES, QUESTIONS, make_table, validate
from merkhet.core.text import counted
from merkhet.knowledge.database import FACT_COLUMNS
from merkhet.knowledge.engines.relational_engine import Tables
from merkhet.questions.losses import losses_for_card
from merkhet.questions.makers import relation_masking
from merkhet.questions.makers._template_sql import field_column, sql_literal
from merkhet.questions.makers.checking import make_checks
from merkhet.questions.makers.completion import make_completions
from merkhet.questions.makers.control_prompts import make_control_prompts
from merkhet.questions.makers.distinction import make_distinctions
from merkhet.questions.makers.distractors import create_pool, create_truths
from merkhet.questions.makers.evidence import ASSUMED, count_evidence
from merkhet.questions.makers.fact_accounts import BALANCE, account_for_facts
from merkhet.questions.makers.open_book import OPEN_BOOK, open_books
from merkhet.questions.makers.premise_splits import assign_premise_splits
from merkhet.questions.makers.proof_premises import create_conclusions, create_premise_sentences, read_premises
from merkhet.questions.makers.question_builder import MakerOptions, QuestionBuilder
from merkhet.questions.makers.schema_labels import resolve_labels
from merkhet.questions.quality import Filter, apply_filters
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.schema import Schema

TASKS = ("completion", "distinction", "checking", "reasoning")
OPTIONAL_TASKS = (relation_masking.TASK,)
"""Tasks whose questions are made only if they are named."""


def make_benchmark(
    tables: Tables,
    schema: Schema,
    options: MakerOptions,
    tasks: Sequence[str] = (),
    filters: Sequence[Filter] = (),
    draw: Callable[[pa.Table], pa.Table] | None = None,
) -> QuestionSet:
    """Make the questions of a benchmark.

    Conclusions must already be inferred (``knowledge infer``). They are the subject of reasoning questions, count as
    right answers in other tasks, and are never distractors.

    Args:
        tables: Tables of the knowledge base in an engine.
        tasks: Tasks to make questions for, of :data:`TASKS`, :data:`OPTIONAL_TASKS` and :data:`OPEN_BOOK`; empty for
            all of ``TASKS``.
        filters: Quality filters, in their order of application.
        draw: Function that samples the questions.

    Returns:
        The questions; ``about`` contains counts, accounts of the facts that give no question, and remarks.
    """
    tasks = tuple(tasks) or TASKS
    schema = resolve_labels(schema, tables)
    makes_reasoning = not {"reasoning", OPEN_BOOK}.isdisjoint(tasks)
    inflected = options.choices is None or makes_reasoning or relation_masking.TASK in tasks
    builder = QuestionBuilder(tables, schema, options, inflected=inflected)
    splits_by_premise = options.split_by == "premise" and len(options.shares or ()) > 1
    if splits_by_premise or makes_reasoning:
        create_conclusions(builder)
    remarks = assign_premise_splits(builder) if splits_by_premise else []
    create_truths(builder)
    create_pool(builder)
    ambiguity: list[dict[str, Any]] = []
    if "completion" in tasks:
        ambiguity = [asdict(template) for template in make_completions(builder)]
    if "distinction" in tasks:
        remarks += make_distinctions(builder)
    if "checking" in tasks:
        remarks += make_checks(builder)
    if makes_reasoning:
        from merkhet.questions.makers.number_comparison import make_comparisons
        from merkhet.questions.makers.reasoning import make_reasoning

        remarks += make_reasoning(builder)
        if builder.evidence.asks_comparisons:
            remarks += make_comparisons(builder)
        create_premise_sentences(builder)
    if OPEN_BOOK in tasks:
        remarks += open_books(builder)
        if "reasoning" not in tasks:
            builder.create_table("made", "select * from made where task != 'reasoning'")
    if relation_masking.TASK in tasks:
        remarks += relation_masking.make_relation_questions(builder)
    remarks += _remark_evidence(builder)
    remarks += _remark_unworded(builder)
    if builder.asked_count < builder.fact_count:
        remarks.append(
            f"questions are made of about {builder.asked_count:,} of {builder.fact_count:,} facts, sampled by id; "
            "all facts decide which answers are right"
        )
    questions, entities = _collect_questions(builder)
    counts: list[dict[str, Any]] = []
    removed: list[tuple[str, pa.Table]] = []
    if filters:
        questions, counts = apply_filters(
            questions, filters, lambda name, table: removed.append((f"removed by the filter {name!r}", table))
        )
        questions, surplus = _balanced_checks(questions, schema.verdicts[0])
        removed.append((BALANCE, surplus))
    accounts = account_for_facts(builder, tasks, questions, removed)
    domain_counts = _count_by_domain(questions)
    if draw is not None:
        questions = draw(questions)
    domains = list(schema.domains) + sorted(set(domain_counts) - set(schema.domains) - {"None"})
    is_sample = draw is not None or options.limit is not None
    controls, control_counts = make_control_prompts(questions, entities, schema)
    return QuestionSet(
        questions,
        candidates=_candidates(builder, questions),
        facts=_facts(builder, questions),
        frequencies=_unasked_frequencies(builder, tasks) if is_sample else make_table(FREQUENCIES, []),
        controls=controls,
        entities=entities.filter(pc.is_in(entities["question_id"], questions["question_id"].combine_chunks())),
        premises=read_premises(builder, questions) if makes_reasoning else make_table(PREMISES, []),
        about={
            "domains": domains,
            "split_by": "premise" if splits_by_premise else "fact",
            "knowledge_types": dict(schema.domains),
            "empty_domains": [name for name in domains if not domain_counts.get(name)],
            "filters": counts,
            **losses_for_card(accounts),
            "evidence": count_evidence(builder),
            "ambiguity": ambiguity,
            "controls": control_counts,
            "remarks": remarks,
        },
    )


def _collect_questions(builder: QuestionBuilder) -> tuple[pa.Table, pa.Table]:
    """Return the distinct questions and their entities, sorted by id.

    Ids are computed as in ``core.schemas.question_id``.
    """
    suite, language = (
        sql_literal(json.dumps(text, ensure_ascii=False)) for text in (builder.options.suite, builder.options.language)
    )
    kinds = {"prompt": "text", "answers": "list", "target": "text", "choices": "list", "candidate_set": "text"}
    parts = [suite, "json_text(task)", language]
    parts += [f"coalesce(json_{kind}({name}), 'null')" for name, kind in kinds.items()]
    content = "concat('[', " + ", ',', ".join(parts) + ", ']')"
    table = builder.tables.arrow(
        f"""select * from (select 'q_' || left(sha256({content}), 20) as question_id, * from made) q
        qualify row_number() over (
            partition by question_id order by facts, template, qset, domain, rule, split, entities) = 1
        order by question_id"""
    )
    for column, text in (("suite", builder.options.suite), ("language", builder.options.language)):
        table = table.append_column(column, pa.array([text] * len(table), pa.string()))
    return validate(QUESTIONS, table.drop_columns("entities")), validate(
        ENTITIES, table.select(["question_id", "entities"])
    )


def _balanced_checks(questions: pa.Table, true_word: str) -> tuple[pa.Table, pa.Table]:
    """Balance true and false statements of checking questions again after filtering; return also the surplus."""
    checks = pc.equal(questions["task"], "checking")
    truth = pc.equal(pc.utf8_lower(questions["target"]), true_word.lower())
    sides = [np.flatnonzero(pc.and_(checks, side).to_numpy()) for side in (truth, pc.invert(truth))]
    size = min(len(side) for side in sides)
    is_kept = np.ones(len(questions), dtype=bool)
    is_kept[np.concatenate([side[size:] for side in sides])] = False
    return questions.filter(pa.array(is_kept)), questions.filter(pa.array(~is_kept))


def _count_by_domain(questions: pa.Table) -> dict[str, int]:
    return {str(row["values"]): row["counts"] for row in pc.value_counts(questions["domain"]).to_pylist()}


def _candidates(builder: QuestionBuilder, questions: pa.Table) -> pa.Table:
    used = set(questions["candidate_set"].unique().to_pylist())
    sets = {name: texts for name, texts in sorted(builder.candidate_sets.items()) if name in used}
    if not sets:
        return make_table(CANDIDATES, [])
    offsets = np.concatenate([[0], np.cumsum([len(texts) for texts in sets.values()])])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.concat_arrays(list(sets.values())))
    return validate(CANDIDATES, pa.table({"candidate_set": pa.array(sets, pa.string()), "candidates": lists}))


def _facts(builder: QuestionBuilder, questions: pa.Table) -> pa.Table:
    """Return all stated facts, and the conclusions that questions use with all their premises.

    For a very large knowledge base, only the facts that questions use and their premises are returned.
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
    everything = "false" if builder.is_large else stated
    table = tables.arrow(
        f"""select {FACT_COLUMNS} from facts where ({everything}) or fact_id in (select fact_id from used)
        order by fact_id"""
    )
    return validate(FACTS, table)


def _unasked_frequencies(builder: QuestionBuilder, tasks: Sequence[str]) -> pa.Table:
    """Count the stated facts that no question is about, by relation and the name in an asked field.

    Facts about the same two entities as a fact in use, in either order, are not counted: an inverse or symmetric fact
    would reveal the answer. Names are inflected as in the slots. Needs the table ``used`` of :func:`_facts`.
    """
    builder.create_table(
        "used_pairs",
        "select distinct least(w.s, w.o) as a, greatest(w.s, w.o) as b from worded w join used u "
        "on u.fact_id = w.fact_id",
    )
    builder.create_table(
        "unused",
        """select w.* from worded w anti join used u on u.fact_id = w.fact_id
        anti join used_pairs p on p.a = least(w.s, w.o) and p.b = greatest(w.s, w.o)
        where w.stated and w.asked""",
    )
    parts = []
    for name, ask, form, begins in sorted(builder.slots):
        answer, join = f"w.{field_column(ask)}", ""
        if form and ask in ("subject", "object"):
            answer, join = f"f.shown_{form}", f"join forms f on f.name = {answer}"
        answer = f"capital({answer})" if begins else answer
        parts += [
            f"select {sql_literal(task)} as task, {sql_literal(name)} as relation, {answer} as answer, "
            f"count(*) as count from unused w {join} where rel = {builder.relation_numbers[name]} "
            f"and {answer} is not null group by {answer}"
            for task in ("completion", "reasoning", OPEN_BOOK)
            if task in tasks
        ]
    if not parts:
        return make_table(FREQUENCIES, [])
    table = builder.tables.arrow(
        f"select task, relation, answer, max(count) as count from ({' union all '.join(parts)}) counted "
        "group by task, relation, answer order by task, relation, answer"
    )
    return validate(FREQUENCIES, table)


def _remark_evidence(builder: QuestionBuilder) -> list[str]:
    """Return a remark on relations that are asked about only with the other evidence."""
    rules = builder.evidence
    if rules.is_chosen:
        return []
    if rules.mode == ASSUMED:
        return [
            "no relation declares that it is complete or functional: wrong options are only assumed to be wrong "
            "(evidence: assumed)"
        ]
    assumed = [row["relations"] for row in count_evidence(builder) if row["evidence"] == ASSUMED]
    if not any(assumed):
        return []
    return [
        f"no evidence of wrong names in {counted(assumed[0], 'relation')}: nothing is asked about them; "
        "options.evidence=assumed asks about them, apart"
    ]


def _remark_unworded(builder: QuestionBuilder) -> list[str]:
    """Return a remark on each predicate without templates."""
    worded = {name for relation in builder.relations.values() for name in relation.predicates}
    worded |= {name for hierarchy in builder.schema.hierarchies.values() for name in hierarchy.predicates}
    worded |= {name for comparison in builder.schema.comparisons.values() for name in comparison.predicates}
    rows = builder.rows(
        "select predicate, count(*) from facts where rule is null group by predicate order by predicate"
    )
    missing = [
        (predicate, count)
        for predicate, count in rows
        if predicate not in worded and not predicate.startswith(("rdf:", "rdfs:", "owl:", "skos:", "schema:"))
    ]
    return [
        f"the predicate {predicate!r} has no templates: nothing is asked about its {counted(count, 'fact')}"
        for predicate, count in missing
    ]
