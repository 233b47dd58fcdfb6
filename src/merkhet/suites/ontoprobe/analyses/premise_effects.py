"""Scores of reasoning tasks with premises that are in the text, memorized or missing."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property

from merkhet.analysis.finding_types import (
    FEW,
    FEW_QUESTIONS,
    NEAR_CEILING,
    NO_QUESTIONS,
    Finding,
    Kind,
    Verdict,
)
from merkhet.analysis.resampled_means import (
    Group,
    Key,
    average_draws,
    estimate_from_draws,
    pool_groups,
    resampled_means,
)
from merkhet.analysis.types import Analysis, AnalysisInput, Estimate, Figure, Line, Row, Table, TableRow, make_columns
from merkhet.core.text import counted, join_names, percent
from merkhet.metrics.metrics import MRR, Metric
from merkhet.metrics.ranks import FloatArray
from merkhet.suites.ontoprobe.analyses.task_scores import CHOICE, accuracy_metric, chance_level, first_lines
from merkhet.suites.ontoprobe.options import RULES

PREMISE_STATES = ("NO", "IM", "EX")
SETTINGS = tuple(f"{first}/{second}" for first in PREMISE_STATES for second in PREMISE_STATES)
BOTH, CONTROL, NEITHER = "EX/EX", "OT/EX", "neither"
NEITHER_SHOWN = ("NO/NO", "NO/IM", "IM/NO", "IM/IM")
GAIN = "EX/EX - neither"
REASONING = "reasoning - repetition"
"""The MRR that needs the right P1, less the MRR that any P1 brings."""
REPEATING = "repetition - reasoning"
_KEY = "EX: in the text, IM: memorized, NO: neither."
_EXPLANATION = (
    "Two premises P1 and P2 entail a conclusion about meaningless words. The slot stands for the object of P1. "
    "A premise is explicit (EX: in the text), implicit (IM: not in the text, but memorized by this model) or missing "
    "(NO: neither). P1 counts as memorized if it is in the better half of the rule's premises by this model's "
    "reciprocal rank in the memorizing task, P2 by its rank when the model is asked about the meaningless word alone; "
    "the middle premise of an odd number counts as memorized. In multiple choice, a premise is memorized if the model "
    "answered its question correctly. Scores of one rule have 95% bootstrap intervals over facts. Means over rules and "
    "models are unweighted, over the rules that were asked in every setting; their intervals resample the facts of "
    "each rule for all models and settings at once, which pairs them by fact. In the control (OT/EX), P1 is in "
    "the text but about something else; its score is the rank of the answer of that other premise, "
    "which does not follow. The MRR that a model gains by reading both premises has "
    "two parts: one needs the right P1 (EX/EX less control), the other occurs with any P1 (control less the MRR with "
    "neither in the text). A model applies the rule if the first part is larger, and repeats what it has read if the "
    "second part is larger: that is, if the whole 95% interval of their difference, over the rules with a control, is "
    "on that side."
)


def premises(inputs: AnalysisInput) -> Analysis | None:
    """Show scores by premise setting, rule and model, with means, and scores of the control and of multiple choice.

    Returns:
        The analysis, or None if no question has premises.
    """
    scores = _PremiseScores(inputs, MRR)
    choices = _choice_table(inputs)
    if not scores.groups and choices is None:
        return None
    effects = [finding for model in scores.models for finding in scores.effects(model)]
    figures = [scores.figure(model) for model in scores.models]
    tables = [scores.table(model) for model in scores.models]
    rules = scores.shared_rules(scores.models, scores.asked_settings(scores.models))
    means = scores.overall_means(rules)
    if means:
        caption = "MRR by how the premises are given, mean over "
        caption += "rules and" if rules == scores.rules(scores.models) else f"{_name_rules(rules)} and"
        caption += f" {counted(len(scores.models), 'model')}."
        figures.insert(0, _figure(caption, _bars(means)))
        columns = make_columns("P1", *(f"P2 {second}:share" for second in PREMISE_STATES))
        rows = [(first, *(means.get(f"{first}/{second}") for second in PREMISE_STATES)) for first in PREMISE_STATES]
        tables.insert(0, Table(caption, columns, tuple(rows)))
    return Analysis(
        "premises",
        "Reasoning: premises read, memorized or missing",
        _EXPLANATION,
        (*tables, *([choices] if choices else [])),
        tuple(figures),
        tuple(describe_effects(effects)),
        (*effects, *(finding for model in scores.models for finding in scores.small_settings(model))),
    )


class _PremiseScores:
    """Answers to reasoning tasks by rule, model and premise setting, without baselines."""

    def __init__(self, inputs: AnalysisInput, metric: Metric | None, task_suffix: str = "") -> None:
        """Collect the answers to the tasks whose name is a rule followed by ``task_suffix``.

        If ``metric`` is None, the metric is accuracy, or exact match for generated answers.
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

    @cached_property
    def models(self) -> list[str]:
        """Models with answers, in the order of ``lines``."""
        answered = {model for _, model, _ in self.groups}
        return [model for model in self.lines if model in answered]

    @cached_property
    def draws(self) -> dict[Key, FloatArray]:
        """Mean and resampled means by rule, model and premise setting.

        The setting ``neither`` pools all settings without a premise in the text.
        """
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

    @cached_property
    def cells(self) -> dict[tuple[str, str, str], Estimate]:
        """Score by rule, model and premise setting, with the same interval as in the score table."""
        cells = {}
        for (rule, model, setting), ids in self.groups.items():
            metric = self.metrics[model]
            values = self.inputs.values(self.lines[model], ids, metric)
            seed_parts = (f"{rule}{self.task_suffix}", "premises", setting, metric.name)
            cells[rule, model, setting] = self.inputs.mean(values, ids, *seed_parts)
        return cells

    def rules(self, models: Sequence[str]) -> list[str]:
        """Return the rules that at least one of the models answered questions about."""
        return [rule for rule in RULES if any(key[0] == rule and key[1] in models for key in self.groups)]

    def asked_settings(self, models: Sequence[str]) -> list[str]:
        """Return the settings, other than the control, of which at least one of the models answered questions."""
        return [setting for setting in SETTINGS if any(key[1] in models and key[2] == setting for key in self.groups)]

    def shared_rules(self, models: Sequence[str], settings: Sequence[str]) -> list[str]:
        """Return the rules of which every model answered questions in every setting; only these are averaged."""
        needed = list(itertools.product(models, settings))
        return [rule for rule in RULES if needed and all((rule, *key) in self.groups for key in needed)]

    def rows(
        self, model: str, settings: Sequence[str], rules: Sequence[str], shared: Sequence[str]
    ) -> Iterator[tuple[str, TableRow]]:
        """Yield each premise setting with its mean over the ``shared`` rules and its score for each rule.

        A setting that the model was not asked in has empty cells.
        """
        for setting in settings:
            mean = self._mean_over_rules(model, setting, shared)
            cells = [self.cells.get((rule, model, setting)) for rule in rules]
            yield setting, (None if mean is None else estimate_from_draws(*mean), *cells)

    def _mean_over_rules(self, model: str, setting: str, rules: Sequence[str]) -> tuple[FloatArray, int] | None:
        """Average the scores of a premise setting over rules, unweighted.

        Returns:
            Mean and resampled means with the number of questions, or None unless all ``rules`` have the setting.
        """
        keys = [(rule, model, setting) for rule in rules]
        if not keys or not all(key in self.groups for key in keys):
            return None
        return average_draws(self.draws[key] for key in keys), sum(len(self.groups[key]) for key in keys)

    def table(self, model: str) -> Table:
        """Make a model's table of scores by premise setting and rule, with means over rules."""
        rules = self.rules([model])
        rows: list[TableRow] = []
        shared = self.shared_rules([model], self.asked_settings([model]))
        has_control = any(key[1:] == (model, CONTROL) for key in self.groups)
        for setting, cells in self.rows(model, (*SETTINGS, *([CONTROL] if has_control else [])), rules, shared):
            first, _, second = setting.partition("/")
            rows.append(("another (control)" if setting == CONTROL else first, second, *cells))
        columns = make_columns("P1", "P2", f"{_mean_label(shared, rules)}:share", *(f"{rule}:share" for rule in rules))
        return Table(f"{model}: MRR by how the premises are given.{_note_mean(shared, rules)}", columns, tuple(rows))

    def figure(self, model: str) -> Figure:
        """Make a model's figure with a panel for each rule and a bar for each of the nine premise settings."""
        bars: list[Row] = []
        for rule in RULES:
            cells = {key: self.cells.get((rule, model, key)) for key in SETTINGS}
            if any(cells.values()):
                bars += _bars(cells, panel=rule, model=model)
        return _figure(f"{model}: MRR by rule and premises.", bars)

    def overall_means(self, rules: Sequence[str]) -> dict[str, Estimate | None]:
        """Average the scores of each of the nine premise settings over rules, then over models.

        A setting that was not asked is None. Return an empty mapping without ``rules``.
        """
        means: dict[str, Estimate | None] = {}
        for setting in SETTINGS if rules else ():
            model_means = [self._mean_over_rules(model, setting, rules) for model in self.models]
            known = [mean for mean in model_means if mean is not None]
            n = sum(count for _, count in known)
            means[setting] = estimate_from_draws(average_draws(draws for draws, _ in known), n) if known else None
        return means

    def effects(self, model: str) -> list[Finding]:
        """Return findings on the effect of reading both premises, and on whether the model reasons or repeats.

        Means are over the rules that were asked with both premises and with neither. If some of these rules also have
        control questions, only these count. Return an empty list if there is no such rule.
        """
        draws = self.draws
        rules = [rule for rule in RULES if {(rule, model, BOTH), (rule, model, NEITHER)} <= draws.keys()]
        controlled = [rule for rule in rules if (rule, model, CONTROL) in draws]
        rules = controlled or rules
        if not rules:
            return []
        settings = [BOTH, NEITHER, *([CONTROL] if controlled else [])]
        means = {setting: average_draws(draws[rule, model, setting] for rule in rules) for setting in settings}
        findings = [
            self._finding(model, setting, estimate_from_draws(mean, self._count(rules, model, setting)))
            for setting, mean in means.items()
        ]
        if min(finding.n or 0 for finding in findings) < FEW_QUESTIONS:
            return [replace(finding, reason=FEW) for finding in findings]
        both, neither = means[BOTH], means[NEITHER]
        findings.append(self._finding(model, GAIN, estimate_from_draws(both - neither), judged=True))
        if controlled:
            balance = (both - means[CONTROL]) - (means[CONTROL] - neither)
            sides = ((REASONING, balance), (REPEATING, -balance))
            contrasts = [self._finding(model, side, estimate_from_draws(draw), judged=True) for side, draw in sides]
            findings.append(next((one for one in contrasts if one.verdict is Verdict.AHEAD), contrasts[0]))
        return findings

    def _finding(self, model: str, group: str, cell: Estimate, *, judged: bool = False) -> Finding:
        line = self.lines[model]
        verdict = Verdict.NONE
        if judged:
            verdict = Verdict.AHEAD if (cell.low or 0.0) > 0.0 else Verdict.NO_DIFFERENCE
        return Finding(
            Kind.GROUP,
            verdict,
            model=model,
            metric=self.metrics[model].name,
            probe=line.probe,
            method=line.method,
            group_column="premises",
            group=group,
            value=cell.value,
            low=cell.low,
            high=cell.high,
            n=cell.n,
        )

    def _count(self, rules: Sequence[str], model: str, setting: str) -> int:
        """Count the questions of a premise setting over rules."""
        parts = NEITHER_SHOWN if setting == NEITHER else (setting,)
        return sum(len(self.groups.get((rule, model, part), ())) for rule in rules for part in parts)

    def small_settings(self, model: str) -> list[Finding]:
        """Return findings on the premise settings that have no question, or too few for a verdict.

        Expected are the settings of each rule whose premises were put in the text in the same way for any rule.
        """
        rules = self.rules([model])
        asked = {_shown(setting) for _, name, setting in self.groups if name == model}
        sizes = [
            len(self.groups.get((rule, model, setting), ()))
            for rule in rules
            for setting in (*SETTINGS, CONTROL)
            if _shown(setting) in asked
        ]
        counts = {NO_QUESTIONS: sizes.count(0), FEW: sum(0 < size < FEW_QUESTIONS for size in sizes)}
        return [
            Finding(
                Kind.DESIGN,
                Verdict.NONE,
                model=model,
                group_column="rule+premises",
                count=count,
                total=len(sizes),
                reason=reason,
            )
            for reason, count in counts.items()
            if count
        ]


