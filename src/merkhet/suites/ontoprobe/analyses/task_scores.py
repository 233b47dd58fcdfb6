"""Scores of the memorizing tasks: types, superclasses, superproperties, domains and ranges."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from merkhet.analysis.comparison import Comparison, correct_comparisons
from merkhet.analysis.finding_types import Finding
from merkhet.analysis.training_comparison import compare_trainings, training_findings
from merkhet.analysis.training_text import describe_difference
from merkhet.analysis.types import (
    Analysis,
    AnalysisInput,
    Column,
    Estimate,
    Line,
    Table,
    TableRow,
    make_columns,
)
from merkhet.core.ids import derived_seed
from merkhet.core.text import metric_label
from merkhet.metrics.answer_table import AnswerTable
from merkhet.metrics.bootstrap import paired_difference
from merkhet.metrics.clusters import Clusters
from merkhet.metrics.metrics import ACCURACY, EXACT, MRR, MRR_ALL, Metric, make_recall
from merkhet.suites.ontoprobe.analyses.baseline_comparison import comparison_finding, describe_comparisons
from merkhet.suites.ontoprobe.options import MEMORIZING

TASKS = MEMORIZING
CHOICE = "-choice"
METRICS = (make_recall("1"), make_recall("5"), MRR_ALL, MRR)
_SOFT = re.compile(r"^(?P<base>.+), soft(?: \((?P<loss>[^()]+)\))?$")
_EXPLANATION = (
    "Ranks of the right classes and properties among all candidates. Best choice: the template, method and, for soft "
    "prompts, training loss with the best result, chosen for each score separately, as in the paper. The choice uses "
    "the test questions, which favours models that were asked in more ways. Fixed choice: the template “… is a "
    "particular …”, or the first where there is none, and the model's first method. A baseline does not read the "
    "prompt: its scores are over all templates. MRR_a is left out where every question has a single right answer, "
    "since it equals MRR there. 95% bootstrap intervals over facts; they do not account for the choice. Soft prompts "
    "are trained: their differences from the baseline have a verdict only over several trainings (learning.trainings)."
)


@dataclass(frozen=True)
class Variant:
    """Combination of model, probe and method (a :class:`Line`) with a template."""

    line: Line
    template: str


TaskVariants = dict[str, dict[Variant, list[str]]]
"""Sorted ids of the answered questions, by task and variant."""


@dataclass(frozen=True)
class _TableColumn:
    """Table column for a baseline, for a model with manual templates, or for a model with soft templates."""

    title: str
    models: tuple[str, ...]
    baseline: bool = False

    @property
    def soft(self) -> bool:
        """Whether the column is about soft prompts, which are trained."""
        return any(soft_loss(model) for model in self.models)


def base_model(model: str) -> str:
    """Return the model that soft prompts were learned for; return a model without soft prompts unchanged."""
    match = _SOFT.match(model)
    return match["base"] if match else model


def soft_loss(model: str) -> str | None:
    """Return the training loss of a model's soft prompts, or None for a model without soft prompts."""
    match = _SOFT.match(model)
    return (match["loss"] or "bce") if match else None


def ranked_variants(inputs: AnalysisInput, tasks: Sequence[str]) -> TaskVariants:
    """Return the variants with ranked answers to each task, and the sorted ids of the answered questions.

    Templates are sorted. Generated answers have no ranks and are left out. A task without ranked answers is missing.
    """
    questions: dict[str, dict[str, list[str]]] = {task: defaultdict(list) for task in tasks}
    for row in inputs.questions:
        if row["task"] in questions:
            questions[row["task"]][row["template"] or row["task"]].append(row["question_id"])
    variants: TaskVariants = {}
    for task, templates in questions.items():
        for template in sorted(templates):
            ids = sorted(templates[template])
            for line, answers in inputs.usable.items():
                answered = [name for name in ids if name in answers]
                if answered and answers[answered[0]]["gold_ranks"]:
                    variants.setdefault(task, {})[Variant(line, template)] = answered
    return variants


def task_metrics(inputs: AnalysisInput, task_variants: dict[Variant, list[str]]) -> list[Metric]:
    """Return the metrics of a task; MRR_a is left out if every question has a single gold answer."""
    several = any(len(inputs.questions_by_id[name].answers) > 1 for ids in task_variants.values() for name in ids)
    return [metric for metric in METRICS if several or metric is not MRR_ALL]


