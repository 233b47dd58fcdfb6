"""Calibration section of a report, with the calibration cards of the run's probes.

A calibration card records how a probe scores models whose knowledge is known. This module collects numbers and names;
the sentences are in ``templates/calibration.txt.j2``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from merkhet.core import text as fmt
from merkhet.core.templating import render_prose
from merkhet.reports.report_data import ReportData

_CONTENTS = {
    "memorized": "sentences that the models have memorized",
    "never shown": "facts of the same kind that were left out",
    "in other words": "facts that the models learned in another wording",
}
_MODELS = ("trained", "bag of words", "random weights")
_RECALL = "recall"
_UNSEEN_TASK = "unseen"
_CHAT_PROBES = ("choose", "answer", "judge")
_MAX_METHODS = 6
_say = partial(render_prose, "merkhet.reports", "templates", "calibration.txt.j2")


@dataclass(frozen=True)
class CalibrationStatus:
    """The calibration cards of a run, and the pairs of probe and kind of model without a card."""

    cards: Sequence[Mapping[str, Any]] = ()
    """Cards for pairs of probe and kind of model that the run uses."""
    other_cards: Sequence[Mapping[str, Any]] = ()
    """Cards for pairs of probe and kind of model that the run does not use."""
    missing: Sequence[tuple[str, str]] = ()
    """Pairs of probe and kind of model in the run that have no card."""
    methods: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """Methods used in the run, by pair of probe and kind of model."""
    tasks: frozenset[str] = frozenset()
    probe_names: Mapping[str, str] = field(default_factory=dict)
    """Name of each probe on the command line, keyed by the probe's name in the answer table."""

    def command(self, probe: str) -> str:
        """Return the command that calibrates a probe."""
        return fmt.printable(f"merkhet calibrate {self.probe_names.get(probe, probe)}")


@dataclass(frozen=True)
class _Row:
    """One score of a calibration card: a model (such as ``trained``) on a kind of content (such as ``memorized``)."""

    content: str
    model: str
    expected: str
    passed: bool | None
    value: float | None
    low: float | None
    high: float | None
    chance: float | None


@dataclass(frozen=True)
class _Card:
    """The values of a calibration card that the templates use."""

    probe: str
    kind: str
    passed: bool | None
    rows: Sequence[_Row]
    trainings: float | None
    seed: Any
    made_with: Sequence[str]
    made_on: str
    made_in: float | None
    """Duration of the calibration in seconds."""

    @property
    def failed_rows(self) -> list[_Row]:
        """The scores that failed; empty if the card as a whole did not fail."""
        return [row for row in self.rows if row.passed is False and self.passed is False]

    @property
    def chance(self) -> float | None:
        """The first known chance level of the card; None if no score has one."""
        return next((row.chance for row in self.rows if row.chance is not None), None)

    def row(self, content: str, model: str) -> _Row | None:
        """Return the last score of ``model`` on ``content``; None if the score is missing or has no value."""
        matches = [row for row in self.rows if (row.content, row.model) == (content, model)]
        return matches[-1] if matches and matches[-1].value is not None else None


@dataclass(frozen=True)
class _Summary:
    passed: Sequence[_Card]
    found: Mapping[str, Sequence[float]]
    """Scores of the trained models by kind of content."""
    chances: Sequence[float]
    undecided: Sequence[_Card]
    chat_probes: Sequence[str]
    uncalibrated: Sequence[tuple[str, str]]
    commands: Sequence[str]


def calibration_status(data: ReportData) -> CalibrationStatus:
    """Match calibration cards with the probes and kinds of models in the run; baselines need no card."""
    baselines = data.baselines()
    methods: dict[tuple[str, str], list[str]] = {}
    for way in data.ways_of_asking():
        if way["model"] not in baselines and way["kind"] != "predictions":
            used = methods.setdefault((way["probe"], way["kind"]), [])
            used += [way["method"]] if way["method"] not in used else []
    cards: list[Mapping[str, Any]] = []
    other_cards: list[Mapping[str, Any]] = []
    for card in data.calibration:
        probe, kind = str(card.get("probe", "")), card.get("kind")
        is_used = (probe, str(kind)) in methods or (kind is None and any(pair[0] == probe for pair in methods))
        (cards if is_used else other_cards).append(card)
    covered = {(str(card.get("probe", "")), card.get("kind")) for card in cards}
    missing = [pair for pair in methods if pair not in covered and (pair[0], None) not in covered]
    tasks = frozenset(str(name) for name in data.questions["task"].unique().to_pylist())
    probes = [str(model["probe"]) for model in data.record.get("models") or () if model.get("probe")]
    return CalibrationStatus(
        cards, other_cards, missing, methods, tasks, {probe.rpartition(":")[2]: probe for probe in probes}
    )


def card_views(cards: Sequence[Mapping[str, Any]], status: CalibrationStatus, start: int = 0) -> list[dict[str, Any]]:
    """Format calibration cards for the page: verdict, scores by content and model, and provenance.

    ``start`` is the number of the first card in the HTML ids.
    """
    views = []
    for index, card in enumerate(cards, start):
        context, probe = _card(card), str(card.get("probe", ""))
        used = status.methods.get((probe, str(card.get("kind"))), ())
        other_methods = [fmt.printable(name) for name in used if card.get("method") and name != card["method"]]
        rows = list(card.get("rows") or ())
        percent = all(abs(row.value) <= 1 for row in context.rows if row.value is not None)
        more = [f"{len(other_methods) - _MAX_METHODS} more"] if len(other_methods) > _MAX_METHODS else []
        views.append(
            {
                "id": f"card-{index}",
                "name": "".join(_say("title", context)),
                "method": fmt.printable(card.get("method") or ""),
                "other_methods": ", ".join([*other_methods[:_MAX_METHODS], *more]),
                "metric": fmt.metric_label(fmt.printable(card.get("metric") or "")),
                "passed": card.get("passed"),
                "verdict": "".join(_say("verdict", context)),
                "about": fmt.printable(card.get("about") or ""),
                "sentences": [fmt.printable(text) for text in card.get("sentences") or ()],
                "table": _matrix(rows, percent),
                "made": "".join(_say("provenance", context)),
                "command": fmt.printable((card.get("made") or {}).get("command") or f"merkhet calibrate {probe}"),
            }
        )
    return views


