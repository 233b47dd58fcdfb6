"""Combination of several runs into the data of one report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from merkhet.analysis.analysis_options import AnalysisOptions, reads_files, select_options
from merkhet.analysis.finding_types import Finding, Kind, Verdict
from merkhet.analysis.findings import summarize_findings
from merkhet.analysis.option_models import validate
from merkhet.analysis.types import AnalysisInput
from merkhet.calibration.calibration_cards import find_cards
from merkhet.engine._analysis_step import is_available_analysis, make_analysis_input, run_analyses
from merkhet.engine._comparability import describe_disjoint_runs
from merkhet.engine._run_collection import RunCollection, collect_runs, concat_distinct
from merkhet.engine.run_folder import Run
from merkhet.engine.score_step import FINDING_GROUPS, analysis_findings, question_classes, question_groups
from merkhet.metrics.answer_table import AnswerTable
from merkhet.reports.report_data import ReportData

EXTRINSIC = "extrinsic"


def combine_runs(runs: Sequence[Run], downstream: Path | None = None) -> ReportData:
    """Combine runs of one suite into the data of one report.

    A model that occurs in several runs is listed once per run, with the run's label. Models are compared on the
    questions that both models were asked.

    Args:
        downstream: CSV file of the models' scores on other tasks, to be correlated with the scores of the runs.
    """
    collection = collect_runs(runs)
    questions, card = collection.questions, collection.card
    scores, answers = collection.scores.to_pylist(), AnswerTable(collection.answers, questions.by_id())
    analyses = runs[0].analyses if len(runs) == 1 else _run_suite_analyses(collection, scores, answers)
    if collection.memorized and len(runs) == 1:
        findings = runs[0].findings
    else:
        findings = summarize_findings(
            scores=scores,
            answers=answers,
            questions=answers.questions,
            clusters=questions.clusters(),
            headline=collection.metrics,
            about={name: text for run in runs for name, text in run.record["card"]["names"].items()},
            baselines=set(collection.baselines),
            seed=_seed(runs),
            classes=question_classes(questions, card.get("average_over")),
            unusable_is_wrong=card.get("unusable_is_wrong", False),
            statements=collection.memorized,
            conditions=collection.conditions,
            trained=collection.trained,
            repeated=collection.repeated_answers,
            groups=question_groups(questions, FINDING_GROUPS, collection.memorized),
            more=[
                *(_control_findings(runs[0]) if len(runs) == 1 else ()),
                *analysis_findings(analyses),
                *(
                    Finding(Kind.REMARK, Verdict.NONE, reason=text)
                    for text in (*describe_disjoint_runs(collection), *_describe_foreign_analyses(runs))
                ),
            ],
        )
    if downstream is not None:
        analyses = [
            *(analysis for analysis in analyses if analysis["name"] != EXTRINSIC),
            *correlate_downstream(collection, downstream),
        ]
    return report_data(collection, findings, analyses)


def _control_findings(run: Run) -> list[Finding]:
    """Return the findings of a run on the controls of its models and on liked positions."""
    findings = [Finding.from_json(row) for row in run.findings.get("findings") or ()]
    return [finding for finding in findings if finding.kind in (Kind.CONTROL, Kind.POSITION)]


def report_data(
    collection: RunCollection, findings: Mapping[str, Any], analyses: Sequence[Mapping[str, Any]] = ()
) -> ReportData:
    """Make the data of a report from the combined runs, their findings and their analyses."""
    first, questions = collection.runs[0], collection.questions
    return ReportData(
        title=first.study.title or collection.card["title"],
        study=first.study.model_dump(),
        record={**first.record, "models": collection.model_records},
        suite=collection.card,
        scores=collection.scores,
        questions=questions.questions,
        candidates=questions.candidate_sets(),
        premises=questions.premises,
        answers=collection.answers,
        findings=findings,
        analyses=analyses,
        calibration=_collect_cards(collection.runs),
        # Several runs may name the same model differently.
        controls=first.control_scores if len(collection.runs) == 1 else (),
        domains=[str(name) for name in first.questions.about.get("domains") or ()],
    )


def correlate_downstream(collection: RunCollection, downstream: Path) -> list[dict[str, Any]]:
    """Correlate the models' scores in the runs with their scores on other tasks in a CSV file."""
    inputs = AnalysisInput(
        questions=(),
        questions_by_id=collection.questions.by_id(),
        answers=(),
        clusters={},
        headline=collection.metrics,
        scores=collection.scores.to_pylist(),
        baselines=collection.baselines,
        options=AnalysisOptions(downstream=downstream),
        seed=_seed(collection.runs),
    )
    return run_analyses([EXTRINSIC], inputs)


def _seed(runs: Sequence[Run]) -> int:
    return runs[0].study.seed


def _collect_cards(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Collect the calibration cards of all runs; use the currently saved card if a run has none for a probe."""
    cards: list[dict[str, Any]] = []
    for run in runs:
        cards += [card for card in run.calibration if card not in cards]
    known = {(card.get("probe"), card.get("kind")) for card in cards}
    for run in runs:
        probes = [str(model["probe"]) for model in run.record["models"] if model.get("probe")]
        new_cards = [card for card in find_cards(probes) if (card.get("probe"), card["kind"]) not in known]
        cards += new_cards
        known |= {(card.get("probe"), card["kind"]) for card in new_cards}
    return cards


def _analysis_names(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(str(name) for run in runs for name in run.record["card"].get("analyses", ())))


def _describe_foreign_analyses(runs: Sequence[Run]) -> list[str]:
    """Name the analyses that reports of several runs leave out, because they are foreign code."""
    names = [name for name in _analysis_names(runs) if not is_available_analysis(name)]
    return [
        f"The analysis {name} is not one of merkhet's and is left out of this report; the report of each run has it."
        for name in (names if len(runs) > 1 else [])
    ]


def _run_suite_analyses(
    collection: RunCollection, scores: Sequence[Mapping[str, Any]], answers: AnswerTable
) -> list[dict[str, Any]]:
    """Run the suite's analyses on the combined tables of all runs.

    Analyses that read files named in a study are left out, because these files may have moved. So are analyses that
    are foreign code, because the runs may come from somebody else.
    """
    runs = collection.runs
    names = [name for name in _analysis_names(runs) if is_available_analysis(name) and not reads_files(name)]
    if not names or collection.memorized:
        return []
    facts = concat_distinct([run.questions.facts for run in runs], "fact_id")
    questions = replace(collection.questions, facts=facts, about=runs[0].questions.about)
    card = runs[0].record["card"]
    inputs = make_analysis_input(
        questions,
        questions_by_id=answers.questions,
        scores=scores,
        answers=answers.rows(),
        headline=collection.metrics,
        baselines=collection.baselines,
        seed=_seed(runs),
        unusable_is_wrong=card.get("unusable_is_wrong", False),
        average_over=card.get("average_over"),
        trained=collection.trained,
        repeated_answers=collection.repeated_answers,
    )
    models = {line.model for line in inputs.usable}
    options = [validate(AnalysisOptions, select_options(run.study.options, names), "options") for run in runs]
    pairs = tuple(pair for of_run in options for pair in of_run.pairs or () if models.issuperset(pair))
    return run_analyses(names, replace(inputs, options=options[0].model_copy(update={"pairs": pairs or None})))