def memorizing(inputs: AnalysisInput) -> Analysis | None:
    """Show the scores of the best variant, the fixed variant and all variants, and of multiple choice.

    Returns:
        The analysis, or None if no memorizing task was answered.
    """
    scores = _MemorizingScores(inputs)
    choices = _choice_table(inputs)
    if not scores.variants and choices is None:
        return None
    tables = scores.tables() if scores.variants else []
    comparisons = scores.comparisons()
    trained = training_findings(map(asdict, scores.trained_comparisons()))
    baseline = next((column.title for column in scores.columns if column.baseline), "")
    sentences = [*describe_comparisons(comparisons, baseline), *(f"{describe_difference(each)}." for each in trained)]
    return Analysis(
        "memorizing",
        "Memorizing: types, hierarchies, domains and ranges",
        _EXPLANATION,
        (*tables, *([choices] if choices else [])),
        sentences=tuple(sentences),
        findings=(*comparisons, *trained),
    )


class _MemorizingScores:
    """Scores and tables of the memorizing tasks of one run."""

    def __init__(self, inputs: AnalysisInput) -> None:
        self.inputs = inputs
        self.variants = ranked_variants(inputs, TASKS)

    @cached_property
    def columns(self) -> list[_TableColumn]:
        """Columns of the tables in the order of the study: each model with manual templates and with soft templates."""
        models = list(dict.fromkeys(variant.line.model for variants in self.variants.values() for variant in variants))
        order = [model for model in dict.fromkeys(line.model for line in self.inputs.usable) if model in models]
        columns = []
        for base in dict.fromkeys(map(base_model, order)):
            soft = [model for model in order if model != base and base_model(model) == base]
            if base in order:
                is_baseline = base in self.inputs.baselines
                columns.append(_TableColumn(f"{base}, manual" if soft else base, (base,), is_baseline))
            if soft:
                columns.append(_TableColumn(f"{base}, soft", tuple(sorted(soft))))
        return columns

    @cached_property
    def means(self) -> dict[tuple[str, Variant, str], float]:
        """Mean score by task, variant and name of the metric."""
        return {
            (task, variant, metric.name): float(self.inputs.values(variant.line, ids, metric).mean())
            for task, variants in self.variants.items()
            for metric in task_metrics(self.inputs, variants)
            for variant, ids in variants.items()
        }

    def tables(self) -> list[Table]:
        """Make the tables of the best variants, the fixed variants and all variants."""
        best: list[TableRow] = []
        winners: list[TableRow] = []
        fixed: list[TableRow] = []
        for task, variants in self.variants.items():
            for metric in task_metrics(self.inputs, variants):
                head = (task, metric_label(metric.name))
                best_variants = [self.best(task, column, metric) for column in self.columns]
                best.append((*head, *(self._estimate(task, variant, metric) for variant in best_variants)))
                fixed_variants = (self.fixed(task, column) for column in self.columns)
                fixed.append((*head, *(self._estimate(task, variant, metric) for variant in fixed_variants)))
                pairs = zip(best_variants, self.columns, strict=True)
                winners.append((*head, *(_variant_label(variant) for variant, column in pairs if not column.baseline)))
        numbers = (*make_columns("Task", "Score"), *(Column(column.title, "share") for column in self.columns))
        models = [Column(column.title) for column in self.columns if not column.baseline]
        tables = [Table("Best choice of template and method, made on the test questions.", numbers, tuple(best))]
        if models:
            caption = "Best template and method."
            tables.append(Table(caption, (*make_columns("Task", "Score"), *models), tuple(winners), aside=True))
        tables.append(Table("Fixed choice of template and method.", numbers, tuple(fixed)))
        return tables + self._variant_tables()

    def best(self, task: str, column: _TableColumn, metric: Metric) -> Variant | None:
        """Return the column's variant with the highest mean; the first variant wins ties.

        Return None if the column has no variant of the task.
        """
        variants = self._column_variants(task, column)
        if len(variants) < 2:
            return next(iter(variants), None)
        return max(variants, key=lambda variant: self.means[task, variant, metric.name])

    def fixed(self, task: str, column: _TableColumn) -> Variant | None:
        """Return the variant with template 3 and the first method of the column's first model.

        Without template 3, use the first template. Return None if the column has no variant of the task.
        """
        variants = self._column_variants(task, column)
        if len(variants) < 2:
            return next(iter(variants), None)
        models = [variant.line.model for variant in variants]
        model = next(model for model in column.models if model in models)
        lines = {variant.line for variant in variants if variant.line.model == model}
        first_line = next(line for line in self.inputs.usable if line in lines)
        templates = [variant for variant in variants if variant.line == first_line]
        return next((variant for variant in templates if variant.template == f"{task}/3"), templates[0])

    def _column_variants(self, task: str, column: _TableColumn) -> list[Variant]:
        """Return the column's variants of a task; a baseline has one variant, whose template "" means all templates."""
        variants = [variant for variant in self.variants.get(task, {}) if variant.line.model in column.models]
        return [Variant(variants[0].line, "")] if variants and column.baseline else variants

    def ids(self, task: str, variant: Variant) -> list[str]:
        """Return the ids of the questions that were answered in a variant."""
        variants = self.variants[task]
        if variant.template:
            return variants[variant]
        return sorted(name for other, ids in variants.items() if other.line == variant.line for name in ids)

    def _estimate(self, task: str, variant: Variant | None, metric: Metric) -> Estimate | None:
        if variant is None:
            return None
        ids = self.ids(task, variant)
        # The same seeds as in the score table give the same intervals.
        group = ("template", variant.template) if variant.template else ("", "")
        return self.inputs.mean(self.inputs.values(variant.line, ids, metric), ids, task, *group, metric.name)

    def _variant_tables(self) -> list[Table]:
        """Make a table of all templates, losses and methods for each task and model."""
        tables = []
        bases = dict.fromkeys(base_model(model) for column in self.columns for model in column.models)
        for task, variants in self.variants.items():
            metrics = task_metrics(self.inputs, variants)
            scores = (f"{metric_label(metric.name)}:share" for metric in metrics)
            columns = make_columns("Template", "Method", *scores, "n:count")
            for base in bases:
                rows: list[TableRow] = [
                    (
                        _template_label(variant),
                        variant.line.method,
                        *(self.means[task, variant, metric.name] for metric in metrics),
                        len(ids),
                    )
                    for variant, ids in variants.items()
                    if base_model(variant.line.model) == base
                ]
                if rows and base not in self.inputs.baselines:
                    caption = f"{task}, {base}: all templates and methods."
                    tables.append(Table(caption, columns, tuple(rows), aside=True))
        return tables

    def comparisons(self) -> list[Finding]:
        """Compare the MRR of each model's fixed variant with the first baseline, paired by fact.

        P-values are corrected over all tasks and models.
        """
        baseline = next((column for column in self.columns if column.baseline), None)
        if baseline is None:
            return []
        pairs = [
            pair
            for column in self.columns
            for task in self.variants
            if not column.baseline and not column.soft and (pair := self._compare_with_baseline(task, column, baseline))
        ]
        corrected = correct_comparisons([comparison for _, comparison in pairs])
        return [
            comparison_finding(variant.line, variant.template, comparison)
            for (variant, _), comparison in zip(pairs, corrected, strict=True)
        ]

    def trained_comparisons(self) -> list[Comparison]:
        """Compare the fixed variant of each model with soft prompts with the first baseline, over the trainings."""
        baseline = next((column for column in self.columns if column.baseline), None)
        comparisons: list[Comparison] = []
        if baseline is None:
            return comparisons
        for column in self.columns:
            for task in self.variants if column.soft else ():
                variant, other = self.fixed(task, column), self.fixed(task, baseline)
                if variant is None or other is None:
                    continue
                baseline_mrr = self._mrr_by_fact(task, other)
                by_training = [self._mrr_by_fact(task, variant, table) for table in self._tables(task, variant)]
                shared = np.array(sorted(set(baseline_mrr).intersection(*by_training)), dtype=np.int64)
                if len(shared) < 2:
                    continue
                reference = np.array([baseline_mrr[fact] for fact in shared.tolist()])
                sides = [(np.array([mrr[fact] for fact in shared.tolist()]), reference) for mrr in by_training]
                seed = derived_seed(self.inputs.seed, "memorizing", task)
                compared = compare_trainings(sides, Clusters(shared), seed)
                if compared is not None:
                    names = (task, MRR.name, column.title, baseline.title)
                    comparisons.append(Comparison(*names, **compared, n=len(shared)))
        return correct_comparisons(comparisons)

    def _tables(self, task: str, variant: Variant) -> list[AnswerTable]:
        """Return the answers after each training of the variant's model."""
        key = (variant.line.model, task, variant.line.probe, variant.line.method)
        repeated = (AnswerTable(table, self.inputs.questions_by_id) for table in self.inputs.repeated_answers)
        return [self.inputs.answer_table, *(table for table in repeated if key in table.cell_rows)]

    def _compare_with_baseline(
        self, task: str, column: _TableColumn, baseline: _TableColumn
    ) -> tuple[Variant, Comparison] | None:
        variant, baseline_variant = self.fixed(task, column), self.fixed(task, baseline)
        if variant is None or baseline_variant is None:
            return None
        model_mrr, baseline_mrr = self._mrr_by_fact(task, variant), self._mrr_by_fact(task, baseline_variant)
        shared = sorted(model_mrr.keys() & baseline_mrr.keys())
        if len(shared) < 2:
            return None
        first, second = (np.array([means[fact] for fact in shared]) for means in (model_mrr, baseline_mrr))
        seed = derived_seed(self.inputs.seed, "memorizing", task)
        paired = paired_difference(first, second, np.array(shared, dtype=np.int64), seed=seed)
        model, other, n = variant.line.model, baseline_variant.line.model, len(shared)
        return variant, Comparison(task, MRR.name, model, other, **vars(paired), n=n, facts=n)

    def _mrr_by_fact(self, task: str, variant: Variant, table: AnswerTable | None = None) -> dict[int, float]:
        """Compute the mean reciprocal rank of each fact, from the answers in ``table`` or after the first training."""
        answers = table or self.inputs.answer_table
        cell = answers.cell(variant.line.model, task, variant.line.probe, variant.line.method)
        answered = [answers.ids[code] for code in cell.question_codes(wrong=False).tolist()]
        value_by_id = dict(zip(answered, cell.values(MRR).tolist(), strict=True))
        ids = [name for name in self.ids(task, variant) if name in value_by_id]
        facts, index = np.unique(self.inputs.cluster_ids(ids), return_inverse=True)
        means = np.bincount(index, [value_by_id[name] for name in ids]) / np.bincount(index)
        return dict(zip(facts.tolist(), means.tolist(), strict=True))


