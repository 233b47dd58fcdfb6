"""Conclusions of reasoning questions, and the premises of their proofs down to stated facts."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.schemas import PREMISES, validate
from merkhet.knowledge.rules.rulebook import RULES, axiom_sql
from merkhet.questions.makers._template_sql import case_sql, sentence_sql, sql_literal, usable_sql
from merkhet.questions.makers.question_builder import QuestionBuilder, pick_sql
from merkhet.questions.templates import placeholder_names

COMPARISON = "comparison"
"""The ``rule`` of a comparison question, whose premises are the numbers that it compares."""
_RELATIONS_AT_ONCE = 64
"""Maximum number of relations whose sentences one SQL query makes."""


def _axiom_name_sql(rule: str) -> str:
    """Return SQL for the name of a rule's axiom, or for the rule's own name if it has none."""
    aliases = [
        (f"{rule} = {sql_literal(name)}", sql_literal(known.alias)) for name, known in RULES.items() if known.alias
    ]
    return case_sql(aliases, rule)


def create_conclusions(builder: QuestionBuilder) -> None:
    """Create the table ``concluded`` of the inferred facts that are not also stated, and the table ``proof_facts``.

    ``proof_facts`` has a row for each conclusion and each fact of its proof below the conclusion, stated or inferred.
    ``step`` is 1 for what the conclusion follows from directly, 2 for what these facts follow from, and so on;
    ``axiom`` is what is applied to the fact at that step. Axioms themselves are left out.
    """
    builder.create_table(
        "concluded",
        f"""with first_ones as (
            select *, {_axiom_name_sql("rule")} as axiom from worded w where rule is not null and not over and asked
            and not exists (select 1 from worded x where x.stated and x.rel = w.rel and x.s = w.s and x.o = w.o)
            qualify row_number() over (partition by rel, s, o order by fact_id) = 1
        ) select c.*, f.premises from first_ones c join facts f on f.fact_id = c.fact_id""",
    )
    builder.create_table(
        "proof_new",
        "select distinct fact_id as conclusion, fact_id, 0 as step, '' as axiom, false as stated from concluded",
    )
    builder.create_table("proof_facts", "select * from proof_new where false")
    while builder.tables.count("proof_new"):
        builder.create_table(
            "proof_new",
            f"""with used as (
                select n.conclusion, n.step + 1 as step, {_axiom_name_sql("f.rule")} as axiom,
                    unnest(f.premises) as fact_id
                from proof_new n join facts f on f.fact_id = n.fact_id where f.rule is not null
            )
            select u.conclusion, u.fact_id, min(u.step) as step, min(u.axiom) as axiom,
                bool_and(f.rule is null) as stated
            from used u join facts f on f.fact_id = u.fact_id
            anti join proof_facts k on k.conclusion = u.conclusion and k.fact_id = u.fact_id
            where not {axiom_sql("f")} and u.fact_id != u.conclusion
            group by u.conclusion, u.fact_id""",
        )
        builder.tables.add("proof_facts", "select conclusion, fact_id, step, axiom, stated from proof_new")
    builder.tables.drop("proof_new")


def create_premise_sentences(builder: QuestionBuilder) -> None:
    """Create the table ``premise_sentences`` of the stated facts in proofs and comparisons, with a sentence for each.

    The template is drawn by fact. Templates that name a time are used only if a relation has no others; a fact
    without that time has no row.
    """
    texts: dict[int, list[str]] = {}
    for relation in builder.used_relations:
        plain = [text for text in relation.templates if set(placeholder_names(text)) == {"subject", "object"}]
        texts[builder.relation_numbers[relation.name]] = plain or list(relation.templates)
    usable = case_sql((f"rel = {rel}", f"({' and '.join(map(usable_sql, some))})") for rel, some in texts.items())
    builder.create_table(
        "premise_words",
        f"""select * from worded where rule is null and not over and {usable}
        and fact_id in (
            select fact_id from proof_facts where stated
            union
            select fact_id from (select unnest(facts) as fact_id from made where rule = {sql_literal(COMPARISON)}) c
        ) qualify row_number() over (partition by fact_id order by rel) = 1""",
    )
    builder.create_table(
        "premise_sentences",
        "select fact_id, s, o, cast(null as varchar) as sentence from premise_words where false",
    )
    draw = builder.draw_sql(sql_literal("premise"), "fact_id")
    numbers = list(texts)
    for first in range(0, len(numbers), _RELATIONS_AT_ONCE):
        some = numbers[first : first + _RELATIONS_AT_ONCE]
        sentence = case_sql((f"rel = {rel}", pick_sql(map(sentence_sql, texts[rel]), draw)) for rel in some)
        builder.tables.add(
            "premise_sentences",
            f"select fact_id, s, o, {sentence} as sentence from premise_words "
            f"where rel in ({', '.join(map(str, some))})",
        )
    builder.tables.drop("premise_words")


def read_premises(builder: QuestionBuilder, questions: pa.Table) -> pa.Table:
    """Return the premises of reasoning questions: the stated facts at the bottom of each proof.

    A fact without a template is worded by its names and its predicate.
    """
    builder.tables.load(
        "questions_with_proofs",
        questions.filter(pc.is_valid(questions["rule"])).select(["question_id", "facts", "rule"]),
    )
    comparison = sql_literal(COMPARISON)
    table = builder.tables.arrow(
        f"""select p.question_id, p.fact_id, p.step, p.axiom, coalesce(s.sentence, concat_ws(' · ',
            coalesce(a.name, f.subject), f.predicate, coalesce(b.name, v.text, f.object))) as sentence
        from (
            select q.question_id, n.fact_id, n.step, n.axiom
            from (select question_id, facts[1] as conclusion from questions_with_proofs where rule != {comparison}) q
            join proof_facts n on n.conclusion = q.conclusion where n.stated
            union all
            select question_id, fact_id, 1 as step, {comparison} as axiom from (
                select question_id, unnest(facts) as fact_id from questions_with_proofs where rule = {comparison}) c
        ) p join facts f on f.fact_id = p.fact_id left join premise_sentences s on s.fact_id = p.fact_id
        left join named a on a.entity = f.subject left join named b on b.entity = f.object
        left join value_texts v on v.value = f.value
        order by p.question_id, p.step, p.fact_id"""
    )
    return validate(PREMISES, table)
