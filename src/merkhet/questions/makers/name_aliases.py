"""Aliases: the other names of entities, which are right as text and never candidates.

An answer is a name in a field of a relation. Its aliases are those of every entity that has this name in this field:
two countries that share a label also share their aliases in a question. Two names are *alike* if one entity is called
both: an alias of an entity with one name is the other name, up to case, punctuation and articles. Such a name is
neither offered as wrong nor a candidate beside the right answer, even if another entity is called by it, too.

Tables:

* ``aliases`` (entity, alias) in the language of the questions;
* ``alike`` (name, other), in both directions;
* ``field_aliases`` (rel, ask, name, alias) of the names that fill an asked field of a relation;
* ``shown_aliases`` and ``shown_alike`` (rel, ask, form, begins, name, shown): aliases, and other names of the same
  field that are alike, as they fill a slot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from merkhet.core import SLOT
from merkhet.questions.english import FORMS
from merkhet.questions.makers._template_sql import case_sql, slot_form, sql_literal
from merkhet.questions.schema import Relation
from merkhet.questions.templates import placeholder_names

if TYPE_CHECKING:
    from merkhet.questions.makers.question_builder import QuestionBuilder

CLEAN_NAME = "trim(regexp_replace({}, '[\\x00-\\x20\\x7f]+', ' ', 'g'))"
"""SQL that replaces control characters of a name by blanks."""
_FIELDS = {"subject": "f.subject", "object": "f.object"}
_NAMES = {"shown_aliases": "alias", "shown_alike": "other"}


def create_aliases(builder: QuestionBuilder) -> None:
    """Create the tables ``aliases`` and ``alike`` of the entities in ``named``."""
    language = sql_literal(builder.options.language)
    builder.tables.define_function(
        "name_key",
        ["t"],
        r"""coalesce(nullif(trim(regexp_replace(' ' || regexp_replace(regexp_replace(lower(t), '[!-/:-@\[-`{-~]+', '',
        'g'), '\s+', ' ', 'g') || ' ', ' ((a|an|the) )+', ' ', 'g')), ''), lower(t))""",
    )
    builder.create_table(
        "aliases",
        f"""select distinct t.entity, t.alias from (
            select entity, {CLEAN_NAME.format("text")} as alias from (
                select entity, label as text from names where language = {language}
                union all select entity, text from (
                    select entity, unnest(aliases) as text from names where language = {language}) u
            ) texts where text is not null and not contains(text, {sql_literal(SLOT)})
        ) t join named n on n.entity = t.entity where t.alias != '' and t.alias != n.name""",
    )
    pairs = "select cast(null as varchar) as name, cast(null as varchar) as other where false"
    if builder.tables.count("aliases"):
        builder.create_table(
            "same_keys",
            """select distinct k.name, n.name as other from (
                select distinct n.name, name_key(a.alias) as key from aliases a join named n on n.entity = a.entity
            ) k join named n on name_key(n.name) = k.key where lower(n.name) != lower(k.name)""",
        )
        pairs = "select name, other from same_keys union select other as name, name as other from same_keys"
    builder.tables.map_batches("alike", pairs, _drop_equal_forms)


def _drop_equal_forms(pairs: pa.Table) -> pa.Table:
    """Drop the pairs of names that are equal in some form, as "Gambia" and "The Gambia" are with the article."""
    differ = [
        all(form(name).lower() != form(other).lower() for form in FORMS.values())
        for name, other in zip(pairs["name"].to_pylist(), pairs["other"].to_pylist(), strict=True)
    ]
    return pairs.filter(pa.array(differ, pa.bool_()))


def create_field_aliases(builder: QuestionBuilder) -> None:
    """Create the table ``field_aliases``; the full name is an alias of a name that its relation shortens.

    Needs the table ``schema_relations``.
    """
    branches = []
    for ask, entity in _FIELDS.items():
        relations = [relation for relation in builder.relations.values() if ask in relation.asks]
        numbers = ", ".join(str(builder.relation_numbers[relation.name]) for relation in relations)
        if not numbers:
            continue
        short = "regexp_extract(n.name, '\\S+\\z', 0)"
        name = f"case when r.shorten = '{ask}' then {short} else n.name end"
        facts = f"""facts f join schema_relations r on r.predicate = f.predicate and r.rel in ({numbers})
            join named n on n.entity = {entity}"""
        branches.append(
            f"select r.rel, '{ask}' as ask, {name} as name, a.alias from {facts} join aliases a on a.entity = {entity}"
        )
        if any(relation.shorten == ask for relation in relations):
            branches.append(
                f"select r.rel, '{ask}' as ask, {short} as name, n.name as alias from {facts} where r.shorten = '{ask}'"
            )
    nothing = "select cast(null as integer) as rel, cast(null as varchar) as ask, cast(null as varchar) as name, "
    nothing += "cast(null as varchar) as alias where false"
    rows = " union all ".join(branches) or nothing
    builder.create_table("field_aliases", f"select distinct rel, ask, name, alias from ({rows}) r where alias != name")


def alias_names_sql(field: str, numbers: Iterable[str]) -> str:
    """Return SQL for the aliases of the names in a field of the relations with these numbers."""
    return f"select alias as name from field_aliases where ask = '{field}' and rel in ({', '.join(numbers)})"


def create_shown_aliases(builder: QuestionBuilder) -> None:
    """Create the tables ``shown_aliases`` and ``shown_alike`` for the slots of all templates.

    Needs the tables ``worded`` and ``forms``.
    """
    slots = sorted(
        {
            (builder.relation_numbers[relation.name], ask, *slot_form(template, ask))
            for relation in builder.relations.values()
            for ask in relation.asks
            if ask in _FIELDS
            for template in (*relation.templates, *(text for scope in relation.scopes for text in scope.templates))
            if ask in placeholder_names(template)
        }
    )
    columns = [("rel", pa.int32()), ("ask", pa.string()), ("form", pa.string()), ("begins", pa.bool_())]
    rows = [dict(zip(("rel", "ask", "form", "begins"), slot, strict=True)) for slot in slots]
    builder.tables.load("alias_slots", pa.Table.from_pylist(rows, pa.schema(columns)))
    builder.create_table(
        "alike_names",
        " union ".join(
            f"select w.rel, '{ask}' as ask, w.{column} as name from worded w semi join alike l on l.name = w.{column} "
            "where w.asked"
            for ask, column in (("object", "o"), ("subject", "s"))
        ),
    )
    builder.create_table(
        "field_alike",
        """select x.rel, x.ask, x.name, l.other from alike_names x join alike l on l.name = x.name
        join alike_names y on y.rel = x.rel and y.ask = x.ask and y.name = l.other""",
    )
    forms = sorted({form for _, _, form, _ in slots} - {""})
    for table, name in _NAMES.items():
        source = "field_aliases" if table == "shown_aliases" else "field_alike"
        shown = case_sql(((f"x.form = '{form}'", f"f.shown_{form}") for form in forms), f"x.{name}")
        builder.create_table(
            table,
            f"""select distinct rel, ask, form, begins, name,
                case when begins then capital(shown) else shown end as shown from (
                select x.*, {shown} as shown from (
                    select a.*, t.form, t.begins from {source} a join alias_slots t on t.rel = a.rel and t.ask = a.ask
                ) x left join forms f on f.name = x.{name}
            ) y""",
        )
    builder.alias_fields = {
        table: {(rel, ask) for rel, ask in builder.rows(f"select distinct rel, ask from {table}")} for table in _NAMES
    }


def other_names_sql(builder: QuestionBuilder, relation: Relation, template: str, ask: str, names: str) -> str | None:
    """Return SQL for the other names of right answers as they fill a slot; None if the field has none.

    Args:
        names: SQL query that selects the right answers ``name`` of each context ``ctx``.

    Returns:
        SQL that selects the columns ctx, ``aliases`` and ``alike`` (candidates to leave out); lists may be null.
    """
    number = builder.relation_numbers[relation.name]
    present = [table for table in _NAMES if (number, ask) in builder.alias_fields[table]]
    if not present:
        return None
    form, begins = slot_form(template, ask)
    queries = {
        table: f"""(select c.ctx, list(distinct a.shown order by a.shown) as texts
            from ({names}) c join {table} a on a.name = c.name
            where a.rel = {number} and a.ask = '{ask}' and a.form = '{form}' and {"" if begins else "not "}a.begins
            group by c.ctx)"""
        for table in present
    }
    if len(present) == 2:
        return f"""select coalesce(a.ctx, k.ctx) as ctx, a.texts as aliases, k.texts as alike
        from {queries["shown_aliases"]} a full join {queries["shown_alike"]} k on k.ctx = a.ctx"""
    columns = ("texts", "cast(null as varchar[])")
    aliases, alike = columns if present == ["shown_aliases"] else columns[::-1]
    return f"select ctx, {aliases} as aliases, {alike} as alike from {queries[present[0]]} t"


def create_subject_aliases(builder: QuestionBuilder, rows: str, into: str) -> None:
    """Create a table (fact_id, aliases) with the inflected aliases of the subjects of facts that have aliases.

    Args:
        rows: SQL query that selects the columns ``fact_id`` and ``form``.
    """
    builder.create_table(
        f"{into}_plain",
        f"""select distinct r.fact_id, r.form, a.alias from ({rows}) r join facts f on f.fact_id = r.fact_id
        join aliases a on a.entity = f.subject""",
    )
    builder.create_name_forms(f"select alias as name, form from {into}_plain", f"{into}_forms")
    builder.create_table(
        into,
        f"""select p.fact_id, list(distinct m.shown order by m.shown) as aliases
        from {into}_plain p join {into}_forms m on m.name = p.alias and m.form = p.form group by p.fact_id""",
    )


def with_aliases_sql(answers: str, aliases: str) -> str:
    """Return SQL for a list of right answers, followed by the aliases that are not among them."""
    further = f"list_filter({aliases}, lambda x: not list_contains({answers}, x))"
    return f"case when {aliases} is null then {answers} else list_concat({answers}, {further}) end"
