"""A sample of the recalls of a run as tables of questions and answers, for reports and the explorer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from merkhet.core.records import Answer
from merkhet.core.schemas import ANSWERS, CANDIDATES, FACTS, QUESTIONS, candidate_set_id, make_table, write_table
from merkhet.core.schemas import question_id as make_question_id
from merkhet.engine.memorize_steps import METHOD, PROBE, RecallParts, RecallReader
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.run_files import ABOUT_FACTS, ABOUT_SETS, FACTS_FILE, read_json
from merkhet.metrics.recall_scores import align_recalls
from merkhet.questions.question_files import QuestionSet, write_questions

SAMPLE_SIZE = 200
"""Statements sampled of each set that is asked under a condition."""
_SYMBOL = re.compile(r"⟦([^⟧]*)⟧")


@dataclass(frozen=True)
class SampleParams:
    """Parameters of a sample."""

    suite: str
    seed: int
    recalled: RecallParts


def write_recall_sample(context: StepContext[SampleParams, Nothing]) -> None:
    """Write questions.parquet, answers.parquet and their companions: a sample of every set that was asked.

    The sample depends on the seed and the statement ids, so that conditions that share statements share samples.
    """
    params, folder = context.params, context.folder
    reader = RecallReader(folder)
    names = dict(zip(*(reader.symbols()[name].to_pylist() for name in ("symbol", "name")), strict=True))
    candidates = sorted(set(names.values()))
    tables = _SampleTables(names, candidate_set_id("symbols", candidates), params.suite)
    draw = cache(lambda file: _draw(reader.statements(file), params.seed))
    for part in [*params.recalled.parts, *params.recalled.baselines]:
        asked = draw(part.asked)
        if asked.num_rows:
            tables.add(part.model, asked, align_recalls(asked, reader.recalls(part, asked)))
    set_remarks = [remark for file in (ABOUT_FACTS, ABOUT_SETS) for remark in read_json(folder / file)["remarks"]]
    remarks = [
        "The questions and answers are a sample of what was asked; all answers are in the folder recalls.",
        *set_remarks,
    ]
    question_set = QuestionSet(
        make_table(QUESTIONS, list(tables.questions.values())),
        make_table(CANDIDATES, [{"candidate_set": tables.candidates, "candidates": candidates}]),
        _select_facts(pq.read_table(folder / FACTS_FILE), tables.questions.values()),
        about={"remarks": remarks, "sampled": len(tables.statement_keys)},
    )
    write_table(ANSWERS, make_table(ANSWERS, tables.answers), folder / "answers.parquet")
    write_questions(question_set, folder)


def _draw(statements: pa.Table, seed: int) -> pa.Table:
    """Draw at most :data:`SAMPLE_SIZE` statements, in an order of ids that depends on the seed."""
    ids = statements["statement_id"].to_pylist()
    if len(ids) <= SAMPLE_SIZE:
        return statements
    order = sorted(
        (hashlib.sha256(f"{seed} {statement_id}".encode()).digest(), row) for row, statement_id in enumerate(ids)
    )
    return statements.take(pa.array(sorted(row for _, row in order[:SAMPLE_SIZE])))


def _select_facts(table: pa.Table, questions: Any) -> pa.Table:
    fact_ids = pa.array(sorted({fact for question in questions for fact in question["facts"]}), pa.string())
    selected = table.filter(pc.is_in(table["fact_id"], value_set=fact_ids))
    columns = {"fact_id": "fact_id", "subject": "subject", "predicate": "relation", "object": "object"}
    rows = selected.select([*columns.values(), "start", "end"]).rename_columns([*columns, "start", "end"])
    return make_table(FACTS, rows.to_pylist())


class _SampleTables:
    """Collects questions and answers made from statements and recalls, with names in place of symbols."""

    def __init__(self, names: Mapping[str, str], candidates: str, suite: str) -> None:
        self.names, self.candidates, self.suite = names, candidates, suite
        self.questions: dict[str, dict[str, Any]] = {}
        self.answers: list[dict[str, Any]] = []
        self.statement_keys: set[tuple[str, str]] = set()

    def add(self, model: str, statements: pa.Table, recalls: pa.Table) -> None:
        """Add the recalls of a model. Statements that read and mean the same are one question, answered once."""
        added = set()
        for statement, recall in zip(statements.to_pylist(), recalls.to_pylist(), strict=True):
            self.statement_keys.add((statement["task"], statement["statement_id"]))
            question = self._question(statement)
            question_id = make_question_id(question)
            if question_id not in added:
                added.add(question_id)
                self.questions.setdefault(question_id, {**question, "question_id": question_id})
                self.answers.append(self._answer(question_id, model, statement, recall))

    def _question(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        relation = statement["relation"].replace("/", " or ")
        return {
            "suite": self.suite,
            "task": statement["task"],
            "language": "en",
            "prompt": _SYMBOL.sub(lambda match: self.names.get(match[1], match[1]), statement["prompt"]),
            "answers": sorted({self.names[symbol] for symbol in statement["answers"]}),
            "target": self.names[statement["target"]],
            "candidate_set": self.candidates,
            "facts": [statement["fact_id"]] if statement["fact_id"] else [],
            "qset": statement["fact_id"],
            "domain": statement["relation"],
            "template": f"{relation}/{statement['template']}/{statement['mask']}",
        }

    def _answer(
        self, question_id: str, model: str, statement: Mapping[str, Any], recall: Mapping[str, Any]
    ) -> dict[str, Any]:
        top = [
            (self.names.get(entry["symbol"], entry["symbol"]), float(entry["score"])) for entry in recall["top"] or ()
        ]
        golds = self._golds(statement, recall)
        return Answer(
            question_id=question_id,
            model=model,
            probe=PROBE,
            method=METHOD,
            ranked=tuple(dict(reversed(top)).items())[::-1],
            golds=tuple(golds),
            gold_ranks=tuple(rank for rank, _ in golds.values()),
            gold_ties=tuple(ties for _, ties in golds.values()),
            among=recall["among"],
        ).as_row()

    def _golds(self, statement: Mapping[str, Any], recall: Mapping[str, Any]) -> dict[str, tuple[float, int]]:
        """Return the target and the best right answer, if known, with their expected ranks and ties."""
        golds = {self.names[statement["target"]]: _expected_rank(recall["target_above"], recall["target_ties"])}
        if recall["best_above"] < recall["target_above"]:
            top_symbols = [entry["symbol"] for entry in recall["top"] or ()]
            other_answers = [symbol for symbol in statement["answers"] if symbol != statement["target"]]
            ranked = [symbol for symbol in top_symbols if symbol in other_answers]
            for symbol in ranked[:1] or other_answers[: len(other_answers) == 1]:
                golds.setdefault(self.names[symbol], _expected_rank(recall["best_above"], recall["best_ties"]))
        return golds


def _expected_rank(above: int, ties: int) -> tuple[float, int]:
    return above + (ties + 1) / 2, ties
