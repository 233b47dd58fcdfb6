"""Questions of the task relation: the words between two names are masked, as in "Paris [MASK] France."."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.core.text import counted
from merkhet.questions.makers._template_sql import field_column, sql_literal
from merkhet.questions.makers.question_builder import QuestionBuilder
from merkhet.questions.templates import PLACEHOLDER

TASK = "relation"
DISTRACTORS = 3
MAX_QUESTIONS = 5_000
"""Maximum number of facts whose relation is asked for, spread over the relations."""
_FEWEST_NAMES = 5
"""Number of names that a relation must have to count as single-valued."""
_SINGLE_SHARE = 0.95
"""Share of names with one value in a relation that counts as single-valued."""
_FIELDS = ("subject", "object")
_GENERAL_WORDS = frozenset(
    " ".join(
        (
            "a able an and are as at be been began belong belonged belongs by can caused come comes common contain",
            "contains dates did do does during ended for form found from had happened has have in into is it kind",
            "known located made many may name named now of on one or part place related result some such the their",
            "time to took type under used usually was were what which with within year",
        )
    ).split()
)
"""Words that say little about what stands beside them; a phrase of such words alone may be true of any two names."""


@dataclass(frozen=True)
class _Phrase:
    """The words between the two names of a template, such as "is the capital of"."""

    number: int
    rel: int
    text: str
    fields: tuple[str, str]
    """The placeholders before and after the words."""
    forms: tuple[str, str]
    label: str

    @property
    def is_general(self) -> bool:
        """Whether the phrase has no word of its own."""
        return _GENERAL_WORDS.issuperset(re.findall(r"\w+", self.text.lower()))


def make_relation_questions(builder: QuestionBuilder) -> list[str]:
    """Make questions for the relation of two names, with four phrases as choices.

    The phrases are the words between the names in the templates. Every phrase that is true of the two names in this
    order, by stated or inferred facts, is right. A phrase is offered as wrong only with evidence, and the first kind of
    evidence comes first:

    * The knowledge has one other value of its relation for one of the names, and the relation has one value for nearly
      every name in the knowledge: another city is the capital of the country. The values must be of one kind, that is,
      the two relations must have a name in common in that place. Relations that are not declared complete or functional
      have no such evidence.
    * The two relations have no name in common in either place, and the phrase has a word of its own. A phrase such as
      "was a part of" may be true of anything.

    Returns:
        Remarks on relations that are not asked for.
    """
    phrases = list(_phrases(builder))
    if not phrases:
        return []
    _load_phrases(builder, phrases)
    _create_evidence(builder)
    _sample_facts(builder, phrases)
    _draw_choices(builder)
    _add_questions(builder)
    return _remarks(builder, phrases)


def _phrases(builder: QuestionBuilder) -> Iterator[_Phrase]:
    """Yield the phrases of all templates that consist of two names with words between them."""
    number = 0
    for relation in builder.used_relations:
        for index, template in enumerate(relation.templates, 1):
            places = list(PLACEHOLDER.finditer(template))
            if len(places) != 2 or {match[2] for match in places} != set(_FIELDS):
                continue
            first, second = places
            text = template[first.end() : second.start()].strip()
            if first.start() or not re.fullmatch(r"[.!]?", template[second.end() :].strip()) or not text:
                continue
            fields, forms = (first[2], second[2]), (first[1] or "", second[1] or "")
            rel = builder.relation_numbers[relation.name]
            yield _Phrase(number, rel, text, fields, forms, f"{relation.name}/{index}")
            number += 1


def _load_phrases(builder: QuestionBuilder, phrases: list[_Phrase]) -> None:
    """Load the table ``phrases`` and create ``phrase_pairs``: the names that stand before and after each phrase."""
    relations = list(builder.relations.values())
    columns = {
        "number": pa.array([phrase.number for phrase in phrases], pa.int32()),
        "rel": pa.array([phrase.rel for phrase in phrases], pa.int32()),
        "text": pa.array([phrase.text for phrase in phrases], pa.string()),
        "label": pa.array([phrase.label for phrase in phrases], pa.string()),
        "x_field": pa.array([phrase.fields[0] for phrase in phrases], pa.string()),
        "y_field": pa.array([phrase.fields[1] for phrase in phrases], pa.string()),
        "general": pa.array([phrase.is_general for phrase in phrases], pa.bool_()),
        "incomplete": pa.array(
            [not builder.evidence.is_complete(relations[phrase.rel]) for phrase in phrases], pa.bool_()
        ),
    }
    builder.tables.load("phrases", pa.table(columns))
    builder.create_table(
        "phrase_pairs",
        """select q.number, q.text, case when q.x_field = 'subject' then p.s else p.o end as x,
            case when q.x_field = 'subject' then p.o else p.s end as y
        from pairs p join phrases q on q.rel = p.rel""",
    )


def _create_evidence(builder: QuestionBuilder) -> None:
    """Create the tables of evidence against phrases.

    ``true_phrases`` are the phrases that hold of two names, ``first_names`` and ``last_names`` the names before and
    after each phrase that have one name on the other side, ``single_valued`` the fields of which a relation has one
    value for nearly every name, and ``shared_fields`` the fields of two relations that have a name in common.
    """
    builder.create_table("true_phrases", "select distinct text, x, y from phrase_pairs")
    builder.create_table(
        "first_names", "select number, x from phrase_pairs group by number, x having count(distinct y) = 1"
    )
    builder.create_table(
        "last_names", "select number, y from phrase_pairs group by number, y having count(distinct x) = 1"
    )
    builder.create_table(
        "single_valued",
        " union all ".join(
            f"""select rel, '{field}' as field from (
                select rel, {given}, count(distinct {value}) as n from pairs group by rel, {given}
                ) c group by rel
            having count(*) >= {_FEWEST_NAMES} and count(*) filter (n = 1) >= {_SINGLE_SHARE} * count(*)"""
            for field, value, given in (("object", "o", "s"), ("subject", "s", "o"))
        ),
    )
    builder.create_table(
        "field_names",
        "select distinct rel, 'subject' as field, s as name from pairs "
        "union all select distinct rel, 'object' as field, o as name from pairs",
    )
    builder.create_table(
        "shared_fields",
        """select distinct a.rel as rel_a, a.field as field_a, b.rel as rel_b, b.field as field_b
        from field_names a join field_names b on b.name = a.name""",
    )


def _sample_facts(builder: QuestionBuilder, phrases: list[_Phrase]) -> None:
    """Create the table ``asked_pairs`` of facts with a phrase each, taken from the relations in turn."""
    cases = {
        column: " ".join(
            f"when q.number = {phrase.number} then {field_column(phrase.fields[place], phrase.forms[place])}"
            for phrase in phrases
        )
        for place, column in enumerate(("shown_x", "shown_y"))
    }
    limit = MAX_QUESTIONS if builder.options.limit is None else min(MAX_QUESTIONS, builder.options.limit)
    draw = builder.draw_sql(sql_literal("relation"), "w.fact_id", "q.label")
    builder.create_table(
        "asked_pairs",
        f"""with said as (
            select concat_ws(chr(31), w.fact_id, q.label) as id, w.fact_id, w.rel, w.domain, w.split, w.s, w.o,
                q.number, q.text, q.label, q.x_field, q.y_field,
                case when q.x_field = 'subject' then w.s else w.o end as x,
                case when q.x_field = 'subject' then w.o else w.s end as y,
                case {cases["shown_x"]} end as shown_x, case {cases["shown_y"]} end as shown_y, {draw} as draw
            from worded w join phrases q on q.rel = w.rel where w.stated and w.asked and not w.numeric
            qualify row_number() over (partition by w.rel, w.s, w.o order by {draw}, w.fact_id, q.label) = 1
        ), turns as (
            select *, row_number() over (partition by rel order by draw, id) as turn from said
        )
        select * exclude (draw, turn) from turns
        qualify row_number() over (order by turn, draw, id) <= {2 * limit}""",
    )


def _draw_choices(builder: QuestionBuilder) -> None:
    """Create the table ``phrase_choices`` of each asked pair's choices, and of all phrases that are right."""
    order = builder.draw_sql(sql_literal("wrong relation"), "w.id", "w.text")
    place = builder.draw_sql(sql_literal("relation order"), "c.id", "c.text")
    builder.create_table(
        "wrong_phrases",
        f"""with judged as (
            select a.id, q.text, ox.rel_a is not null or oy.rel_a is not null as near
            from asked_pairs a cross join phrases q
            left join first_names kx on kx.number = q.number and kx.x = a.x
            left join last_names ky on ky.number = q.number and ky.y = a.y
            left join single_valued vy on vy.rel = q.rel and vy.field = q.y_field
            left join single_valued vx on vx.rel = q.rel and vx.field = q.x_field
            left join shared_fields ox
                on ox.rel_a = a.rel and ox.field_a = a.x_field and ox.rel_b = q.rel and ox.field_b = q.x_field
            left join shared_fields oy
                on oy.rel_a = a.rel and oy.field_a = a.y_field and oy.rel_b = q.rel and oy.field_b = q.y_field
            where q.rel != a.rel and (
                (not q.incomplete and kx.x is not null and vy.rel is not null and oy.rel_a is not null)
                or (not q.incomplete and ky.y is not null and vx.rel is not null and ox.rel_a is not null)
                or (not q.general and ox.rel_a is null and oy.rel_a is null))
        ), w as (
            select j.id, j.text, bool_or(j.near) as near from judged j join asked_pairs a on a.id = j.id
            anti join true_phrases t on t.text = j.text and t.x = a.x and t.y = a.y
            group by j.id, j.text
        )
        select * from (
            select w.id, w.text, w.near,
                row_number() over (
                    partition by w.id order by case when w.near then 0 else 1 end, {order}, w.text) as nth
            from w
        ) n where nth <= {DISTRACTORS}""",
    )
    builder.create_table(
        "phrase_choices",
        f"""with c as (
            select id, text, false as is_target from wrong_phrases
            union all select id, text, true as is_target from asked_pairs
        ), rights as (
            select a.id, list(distinct t.text order by t.text) as answers
            from asked_pairs a join true_phrases t on t.x = a.x and t.y = a.y group by a.id
        ), offered as (
            select c.id, list(c.text order by {place}, c.text) as choices from c group by c.id
            having count(*) = {DISTRACTORS + 1} and count(distinct lower(c.text)) = {DISTRACTORS + 1}
        ) select o.id, o.choices, r.answers from offered o join rights r on r.id = o.id""",
    )


