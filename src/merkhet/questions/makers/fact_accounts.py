"""Account of the facts that give no question: for each task, the reason why, from the tables that the makers leave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.questions.losses import Account, Loss, sort_losses
from merkhet.questions.makers._template_sql import any_usable_sql, case_sql, sql_literal, sql_literals
from merkhet.questions.makers.evidence import DECLARED
from merkhet.questions.makers.open_book import OPEN_BOOK
from merkhet.questions.makers.question_builder import QuestionBuilder
from merkhet.questions.schema import Comparison, Hierarchy, Relation
from merkhet.questions.templates import placeholder_names

_ASKABLE = 1_000
"""Stage of a question that passed all filters; a removed question has the number of its filter."""

BALANCE = "left over when true and false statements were balanced"

_REASONS = {
    "subject": "the subject has no name in {language}",
    "object": "the object has no name in {language}",
    "date": "the object is a year or a date (xsd:gYear, xsd:date), not a name",
    "text": "the object is a text, not a name",
    "number": "the value is no number",
    "same": "both items have the same name",
    "over": "the fact has ended, but the templates are in the present tense",
    "overlap": "one name contains the other or a word of it",
    "time": "a time that the templates name is missing",
    "ambiguous": "the sentence has several right answers",
    "choices": "no other name is certainly wrong and different from the right answers",
    "stated": "the conclusion is also stated",
    "straddling": "the premises are in several splits",
    "bookless": "a premise has no sentence, the prompt contains the answer, or no premises are unrelated",
    "pair": "no template has the subject and the object alone",
    "frames": "the schema has no frames for the task",
    "few choices": "fewer than three other names are certainly wrong",
    "words": "no template has words between the two names alone",
    "phrases": "fewer than three phrases are certainly wrong",
    "numeric": "the object is a number",
    "repeated": "another fact gives the same question",
    "quantity": "another quantity than most numbers of the comparison",
    "values": "the subject has several different values",
    "few subjects": "fewer than four subjects have a number",
    "apart": "the two best values of the group differ by less than 'apart'",
    "group": "left over when subjects were grouped by four",
    "one category": "the hierarchy has only one category",
    "inner": "the member is itself a category, or its category is too broad",
    "few members": "fewer than three members of the category remain for a group",
    "odd": "no odd one out is certain",
    "evidence": "no evidence that other names are wrong: ask with options.evidence=assumed",
    "declared": "other names are known to be wrong: ask with options.evidence=declared",
    "balance": BALANCE,
}
_INTENDED = {
    "sampled": "not in the sample of facts (options.asked)",
    "limit": "not needed for the limit",
    "checks": "not needed for the number of statements to check",
}
"""Reasons that follow from the study's settings."""


def account_for_facts(
    builder: QuestionBuilder, tasks: Sequence[str], askable: pa.Table, removed: Sequence[tuple[str, pa.Table]]
) -> list[Account]:
    """Account for all facts that the schema has templates for, task by task.

    A fact is askable in a task if a question about it passes all filters. Otherwise, the reason is the last filter that
    its questions reached, or the step of the maker that made none.

    Args:
        askable: Questions that passed all filters.
        removed: Questions that each filter removed, with the reason.
    """
    _load_stages(builder, askable, removed)
    _create_unworded(builder)
    scopes = {
        "completion": _completion_sql,
        "distinction": _distinction_sql,
        "checking": _checking_sql,
        "reasoning": _reasoning_sql,
        "relation": _relation_sql,
        OPEN_BOOK: _open_book_sql,
    }
    scoped = " union all ".join(query for task in tasks for query in scopes[task](builder))
    made = "select task, facts[1] as fact_id, -1 as stage from made where task != 'distinction'"
    if builder.tables.count("made") == askable.num_rows + sum(table.num_rows for _, table in removed):
        made += " and false"
    builder.create_table(
        "unasked",
        f"""with reached as ({made} union all select task, fact_id, stage from stages
        ), latest as (select task, fact_id, max(stage) as stage from reached group by task, fact_id)
        select s.task, s.fact_id, s.number, coalesce(s.s, '') || ' – ' || coalesce(s.o, '') as label,
            coalesce(case when l.stage = -1 then 'repeated' else cast(l.stage as varchar) end, s.reason) as reason
        from ({scoped}) s left join latest l on l.task = s.task and l.fact_id = s.fact_id
        where l.stage is null or l.stage < {_ASKABLE}
        qualify row_number() over (partition by s.task, s.fact_id order by s.number) = 1""",
    )
    reasons = {name: text.format(language=repr(builder.options.language)) for name, text in _REASONS.items()}
    reasons |= _INTENDED | {str(number): reason for number, (reason, _) in enumerate(removed)}
    losses: dict[str, list[Loss]] = defaultdict(list)
    numbered = {
        "distinction": list(builder.schema.hierarchies),
        "reasoning": [*builder.relations, *builder.schema.comparisons],
        OPEN_BOOK: list(builder.relations),
    }
    for task, number, reason, count, first, last in builder.rows(
        "select task, number, reason, count(*), min(label), max(label) from unasked group by task, number, reason"
    ):
        relation = numbered.get(task, list(builder.relations))[number]
        examples = tuple(dict.fromkeys((first, last)))
        losses[task].append(Loss(task, "facts", reasons[reason], relation, count, examples, reason in _INTENDED))
    totals = dict(builder.rows(_totals_sql(builder)))
    counts = dict(
        builder.rows(f"select task, count(distinct fact_id) from stages where stage = {_ASKABLE} group by task")
    )
    return [
        Account(task, "facts", totals.get(task, 0), counts.get(task, 0), tuple(sort_losses(losses[task])))
        for task in tasks
    ]


