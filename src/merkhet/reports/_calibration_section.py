"""Calibration section of a report: the cards of the run's probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from merkhet.reports import formatting as fmt
from merkhet.reports._method_phrases import describe_kind
from merkhet.reports.report_data import ReportData

_CONTENTS = ("memorized", "never shown", "in other words")
_MODELS = ("trained", "bag of words", "random weights")
_RECALL = "recall"
_UNSEEN_TASK = "unseen"
_CHAT_PROBES = ("choose", "answer", "judge")
_CONTENT_NOTES = {
    "memorized": "sentences that the models learned by heart",
    "never shown": "facts of the same kind that were left out",
    "in other words": "facts that were learned in other sentences than those asked",
}


@dataclass(frozen=True)
class CalibrationStatus:
    """Hold the calibration cards of a run, and the ways of asking that have none."""

    cards: Sequence[Mapping[str, Any]] = ()
    """Cards of the probes and kinds of models in the run."""
    other_cards: Sequence[Mapping[str, Any]] = ()
    """Cards for other kinds of models."""
    missing: Sequence[tuple[str, str]] = ()
    """Pairs of probe and kind of model that have no card."""
    methods: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """Methods used in the run by probe and kind of model."""
    tasks: frozenset[str] = frozenset()
    probe_names: Mapping[str, str] = field(default_factory=dict)
    """Name of a probe on the command line, by its name in the answers."""

    @property
    def failed(self) -> list[Mapping[str, Any]]:
        """Return the cards that did not pass."""
        return [card for card in self.cards if card.get("passed") is False]


def calibration_status(data: ReportData) -> CalibrationStatus:
    """Match the cards with the ways of asking in the run; baselines need none."""
    kinds = {str(model.get("name")): str(model.get("kind") or "") for model in data.record.get("models") or ()}
    baselines = data.baselines()
    ways: dict[tuple[str, str], dict[str, None]] = {}
    used = data.answers.group_by(["model", "probe", "method"], use_threads=False).aggregate([])
    for row in used.to_pylist():
        model_kind = kinds.get(row["model"], "")
        if row["model"] not in baselines and model_kind != "predictions":
            ways.setdefault((row["probe"], model_kind), {})[row["method"]] = None
    cards: list[Mapping[str, Any]] = []
    other_cards: list[Mapping[str, Any]] = []
    for card in data.calibration:
        probe, kind = str(card.get("probe", "")), card.get("kind")
        is_used = (probe, str(kind)) in ways or (kind is None and any(way[0] == probe for way in ways))
        (cards if is_used else other_cards).append(card)
    covered = {(str(card.get("probe", "")), card.get("kind")) for card in cards}
    missing = [way for way in ways if way not in covered and (way[0], None) not in covered]
    tasks = frozenset(str(name) for name in data.questions["task"].unique().to_pylist())
    probes = [str(model["probe"]) for model in data.record.get("models") or () if model.get("probe")]
    probe_names = {probe.rpartition(":")[2]: probe for probe in probes}
    return CalibrationStatus(
        cards, other_cards, missing, {way: list(methods) for way, methods in ways.items()}, tasks, probe_names
    )


def card_views(cards: Sequence[Mapping[str, Any]], status: CalibrationStatus, start: int = 0) -> list[dict[str, Any]]:
    """Format cards for the page: verdict, table of contents by models, and provenance."""
    views = []
    for index, card in enumerate(cards, start):
        probe, kind = fmt.printable(card.get("probe", "")), fmt.printable(card.get("kind") or "")
        method = fmt.printable(card.get("method") or "")
        used = status.methods.get((str(card.get("probe", "")), str(card.get("kind"))), ())
        other_methods = [fmt.printable(name) for name in used if card.get("method") and name != card["method"]]
        rows = list(card.get("rows") or ())
        percent = all(abs(value) <= 1 for row in rows if (value := fmt.finite_or_none(row.get("value"))) is not None)
        views.append(
            {
                "id": f"card-{index}",
                "name": _card_title(card),
                "method": method,
                "other_methods": _join_first(other_methods),
                "metric": fmt.metric_label(fmt.printable(card.get("metric") or "")),
                "passed": card.get("passed"),
                "verdict": _verdict(card),
                "about": fmt.printable(card.get("about") or ""),
                "sentences": [fmt.printable(text) for text in card.get("sentences") or ()],
                "table": _matrix(rows, percent),
                "made": _provenance(card),
                "command": fmt.printable((card.get("made") or {}).get("command") or _calibrate_command(probe)),
                "kind": kind,
            }
        )
    return views


def missing_views(status: CalibrationStatus) -> list[dict[str, str]]:
    """List the ways of asking that have no card, each with the command that makes one."""
    views = []
    for probe, kind in status.missing:
        if probe == _RECALL:
            hint = (
                f": see the scores of the task {_UNSEEN_TASK}, which are those of facts that were never stored"
                if _UNSEEN_TASK in status.tasks
                else ""
            )
            views.append(
                {
                    "text": "The probe recall asks models for what the run itself made them store, so that each run is "
                    f"its own control{hint}.",
                    "command": "",
                }
            )
            continue
        if probe in _CHAT_PROBES:
            text = (
                f"The probe {fmt.printable(probe)} talks to {_plural(kind)}, and has no calibration card: small "
                "models of known content have learned no language to be talked to in."
            )
            views.append({"text": text, "command": ""})
            continue
        text = f"The probe {fmt.printable(probe)} has no calibration card for {_plural(kind)}."
        views.append({"text": text, "command": _calibrate_command(fmt.printable(status.probe_names.get(probe, probe)))})
    return views


def _calibrate_command(probe: str) -> str:

    return f"merkhet calibrate {probe}"


def calibration_sentences(status: CalibrationStatus) -> list[str]:
    """Say for the summary which probes passed their calibration; failures are in :func:`calibration_warnings`."""
    sentences = []
    passed = [card for card in status.cards if card.get("passed")]
    if passed:
        names = _join_and([_card_title(card) for card in passed])
        sentences.append(f"Calibrated and passed: {names}. {_summarize_cards(passed)}".strip())
    undecided = [_card_title(card) for card in status.cards if card.get("passed") is None]
    if undecided:
        sentences.append(f"Calibrated without a verdict: {_join_and(undecided)}.")
    uncalibrated = [(probe, kind) for probe, kind in status.missing if probe != _RECALL and probe not in _CHAT_PROBES]
    chat_probes = [probe for probe in dict.fromkeys(probe for probe, _ in status.missing) if probe in _CHAT_PROBES]
    if chat_probes:
        sentences.append(f"Not calibrated, for want of small models that can be talked to: {_join_and(chat_probes)}.")
    if uncalibrated:
        names = _join_and([f"{fmt.printable(probe)} for {_plural(kind)}" for probe, kind in uncalibrated])
        command_names = [
            status.probe_names.get(probe, probe) for probe in dict.fromkeys(probe for probe, _ in uncalibrated)
        ]
        commands = _join_and([_calibrate_command(fmt.printable(name)) for name in command_names])
        sentences.append(
            f"Not calibrated: {names}. Nothing says how far to trust a probe’s scores until it is: {commands}."
        )
    return sentences


def calibration_warnings(status: CalibrationStatus) -> list[str]:
    """Warn of probes that failed their calibration."""
    return [f"{_verdict(card)} Do not take scores by it as knowledge." for card in status.failed]


def describe_calibration(status: CalibrationStatus) -> list[str]:
    """Describe the result of each card for the methods section."""
    sentences = []
    for card in status.cards:
        trainings = fmt.finite_or_none(card.get("trainings"))
        trained_by = f" ({fmt.count(trainings)} trainings, seed {card.get('seed', 0)})" if trainings else ""
        sentences.append(f"{_verdict(card).removesuffix('.')}{trained_by}. {_summarize_card(card)}".strip())
    missing = [f"{fmt.printable(probe)} ({describe_kind(kind) or 'any model'})" for probe, kind in status.missing]
    uncalibrated = [name for name in missing if not name.startswith(_RECALL)]
    if uncalibrated:
        sentences.append(f"No calibration is known for {_join_and(uncalibrated)}.")
    return sentences


def _card_title(card: Mapping[str, Any]) -> str:
    kind = f" with {_plural(str(card['kind']))}" if card.get("kind") else ""
    return f"{fmt.printable(card.get('probe', ''))}{kind}"


def _plural(kind: str) -> str:
    names = {"masked": "masked models", "causal": "causal models", "encoder": "encoders"}
    return fmt.printable(names.get(kind, f"{kind} models" if kind else "its models"))


def _verdict(card: Mapping[str, Any]) -> str:
    name = f"The probe {fmt.printable(card.get('probe', ''))}"
    kind = f" with {_plural(str(card['kind']))}" if card.get("kind") else ""
    if card.get("passed") is None:
        return f"{name} was calibrated{kind}, without a verdict."
    if card["passed"]:
        return f"{name} passed its calibration{kind}."
    failed = [row for row in card.get("rows") or () if row.get("passed") is False]
    parts = [f"{_row_subject(row)} it has {_value_text(row)}{_expectation(row)}" for row in failed]
    return f"{name} failed its calibration{kind}" + (f": {'; '.join(parts)}." if parts else ".")


def _summarize_cards(cards: Sequence[Mapping[str, Any]]) -> str:
    """Summarize over all cards what trained models know of memorized and of unseen facts."""
    parts, chances = [], []
    for content in _CONTENTS[:2]:
        rows = [row for card in cards for row in card.get("rows") or ()]
        rows = [row for row in rows if (row.get("content"), row.get("model")) == (content, _MODELS[0])]
        values = [value for row in rows if (value := fmt.finite_or_none(row.get("value"))) is not None]
        chances += [value for row in rows if (value := fmt.finite_or_none(row.get("chance"))) is not None]
        parts += [f"{fmt.value_range(values)}% of what was {content}"] if values else []
    if not parts:
        return ""
    chance = f" (chance {fmt.value_range(chances)}%)" if chances else ""
    return f"In small models of known content {_join_and(parts)} was found{chance}."


def _summarize_card(card: Mapping[str, Any]) -> str:
    """Summarize the rows of the trained models and of the controls."""
    rows = {(row.get("content"), row.get("model")): row for row in card.get("rows") or ()}
    parts = [
        f"{_value_text(row)} of what was {content}"
        for content, row in ((content, rows.get((content, _MODELS[0]))) for content in _CONTENTS[:2])
        if row is not None and fmt.finite_or_none(row.get("value")) is not None
    ]
    rephrased = rows.get((_CONTENTS[2], _MODELS[0]))
    if rephrased is not None and fmt.finite_or_none(rephrased.get("value")) is not None:
        parts.append(f"{_value_text(rephrased)} of what was shown only in other words")
    if not parts:
        return ""
    chance = next(
        (fmt.finite_or_none(row.get("chance")) for row in rows.values() if row.get("chance") is not None), None
    )
    sentence = f"In small models of known content it found {_join_and(parts)}"
    sentence += f" (chance {fmt.score(chance)}%)" if chance is not None else ""
    controls = [
        f"{article} {_value_text(row, short=True)}"
        for name, article in zip(_MODELS[1:], ("a bag of words has", "random weights have"), strict=True)
        if (row := rows.get((_CONTENTS[0], name))) is not None and fmt.finite_or_none(row.get("value")) is not None
    ]
    return f"{sentence}; on the memorized {_join_and(controls)}." if controls else f"{sentence}."


def _matrix(rows: Sequence[Mapping[str, Any]], percent: bool) -> dict[str, Any]:
    """Arrange the rows as contents by models; a cell may hold several rows."""
    contents = list(dict.fromkeys(str(row.get("content", "")) for row in rows))
    models = list(dict.fromkeys(str(row.get("model", "")) for row in rows))
    contents.sort(key=lambda name: _CONTENTS.index(name) if name in _CONTENTS else len(_CONTENTS))
    models.sort(key=lambda name: _MODELS.index(name) if name in _MODELS else len(_MODELS))
    lines = []
    for content in contents:
        cells = []
        for model in models:
            cell_rows = [
                row for row in rows if (str(row.get("content", "")), str(row.get("model", ""))) == (content, model)
            ]
            cells.append([_cell(row, percent) for row in cell_rows])
        name = fmt.printable(content)
        lines.append({"name": name, "explained": _CONTENT_NOTES.get(content, ""), "cells": cells})
    return {"models": [fmt.printable(name) for name in models], "lines": lines}


def _cell(row: Mapping[str, Any], percent: bool) -> dict[str, Any]:
    value, low, high, chance = (fmt.finite_or_none(row.get(name)) for name in ("value", "low", "high", "chance"))
    sizes = [
        f"{fmt.count(row[name])} {unit}"
        for name, unit in (("n", "questions"), ("facts", "facts"))
        if row.get(name) is not None
    ]
    return {
        "text": fmt.score(value, percent=percent),
        "interval": fmt.interval(low, high, percent=percent),
        "bar": {
            "value": _bar_percent(value),
            "low": _bar_percent(value if low is None else low),
            "high": _bar_percent(value if high is None else high),
            "chance": None if chance is None else _bar_percent(chance),
        }
        if percent and value is not None
        else None,
        "aside": _expectation_note(row.get("wanted"), chance, percent),
        "passed": row.get("passed"),
        "tip": ", ".join(sizes),
    }


def _expectation_note(expected: Any, chance: float | None, percent: bool) -> str:
    level = "" if chance is None else f"chance {fmt.score(chance, percent=percent)}"
    if not expected:
        return level
    text = fmt.printable(expected)
    if level and "chance" in text:
        return f"wanted: {text.replace('chance', level, 1)}"
    return f"wanted: {text}" + (f"; {level}" if level else "")


def _bar_percent(value: float | None) -> str:
    return f"{100 * min(1.0, max(0.0, value or 0.0)):.1f}"


def _value_text(row: Mapping[str, Any], *, short: bool = False) -> str:
    """Format a row's value in percent, with its interval if there is one."""
    text = f"{fmt.score(row.get('value'))}%"
    interval = "" if short else fmt.interval(row.get("low"), row.get("high"))
    return f"{text} {interval}".strip()


