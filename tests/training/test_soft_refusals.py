"""Soft prompts that cannot be learned or read: what is said, and what is left behind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from soft_worlds import BRIEF, FAMILIES, KINDS, KNOWN, TRAINING, asked, part

from merkhet.core.errors import InputError
from merkhet.models.loading import load_model
from merkhet.training import LEARNERS
from merkhet.training.soft_prompts import learn_soft_prompts, load_soft_prompts, read_soft_prompts

pytestmark = pytest.mark.usefixtures("one_thread")


def test_questions_that_cannot_be_learned_are_left_out_and_counted(unread, tmp_path: Path) -> None:
    model = load_model(str(unread["masked"]))
    first = TRAINING[0]
    odd = [
        replace(first, question_id="long", prompt="bird " * 40 + first.prompt),
        replace(first, question_id="strange", candidates=(*KINDS, "東")),
        replace(first, question_id="none", answers=("stone",), target="stone"),
    ]
    result = learn_soft_prompts(model, [*TRAINING, *odd], tmp_path / "out", settings=BRIEF)
    assert (result.record["questions"], result.record["learned"]) == (19, 16)
    assert result.record["skipped"] == {
        "no right answer among the candidates": 1,
        "the candidate '東' holds a token that this model does not know": 1,
        "too long": 1,
    }
    with pytest.raises(InputError, match=r"can learn from none of the 1 training questions: too long \(1\)"):
        learn_soft_prompts(model, odd[:1], tmp_path / "none", settings=BRIEF)
    assert not (tmp_path / "none").exists()


def test_settings_that_make_no_sense_are_refused(unread, tmp_path: Path) -> None:
    model = load_model(str(unread["masked"]))
    for settings, reason in (
        ({"epoch": 3}, "learning.settings.epoch does not exist; did you mean 'epochs'"),
        ({"epochs": 0}, "learning.settings.epochs must be an integer ≥ 1, got 0"),
        ({"learning_rate": -1.0}, "learning.settings.learning_rate must be a number > 0, got -1.0"),
        ({"warmup": 2.0}, "learning.settings.warmup must be a number from 0 to 1, got 2.0"),
        ({"loss": "mse"}, "learning.settings.loss must be one of bce, nll, got 'mse'"),
        (
            {"method": "multiple-meen"},
            "learning.settings.method must be one of .*, got 'multiple-meen'; did you mean 'multiple-mean'",
        ),
        ({"method": "pll-sum"}, "learning.settings.method must be one of .*, got 'pll-sum'"),
        ({"compat": "papr"}, "learning.settings.compat must be one of .*, got 'papr'; did you mean 'paper'"),
        ({"negatives": -2}, "learning.settings.negatives must be an integer ≥ -1, got -2"),
        ({"dev_every": 0}, "learning.settings.dev_every must be -1 or an integer ≥ 1, got 0"),
    ):
        with pytest.raises(InputError, match=reason):
            learn_soft_prompts(model, TRAINING, tmp_path / "out", settings=settings)
        assert not list(tmp_path.iterdir())


def test_what_is_wrong_is_said_before_anything_is_done(unread, tmp_path: Path) -> None:
    model = load_model(str(unread["masked"]))
    with pytest.raises(InputError, match="random is a baseline, which reads no soft prompts"):
        learn_soft_prompts(load_model("random"), TRAINING, tmp_path / "out")
    with pytest.raises(InputError, match=r"the question 'It is a \[MASK\] \.' has no soft token .* nothing to learn"):
        plain = replace(TRAINING[0], question_id="plain", prompt="It is a [MASK] .")
        learn_soft_prompts(model, [*TRAINING, plain], tmp_path / "out")
    with pytest.raises(InputError, match=r"the dev question '.*' has <RG1>, which no training question has"):
        learn_soft_prompts(model, TRAINING, tmp_path / "out", dev=asked(part(KNOWN, 2, 3), "{name} <RG1> [MASK] ."))
    with pytest.raises(InputError, match="can learn from none of the 0 training questions: there is none"):
        learn_soft_prompts(model, [], tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds other files"):
        learn_soft_prompts(model, TRAINING, tmp_path / "mine")
    assert [file.name for file in tmp_path.rglob("*")] == ["mine", "thesis.txt"]


def test_prompts_of_another_model_and_broken_ones_are_refused(unread, tmp_path: Path) -> None:
    masked, causal = (
        learn_soft_prompts(load_model(str(unread[family])), TRAINING, tmp_path / family, settings=BRIEF)
        for family in FAMILIES
    )
    model = load_model(str(unread["masked"]))
    with pytest.raises(InputError, match=r"were learned with causal, but masked is another model or has other weights"):
        load_soft_prompts(model, causal)
    with pytest.raises(InputError, match="random is a baseline, which reads no soft prompts"):
        load_soft_prompts(load_model("random"), masked)
    with pytest.raises(InputError, match="nothing was learned there"):
        read_soft_prompts(tmp_path / "nowhere")
    learn_soft_prompts(model, TRAINING, tmp_path / "out", settings=BRIEF)
    (tmp_path / "out" / "soft.safetensors").write_bytes((masked.folder / "soft.safetensors").read_bytes()[:-4])
    with pytest.raises(InputError, match=r"does not match its record. Remove its folder and train again"):
        read_soft_prompts(tmp_path / "out")
    (tmp_path / "out" / "soft.safetensors").unlink()
    with pytest.raises(InputError, match="does not match its record"):
        read_soft_prompts(tmp_path / "out" / "learned.json")
    record = {**masked.record, "learner": "cloze"}
    (tmp_path / "out" / "learned.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="is an artifact of cloze, not soft prompts"):
        read_soft_prompts(tmp_path / "out")


def test_a_folder_is_whole_or_not_there(unread, tmp_path: Path, monkeypatch) -> None:
    model = load_model(str(unread["masked"]))
    learn_soft_prompts(model, TRAINING, tmp_path / "out", settings=BRIEF)
    first = read_soft_prompts(tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["learned.json", "soft.safetensors"]

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(InputError, match="the disk is full"):
        learn_soft_prompts(model, TRAINING, tmp_path / "out", settings=BRIEF, seed=3)
    assert all(torch.equal(first[name], vector) for name, vector in read_soft_prompts(tmp_path / "out").items())
    assert [file.name for file in tmp_path.iterdir()] == ["out"]
    monkeypatch.undo()
    learn_soft_prompts(model, TRAINING, tmp_path / "out", settings=BRIEF, seed=3)
    assert not torch.equal(read_soft_prompts(tmp_path / "out")["<TP1>"], first["<TP1>"])


def test_it_is_found_by_name() -> None:
    assert LEARNERS.get("soft") is learn_soft_prompts
