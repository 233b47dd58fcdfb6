"""Made-up memorizing runs: statements that are recalled with a known probability, scored as a run scores them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from recall_worlds import make_recalls, make_statements, make_symbols

from merkhet.analysis.memory_types import MemorizedModel, MemoryInput
from merkhet.metrics.recall_scores import frequency_recalls, score_recalls

SYMBOLS = 30


def recalled(statements, share, *, seed=0, wrong="s029"):
    """Recalls of statements of which a share is known by its prompt: the right answers first, else a wrong symbol."""
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


def memory_input(experiment, conditions, *, symbols=True, seed=0):
    """A run of conditions: base, label, condition, and by task the statements and how many are known."""
    stored, rows, counted = [], [], set()
    for base, label, condition, asked in conditions:
        tables = {
            task: (own, made if isinstance(made := known, pa.Table) else recalled(own, known))
            for task, (own, known) in asked.items()
        }
        record = {"epochs": 7, "seconds": 12.5, "statements": tables["statement"][0].num_rows}
        one = MemorizedModel(f"{base}, {label}", base, condition, record, tables)
        stored.append(one)
        for own, recalls in tables.values():
            rows += score_recalls(own, recalls, suite="lama-tk", model=one.model, seed=seed)
            if label not in counted:
                made = frequency_recalls(tables["statement"][0], own, make_symbols(SYMBOLS))
                rows += score_recalls(own, made, suite="lama-tk", model=f"frequency, {label}", seed=seed)
        counted.add(label)
    return MemoryInput(experiment, tuple(stored), rows, seed, make_symbols(SYMBOLS) if symbols else None)


def one_answer(statements):
    return statements.filter(pc.invert(statements["conflict"]))


def storage_run(known=None, *, sizes=(40, 120), bases=("tiny", "big"), **options):
    """Facts stored with conflict and without; ``known`` says how many by base, size and kind."""
    known = known or (lambda base, size, kind: 0.9)
    conditions = []
    for base in bases:
        for size in sizes:
            statements = make_statements(4 * size, symbols=25)
            unseen = make_statements(240, task="unseen", symbols=25, seed=9)
            for kind in ("with", "without"):
                own = statements if kind == "with" else one_answer(statements)
                label = f"{size} facts" + ("" if kind == "with" else " without conflict")
                condition = {"facts": size, "conflict": kind == "with", "static": False}
                asked = {"statement": (own, known(base, size, kind)), "unseen": (unseen, 0.0)}
                conditions.append((base, label, condition, asked))
    return memory_input("storage", conditions, **options)


def boundary_run(known=None, *, stored=0.98):
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
    return memory_input("boundary", conditions)


def implicit_run(within=0.6, paraphrase=0.1, order=0.3):
    """Facts stored, and asked by a year inside in two wordings, and by order."""
    every = make_statements(480, symbols=25)
    parts = [templated(every, name, "implicit", "object") for name in ("within", "paraphrase")]
    recalls = [recalled(part, share) for part, share in zip(parts, (within, paraphrase), strict=True)]
    orders = [
        templated(every.slice(40 * place, 40), name, "order", "subject")
        for place, name in enumerate(("first", "last", "before", "after"))
    ]
    asked = {
        "statement": (every, 0.98),
        "implicit": (pa.concat_tables(parts), pa.concat_tables(recalls)),
        "order": (pa.concat_tables(orders), order),
    }
    return memory_input("implicit", [("tiny", "stored", {"facts": 120}, asked)])
