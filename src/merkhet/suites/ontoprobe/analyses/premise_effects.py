"""Effects of premises that are read, memorized or missing on the scores of reasoning tasks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from merkhet.analysis.resampled_means import (
    Group,
    Key,
    average_draws,
    estimate_from_draws,
    pool_groups,
    resampled_means,
)
from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Column,
    Estimate,
    Figure,
    Line,
    Row,
    Table,
    TableRow,
    estimate,
)
from merkhet.core.ids import derived_seed
from merkhet.core.text import percent
from merkhet.metrics.bootstrap import clustered_interval
from merkhet.metrics.metrics import MRR, Metric
from merkhet.metrics.ranks import FloatArray
from merkhet.suites.ontoprobe.analyses.task_scores import CHOICE, accuracy_metric, chance_level, first_lines
from merkhet.suites.ontoprobe.options import RULES

PREMISE_STATES = ("NO", "IM", "EX")
SETTINGS = tuple(f"{first}/{second}" for first in PREMISE_STATES for second in PREMISE_STATES)
BOTH, CONTROL, NEITHER = "EX/EX", "OT/EX", "neither"
NEITHER_SHOWN = ("NO/NO", "NO/IM", "IM/NO", "IM/IM")
ALL_RULES = "all rules"
_EXPLANATION = (
    "Two premises P1 and P2 entail a conclusion about words that mean nothing, and the slot stands for what P1 names. "
    "A premise is explicit (EX: in the text), implicit (IM: not in the text, but memorized by this model) or not given "
    "(NO: neither). P1 counts as memorized if it is in the better half of the rule's premises by this model's own "
    "reciprocal rank in the memorizing task, P2 by its rank when the model is asked about the meaningless word alone; "
    "the middle one of an odd number counts as memorized. In multiple choice a premise is memorized if the model "
    "answered it rightly. Numbers of one rule have 95% bootstrap intervals over facts; means over rules and models are "
    "unweighted, their intervals resample the facts of each rule for all models and settings at once, which pairs them "
    "by fact. Control (OT/EX): P1 is in the text but about something else, and what is measured is how high the answer "
    "of that other premise stands, which does not follow. Of the MRR that a model gains by reading both premises, one "
    "part needs the right P1 (EX/EX less control), the other is there with any P1 (control less the MRR with neither "
    "in the text). A model applies the rule if the first part is the larger one, and repeats what it has read if the "
    "second one is: if the whole 95% interval of their difference, over the rules that have a control, says so."
)


@dataclass(frozen=True)
class _Verdict:
    """Scores that tell reasoning from repetition, as means over rules."""

    both: Estimate
    """MRR with both premises in the text."""
    neither: Estimate
    """MRR with neither premise in the text."""
    echo: Estimate | None
    """MRR of the control's answer, which does not follow."""
    gain: Estimate
    """``both`` less ``neither``."""
    balance: Estimate | None
    """Gain that needs the right first premise, less the gain with any first premise."""


def premises(inputs: AnalysisInput) -> Analysis | None:
    """Show the scores of the nine premise settings by rule and model, their means, the control and multiple choice.

    Returns:
        The analysis, or None if no question has premises.
    """
    scores = _PremiseScores(inputs, MRR)
    choices = _choice_table(inputs)
    if not scores.groups and choices is None:
        return None
    macro_bars = scores.macro_bars()
    figures = [scores.figure(model) for model in scores.models]
    tables = [scores.table(model) for model in scores.models]
    if macro_bars:
        figures.insert(
            0, Figure("bars", _macro_caption(scores.models), tuple(macro_bars), "P1", "P2", percent=True, y="MRR")
        )
        tables.insert(0, _macro_table(macro_bars))
    return Analysis(
        "premises",
        "Reasoning: premises read, memorized or missing",
        _EXPLANATION,
        (*tables, *([choices] if choices else [])),
        tuple(figures),
        tuple(sentence for model in scores.models for sentence in scores.sentences(model)),
    )


