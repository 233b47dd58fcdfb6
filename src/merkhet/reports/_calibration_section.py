"""Calibration cards: whether the probes of a run find what a model knows, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from merkhet.reports import formatting as show
from merkhet.reports._method_phrases import kind_in_words
from merkhet.reports.report_data import ReportData

CONTENTS = ("memorized", "never shown", "in other words")
MODELS = ("trained", "bag of words", "random weights")
_OWN_CONTROL = "recall"
_UNSEEN = "unseen"
_TALKING = ("choose", "answer", "judge")
_EXPLAINED = {
    "memorized": "sentences that the models learned by heart",
    "never shown": "facts of the same kind that were left out",
    "in other words": "facts that were learned in other sentences than those asked",
}


@dataclass(frozen=True)
class Trust:
    """The cards of a run's own probes and kinds of models, further cards, and the ways of asking that have none."""

    cards: Sequence[Mapping[str, Any]] = ()
    others: Sequence[Mapping[str, Any]] = ()
    missing: Sequence[tuple[str, str]] = ()
    """Pairs of a probe and a kind of model."""
    methods: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """The methods by which models of a kind were asked by a probe."""
    tasks: frozenset[str] = frozenset()
    places: Mapping[str, str] = field(default_factory=dict)
    """What a probe is called on the command line, by the name that its answers have."""

    @property
    def failed(self) -> list[Mapping[str, Any]]:
        """The cards of probes that did not do what they should."""
        return [card for card in self.cards if card.get("passed") is False]


def trust(data: ReportData) -> Trust:
    """Which cards speak for the ways of asking that the run used; baselines need none."""
    kinds = {str(model.get("name")): str(model.get("kind") or "") for model in data.record.get("models") or ()}
    baselines = data.baselines()
    ways: dict[tuple[str, str], dict[str, None]] = {}
    used = data.answers.group_by(["model", "probe", "method"], use_threads=False).aggregate([])
    for row in used.to_pylist():
        whose = kinds.get(row["model"], "")
        if row["model"] not in baselines and whose != "predictions":
            ways.setdefault((row["probe"], whose), {})[row["method"]] = None
    own: list[Mapping[str, Any]] = []
    others: list[Mapping[str, Any]] = []
    for card in data.calibration:
        probe, kind = str(card.get("probe", "")), card.get("kind")
        fits = (probe, str(kind)) in ways or (kind is None and any(way[0] == probe for way in ways))
        (own if fits else others).append(card)
    known = {(str(card.get("probe", "")), card.get("kind")) for card in own}
    missing = [way for way in ways if way not in known and (way[0], None) not in known]
    tasks = frozenset(str(name) for name in data.questions["task"].unique().to_pylist())
    named = [str(model["probe"]) for model in data.record.get("models") or () if model.get("probe")]
    places = {place.rpartition(":")[2]: place for place in named}
    return Trust(own, others, missing, {way: list(methods) for way, methods in ways.items()}, tasks, places)


def card_views(cards: Sequence[Mapping[str, Any]], found: Trust, start: int = 0) -> list[dict[str, Any]]:
    """The cards as the page shows them: a verdict in words, a table of contents by models, how it was made."""
    views = []
    for place, card in enumerate(cards, start):
        probe, kind = show.printable(card.get("probe", "")), show.printable(card.get("kind") or "")
        method = show.printable(card.get("method") or "")
        used = found.methods.get((str(card.get("probe", "")), str(card.get("kind"))), ())
        further = [show.printable(name) for name in used if card.get("method") and name != card["method"]]
        rows = list(card.get("rows") or ())
        percent = all(abs(value) <= 1 for row in rows if (value := show.finite(row.get("value"))) is not None)
        views.append(
            {
                "id": f"card-{place}",
                "name": _titled(card),
                "method": method,
                "further": _few(further),
                "metric": show.metric_label(show.printable(card.get("metric") or "")),
                "passed": card.get("passed"),
                "verdict": _verdict(card),
                "about": show.printable(card.get("about") or ""),
                "sentences": [show.printable(text) for text in card.get("sentences") or ()],
                "table": _matrix(rows, percent),
                "made": _made(card),
                "command": show.printable((card.get("made") or {}).get("command") or calibrate_command(probe)),
                "kind": kind,
            }
        )
    return views


def missing_views(found: Trust) -> list[dict[str, str]]:
    """Ways of asking that were never calibrated, each with what to do."""
    views = []
    for probe, kind in found.missing:
        if probe == _OWN_CONTROL:
            where = (
                f": see the scores of the task {_UNSEEN}, which are those of facts that were never stored"
                if _UNSEEN in found.tasks
                else ""
            )
            views.append(
                {
                    "text": "The probe recall asks models for what the run itself made them store, so that each run is "
                    f"its own control{where}.",
                    "command": "",
                }
            )
            continue
        if probe in _TALKING:
            text = (
                f"The probe {show.printable(probe)} talks to {_plural(kind)}, and has no calibration card: small "
                "models of known content have learned no language to be talked to in."
            )
            views.append({"text": text, "command": ""})
            continue
        text = f"The probe {show.printable(probe)} has no calibration card for {_plural(kind)}."
        views.append({"text": text, "command": calibrate_command(show.printable(found.places.get(probe, probe)))})
    return views


