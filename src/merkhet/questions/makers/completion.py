"""Triple completion: each fact in each paraphrase, each askable place left out, if the answer is unique."""

from __future__ import annotations

from dataclasses import dataclass

from merkhet.core.schemas import candidate_set_id
from merkhet.questions.makers._template_sql import (
    answer_sql,
    context_sql,
    field_column,
    sentence_sql,
    slot_form,
    sql_literal,
    usable_sql,
)
from merkhet.questions.makers.question_builder import QuestionBuilder
from merkhet.questions.schema import Relation
from merkhet.questions.templates import placeholder_names

_KINDS = {"subject": "s_kind", "object": "o_kind"}


@dataclass(frozen=True)
class Ambiguity:
    """How a template fared: facts that it could word, how many of them have a unique answer, how many were saved.

    ``ambiguous`` facts have several right answers in this wording; ``scoped`` of them were asked with a scope
    phrase instead, ``dropped`` were not asked. ``mean_answers`` is the mean number of right answers of a wording.
    """

    template: str
    ask: str
    facts: int
    unique: int
    ambiguous: int
    scoped: int
    dropped: int
    mean_answers: float


def make_completions(builder: QuestionBuilder) -> list[Ambiguity]:
    """Completion questions of all relations, and how ambiguous each template was.

    A wording has several answers if several stated facts share all that it says besides the asked place. Then the
    relation's scope phrases are tried, which narrow the answer to one kind of entity; else the question is dropped.
    What follows from the facts is right too, and stands among the answers.
    """
    found: list[Ambiguity] = []
    for relation in builder.present:
        if relation.completion:
            for ask in relation.asks:
                found += _of_place(builder, relation, ask)
    return found


def _of_place(builder: QuestionBuilder, relation: Relation, ask: str) -> list[Ambiguity]:
    templates = [template for template in relation.templates if ask in placeholder_names(template)]
    found = []
    rights = _Rights(builder, relation, ask)
    for number, template in enumerate(templates):
        chosen = builder.chosen(ask, number, len(templates))
        label = f"{relation.name}/{relation.templates.index(template) + 1}"
        facts, unique, mean = rights.make(template)
        scoped = 0
        if facts > unique and relation.scopes and ask in _KINDS:
            scoped = _scoped(builder, relation, template, ask, label, chosen)
        if unique:
            source = _source(builder, relation, template, ask, f"n = 1 and {chosen}")
            _insert(builder, source, relation, template, ask, label)
        found.append(
            Ambiguity(label, ask, facts, unique, facts - unique, scoped, facts - unique - scoped, round(mean or 0, 3))
        )
    return found


class _Rights:
    """Right answers of each wording in a table; made once for templates that say the same in the same forms."""

    def __init__(self, builder: QuestionBuilder, relation: Relation, ask: str, table: str = "rights") -> None:
        self.builder, self.relation, self.ask, self.table = builder, relation, ask, table
        self._made: tuple[str, tuple[int, int, float | None]] | None = None

    def make(self, template: str, kind: str | None = None) -> tuple[int, int, float | None]:
        """Right answers of a template's wordings; how many facts, how many of them with one answer, the mean number."""
        relation, ask, builder = self.relation, self.ask, self.builder
        of_kind = f" and {_KINDS[ask]} = {sql_literal(kind)}" if kind is not None else ""
        number = builder.numbers[relation.name]
        query = f"""select {context_sql(template, ask)} as ctx,
            count(distinct {field_column(ask)}) filter (stated) as n,
            list(distinct {answer_sql(template, ask)} order by {answer_sql(template, ask)}) as answers,
            count(distinct fact_id) filter (stated) as facts
        from worded where rel = {number} and {usable_sql(template)}{of_kind} and {field_column(ask)} is not null
        group by ctx"""
        form, begins = slot_form(template, ask)
        pair = set(placeholder_names(template)) == {"subject", "object"}
        if relation.transitive and ask == "object" and kind is None and pair and not form:
            shown = "capital(t.o)" if begins else "t.o"
            query = f"""with stated_rights as ({query})
                select ctx, max(n) as n, list(distinct answer order by answer) as answers, max(facts) as facts
                from (
                    select ctx, n, facts, unnest(answers) as answer from stated_rights
                    union all select r.ctx, r.n, r.facts, {shown} as answer from stated_rights r join pairs t
                    on t.rel = {number} and t.s = r.ctx) every group by ctx"""
        if self._made is None or self._made[0] != query:
            builder.make(self.table, query)
            [(facts, unique, mean)] = builder.rows(
                "select coalesce(sum(facts), 0)::bigint, coalesce(sum(facts) filter (n = 1), 0)::bigint, "
                f"avg(array_length(answers)) from {self.table} where n > 0"
            )
            self._made = query, (int(facts), int(unique), mean)
        return self._made[1]


