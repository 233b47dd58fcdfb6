"""Checks candidate scores on OntoProbe's published tasks against one pass for each candidate, question and masking.

    python bench/ontoprobe_oracle.py --data ../shared/data/ontoprobe --model minilm-mlm --rows 50

The oracle tokenises every sentence whole, puts masks in the place of the candidate's tokens and reads them off; it
shares nothing between candidates and knows nothing of merkhet but the questions. Rows of equal length go through the
network together, so that nothing is padded. It is for models whose head is called ``cls`` or ``lm_head``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from merkhet.core.records import Question
from merkhet.models.loading import load_model

METHODS = tuple(f"{masks}-{pooling}" for masks in ("multiple", "single") for pooling in ("mean", "max", "first"))
TASKS = {
    "TP": ("type", "{} is a particular [MASK] ."),
    "SCO": ("subClassOf", "{} is a particular [MASK] ."),
    "SPO": ("subPropertyOf", "{} implies [MASK] ."),
    "DM": ("domain", "One has to be a particular [MASK] to have {} ."),
    "RG": ("range", "One has to be a particular [MASK] to be {} ."),
}
POOLINGS = {"mean": np.mean, "max": np.max, "first": lambda values: values[0]}
AT_ONCE = 64
FIRST_TEST_ROW = 20


def published_questions(data: Path, rows: int) -> dict[str, list[Question]]:
    """The first test rows of each published task, with all their candidates."""
    classes, properties = (
        json.loads((data / "ontology" / f"{name}.json").read_text(encoding="utf-8")) for name in ("class", "property")
    )
    kinds = tuple(dict.fromkeys(row["rdfs:label"] for row in classes))
    names = [row["rdfs:label"] for row in properties]
    names += [name for row in properties for name in row.get("rdfs:subPropertyOf") or {}]
    found = {}
    for task, (file, pattern) in TASKS.items():
        lines = (data / "memorizing" / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()
        candidates = tuple(dict.fromkeys(names)) if task == "SPO" else kinds
        found[task] = []
        for number, line in enumerate(lines[FIRST_TEST_ROW : FIRST_TEST_ROW + rows]):
            row = json.loads(line)
            subject = row["uuu"] if isinstance(row["uuu"], str) else next(iter(row["uuu"]))
            golds = tuple(row["xxx"])
            prompt = pattern.format(subject[0].upper() + subject[1:] if pattern.startswith("{}") else subject)
            found[task].append(Question(f"{task}{number}", task, prompt, golds, golds[0], candidates))
    return found


def oracle_scores(model: Any, question: Question) -> dict[str, np.ndarray]:
    """Every candidate by every method: a row for each candidate and way of masking."""
    mask = model.tokenizer.mask_token_id
    before, after = question.prompt.split("[MASK]")
    asked: list[tuple[list[int], list[int], list[int]]] = []
    for text in question.candidates:
        encoded = model.tokenizer(before + text + after, return_offsets_mapping=True)
        ids, last = encoded["input_ids"], len(before) + len(text)
        own = [i for i, (low, high) in enumerate(encoded["offset_mapping"]) if low < last and high > len(before)]
        tokens = [ids[place] for place in own]
        masked = [mask if place in own else token for place, token in enumerate(ids)]
        asked.append((masked, own, tokens))
        asked.append(([*ids[: own[0]], mask, *ids[own[-1] + 1 :]], [own[0]] * len(own), tokens))
    values = _read(model, asked)
    pooled = {
        method: [POOLINGS[method.split("-")[1]](own) for own in values[method.startswith("single") :: 2]]
        for method in METHODS
    }
    return {method: np.array(own) for method, own in pooled.items()}


def _read(model: Any, asked: Sequence[tuple[list[int], list[int], list[int]]]) -> list[np.ndarray]:
    """Log-probabilities of tokens at places of each row; the head works at these places alone."""
    network = model.model
    head = network.cls if hasattr(network, "cls") else network.lm_head
    values: list[np.ndarray] = [np.empty(0)] * len(asked)
    by_length: dict[int, list[int]] = defaultdict(list)
    for number, (row, _, _) in enumerate(asked):
        by_length[len(row)].append(number)
    for numbers in by_length.values():
        for start in range(0, len(numbers), AT_ONCE):
            some = numbers[start : start + AT_ONCE]
            with torch.inference_mode():
                ids = torch.tensor([asked[number][0] for number in some], device=network.device)
                hidden = network.base_model(input_ids=ids).last_hidden_state
                lines = [line for line, number in enumerate(some) for _ in asked[number][1]]
                logits = head(hidden[lines, [place for number in some for place in asked[number][1]]])
                tokens = [token for number in some for token in asked[number][2]]
                found = (logits[range(len(tokens)), tokens] - logits.logsumexp(-1)).double().cpu().numpy()
                ends = np.cumsum([len(asked[number][1]) for number in some])
                for number, own in zip(some, np.split(found, ends[:-1]), strict=True):
                    values[number] = own
    return values


def largest_difference(model: Any, questions: Sequence[Question]) -> float:
    """The largest difference of a score by any of the methods; refuses questions that cannot be asked."""
    largest = 0.0
    for found in model.score_candidates(questions, METHODS):
        if found.by_method is None:
            raise SystemExit(f"{questions[found.index].prompt}: {found.unusable}")
        expected = oracle_scores(model, questions[found.index])
        largest = max(largest, *(float(np.abs(found.by_method[one] - expected[one]).max()) for one in METHODS))
    return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of OntoProbe's published files")
    parser.add_argument("--model", default="minilm-mlm", help="a masked model: an alias or a folder")
    parser.add_argument("--rows", type=int, default=50, help="how many test rows of each task")
    arguments = parser.parse_args()
    model = load_model(arguments.model)
    for task, questions in published_questions(arguments.data, arguments.rows).items():
        started, before = time.perf_counter(), dict(model.work)
        difference = largest_difference(model, questions)
        work = {name: count - before[name] for name, count in model.work.items()}
        print(
            f"{task}: {len(questions)} questions, {len(questions[0].candidates)} candidates, six methods: "
            f"largest difference {difference:.1e}; {work['rows']} rows instead of {work['rows_one_by_one']} "
            f"({time.perf_counter() - started:.0f} s with the oracle)"
        )


if __name__ == "__main__":
    main()
