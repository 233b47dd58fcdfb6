"""What the benchmarks ask: the quickstart's questions and the models' folders, as one JSON file for every process."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from merkhet.core.records import Question

MODELS = ("minilm-mlm", "smollm2-135m")


def quickstart_questions(sizes: Mapping[str, int]) -> list[Question]:
    """As many of the quickstart's questions of each task as asked for, spread over its relations."""
    from merkhet.api import build

    questions: list[Question] = []
    for task, count in sizes.items():
        with tempfile.TemporaryDirectory() as folder:
            questions += build("quickstart", out=folder, tasks=[task], limit=count).as_questions()
    return questions


def write_questions(questions: Sequence[Question], file: Path) -> None:
    """Questions as JSON, which a process without merkhet can read."""
    from dataclasses import asdict

    file.write_text(json.dumps([asdict(question) for question in questions], ensure_ascii=False), encoding="utf-8")


def read_questions(file: Path) -> list[Question]:
    """The questions that were written."""
    from merkhet.core.records import Question

    rows = json.loads(file.read_text(encoding="utf-8"))
    return [Question(**{key: _frozen(value) for key, value in row.items()}) for row in rows]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def model_folder(name: str) -> tuple[str, Path]:
    """The kind (masked or causal) and the ordinary Hugging Face folder of a model by its alias or path."""
    from merkhet.models._gguf import unpack_gguf
    from merkhet.models.model_lookup import ModelSpec, resolve_model

    resolved = resolve_model(ModelSpec(name))
    assert resolved.path is not None, f"{name} has no files"
    return resolved.kind, unpack_gguf(resolved.path) if resolved.path.suffix == ".gguf" else resolved.path


def main() -> None:
    """Write the questions of a whole run and say where the models are, for a parent that is to stay small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, required=True)
    parser.add_argument("--models", nargs="*", default=[])
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    sizes = dict.fromkeys(("completion", "checking", "distinction"), options.limit)
    questions = quickstart_questions(sizes)
    write_questions(questions, options.folder / "questions.json")
    places = {name: [kind, str(place)] for name in options.models for kind, place in [model_folder(name)]}
    about = {"models": places, "questions": len(questions), "candidates": sum(len(q.candidates) for q in questions)}
    (options.folder / "material.json").write_text(json.dumps(about), encoding="utf-8")


if __name__ == "__main__":
    main()
