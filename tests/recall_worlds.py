"""Random statements with recalls: from whole score vectors, slow and obvious, or drawn with a known accuracy."""

from __future__ import annotations

from math import comb

import numpy as np
import pyarrow as pa

from merkhet.core.recall_schemas import RECALLS, STATEMENTS, SYMBOLS
from merkhet.core.schemas import CANDIDATES, make_table
from merkhet.metrics.answer_table import AnswerTable
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.recalls import METHOD, PROBE, recall_answers
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.statements import label_symbols, statement_question_ids, statement_questions


def make_statements(
    count, *, facts=None, task="statement", relations=("held", "member"), several=0.3, seed=0, symbols=30
):
    """Statements of facts, four masks each, some with several right answers."""
    generator = np.random.default_rng(seed)
    masks = ("subject", "object", "start", "end")
    rows = []
    for place in range(count):
        golds = int(generator.integers(2, 5)) if generator.random() < several else 1
        answers = sorted(f"s{number:03}" for number in generator.choice(symbols, golds, replace=False))
        fact = place // 4 if facts is None else int(generator.integers(facts))
        rows.append(
            {
                "statement_id": f"{task}{place:06}",
                "task": task,
                "relation": relations[fact % len(relations)],
                "template": "statement",
                "mask": masks[place % 4],
                "prompt": f"{task} {place} [MASK]",
                "bare_prompt": None,
                "target": answers[int(generator.integers(golds))],
                "answers": answers,
                "conflict": golds > 1,
                "cardinality": "1-1" if golds == 1 else "1-N",
                "fact_id": f"f{fact:05}",
            }
        )
    return make_table(STATEMENTS, rows)


def make_symbols(count=30):
    return make_table(SYMBOLS, [{"symbol": f"s{n:03}", "name": f"name {n}", "kind": "entity"} for n in range(count)])


def recall_row(statement, scores):
    """What RECALLS says of one statement, from a score for every symbol."""
    order = sorted(scores, key=lambda symbol: (-scores[symbol], symbol))
    target, best = scores[statement["target"]], max(scores[symbol] for symbol in statement["answers"])
    every = list(scores.values())
    return {
        "statement_id": statement["statement_id"],
        "target_above": sum(score > target for score in every),
        "target_ties": sum(score == target for score in every),
        "best_above": sum(score > best for score in every),
        "best_ties": sum(score == best for score in every),
        "best_golds": sum(scores[symbol] == best for symbol in statement["answers"]),
        "among": len(every),
        "top": [{"symbol": symbol, "score": scores[symbol]} for symbol in order[:10]],
    }


def make_recalls(statements, scores_of):
    rows = [recall_row(statement, scores_of(statement)) for statement in statements.to_pylist()]
    return make_table(RECALLS, rows)


def recalls_at(statements, places, among=1000):
    """Recalls in which the target and the best right answer stand at these places, counted from 0, without ties."""
    places = np.asarray(places)
    one = np.ones(len(places), dtype=np.int32)
    columns = {
        "statement_id": statements["statement_id"],
        "target_above": places.astype(np.int32),
        "target_ties": one,
        "best_above": places.astype(np.int32),
        "best_ties": one,
        "best_golds": one,
        "among": among * one,
        "top": pa.nulls(len(places), RECALLS.schema.field("top").type),
    }
    return pa.table(columns).cast(RECALLS.schema)


def recall_values(recalls, metric):
    """What acc@k and hit@k are of every recall, by the numbers of ways to break ties."""
    kind, k = metric.split("@")
    values = []
    for row in recalls.to_pylist():
        if kind == "hit":
            values.append(min(1.0, max(0.0, (int(k) - row["target_above"]) / row["target_ties"])))
        else:
            ties, left = row["best_ties"], max(0, min(int(k) - row["best_above"], row["best_ties"]))
            values.append(1 - comb(ties - row["best_golds"], left) / comb(ties, left))
    return np.array(values)


def question_set(statements, symbols):
    """The questions of statements."""
    labelled = label_symbols(symbols)
    candidates = make_table(CANDIDATES, [{"candidate_set": "all", "candidates": labelled["label"].to_pylist()}])
    return QuestionSet(statement_questions(statements, labelled, suite="lama-tk", candidate_set="all"), candidates)


def answers_of(statements, recalls, symbols, model="m"):
    """The answers that recalls amount to."""
    return recall_answers(statements, recalls, statement_question_ids(statements), label_symbols(symbols), model)


def scored(statements, recalls, metric, symbols, *, chance=False):
    """The values of a metric, or its chance level, in the order of the statements, as a run computes them."""
    table = AnswerTable(answers_of(statements, recalls, symbols), question_set(statements, symbols).by_id())
    values = {}
    for task in dict.fromkeys(statements["task"].to_pylist()):
        cell = table.cell("m", task, PROBE, METHOD)
        found = cell.values(get_metric(metric), chance=chance)
        values |= dict(zip([table.ids[code] for code in cell.codes], found, strict=True))
    return np.array([values[name] for name in statement_question_ids(statements).to_pylist()])