def describe_effects(findings: Sequence[Finding]) -> list[str]:
    """Describe, from the findings on its premises, whether each model applies rules or repeats what it has read."""
    by_model: dict[str, dict[str, Finding]] = defaultdict(dict)
    for finding in findings:
        if finding.kind is Kind.GROUP:
            by_model[finding.model or ""][finding.group or ""] = finding
    return [_describe_model(by_group) for by_group in by_model.values()]


def _describe_model(findings: Mapping[str, Finding]) -> str:
    both, neither, control = findings[BOTH], findings[NEITHER], findings.get(CONTROL)
    start = (
        f"{both.model} ({both.probe}, {both.method}) ranks the answer at MRR {percent(both.value or 0.0)} with both "
        f"premises in the text and {percent(neither.value or 0.0)} with neither"
    )
    if both.reason == FEW:
        sizes = ", ".join(f"{finding.n:,}" for finding in findings.values())
        return (
            f"{start}: some of these settings have fewer than {FEW_QUESTIONS} questions ({sizes}) and get no verdict."
        )
    if (neither.value or 0.0) >= NEAR_CEILING:
        return f"{start}: the premises have no room to help."
    if findings[GAIN].verdict is not Verdict.AHEAD:
        return f"{start}: reading the premises does not clearly help it."
    if control is None:
        return f"{start}; no control was asked to tell reasoning from repetition."
    echo = control.value or 0.0
    said = f"with a premise about something else it ranks that premise's answer at {{}}{percent(echo)}"
    if REPEATING in findings:
        as_well = " as well" if both.low is not None and echo >= both.low else ""
        return f"{start}; but {said.format('')}{as_well}: it repeats what it has read."
    if findings[REASONING].verdict is Verdict.AHEAD:
        return f"{start}, and {said.format('only ')}: it applies the rule."
    return f"{start}; {said.format('')}: the data do not show whether it applies the rule or repeats what it has read."


