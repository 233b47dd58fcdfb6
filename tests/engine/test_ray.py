"""Asking on Ray gives what one process gives, whatever happens to workers; what does not fit is refused at once."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from ray_runs import Listener, needs_ray, ray_cluster, same_answers, same_bytes

import merkhet
from merkhet.core.errors import InputError, MerkhetError
from merkhet.core.version import __version__
from merkhet.questions.question_files import read_questions

pytestmark = [needs_ray, pytest.mark.cluster]

PROCESS = re.compile(r"a worker on \S+, process (\d+)")
OWN = '''"""A model that ends its process, and with it the worker, or waits, when it comes to a certain question."""

import os
import signal
import time
from pathlib import Path

import numpy

from merkhet.models.protocol import CandidateScores


class Own:
    name, kind, fingerprint, methods = {does!r}, "own", "own-1", ("sum",)

    def score_candidates(self, questions, methods):
        while not Path({mended!r}).exists() and any({deadly!r} == one.question_id for one in questions):
            if self.name == "dying":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.1)
        for index, question in enumerate(questions):
            scores = numpy.array([float(len(text)) for text in question.candidates])
            yield CandidateScores(index, dict.fromkeys(methods, scores))

    def describe(self):
        return {{"parameters": 0}}


make = Own
'''


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster() as address:
        yield address


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 360 questions, asked in 12 blocks."""
    folder = tmp_path_factory.mktemp("asked") / "questions"
    merkhet.build("quickstart", limit=120, out=folder)
    return folder


@pytest.fixture
def on_ray(cluster: str, asked: Path):
    """A function that runs on the cluster; workers may be given an environment of their own."""
    import ray

    def run(out: Path, *models: object, listener: Listener | None = None, env: dict | None = None, **options: object):
        runtime = {"runtime_env": {"env_vars": env}} if env else {}
        ray.init(cluster, logging_level="ERROR", log_to_driver=False, **runtime)
        try:
            given = {"data": asked, "settings": ["report=none", "controls=[]"], "workers": 2, "cores": 1, **options}
            engines = [f"ray:{cluster}"]
            return merkhet.run("quickstart", models=models, out=out, progress=listener, engines=engines, **given)
        finally:
            ray.shutdown()

    return run


