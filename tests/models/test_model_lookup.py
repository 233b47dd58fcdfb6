"""Models by alias, folder, file and hub name; what is wrong is said in one line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from merkhet.core.errors import InputError
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, resolve_model


@pytest.fixture
def folder(model_folders: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(model_folders["bert-uncased"], tmp_path / "mine"))


def refuse(model: str, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        load_model(ModelSpec(model, **options))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_kind_and_name_come_from_the_folder(model_folders: dict[str, Path]) -> None:
    assert resolve_model(ModelSpec(str(model_folders["bert-cased"]))).kind == "masked"
    found = resolve_model(ModelSpec(str(model_folders["gpt2"])))
    assert (found.kind, found.name) == ("causal", "gpt2")
    assert resolve_model(ModelSpec(str(model_folders["gpt2"]), label="mine")).name == "mine"


def test_the_fingerprint_is_of_the_weights_not_of_the_place(folder: Path, model_folders: dict[str, Path]) -> None:
    before = resolve_model(ModelSpec(str(folder))).fingerprint
    assert before == resolve_model(ModelSpec(str(model_folders["bert-uncased"]))).fingerprint
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    assert resolve_model(ModelSpec(str(folder))).fingerprint != before


def test_a_folder_without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    message = refuse(str(folder))
    assert str(folder) in message and "holds no weights" in message


def test_a_folder_without_config(folder: Path) -> None:
    (folder / "config.json").unlink()
    assert "has no config.json" in refuse(str(folder))


def test_a_broken_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"architectures": [')
    assert "config.json: not valid JSON" in refuse(str(folder))


def test_a_config_may_have_infinite_numbers_as_other_programs_write_them(folder: Path) -> None:
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace("{", '{"time_step_limit": [0.0, Infinity],', 1))
    assert resolve_model(ModelSpec(str(folder))).kind == "masked"


def test_an_encoder_without_a_head(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    assert resolve_model(ModelSpec(str(folder))).kind == "encoder"
    assert resolve_model(ModelSpec(str(folder), kind="masked")).kind == "masked"
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertForTokenClassification"]}))
    message = refuse(str(folder))
    assert "names BertForTokenClassification" in message and "kind: encoder" in message
    assert resolve_model(ModelSpec(str(folder), kind="encoder")).kind == "encoder"
    assert "must be 'masked', 'causal' or 'encoder', got 'decoder'" in refuse(str(folder), kind="decoder")


def test_cut_off_weights(folder: Path) -> None:
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    assert "cannot be loaded" in refuse(str(folder))


def test_a_causal_model_asked_as_masked(model_folders: dict[str, Path]) -> None:
    assert "gpt2" in refuse(str(model_folders["gpt2"]), kind="masked")


def test_unknown_names() -> None:
    assert "did you mean 'minilm-mlm'?" in refuse("minilm-mln")
    assert "hub is switched off" in refuse("nobody/nothing")
    assert "there is no model folder" in refuse("./nowhere")


def test_a_broken_gguf(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF but not really")
    assert "broken.gguf" in refuse(str(tmp_path / "broken.gguf"))


def test_foreign_code_runs_only_when_asked_for(folder: Path) -> None:
    marker = folder.parent / "ran"
    (folder / "evil.py").write_text(f"open({str(marker)!r}, 'w').close()\nclass Evil: pass\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil", "AutoModelForMaskedLM": "evil.Evil"}}
    (folder / "config.json").write_text(json.dumps(config))
    refuse(str(folder))
    assert not marker.exists()


def test_listing_and_resolving_need_no_torch(model_folders: dict[str, Path]) -> None:
    code = (
        "import sys; from merkhet.models import MODELS\n"
        "from merkhet.models.model_lookup import ModelSpec, resolve_model; list(MODELS);"
        f"resolve_model(ModelSpec({str(model_folders['gpt2'])!r})); resolve_model(ModelSpec('smollm2-135m'));"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


THEIR_CODE = """
import pathlib

from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

pathlib.Path("{marker}").touch()


class TheirConfig(BertConfig):
    model_type = "theirs"


class TheirModel(BertForMaskedLM):
    config_class = TheirConfig


class TheirTokenizer(BertTokenizerFast):
    pass
"""


def test_a_model_cannot_ask_on_standard_input_whether_its_code_may_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers asks so, unless it is told; ``yes |`` would answer."""
    marker = tmp_path / "ran"
    (folder / "theirs.py").write_text(THEIR_CODE.format(marker=marker))
    names = {"AutoConfig": "theirs.TheirConfig", "AutoModelForMaskedLM": "theirs.TheirModel"}
    names |= {"AutoTokenizer": ["theirs.TheirTokenizer", "theirs.TheirTokenizer"]}
    for name, more in (("config.json", {"model_type": "theirs"}), ("tokenizer_config.json", {})):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**content, **more, "auto_map": names}))
    monkeypatch.setattr("builtins.input", lambda *prompt: "y")
    assert "custom code" in refuse(str(folder))
    untrained = resolve_model(ModelSpec(f"random:{folder}")).instance
    with pytest.raises(InputError, match="custom code"):
        untrained.make((), 0, 0)
    assert not marker.exists()
