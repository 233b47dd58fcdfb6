"""Several runs as one, for a common report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from merkhet.analysis.analysis_options import available_options
from merkhet.analysis.findings import summarize_findings
from merkhet.analysis.types import AnalysisInput
from merkhet.calibration.calibration_cards import find_cards
from merkhet.engine._analysis_step import analysis_input, run_analyses
from merkhet.engine._run_collection import Together, distinct, put_together
from merkhet.engine.memorize_steps import RecallPart
from merkhet.engine.recall_findings import RunPart, recall_findings
from merkhet.engine.run_folder import Run
from merkhet.engine.score_step import question_classes
from merkhet.engine.suite_card import HeadlineScore
from merkhet.metrics.score_table import scoring_rows
from merkhet.reports.report_data import ReportData

EXTRINSIC = "extrinsic"


def combine_runs(runs: Sequence[Run], downstream: Path | None = None) -> ReportData:
    """The data of one report over all runs, which must be of the same suite.

    A model that is in several runs is shown once for each, with the run's name. Models are compared on the questions
    that they share. ``downstream`` is a CSV file of the models' scores on other tasks, which these are set against.
    """
    together = put_together(runs)
    asked, card = together.asked, together.card
    if together.memorized:
        rows: dict[str, Any] = {"scores": together.scores.to_pylist(), "answers": []}
        findings = runs[0].findings
        if len(runs) > 1:
            findings = recall_findings(
                parts_of(together), [HeadlineScore(**entry) for entry in card["headline"]], _seed(runs)
            )
    else:
        rows = {"scores": together.scores.to_pylist(), "answers": scoring_rows(together.answers)}
        findings = summarize_findings(
            **rows,
            questions=asked.by_id(),
            clusters=asked.clusters(),
            headline=together.metrics,
            about={name: text for run in runs for name, text in run.record["card"]["names"].items()},
            baselines=set(together.baselines),
            seed=_seed(runs),
            classes=question_classes(asked, card.get("average_over")),
            unusable_is_wrong=card.get("unusable_is_wrong", False),
        )
    analyses = runs[0].analyses if len(runs) == 1 else _analyses(together, rows)
    if downstream is not None:
        analyses = [*(one for one in analyses if one["name"] != EXTRINSIC), *set_against(together, downstream)]
    return report_data(together, findings, analyses)


def report_data(
    together: Together, findings: Mapping[str, Any], analyses: Sequence[Mapping[str, Any]] = ()
) -> ReportData:
    """What a report over the runs is made from, with what was found."""
    first, asked = together.runs[0], together.asked
    return ReportData(
        title=first.study.title or together.card["title"],
        study=first.study.model_dump(),
        record={**first.record, "models": together.records, **_sampled(together.runs)},
        suite=together.card,
        scores=together.scores,
        questions=asked.questions,
        candidates=asked.candidate_sets(),
        answers=together.answers,
        findings=findings,
        analyses=analyses,
        calibration=_cards(together.runs),
    )


def set_against(together: Together, downstream: Path) -> list[dict[str, Any]]:
    """The analysis that sets scores against those of a CSV file."""
    given = AnalysisInput(
        questions=(),
        questions_by_id=together.asked.by_id(),
        answers=(),
        clusters={},
        headline=together.metrics,
        scores=together.scores.to_pylist(),
        baselines=together.baselines,
        options={"downstream": str(downstream)},
        seed=_seed(together.runs),
    )
    return run_analyses([EXTRINSIC], given)


def parts_of(together: Together) -> list[RunPart]:
    """Collect everything that was recalled in memorizing runs; the tables of questions and answers are a sample."""
    return [
        (run.folder, RecallPart.from_json({**part, "model": together.name(part["model"], place)}))
        for place, run in enumerate(together.runs)
        for part in run.record["recalls"]
    ]


def _seed(runs: Sequence[Run]) -> int:
    return runs[0].study.seed


def _cards(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The calibration cards of all runs, each once; a probe that had none when it asked has the one known now."""
    cards: list[dict[str, Any]] = []
    for run in runs:
        cards += [card for card in run.calibration if card not in cards]
    known = {(card.get("probe"), card.get("kind")) for card in cards}
    for run in runs:
        asked_by = [str(model["probe"]) for model in run.record["models"] if model.get("probe")]
        found = [card for card in find_cards(asked_by) if (card.get("probe"), card["kind"]) not in known]
        cards += found
        known |= {(card.get("probe"), card["kind"]) for card in found}
    return cards


def _sampled(runs: Sequence[Run]) -> dict[str, Any]:
    """How many questions are shown of how many, where runs keep a sample of those that they asked."""
    found = [run.record["sampled"] for run in runs if "sampled" in run.record]
    if len(found) < 2:
        return {}
    return {"sampled": {**found[0], **{key: sum(one[key] for one in found) for key in ("questions", "of")}}}


def _analyses(together: Together, rows: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The suite's analyses over all runs, but for those that read files of a study: these may be elsewhere by now."""
    runs = together.runs
    named = dict.fromkeys(name for run in runs for name in run.record["card"].get("analyses", ()))
    names = [name for name in named if not any(option.path for option in available_options([name]).values())]
    if not names:
        return []
    facts = distinct([run.questions.facts for run in runs], "fact_id")
    whole = replace(together.asked, facts=facts, about=runs[0].questions.about)
    card = runs[0].record["card"]
    given = analysis_input(
        whole,
        **rows,
        headline=together.metrics,
        baselines=together.baselines,
        seed=_seed(runs),
        unusable_is_wrong=card.get("unusable_is_wrong", False),
        average_over=card.get("average_over"),
    )
    models = {line.model for line in given.usable}
    wanted = [pairs for run in runs if isinstance(pairs := run.study.options.get("pairs"), list)]
    pairs = [pair for own in wanted for pair in own if models.issuperset(pair)]
    options = {"lengths": runs[0].study.options.get("lengths")} | ({"pairs": pairs} if pairs else {})
    return run_analyses(names, replace(given, options=options))
