"""Phrases of the methods section: how models were asked, trained and scored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from merkhet.models.protocol import ANSWER_LENGTH
from merkhet.reports import formatting as fmt

_POOLINGS = {
    "mean": "the mean log-probability of its tokens",
    "sum": "the summed log-probability of its tokens",
    "max": "the greatest log-probability among its tokens",
    "first": "the log-probability of its first token",
}
_MASKINGS = {
    "multiple": "with a mask for each of its tokens, all empty at once",
    "single": "with one mask for the whole candidate, at which every token is read",
}
_TOTALS = {"sum": "the total", "mean": "the mean per token of the", "per-character": "the mean per character of the"}
_PLL = "pseudo-log-likelihood, one token masked after another with the others in place"
_LEFT_TO_RIGHT = ", the tokens to its right in the same word masked too"
_BASELINES = {
    "count": "orders candidates by how often they are the answer of the same task and relation",
    "uniform": "guesses",
    "shuffles": "orders candidates by how often they are right in the training questions, and guesses the order of "
    "the others",
    "overlap": "compares sentences by the words that they share",
    "symbols": "answers what is masked most often in the stored statements of a relation",
}
_KINDS = {
    "masked": "masked language model",
    "causal": "causal language model",
    "encoder": "encoder",
    "chat": "chat model behind an endpoint",
    "predictions": "file of predictions made elsewhere",
}
PROBE_SENTENCES = {
    "rank": "By the probe rank, the candidates of a closed list were scored in the slot of the question’s sentence and "
    "ranked",
    "fill": "By the probe fill, the model’s whole vocabulary was ranked in the slot",
    "write": "By the probe write, models wrote what stands in the slot",
    "compare": "By the probe compare, the sense of a word in a sentence was compared with its sense in others, by the "
    "cosine of the model’s states of the word, the mean over its tokens",
    "choose": "By the probe choose, models were shown the sentence with a blank and lettered choices in a drawn order, "
    "and told to reply with a letter",
    "answer": "By the probe answer, models were told to fill the blank of the sentence in their own words, and the "
    "reply was compared with every right answer word by word; a reply that says nothing or declines is wrong",
    "judge": "By the probe judge, models were told to say whether a statement is true, for each question once with the "
    "right answer in place and once with a wrong one; a reply that judges nothing or declines is wrong",
    "recall": "By the probe recall, models filled the mask of a statement by one of their symbols, of which each "
    "entity and each time has one; all symbols were ranked",
}
_OBJECTIVES = {
    "mlm": "masked tokens alone",
    "nsp": "masked tokens and the next sentence",
    "sop": "masked tokens and the order of sentences",
    "sbo": "masked tokens and span boundaries",
}


def describe_kind(kind: str) -> str:
    """Name a kind of model as papers do."""
    return _KINDS.get(kind, kind)


def describe_baseline(method: str) -> str:
    """Say what a baseline does; empty if its method is unknown."""
    return _BASELINES.get(method, "")


def describe_method(probe: str, kind: str, method: str) -> str:
    """Say how a method scores a candidate or writes an answer; empty if it is unknown."""
    name, _, layer = method.partition("@")
    if probe == "rank":
        return _describe_masked(name) if kind == "masked" else _describe_causal(name)
    if probe == "fill":
        return "by the log-probability of each piece of the vocabulary at one mask" if name == "mask" else ""
    if probe == "write":
        return {
            "masks": f"{ANSWER_LENGTH} masks filled at once",
            "continue": "the text before the slot gone on with, greedily",
            "chat": "the question put as an instruction in the model’s chat format",
            "file": "the predictions of a file",
        }.get(name, "")
    if probe == "choose":
        return {
            "letters": "choices were ranked by the probabilities of their letters at the beginning of the reply",
            "text": "the choice counts that the reply names by letter or in words, strictly read, and a reply that "
            "names none or declines is wrong",
        }.get(name, "")
    if probe == "compare":
        layer_phrase = f"at layer {layer}" if layer else "in the last layer"
        return {
            "word": f"with the word in place, {layer_phrase}",
            "masked": f"with masks in its place, {layer_phrase}",
        }.get(name, "")
    return ""


def describe_endpoint(model: Mapping[str, Any]) -> str:
    """Say at which endpoint and with which settings a model was asked."""
    settings = (
        [f"temperature {model['temperature']:g}"] if fmt.finite_or_none(model.get("temperature")) is not None else []
    )
    settings += [f"seed {model['seed']}"] if model.get("seed") is not None else []
    omitted = [name.strip() for name in str(model.get("left_out") or "").split(",")]
    settings = [text for text in settings if text.split()[0] not in omitted]
    settings_phrase = f" ({', '.join(settings)})" if settings else ""
    system_phrase = f", told before all else: “{fmt.printable(model['system'])}”" if model.get("system") else ""
    name = fmt.printable(model.get("model") or model.get("name"))
    return f"{name} was asked at {model['endpoint']}{settings_phrase}{system_phrase}."


def describe_options(options: Mapping[str, Any]) -> list[str]:
    """Describe the options of a chat probe in sentences."""
    sentences = []
    orders, shots = fmt.finite_or_none(options.get("orders")) or 1, fmt.finite_or_none(options.get("shots")) or 0
    if orders > 1:
        sentences.append(
            f"Each question was asked in {fmt.count(orders)} orders of its choices, turned on evenly, and a choice "
            "counts by its mean over them."
        )
    if options.get("mixed_letters"):
        sentences.append("The letters before the choices were drawn too.")
    if options.get("most"):
        sentences.append(f"No more than {fmt.count(options['most'])} choices were shown.")
    if shots:
        sentences.append(
            f"{fmt.count(shots)} training questions of the same task were shown before, with their answers."
        )
    return sentences


def _describe_masked(method: str) -> str:
    masking, _, pooling = method.rpartition("-")
    if masking in _MASKINGS and pooling in _POOLINGS:
        return f"{_POOLINGS[pooling]}, {_MASKINGS[masking]}"
    match = re.fullmatch(r"(sentence-)?pll(-l2r)?", masking)
    if match is None or pooling not in ("sum", "mean"):
        return ""
    scope = "the sentence with it in place" if match[1] else "its tokens"
    return f"the {pooling} over {scope} of the {_PLL}{_LEFT_TO_RIGHT if match[2] else ''}"


def _describe_causal(method: str) -> str:
    if method == "first-token":
        return "the log-probability of its first token, given the text before"
    part, pooling = next(
        ((part, method.removeprefix(part)) for part in ("candidate-", "sentence-") if method.startswith(part)),
        ("", method),
    )
    if pooling not in _TOTALS:
        return ""
    scope = {
        "": "of the candidate and all text after it, given the text before",
        "candidate-": "of the candidate alone, given the text before",
        "sentence-": "of the whole sentence with it in place",
    }[part]
    return f"{_TOTALS[pooling]} log-probability {scope}"


def describe_training(name: str, record: Mapping[str, Any]) -> str:
    """Describe the training of a model from its record."""
    learner, epochs = record.get("learner"), fmt.count(record.get("epochs"))
    if learner == "cloze":
        epoch = record.get("kept_epoch")
        selection = f", the weights of epoch {epoch} kept by its dev questions" if record.get("dev_questions") else ""
        questions = fmt.count(record.get("learned"))
        return f"{name} was fine-tuned on {questions} training questions ({epochs} epochs{selection})"
    if learner == "pretrain":
        objective = _OBJECTIVES.get(str(record.get("objective")), str(record.get("objective")))
        steps = fmt.count(record.get("steps"))
        return f"{name} was pre-trained further on a text corpus by {objective} ({steps} steps)"
    if learner == "memorize":
        return (
            f"{name} was trained for {epochs} epochs to fill the masks of {fmt.count(record.get('statements'))} "
            f"statements, with {fmt.count(record.get('symbols'))} symbols to choose from"
            + _final_accuracy(record.get("curve") or ())
        )
    return f"{name} learned by {learner}" if learner else ""


def _final_accuracy(curve: Any) -> str:
    shares = [share for epoch in curve if (share := fmt.finite_or_none(epoch.get("acc@1"))) is not None]
    return f", and then knew {100 * shares[-1]:.1f}% of them by heart" if shares else ""