def _row_subject(row: Mapping[str, Any]) -> str:
    content, model = fmt.printable(row.get("content", "")), fmt.printable(row.get("model", ""))
    return f"on what was {content} ({model})"


def _expectation(row: Mapping[str, Any]) -> str:
    if not row.get("wanted"):
        return ""
    chance = fmt.finite_or_none(row.get("chance"))
    level = f" ({fmt.score(chance)}%)" if chance is not None and "chance" in str(row["wanted"]) else ""
    return f", where {fmt.printable(row['wanted'])}{level} is wanted"


def _provenance(card: Mapping[str, Any]) -> str:
    made = card.get("made") or {}
    parts = [f"{name} {made[name]}" for name in ("merkhet", "torch", "transformers") if made.get(name)]
    parts += [f"Python {made['python']}"] if made.get("python") else []
    text = f"Made with {', '.join(parts)}" if parts else ""
    text += f" on {str(made['date'])[:10]}" if made.get("date") and text else ""
    seconds = fmt.finite_or_none(made.get("seconds"))
    text += f" in {seconds:,.0f} s" if seconds is not None and text else ""
    trainings = fmt.finite_or_none(card.get("trainings"))
    settings = [f"{fmt.count(trainings)} trainings"] if trainings else []
    settings += [f"seed {card['seed']}"] if card.get("seed") is not None else []
    return fmt.printable("; ".join(part for part in (text, *settings) if part))


def _join_first(names: Sequence[str], limit: int = 6) -> str:
    return ", ".join([*names[:limit], *([f"{len(names) - limit} more"] if len(names) > limit else [])])


def _join_and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
