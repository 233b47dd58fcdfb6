"""Commands to disturb: one of every kind, over small real models, of some seconds each."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from drills.integrity import content_hashes, leftovers
from drills.stage import Stage, print_line

_CAPITALS = {
    **{"France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "Peru": "Lima"},
    **{"Cuba": "Havana", "Iran": "Tehran", "Iraq": "Baghdad", "Kenya": "Nairobi", "Egypt": "Cairo", "Chad": "Ndjamena"},
}
_STORED = {"epochs": 12, "batch_size": 32, "evaluate_every": 4, "vocabulary": 400, "checkpoint_seconds": 0.1}


@dataclass(frozen=True)
class Job:
    """A command to disturb."""

    name: str
    kind: str
    arguments: tuple[str, ...]
    output: str
    """File or folder that it makes, relative to its working directory."""
    prepare: Callable[[Path, Path], None]
    """Fill the working directory (second argument) from the materials (first)."""


def _nothing(materials: Path, workdir: Path) -> None:
    """Leave the working directory empty."""


def _with_store(materials: Path, workdir: Path) -> None:
    shutil.copy(materials / "kb.duckdb", workdir / "kb.duckdb")


def _with_run(materials: Path, workdir: Path) -> None:
    shutil.copytree(materials / "run", workdir / "run")
    (workdir / "run" / "report.html").unlink()


def _run(study: str, *options: str) -> tuple[str, ...]:
    return ("run", study, *options, "--out", "run", "--quiet")


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


def find_job(name: str) -> Job:
    """Return the job with a name."""
    return next(job for job in (*JOBS, TOGETHER) if job.name == name)


@dataclass(frozen=True)
class Reference:
    """Duration and output of a job that is not disturbed."""

    seconds: float
    content_hashes: dict[str, str]
    workdir: Path


class References:
    """Undisturbed results of jobs, computed on first use."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.by_job: dict[str, Reference] = {}
        self.materials = stage.folder / "materials"
        _make_materials(stage, self.materials)

    def __getitem__(self, job: Job) -> Reference:
        if job.name not in self.by_job:
            workdir = self.stage.new_folder("undisturbed")
            job.prepare(self.materials, workdir)
            began = time.monotonic()
            result = self.stage.finish(job.arguments, workdir)
            seconds = time.monotonic() - began
            if result.code or leftovers(workdir):
                raise SystemExit(f"the job {job.name} fails undisturbed: {result.output} {leftovers(workdir)}")
            print_line(f"{job.name}: {seconds:.1f} s undisturbed")
            self.by_job[job.name] = Reference(
                seconds, content_hashes(workdir / job.output) or content_hashes(workdir), workdir
            )
        return self.by_job[job.name]


def output_hashes(job: Job, workdir: Path) -> dict[str, str]:
    """Return the content hashes of a job's output."""
    return content_hashes(workdir / job.output) or content_hashes(workdir)


def _make_materials(stage: Stage, folder: Path) -> None:
    """Make two tiny trained models, studies, a knowledge base and a finished run."""
    tests = Path(__file__).parents[1] / "tests"
    sys.path.insert(0, str(tests))
    from tiny_models import FAMILIES, build_models

    print_line("making two tiny models, a knowledge base and a run to work with")
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
    for name, processes in (("memorize", {}), ("together", {"processes": 2})):
        _write_study(
            folder / f"{name}.yaml",
            suite="lama-tk",
            models=[{"model": "random:1x32", "label": "small"}],
            learning={"learner": "memorize", "settings": {**_STORED, **processes}},
            options={"experiment": "storage", "sizes": [40], "conflict": ["with"]},
        )
    workdir = stage.new_folder("making")
    for arguments in (
        ("knowledge", "import", "countries", "--into", str(folder / "kb.duckdb")),
        ("run", "quickstart", "--limit", "12", "--model", "random", "--out", str(folder / "run")),
    ):
        result = stage.finish(arguments, workdir)
        if result.code:
            raise SystemExit(f"the materials cannot be made: {result.output}")


def _write_study(file: Path, **content: object) -> None:
    file.write_text(yaml.safe_dump(content))


def _write_questions(folder: Path) -> None:
    """Write short questions with splits, for a model of 64 tokens."""
    folder.mkdir()
    rows = []
    for number, (country, city) in enumerate(_CAPITALS.items()):
        common = {"task": "completion", "answers": [city], "target": city, "choices": list(_CAPITALS.values())}
        split = "dev" if number % 3 == 2 else "train"
        rows.append({**common, "prompt": f"capital of {country}: [MASK]", "split": split})
        rows.append({**common, "prompt": f"{country} has [MASK]", "split": "test"})
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
