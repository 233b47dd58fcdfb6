"""Builder of temporal questions: sentences about temporal facts, with one slot each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from merkhet.core.errors import InputError
from merkhet.core.schemas import QUESTIONS, validate
from merkhet.engine.build_step import apply_limits
from merkhet.engine.study import Study
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.losses import Account, Loss, LossCounter, losses_for_card
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.statements import statement_facts
from merkhet.suites.lama_tk.candidate_pools import ROLE_SQL, Pools, add_candidates, make_pools
from merkhet.suites.lama_tk.options import TASKS, LamaTkOptions
from merkhet.suites.lama_tk.published import published_facts, source_name
from merkhet.suites.lama_tk.questions.masked_statements import make_masked_statements
from merkhet.suites.lama_tk.questions.order_queries import make_order_queries
from merkhet.suites.lama_tk.questions.statement_sql import read_losses, read_remarks
from merkhet.suites.lama_tk.questions.temporal_facts import TemporalFacts, extract_temporal_facts, open_workbench
from merkhet.suites.lama_tk.questions.time_queries import make_boundary_queries, make_implicit_queries
from merkhet.suites.lama_tk.questions.wordings import Wordings, read_wordings
from merkhet.training import MEMORIZE

MAX_QUESTIONS = 100_000
"""Maximum number of questions if the study sets no limit."""


@contextmanager
def open_knowledge(study: Study, home: Path) -> Iterator[tuple[KnowledgeBase, tuple[str, ...]]]:
    """Open the knowledge base of a study, and yield it with remarks on how it was read.

    If the study names ``data``, these published facts are read (see :func:`published_facts`). Otherwise, the sources in
    ``knowledge`` are loaded.
    """
    if study.data is not None:
        with published_facts(home / study.data) as knowledge_and_remarks:
            yield knowledge_and_remarks
    else:
        with KnowledgeBase.load(study.knowledge, home) as knowledge:
            yield knowledge, ()


def make_temporal_questions(study: Study, home: Path) -> QuestionSet:
    """Make the questions of a study about facts with times.

    A question is a sentence in which a slot replaces one name or time; ``answers`` are all names that make it true.
    ``qset`` is the id of the fact. The candidates are all years, or a sample of the names, that occur with the relation
    (see :func:`add_candidates`). If the study sets a limit, questions are sampled before candidates are added.

    Raises:
        InputError: The study trains on questions, no question can be made, or a limit is needed but not set.
    """
    options = LamaTkOptions.of(study)
    if study.learning is not None and study.learning.learner != MEMORIZE:
        raise InputError(
            "lama-tk has no training questions: leave 'learning' out to ask models as they are, or store the facts "
            "with 'merkhet memorize'"
        )
    wordings = read_wordings(options.wordings and home / options.wordings)
    with open_knowledge(study, home) as (knowledge, reading_remarks):
        facts = extract_temporal_facts(
            knowledge, granularity=options.granularity, relations=options.relations, wordings=wordings
        )
    source = source_name(home / study.data) if study.data is not None else ", ".join(study.knowledge)
    statements, remarks, losses = _make_statements(facts, wordings, study)
    if not statements.num_rows:
        raise InputError(
            f"no questions can be made of {source}: {' '.join((*remarks, *reading_remarks, *facts.remarks)[:3])}"
        )
    pools = make_pools(statements, facts, options, study.seed)
    all_questions = _make_questions(statements, facts, pools)
    if study.limit is None and all_questions.num_rows > MAX_QUESTIONS:
        raise InputError(
            f"{source} makes {all_questions.num_rows:,} questions, each with its own candidates; limit the facts "
            "of each task, such as --limit 1000"
        )
    data_card: dict[str, Any] = {
        "sources": [f"{source}: {facts.table.num_rows:,} facts with times"],
        "remarks": [*reading_remarks, *facts.remarks, *remarks],
    }
    limited = apply_limits(QuestionSet(all_questions, facts=statement_facts(facts.table)), study)
    # Answers are added after sampling to save memory: a question on a parliament lists all of its members.
    sampled = _add_answers(limited.questions, statements, facts)
    questions, candidates, dropped = add_candidates(sampled, pools)
    data_card |= losses_for_card(_accounts(facts, losses, all_questions, sampled, questions))
    if dropped:
        subject_phrase = "1 question is" if dropped == 1 else f"{dropped:,} questions are"
        data_card["remarks"].append(f"{subject_phrase} left out: all candidates are right.")
    fact_ids = pc.unique(pc.list_flatten(questions["facts"]))
    asked_facts = facts.table.filter(pc.is_in(facts.table["fact_id"], fact_ids))
    return QuestionSet(questions, candidates, statement_facts(asked_facts), limited.frequencies, data_card)


def _make_statements(
    facts: TemporalFacts, wordings: Wordings, study: Study
) -> tuple[pa.Table, list[str], dict[str, list[Loss]]]:
    """Make the masked statements of all tasks of the study; return them with remarks, and with losses by task."""
    makers: dict[str, Callable[[], pa.Table]] = {
        "statement": lambda: make_masked_statements(facts, wordings),
        "boundary": lambda: make_boundary_queries(facts, wordings),
        "implicit": lambda: make_implicit_queries(facts, wordings, seed=study.seed),
        "order": lambda: make_order_queries(facts, wordings),
    }
    tables = {task: makers[task]() for task in TASKS if task in (study.tasks or TASKS)}
    remarks = [f"{task}: {remark}" for task, table in tables.items() for remark in read_remarks(table)]
    losses = {task: read_losses(table, task) for task, table in tables.items()}
    return pa.concat_tables([table.replace_schema_metadata(None) for table in tables.values()]), remarks, losses


def _accounts(
    facts: TemporalFacts,
    losses: Mapping[str, Sequence[Loss]],
    questions: pa.Table,
    sampled: pa.Table,
    answerable: pa.Table,
) -> list[Account]:
    """Account for the facts of each task.

    Args:
        losses: Facts without a statement, by task.
        questions: All questions.
        sampled: Questions that are sampled up to the limit.
        answerable: The sampled questions with a wrong candidate.
    """
    names = {
        row["fact_id"]: (row["relation"], f"{row['subject_name']} – {row['object_name']}")
        for row in facts.table.select(["fact_id", "relation", "subject_name", "object_name"]).to_pylist()
    }
    made, drawn, kept = (_facts_by_task(table) for table in (questions, sampled, answerable))
    accounts = []
    for task, task_losses in losses.items():
        counter = LossCounter(task, "facts")
        counter.add_losses(replace(loss, task=task) for loss in facts.left_out)
        counter.add_losses(task_losses)
        unanswerable = drawn.get(task, set()) - kept.get(task, set())
        for fact in unanswerable:
            counter.add("every candidate is a right answer", *names[fact])
        accounts.append(counter.account(facts.counts["facts"], len(made.get(task, set()) - unanswerable)))
    return accounts


def _facts_by_task(questions: pa.Table) -> dict[str, set[str]]:
    facts: dict[str, set[str]] = defaultdict(set)
    for task, fact_ids in zip(questions["task"].to_pylist(), questions["facts"].to_pylist(), strict=True):
        facts[task].update(fact_ids)
    return facts


def _make_questions(statements: pa.Table, facts: TemporalFacts, pools: Pools) -> pa.Table:
    """Make questions sorted by id, with the target as the only answer.

    Statements with the same task, prompt and target become one question. The column ``template`` is
    ``relation/template/mask``, for grouping scores.
    """
    with open_workbench(statements=statements, symbols=facts.symbols, pools=pools.table) as connection:
        table = connection.sql(
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
            from asked join pools on pools.relation = asked.relation and pools.role = {ROLE_SQL} order by question_id"""
        ).to_arrow_table()
    return validate(QUESTIONS, table)


def _add_answers(questions: pa.Table, statements: pa.Table, facts: TemporalFacts) -> pa.Table:
    """Replace the ``answers`` of each question by all right answers of its prompt in its task."""
    with open_workbench(questions=questions, statements=statements, symbols=facts.symbols) as connection:
        table = connection.sql(
            """with listed as (
                select task, prompt, unnest(arg_min(answers, statement_id)) as symbol from statements
                semi join questions using (task, prompt) group by task, prompt
            ), right_ones as (
                select task, prompt, list_sort(list_distinct(list(name))) as answers
                from listed join symbols using (symbol) group by task, prompt
            ) select questions.* replace (right_ones.answers as answers) from questions
            join right_ones using (task, prompt) order by question_id"""
        ).to_arrow_table()
    return validate(QUESTIONS, table)
