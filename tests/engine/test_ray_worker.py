"""A worker that does not see the run's folder takes what a tuned model has learned, and asks it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from small_packs import small_run

from merkhet.core.errors import MerkhetError
from merkhet.engine.asker import AskJob, AskParams
from merkhet.engine.distribute import _ray_worker as ray_worker
from merkhet.engine.run_folder import open_run
from merkhet.models.model_lookup import ModelSpec, resolve_model


def test_what_was_learned_is_sent_to_a_worker_that_does_not_see_the_run(
    model_folders, made_once, tmp_path: Path
) -> None:
    """What a worker does with a tuned model whose folder is on no disk of its own, asked as from another machine."""
    asked = open_run(shutil.copytree(small_run(made_once), tmp_path / "run")).questions.as_questions()
    record = ".merkhet/learned/tuned/learned.json"
    tuned = Path(shutil.copytree(model_folders["gpt2"], (tmp_path / "run" / record).parent))
    fingerprint = resolve_model(ModelSpec(str(model_folders["gpt2"]))).fingerprint
    params = AskParams("gpt2, tuned", "causal", "", "auto", "rank", "rank", learned=record)
    (tuned / "learned.json").write_text(json.dumps({"fingerprint": "of another"}))
    job = AskJob(params, ModelSpec("gpt2"), tmp_path / "run", tmp_path, (record,))
    with pytest.raises(MerkhetError, match=r"does not hold the trained weights of gpt2, tuned; remove that folder"):
        ray_worker.load({}, 1, job)
    (tuned / "learned.json").write_text(json.dumps({"fingerprint": fingerprint}))
    files = ray_worker.needed_files(job)
    assert {record, ".merkhet/learned/tuned/model.safetensors"} <= files.keys()
    state: dict = {}
    assert ray_worker.has_files(state, 1, str(tmp_path / "run"), files)
    elsewhere = replace(job, folder=tmp_path / "elsewhere")
    assert not ray_worker.has_files(state, 1, str(elsewhere.folder), files)
    for name in files:
        ray_worker.receive_file(state, 1, name, (tmp_path / "run" / name).read_bytes())
    shutil.rmtree(tuned)
    ray_worker.load(state, 1, elsewhere)
    said = ray_worker.ask(state, 1, asked[:5])
    assert said["answers"]["question_id"].to_pylist() == [question.question_id for question in asked[:5]]
    assert set(said["answers"]["model"].to_pylist()) == {"gpt2, tuned"} and said["statistics"]["questions"] == 5