def _load_stages(builder: QuestionBuilder, askable: pa.Table, removed: Sequence[tuple[str, pa.Table]]) -> None:
    """Create the table ``stages``: by task, the facts that questions ask about, and the number of the last filter."""
    tables = []
    for stage, table in ((_ASKABLE, askable), *((number, table) for number, (_, table) in enumerate(removed))):
        lists = table["facts"].combine_chunks()
        # A conclusion, like the fact of any other open question, is the first in its list. Its premises are not asked.
        whole = pc.or_(
            pc.equal(table["task"], "distinction"), pc.fill_null(pc.equal(table["rule"], "comparison"), False)
        )
        rows = pc.list_parent_indices(lists).to_numpy()
        is_first = np.ones(len(rows), dtype=bool)
        is_first[1:] = rows[1:] != rows[:-1]
        mask = pa.array(is_first | whole.to_numpy()[rows])
        facts = pc.list_flatten(lists).filter(mask)
        tasks = table["task"].take(pa.array(rows).filter(mask))
        stages = pa.array(np.full(len(facts), stage, dtype=np.int32))
        tables.append(pa.table({"task": tasks, "fact_id": facts, "stage": stages}))
    builder.tables.load("stages", pa.concat_tables(tables).combine_chunks())


def _create_unworded(builder: QuestionBuilder) -> None:
    """Create the table ``unworded`` of the facts that cannot be written, with the reason."""
    builder.create_table(
        "unworded",
        f"""select r.rel, f.fact_id, f.rule is null as is_stated, coalesce(a.name, f.subject) as s,
            coalesce(b.name, f.object) as o, {_name_reason_sql("'same'")} as reason
        from facts f join schema_relations r on r.predicate = f.predicate
        left join named a on a.entity = f.subject left join named b on b.entity = f.object
        anti join worded w on w.fact_id = f.fact_id and w.rel = r.rel""",
    )


def _name_reason_sql(default: str) -> str:
    """Return SQL for the reason why the subject ``a`` or the object ``b`` of a fact has no name, or ``default``."""
    literal = "is_literal(f.object)"
    date = r"""regexp_extract(f.object, '^"[+-]?\d+(-\d\d)*"$', 0) != ''"""
    return case_sql(
        [
            ("a.name is null", "'subject'"),
            (f"{literal} and {date}", "'date'"),
            (literal, "'text'"),
            ("f.object is not null and b.name is null", "'object'"),
        ],
        default,
    )


def _numbers(builder: QuestionBuilder, relations: Iterable[Relation]) -> str:
    return ", ".join(str(builder.relation_numbers[relation.name]) for relation in relations) or "-1"