class _PremiseScores:
    """Answers to reasoning tasks by rule, model and premise setting, without baselines."""

    def __init__(self, inputs: AnalysisInput, metric: Metric | None, task_suffix: str = "") -> None:
        """Collect the answers to the tasks named by a rule and ``task_suffix``.

        Without a metric, the metric is accuracy, or exact match for written answers.
        """
        self.inputs, self.task_suffix = inputs, task_suffix
        tasks = {f"{rule}{task_suffix}": rule for rule in RULES}
        rule_of = {row["question_id"]: tasks[row["task"]] for row in inputs.questions if row["task"] in tasks}
        self.lines: dict[str, Line] = {
            model: line
            for model, line in first_lines(inputs, list(rule_of)).items()
            if model not in inputs.baselines and (metric is None or _has_ranks(inputs, line, rule_of))
        }
        self.metrics = {model: metric or accuracy_metric(inputs, line) for model, line in self.lines.items()}
        groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for (model, name), setting in inputs.premise_settings.items():
            if model in self.lines and name in rule_of and name in inputs.usable[self.lines[model]]:
                groups[rule_of[name], model, setting].append(name)
        self.groups = {key: sorted(ids) for key, ids in groups.items()}
        self._cells: dict[tuple[str, str, str], Estimate | None] = {}

    @cached_property
    def models(self) -> list[str]:
        """Models with answers, in the order of the answers."""
        answered = {model for _, model, _ in self.groups}
        return [model for model in self.lines if model in answered]

    @cached_property
    def draws(self) -> dict[Key, FloatArray]:
        """Mean and resampled means of every rule, model and setting, and of all settings with neither premise shown."""
        inputs = self.inputs
        groups: dict[Key, Group] = {}
        without_premises: dict[Key, list[Group]] = defaultdict(list)
        for (rule, model, setting), ids in self.groups.items():
            members = (inputs.values(self.lines[model], ids, self.metrics[model]), inputs.cluster_ids(ids))
            groups[rule, model, setting] = members
            if setting in NEITHER_SHOWN:
                without_premises[rule, model, NEITHER].append(members)
        return resampled_means(
            {**groups, **{key: pool_groups(members) for key, members in without_premises.items()}}, seed=inputs.seed
        )

    def cell(self, rule: str, model: str, setting: str) -> Estimate | None:
        """Estimate the score of a rule, model and setting, with the interval of the score table."""
        key = (rule, model, setting)
        if key not in self._cells:
            self._cells[key] = self._cell(rule, model, setting, self.groups[key]) if key in self.groups else None
        return self._cells[key]

    def _cell(self, rule: str, model: str, setting: str, ids: list[str]) -> Estimate:
        metric = self.metrics[model]
        seed = derived_seed(self.inputs.seed, f"{rule}{self.task_suffix}", "premises", setting, metric.name)
        values, clusters = self.inputs.values(self.lines[model], ids, metric), self.inputs.cluster_ids(ids)
        return estimate(clustered_interval(values, clusters, seed=seed), len(ids))

    def over_rules(self, model: str, setting: str) -> Estimate | None:
        """Estimate the unweighted mean over the rules that have the setting."""
        rules = [rule for rule in RULES if (rule, model, setting) in self.draws]
        if not rules:
            return None
        n = sum(len(self.groups.get((rule, model, setting), ())) for rule in rules)
        return estimate_from_draws(average_draws(self.draws[rule, model, setting] for rule in rules), n)

    def table(self, model: str) -> Table:
        """Make the table of settings by rules, with the mean over rules."""
        rules = [rule for rule in RULES if any((rule, model, setting) in self.groups for setting in _ORDER)]
        rows: list[TableRow] = []
        for setting in _ORDER:
            cells = [self.cell(rule, model, setting) for rule in rules]
            if any(cell is not None for cell in cells):
                first, _, second = setting.partition("/")
                rows.append((_FIRST[first], second, self.over_rules(model, setting), *cells))
        columns = (
            *(Column("P1"), Column("P2"), Column(ALL_RULES, "share")),
            *(Column(rule, "share") for rule in rules),
        )
        return Table(f"{model}: MRR by how the premises are given.", columns, tuple(rows))

    def figure(self, model: str) -> Figure:
        """Make a figure with a panel for each rule and a bar for each of the nine settings."""
        rows = [
            _bar(setting, cell, panel=rule, model=model)
            for rule in RULES
            for setting in SETTINGS
            if (cell := self.cell(rule, model, setting)) is not None
        ]
        caption = f"{model}: MRR by rule and premises. {_KEY}"
        return Figure("bars", caption, tuple(rows), "P1", "P2", percent=True, y="MRR")

    def macro_bars(self) -> list[Row]:
        """Make the bars of the nine settings: means over rules, then over models."""
        rows: list[Row] = []
        for setting in SETTINGS:
            model_draws: list[FloatArray] = []
            n = 0
            for model in self.models:
                rules = [rule for rule in RULES if (rule, model, setting) in self.groups]
                n += sum(len(self.groups[rule, model, setting]) for rule in rules)
                if rules:
                    model_draws.append(average_draws(self.draws[rule, model, setting] for rule in rules))
            if model_draws:
                rows.append(_bar(setting, estimate_from_draws(average_draws(model_draws), n)))
        return rows

    def sentences(self, model: str) -> list[str]:
        """Say whether the model applies rules or repeats what it has read."""
        verdict = self.verdict(model)
        return [] if verdict is None else [_sentence(model, verdict)]

    def verdict(self, model: str) -> _Verdict | None:
        """Average over the rules that were asked with both premises, with neither and, if any was, as a control."""
        draws = self.draws
        rules = [rule for rule in RULES if {(rule, model, BOTH), (rule, model, NEITHER)} <= draws.keys()]
        controlled = [rule for rule in rules if (rule, model, CONTROL) in draws]
        rules = controlled or rules
        if not rules:
            return None
        both, neither = (average_draws(draws[rule, model, setting] for rule in rules) for setting in (BOTH, NEITHER))
        if not controlled:
            return _Verdict(
                estimate_from_draws(both), estimate_from_draws(neither), None, estimate_from_draws(both - neither), None
            )
        echo = average_draws(draws[rule, model, CONTROL] for rule in rules)
        balance = (both - echo) - (echo - neither)
        return _Verdict(*map(estimate_from_draws, (both, neither, echo, both - neither, balance)))


