"""Methods section of a run: what was asked of which models, and how it was scored and compared."""

from __future__ import annotations

import inspect
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from merkhet.metrics import METRICS
from merkhet.metrics.bootstrap import clustered_interval, paired_difference
from merkhet.metrics.clusters import MAX_BOOTSTRAP_FACTS
from merkhet.reports import _citations as citations
from merkhet.reports import _method_phrases as phrases
from merkhet.reports import formatting as fmt
from merkhet.reports._calibration_section import CalibrationStatus, describe_calibration
from merkhet.reports._reproduction import public_text
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import overall_rows

_LANGUAGES = {
    **{"ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "he": "Hebrew"},
    **{"hi": "Hindi", "it": "Italian", "ja": "Japanese", "ko": "Korean", "pt": "Portuguese", "ru": "Russian"},
    **{"zh": "Chinese"},
}
_MAX_NAMED = 20
_MAX_TRAININGS = 6
_MAX_NAME = 80


@dataclass(frozen=True)
class AskedCounts:
    """Count what was asked."""

    questions: int
    facts: int
    tasks: Mapping[str, int] = field(default_factory=dict)


def count_asked(data: ReportData) -> AskedCounts:
    """Count questions, their facts, and the questions of each task.

    The counts come from the run's tables or, if these are a sample or hold variants of statements, from its record.
    """
    record = data.record.get("questions") or {}
    if data.suite.get("experiment") or data.record.get("sampled") or not data.questions.num_rows:
        return AskedCounts(int(record.get("count") or 0), int(record.get("facts") or 0), record.get("by_task") or {})
    task_counts = data.questions["task"].value_counts().to_pylist()
    facts = pc.count_distinct(pc.list_flatten(data.questions["facts"])).as_py()
    tasks = {fmt.printable(count["values"]): int(count["counts"]) for count in task_counts}
    return AskedCounts(data.questions.num_rows, int(facts or record.get("facts") or 0), tasks)


def methods_text(
    data: ReportData, choices: Sequence[int], calibration: CalibrationStatus
) -> tuple[list[str], list[str]]:
    """Write the methods section.

    Args:
        choices: number of candidates of each question; 0 if unknown.

    Returns:
        The paragraphs, and the keys of the statistical sources that they cite.
    """
    if not count_asked(data).questions:
        return [], []
    statistics_text, sources = _statistics_paragraph(data)
    ways = _ways(data)
    paragraphs = [
        _questions_paragraph(data, choices, ways),
        _models_paragraph(data, ways),
        statistics_text,
        _calibration_paragraph(data, calibration),
    ]
    return [fmt.printable(text) for text in paragraphs if text], sources


def _questions_paragraph(data: ReportData, choices: Sequence[int], ways: Sequence[Mapping[str, str]]) -> str:
    record, count = data.record, count_asked(data)
    suite = data.suite.get("name") or record.get("suite")
    source = citations.cite_in_text([str(text) for text in data.suite.get("citations") or ()])
    suite_phrase = f"the suite {suite}{f' ({source})' if source else ''} of " if suite else ""
    version = f" {record['merkhet']}" if record.get("merkhet") else ""
    language_phrase = _language_phrase(data)
    facts_phrase = f" about {fmt.count(count.facts)} facts" if count.facts else ""
    tasks = [f"{task} {fmt.count(number)}" for task, number in count.tasks.items()]
    tasks_phrase = (
        f" ({_join_and(tasks)})" if len(tasks) > 1 else f" of the task {next(iter(count.tasks))}" if tasks else ""
    )
    plural = "question" if count.questions == 1 else "questions"
    sentences = [
        f"We asked {fmt.count(count.questions)} {plural}{language_phrase}{tasks_phrase}{facts_phrase} with "
        f"{suite_phrase}merkhet{version}."
    ]
    knowledge = (record.get("questions") or {}).get("knowledge")
    if knowledge:
        packs = [public_text(str(name)) for name in data.study.get("knowledge") or ()]
        facts = f"{fmt.count(knowledge)} facts" if knowledge > count.facts else "these facts"
        packs_phrase = f" ({_join_and(packs)})" if packs and not data.study.get("data") else ""
        sentences.append(f"They were made from {facts}{packs_phrase}{_templates_phrase(data)}.")
    if data.study.get("limit"):
        seed = record.get("seed", data.study.get("seed", 0))
        sentences.append(
            f"Of each task at most {fmt.count(data.study['limit'])} questions were drawn by the seed {seed}."
        )
    if data.suite.get("methods"):
        sentences.append(str(data.suite["methods"]).strip())
    candidate_counts = sorted(number for number in choices if number)
    if candidate_counts and any(way["probe"] in ("rank", "compare") for way in ways):
        median = fmt.quantity(statistics.median(candidate_counts))
        sentences.append(
            f"Each question offered {fmt.count(candidate_counts[0])} candidates."
            if candidate_counts[0] == candidate_counts[-1]
            else f"Questions offered {candidate_counts[0]:,} to {candidate_counts[-1]:,} candidates (median {median})."
        )
    return " ".join(sentences)


def _language_phrase(data: ReportData) -> str:
    codes = (
        [code for code in data.questions["language"].unique().to_pylist() if code] if data.questions.num_rows else []
    )
    names = [_LANGUAGES.get(str(code), f"the language {code}") for code in codes[:5]]
    return f" in {_join_and(names)}" if names else ""


def _templates_phrase(data: ReportData) -> str:
    count = pc.count_distinct(data.questions["template"]).as_py()
    return f" by {fmt.count(count)} sentence templates" if count and count > 1 else ""


def _ways(data: ReportData) -> list[dict[str, str]]:
    """Return every model with its probes and methods, in the order of the answers."""
    kinds = {str(model.get("name")): str(model.get("kind") or "") for model in data.record.get("models") or ()}
    used = data.answers.group_by(["model", "probe", "method"], use_threads=False).aggregate([])
    return [{**row, "kind": kinds.get(row["model"], "")} for row in used.to_pylist()]


def _models_paragraph(data: ReportData, ways: Sequence[Mapping[str, str]]) -> str:
    baselines = data.baselines()
    record_of: dict[str, Mapping[str, Any]] = {}
    for model in data.record.get("models") or ():
        record_of.setdefault(str(model.get("name")), model)
    model_phrases = [_model_phrase(name, model) for name, model in record_of.items() if name not in baselines]
    sentences = []
    if model_phrases:
        sentences.append(
            f"{'The model was' if len(model_phrases) == 1 else 'Models were'} {_join_and(_first_names(model_phrases))}."
        )
        remote = [model for name, model in record_of.items() if name not in baselines and model.get("endpoint")]
        if len(remote) < len(model_phrases):
            sentences.append("The run’s record holds the hash of all weights.")
        sentences += list(dict.fromkeys(phrases.describe_endpoint(model) for model in remote))[:_MAX_TRAININGS]
    sentences += _training_sentences(data)
    for probe in dict.fromkeys(way["probe"] for way in ways):
        methods: dict[tuple[str, str], None] = {}
        for way in ways:
            if way["probe"] == probe and way["model"] not in baselines:
                methods[way["kind"], way["method"]] = None
        if methods or not model_phrases:
            sentences.append(_probe_sentence(probe, list(methods)))
            sentences += phrases.describe_options(_probe_options(data, probe))
    if any(way["probe"] in ("rank", "fill") for way in ways):
        sentences.append("Ties were ranked by their expectation over all ways to break them.")
    for name in (name for name in record_of if name in baselines):
        method = next((way["method"] for way in ways if way["model"] == name), "")
        description = phrases.describe_baseline(method)
        # A baseline has one name per condition; its base is what to describe.
        label = _quote_name(str(record_of[name].get("base") or name))
        sentences.append(f"The baseline {label} {description}." if description else f"{label} is a baseline.")
    return " ".join(dict.fromkeys(sentences))


def _model_phrase(name: str, model: Mapping[str, Any]) -> str:
    parts = [phrases.describe_kind(str(model.get("kind") or "")), _parameters(model.get("parameters"))]
    parts += [str(model.get("dtype") or (model.get("learned") or {}).get("precision") or "")]
    details = ", ".join(part for part in parts if part)
    return f"{_quote_name(name)} ({details})" if details else _quote_name(name)


def _parameters(value: Any) -> str:
    number = fmt.finite_or_none(value)
    if not number:
        return ""
    for size, unit in ((1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:.3g} {unit} parameters"
    return f"{fmt.count(number)} parameters"


def _training_sentences(data: ReportData) -> list[str]:
    """Describe how models were trained before they were asked, each training once."""
    trainings = []
    for model in data.record.get("models") or ():
        record = model.get("learned")
        if isinstance(record, Mapping):
            trainings.append(phrases.describe_training(_quote_name(str(model.get("name"))), record))
    learning = data.study.get("learning") or {}
    soft = [str(model.get("name")) for model in data.record.get("models") or () if ", soft" in str(model.get("name"))]
    if learning.get("learner") == "soft" and soft:
        trainings.append(
            f"{_join_and([_quote_name(name) for name in dict.fromkeys(soft)])} read soft prompts in the place of a "
            "template: input embeddings learned from the training questions, with the model’s own weights as they were"
        )
    trainings = list(dict.fromkeys(text for text in trainings if text))
    repetitions = fmt.finite_or_none((data.study.get("options") or {}).get("trainings"))
    if repetitions and repetitions > 1 and learning.get("learner") == "memorize":
        trainings.insert(
            0,
            f"Every model was trained {fmt.count(repetitions)} times, with another seed each time; scores are "
            "those of the first training where nothing else is said",
        )
    more = len(trainings) - _MAX_TRAININGS
    sentences = [f"{text}." for text in trainings[:_MAX_TRAININGS]]
    return [*sentences, *([f"{more} more were trained in the same way."] if more > 0 else [])]


def _probe_options(data: ReportData, probe: str) -> Mapping[str, Any]:

    for choice in data.study.get("probes") or ():
        if isinstance(choice, Mapping) and choice.get("probe") == probe:
            return dict(choice.get("options") or {})
    return {}


def _probe_sentence(probe: str, methods: Sequence[tuple[str, str]]) -> str:
    """Describe how a probe asks, and how each method scores for each kind of model."""
    start = phrases.PROBE_SENTENCES.get(probe, f"Models were asked by the probe {probe}")
    layers = [method for _, method in methods if "@" in method]
    methods_of_kind: dict[str, list[str]] = {}
    for kind, method in methods:
        if method in layers:
            continue
        description = phrases.describe_method(probe, kind, method)
        methods_of_kind.setdefault(kind, []).append(
            f"{description} (method {method})" if description else f"the method {method}"
        )
    parts = []
    for kind, texts in methods_of_kind.items():
        if probe in ("recall", "answer", "judge"):
            continue
        subject = f"for {phrases.describe_kind(kind)}s " if len(methods_of_kind) > 1 and kind else ""
        score_phrase = "a candidate’s score is " if probe == "rank" else ""
        parts.append(f"{subject}{score_phrase}{_join_and(texts)}")
    if layers:
        parts.append(f"and besides at each of {len(layers)} layers")
    return f"{start}: {'; '.join(parts)}." if parts else f"{start}."


def _statistics_paragraph(data: ReportData) -> tuple[str, list[str]]:
    rows = overall_rows(data.scores)
    if not rows:
        return "", []
    sources = [citations.EFRON, citations.HESTERBERG]
    sentences = [f"We report {_join_and(_metric_phrases(rows))}."]
    if any(fmt.finite_or_none(row.get("chance")) is not None for row in rows):
        sentences.append("Chance is the score of a random order of the candidates, computed, not simulated.")
    if any(fmt.finite_or_none(row.get("adjusted")) is not None for row in rows):
        sentences.append("A score adjusted for chance is (score − chance) / (1 − chance).")
    average_over = data.suite.get("average_over")
    if average_over:
        sentences.append(f"Scores of a task are means over the classes of {average_over} of the mean within each.")
    resamples = _default_count(clustered_interval, "resamples")
    sentences.append(
        "Intervals are 95% bias-corrected and accelerated (BCa) bootstrap intervals "
        f"({citations.cite_statistics(citations.EFRON)}) with {resamples} resamples of facts, so that questions about "
        "one fact stay together, widened by Student’s t for small numbers of facts "
        f"({citations.cite_statistics(citations.HESTERBERG)}); where all values are equal, the exact binomial interval "
        "for the number of facts."
    )
    if any(row.get("probe") == "recall" for row in rows):
        sources.append(citations.CAMERON)
        sentences.append(
            f"Where more than {MAX_BOOTSTRAP_FACTS} facts were asked, or one sentence more than once, they come in "
            "closed form from a variance that is robust to clusters of facts and of sentences "
            f"({citations.cite_statistics(citations.CAMERON)})."
        )
    compared, more = _comparison_sentences(data)
    return " ".join([*sentences, *compared, _unusable_sentence(data)]), [*sources, *more]


def _metric_phrases(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    descriptions = describe_metrics(str(row["metric"]) for row in rows)
    return [f"{name} ({description})" if description else name for name, description in descriptions]


def describe_metrics(metrics: Iterable[str]) -> list[tuple[str, str]]:
    """Return the label and description of each metric once; the description is empty if unknown."""
    descriptions = []
    for metric in dict.fromkeys(metrics):
        kind, at, number = metric.partition("@")
        name = f"{kind}@k" if at and number.isdigit() else metric
        description = METRICS.about(name) if name in METRICS else ""
        if at and description.startswith("the same"):
            description = METRICS.about("r@k")
        description = description.partition(", e.g.")[0].replace("first k ", f"first {number} ")
        if number == "1":
            description = description.replace("is among the first 1 candidates", "is ranked first")
        descriptions.append((fmt.metric_label(metric), description))
    return descriptions


def _comparison_sentences(data: ReportData) -> tuple[list[str], list[str]]:
    pairs = list(data.findings.get("comparisons") or ())
    if not pairs:
        return [], []
    sources, correction = [], ""
    if len(pairs) > 1:
        sources.append(citations.HOLM)
        correction = f"; p-values are corrected for {len(pairs):,} comparisons by Holm’s method "
        correction += f"({citations.cite_statistics(citations.HOLM)})"
    sentences = [
        "Models were compared in pairs on the questions that both could be asked, by two-sided permutation tests that "
        f"exchange two models within facts ({_default_count(paired_difference, 'flips')} permutations){correction}. "
        "Intervals of differences are 95% percentile intervals of resampled facts, widened in the same way."
    ]
    if data.suite.get("experiment"):
        sentences.append("Where intervals come in closed form, so do p-values.")
    if len(pairs) > 1 and any(fmt.finite_or_none(pair.get("q")) is not None for pair in pairs):
        sources.append(citations.BENJAMINI)
        sentences.append(
            f"q-values control the false discovery rate ({citations.cite_statistics(citations.BENJAMINI)})."
        )
    if any(fmt.finite_or_none(pair.get("mcnemar")) is not None for pair in pairs):
        sources.append(citations.MCNEMAR)
        sources.append(citations.OBUCHOWSKI)
        sentences.append(
            "Where answers are right or wrong, McNemar’s test stands beside, uncorrected "
            f"({citations.cite_statistics(citations.MCNEMAR)}; for facts with several questions "
            f"{citations.cite_statistics(citations.OBUCHOWSKI)})."
        )
    if any(fmt.finite_or_none(pair.get("effect")) is not None for pair in pairs):
        sentences.append("Effect sizes are Cohen’s d of the paired differences.")
    if any(fmt.finite_or_none(pair.get("detectable")) is not None for pair in pairs):
        sentences.append(
            "The smallest detectable difference is the one that would be found with a power of 80% at a level of 5%."
        )
    return sentences, sources


def _unusable_sentence(data: ReportData) -> str:
    reasons = data.findings.get("unusable")
    if reasons is None:
        total = data.answers.num_rows - data.answers["unusable"].null_count
    else:
        total = sum(int(reason.get("count") or 0) for reason in reasons)
    if not total:
        return "Every question could be put to every model."
    treatment = "counts as wrong" if data.suite.get("unusable_is_wrong") else "is left out of the scores"
    answers = "one answer" if total == 1 else f"{fmt.count(total)} answers"
    return (
        "A question that could not be put to a model as it is (too long, or with tokens unknown to it) "
        f"{treatment}: {answers}."
    )


def _calibration_paragraph(data: ReportData, calibration: CalibrationStatus) -> str:
    sentences = describe_calibration(calibration)
    seed = data.record.get("seed")
    if seed is not None:
        sentences.append(f"Everything that is drawn at random is drawn from the seed {seed}.")
    devices = {"cpu": "a CPU", "cuda": "a GPU"}
    devices_used = {str(model.get("device")) for model in data.record.get("models") or () if model.get("device")}
    devices_used = {devices.get(name.partition(":")[0], name) for name in devices_used}
    packages = data.record.get("versions")
    if isinstance(packages, Mapping):
        versions = [f"{name} {packages[name]}" for name in ("torch", "transformers") if packages.get(name)]
        versions += [f"Python {data.record['python']}"] if data.record.get("python") else []
        device_phrase = f" on {_join_and(sorted(devices_used))}" if devices_used else ""
        sentences += [f"Models ran{device_phrase} with {_join_and(versions)}."] if versions else []
    return " ".join(sentences)


def _default_count(function: Any, name: str) -> str:
    """Format the default of a parameter; scores use the default, so the text matches them."""
    return fmt.count(inspect.signature(function).parameters[name].default)


def _first_names(names: Sequence[str]) -> list[str]:
    more = len(names) - _MAX_NAMED
    return [*names[:_MAX_NAMED], *([f"{more} more"] if more > 0 else [])]


def _quote_name(name: str) -> str:
    """Truncate a name to fit a sentence, and quote it if it holds a comma."""
    short = name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"
    return f"“{short}”" if "," in short else short


def _join_and(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    if len(names) > 2 and any("," in name for name in names):
        return f"{'; '.join(names[:-1])}; and {names[-1]}"
    return f"{', '.join(names[:-1])} and {names[-1]}"
