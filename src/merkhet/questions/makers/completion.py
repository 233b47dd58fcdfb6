"""Triple completion: each fact in each paraphrase, each askable place left out, if the answer is unique."""

from __future__ import annotations

from dataclasses import dataclass

from merkhet.core.schemas import candidate_set_id
from merkhet.questions.makers._template_sql import (
    column,
    context,
    form_in_slot,
    in_slot,
    places_of,
    quoted,
    sentence,
    usable,
)
from merkhet.questions.makers.worded_facts import Workshop
from merkhet.questions.schema import Relation

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


def make_completions(workshop: Workshop) -> list[Ambiguity]:
    """Completion questions of all relations, and how ambiguous each template was.

    A wording has several answers if several stated facts share all that it says besides the asked place. Then the
    relation's scope phrases are tried, which narrow the answer to one kind of entity; else the question is dropped.
    What follows from the facts is right too, and stands among the answers.
    """
    found: list[Ambiguity] = []
    for relation in workshop.present:
        if relation.completion:
            for ask in relation.asks:
                found += _of_place(workshop, relation, ask)
    return found


def _of_place(workshop: Workshop, relation: Relation, ask: str) -> list[Ambiguity]:
    templates = [template for template in relation.templates if ask in places_of(template)]
    found = []
    rights = _Rights(workshop, relation, ask)
    for number, template in enumerate(templates):
        chosen = workshop.chosen(ask, number, len(templates))
        label = f"{relation.name}/{relation.templates.index(template) + 1}"
        facts, unique, mean = rights.make(template)
        scoped = 0
        if facts > unique and relation.scopes and ask in _KINDS:
            scoped = _scoped(workshop, relation, template, ask, label, chosen)
        if unique:
            source = _source(workshop, relation, template, ask, f"n = 1 and {chosen}")
            _insert(workshop, source, relation, template, ask, label)
        found.append(
            Ambiguity(label, ask, facts, unique, facts - unique, scoped, facts - unique - scoped, round(mean or 0, 3))
        )
    return found


class _Rights:
    """Right answers of each wording in a table; made once for templates that say the same in the same forms."""

    def __init__(self, workshop: Workshop, relation: Relation, ask: str, table: str = "rights") -> None:
        self.workshop, self.relation, self.ask, self.table = workshop, relation, ask, table
        self._made: tuple[str, tuple[int, int, float | None]] | None = None

    def make(self, template: str, kind: str | None = None) -> tuple[int, int, float | None]:
        """Right answers of a template's wordings; how many facts, how many of them with one answer, the mean number."""
        relation, ask, workshop = self.relation, self.ask, self.workshop
        of_kind = f" and {_KINDS[ask]} = {quoted(kind)}" if kind is not None else ""
        number = workshop.numbers[relation.name]
        query = f"""select {context(template, ask)} as ctx, count(distinct {column(ask)}) filter (stated) as n,
            list(distinct {in_slot(template, ask)} order by {in_slot(template, ask)}) as answers,
            count(distinct fact_id) filter (stated) as facts
        from worded where rel = {number} and {usable(template)}{of_kind} and {column(ask)} is not null group by ctx"""
        form, begins = form_in_slot(template, ask)
        pair = set(places_of(template)) == {"subject", "object"}
        if relation.transitive and ask == "object" and kind is None and pair and not form:
            shown = "capital(t.o)" if begins else "t.o"
            query = f"""with stated_rights as ({query})
                select ctx, max(n) as n, list(distinct answer order by answer) as answers, max(facts) as facts
                from (
                    select ctx, n, facts, unnest(answers) as answer from stated_rights
                    union all select r.ctx, r.n, r.facts, {shown} as answer from stated_rights r join pairs t
                    on t.rel = {number} and t.s = r.ctx) every group by ctx"""
        if self._made is None or self._made[0] != query:
            workshop.make(self.table, query)
            [(facts, unique, mean)] = workshop.rows(
                "select coalesce(sum(facts), 0)::bigint, coalesce(sum(facts) filter (n = 1), 0)::bigint, "
                f"avg(array_length(answers)) from {self.table} where n > 0"
            )
            self._made = query, (int(facts), int(unique), mean)
        return self._made[1]


def _scoped(workshop: Workshop, relation: Relation, template: str, ask: str, label: str, chosen: str) -> int:
    """Ask ambiguous facts with scope phrases, if these make the answer unique; how many facts were asked so."""
    workshop.make(
        "unclear",
        f"""select w.fact_id from worded w join rights r on r.ctx = {context(template, ask)}
        where w.rel = {workshop.numbers[relation.name]} and {usable(template)} and r.n > 1 and w.stated""",
    )
    asked = 0
    rights = _Rights(workshop, relation, ask, "scoped_rights")
    for scope in relation.scopes:
        narrower = scope.templates[(int(label.rpartition("/")[2]) - 1) % len(scope.templates)]
        if ask not in places_of(narrower):
            continue
        rights.make(narrower, scope.kind)
        condition = (
            f"n = 1 and {_KINDS[ask]} = {quoted(scope.kind)} and {chosen} and fact_id in (select fact_id from unclear)"
        )
        source = _source(workshop, relation, narrower, ask, condition, rights.table)
        _insert(workshop, source, relation, narrower, ask, f"{label}-{scope.kind}")
        asked += workshop.tables.count(source)
    return asked


def _source(
    workshop: Workshop, relation: Relation, template: str, ask: str, condition: str, rights: str = "rights"
) -> str:
    """SQL for the facts that are asked by a template, with the right answers of its wording."""
    return f"""{workshop.relation_rows(relation)} w join {rights} r on r.ctx = {context(template, ask)}
        where stated and asked and {usable(template)} and {condition}"""


def _insert(workshop: Workshop, source: str, relation: Relation, template: str, ask: str, label: str) -> None:
    shown = in_slot(template, ask)
    said = [column(place) for place in ("subject", "object") if place != ask]
    workshop.put(
        source,
        task="'completion'",
        prompt=sentence(template, ask),
        answers=f"list_prepend({shown}, list_filter(r.answers, lambda x: x != {shown}))",
        target=shown,
        candidate_set=quoted(candidate_set(workshop, relation, template, ask)),
        facts="[fact_id]",
        template=quoted(label),
        entities=f"[{', '.join(said)}]",
    )


def candidate_set(workshop: Workshop, relation: Relation, template: str, ask: str) -> str:
    """The id of the set of all answers of a relation and place, as they stand in the slot of this template."""
    form, begins = form_in_slot(template, ask)
    key = (relation.name, ask, form, begins)
    known = workshop.sets_by_form
    if key not in known:
        shown = in_slot(template, ask)
        found = workshop.tables.arrow(
            f"select distinct {shown} as shown from {workshop.relation_rows(relation)} w "
            f"where {column(ask)} is not null and asked order by shown"
        )
        texts = found["shown"].combine_chunks()
        known[key] = candidate_set_id(f"{relation.name}-{ask}", texts.to_pylist())
        workshop.candidate_sets[known[key]] = texts
    return known[key]
