"""Whether models reason over an ontology: how premises that are read, memorized or missing bear on the conclusion."""

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
    percent,
)
from merkhet.core.ids import derived_seed
from merkhet.metrics.bootstrap import clustered_interval
from merkhet.metrics.metrics import MRR, Metric
from merkhet.metrics.ranks import FloatArray
from merkhet.suites.ontoprobe.analyses.task_scores import CHOICE, accuracy_of, chance_of, first_lines

RULES = ("rdfs2", "rdfs3", "rdfs5", "rdfs7", "rdfs9", "rdfs11")
GIVEN = ("NO", "IM", "EX")
SETTINGS = tuple(f"{first}/{second}" for first in GIVEN for second in GIVEN)
BOTH, CONTROL, NEITHER = "EX/EX", "OT/EX", "neither"
UNREAD = ("NO/NO", "NO/IM", "IM/NO", "IM/IM")
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
    """What sets a reasoner apart from a parrot, as means over rules."""

    both: Estimate
    neither: Estimate
    echo: Estimate | None
    gain: Estimate
    balance: Estimate | None


def premises(given: AnalysisInput) -> Analysis | None:
    """The nine settings by rule and model, their means, the control, and multiple choice; None where nothing is set."""
    found = _Settings(given, MRR, RULES)
    choices = _choice_table(given)
    if not found.groups and choices is None:
        return None
    macro = found.macro()
    figures = [found.figure(model) for model in found.models]
    tables = [found.table(model) for model in found.models]
    if macro:
        figures.insert(0, Figure("bars", _macro_caption(found.models), tuple(macro), "P1", "P2", percent=True, y="MRR"))
        tables.insert(0, _macro_table(macro))
    return Analysis(
        "premises",
        "Reasoning: premises read, memorized or missing",
        _EXPLANATION,
        (*tables, *([choices] if choices else [])),
        tuple(figures),
        tuple(sentence for model in found.models for sentence in found.sentences(model)),
    )


class _Settings:
    """The answers to reasoning tasks by rule, model and setting; baselines are left out."""

    def __init__(self, given: AnalysisInput, metric: Metric | None, rules: tuple[str, ...], ending: str = "") -> None:
        """Of tasks called by a rule and an ending; without a metric it is accuracy, or exact match where written."""
        self.given, self.rules, self.ending = given, rules, ending
        tasks = {f"{rule}{ending}": rule for rule in rules}
        rule_of = {row["question_id"]: tasks[row["task"]] for row in given.questions if row["task"] in tasks}
        self.lines: dict[str, Line] = {
            model: line
            for model, line in first_lines(given, list(rule_of)).items()
            if model not in given.baselines and (metric is None or _ranked(given, line, rule_of))
        }
        self.metrics = {model: metric or accuracy_of(given, line) for model, line in self.lines.items()}
        groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for (model, name), setting in given.premise_settings.items():
            if model in self.lines and name in rule_of and name in given.usable[self.lines[model]]:
                groups[rule_of[name], model, setting].append(name)
        self.groups = {key: sorted(ids) for key, ids in groups.items()}
        self._cells: dict[tuple[str, str, str], Estimate | None] = {}

    @cached_property
    def models(self) -> list[str]:
        """The models that have answered, in the order of the answers."""
        there = {model for _, model, _ in self.groups}
        return [model for model in self.lines if model in there]

    @cached_property
    def draws(self) -> dict[Key, FloatArray]:
        """The mean of every rule, model and setting, and of what has neither premise in the text, with resamples."""
        given = self.given
        parts: dict[Key, Group] = {}
        unread: dict[Key, list[Group]] = defaultdict(list)
        for (rule, model, setting), ids in self.groups.items():
            own = (given.values(self.lines[model], ids, self.metrics[model]), given.cluster_ids(ids))
            parts[rule, model, setting] = own
            if setting in UNREAD:
                unread[rule, model, NEITHER].append(own)
        return resampled_means({**parts, **{key: pool_groups(own) for key, own in unread.items()}}, seed=given.seed)

    def cell(self, rule: str, model: str, setting: str) -> Estimate | None:
        """One rule, model and setting, with the interval of the table of scores."""
        key = (rule, model, setting)
        if key not in self._cells:
            self._cells[key] = self._cell(rule, model, setting, self.groups[key]) if key in self.groups else None
        return self._cells[key]

    def _cell(self, rule: str, model: str, setting: str, ids: list[str]) -> Estimate:
        metric = self.metrics[model]
        seed = derived_seed(self.given.seed, f"{rule}{self.ending}", "premises", setting, metric.name)
        values, clusters = self.given.values(self.lines[model], ids, metric), self.given.cluster_ids(ids)
        return estimate(clustered_interval(values, clusters, seed=seed), len(ids))

    def over_rules(self, model: str, setting: str) -> Estimate | None:
        """The unweighted mean over the rules that have this setting."""
        rules = [rule for rule in self.rules if (rule, model, setting) in self.draws]
        if not rules:
            return None
        n = sum(len(self.groups.get((rule, model, setting), ())) for rule in rules)
        return estimate_from_draws(average_draws(self.draws[rule, model, setting] for rule in rules), n)

    def table(self, model: str) -> Table:
        """Settings by rules, with the mean over rules."""
        rules = [rule for rule in self.rules if any((rule, model, setting) in self.groups for setting in _ORDER)]
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
        """A panel for each rule, its bars the nine settings."""
        rows = [
            _bar(setting, cell, panel=rule, model=model)
            for rule in self.rules
            for setting in SETTINGS
            if (cell := self.cell(rule, model, setting)) is not None
        ]
        caption = f"{model}: MRR by rule and premises. {_KEY}"
        return Figure("bars", caption, tuple(rows), "P1", "P2", percent=True, y="MRR")

    def macro(self) -> list[Row]:
        """Bars of the nine settings: means over rules, then over models."""
        rows = []
        for setting in SETTINGS:
            own = []
            n = 0
            for model in self.models:
                there = [rule for rule in self.rules if (rule, model, setting) in self.groups]
                n += sum(len(self.groups[rule, model, setting]) for rule in there)
                if there:
                    own.append(average_draws(self.draws[rule, model, setting] for rule in there))
            if own:
                rows.append(_bar(setting, estimate_from_draws(average_draws(own), n)))
        return rows

    def sentences(self, model: str) -> list[str]:
        """Whether the model applies rules or repeats what it has read."""
        found = self.verdict(model)
        return [] if found is None else [_sentence(model, found)]

    def verdict(self, model: str) -> _Verdict | None:
        """Means over the rules that were asked with both premises in the text, with neither and, if any, as control."""
        draws = self.draws
        rules = [rule for rule in self.rules if {(rule, model, BOTH), (rule, model, NEITHER)} <= draws.keys()]
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


