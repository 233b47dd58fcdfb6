"""Questions of temporal facts: masked statements and queries as sentences, answered by names of a relation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, FREQUENCIES, QUESTIONS, validate
from merkhet.engine.build_step import apply_limits
from merkhet.engine.study import Study
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.question_files import QuestionSet
from merkhet.suites.lama_tk.candidate_pools import PLACE, Pools, read_pools, with_candidates
from merkhet.suites.lama_tk.options import TASKS, read_options
from merkhet.suites.lama_tk.published import published_facts, source_name
from merkhet.suites.lama_tk.questions.masked_statements import masked_statements
from merkhet.suites.lama_tk.questions.order_queries import order_queries
from merkhet.suites.lama_tk.questions.statement_sql import remarks_of
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts, temporal_facts
from merkhet.suites.lama_tk.questions.time_queries import boundary_queries, implicit_queries
from merkhet.suites.lama_tk.questions.wordings import Wordings, read_wordings
from merkhet.training import MEMORIZE

MOST = 100_000
"""How many questions there are at most where nobody has said how many of a task there shall be."""


@contextmanager
def knowledge_of(study: Study, home: Path) -> Iterator[tuple[KnowledgeBase, tuple[str, ...]]]:
    """The knowledge that a study is about, and what is to be said of how it was read.

    It is the study's data where it has some (see :func:`published_facts`), else its knowledge.
    """
    if study.data is not None:
        with published_facts(home / study.data) as found:
            yield found
    else:
        with KnowledgeBase.load(study.knowledge, home) as knowledge:
            yield knowledge, ()


def make_temporal_questions(study: Study, home: Path) -> QuestionSet:
    """Questions of the tasks that are wanted, about the facts of a study that have times.

    A question is a sentence with one thing left out and the name that stood there; ``answers`` are all names that make
    it true. Its Q-set is its fact. Years are asked among all years that occur with the relation, names among some of
    its names (see :func:`with_candidates`). Where a limit is given, questions are drawn before they get candidates.
    """
    options = read_options(study, home)
    if study.learning is not None and study.learning.learner != MEMORIZE:
        raise InputError(
            "lama-tk has no questions to learn from; its facts can be stored ('merkhet memorize'), and models asked as "
            "they are: leave 'learning' out"
        )
    wordings = read_wordings(options.wordings)
    with knowledge_of(study, home) as (knowledge, told):
        facts = temporal_facts(
            knowledge, granularity=options.granularity, relations=options.relations, wordings=wordings
        )
    given = source_name(home / study.data) if study.data is not None else ", ".join(study.knowledge)
    statements, remarks = _statements(facts, wordings, study)
    if not statements.num_rows:
        raise InputError(f"no questions can be made of {given}: {' '.join((*remarks, *told, *facts.remarks)[:3])}")
    pools = read_pools(statements, facts, options, study.seed)
    every = _as_questions(statements, facts, pools)
    if study.limit is None and every.num_rows > MOST:
        raise InputError(
            f"{given} makes {every.num_rows:,} questions, each with names of its own to choose from. Say how many of "
            "each task there shall be, such as --limit 1000"
        )
    about = {
        "sources": [f"{given}: {facts.table.num_rows:,} facts with times"],
        "remarks": [*told, *facts.remarks, *remarks],
    }
    frequencies = _frequencies(every)
    # Drawn first: of a parliament's members each is asked for, and all the others are right.
    asked = _with_answers(apply_limits(QuestionSet(every), study).questions, statements, facts)
    questions, candidates, alone = with_candidates(asked, pools)
    if alone:
        few = "1 question offers" if alone == 1 else f"{alone:,} questions offer"
        about["remarks"].append(f"{few} nothing but right answers, and {'is' if alone == 1 else 'are'} left out.")
    return QuestionSet(questions, candidates, _facts(facts, questions), frequencies, about)


def _statements(facts: TemporalFacts, wordings: Wordings, study: Study) -> tuple[pa.Table, list[str]]:
    """Sentences of the tasks that are wanted, one thing masked in each, and what is to be said of them."""
    makers: dict[str, Callable[[], pa.Table]] = {
        "statement": lambda: masked_statements(facts, wordings),
        "boundary": lambda: boundary_queries(facts, wordings),
        "implicit": lambda: implicit_queries(facts, wordings, seed=study.seed),
        "order": lambda: order_queries(facts, wordings),
    }
    made = {task: makers[task]() for task in TASKS if task in (study.tasks or TASKS)}
    remarks = [f"{task}: {remark}" for task, table in made.items() for remark in remarks_of(table)]
    return pa.concat_tables([table.replace_schema_metadata(None) for table in made.values()]), remarks


def _as_questions(statements: pa.Table, facts: TemporalFacts, pools: Pools) -> pa.Table:
    """Questions by id, with the name that was left out as their one answer; those that read and mean the same are one.

    The template of a question is ``relation/template/mask``, from which scores know its relation and its mask.
    """
    with duckdb.connect() as connection:
        connection.register("statements", statements)
        connection.register("symbols", facts.symbols)
        connection.register("pools", pools.table)
        found = connection.sql(
            f"""with asked as (
                select task, prompt, name as target, min(relation) as relation, min(template) as template,
                    min(mask) as mask, list_sort(list_distinct(list(fact_id))) as facts,
                    min(md5(answers::varchar)) as sense
                from statements join symbols on symbols.symbol = statements.target group by task, prompt, name
            )
            select 'q_' || left(sha256(concat_ws(chr(31), task, prompt, target, sense, offered)), 20) as question_id,
                'lama-tk' as suite, task, 'en' as language, prompt, [target] as answers, target, candidate_set, facts,
                facts[1] as qset, asked.relation as domain,
                replace(asked.relation, '/', ' or ') || '/' || template || '/' || mask as template
            from asked join pools on pools.relation = asked.relation and pools.place = {PLACE} order by question_id"""
        ).to_arrow_table()
    return validate(QUESTIONS, found)


def _with_answers(questions: pa.Table, statements: pa.Table, facts: TemporalFacts) -> pa.Table:
    """The questions with all names that are right: those of what reads the same in their task."""
    with duckdb.connect() as connection:
        connection.register("questions", questions)
        connection.register("statements", statements)
        connection.register("symbols", facts.symbols)
        found = connection.sql(
            """with listed as (
                select task, prompt, unnest(arg_min(answers, statement_id)) as symbol from statements
                semi join questions using (task, prompt) group by task, prompt
            ), right_ones as (
                select task, prompt, list_sort(list_distinct(list(name))) as answers
                from listed join symbols using (symbol) group by task, prompt
            ) select questions.* replace (right_ones.answers as answers) from questions
            join right_ones using (task, prompt) order by question_id"""
        ).to_arrow_table()
    return validate(QUESTIONS, found)


def _frequencies(questions: pa.Table) -> pa.Table:
    """How often each name is the one that was left out, by task and relation."""
    with duckdb.connect() as connection:
        connection.register("questions", questions)
        found = connection.sql(
            """select task, split_part(template, '/', 1) as relation, target as answer, count(*) as count
            from questions group by all order by all"""
        ).to_arrow_table()
    return validate(FREQUENCIES, found)


def _facts(facts: TemporalFacts, questions: pa.Table) -> pa.Table:
    """The facts that are asked about."""
    asked = pc.unique(pc.list_flatten(questions["facts"]))
    table = facts.table.filter(pc.is_in(facts.table["fact_id"], asked))
    columns = {"fact_id": "fact_id", "subject": "subject", "predicate": "relation", "object": "object"}
    kept = {name: table[column] for name, column in columns.items()}
    return validate(FACTS, pa.table({**kept, "start": table["start"], "end": table["end"]}))