def _scoped(builder: QuestionBuilder, relation: Relation, template: str, ask: str, label: str, chosen: str) -> int:
    """Ask ambiguous facts with scope phrases, if these make the answer unique; how many facts were asked so."""
    builder.make(
        "unclear",
        f"""select w.fact_id from worded w join rights r on r.ctx = {context_sql(template, ask)}
        where w.rel = {builder.numbers[relation.name]} and {usable_sql(template)} and r.n > 1 and w.stated""",
    )
    asked = 0
    rights = _Rights(builder, relation, ask, "scoped_rights")
    for scope in relation.scopes:
        narrower = scope.templates[(int(label.rpartition("/")[2]) - 1) % len(scope.templates)]
        if ask not in placeholder_names(narrower):
            continue
        rights.make(narrower, scope.kind)
        condition = (
            f"n = 1 and {_KINDS[ask]} = {sql_literal(scope.kind)} and {chosen} "
            "and fact_id in (select fact_id from unclear)"
        )
        source = _source(builder, relation, narrower, ask, condition, rights.table)
        _insert(builder, source, relation, narrower, ask, f"{label}-{scope.kind}")
        asked += builder.tables.count(source)
    return asked


def _source(
    builder: QuestionBuilder, relation: Relation, template: str, ask: str, condition: str, rights: str = "rights"
) -> str:
    """SQL for the facts that are asked by a template, with the right answers of its wording."""
    return f"""{builder.relation_rows(relation)} w join {rights} r on r.ctx = {context_sql(template, ask)}
        where stated and asked and {usable_sql(template)} and {condition}"""


def _insert(builder: QuestionBuilder, source: str, relation: Relation, template: str, ask: str, label: str) -> None:
    shown = answer_sql(template, ask)
    said = [field_column(place) for place in ("subject", "object") if place != ask]
    builder.put(
        source,
        task="'completion'",
        prompt=sentence_sql(template, ask),
        answers=f"list_prepend({shown}, list_filter(r.answers, lambda x: x != {shown}))",
        target=shown,
        candidate_set=sql_literal(register_candidate_set(builder, relation, template, ask)),
        facts="[fact_id]",
        template=sql_literal(label),
        entities=f"[{', '.join(said)}]",
    )


def register_candidate_set(builder: QuestionBuilder, relation: Relation, template: str, ask: str) -> str:
    """The id of the set of all answers of a relation and place, as they stand in the slot of this template."""
    form, begins = slot_form(template, ask)
    key = (relation.name, ask, form, begins)
    known = builder.sets_by_form
    if key not in known:
        shown = answer_sql(template, ask)
        found = builder.tables.arrow(
            f"select distinct {shown} as shown from {builder.relation_rows(relation)} w "
            f"where {field_column(ask)} is not null and asked order by shown"
        )
        texts = found["shown"].combine_chunks()
        known[key] = candidate_set_id(f"{relation.name}-{ask}", texts.to_pylist())
        builder.candidate_sets[known[key]] = texts
    return known[key]