_ORDER = (*SETTINGS, CONTROL)
_KEY = "EX: in the text, IM: memorized, NO: neither."
_FIRST = {"NO": "NO", "IM": "IM", "EX": "EX", "OT": "another (control)"}


def _has_ranks(inputs: AnalysisInput, line: Line, ids: dict[str, str]) -> bool:
    answers = inputs.usable[line]
    return any(bool(answers[name]["gold_ranks"]) for name in ids if name in answers)


def _bar(setting: str, cell: Estimate, **more: str) -> Row:
    first, _, second = setting.partition("/")
    return {**more, "x": first, "bar": second, "value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n}


def _macro_caption(models: list[str]) -> str:
    count = "1 model" if len(models) == 1 else f"{len(models)} models"
    return f"MRR by how the premises are given, mean over rules and {count}. {_KEY}"


def _macro_table(rows: list[Row]) -> Table:
    by_setting = {(row["x"], row["bar"]): Estimate(row["value"], row["low"], row["high"], row["n"]) for row in rows}
    columns = (Column("P1"), *(Column(f"P2 {second}", "share") for second in PREMISE_STATES))
    content = tuple(
        (first, *(by_setting.get((first, second)) for second in PREMISE_STATES)) for first in PREMISE_STATES
    )
    return Table("MRR by how the premises are given, mean over rules and models.", columns, content)


def _sentence(model: str, verdict: _Verdict) -> str:
    both, neither, gain = verdict.both, verdict.neither, verdict.gain
    assert both.value is not None and neither.value is not None
    start = (
        f"{model} ranks the answer at MRR {percent(both.value)} with both premises in the text and "
        f"{percent(neither.value)} with neither"
    )
    if gain.low is None or gain.low <= 0:
        return f"{start}: reading the premises does not clearly help it."
    if verdict.echo is None or verdict.echo.value is None or verdict.balance is None:
        return f"{start}; whether it reasons or repeats was not asked."
    echo = percent(verdict.echo.value)
    if verdict.balance.high is not None and verdict.balance.high < 0:
        as_well = " as well" if both.low is not None and verdict.echo.value >= both.low else ""
        return (
            f"{start}; but given a premise about something else it puts that premise's answer at {echo}{as_well}: "
            "it repeats what it has read."
        )
    if verdict.balance.low is not None and verdict.balance.low > 0:
        return (
            f"{start}, and given a premise about something else it puts that premise's answer at only {echo}: "
            "it applies the rule."
        )
    return (
        f"{start}; given a premise about something else it puts that premise's answer at {echo}: whether it applies "
        "the rule or repeats what it has read cannot be told."
    )


def _choice_table(inputs: AnalysisInput) -> Table | None:
    """Make the table of multiple-choice accuracy with P2 in the text, by state of P1: rules and their mean."""
    scores = _PremiseScores(inputs, None, CHOICE)
    if not scores.groups:
        return None
    rules = [rule for rule in RULES if any(key[0] == rule for key in scores.groups)]
    rows: list[TableRow] = []
    for model in scores.models:
        for first in PREMISE_STATES:
            setting = f"{first}/EX"
            cells = [scores.cell(rule, model, setting) for rule in rules]
            if any(cell is not None for cell in cells):
                rows.append((model, first, scores.over_rules(model, setting), *cells))
    if not rows:
        return None
    names = {name for ids in scores.groups.values() for name in ids}
    columns = (
        *(Column("Model"), Column("P1"), Column(ALL_RULES, "share")),
        *(Column(rule, "share") for rule in rules),
    )
    chance = percent(chance_level(inputs, sorted(names)))
    caption = f"Multiple choice with P2 in the text: accuracy by how P1 is given; chance is {chance}."
    return Table(caption, columns, tuple(rows))