def calibrate_command(probe: str) -> str:
    """The command that makes a card."""
    return f"merkhet calibrate {probe}"


def trust_sentences(found: Trust) -> list[str]:
    """Whether the probes can be trusted, for a summary; failures are told apart from this, as warnings."""
    sentences = []
    passed = [card for card in found.cards if card.get("passed")]
    if passed:
        names = _listed([_titled(card) for card in passed])
        sentences.append(f"Calibrated and passed: {names}. {_found_together(passed)}".strip())
    unknown = [_titled(card) for card in found.cards if card.get("passed") is None]
    if unknown:
        sentences.append(f"Calibrated without a verdict: {_listed(unknown)}.")
    never = [(probe, kind) for probe, kind in found.missing if probe != _OWN_CONTROL and probe not in _TALKING]
    talked = [probe for probe in dict.fromkeys(probe for probe, _ in found.missing) if probe in _TALKING]
    if talked:
        sentences.append(f"Not calibrated, for want of small models that can be talked to: {_listed(talked)}.")
    if never:
        names = _listed([f"{show.printable(probe)} for {_plural(kind)}" for probe, kind in never])
        places = [found.places.get(probe, probe) for probe in dict.fromkeys(probe for probe, _ in never)]
        commands = _listed([calibrate_command(show.printable(place)) for place in places])
        sentences.append(
            f"Not calibrated: {names}. Nothing says how far to trust a probe’s scores until it is: {commands}."
        )
    return sentences


def warnings(found: Trust) -> list[str]:
    """What must be read before any number: probes that failed their calibration."""
    return [f"{_verdict(card)} Do not take scores by it as knowledge." for card in found.failed]


def calibrated_in_words(found: Trust) -> list[str]:
    """The result of each card, as a methods section says it."""
    said = []
    for card in found.cards:
        trainings = show.finite(card.get("trainings"))
        of = f" ({show.count(trainings)} trainings, seed {card.get('seed', 0)})" if trainings else ""
        said.append(f"{_verdict(card).removesuffix('.')}{of}. {_findings(card)}".strip())
    never = [f"{show.printable(probe)} ({kind_in_words(kind) or 'any model'})" for probe, kind in found.missing]
    own = [name for name in never if not name.startswith(_OWN_CONTROL)]
    if own:
        said.append(f"No calibration is known for {_listed(own)}.")
    return said


def _titled(card: Mapping[str, Any]) -> str:
    kind = f" with {_plural(str(card['kind']))}" if card.get("kind") else ""
    return f"{show.printable(card.get('probe', ''))}{kind}"


def _plural(kind: str) -> str:
    names = {"masked": "masked models", "causal": "causal models", "encoder": "encoders"}
    return show.printable(names.get(kind, f"{kind} models" if kind else "its models"))


def _verdict(card: Mapping[str, Any]) -> str:
    name = f"The probe {show.printable(card.get('probe', ''))}"
    kind = f" with {_plural(str(card['kind']))}" if card.get("kind") else ""
    if card.get("passed") is None:
        return f"{name} was calibrated{kind}, without a verdict."
    if card["passed"]:
        return f"{name} passed its calibration{kind}."
    wrong = [row for row in card.get("rows") or () if row.get("passed") is False]
    parts = [f"{_place(row)} it has {_value(row)}{_wanted(row)}" for row in wrong]
    return f"{name} failed its calibration{kind}" + (f": {'; '.join(parts)}." if parts else ".")


def _found_together(cards: Sequence[Mapping[str, Any]]) -> str:
    """What the cards' trained models say of what was memorized and never shown, from the least to the most."""
    told, chances = [], []
    for content in CONTENTS[:2]:
        rows = [row for card in cards for row in card.get("rows") or ()]
        rows = [row for row in rows if (row.get("content"), row.get("model")) == (content, MODELS[0])]
        values = [value for row in rows if (value := show.finite(row.get("value"))) is not None]
        chances += [value for row in rows if (value := show.finite(row.get("chance"))) is not None]
        told += [f"{show.span(values)}% of what was {content}"] if values else []
    if not told:
        return ""
    chance = f" (chance {show.span(chances)}%)" if chances else ""
    return f"In small models of known content {_listed(told)} was found{chance}."