def missing_views(status: CalibrationStatus) -> list[dict[str, str]]:
    """Describe each pair of probe and kind of model without a card, with the command that calibrates the probe.

    The command is empty for the probe ``recall`` and the chat probes.
    """
    unseen_task = _UNSEEN_TASK if _UNSEEN_TASK in status.tasks else ""
    return [
        {
            "text": "".join(_say("missing", probe, kind, probe in _CHAT_PROBES, unseen_task)),
            "command": "" if probe in (_RECALL, *_CHAT_PROBES) else status.command(probe),
        }
        for probe, kind in status.missing
    ]


def calibration_sentences(status: CalibrationStatus) -> list[str]:
    """Write the summary of passed, undecided and missing calibrations.

    :func:`calibration_warnings` reports failures.
    """
    cards = [_card(card) for card in status.cards]
    passed = [card for card in cards if card.passed]
    rows = [row for card in passed for row in card.rows if row.model == _MODELS[0]]
    found = {
        content: [row.value for row in rows if row.content == content and row.value is not None]
        for content in ("memorized", "never shown")
    }
    probes = dict.fromkeys(probe for probe, _ in status.missing if probe != _RECALL)
    summary = _Summary(
        passed=passed,
        found=found,
        chances=[row.chance for row in rows if row.content in found and row.chance is not None],
        undecided=[card for card in cards if card.passed is None],
        chat_probes=[probe for probe in probes if probe in _CHAT_PROBES],
        uncalibrated=[pair for pair in status.missing if pair[0] not in (_RECALL, *_CHAT_PROBES)],
        commands=[status.command(probe) for probe in probes if probe not in _CHAT_PROBES],
    )
    return _say("summary", summary)


def calibration_warnings(status: CalibrationStatus) -> list[str]:
    """Write a warning for each probe that failed its calibration."""
    return _say("warnings", [_card(card) for card in status.cards if card.get("passed") is False])


def describe_calibration(status: CalibrationStatus) -> list[str]:
    """Describe the result of each calibration card for the methods section."""
    missing = [pair for pair in status.missing if pair[0] != _RECALL]
    return _say("methods", [_card(card) for card in status.cards], missing)


def _card(card: Mapping[str, Any]) -> _Card:
    made = card.get("made") or {}
    versions = [f"{name} {made[name]}" for name in ("merkhet", "torch", "transformers") if made.get(name)]
    return _Card(
        probe=str(card.get("probe", "")),
        kind=str(card.get("kind") or ""),
        passed=card.get("passed"),
        rows=[
            _Row(
                str(row.get("content", "")),
                str(row.get("model", "")),
                str(row.get("wanted") or ""),
                row.get("passed"),
                *(fmt.finite_or_none(row.get(name)) for name in ("value", "low", "high", "chance")),
            )
            for row in card.get("rows") or ()
        ],
        trainings=fmt.finite_or_none(card.get("trainings")),
        seed=card.get("seed"),
        made_with=[*versions, *([f"Python {made['python']}"] if made.get("python") else [])],
        made_on=str(made.get("date") or "")[:10],
        made_in=fmt.finite_or_none(made.get("seconds")),
    )


def _matrix(rows: Sequence[Mapping[str, Any]], percent: bool) -> dict[str, Any]:
    """Arrange the scores of a card as a table of contents by models; a cell may contain several scores."""

    def in_order(name: str, order: Sequence[str]) -> list[str]:
        names = dict.fromkeys(str(row.get(name, "")) for row in rows)
        return sorted(names, key=lambda value: order.index(value) if value in order else len(order))

    models = in_order("model", _MODELS)
    lines = []
    for content in in_order("content", list(_CONTENTS)):
        in_line = [row for row in rows if str(row.get("content", "")) == content]
        cells = [[_cell(row, percent) for row in in_line if str(row.get("model", "")) == model] for model in models]
        lines.append({"name": fmt.printable(content), "explained": _CONTENTS.get(content, ""), "cells": cells})
    return {"models": [fmt.printable(name) for name in models], "lines": lines}


def _cell(row: Mapping[str, Any], percent: bool) -> dict[str, Any]:
    value, low, high, chance = (fmt.finite_or_none(row.get(name)) for name in ("value", "low", "high", "chance"))
    bar = {"value": value, "low": value if low is None else low, "high": value if high is None else high}
    return {
        "text": fmt.score(value, percent=percent),
        "interval": fmt.interval(low, high, percent=percent),
        "bar": {
            **{name: _bar_percent(share) for name, share in bar.items()},
            "chance": None if chance is None else _bar_percent(chance),
        }
        if percent and value is not None
        else None,
        "expected": fmt.printable(row.get("wanted") or ""),
        "chance": "" if chance is None else fmt.score(chance, percent=percent),
        "passed": row.get("passed"),
        "n": row.get("n"),
        "facts": row.get("facts"),
    }


def _bar_percent(value: float | None) -> str:
    return f"{100 * min(1.0, max(0.0, value or 0.0)):.1f}"
