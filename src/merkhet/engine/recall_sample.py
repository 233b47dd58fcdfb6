"""A sample of what was recalled, as questions and answers with names: for reports, and for whoever looks into a run."""

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
from merkhet.core.schemas import question_id as identify
from merkhet.engine.memorize_steps import METHOD, PROBE, RecallParts, RecallReader
from merkhet.engine.plan import Nothing, StepContext
from merkhet.engine.run_files import ABOUT_FACTS, ABOUT_SETS, FACTS_FILE, read_json
from merkhet.metrics.recall_scores import align_recalls
from merkhet.questions.question_files import QuestionSet, write_questions

SAMPLED = 200
"""How many statements of each set that is asked under a condition are shown."""
_SYMBOL = re.compile(r"⟦([^⟧]*)⟧")


@dataclass(frozen=True)
class SampleParams:
    """What a sample is drawn from."""

    suite: str
    seed: int
    recalled: RecallParts


def write_recall_sample(context: StepContext[SampleParams, Nothing]) -> None:
    """Write questions.parquet, answers.parquet and what belongs to them: some statements of every set that was asked.

    They are drawn by the seed and their ids, so that conditions that share statements share what is drawn of them.
    """
    params, folder = context.params, context.folder
    recalled = RecallReader(folder)
    names = dict(zip(*(recalled.symbols()[name].to_pylist() for name in ("symbol", "name")), strict=True))
    offered = sorted(set(names.values()))
    writer = _Writer(names, candidate_set_id("symbols", offered), params.suite)
    drawn = cache(lambda file: _drawn(recalled.statements(file), params.seed))
    for part in [*params.recalled.parts, *params.recalled.baselines]:
        asked = drawn(part.asked)
        if asked.num_rows:
            writer.add(part.model, asked, align_recalls(asked, recalled.recalls(part, asked)))
    told = [remark for file in (ABOUT_FACTS, ABOUT_SETS) for remark in read_json(folder / file)["remarks"]]
    remarks = [
        "The questions and answers are a sample of what was asked; all answers are in the folder recalls.",
        *told,
    ]
    found = QuestionSet(
        make_table(QUESTIONS, list(writer.questions.values())),
        make_table(CANDIDATES, [{"candidate_set": writer.candidates, "candidates": offered}]),
        _facts(pq.read_table(folder / FACTS_FILE), writer.questions.values()),
        about={"remarks": remarks, "sampled": len(writer.seen)},
    )
    write_table(ANSWERS, make_table(ANSWERS, writer.answers), folder / "answers.parquet")
    write_questions(found, folder)


def _drawn(statements: pa.Table, seed: int) -> pa.Table:
    """At most so many of the statements, those whose ids come first in an order that belongs to the seed."""
    ids = statements["statement_id"].to_pylist()
    if len(ids) <= SAMPLED:
        return statements
    order = sorted((hashlib.sha256(f"{seed} {name}".encode()).digest(), place) for place, name in enumerate(ids))
    return statements.take(pa.array(sorted(place for _, place in order[:SAMPLED])))


def _facts(table: pa.Table, questions: Any) -> pa.Table:
    wanted = pa.array(sorted({fact for question in questions for fact in question["facts"]}), pa.string())
    some = table.filter(pc.is_in(table["fact_id"], value_set=wanted))
    columns = {"fact_id": "fact_id", "subject": "subject", "predicate": "relation", "object": "object"}
    rows = some.select([*columns.values(), "start", "end"]).rename_columns([*columns, "start", "end"])
    return make_table(FACTS, rows.to_pylist())


class _Writer:
    """Questions and answers made of statements and recalls, with names where these have symbols."""

    def __init__(self, names: Mapping[str, str], candidates: str, suite: str) -> None:
        self.names, self.candidates, self.suite = names, candidates, suite
        self.questions: dict[str, dict[str, Any]] = {}
        self.answers: list[dict[str, Any]] = []
        self.seen: set[tuple[str, str]] = set()

    def add(self, model: str, statements: pa.Table, recalls: pa.Table) -> None:
        """What a model recalled of statements. Two that read and mean the same are one question, answered once."""
        given = set()
        for statement, recall in zip(statements.to_pylist(), recalls.to_pylist(), strict=True):
            self.seen.add((statement["task"], statement["statement_id"]))
            question = self._question(statement)
            name = identify(question)
            if name not in given:
                given.add(name)
                self.questions.setdefault(name, {**question, "question_id": name})
                self.answers.append(self._answer(name, model, statement, recall))

    def _question(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        relation = statement["relation"].replace("/", " or ")
        return {
            "suite": self.suite,
            "task": statement["task"],
            "language": "en",
            "prompt": _SYMBOL.sub(lambda found: self.names.get(found[1], found[1]), statement["prompt"]),
            "answers": sorted({self.names[symbol] for symbol in statement["answers"]}),
            "target": self.names[statement["target"]],
            "candidate_set": self.candidates,
            "facts": [statement["fact_id"]] if statement["fact_id"] else [],
            "qset": statement["fact_id"],
            "domain": statement["relation"],
            "template": f"{relation}/{statement['template']}/{statement['mask']}",
        }

    def _answer(self, name: str, model: str, statement: Mapping[str, Any], recall: Mapping[str, Any]) -> dict[str, Any]:
        top = [(self.names.get(one["symbol"], one["symbol"]), float(one["score"])) for one in recall["top"] or ()]
        golds = self._golds(statement, recall)
        return Answer(
            question_id=name,
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
        """The target and the best right answer, if it is known which it is, with their expected ranks and ties."""
        golds = {self.names[statement["target"]]: _standing(recall["target_above"], recall["target_ties"])}
        if recall["best_above"] < recall["target_above"]:
            shown = [one["symbol"] for one in recall["top"] or ()]
            others = [symbol for symbol in statement["answers"] if symbol != statement["target"]]
            best = [symbol for symbol in shown if symbol in others][:1] or others[: len(others) == 1]
            for symbol in best:
                golds.setdefault(self.names[symbol], _standing(recall["best_above"], recall["best_ties"]))
        return golds


def _standing(above: int, ties: int) -> tuple[float, int]:
    return above + (ties + 1) / 2, ties