def _add_questions(builder: QuestionBuilder) -> None:
    limit = "" if builder.options.limit is None else f"where place <= {builder.options.limit}"
    slot = sql_literal(f" {SLOT} ")
    builder.create_table(
        "relation_questions",
        f"""select * from (
            select a.*, c.choices, c.answers,
                row_number() over (order by {builder.draw_sql(sql_literal("relation limit"), "a.id")}, a.id) as place
            from asked_pairs a join phrase_choices c on c.id = a.id
        ) q {limit or f"where place <= {MAX_QUESTIONS}"}""",
    )
    builder.add_questions(
        "relation_questions",
        task=sql_literal(TASK),
        prompt=f"concat(capital(shown_x), {slot}, shown_y, '.')",
        answers="list_prepend(text, list_filter(answers, lambda p: p != text))",
        target="text",
        choices="choices",
        facts="[fact_id]",
        template="label",
        entities="[x, y]",
    )


def _remarks(builder: QuestionBuilder, phrases: list[_Phrase]) -> list[str]:
    with_phrase = {phrase.rel for phrase in phrases}
    missing = [
        relation.name
        for relation in builder.used_relations
        if builder.relation_numbers[relation.name] not in with_phrase
    ]
    remarks = []
    if missing:
        remarks.append(
            f"no template of {counted(len(missing), 'relation')} has words between two names, as in "
            f"'{{subject}} is in {{object}}.': the relation itself is not asked for ({', '.join(missing[:5])}"
            f"{', …' if len(missing) > 5 else ''})"
        )
    [(dropped, total)] = builder.rows(
        "select count(*) filter (where c.id is null), count(*) from asked_pairs a left join phrase_choices c "
        "on c.id = a.id"
    )
    if dropped:
        remarks.append(
            f"relation: left out {dropped:,} of {counted(total, 'pair')} of names for fewer than {DISTRACTORS} phrases "
            "that are certainly wrong"
        )
    return remarks
