"""The ways that the ranking benchmark compares: merkhet, plain code and peers, each run as its own process.

Run as a script: ``ranking_ways.py WAY MODEL_FOLDER MATERIAL.json``. The peers' ways run in the peers' environment.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import plain
from worker import Ask, serve

BATCH = 32
TOP = 10

Material = dict[str, Any]


def questions_of(material: Material, numbers: list[int]) -> list[Any]:
    from merkhet.core.records import Question

    candidates = tuple(material["candidates"])
    return [
        Question(
            str(i), "t", material["prompts"][i], tuple(material["answers"][i]), material["answers"][i][0], candidates
        )
        for i in numbers
    ]


def merkhet_ranks(folder: str, material: Material, method: str) -> tuple[Ask, Any]:
    """merkhet's own way of scoring every candidate of every prompt."""
    from merkhet.models.loading import load_model

    model = load_model(folder)

    def ask(numbers: list[int]) -> list[list[float]]:
        found = {one.index: one for one in model.score_candidates(questions_of(material, numbers), (method,))}
        return [found[place].by_method[method].tolist() for place in range(len(numbers))]

    return ask, model.model  # type: ignore[attr-defined]


def merkhet_fills(folder: str, material: Material) -> tuple[Ask, Any]:
    """merkhet's probe ``fill``."""
    from merkhet.models.loading import load_model
    from merkhet.probes.fill import fill_slots

    model = load_model(folder)

    def ask(numbers: list[int]) -> list[list[float] | None]:
        answers = fill_slots(model, questions_of(material, numbers))
        return [None if one.unusable else [score for _, score in one.ranked[:TOP]] for one in answers]

    return ask, model.model  # type: ignore[attr-defined]


def plain_ranks(folder: str, material: Material, kind: str) -> tuple[Ask, Any]:
    """One row for each candidate, sorted by length, in batches."""
    network, tokenizer = plain.load(folder, kind)

    def ask(numbers: list[int]) -> list[list[float]]:
        asked = [{"prompt": material["prompts"][i], "candidates": material["candidates"]} for i in numbers]
        return plain.score(network, tokenizer, kind, asked)

    return ask, network


def pipeline_fills(folder: str, material: Material) -> tuple[Ask, Any]:
    """The fill-mask pipeline of transformers, in its batch mode."""
    import math

    from transformers import pipeline

    network, tokenizer = plain.load(folder, "masked")
    pipe = pipeline("fill-mask", model=network, tokenizer=tokenizer, device=network.device)

    def ask(numbers: list[int]) -> list[list[float]]:
        prompts = [material["prompts"][i].replace(plain.SLOT, tokenizer.mask_token) for i in numbers]
        found = pipe(prompts, top_k=TOP, batch_size=BATCH)
        return [[math.log(one["score"]) for one in each] for each in found]

    return ask, network


def pub_quiz_tyq(folder: str, material: Material, batch: int | None = None) -> tuple[Ask, Any]:
    """LM Pub Quiz in its TyQ mode, one item a call."""
    from lm_pub_quiz.evaluators import TyQEvaluator

    evaluator = TyQEvaluator.from_model(folder, **_pub_quiz_settings(exact=batch is not None))
    return _pub_quiz(evaluator, material, "tyq", batch)


def pub_quiz(folder: str, material: Material, **settings: Any) -> tuple[Ask, Any]:
    """LM Pub Quiz's pseudo-log-likelihoods in float32 and batches, one item a call."""
    from lm_pub_quiz import Evaluator

    evaluator = Evaluator.from_model(folder, **_pub_quiz_settings(exact=True), **settings)
    return _pub_quiz(evaluator, material, "sum", BATCH)


def _pub_quiz_settings(exact: bool) -> dict[str, Any]:
    """Its defaults take the weights in the precision they are kept in; ``exact`` takes them as float32."""
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return {"model_type": "MLM", "device": device, "model_kw": {"dtype": torch.float32} if exact else {}}


def _pub_quiz(evaluator: Any, material: Material, reduction: str, batch: int | None) -> tuple[Ask, Any]:
    given = {"reduction": reduction} | ({"batch_size": batch} if batch else {})

    def ask(numbers: list[int]) -> list[list[float]]:
        templates = [material["prompts"][i].replace(plain.SLOT, "[Y]") for i in numbers]
        return [
            list(evaluator.evaluate_instance(template=template, answers=material["candidates"], **given))
            for template in templates
        ]

    return ask, evaluator.model


