"""Soft prompts: input embeddings of special prompt tokens, learned while the model is frozen.

Soft tokens appear in prompts as <TP1> or <s4>. From a few training questions they learn how to phrase the question. The
weights of the model do not change, so its answers to other questions come from what it already knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from merkhet.core.errors import InputError
from merkhet.core.files import file_digest
from merkhet.core.ids import derived_seed
from merkhet.core.progress import Progress
from merkhet.core.records import Question
from merkhet.core.settings import check_value, make_settings
from merkhet.models.causal import CausalModel
from merkhet.models.extra_embeddings import get_base_embedding, with_extra_words
from merkhet.models.masked import MaskedModel
from merkhet.models.placeholders import PSEUDOWORD_MARKS, SOFT_TOKEN, PseudowordSettings
from merkhet.models.protocol import Model
from merkhet.models.pseudowords import pseudoword_embeddings
from merkhet.training._optimization import seeded
from merkhet.training._question_training import QuestionTraining
from merkhet.training._soft_prompt_scoring import DEFAULT_METHODS, TRAINABLE_METHODS
from merkhet.training._soft_prompt_training import DEFAULT, Embeddings, SoftPromptTask, SoftSettings, make_examples
from merkhet.training._trainer import EarlyStopping, Trainer
from merkhet.training.artifact import (
    RECORD,
    TrainingArtifact,
    check_artifact_folder,
    read_artifact,
    save_artifact,
)

WEIGHTS = "soft.safetensors"
_DEFAULT_NEGATIVES = {"masked": 0, "causal": 31}
_DEFAULT_DEV_EVERY = {"masked": 5, "causal": 10}
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
    checkpoints: Path | None = None,
    start: Mapping[str, torch.Tensor] | Sequence[Path] | None = None,
) -> TrainingArtifact:
    """Learn the embeddings of all soft tokens in the training prompts, and save them in ``folder``.

    The model is unchanged. With dev questions, the embeddings of the epoch with the best MRR_a are kept, and the lowest
    loss decides ties. Without dev questions, the embeddings of the last epoch are kept. Unusable questions are left out
    and counted. On a CPU the embeddings depend only on the questions, the settings and the seed, not on the order of
    the questions or on interruptions.

    ``start`` holds initial embeddings by soft token, or paths of soft-prompt artifacts of this model; later artifacts
    override earlier artifacts. The embeddings of all other soft tokens are initialized at random, from a normal
    distribution fitted to each dimension of the model's embeddings. ``checkpoints`` is a folder for the checkpoint,
    which is removed at the end.

    Raises:
        InputError: a question has no soft token, the model is neither masked nor causal, or no question is usable.
    """
    check_artifact_folder(folder)
    if not isinstance(model, MaskedModel | CausalModel):
        raise InputError(f"{model.name} is a {model.kind}, which reads no soft prompts; leave it out of learning")
    model = model.original or model
    chosen = _resolve_settings(make_settings(SoftSettings, settings), model.kind)
    training, dev = (
        sorted(part, key=lambda question: (question.question_id, question.prompt)) for part in (training, dev)
    )
    tokens = _soft_tokens(training, dev)
    pairs = _pseudoword_pairs(model, [*training, *dev], chosen, seed)
    if not isinstance(start, Mapping):
        start = {token: vector for path in start or () for token, vector in load_soft_prompts(model, path).items()}
    initial = {token: vector for token, vector in start.items() if token in tokens}
    embeddings = {**_random_embeddings(model, tokens, seed), **initial}
    run = QuestionTraining("soft", model, training, dev, chosen, seed)
    schedule = run.make_schedule(checkpoints, {token: vector.tolist() for token, vector in embeddings.items()})
    with (
        seeded(derived_seed(seed, "soft"), exact=model.model.device.type == "cpu"),
        _with_embeddings(model, embeddings, pairs) as prompted_model,
    ):
        examples, skipped = make_examples(prompted_model, training)
        run.require_examples(examples, skipped)
        task = SoftPromptTask(prompted_model, list(embeddings), pairs, examples, dev, chosen, seed)
        state = Trainer(task, progress, stopping=EarlyStopping(keep_best=True), checkpoints=schedule).run()
        learned = task.embeddings()
        fingerprint = with_extra_words(model, learned).fingerprint
    record = run.make_record(state, examples, skipped, tokens=list(embeddings), start=sorted(initial))

    def write_files(unfinished: Path) -> str:
        from safetensors.torch import save_file

        save_file(learned, unfinished / WEIGHTS)
        return fingerprint

    return save_artifact(folder, record, WEIGHTS, write_files, schedule)


def read_soft_prompts(path: Path) -> Embeddings:
    """Read the embeddings of soft tokens from an artifact folder or from the path of its learned.json."""
    return _read_embeddings(path)[1]


def load_soft_prompts(model: Model, source: Path | TrainingArtifact) -> Embeddings:
    """Read the soft prompts of a model, in the form that ``with_extra_words`` takes.

    Raises:
        InputError: the soft prompts were learned with another model, or ``model`` cannot use soft prompts.
    """
    artifact, embeddings = _read_embeddings(source.folder if isinstance(source, TrainingArtifact) else source)
    if not isinstance(model, MaskedModel | CausalModel):
        raise InputError(f"{model.name} is a {model.kind}, which reads no soft prompts; leave it out")
    model = model.original or model
    shape = get_base_embedding(model).weight.shape[1:]
    if artifact.record["base"] != model.fingerprint or any(vector.shape != shape for vector in embeddings.values()):
        raise InputError(
            f"{artifact.folder}: these soft prompts were learned with {artifact.record['model']}, but {model.name} is "
            "another model or has other weights; learn soft prompts for it"
        )
    return embeddings


def _read_embeddings(path: Path) -> tuple[TrainingArtifact, Embeddings]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    artifact = read_artifact(path / RECORD if path.is_dir() else path)
    if artifact.record.get("learner") != "soft":
        raise InputError(
            f"{artifact.folder} is an artifact of {artifact.record.get('learner')}, not soft prompts; "
            "name another folder"
        )
    file = artifact.folder / WEIGHTS
    try:
        if file_digest(file) == artifact.record["weights"]:
            return artifact, dict(sorted(load_file(file).items()))
    except (OSError, KeyError, SafetensorError):
        pass
    raise InputError(f"{file} does not match its record. Remove its folder and train again.")


def _resolve_settings(settings: SoftSettings, kind: str) -> SoftSettings:
    """Return the settings with defaults filled in for a kind of model.

    Raise an ``InputError`` if the method is not a trainable method of this kind of model.
    """
    method = settings.method or DEFAULT_METHODS[kind]
    check_value("learning.settings.method", Literal[tuple(TRAINABLE_METHODS[kind])], method)
    negatives = _DEFAULT_NEGATIVES[kind] if settings.negatives == DEFAULT else settings.negatives
    dev_every = _DEFAULT_DEV_EVERY[kind] if settings.dev_every == DEFAULT else settings.dev_every
    return replace(settings, method=method, negatives=negatives, dev_every=dev_every)


def _soft_tokens(training: Sequence[Question], dev: Sequence[Question]) -> list[str]:
    """Return the soft tokens of the training prompts.

    Raise an ``InputError`` if a training prompt has no soft token, or a dev prompt has a soft token that no training
    prompt has.
    """
    tokens: set[str] = set()
    for question in training:
        prompt_tokens = SOFT_TOKEN.findall(question.prompt)
        if not prompt_tokens:
            raise InputError(
                f"the question {question.prompt!r} has no soft token such as <TP1> in its prompt, so there is nothing "
                "to learn; leave it out of learning"
            )
        tokens.update(prompt_tokens)
    for question in dev:
        missing = sorted(set(SOFT_TOKEN.findall(question.prompt)) - tokens)
        if missing:
            raise InputError(
                f"the dev question {question.prompt!r} has {missing[0]}, which no training question has; "
                "add such a training question, or leave out the dev question"
            )
    return sorted(tokens)


def _pseudoword_pairs(
    model: MaskedModel | CausalModel, questions: Sequence[Question], settings: SoftSettings, seed: int
) -> torch.Tensor | None:
    """Return embeddings of pseudoword pairs for [X] and [Y], or None if no prompt contains [X] or [Y].

    The pairs differ from those that a study with the same seed uses in its evaluation.
    """
    if not any(mark in question.prompt for question in questions for mark in PSEUDOWORD_MARKS):
        return None
    if not settings.pseudowords:
        raise InputError(
            "the prompts contain [X] or [Y]; set learning.settings.pseudowords to a number of pairs, such as 10"
        )
    centre = "unknown" if settings.compat == "paper" else "mask"
    pair_seed = derived_seed(seed, "learning")
    points = pseudoword_embeddings(model, PseudowordSettings(settings.pseudowords, settings.alpha, pair_seed, centre))
    return torch.from_numpy(points).float().reshape(settings.pseudowords, len(PSEUDOWORD_MARKS), -1)


def _random_embeddings(model: MaskedModel | CausalModel, tokens: Sequence[str], seed: int) -> Embeddings:
    """Draw initial embeddings with the mean and standard deviation of the model's embeddings in each dimension.

    A standard normal vector would be many times longer than any embedding of the model.
    """
    table = get_base_embedding(model).weight.detach()[: len(model.tokenizer)]
    blocks = table.split(_ROWS_AT_ONCE)
    mean = sum(block.double().sum(0) for block in blocks) / len(table)
    deviation = (sum(((block.double() - mean) ** 2).sum(0) for block in blocks) / len(table)).sqrt()
    embeddings = {}
    for token in tokens:
        draw = np.random.default_rng(derived_seed(seed, "soft", token)).standard_normal(table.shape[1])
        embeddings[token] = (mean.cpu() + deviation.cpu() * torch.from_numpy(draw)).float()
    return embeddings


@contextmanager
def _with_embeddings(
    model: MaskedModel | CausalModel, embeddings: Embeddings, pairs: torch.Tensor | None
) -> Iterator[MaskedModel | CausalModel]:
    """Yield the frozen model, extended by ``embeddings`` and by pseudowords for [X] and [Y] if there are ``pairs``.

    Restore the original model afterwards.
    """
    network = model.model
    input_embeddings, training = network.get_input_embeddings(), network.training
    trainable = [parameter for parameter in network.parameters() if parameter.requires_grad]
    marks = {} if pairs is None else dict(zip(PSEUDOWORD_MARKS, pairs[0], strict=True))
    network.requires_grad_(False)
    network.eval()
    try:
        yield with_extra_words(model, {**embeddings, **marks})
    finally:
        network.set_input_embeddings(input_embeddings)
        network.train(training)
        for parameter in trainable:
            parameter.requires_grad_(True)
