"""Questions of the task completion: facts in paraphrased sentences with one field masked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from merkhet.questions.makers._template_sql import (
    answer_sql,
    any_usable_sql,
    case_sql,
    context_sql,
    field_column,
    lookup_sql,
    sentence_sql,
    slot_form,
    sql_literal,
    usable_sql,
    usable_templates_sql,
)
from merkhet.questions.makers.candidate_sets import candidate_set_sql
from merkhet.questions.makers.distractors import draw_distractors, said_sql
from merkhet.questions.makers.listed_choices import ListedChoices, pair_templates
from merkhet.questions.makers.name_aliases import other_names_sql, with_aliases_sql
from merkhet.questions.makers.nearness import level_sql
from merkhet.questions.makers.question_builder import QuestionBuilder
from merkhet.questions.schema import Relation
from merkhet.questions.templates import PLACEHOLDERS, placeholder_names

CLOSED_FACTS = "closed_facts"
"""Table of the facts of closed relations."""
_KINDS = {"subject": "s_kind", "object": "o_kind"}


@dataclass(frozen=True)
class Ambiguity:
    """Ambiguity of the sentences of one template."""

    template: str
    ask: str
    facts: int
    """Number of facts that the template can express."""
    unique: int
    """Number of facts with one right answer."""
    ambiguous: int
    """Number of facts with several right answers."""
    scoped: int
    """Number of ambiguous facts that were asked with a scope phrase instead."""
    dropped: int
    """Number of ambiguous facts that were not asked."""
    mean_answers: float
    """Mean number of right answers per sentence."""


def make_completions(builder: QuestionBuilder) -> list[Ambiguity]:
    """Make completion questions of all relations, with choices if ``options.choices`` is set.

    Without choices, a sentence must have one stated answer, unless the relation is ``closed``: then the text lists four
    choices. If stated facts differ only in the asked field, the scope
    phrases of the relation are tried, which narrow the answer to one kind of entity. If none makes the answer unique,
    the question is dropped. Inferred answers count as right, too.

    Returns:
        The ambiguity of each template; empty for questions with choices.
    """
    if builder.options.choices is not None:
        _complete_with_choices(builder, builder.options.choices)
        return []
    ambiguities: list[Ambiguity] = []
    closed = []
    for relation in builder.used_relations:
        if relation.completion and builder.evidence.asks_openly(relation):
            if relation.closed:
                closed.append(relation)
                continue
            for ask in relation.asks:
                ambiguities += _complete_field(builder, relation, ask)
    if closed:
        _complete_closed_relations(builder, closed)
    return ambiguities


def _complete_closed_relations(builder: QuestionBuilder, relations: Sequence[Relation]) -> None:
    """Ask about the facts of closed relations in all paraphrases, with four choices in the text."""
    numbers = ", ".join(str(builder.relation_numbers[relation.name]) for relation in relations)
    builder.create_table(
        CLOSED_FACTS,
        f"""select * from worded where rel in ({numbers}) and stated and asked
        qualify row_number() over (partition by rel, s, o order by fact_id) = 1""",
    )
    listed = ListedChoices(builder, CLOSED_FACTS, "closed")
    listed.create(relations, lambda relation, ask: "true")
    for relation in relations:
        for ask in relation.asks:
            templates = pair_templates(relation)
            names = f"select distinct {field_column(ask)} as ctx, {field_column(ask)} as name from {CLOSED_FACTS} "
            names += f"where rel = {builder.relation_numbers[relation.name]}"
            for number, template in enumerate(templates):
                query = other_names_sql(builder, relation, template, ask, names)
                answers = f"[{answer_sql(template, ask)}]"
                listed.ask(
                    relation,
                    template,
                    ask,
                    f"{relation.name}/{relation.templates.index(template) + 1}",
                    builder.paraphrase_sql(ask, number, len(templates)),
                    f" left join ({query}) x on x.ctx = c.{field_column(ask)}" if query else "",
                    task="'completion'",
                    answers=with_aliases_sql(answers, "x.aliases") if query else answers,
                    facts="[fact_id]",
                )


@dataclass(frozen=True)
class _Slot:
    """Template together with the field that it asks for."""

    relation: str
    rel: int
    ask: str
    template: str
    label: str
    form: str
    begins: bool


def _complete_with_choices(builder: QuestionBuilder, choice_count: int) -> None:
    """Make at most one question per fact and asked field, with one right answer and distractors as choices."""
    slots = [
        _Slot(
            relation.name,
            builder.relation_numbers[relation.name],
            ask,
            template,
            f"{relation.name}/{number}",
            *slot_form(template, ask),
        )
        for relation in builder.used_relations
        if relation.completion and builder.evidence.asks_with_distractors(relation)
        for ask in relation.asks
        for number, template in enumerate(relation.templates, 1)
        if ask in placeholder_names(template)
    ]
    if not slots:
        return
    builder.slots.update((slot.relation, slot.ask, slot.form, slot.begins) for slot in slots)
    _sample_facts(builder, slots)
    draw_distractors(builder, "to_complete", "wrong_names", choice_count - 1, "choices", tries=8 * choice_count)
    _create_offers(builder, slots)
    builder.add_forms("completed_plain", "completed")
    used = {row[0] for row in builder.rows("select distinct slot from completed_plain")}
    builder.add_sentences(
        "completed",
        [
            (f"slot = {number}", sentence_sql(slot.template, slot.ask), slot.label)
            for number, slot in enumerate(slots)
            if number in used
        ],
        task="'completion'",
        prompt="sentence",
        answers=with_aliases_sql("list_prepend(target, list_filter(answers, lambda x: x != target))", "aliases"),
        target="target",
        choices="choices",
        nearness="nearness",
        facts="[fact_id]",
        entities="string_split(said, chr(31))",
    )


def _sample_facts(builder: QuestionBuilder, slots: Sequence[_Slot]) -> None:
    """Create the table ``to_complete`` of sampled facts, taken from the relations in turn, each with a template.

    A fact that is asked about in several fields has one turn. More facts are sampled than needed, because some have no
    distractors.
    """
    branches, fitting = [], []
    for ask in PLACEHOLDERS:
        by_relation: dict[int, list[tuple[int, str]]] = {}
        for number, slot in enumerate(slots):
            if slot.ask == ask:
                by_relation.setdefault(slot.rel, []).append((number, slot.template))
        if by_relation:
            branches.append(
                f"""select rel, fact_id, s, o, "start", "end", start_date, end_date, domain, split, '{ask}' as ask,
                {said_sql(builder, ask)} as said, {field_column(ask)} as name from worded
                where stated and asked and {any_usable_sql(by_relation)} and {field_column(ask)} is not null"""
            )
            fitting.append((f"ask = '{ask}'", usable_templates_sql(by_relation)))
    limit = builder.options.limit
    relation_count = len({slot.rel for slot in slots})
    draw = builder.draw_sql("'complete'", "fact_id", "ask")
    builder.create_table(
        "to_complete",
        f"""with askable as (
            select * from ({" union all ".join(branches)}) f
            qualify row_number() over (partition by rel, ask, said, name order by fact_id) = 1
        ), drawn as (
            select *, min({draw}) over (partition by rel, fact_id) as draw from askable
        ), turns as (
            select * exclude (draw), dense_rank() over (partition by rel order by draw, fact_id) as turn from drawn
        ), sample as (
            select * from turns {_first_turns_sql(None if limit is None else 2 * (limit + relation_count))}
        ), fitted as (select *, {case_sql(fitting)} as fitting from sample)
        select * exclude (fitting),
            concat_ws(chr(31), fact_id, ask, {lookup_sql(builder.relation_numbers, "rel")}) as id,
            fitting[({builder.draw_sql("'template'", "fact_id")} % array_length(fitting))::bigint + 1] as slot
        from fitted""",
    )


def _create_offers(builder: QuestionBuilder, slots: Sequence[_Slot]) -> None:
    """Create the table ``offers`` of choices and right answers, and ``completed_plain`` of the facts that are asked."""
    form = lookup_sql([slot.form for slot in slots], "t.slot")
    begins = [str(number) for number, slot in enumerate(slots) if slot.begins]
    shown = case_sql(
        ((f"{form} = '{name}'", f"f.shown_{name}") for name in sorted({slot.form for slot in slots} - {""})), "n.name"
    )
    if begins:
        shown = f"case when t.slot in ({', '.join(begins)}) then capital({shown}) else {shown} end"
    limit = builder.options.limit
    builder.create_table(
        "offers",
        f"""with names_by_id as (
            select id, name, level, true as wrong, false as is_alias from wrong_names union all
            select t.id, r.name, 0 as level, false as wrong, false as is_alias from to_complete t
            join truths r on r.rel = t.rel and r.ask = t.ask and r.said = t.said union all
            select distinct t.id, a.alias as name, 0 as level, false as wrong, true as is_alias from to_complete t
            join truths r on r.rel = t.rel and r.ask = t.ask and r.said = t.said
            join field_aliases a on a.rel = r.rel and a.ask = r.ask and a.name = r.name
        ), shown_names as (
            select n.id, n.name, n.level, n.wrong, n.is_alias, n.name = t.name and not n.is_alias as is_target,
                {shown} as shown,
                {builder.draw_sql("'choice order'", "n.id", "n.name")} as place
            from names_by_id n join to_complete t on t.id = n.id left join forms f on f.name = n.name
        )
        select id, min(shown) filter (is_target) as target,
            list(distinct shown order by shown) filter (not wrong and not is_alias) as answers,
            list(distinct shown order by shown) filter (is_alias) as aliases,
            list(shown order by place, name) filter (wrong or is_target) as choices,
            {level_sql("max(level)")} as nearness
        from shown_names group by id having bool_or(wrong) and
            count(distinct lower(shown)) filter (not is_alias) = count(*) filter (not is_alias)""",
    )
    builder.create_table(
        "completed_plain",
        f"""with turns as (
            select t.* exclude (turn), o.target, o.answers, o.aliases, o.choices, o.nearness,
                dense_rank() over (partition by rel order by turn) as turn
            from to_complete t join offers o on o.id = t.id
        )
        select * from turns {_first_turns_sql(limit)}""",
    )


def _first_turns_sql(limit: int | None) -> str:
    """Return SQL that keeps the first ``limit`` facts, taken from the relations in turn."""
    return "" if limit is None else f"qualify dense_rank() over (order by turn, rel) <= {limit}"


def _complete_field(builder: QuestionBuilder, relation: Relation, ask: str) -> list[Ambiguity]:
    templates = [template for template in relation.templates if ask in placeholder_names(template)]
    ambiguities = []
    rights = _RightAnswers(builder, relation, ask)
    for number, template in enumerate(templates):
        condition = builder.paraphrase_sql(ask, number, len(templates))
        label = f"{relation.name}/{relation.templates.index(template) + 1}"
        facts, unique, mean = rights.create(template)
        scoped = 0
        if facts > unique and relation.scopes and ask in _KINDS:
            scoped = _ask_with_scopes(builder, relation, template, ask, label, condition)
        if unique:
            source = _source(builder, relation, template, ask, f"n = 1 and {condition}", rights)
            _insert(builder, source, relation, template, ask, label, rights)
        ambiguities.append(
            Ambiguity(label, ask, facts, unique, facts - unique, scoped, facts - unique - scoped, round(mean or 0, 3))
        )
    return ambiguities


class _RightAnswers:
    """Table of the right answers of each sentence; templates with the same fields and forms share one table.

    If right answers have other names, a second table has the ``aliases`` of each sentence, and the names that are
    ``alike`` and therefore no candidates.
    """

    def __init__(self, builder: QuestionBuilder, relation: Relation, ask: str, table: str = "rights") -> None:
        self.builder, self.relation, self.ask, self.table = builder, relation, ask, table
        self._latest: tuple[str, tuple[int, int, float | None]] | None = None
        self.other_names: str | None = None
        """The second table, if the latest sentences have one."""

    def create(self, template: str, kind: str | None = None) -> tuple[int, int, float | None]:
        """Create the table for a template, restricted to answers of ``kind`` if given.

        Returns:
            The number of facts, the number of facts with one answer, and the mean number of answers.
        """
        relation, ask, builder = self.relation, self.ask, self.builder
        of_kind = f" and {_KINDS[ask]} = {sql_literal(kind)}" if kind is not None else ""
        number = builder.relation_numbers[relation.name]
        query = f"""select {context_sql([template], ask)} as ctx,
            count(distinct {field_column(ask)}) filter (stated) as n,
            list(distinct {answer_sql(template, ask)} order by {answer_sql(template, ask)}) as answers,
            count(distinct fact_id) filter (stated) as facts
        from worded where rel = {number} and {usable_sql(template)}{of_kind} and {field_column(ask)} is not null
        group by ctx"""
        form, begins = slot_form(template, ask)
        pair = set(placeholder_names(template)) == {"subject", "object"}
        names = f"""select distinct {context_sql([template], ask)} as ctx, {field_column(ask)} as name from worded
            where rel = {number} and {usable_sql(template)}{of_kind} and {field_column(ask)} is not null"""
        if relation.transitive and ask == "object" and kind is None and pair and not form:
            answer = "capital(t.o)" if begins else "t.o"
            query = f"""with stated_rights as ({query})
                select ctx, max(n) as n, list(distinct answer order by answer) as answers, max(facts) as facts
                from (
                    select ctx, n, facts, unnest(answers) as answer from stated_rights
                    union all select r.ctx, r.n, r.facts, {answer} as answer from stated_rights r join pairs t
                    on t.rel = {number} and t.s = r.ctx) every group by ctx"""
            names = f"select s as ctx, o as name from pairs where rel = {number}"
        if self._latest is None or self._latest[0] != query:
            builder.create_table(self.table, query)
            other_names = other_names_sql(builder, relation, template, ask, names)
            self.other_names = f"other_{self.table}" if other_names else None
            if other_names:
                builder.create_table(f"other_{self.table}", other_names)
            [(facts, unique, mean)] = builder.rows(
                "select coalesce(sum(facts), 0)::bigint, coalesce(sum(facts) filter (n = 1), 0)::bigint, "
                f"avg(array_length(answers)) from {self.table} where n > 0"
            )
            self._latest = query, (int(facts), int(unique), mean)
        return self._latest[1]


def _ask_with_scopes(
    builder: QuestionBuilder, relation: Relation, template: str, ask: str, label: str, condition: str
) -> int:
    """Ask about ambiguous facts with scope phrases that make the answer unique; return the number of questions."""
    builder.create_table(
        "unclear",
        f"""select w.fact_id from worded w join rights r on r.ctx = {context_sql([template], ask)}
        where w.rel = {builder.relation_numbers[relation.name]} and {usable_sql(template)} and r.n > 1 and w.stated""",
    )
    asked_count = 0
    rights = _RightAnswers(builder, relation, ask, "scoped_rights")
    for scope in relation.scopes:
        narrower = scope.templates[(int(label.rpartition("/")[2]) - 1) % len(scope.templates)]
        if ask not in placeholder_names(narrower):
            continue
        rights.create(narrower, scope.kind)
        scoped = (
            f"n = 1 and {_KINDS[ask]} = {sql_literal(scope.kind)} and {condition} "
            "and fact_id in (select fact_id from unclear)"
        )
        source = _source(builder, relation, narrower, ask, scoped, rights)
        _insert(builder, source, relation, narrower, ask, f"{label}-{scope.kind}", rights)
        asked_count += builder.tables.count(source)
    return asked_count


def _source(
    builder: QuestionBuilder, relation: Relation, template: str, ask: str, condition: str, rights: _RightAnswers
) -> str:
    """Return SQL for the facts that a template asks about, joined with the right answers of their sentences."""
    context = context_sql([template], ask)
    other = f" left join {rights.other_names} x on x.ctx = {context}" if rights.other_names else ""
    return f"""{builder.relation_rows(relation)} w join {rights.table} r on r.ctx = {context}{other}
        where stated and asked and {usable_sql(template)} and {condition}"""


def _insert(
    builder: QuestionBuilder,
    source: str,
    relation: Relation,
    template: str,
    ask: str,
    label: str,
    rights: _RightAnswers,
) -> None:
    answer = answer_sql(template, ask)
    answers = f"list_prepend({answer}, list_filter(r.answers, lambda x: x != {answer}))"
    alike = None
    if rights.other_names:
        answers, alike = with_aliases_sql(answers, "x.aliases"), "x.alike"
    entities = [field_column(field) for field in ("subject", "object") if field != ask]
    builder.add_questions(
        source,
        task="'completion'",
        prompt=sentence_sql(template, ask),
        answers=answers,
        target=answer,
        candidate_set=candidate_set_sql(builder, relation, template, ask, source, alike),
        facts="[fact_id]",
        template=sql_literal(label),
        entities=f"[{', '.join(entities)}]",
    )
