"""The command line as a process of its own: whole runs, exit codes, signals, pipes, and what it imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

COUNT = "[name for name in sys.modules if name.partition('.')[0] == 'merkhet']"
STOPPING = """
import os, signal, time
from pathlib import Path
from merkhet.models.baselines import RandomBaseline

def model():
    mark = Path(__file__).with_name("was-stopped")
    if not mark.exists():
        mark.touch()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # Jobs in the background ignore it.
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    return RandomBaseline("patient")
"""


def run_python(code: str, *arguments: str, cwd: Path) -> str:
    """Run code in a new process; what it prints last is returned, and it must not fail."""
    command = [sys.executable, "-c", f"import sys\n{code}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1] if done.stdout else ""


def imported_by(*arguments: str, cwd: Path) -> set[str]:
    """Run a command in a new process; return the modules that it has imported when it is done."""
    code = (
        "import json\nsys.argv = ['merkhet', *sys.argv[1:]]\nfrom merkhet.cli import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "print()\nprint(json.dumps(sorted(sys.modules)))"
    )
    return set(json.loads(run_python(code, *arguments, cwd=cwd)))


def test_a_whole_run_as_a_module(merkhet_process, tmp_path: Path) -> None:
    done = merkhet_process("run", "quickstart", "--model", "random", "--limit", "5", "--out", "run", check=0)
    assert "random: 15/15 questions" in done.stderr and "Report: run/report.html" in done.stdout
    assert (tmp_path / "run" / "report.html").is_file()
    assert json.loads((tmp_path / "run" / "scores.json").read_text())


def test_what_cannot_be_done_is_one_line_and_exit_code_2(merkhet_process) -> None:
    done = merkhet_process("run", "quikstart", "--out", "run", check=2)
    assert done.stdout == "" and done.stderr.count("\n") == 1 and "did you mean 'quickstart'?" in done.stderr


def test_an_interrupted_run_exits_with_130_and_goes_on_when_started_again(merkhet_process, tmp_path: Path) -> None:
    (tmp_path / "stopping.py").write_text(STOPPING)
    given = ("--knowledge", "elements", "--limit", "5", "--set", "report=none")
    ask = ("run", "quickstart", "--model", "stopping.py:model", *given, "--out", "run")
    stopped = merkhet_process(*ask, check=130)
    assert stopped.stderr.splitlines()[-1] == "Interrupted. Run the same command again to resume."
    assert "Traceback" not in stopped.stderr and not (tmp_path / "run" / "scores.json").exists()
    assert "patient: " in merkhet_process(*ask, check=0).stderr


def test_without_torch_the_remedy_is_named(tmp_path: Path, model_folders: dict[str, Path]) -> None:
    """A machine without torch, by way of a module of that name that cannot be imported."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    command = [sys.executable, "-m", "merkhet", "run", "quickstart", "--limit", "5", "--out", str(tmp_path / "run")]
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [*command, "--model", str(model_folders["gpt2"])],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 2
    assert "pip install 'merkhet[models]'" in done.stderr.splitlines()[-1]


def test_help_and_lists_import_nothing_heavy(tmp_path: Path) -> None:
    heavy = {"torch", "transformers", "vl_convert", "pandas"}
    light = heavy | {"pyarrow", "duckdb", "pydantic", "numpy"}
    for command, refused in (("--help", light), ("models", heavy), ("suites", heavy)):
        assert refused & imported_by(command, cwd=tmp_path) == set(), command


def test_resolving_run_imports_few_modules_of_merkhet(tmp_path: Path) -> None:
    names = run_python(f"import merkhet\nmerkhet.run\nprint(*{COUNT})", cwd=tmp_path).split()
    assert "merkhet.api" in names and len(names) <= 47, names


def test_a_run_of_a_baseline_imports_only_what_it_uses(tmp_path: Path) -> None:
    """With a report neither what trains models nor what other suites ask; without one nothing that draws either."""
    unused = {"torch", "transformers", "pandas", "merkhet.suites.lama_tk.questions", "merkhet.training.text_corpus"}
    drawing = {"vl_convert", "jinja2"}
    ask = ("run", "quickstart", "--knowledge", "elements", "--model", "random", "--limit", "5", "--out", "run")
    without = imported_by(*ask, "--set", "report=none", cwd=tmp_path)
    assert "merkhet.engine.score_step" in without and (unused | drawing) & without == set()
    reported = imported_by(*ask, cwd=tmp_path)
    assert "jinja2" in reported and unused & reported == set()
