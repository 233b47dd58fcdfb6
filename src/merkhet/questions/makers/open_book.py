"""Open-book questions: reasoning questions with their premises in the text, among unrelated premises."""

from __future__ import annotations

from merkhet.core.text import counted
from merkhet.questions.makers._template_sql import sql_literal
from merkhet.questions.makers.proof_premises import COMPARISON
from merkhet.questions.makers.question_builder import QuestionBuilder

OPEN_BOOK = "open-book"
"""Task of the open-book questions."""
UNRELATED = 2
"""Number of other conclusions whose premises are put among those of a question."""
_TRIES, _DISTANT_TRIES = 24, 8
"""Number of conclusions that are tried for a question: of the same relation, and of any."""


def open_books(builder: QuestionBuilder) -> list[str]:
    """Ask the reasoning questions in the table ``made`` again, with sentences before the prompt.

    The sentences are the premises of the conclusion and those of ``UNRELATED`` other conclusions, in an order drawn by
    seed. Conclusion, choices and answers are those of the closed-book question. Unrelated premises share no name with
    the conclusion and its proof, so nothing about the question follows from them. Conclusions of the same relation are
    preferred, and among them those that mention one of the question's wrong choices: the answer is not the only option
    in the text. Comparisons are not asked with open book.

    Returns:
        A remark on conclusions without open-book questions.
    """
    builder.create_table(
        "closed_book",
        f"select *, facts[1] as conclusion from made where task = 'reasoning' and rule != {sql_literal(COMPARISON)}",
    )
    _create_known_names(builder)
    _create_unrelated(builder)
    _create_books(builder)
    builder.create_table(
        "opened",
        """select c.*, b.book from closed_book c join books b on b.conclusion = c.conclusion
        where choices is not null or not contains(lower(prompt), lower(target))""",
    )
    columns = ("answers", "target", "choices", "candidate_set", "facts", "qset", "rule", "template", "entities")
    builder.add_questions(
        "opened",
        task=sql_literal(OPEN_BOOK),
        prompt="book || ' ' || prompt",
        **{name: name for name in columns},
    )
    total, opened = (
        builder.rows(f"select count(distinct conclusion) from {table}")[0][0] for table in ("closed_book", "opened")
    )
    for table in ("closed_book", "opened", "shown_premises", "proof_names", "shelf"):
        builder.tables.drop(table)
    for table in ("unrelated_tried", "unrelated_fitting", "unrelated"):
        builder.tables.drop(table)
    if total == opened:
        return []
    return [f"open book: left out {total - opened:,} of {counted(total, 'conclusion')}, whose premises cannot be shown"]


def _create_known_names(builder: QuestionBuilder) -> None:
    """Create the tables of conclusions whose stated premises all have sentences.

    ``shown_premises`` has their premises, ``proof_names`` the names in the conclusion and its premises, and
    ``shelf`` numbers the conclusions of each relation.
    """
    builder.create_table(
        "shown_premises",
        """with asked as (select distinct conclusion from closed_book)
        select n.conclusion, n.fact_id, s.s, s.o, s.sentence
        from proof_facts n join premise_sentences s on s.fact_id = n.fact_id
        semi join asked a on a.conclusion = n.conclusion
        anti join (
            select distinct m.conclusion from proof_facts m anti join premise_sentences k on k.fact_id = m.fact_id
            where m.stated
        ) x on x.conclusion = n.conclusion where n.stated""",
    )
    builder.create_table(
        "proof_names",
        """select conclusion, lower(s) as name from shown_premises union select conclusion, lower(o) from shown_premises
        union select c.fact_id, lower(c.s) from concluded c join shown_premises p on p.conclusion = c.fact_id
        union select c.fact_id, lower(c.o) from concluded c join shown_premises p on p.conclusion = c.fact_id""",
    )
    rows = """select distinct c.rel, c.fact_id as conclusion, lower(c.s) as s, lower(c.o) as o
        from concluded c join shown_premises p on p.conclusion = c.fact_id"""
    order = ["rel", "key", "conclusion"]
    builder.tables.number_rows(
        "shelf",
        f"select *, md5(conclusion) as key from ({rows}) r qualify row_number() over "
        "(partition by conclusion order by rel) = 1",
        order,
        spread="lpad(rel::varchar, 6, '0') || left(key, 2)",
    )


def _create_unrelated(builder: QuestionBuilder) -> None:
    """Create the table ``unrelated``: for each conclusion, other conclusions whose premises share no name with it."""
    near, far = (builder.draw_sql(sql_literal(f"unrelated {where}"), "a.conclusion", "k") for where in ("near", "far"))
    builder.create_table(
        "unrelated_tried",
        f"""with sizes as (select rel, count(*) as size, min(n) as first_one from shelf group by rel),
        whole as (select count(*) as size from shelf),
        numbers as (select unnest(range({_TRIES})) as k),
        places as (
            select a.conclusion, a.rel, z.first_one + ({near} % z.size)::bigint as place
            from shelf a join sizes z on z.rel = a.rel cross join numbers
            union
            select a.conclusion, a.rel, 1 + ({far} % w.size)::bigint as place
            from shelf a cross join whole w cross join numbers where k < {_DISTANT_TRIES}
        )
        select p.conclusion, o.conclusion as other, p.rel != o.rel as distant, o.s, o.o
        from places p join shelf o on o.n = p.place where o.conclusion != p.conclusion""",
    )
    builder.create_table(
        "unrelated_fitting",
        """select t.* from unrelated_tried t anti join (
            select distinct r.conclusion, r.other from unrelated_tried r
            join proof_names a on a.conclusion = r.conclusion
            join proof_names b on b.conclusion = r.other and b.name = a.name
        ) x on x.conclusion = t.conclusion and x.other = t.other""",
    )
    order = builder.draw_sql(sql_literal("unrelated order"), "f.conclusion", "f.other")
    builder.create_table(
        "unrelated",
        f"""with options as (
            select distinct conclusion, lower(choice) as choice from (
                select conclusion, unnest(choices) as choice from closed_book where choices is not null) c
        ), mentioned as (
            select distinct f.conclusion, f.other from unrelated_fitting f join options o
            on o.conclusion = f.conclusion and (contains(o.choice, f.o) or contains(o.choice, f.s))
        )
        select f.conclusion, f.other from unrelated_fitting f
        left join mentioned m on m.conclusion = f.conclusion and m.other = f.other
        qualify row_number() over (partition by f.conclusion order by f.distant,
            case when m.other is null then 1 else 0 end, {order}, f.other) <= {UNRELATED}""",
    )


def _create_books(builder: QuestionBuilder) -> None:
    """Create the table ``books`` with the sentences before the prompt of each conclusion."""
    order = builder.draw_sql(sql_literal("book"), "conclusion", "sentence")
    builder.create_table(
        "books",
        f"""with pages as (
            select conclusion, sentence, fact_id from shown_premises
            union all
            select u.conclusion, p.sentence, p.fact_id from unrelated u join shown_premises p on p.conclusion = u.other
        ), leaves as (
            select conclusion, sentence from pages
            where conclusion in (select conclusion from unrelated) group by conclusion, sentence
        )
        select conclusion, array_to_string(list(sentence order by {order}, sentence), ' ') as book
        from leaves group by conclusion""",
    )