def _shown(setting: str) -> tuple[str, ...]:
    """Return which premises a setting puts in the text: EX, OT (another premise), or nothing."""
    return tuple(state if state in ("EX", "OT") else "" for state in setting.split("/"))


def _has_ranks(inputs: AnalysisInput, line: Line, ids: dict[str, str]) -> bool:
    answers = inputs.usable[line]
    return any(bool(answers[name]["gold_ranks"]) for name in ids if name in answers)


def _bars(cells: dict[str, Estimate | None], **columns: str) -> list[Row]:
    return [
        {
            **columns,
            "x": setting.partition("/")[0],
            "bar": setting.partition("/")[2],
            **asdict(Estimate(None) if cell is None else cell),
        }
        for setting, cell in cells.items()
    ]


def _name_rules(rules: Sequence[str]) -> str:
    return f"{counted(len(rules), 'rule')} ({join_names(list(rules))})"


def _mean_label(shared: Sequence[str], rules: Sequence[str]) -> str:
    return "all rules" if not shared or list(shared) == list(rules) else f"mean of {counted(len(shared), 'rule')}"


def _note_mean(shared: Sequence[str], rules: Sequence[str]) -> str:
    """Say which rules a mean is over, if they are not all of them."""
    if list(shared) == list(rules):
        return ""
    if not shared:
        return " No rule was asked in every setting, so there is no mean over rules."
    return f" The mean is over the rules that were asked in every setting: {join_names(list(shared))}."