def _ranked(given: AnalysisInput, line: Line, ids: dict[str, str]) -> bool:
    answers = given.usable[line]
    return any(bool(answers[name]["gold_ranks"]) for name in ids if name in answers)


def _bar(setting: str, cell: Estimate, **more: str) -> Row:
    first, _, second = setting.partition("/")
    return {**more, "x": first, "bar": second, "value": cell.value, "low": cell.low, "high": cell.high, "n": cell.n}


def _macro_caption(models: list[str]) -> str:
    over = "1 model" if len(models) == 1 else f"{len(models)} models"
    return f"MRR by how the premises are given, mean over rules and {over}. {_KEY}"


def _macro_table(rows: list[Row]) -> Table:
    by_setting = {(row["x"], row["bar"]): Estimate(row["value"], row["low"], row["high"], row["n"]) for row in rows}
    columns = (Column("P1"), *(Column(f"P2 {second}", "share") for second in GIVEN))
    content = tuple((first, *(by_setting.get((first, second)) for second in GIVEN)) for first in GIVEN)
    return Table("MRR by how the premises are given, mean over rules and models.", columns, content)


def _sentence(model: str, found: _Verdict) -> str:
    both, neither, gain = found.both, found.neither, found.gain
    assert both.value is not None and neither.value is not None
    start = (
        f"{model} ranks the answer at MRR {percent(both.value)} with both premises in the text and "
        f"{percent(neither.value)} with neither"
    )
    if gain.low is None or gain.low <= 0:
        return f"{start}: reading the premises does not clearly help it."
    if found.echo is None or found.echo.value is None or found.balance is None:
        return f"{start}; whether it reasons or repeats was not asked."
    echo = percent(found.echo.value)
    if found.balance.high is not None and found.balance.high < 0:
        as_well = " as well" if both.low is not None and found.echo.value >= both.low else ""
        return (
            f"{start}; but given a premise about something else it puts that premise's answer at {echo}{as_well}: "
            "it repeats what it has read."
        )
    if found.balance.low is not None and found.balance.low > 0:
        return (
            f"{start}, and given a premise about something else it puts that premise's answer at only {echo}: "
            "it applies the rule."
        )
    return (
        f"{start}; given a premise about something else it puts that premise's answer at {echo}: whether it applies "
        "the rule or repeats what it has read cannot be told."
    )


def _choice_table(given: AnalysisInput) -> Table | None:
    """Accuracy of multiple choice with P2 in the text, by how P1 is given: rules, and their mean."""
    found = _Settings(given, None, RULES, CHOICE)
    if not found.groups:
        return None
    rules = [rule for rule in RULES if any(key[0] == rule for key in found.groups)]
    rows: list[TableRow] = []
    for model in found.models:
        for first in GIVEN:
            setting = f"{first}/EX"
            cells = [found.cell(rule, model, setting) for rule in rules]
            if any(cell is not None for cell in cells):
                rows.append((model, first, found.over_rules(model, setting), *cells))
    if not rows:
        return None
    names = {name for ids in found.groups.values() for name in ids}
    columns = (
        *(Column("Model"), Column("P1"), Column(ALL_RULES, "share")),
        *(Column(rule, "share") for rule in rules),
    )
    chance = percent(chance_of(given, sorted(names)))
    caption = f"Multiple choice with P2 in the text: accuracy by how P1 is given; chance is {chance}."
    return Table(caption, columns, tuple(rows))
