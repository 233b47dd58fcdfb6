"""The methods section of a run, ready to be pasted: what was asked of which models, how it was scored and compared."""

from __future__ import annotations

import inspect
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from merkhet.metrics import METRICS
from merkhet.metrics.bootstrap import clustered_interval, paired_difference
from merkhet.metrics.recall_scores import MAX_BOOTSTRAP_FACTS
from merkhet.reports import _citations as cited
from merkhet.reports import _method_phrases as words
from merkhet.reports import formatting as show
from merkhet.reports._calibration_section import Trust, calibrated_in_words
from merkhet.reports._reproduction import public_text
from merkhet.reports.report_data import ReportData
from merkhet.reports.scoreboard import overall_rows

_LANGUAGES = {
    **{"ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "he": "Hebrew"},
    **{"hi": "Hindi", "it": "Italian", "ja": "Japanese", "ko": "Korean", "pt": "Portuguese", "ru": "Russian"},
    **{"zh": "Chinese"},
}
_MOST_NAMED = 20
_MOST_LEARNED = 6
_LONGEST_NAME = 80


@dataclass(frozen=True)
class Asked:
    """How much was asked: by the tables of the run, or by its record where these are a sample."""

    questions: int
    facts: int
    tasks: Mapping[str, int] = field(default_factory=dict)


def asked(data: ReportData) -> Asked:
    """The numbers of questions, of facts that they are about, and of questions of each task."""
    record = data.record.get("questions") or {}
    if data.record.get("sampled") or not data.questions.num_rows:
        return Asked(int(record.get("count") or 0), int(record.get("facts") or 0), record.get("by_task") or {})
    counted = data.questions["task"].value_counts().to_pylist()
    facts = pc.count_distinct(pc.list_flatten(data.questions["facts"])).as_py()
    tasks = {show.printable(one["values"]): int(one["counts"]) for one in counted}
    return Asked(data.questions.num_rows, int(facts or record.get("facts") or 0), tasks)


def methods_text(data: ReportData, choices: Sequence[int], found: Trust) -> tuple[list[str], list[str]]:
    """The paragraphs of a methods section, and the sources of statistics that they name.

    ``choices`` are the numbers of candidates of the questions, 0 where that is not known.
    """
    if not asked(data).questions:
        return [], []
    statistical, sources = _statistics(data)
    ways = _ways(data)
    paragraphs = [_questions(data, choices, ways), _models(data, ways), statistical, _trusted(data, found)]
    return [show.printable(text) for text in paragraphs if text], sources


def _questions(data: ReportData, choices: Sequence[int], ways: Sequence[Mapping[str, str]]) -> str:
    record, count = data.record, asked(data)
    suite = data.suite.get("name") or record.get("suite")
    source = cited.in_text([str(text) for text in data.suite.get("citations") or ()])
    by = f"the suite {suite}{f' ({source})' if source else ''} of " if suite else ""
    version = f" {record['merkhet']}" if record.get("merkhet") else ""
    language = _language(data)
    about = f" about {show.count(count.facts)} facts" if count.facts else ""
    tasks = [f"{task} {show.count(number)}" for task, number in count.tasks.items()]
    of = f" ({_listed(tasks)})" if len(tasks) > 1 else f" of the task {next(iter(count.tasks))}" if tasks else ""
    plural = "question" if count.questions == 1 else "questions"
    said = [f"We asked {show.count(count.questions)} {plural}{language}{of}{about} with {by}merkhet{version}."]
    knowledge = (record.get("questions") or {}).get("knowledge")
    if knowledge:
        packs = [public_text(str(name)) for name in data.study.get("knowledge") or ()]
        whole = f"{show.count(knowledge)} facts" if knowledge > count.facts else "these facts"
        where = f" ({_listed(packs)})" if packs and not data.study.get("data") else ""
        said.append(f"They were made from {whole}{where}{_templates(data)}.")
    if data.study.get("limit"):
        seed = record.get("seed", data.study.get("seed", 0))
        said.append(f"Of each task at most {show.count(data.study['limit'])} questions were drawn by the seed {seed}.")
    if data.suite.get("methods"):
        said.append(str(data.suite["methods"]).strip())
    offered = sorted(number for number in choices if number)
    if offered and any(way["probe"] in ("rank", "compare") for way in ways):
        middle = show.quantity(statistics.median(offered))
        said.append(
            f"Each question offered {show.count(offered[0])} candidates."
            if offered[0] == offered[-1]
            else f"Questions offered {offered[0]:,} to {offered[-1]:,} candidates (median {middle})."
        )
    return " ".join(said)


def _language(data: ReportData) -> str:
    codes = (
        [code for code in data.questions["language"].unique().to_pylist() if code] if data.questions.num_rows else []
    )
    names = [_LANGUAGES.get(str(code), f"the language {code}") for code in codes[:5]]
    return f" in {_listed(names)}" if names else ""


def _templates(data: ReportData) -> str:
    count = pc.count_distinct(data.questions["template"]).as_py()
    return f" by {show.count(count)} sentence templates" if count and count > 1 else ""


def _ways(data: ReportData) -> list[dict[str, str]]:
    """Every model with the probes and methods by which it was asked, in the order of the answers."""
    kinds = {str(model.get("name")): str(model.get("kind") or "") for model in data.record.get("models") or ()}
    used = data.answers.group_by(["model", "probe", "method"], use_threads=False).aggregate([])
    return [{**row, "kind": kinds.get(row["model"], "")} for row in used.to_pylist()]


def _models(data: ReportData, ways: Sequence[Mapping[str, str]]) -> str:
    baselines = data.baselines()
    own: dict[str, Mapping[str, Any]] = {}
    for model in data.record.get("models") or ():
        own.setdefault(str(model.get("name")), model)
    named = [_model(name, model) for name, model in own.items() if name not in baselines]
    said = []
    if named:
        said.append(f"{'The model was' if len(named) == 1 else 'Models were'} {_listed(_few(named))}.")
        remote = [model for name, model in own.items() if name not in baselines and model.get("endpoint")]
        if len(remote) < len(named):
            said.append("The run’s record holds the hash of all weights.")
        said += list(dict.fromkeys(words.endpoint_in_words(model) for model in remote))[:_MOST_LEARNED]
    said += _learned(data)
    for probe in dict.fromkeys(way["probe"] for way in ways):
        methods: dict[tuple[str, str], None] = {}
        for way in ways:
            if way["probe"] == probe and way["model"] not in baselines:
                methods[way["kind"], way["method"]] = None
        if methods or not named:
            said.append(_probe(probe, list(methods)))
            said += words.options_in_words(_options(data, probe))
    if any(way["probe"] in ("rank", "fill") for way in ways):
        said.append("Ties were ranked by their expectation over all ways to break them.")
    for name in (name for name in own if name in baselines):
        method = next((way["method"] for way in ways if way["model"] == name), "")
        about = words.baseline_in_words(method)
        # A baseline under several conditions has a name for each.
        short = _short(str(own[name].get("base") or name))
        said.append(f"The baseline {short} {about}." if about else f"{short} is a baseline.")
    return " ".join(dict.fromkeys(said))


def _model(name: str, model: Mapping[str, Any]) -> str:
    parts = [words.kind_in_words(str(model.get("kind") or "")), _parameters(model.get("parameters"))]
    parts += [str(model.get("dtype") or (model.get("learned") or {}).get("precision") or "")]
    inside = ", ".join(part for part in parts if part)
    return f"{_short(name)} ({inside})" if inside else _short(name)


def _parameters(value: Any) -> str:
    number = show.finite(value)
    if not number:
        return ""
    for size, unit in ((1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{number / size:.3g} {unit} parameters"
    return f"{show.count(number)} parameters"


def _learned(data: ReportData) -> list[str]:
    """How models changed before they were asked: each training once."""
    said = []
    for model in data.record.get("models") or ():
        record = model.get("learned")
        if isinstance(record, Mapping):
            said.append(words.learned_in_words(_short(str(model.get("name"))), record))
    learning = data.study.get("learning") or {}
    soft = [str(model.get("name")) for model in data.record.get("models") or () if ", soft" in str(model.get("name"))]
    if learning.get("learner") == "soft" and soft:
        said.append(
            f"{_listed([_short(name) for name in dict.fromkeys(soft)])} read soft prompts in the place of a template: "
            "input embeddings learned from the training questions, with the model’s own weights as they were"
        )
    said = list(dict.fromkeys(text for text in said if text))
    trainings = show.finite((data.study.get("options") or {}).get("trainings"))
    if trainings and trainings > 1 and learning.get("learner") == "memorize":
        said.insert(
            0,
            f"Every model was trained {show.count(trainings)} times, with another seed each time; scores are "
            "those of the first training where nothing else is said",
        )
    more = len(said) - _MOST_LEARNED
    sentences = [f"{text}." for text in said[:_MOST_LEARNED]]
    return [*sentences, *([f"{more} more were trained in the same way."] if more > 0 else [])]


def _options(data: ReportData, probe: str) -> Mapping[str, Any]:
    """The options that the study gives a probe."""
    for choice in data.study.get("probes") or ():
        if isinstance(choice, Mapping) and choice.get("probe") == probe:
            return dict(choice.get("options") or {})
    return {}


def _probe(probe: str, methods: Sequence[tuple[str, str]]) -> str:
    """How a probe asks, and what a score is by each method of each kind of model."""
    start = words.PROBES.get(probe, f"Models were asked by the probe {probe}")
    layers = [method for _, method in methods if "@" in method]
    told: dict[str, list[str]] = {}
    for kind, method in methods:
        if method in layers:
            continue
        about = words.method_in_words(probe, kind, method)
        told.setdefault(kind, []).append(f"{about} (method {method})" if about else f"the method {method}")
    parts = []
    for kind, texts in told.items():
        if probe in ("recall", "answer", "judge"):
            continue
        who = f"for {words.kind_in_words(kind)}s " if len(told) > 1 and kind else ""
        by = "a candidate’s score is " if probe == "rank" else ""
        parts.append(f"{who}{by}{_listed(texts)}")
    if layers:
        parts.append(f"and besides at each of {len(layers)} layers")
    return f"{start}: {'; '.join(parts)}." if parts else f"{start}."


def _statistics(data: ReportData) -> tuple[str, list[str]]:
    rows = overall_rows(data.scores)
    if not rows:
        return "", []
    sources = [cited.EFRON, cited.HESTERBERG]
    said = [f"We report {_listed(_metrics(rows))}."]
    if any(show.finite(row.get("chance")) is not None for row in rows):
        said.append("Chance is the score of a random order of the candidates, computed, not simulated.")
    if any(show.finite(row.get("adjusted")) is not None for row in rows):
        said.append("A score adjusted for chance is (score − chance) / (1 − chance).")
    over = data.suite.get("average_over")
    if over:
        said.append(f"Scores of a task are means over the classes of {over} of the mean within each.")
    resamples = _default(clustered_interval, "resamples")
    said.append(
        "Intervals are 95% bias-corrected and accelerated (BCa) bootstrap intervals "
        f"({cited.of_statistics(cited.EFRON)}) with {resamples} resamples of facts, so that questions about one fact "
        f"stay together, widened by Student’s t for small numbers of facts ({cited.of_statistics(cited.HESTERBERG)}); "
        "where all values are equal, the exact binomial interval for the number of facts."
    )
    if any(row.get("probe") == "recall" for row in rows):
        sources.append(cited.CAMERON)
        said.append(
            f"Where more than {MAX_BOOTSTRAP_FACTS} facts were asked, or one sentence more than once, they come in "
            f"closed form from a variance that is robust "
            f"to clusters of facts and of sentences ({cited.of_statistics(cited.CAMERON)})."
        )
    compared, more = _comparisons(data)
    return " ".join([*said, *compared, _unusable(data)]), [*sources, *more]


def _metrics(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    told = metrics_in_words(str(row["metric"]) for row in rows)
    return [f"{name} ({about})" if about else name for name, about in told]


def metrics_in_words(metrics: Iterable[str]) -> list[tuple[str, str]]:
    """The metrics by name, each once and with what it is; with nothing where that is not known."""
    found = []
    for metric in dict.fromkeys(metrics):
        kind, at, number = metric.partition("@")
        name = f"{kind}@k" if at and number.isdigit() else metric
        about = METRICS.about(name) if name in METRICS else ""
        if at and about.startswith("the same"):
            about = METRICS.about("r@k")
        about = about.partition(", e.g.")[0].replace("first k ", f"first {number} ")
        if number == "1":
            about = about.replace("is among the first 1 candidates", "is ranked first")
        found.append((show.metric_label(metric), about))
    return found


def _comparisons(data: ReportData) -> tuple[list[str], list[str]]:
    found = list(data.findings.get("comparisons") or ())
    if not found:
        return [], []
    sources, corrected = [], ""
    if len(found) > 1:
        sources.append(cited.HOLM)
        corrected = f"; p-values are corrected for {len(found):,} comparisons by Holm’s method "
        corrected += f"({cited.of_statistics(cited.HOLM)})"
    said = [
        "Models were compared in pairs on the questions that both could be asked, by two-sided permutation tests that "
        f"exchange two models within facts ({_default(paired_difference, 'flips')} permutations){corrected}. Intervals "
        "of differences are 95% percentile intervals of resampled facts, widened in the same way."
    ]
    if data.record.get("recalls"):
        said.append("Where intervals come in closed form, so do p-values.")
    if len(found) > 1 and any(show.finite(one.get("q")) is not None for one in found):
        sources.append(cited.BENJAMINI)
        said.append(f"q-values control the false discovery rate ({cited.of_statistics(cited.BENJAMINI)}).")
    if any(show.finite(one.get("mcnemar")) is not None for one in found):
        sources.append(cited.MCNEMAR)
        sources.append(cited.OBUCHOWSKI)
        said.append(
            "Where answers are right or wrong, McNemar’s test stands beside, uncorrected "
            f"({cited.of_statistics(cited.MCNEMAR)}; for facts with several questions "
            f"{cited.of_statistics(cited.OBUCHOWSKI)})."
        )
    if any(show.finite(one.get("effect")) is not None for one in found):
        said.append("Effect sizes are Cohen’s d of the paired differences.")
    if any(show.finite(one.get("detectable")) is not None for one in found):
        said.append(
            "The smallest detectable difference is the one that would be found with a power of 80% at a level of 5%."
        )
    return said, sources


def _unusable(data: ReportData) -> str:
    named = data.findings.get("unusable")
    if named is None:
        total = data.answers.num_rows - data.answers["unusable"].null_count
    else:
        total = sum(int(one.get("count") or 0) for one in named)
    if not total:
        return "Every question could be put to every model."
    counted = "counts as wrong" if data.suite.get("unusable_is_wrong") else "is left out of the scores"
    answers = "one answer" if total == 1 else f"{show.count(total)} answers"
    reasons = "too long, or with tokens unknown to it"
    return f"A question that could not be put to a model as it is ({reasons}) {counted}: {answers}."


def _trusted(data: ReportData, found: Trust) -> str:
    said = calibrated_in_words(found)
    seed = data.record.get("seed")
    if seed is not None:
        said.append(f"Everything that is drawn at random is drawn from the seed {seed}.")
    devices = {"cpu": "a CPU", "cuda": "a GPU"}
    where = {str(model.get("device")) for model in data.record.get("models") or () if model.get("device")}
    where = {devices.get(name.partition(":")[0], name) for name in where}
    packages = data.record.get("versions")
    if isinstance(packages, Mapping):
        used = [f"{name} {packages[name]}" for name in ("torch", "transformers") if packages.get(name)]
        used += [f"Python {data.record['python']}"] if data.record.get("python") else []
        on = f" on {_listed(sorted(where))}" if where else ""
        said += [f"Models ran{on} with {_listed(used)}."] if used else []
    return " ".join(said)


def _default(function: Any, name: str) -> str:
    """The value that a parameter has unless it is given: scores are made with it, so the text cannot be wrong."""
    return show.count(inspect.signature(function).parameters[name].default)


def _few(names: Sequence[str]) -> list[str]:
    more = len(names) - _MOST_NAMED
    return [*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])]


def _short(name: str) -> str:
    """A name that fits a sentence, in quotes where it holds a comma itself."""
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return f"“{short}”" if "," in short else short


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    if len(names) > 2 and any("," in name for name in names):
        return f"{'; '.join(names[:-1])}; and {names[-1]}"
    return f"{', '.join(names[:-1])} and {names[-1]}"