def _figure(caption: str, bars: list[Row]) -> Figure:
    return Figure("bars", f"{caption} {_KEY}", tuple(bars), "P1", "P2", percent=True, y="MRR")


def _choice_table(inputs: AnalysisInput) -> Table | None:
    """Make the table of multiple-choice accuracy with P2 in the text, by model, state of P1 and rule.

    Return None if there are no such answers.
    """
    scores = _PremiseScores(inputs, None, CHOICE)
    rules = scores.rules(scores.models)
    rows: list[TableRow] = []
    settings = [f"{first}/EX" for first in PREMISE_STATES]
    asked = [setting for setting in settings if setting in scores.asked_settings(scores.models)]
    shared = scores.shared_rules(scores.models, asked)
    for model in scores.models:
        for setting, cells in scores.rows(model, settings, rules, shared):
            rows.append((model, setting.partition("/")[0], *cells))
    if not rows:
        return None
    chance = percent(chance_level(inputs, sorted({name for ids in scores.groups.values() for name in ids})))
    caption = f"Multiple choice with P2 in the text: accuracy by how P1 is given; chance is {chance}."
    caption += _note_mean(shared, rules)
    columns = make_columns("Model", "P1", f"{_mean_label(shared, rules)}:share", *(f"{rule}:share" for rule in rules))
    return Table(caption, columns, tuple(rows))