def first_lines(inputs: AnalysisInput, ids: Sequence[str]) -> dict[str, Line]:
    """Return the first :class:`Line` (model, probe and method) of each model that answered any of the questions."""
    lines: dict[str, Line] = {}
    for line, answers in inputs.usable.items():
        if line.model not in lines and any(name in answers for name in ids):
            lines[line.model] = line
    return lines


def accuracy_metric(inputs: AnalysisInput, line: Line) -> Metric:
    """Return accuracy if all answers have ranks of candidates, or exact match for generated answers."""
    answers = inputs.usable[line]
    return ACCURACY if all(answer["gold_ranks"] for answer in answers.values()) else EXACT


def chance_level(inputs: AnalysisInput, ids: Sequence[str]) -> float:
    """Compute the expected accuracy of guessing among the candidates; 0 if no question has candidates."""
    questions = [inputs.questions_by_id[name] for name in ids]
    shares = [
        len(set(question.answers) & set(question.candidates)) / len(question.candidates)
        for question in questions
        if question.candidates
    ]
    return float(np.mean(shares)) if shares else 0.0


def _choice_table(inputs: AnalysisInput) -> Table | None:
    """Make the table of multiple-choice accuracy by task and model, with each model's first method.

    Return None if there are no answers to multiple-choice questions.
    """
    by_task: dict[str, list[str]] = {task: [] for task in TASKS}
    for row in inputs.questions:
        task, choice, _ = row["task"].partition(CHOICE)
        if choice and task in by_task:
            by_task[task].append(row["question_id"])
    lines = first_lines(inputs, [name for ids in by_task.values() for name in ids])
    rows: list[TableRow] = []
    for task, members in by_task.items():
        cells: list[Estimate | None] = []
        for line in lines.values():
            answered = sorted(name for name in members if name in inputs.usable[line])
            metric = accuracy_metric(inputs, line)
            values, seed_parts = inputs.values(line, answered, metric), (f"{task}{CHOICE}", "", "", metric.name)
            cells.append(inputs.mean(values, answered, *seed_parts) if answered else None)
        if any(cell is not None for cell in cells):
            rows.append((task, chance_level(inputs, members), *cells))
    if not rows:
        return None
    columns = (*make_columns("Task", "chance:share"), *(Column(model, "share") for model in lines))
    return Table("Multiple choice: accuracy, by each model's first method.", columns, tuple(rows))


def _template_label(variant: Variant) -> str:
    loss = soft_loss(variant.line.model)
    name = variant.template.rpartition("/")[2]
    return name if loss is None else f"{name} ({loss})"


def _variant_label(variant: Variant | None) -> str | None:
    return f"{_template_label(variant)}, {variant.line.method}" if variant else None
