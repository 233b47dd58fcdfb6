"""What is disturbed: commands of every kind over real small models, each some seconds long."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from drills.stage import Stage, say
from drills.wholeness import contents, leftovers

_CAPITALS = {
    **{"France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "Peru": "Lima"},
    **{"Cuba": "Havana", "Iran": "Tehran", "Iraq": "Baghdad", "Kenya": "Nairobi", "Egypt": "Cairo", "Chad": "Ndjamena"},
}
_STORED = {"epochs": 12, "batch_size": 32, "evaluate_every": 4, "vocabulary": 400, "checkpoint_seconds": 0.1}


@dataclass(frozen=True)
class Job:
    """A command: what it is, what it is given, and what it makes (relative to the folder that it is started in)."""

    name: str
    kind: str
    arguments: tuple[str, ...]
    made: str
    prepare: Callable[[Path, Path], None]


def _nothing(materials: Path, place: Path) -> None:
    """Nothing is there before."""


def _with_store(materials: Path, place: Path) -> None:
    shutil.copy(materials / "kb.duckdb", place / "kb.duckdb")


def _with_run(materials: Path, place: Path) -> None:
    shutil.copytree(materials / "run", place / "run")
    (place / "run" / "report.html").unlink()


def _run(what: str, *more: str) -> tuple[str, ...]:
    return ("run", what, *more, "--out", "run", "--quiet")


JOBS = (
    Job("build", "build", ("build", "quickstart", "--limit", "60", "--out", "questions"), "questions", _nothing),
    Job(
        "import", "build", ("knowledge", "import", "countries", "--into", "kb.duckdb", "--quiet"), "kb.duckdb", _nothing
    ),
    Job(
        "import more",
        "build",
        ("knowledge", "import", "offices", "elements", "--into", "kb.duckdb", "--quiet"),
        "kb.duckdb",
        _with_store,
    ),
    Job(
        "infer",
        "build",
        ("knowledge", "infer", "kb.duckdb", "--rules", "../materials/rules.yaml", "--quiet"),
        "kb.duckdb",
        _with_store,
    ),
    Job(
        "ask masked",
        "ask",
        _run("quickstart", "--limit", "40", "--model", "../materials/bert-uncased", "--model", "frequency"),
        "run",
        _nothing,
    ),
    Job("ask causal", "ask", _run("quickstart", "--limit", "40", "--model", "../materials/llama"), "run", _nothing),
    Job("tune", "train", _run("../materials/tune.yaml"), "run", _nothing),
    Job("pretrain", "train", _run("../materials/pretrain.yaml"), "run", _nothing),
    Job("memorize", "train", ("memorize", "../materials/memorize.yaml", "--out", "run", "--quiet"), "run", _nothing),
    Job("report", "report", ("report", "run"), "run", _with_run),
)
TOGETHER = Job(
    "memorize by two", "train", ("memorize", "../materials/together.yaml", "--out", "run", "--quiet"), "run", _nothing
)


def job_called(name: str) -> Job:
    """The job of a name."""
    return next(job for job in (*JOBS, TOGETHER) if job.name == name)


@dataclass(frozen=True)
class Undisturbed:
    """What a job makes if nothing happens, where it lies, and how long that took."""

    seconds: float
    contents: dict[str, str]
    place: Path


class Undisturbeds:
    """The undisturbed results, each made when it is first asked for."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.found: dict[str, Undisturbed] = {}
        self.materials = stage.folder / "materials"
        _make_materials(stage, self.materials)

    def __getitem__(self, job: Job) -> Undisturbed:
        if job.name not in self.found:
            place = self.stage.place("undisturbed")
            job.prepare(self.materials, place)
            began = time.monotonic()
            ended = self.stage.finish(job.arguments, place)
            seconds = time.monotonic() - began
            if ended.code or leftovers(place):
                raise SystemExit(f"the job {job.name} fails undisturbed: {ended.said} {leftovers(place)}")
            say(f"{job.name}: {seconds:.1f} s undisturbed")
            self.found[job.name] = Undisturbed(seconds, contents(place / job.made) or contents(place), place)
        return self.found[job.name]


def made_by(job: Job, place: Path) -> dict[str, str]:
    """What a job has made in a place."""
    return contents(place / job.made) or contents(place)


def _make_materials(stage: Stage, folder: Path) -> None:
    """Two tiny trained models, studies, a knowledge base and a finished run."""
    tests = Path(__file__).parents[1] / "tests"
    sys.path.insert(0, str(tests))
    from tiny_models import FAMILIES, build_models

    say("making two tiny models, a knowledge base and a run to work with")
    folder.mkdir(parents=True)
    build_models(folder, {name: FAMILIES[name] for name in ("bert-uncased", "llama")})
    (folder / "corpus.txt").write_text(
        "\n\n".join(f"The capital of {country} is {city}. {city} is a city." for country, city in _CAPITALS.items())
    )
    (folder / "rules.yaml").write_text("symmetric: [borders]\ntransitive: [borders]\n")
    bert = {"model": "bert-uncased", "label": "bert"}
    _write_questions(folder / "capitals")
    pretraining = {"corpus": "corpus.txt", "steps": 40, "batch_size": 4, "max_length": 32, "checkpoint_every": 5}
    _write_study(
        folder / "tune.yaml",
        suite="kmir",
        data="capitals",
        tasks=["completion"],
        models=[bert],
        learning={"learner": "cloze", "settings": {"epochs": 2, "batch_size": 4}},
    )
    _write_study(
        folder / "pretrain.yaml",
        suite="quickstart",
        limit=12,
        models=[bert],
        learning={"learner": "pretrain", "settings": {**pretraining, "objectives": ["mlm"]}},
    )
    for name, more in (("memorize", {}), ("together", {"processes": 2})):
        _write_study(
            folder / f"{name}.yaml",
            suite="lama-tk",
            models=[{"model": "random:1x32", "label": "small"}],
            learning={"learner": "memorize", "settings": {**_STORED, **more}},
            options={"experiment": "storage", "sizes": [40], "conflict": ["with"]},
        )
    place = stage.place("making")
    for arguments in (
        ("knowledge", "import", "countries", "--into", str(folder / "kb.duckdb")),
        ("run", "quickstart", "--limit", "12", "--model", "random", "--out", str(folder / "run")),
    ):
        ended = stage.finish(arguments, place)
        if ended.code:
            raise SystemExit(f"the materials cannot be made: {ended.said}")


def _write_study(file: Path, **content: object) -> None:
    file.write_text(yaml.safe_dump(content))


def _write_questions(folder: Path) -> None:
    """Short questions with a split, for a model that reads 64 tokens."""
    folder.mkdir()
    rows = []
    for number, (country, city) in enumerate(_CAPITALS.items()):
        common = {"task": "completion", "answers": [city], "target": city, "choices": list(_CAPITALS.values())}
        split = "dev" if number % 3 == 2 else "train"
        rows.append({**common, "prompt": f"capital of {country}: [MASK]", "split": split})
        rows.append({**common, "prompt": f"{country} has [MASK]", "split": "test"})
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
