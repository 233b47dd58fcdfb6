"""Made-up memorizing runs: statements that are recalled with a known probability, scored as a run scores them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from recall_worlds import answers_of, make_recalls, make_statements, make_symbols, question_set

from merkhet.analysis.comparison import Condition
from merkhet.analysis.types import AnalysisInput
from merkhet.engine._run_collection import concat_distinct
from merkhet.engine.score_step import question_groups
from merkhet.metrics.metrics import get_metric
from merkhet.metrics.recalls import RECALL_METRICS, frequency_recalls
from merkhet.metrics.score_table import score_answers
from merkhet.questions.question_files import QuestionSet

SYMBOLS = 30


def recalled(statements, share, *, seed=0, wrong="s029"):
    """Recalls of statements of which a share is known by its prompt: the right answers first, else a wrong symbol.

    The share may differ between templates.
    """
    if isinstance(share, dict):
        parts = (statements.filter(pc.equal(statements["template"], name)) for name in share)
        return pa.concat_tables(
            [
                recalled(part, of_part, seed=seed, wrong=wrong)
                for part, of_part in zip(parts, share.values(), strict=True)
            ]
        )
    generator = np.random.default_rng([seed, round(1000 * share)])
    known = {prompt: generator.random() < share for prompt in statements["prompt"].to_pylist()}

    def scores_of(statement):
        names = [f"s{number:03}" for number in range(SYMBOLS)]
        scores = {name: -6.0 - place / 100 for place, name in enumerate(names)}
        if known[statement["prompt"]]:
            golds = statement["answers"]
            scores |= {name: float(np.log(0.9 / len(golds))) for name in golds}
        else:
            first = next(name for name in (wrong, "s027", "s026", "s025", "s024") if name not in statement["answers"])
            scores[first] = float(np.log(0.6))
        return scores

    return make_recalls(statements, scores_of)


def templated(statements, template, task, mask=None):
    """The same statements in other words."""
    table = statements if mask is None else statements.filter(pc.equal(statements["mask"], mask))
    for name, value in (("template", template), ("task", task)):
        table = table.set_column(table.column_names.index(name), name, pa.array([value] * table.num_rows))
    for name in ("statement_id", "prompt"):
        column = pc.binary_join_element_wise(table[name], template, " ")
        table = table.set_column(table.column_names.index(name), name, column)
    return table


@dataclass(frozen=True)
class MadeModel:
    """A model with what it was asked, for plain readings of the tables."""

    model: str
    base: str
    condition: dict
    tables_by_task: dict

    @property
    def facts(self):
        return self.condition.get("facts")

    @property
    def conflict(self):
        return self.condition.get("conflict", True)


@dataclass(frozen=True)
class MadeRun:
    """A run as analyses read it, and its tables by model."""

    inputs: AnalysisInput
    models: tuple[MadeModel, ...]

    def with_scores(self, keep):
        return replace(self.inputs, scores=[row for row in self.inputs.scores if keep(row)])

    def without_baselines(self, **changes):
        """The same without the answers of the baselines; their scores are still there."""
        table = self.inputs.answers
        kept = table.filter(pc.invert(pc.starts_with(table["model"], "frequency")))
        conditions = {name: one for name, one in self.inputs.conditions.items() if name not in self.inputs.baselines}
        return replace(self.inputs, answers=kept, conditions=conditions, **changes)


def memory_input(conditions, *, seed=0, trainings=1):
    """A run of conditions: base, label, condition, and by task the statements and how many are known.

    Further trainings know other statements, but as many of them on average.
    """
    symbols = make_symbols(SYMBOLS)
    models, answers, questions, records, of_models = [], [], [], [], {}
    repeated = [[] for _ in range(1, trainings)]
    for base, label, condition, asked in conditions:
        tables = {
            task: (own, known if isinstance(known, pa.Table) else recalled(own, known))
            for task, (own, known) in asked.items()
        }
        name, baseline = f"{base}, {label}", f"frequency, {label}"
        models.append(MadeModel(name, base, condition, tables))
        for training, parts in enumerate(repeated, 1):
            for own, known in asked.values():
                made = known if isinstance(known, pa.Table) else recalled(own, known, seed=training)
                parts.append(answers_of(own, made, symbols, name))
        stored = tables["statement"][0]
        records.append({"model": name, "epochs": 7, "seconds": 12.5, "statements": stored.num_rows})
        for own, recalls in tables.values():
            questions.append(question_set(own, symbols))
            answers.append(answers_of(own, recalls, symbols, name))
            if baseline not in of_models:
                answers.append(answers_of(own, frequency_recalls(stored, own, symbols), symbols, baseline))
        of_models[name] = Condition(base, label, condition)
        of_models[baseline] = Condition("frequency", label, condition)
    every = QuestionSet(concat_distinct([one.questions for one in questions], "question_id"), questions[0].candidates)
    by_id, rows, table = every.by_id(), every.questions.to_pylist(), pa.concat_tables(answers)
    columns = ("mask", "relation", "conflict", "cardinality", "template")
    scores = score_answers(
        "lama-tk",
        by_id,
        question_groups(every, columns, statements=True),
        every.clusters(),
        table,
        [get_metric(name) for name in RECALL_METRICS],
        seed=seed,
        group_sets=[*((name,) for name in columns), ("mask", "conflict")],
        cluster_prompts=True,
    )
    inputs = AnalysisInput(
        questions=rows,
        questions_by_id=by_id,
        answers=table,
        clusters=every.clusters(),
        headline=(),
        scores=scores.to_pylist(),
        baselines=frozenset(name for name in of_models if name.startswith("frequency")),
        training_records=records,
        conditions=of_models,
        trained=frozenset(one.model for one in models),
        repeated_answers=[pa.concat_tables(parts) for parts in repeated],
        seed=seed,
    )
    return MadeRun(inputs, tuple(models))


def one_answer(statements):
    return statements.filter(pc.invert(statements["conflict"]))


def storage_run(known=None, *, sizes=(40, 120), bases=("tiny", "big"), several=0.3, **options):
    """Facts stored with conflict and without; ``known`` says how many by base, size and kind."""
    known = known or (lambda base, size, kind: 0.9)
    conditions = []
    for base in bases:
        for size in sizes:
            statements = make_statements(4 * size, symbols=25, several=several)
            unseen = make_statements(240, task="unseen", symbols=25, seed=9)
            for kind in ("with", "without"):
                own = statements if kind == "with" else one_answer(statements)
                label = f"{size} facts" + ("" if kind == "with" else " without conflict")
                condition = {"facts": size, "conflict": kind == "with", "static": False}
                asked = {"statement": (own, known(base, size, kind)), "unseen": (unseen, 0.0)}
                conditions.append((base, label, condition, asked))
    return memory_input(conditions, **options)


def boundary_run(known=None, *, stored=0.98, **options):
    """Starts and ends stored with the other time left out in some shares of storing; ``known`` by that share."""
    known = known or {0: 0.1, 10: 0.4, 100: 0.6}
    every = make_statements(480, symbols=25)
    times = every.filter(pc.is_in(every["mask"], pa.array(["start", "end"])))
    queries = pa.concat_tables(
        [templated(times, "begin", "boundary", "start"), templated(times, "finish", "boundary", "end")]
    )
    conditions = [
        (
            "tiny",
            f"times left out {share}%",
            {"facts": 120, "dynamic": share},
            {"statement": (times, stored), "boundary": (queries, known[share])},
        )
        for share in known
    ]
    return memory_input(conditions, **options)


def implicit_run(within=0.6, paraphrase=0.1, order=0.3, *, trainings=1):
    """Facts stored, and asked by a year inside in two wordings, and by order."""
    every = make_statements(480, symbols=25)
    parts = {name: templated(every, name, "implicit", "object") for name in ("within", "paraphrase")}
    shares = {"within": within, "paraphrase": paraphrase}
    orders = [
        templated(every.slice(40 * place, 40), name, "order", "subject")
        for place, name in enumerate(("first", "last", "before", "after"))
    ]
    asked = {
        "statement": (every, 0.98),
        "implicit": (pa.concat_tables(parts.values()), shares),
        "order": (pa.concat_tables(orders), order),
    }
    return memory_input([("tiny", "stored", {"facts": 120}, asked)], trainings=trainings)