def minicons(folder: str, material: Material, metric: str, whole: bool) -> tuple[Ask, Any]:
    """minicons: the PLL of the candidate in its sentence, or of the whole sentence; some candidates a call."""
    import torch
    from minicons.scorer import MaskedLMScorer
    from transformers import PreTrainedTokenizerBase

    # minicons calls the tokenizer by a name that transformers 5 has dropped.
    PreTrainedTokenizerBase.batch_encode_plus = PreTrainedTokenizerBase.__call__
    scorer = MaskedLMScorer(folder, "cuda" if torch.cuda.is_available() else "cpu", dtype=torch.float32)
    settings = {"reduction": lambda values: values.sum(0).item(), "PLL_metric": metric}

    def ask(numbers: list[int]) -> list[list[float]]:
        scores = []
        for i in numbers:
            before, after = material["prompts"][i].split(plain.SLOT)
            own: list[float] = []
            for first in range(0, len(material["candidates"]), BATCH):
                some = material["candidates"][first : first + BATCH]
                if whole:
                    own += scorer.sequence_score([before + text + after for text in some], **settings)
                else:
                    start = [before.rstrip()] * len(some)
                    own += scorer.conditional_score(start, some, suffix=[after] * len(some), **settings)
            scores.append(own)
        return scores

    return ask, scorer.model


def lm_eval(folder: str, material: Material, batch: int) -> tuple[Ask, Any]:
    """lm-eval's loglikelihood of each candidate with the text after it."""
    import torch
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = HFLM(pretrained=folder, dtype="float32", device=device, batch_size=batch)

    def ask(numbers: list[int]) -> list[list[float]]:
        requests = []
        for i in numbers:
            before, after = material["prompts"][i].split(plain.SLOT)
            for candidate in material["candidates"]:
                pair = (before.rstrip(), before[len(before.rstrip()) :] + candidate + after)
                requests.append(Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=len(requests)))
        found = iter([value for value, _ in model.loglikelihood(requests, disable_tqdm=True)])
        return [[next(found) for _ in material["candidates"]] for _ in numbers]

    return ask, model.model


Load = Callable[[str, Material], tuple[Ask, Any]]
L2R = "within_word_l2r"
WAYS: dict[str, Load] = {
    "merkhet fill": merkhet_fills,
    "plain masked": partial(plain_ranks, kind="masked"),
    "plain causal": partial(plain_ranks, kind="causal"),
    "fill-mask pipeline": pipeline_fills,
    "LM Pub Quiz TyQ, defaults": pub_quiz_tyq,
    "LM Pub Quiz TyQ, float32, batches of 32": partial(pub_quiz_tyq, batch=BATCH),
    "LM Pub Quiz, float32, batches of 32": partial(pub_quiz, conditional_score=True, pll_metric=L2R),
    "LM Pub Quiz PLL, original": partial(pub_quiz, conditional_score=True, pll_metric="original"),
    "LM Pub Quiz sentence PLL": partial(pub_quiz, pll_metric=L2R),
    "LM Pub Quiz sentence PLL, original": partial(pub_quiz, pll_metric="original"),
    "minicons PLL": partial(minicons, metric=L2R, whole=False),
    "minicons PLL, original": partial(minicons, metric="original", whole=False),
    "minicons sentence PLL": partial(minicons, metric=L2R, whole=True),
    "lm-eval, defaults": partial(lm_eval, batch=1),
    "lm-eval, batches of 32": partial(lm_eval, batch=BATCH),
}
"""Every way by its name; ``merkhet METHOD`` is one too."""


def load_way(name: str, folder: str, material: Material) -> tuple[Ask, Any]:
    """What asks by this way, and the network that it asks."""
    if name.startswith("merkhet ") and name not in WAYS:
        return merkhet_ranks(folder, material, name.removeprefix("merkhet "))
    return WAYS[name](folder, material)


if __name__ == "__main__":
    way, folder, file = sys.argv[1:]
    serve(lambda: load_way(way, folder, json.loads(Path(file).read_text(encoding="utf-8"))))