def _worded_sql(
    builder: QuestionBuilder,
    task: str,
    relations: Sequence[Relation],
    reasons: Iterable[tuple[str, str]],
    *,
    rule: bool,
) -> Iterator[str]:
    """Yield queries for the facts of relations: those that can be written, with their reasons, and those that cannot.

    Args:
        reasons: Pairs of SQL condition and SQL reason; the first condition that holds counts.
        rule: Whether the facts are inferred instead of stated.
    """
    numbers = _numbers(builder, relations)
    reason = case_sql(
        [
            ("over", "'over'"),
            (f"not ({builder.asked_sql('w.fact_id')})", "'sampled'"),
            ("not w.asked", "'overlap'"),
            *reasons,
        ],
        "'repeated'",
    )
    columns = f"{sql_literal(task)} as task, rel as number, fact_id, s, o"
    yield f"""select {columns}, {reason} as reason from worded w
        where rule is {"not " if rule else ""}null and rel in ({numbers})"""
    yield f"select {columns}, reason from unworded where is_stated = {str(not rule).lower()} and rel in ({numbers})"


def _usable_sql(builder: QuestionBuilder, relations: Iterable[Relation], *, asks: bool) -> str:
    """Return an SQL condition for the facts that have every time that one of their templates mentions."""
    templates: dict[int, list[tuple[int, str]]] = {}
    for relation in relations:
        for text in relation.templates:
            if not asks or set(relation.asks) & set(placeholder_names(text)):
                templates.setdefault(builder.relation_numbers[relation.name], []).append((0, text))
    return any_usable_sql(templates)


def _unasked_reason(builder: QuestionBuilder) -> str:
    """Return the SQL reason why relations with other evidence are not asked about."""
    return "'evidence'" if builder.evidence.mode == DECLARED else "'declared'"


def _evidence_reasons(
    builder: QuestionBuilder, relations: Iterable[Relation], is_asked: Callable[[Relation], bool]
) -> list[tuple[str, str]]:
    """Return the reason of relations that are not asked about for their evidence, if there are any."""
    unasked = [relation for relation in relations if not is_asked(relation)]
    return [(f"rel in ({_numbers(builder, unasked)})", _unasked_reason(builder))] if unasked else []


def _completion_sql(builder: QuestionBuilder) -> Iterator[str]:
    relations = [relation for relation in builder.relations.values() if relation.completion]
    rules = builder.evidence
    is_asked = rules.asks_openly if builder.options.choices is None else rules.asks_with_distractors
    reasons = _evidence_reasons(builder, relations, is_asked)
    reasons += [(f"not ({_usable_sql(builder, relations, asks=True)})", "'time'")]
    if builder.options.choices is None:
        if closed := [relation for relation in relations if relation.closed]:
            unclear = "few choices" if builder.schema.frames.get("choices") else "frames"
            reasons.append((f"rel in ({_numbers(builder, closed)})", f"'{unclear}'"))
        reasons.append(("true", "'ambiguous'"))
    elif builder.has_table("to_complete"):
        sample = "select 1 from to_complete t where t.fact_id = w.fact_id and t.rel = w.rel"
        reasons += [
            (f"exists ({sample} and t.id in (select id from offers))", "'limit'"),
            (f"exists ({sample})", "'choices'"),
        ]
        if builder.options.limit is not None:
            reasons.append(("true", "'limit'"))
    yield from _worded_sql(builder, "completion", relations, reasons, rule=False)