def _findings(card: Mapping[str, Any]) -> str:
    """What the trained models' rows say, and the controls', in a sentence or two."""
    rows = {(row.get("content"), row.get("model")): row for row in card.get("rows") or ()}
    told = [
        f"{_value(row)} of what was {content}"
        for content, row in ((content, rows.get((content, MODELS[0]))) for content in CONTENTS[:2])
        if row is not None and show.finite(row.get("value")) is not None
    ]
    other = rows.get((CONTENTS[2], MODELS[0]))
    if other is not None and show.finite(other.get("value")) is not None:
        told.append(f"{_value(other)} of what was shown only in other words")
    if not told:
        return ""
    chance = next((show.finite(row.get("chance")) for row in rows.values() if row.get("chance") is not None), None)
    sentence = f"In small models of known content it found {_listed(told)}"
    sentence += f" (chance {show.score(chance)}%)" if chance is not None else ""
    controls = [
        f"{article} {_value(row, short=True)}"
        for name, article in zip(MODELS[1:], ("a bag of words has", "random weights have"), strict=True)
        if (row := rows.get((CONTENTS[0], name))) is not None and show.finite(row.get("value")) is not None
    ]
    return f"{sentence}; on the memorized {_listed(controls)}." if controls else f"{sentence}."


def _matrix(rows: Sequence[Mapping[str, Any]], percent: bool) -> dict[str, Any]:
    """Contents by models; where a place has several rows, they stand one above another."""
    contents = list(dict.fromkeys(str(row.get("content", "")) for row in rows))
    models = list(dict.fromkeys(str(row.get("model", "")) for row in rows))
    contents.sort(key=lambda name: CONTENTS.index(name) if name in CONTENTS else len(CONTENTS))
    models.sort(key=lambda name: MODELS.index(name) if name in MODELS else len(MODELS))
    lines = []
    for content in contents:
        cells = []
        for model in models:
            here = [row for row in rows if (str(row.get("content", "")), str(row.get("model", ""))) == (content, model)]
            cells.append([_cell(row, percent) for row in here])
        name = show.printable(content)
        lines.append({"name": name, "explained": _EXPLAINED.get(content, ""), "cells": cells})
    return {"models": [show.printable(name) for name in models], "lines": lines}


def _cell(row: Mapping[str, Any], percent: bool) -> dict[str, Any]:
    value, low, high, chance = (show.finite(row.get(name)) for name in ("value", "low", "high", "chance"))
    counted = [
        f"{show.count(row[name])} {what}"
        for name, what in (("n", "questions"), ("facts", "facts"))
        if row.get(name) is not None
    ]
    return {
        "text": show.score(value, percent=percent),
        "interval": show.interval(low, high, percent=percent),
        "bar": {
            "value": _share(value),
            "low": _share(value if low is None else low),
            "high": _share(value if high is None else high),
            "chance": None if chance is None else _share(chance),
        }
        if percent and value is not None
        else None,
        "aside": _aside(row.get("wanted"), chance, percent),
        "passed": row.get("passed"),
        "tip": ", ".join(counted),
    }


def _aside(wanted: Any, chance: float | None, percent: bool) -> str:
    level = "" if chance is None else f"chance {show.score(chance, percent=percent)}"
    if not wanted:
        return level
    text = show.printable(wanted)
    if level and "chance" in text:
        return f"wanted: {text.replace('chance', level, 1)}"
    return f"wanted: {text}" + (f"; {level}" if level else "")


def _share(value: float | None) -> str:
    return f"{100 * min(1.0, max(0.0, value or 0.0)):.1f}"


def _value(row: Mapping[str, Any], *, short: bool = False) -> str:
    """A row's value in percent, with its interval where there is one."""
    text = f"{show.score(row.get('value'))}%"
    interval = "" if short else show.interval(row.get("low"), row.get("high"))
    return f"{text} {interval}".strip()


def _place(row: Mapping[str, Any]) -> str:
    content, model = show.printable(row.get("content", "")), show.printable(row.get("model", ""))
    return f"on what was {content} ({model})"


def _wanted(row: Mapping[str, Any]) -> str:
    if not row.get("wanted"):
        return ""
    chance = show.finite(row.get("chance"))
    level = f" ({show.score(chance)}%)" if chance is not None and "chance" in str(row["wanted"]) else ""
    return f", where {show.printable(row['wanted'])}{level} is wanted"


def _made(card: Mapping[str, Any]) -> str:
    made = card.get("made") or {}
    parts = [f"{name} {made[name]}" for name in ("merkhet", "torch", "transformers") if made.get(name)]
    parts += [f"Python {made['python']}"] if made.get("python") else []
    said = f"Made with {', '.join(parts)}" if parts else ""
    said += f" on {str(made['date'])[:10]}" if made.get("date") and said else ""
    seconds = show.finite(made.get("seconds"))
    said += f" in {seconds:,.0f} s" if seconds is not None and said else ""
    trainings = show.finite(card.get("trainings"))
    more = [f"{show.count(trainings)} trainings"] if trainings else []
    more += [f"seed {card['seed']}"] if card.get("seed") is not None else []
    return show.printable("; ".join(part for part in (said, *more) if part))


def _few(names: Sequence[str], most: int = 6) -> str:
    return ", ".join([*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])])


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
