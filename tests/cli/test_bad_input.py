"""Whatever is wrong is said in one line that names it, with exit code 2, and nothing is left behind."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

GOOD = {"prompt": "The capital of France is [MASK].", "answers": ["Paris"], "choices": ["Paris", "Rome"]}


@pytest.fixture
def refuse(merkhet, tmp_path: Path):
    """Runs a command that must be refused, and returns the one line it said."""

    def call(*arguments: object) -> str:
        before = {path.relative_to(tmp_path) for path in tmp_path.rglob("*")}
        done = merkhet(*arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stdout == ""
        assert {path.relative_to(tmp_path) for path in tmp_path.rglob("*")} == before, "something was left behind"
        return done.stderr

    return call


def study(folder: Path, text: str) -> Path:
    (folder / "study.yaml").write_text(text)
    return folder / "study.yaml"


def questions(folder: Path, *rows: object) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "questions.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "questions.jsonl"


def test_an_unknown_key_in_a_study(refuse, tmp_path: Path) -> None:
    line = refuse("run", study(tmp_path, "suite: quickstart\nmodles: [random]\n"), "--out", "run")
    assert "study.yaml" in line and "'modles'" in line and "did you mean 'models'?" in line


def test_an_unknown_key_of_a_model(refuse, tmp_path: Path) -> None:
    text = "suite: quickstart\nmodels: [{model: random, dytpe: float32}]\n"
    assert "did you mean 'dtype'?" in refuse("run", study(tmp_path, text), "--out", "run")


def test_a_wrong_value_in_a_study(refuse, tmp_path: Path) -> None:
    line = refuse("run", study(tmp_path, "suite: quickstart\nlimit: many\n"), "--out", "run")
    assert "limit must be an integer ≥ 1 or null, got 'many'" in line


def test_a_study_that_is_not_yaml(refuse, tmp_path: Path) -> None:
    assert "not valid YAML" in refuse("run", study(tmp_path, "suite: [quickstart\n"), "--out", "run")


def test_an_unknown_option_of_a_suite(refuse) -> None:
    line = refuse("run", "quickstart", "--model", "random", "--set", "options.choises=4", "--out", "run")
    assert "did you mean 'choices'?" in line


def test_missing_files(refuse) -> None:
    assert "there is no study nowhere.yaml" in refuse("run", "nowhere.yaml", "--out", "run")
    assert "nowhere" in refuse("run", "quickstart", "--data", "nowhere", "--model", "random", "--out", "run")
    assert "nowhere.csv" in refuse("build", "quickstart", "--knowledge", "nowhere.csv", "--out", "made")
    assert "not a finished run" in refuse("report", "nowhere")


def test_an_unknown_suite(refuse) -> None:
    assert "did you mean 'quickstart'?" in refuse("run", "quikstart", "--out", "run")


UNKNOWN_NAMES = (
    ("--model", "minilm-mln", "did you mean 'minilm-mlm'?"),
    ("--task", "complettion", "did you mean 'completion'?"),
    ("--knowledge", "elments", "did you mean 'elements'?"),
    ("--set", "metrics=[acuracy]", "did you mean 'accuracy'?"),
    ("--set", "probes=[rnak]", "did you mean 'rank'?"),
    ("--set", "groups=[relatoin]", "did you mean 'relation'?"),
    ("--set", "metrics=['r@zero']", "r@5"),
    ("--set", "seed", "key=value"),
)


def test_unknown_names(refuse) -> None:
    wrong = []
    for option, value, hint in UNKNOWN_NAMES:
        models = [] if option == "--model" else ["--model", "random"]
        line = refuse("run", "quickstart", *models, option, value, "--out", "run")
        wrong += [(option, value, line)] if hint not in line else []
    assert wrong == []


def test_a_model_folder_without_weights(refuse, model_folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model_folders["gpt2"], tmp_path / "empty"))
    (folder / "model.safetensors").unlink()
    assert "empty holds no weights" in refuse("run", "quickstart", "--model", folder, "--out", "run")


BROKEN_ROWS = (
    ('{"prompt": "A [MASK].", "answers": ["a"', "not valid JSON"),
    ('["a list"]', "a row must be a JSON object"),
    ({**GOOD, "prompt": "The capital of France is Paris."}, "has no slot"),
    ({**GOOD, "prompt": "[MASK] is [MASK]."}, "has 2 slots"),
    ({**GOOD, "answers": []}, "'answers' is empty"),
    ({**GOOD, "answers": 3}, "'answers' must be list<item: string>, got 3"),
    ({**GOOD, "anwsers": ["Paris"]}, "did you mean 'answers'?"),
    ({**GOOD, "choices": ["Rome", "Bern"]}, "'Paris' is not among the candidates"),
    ({"answers": ["Paris"]}, "'prompt'"),
    ({**GOOD, "candidate_set": "cities"}, "either 'choices' or a 'candidate_set'"),
)


def test_a_broken_row_of_questions(refuse, tmp_path: Path) -> None:
    first = {**GOOD, "prompt": "The capital of France, they say, is [MASK]."}
    wrong = []
    for row, said in BROKEN_ROWS:
        file = questions(tmp_path, first, row)
        line = refuse("run", "quickstart", "--data", file, "--model", "random", "--out", "run")
        wrong += [(row, line)] if said not in line or "questions.jsonl, row 2" not in line else []
    assert wrong == []


def test_a_broken_parquet_file(refuse, built: Path) -> None:
    file = built / "questions.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    line = refuse("run", "quickstart", "--data", "built", "--model", "random", "--out", "run")
    assert "questions.parquet is not a complete Parquet file" in line


def test_a_broken_row_of_facts(refuse, tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text("subject,predicate,object\nFrance,capital,Paris\nItaly,capital\n")
    assert "facts.csv:3: 2 cells" in refuse("build", "quickstart", "--knowledge", "facts.csv", "--out", "made")


def test_broken_templates(refuse, tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text("subject,predicate,object\nFrance,capital,Paris\nItaly,capital,Rome\n")
    (tmp_path / "t.yaml").write_text("relations: {capital: {templates: ['The capital of {sujbect} is {object}.']}}")
    line = refuse("build", "quickstart", "--knowledge", "facts.csv", "--set", "options.templates=t.yaml", "--out", "m")
    assert "did you mean 'subject'?" in line


def test_an_out_that_is_a_file(refuse, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("here first")
    assert "run is not a folder" in refuse("run", "quickstart", "--model", "random", "--limit", "5", "--out", "run")


@pytest.mark.usefixtures("built")
def test_an_out_that_holds_other_files(refuse, tmp_path: Path) -> None:
    """Somebody's questions are never written over."""
    file = questions(tmp_path, GOOD)
    assert "holds other files" in refuse("run", "quickstart", "--data", file, "--model", "random", "--out", ".")
    assert "holds other files" in refuse("build", "quickstart", "--data", file, "--out", ".")
    assert "holds other files" in refuse("run", "quickstart", "--data", "built", "--model", "random", "--out", "built")
    assert "is the folder of the source questions" in refuse("build", "quickstart", "--data", "built", "--out", "built")


def test_a_part_in_a_file_that_does_not_import(refuse, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import nothing_of_that_name\n")
    line = refuse("run", "quickstart", "--model", "random", "--set", "metrics=['mine.py:m']", "--out", "run")
    assert "mine.py cannot be imported" in line


def test_wrong_usage_is_exit_code_2(merkhet) -> None:
    assert merkhet("run").returncode == 2
    assert merkhet("run", "quickstart", "--limit", "0").returncode == 2
    assert merkhet("frobnicate").returncode == 2


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system of 300 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here (needs root)")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(merkhet, small_disk: Path, tmp_path: Path) -> None:
    """Said in one line; the run's folder holds no half-written file, and goes on elsewhere as if nothing had been."""
    done = merkhet("run", "quickstart", "--model", "random", "--limit", "500", "--out", small_disk / "run")
    assert done.returncode == 2, done.stderr
    assert "the disk is full" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not list(small_disk.rglob("*.tmp"))


def test_a_disk_full_when_building(merkhet, small_disk: Path) -> None:
    done = merkhet("build", "quickstart", "--out", small_disk / "made")
    assert done.returncode == 2
    assert "the disk is full" in done.stderr and done.stderr.count("\n") == 1
    assert not (small_disk / "made" / "questions.parquet").exists()