def _checking_sql(builder: QuestionBuilder) -> Iterator[str]:
    relations = [relation for relation in builder.relations.values() if relation.checking]
    unasked = _evidence_reasons(builder, relations, builder.evidence.asks_with_distractors)
    reasons = [*unasked, ("true", "'frames'")]
    if builder.has_table("to_check"):
        options = builder.options
        surplus = "limit" if options.limit is not None else "checks"
        is_full = options.limit is not None or builder.tables.count("judged_plain") >= 2 * (options.checks // 2)
        sample = "select 1 from to_check t where t.rel = w.rel and"
        reasons = [
            *unasked,
            (f"not ({_usable_sql(builder, relations, asks=False)})", "'time'"),
            (
                f"exists ({sample} t.fact_id = w.fact_id and t.fact_id not in (select id from corruptions))",
                "'choices'",
            ),
            (f"exists ({sample} t.fact_id = w.fact_id)", f"'{surplus if is_full else 'balance'}'"),
            (f"not exists ({sample} t.s = w.s and t.o = w.o)", f"'{surplus}'"),
        ]
    yield from _worded_sql(builder, "checking", relations, reasons, rule=False)


def _reasoning_sql(builder: QuestionBuilder) -> Iterator[str]:
    yield from _conclusion_sql(builder, "reasoning", [])
    yield from _comparison_sql(builder)


def _open_book_sql(builder: QuestionBuilder) -> Iterator[str]:
    bookless = "not exists (select 1 from books b where b.conclusion = w.fact_id)"
    yield from _conclusion_sql(builder, OPEN_BOOK, [(bookless, "'bookless'")])


def _conclusion_sql(builder: QuestionBuilder, task: str, further: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield queries for the conclusions of all relations.

    Args:
        further: Pairs of SQL condition and SQL reason for conclusions that the task leaves out.
    """
    relations = list(builder.relations.values())
    pairless = [
        relation
        for relation in relations
        if not any(set(placeholder_names(text)) == {"subject", "object"} for text in relation.templates)
    ]
    unclear = "few choices" if builder.schema.frames.get("choices") else "frames"
    concluded = "exists (select 1 from concluded c where c.fact_id = w.fact_id and c.rel = w.rel)"
    reasons = [
        *_evidence_reasons(builder, relations, builder.evidence.asks_with_distractors),
        ("exists (select 1 from worded x where x.stated and x.rel = w.rel and x.s = w.s and x.o = w.o)", "'stated'"),
        (f"{concluded} and rel in ({_numbers(builder, pairless)})", "'pair'"),
        *((f"{concluded} and {condition}", reason) for condition, reason in further),
        (concluded, f"'{unclear}'"),
    ]
    if builder.has_table("straddling"):
        reasons.insert(1, ("w.fact_id in (select conclusion from straddling)", "'straddling'"))
    yield from _worded_sql(builder, task, relations, reasons, rule=True)


def _relation_sql(builder: QuestionBuilder) -> Iterator[str]:
    reasons = [("numeric", "'numeric'"), ("true", "'words'")]
    if builder.has_table("asked_pairs"):
        sample = "select 1 from asked_pairs a where a.fact_id = w.fact_id and a.rel = w.rel"
        reasons = [
            ("numeric", "'numeric'"),
            ("rel not in (select rel from phrases)", "'words'"),
            (f"exists ({sample} and a.id not in (select id from phrase_choices))", "'phrases'"),
            (f"exists ({sample})", "'limit'"),
            ("not exists (select 1 from asked_pairs a where a.rel = w.rel and a.s = w.s and a.o = w.o)", "'limit'"),
        ]
    yield from _worded_sql(builder, "relation", list(builder.relations.values()), reasons, rule=False)


def _comparison_sql(builder: QuestionBuilder) -> Iterator[str]:
    """Yield a query for the facts of comparisons, if there are any."""
    comparisons = list(builder.schema.comparisons.values())
    if not comparisons:
        return
    if not builder.evidence.asks_comparisons:
        predicates = sql_literals(name for comparison in comparisons for name in comparison.predicates)
        yield f"""select 'reasoning' as task, {len(builder.relations)} as number, f.fact_id, f.subject as s,
            f.object as o, 'declared' as reason from facts f where f.predicate in ({predicates}) and f.rule is null"""
        return
    numbers = range(len(comparisons))
    measured = [f"select {number} as c, name, fact_id from measured_{number}" for number in numbers]
    grouped = [
        f"select {number} as c, unnest(facts) as fact_id from fours_{direction}_{number}"
        for number in numbers
        for direction in ("most", "least")
        if builder.has_table(f"fours_{direction}_{number}")
    ]
    grouped = grouped or ["select -1 as c, '' as fact_id where false"]
    number_of = case_sql(
        (f"f.predicate in ({sql_literals(comparison.predicates)})", str(number))
        for number, comparison in enumerate(comparisons)
    )
    predicates = sql_literals(name for comparison in comparisons for name in comparison.predicates)
    yield f"""select 'reasoning' as task, c + {len(builder.relations)} as number, fact_id, s, o, reason from (
        with compared_facts as (
            select {number_of} as c, f.fact_id, coalesce(n.name, f.subject) as s, coalesce(v.text, f.object) as o,
                n.name is not null as is_named, v.text is not null as is_number,
                coalesce(u.measures, 'unit ' || coalesce(f.unit, '')) as measures
            from facts f left join named n on n.entity = f.subject left join value_texts v on v.value = f.value
            left join units u on u.unit = f.unit where f.predicate in ({predicates}) and f.rule is null
        ), compared_measures as (
            select c, measures from compared_facts where is_named and is_number group by c, measures
            qualify row_number() over (partition by c order by count(*) desc, measures) = 1
        ), compared_subjects as ({" union all ".join(measured)}),
        compared_sizes as (select c, count(*) as size from compared_subjects group by c),
        compared_groups as (select distinct c, fact_id from ({" union all ".join(grouped)}) g)
        select w.c, w.fact_id, w.s, w.o, case when not is_named then 'subject' when not is_number then 'number'
            when w.measures != u.measures then 'quantity' when m.name is null then 'values'
            when m.fact_id != w.fact_id then 'repeated'
            when not ({builder.asked_sql("w.fact_id")}) then 'sampled' when z.size < 4 then 'few subjects'
            when g.fact_id is not null then 'apart' else 'group' end as reason
        from compared_facts w left join compared_measures u on u.c = w.c
        left join compared_subjects m on m.c = w.c and m.name = w.s
        left join compared_sizes z on z.c = w.c left join compared_groups g on g.c = w.c and g.fact_id = w.fact_id) w"""


def _distinction_sql(builder: QuestionBuilder) -> Iterator[str]:
    """Yield a query for the facts of hierarchies, if there are any."""
    hierarchies = list(builder.schema.hierarchies.values())
    if not hierarchies:
        return
    unasked = [h for h, part in enumerate(hierarchies) if not builder.evidence.asks_with_distractors(part)]
    reasons = [
        ("w.reason is not null", "w.reason"),
        ("m.fact_id != w.fact_id", "'repeated'"),
        (f"w.h in ({', '.join(map(str, unasked)) or '-1'})", _unasked_reason(builder)),
        ("k.size < 2", "'one category'"),
    ]
    joins = ""
    if builder.has_table("trios"):
        limited = "limit" if builder.options.limit is not None else "few members"
        overlap = "contains(lower(w.s), lower(w.o))" if builder.options.distinct_names else "false"
        reasons += [
            ("g.fact_id is null", "'inner'"),
            (f"not ({builder.asked_sql('w.fact_id')})", "'sampled'"),
            (overlap, "'overlap'"),
            ("t.has_odd", "'repeated'" if builder.options.limit is None else "'limit'"),
            ("t.fact_id is not null", "'odd'"),
            ("n.size < 3", "'few members'"),
        ]
        joins = """left join grouped g on g.h = w.h and g.fact_id = w.fact_id
        left join (select h, category, split, count(*) as size from grouped group by h, category, split) n
            on n.h = g.h and n.category = g.category and n.split = g.split
        left join (
            select h, fact_id, bool_or(odd is not null) as has_odd from (
                select t.h, unnest(t.facts) as fact_id, o.odd
                from trios t left join odd_ones o on o.h = t.h and o.id = t.id
            ) f group by h, fact_id
        ) t on t.h = w.h and t.fact_id = w.fact_id"""
    else:
        limited = "one category"
    yield f"""select 'distinction' as task, w.h as number, w.fact_id, w.s, w.o,
            {case_sql(reasons, f"'{limited}'")} as reason
        from (
            select h.h, f.fact_id, coalesce(a.name, f.subject) as s, coalesce(b.name, v.text, f.object) as o,
                {_name_reason_sql("case when a.name = coalesce(b.name, v.text) then 'same' end")} as reason
            from facts f join hierarchies h on h.predicate = f.predicate
            left join named a on a.entity = f.subject left join named b on b.entity = f.object
            left join value_texts v on v.value = f.value where f.rule is null
        ) w left join members m on m.h = w.h and m.name = w.s and m.category = w.o
        left join (select h, count(*) as size from categories group by h) k on k.h = w.h {joins}"""


def _totals_sql(builder: QuestionBuilder) -> str:
    """Return SQL for the number of facts that each task has templates for."""
    schema = builder.schema

    def count(task: str, *conditions: str) -> str:
        where = " or ".join(conditions) or "false"
        return f"select {sql_literal(task)} as task, count(distinct fact_id) as total from facts where {where}"

    def with_predicate(parts: Iterable[Relation | Hierarchy | Comparison], is_inferred: bool = False) -> str:
        predicates = sql_literals(sorted({name for part in parts for name in part.predicates})) or "''"
        return f"predicate in ({predicates}) and rule is {'not ' if is_inferred else ''}null"

    relations = builder.relations.values()
    return " union all ".join(
        [
            count("completion", with_predicate(relation for relation in relations if relation.completion)),
            count("checking", with_predicate(relation for relation in relations if relation.checking)),
            count("distinction", with_predicate(schema.hierarchies.values())),
            count("relation", with_predicate(relations)),
            count("reasoning", with_predicate(relations, True), with_predicate(schema.comparisons.values())),
            count(OPEN_BOOK, with_predicate(relations, True)),
        ]
    )