@pytest.fixture
def here(asked: Path):
    """A function that runs in this process, on one thread as workers do."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    given = {"data": asked, "settings": ["report=none", "controls=[]"]}
    yield lambda out, *models, **options: merkhet.run("quickstart", models=models, out=out, **{**given, **options})
    torch.set_num_threads(threads)


def processes(folder: Path) -> list[int]:
    return [int(found) for found in PROCESS.findall((folder / "log.txt").read_text())]


def test_two_workers_give_the_bytes_that_one_process_gives(on_ray, here, model_folders, tmp_path: Path) -> None:
    models = (str(model_folders["bert-uncased"]), str(model_folders["gpt2"]), "random")
    alone = here(tmp_path / "alone", *models)
    listener = Listener()
    shared = on_ray(tmp_path / "shared", *models, listener=listener)
    assert same_bytes(alone.folder, shared.folder, "scores.parquet", "scores.json", "study.yaml", "findings.json")
    assert same_answers(alone.folder, shared.folder)
    # Two workers for each of the two models, none of them this process; the baseline was asked here.
    found = processes(shared.folder)
    assert len(set(found)) == 4 and os.getpid() not in found
    assert listener.done == {"bert-uncased": 360, "gpt2": 360, "random": 360}
    # What is told of the models is told of them here too, with the work of all workers added up.
    told = ("name", "kind", "fingerprint", "questions", "parameters", "dtype", "rows", "tokens")
    for one, other in zip(alone.record["models"], shared.record["models"], strict=True):
        assert {key: one.get(key) for key in told} == {key: other.get(key) for key in told}
    assert [model.get("workers") for model in shared.record["models"]] == [2, 2, None]


def test_an_engine_does_not_make_answers_old(on_ray, here, model_folders, tmp_path: Path) -> None:
    listener = Listener()
    on_ray(tmp_path / "run", str(model_folders["gpt2"]), limit=20)
    again = here(tmp_path / "run", str(model_folders["gpt2"]), limit=20, progress=listener)
    assert listener.done == {} and again.scores.num_rows > 0


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_there_twice(
    on_ray, here, model_folders, tmp_path: Path
) -> None:
    bert, killed = str(model_folders["bert-uncased"]), []

    def kill() -> None:
        for process in set(processes(tmp_path / "run")) - set(killed) if not killed else ():
            os.kill(process, signal.SIGKILL)
            killed.append(process)

    listener = Listener(kill)
    shared = on_ray(tmp_path / "run", bert, listener=listener)
    assert killed and set(processes(shared.folder)) > set(killed)
    assert any("was lost; block" in line for line in listener.said)
    assert listener.done == {"bert-uncased": 360}
    ids = shared.answers["question_id"].to_pylist()
    assert len(ids) == len(set(ids)) == 360
    alone = here(tmp_path / "alone", bert)
    assert same_answers(alone.folder, shared.folder) and same_bytes(alone.folder, shared.folder, "scores.parquet")


def own_model(folder: Path, asked: Path, does: str) -> tuple[str, Path, list[str]]:
    """Write a model that dies or waits in block 3, until a file is there; return it, the file and all questions."""
    questions = read_questions(asked).as_questions()
    order = [one.question_id for one in sorted(questions, key=lambda one: (len(one.prompt), one.question_id))]
    module, mended = folder / "own.py", folder / "mended"
    module.write_text(OWN.format(does=does, mended=str(mended), deadly=order[100]))
    return f"{module}:make", mended, order


def test_a_block_that_workers_die_of_is_named_and_the_others_are_kept(on_ray, here, asked, tmp_path: Path) -> None:
    model, mended, order = own_model(tmp_path, asked, "dying")
    with pytest.raises(
        MerkhetError, match=r"3 workers died while asking block 3 of dying \(32 questions, q_"
    ) as caught:
        on_ray(tmp_path / "run", model, workers=1)
    assert order[96] in str(caught.value)
    kept = sorted(file.name for file in (tmp_path / "run").rglob(".merkhet/work/*/*/*.parquet"))
    assert kept[:3] == ["00000.parquet", "00001.parquet", "00002.parquet"] and "00003.parquet" not in kept
    mended.touch()
    listener = Listener()
    whole = on_ray(tmp_path / "run", model, workers=1, listener=listener)
    assert whole.answers.num_rows == 360 and same_answers(here(tmp_path / "alone", model).folder, whole.folder)


def test_a_worker_with_another_merkhet_is_refused_before_anything_is_done(
    on_ray, model_folders, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(Path(merkhet.__file__).parent, tmp_path / "other" / "merkhet"))
    (other / "core" / "version.py").write_text('__version__ = "9.9.9"\n')
    with pytest.raises(InputError, match=rf"the worker on \S+ has merkhet 9\.9\.9, and this is merkhet {__version__}"):
        on_ray(tmp_path / "run", str(model_folders["gpt2"]), env={"PYTHONPATH": str(other.parent)})
    assert not (tmp_path / "run").exists()


def test_a_worker_without_merkhet_is_refused(on_ray, model_folders, tmp_path: Path) -> None:
    (tmp_path / "empty" / "merkhet").mkdir(parents=True)
    (tmp_path / "empty" / "merkhet" / "__init__.py").touch()
    with pytest.raises(InputError, match=r"the worker on \S+ has no merkhet .*pip install merkhet"):
        on_ray(tmp_path / "run", str(model_folders["gpt2"]), env={"PYTHONPATH": str(tmp_path / "empty")})
    assert not (tmp_path / "run").exists()


def test_a_worker_with_another_model_or_none_is_refused(on_ray, model_folders, tmp_path: Path, monkeypatch) -> None:
    """An alias is found by each machine for itself, and may be something else there."""
    source = Path(merkhet.__file__).parents[1]
    for place, family in (("here", "bert-uncased"), ("there", "bert-cased"), ("nowhere", None)):
        package = tmp_path / place / "merkhet_demo_models"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        if family:
            shutil.copytree(model_folders[family], package / "minilm-mlm")
    monkeypatch.syspath_prepend(str(tmp_path / "here"))
    with pytest.raises(
        InputError, match=r"the worker on \S+ has a different minilm-mlm: its fingerprint is \w{12} there"
    ):
        on_ray(tmp_path / "run", "minilm-mlm", env={"PYTHONPATH": f"{tmp_path / 'there'}:{source}"})
    with pytest.raises(InputError, match=r"the worker on \S+ cannot ask minilm-mlm: .* copy it there"):
        on_ray(tmp_path / "run", "minilm-mlm", env={"PYTHONPATH": f"{tmp_path / 'nowhere'}:{source}"})
    assert not (tmp_path / "run").exists()
    same = on_ray(tmp_path / "run", "minilm-mlm", limit=20, env={"PYTHONPATH": f"{tmp_path / 'here'}:{source}"})
    assert same.record["models"][0]["workers"] == 2


def test_a_model_object_is_asked_here_and_that_is_said(on_ray, tmp_path: Path) -> None:
    from merkhet.models.baselines import RandomBaseline

    class Own(RandomBaseline):
        kind = "own"

    model = Own()
    model.name = "mine"
    listener = Listener()
    run = on_ray(tmp_path / "run", model, listener=listener, limit=20)
    assert any(
        "mine: asked in this process, not on Ray: it is an object of this process" in line for line in listener.said
    )
    assert processes(run.folder) == [] and run.answers.num_rows == 60


def test_more_cores_than_a_machine_has_are_refused(on_ray, model_folders, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no machine of the Ray cluster has 64 cores for a worker; the largest has 2"):
        on_ray(tmp_path / "run", str(model_folders["gpt2"]), cores=64)
    assert not (tmp_path / "run").exists()


def descendants(process: int) -> set[int]:
    """The processes that a process has begun, and those that these have."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found, new = set(), {process}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_a_run_that_is_killed_takes_its_ray_along_and_goes_on(here, asked, tmp_path: Path) -> None:
    """The command line starts a Ray of its own, whose worker waits; what was answered is not asked again."""
    model, mended, _ = own_model(tmp_path, asked, "waiting")
    options = ("--data", str(asked), "--model", model, "--set", "report=none", "--quiet")
    command = [sys.executable, "-m", "merkhet", "run", "quickstart", *options, "--out", str(tmp_path / "run")]
    first = [*command, "--engine", "ray", "--workers", "1", "--cores-per-worker", "1"]
    driver = subprocess.Popen(first, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 240
    while len(list((tmp_path / "run").rglob(".merkhet/work/*/*/0*.parquet"))) < 3:
        assert driver.poll() is None and time.monotonic() < deadline, driver.communicate()
        time.sleep(0.01)
    began = descendants(driver.pid)
    assert any("raylet" in Path(f"/proc/{one}/cmdline").read_text() for one in began if is_running(one))
    driver.kill()
    lines = driver.communicate()[1].splitlines()
    said = [line for line in lines if not line.startswith("No question from ")]
    assert said[1].startswith("  waiting: on Ray, 1 worker")
    assert all(line.startswith(("quickstart:", "  waiting:")) for line in said), said
    while any(map(is_running, began)):
        assert time.monotonic() < deadline, [one for one in began if is_running(one)]
        time.sleep(0.2)
    mended.touch()
    listener = Listener()
    whole = here(tmp_path / "run", model, progress=listener)
    assert listener.first == {"waiting": 96} and listener.done == {"waiting": 360}
    alone = here(tmp_path / "alone", model)
    assert same_bytes(alone.folder, whole.folder, "scores.parquet", "scores.json")
