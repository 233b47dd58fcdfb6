"""Soft prompts: words without a text, whose input embeddings are learned while the model itself stays as it is.

A soft token is written into a prompt as <TP1> or <s4>. What is learned of a few training questions is how to ask: the
model's weights do not change, so whatever it then answers about other things was in it before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from merkhet.core.errors import InputError, did_you_mean
from merkhet.core.files import file_digest
from merkhet.core.ids import derived_seed
from merkhet.core.progress import Progress, SilentProgress
from merkhet.core.records import Question
from merkhet.models.causal import CausalModel
from merkhet.models.extra_embeddings import get_base_embedding, with_extra_words
from merkhet.models.masked import MaskedModel
from merkhet.models.placeholders import PSEUDOWORD_MARKS, SOFT_TOKEN, PseudowordSettings
from merkhet.models.protocol import Model
from merkhet.models.pseudowords import pseudoword_embeddings
from merkhet.training._optimization import check_settings, seeded
from merkhet.training._soft_prompt_scoring import USUAL, WAYS
from merkhet.training._soft_prompt_training import AS_USUAL, SoftLearning, SoftSettings, Words, make_examples
from merkhet.training.artifact import (
    RECORD,
    TrainingArtifact,
    make_settings,
    read_artifact,
    refuse_other_files,
    save_artifact,
)

WEIGHTS = "soft.safetensors"
LOSSES = ("bce", "nll")
_USUAL_NEGATIVES = {"masked": 0, "causal": 31}
_USUAL_DEV_EVERY = {"masked": 5, "causal": 10}
_ROWS_AT_ONCE = 8192


def learn_soft_prompts(
    model: Model,
    training: Sequence[Question],
    folder: Path,
    *,
    dev: Sequence[Question] = (),
    settings: Mapping[str, Any] | SoftSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    start: Mapping[str, torch.Tensor] | Sequence[Path] | None = None,
) -> TrainingArtifact:
    """Learn the embeddings of all soft tokens in the training prompts, and save them; the model stays as it was.

    Tokens begin where ``start`` has them (embeddings, or places of what this model learned before, of which the later
    ones count), or else at random: each number from the normal distribution that the model's own embeddings have in
    that dimension. The embeddings of the epoch with the best MRR_a on the dev questions are kept (of equal ones that
    with the lowest loss), without dev questions the last. On a CPU the same questions, settings and seed give the same
    embeddings, whatever the order of the questions.

    Questions that the model cannot be asked are left out and counted. Refuses a question without a soft token, a model
    that is neither masked nor causal, and questions none of which can be learned.
    """
    refuse_other_files(folder)
    if not isinstance(model, MaskedModel | CausalModel):
        raise InputError(f"{model.name} is a {model.kind}, which reads no soft prompts; leave it out of learning")
    model = model.original or model
    given = settings if isinstance(settings, SoftSettings) else make_settings(SoftSettings, settings or {})
    chosen = _settled(given, model.kind)
    training = sorted(training, key=lambda one: (one.question_id, one.prompt))
    dev = sorted(dev, key=lambda one: (one.question_id, one.prompt))
    tokens = _soft_tokens(training, dev)
    pairs = _pairs(model, [*training, *dev], chosen, seed)
    if not isinstance(start, Mapping):
        start = {token: vector for place in start or () for token, vector in load_soft_prompts(model, place).items()}
    began = {token: vector for token, vector in start.items() if token in tokens}
    words = {**_random_vectors(model, tokens, seed), **began}
    with seeded(derived_seed(seed, "soft"), exact=model.model.device.type == "cpu"), _worn(model, words, pairs) as worn:
        examples, skipped = make_examples(worn, training)
        if not examples:
            reasons = "; ".join(f"{reason} ({count})" for reason, count in skipped.items()) or "there is none"
            raise InputError(f"{model.name} can learn from none of the {len(training)} training questions: {reasons}")
        learning = SoftLearning(worn, list(words), pairs, chosen, seed, progress or SilentProgress())
        epochs, kept, learned = learning.run(examples, dev)
        fingerprint = with_extra_words(model, learned).fingerprint
    record = {
        "learner": "soft",
        "model": model.name,
        "kind": model.kind,
        "base": model.fingerprint,
        "settings": asdict(chosen),
        "seed": seed,
        "tokens": list(words),
        "start": sorted(began),
        "questions": len(training),
        "learned": len(examples),
        "skipped": dict(sorted(skipped.items())),
        "dev_questions": len(dev),
        "epochs": epochs,
        "kept_epoch": kept,
    }

    def fill(unfinished: Path) -> str:
        from safetensors.torch import save_file

        save_file(learned, unfinished / WEIGHTS)
        return fingerprint

    return save_artifact(folder, record, WEIGHTS, fill)


def read_soft_prompts(place: Path) -> Words:
    """The soft tokens with their embeddings in a folder, or beside a learned.json; refuses what is not whole."""
    return _read(place)[1]


def load_soft_prompts(model: Model, place: Path | TrainingArtifact) -> Words:
    """The soft tokens that a model has learned, ready for ``with_extra_words``; refuses those of another model."""
    learned, words = _read(place.folder if isinstance(place, TrainingArtifact) else place)
    if not isinstance(model, MaskedModel | CausalModel):
        raise InputError(f"{model.name} is a {model.kind}, which reads no soft prompts")
    model = model.original or model
    width = int(get_base_embedding(model).weight.shape[1])
    if learned.record["base"] != model.fingerprint or any(tuple(one.shape) != (width,) for one in words.values()):
        raise InputError(
            f"{learned.folder}: these soft prompts were learned with {learned.record['model']}, and {model.name} is "
            "another model, or has other weights by now; learn soft prompts for it"
        )
    return words


def _read(place: Path) -> tuple[TrainingArtifact, Words]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    learned = read_artifact(place / RECORD if place.is_dir() else place)
    if learned.record.get("learner") != "soft":
        raise InputError(f"{learned.folder} holds no soft prompts, but what {learned.record.get('learner')} learned")
    file = learned.folder / WEIGHTS
    try:
        if file_digest(file) == learned.record["weights"]:
            return learned, dict(sorted(load_file(file).items()))
    except (OSError, KeyError, SafetensorError):
        pass
    raise InputError(f"{file} is not what its record says. Remove its folder, and learn anew.")


def _settled(settings: SoftSettings, kind: str) -> SoftSettings:
    """The settings with what is usual for this kind of model filled in; refuses those that make no sense."""
    check_settings(settings, ("epochs", "batch_size", "learning_rate", "largest_gradient", "alpha"))
    method = settings.method or USUAL[kind]
    for name, value, known in (
        ("loss", settings.loss, LOSSES),
        ("method", method, WAYS[kind]),
        ("compat", settings.compat, ("", "paper")),
    ):
        if value not in known:
            raise InputError(f"the setting {name} of learning is {value!r}; {did_you_mean(value, known)}")
    for name in ("negatives", "dev_every", "pseudowords"):
        least = 0 if name == "pseudowords" else AS_USUAL
        if getattr(settings, name) < least or (name == "dev_every" and settings.dev_every == 0):
            raise InputError(f"the setting {name} of learning is {getattr(settings, name)}, which makes no sense")
    negatives = _USUAL_NEGATIVES[kind] if settings.negatives == AS_USUAL else settings.negatives
    dev_every = _USUAL_DEV_EVERY[kind] if settings.dev_every == AS_USUAL else settings.dev_every
    return replace(settings, method=method, negatives=negatives, dev_every=dev_every)


def _soft_tokens(training: Sequence[Question], dev: Sequence[Question]) -> list[str]:
    """All soft tokens of the training prompts; refuses a prompt without one, and further ones in dev prompts."""
    found: set[str] = set()
    for question in training:
        own = SOFT_TOKEN.findall(question.prompt)
        if not own:
            raise InputError(
                f"question {question.question_id} has no soft token such as <TP1> in its prompt "
                f"({question.prompt!r}), so there is nothing to learn; leave it out of learning"
            )
        found.update(own)
    for question in dev:
        missing = sorted(set(SOFT_TOKEN.findall(question.prompt)) - found)
        if missing:
            raise InputError(f"dev question {question.question_id} has {missing[0]}, which no training question has")
    return sorted(found)


def _pairs(
    model: MaskedModel | CausalModel, questions: Sequence[Question], settings: SoftSettings, seed: int
) -> torch.Tensor | None:
    """Pairs of pseudowords for [X] and [Y], others than a study asks with; None where no prompt has such a mark."""
    if not any(mark in question.prompt for question in questions for mark in PSEUDOWORD_MARKS):
        return None
    if not settings.pseudowords:
        raise InputError("the prompts to be learned hold [X] or [Y]; say with how many pairs of pseudowords (10, say)")
    centre = "unknown" if settings.compat == "paper" else "mask"
    own_seed = derived_seed(seed, "learning")
    points = pseudoword_embeddings(model, PseudowordSettings(settings.pseudowords, settings.alpha, own_seed, centre))
    return torch.from_numpy(points).float().reshape(settings.pseudowords, len(PSEUDOWORD_MARKS), -1)


def _random_vectors(model: MaskedModel | CausalModel, tokens: Sequence[str], seed: int) -> Words:
    """Where tokens begin: drawn as if each were one of the model's own words, dimension by dimension.

    A standard normal draw would be many times as long as any word's embedding.
    """
    table = get_base_embedding(model).weight.detach()[: len(model.tokenizer)]
    parts = table.split(_ROWS_AT_ONCE)
    mean = sum(part.double().sum(0) for part in parts) / len(table)
    spread = (sum(((part.double() - mean) ** 2).sum(0) for part in parts) / len(table)).sqrt()
    found = {}
    for token in tokens:
        drawn = np.random.default_rng(derived_seed(seed, "soft", token)).standard_normal(table.shape[1])
        found[token] = (mean.cpu() + spread.cpu() * torch.from_numpy(drawn)).float()
    return found


@contextmanager
def _worn(
    model: MaskedModel | CausalModel, words: Words, pairs: torch.Tensor | None
) -> Iterator[MaskedModel | CausalModel]:
    """The model with the words and, for [X] and [Y], pseudowords, all else frozen; afterwards it is as it was."""
    network = model.model
    before, training = network.get_input_embeddings(), network.training
    free = [parameter for parameter in network.parameters() if parameter.requires_grad]
    marks = {} if pairs is None else dict(zip(PSEUDOWORD_MARKS, pairs[0], strict=True))
    network.requires_grad_(False)
    network.eval()
    try:
        yield with_extra_words(model, {**words, **marks})
    finally:
        network.set_input_embeddings(before)
        network.train(training)
        for parameter in free:
            parameter.requires_grad_(True)
