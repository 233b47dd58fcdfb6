"""Encoders: networks without a head are found, loaded and compared, and say why they cannot be asked otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import transformers as hf
from all_cases import check_all
from sense_questions import ENGLISH, cosines_one_by_one, similarities
from tiny_models import LONGEST

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models._network import EncoderModel
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.models.protocol import Model
from merkhet.probes.compare import compare_senses
from merkhet.probes.fill import fill_slots
from merkhet.probes.rank import rank_candidates
from merkhet.probes.write import write_answers

_SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_LONG = {"max_position_embeddings": LONGEST + 2}
NETWORKS = {
    "BertModel": ("bert-uncased", hf.BertConfig(**_SIZE, max_position_embeddings=LONGEST)),
    "RobertaModel": ("roberta", hf.RobertaConfig(**_SIZE, **_LONG, pad_token_id=1)),
    "XLMRobertaModel": ("xlm-roberta", hf.XLMRobertaConfig(**_SIZE, **_LONG, pad_token_id=1)),
    "DistilBertModel": ("bert-cased", hf.DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=64)),
    "MPNetModel": ("roberta", hf.MPNetConfig(**_SIZE, **_LONG, pad_token_id=1)),
    "ModernBertModel": (
        "bert-cased",
        hf.ModernBertConfig(**_SIZE, max_position_embeddings=LONGEST, pad_token_id=0, reference_compile=False),
    ),
    "GPT2Model": ("gpt2", hf.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=LONGEST)),
    "LlamaModel": ("llama", hf.LlamaConfig(**_SIZE, num_key_value_heads=2, max_position_embeddings=LONGEST)),
}


def saved(name: str, model_folders: dict[str, Path], folder: Path) -> Path:
    """A network without a head, with the tokenizer of a family."""
    family, config = NETWORKS[name]
    tokenizer = hf.AutoTokenizer.from_pretrained(model_folders[family])
    config.vocab_size = len(tokenizer)
    config.initializer_range = 0.4
    hf.set_seed(5)
    network = getattr(hf, name)(config)
    network.save_pretrained(folder / name)
    tokenizer.save_pretrained(folder / name)
    return folder / name


def test_a_network_without_a_head_is_compared(model_folders: dict[str, Path], tmp_path: Path) -> None:
    check_all(lambda name: check_network(name, model_folders, tmp_path), NETWORKS)


def check_network(name: str, model_folders: dict[str, Path], tmp_path: Path) -> None:
    folder = saved(name, model_folders, tmp_path)
    assert resolve_model(ModelSpec(str(folder))).kind == "encoder"
    model = load_model(str(folder))
    assert isinstance(model, Model) and isinstance(model, EncoderModel)
    assert model.describe()["architecture"] == name
    assert model.word_embeddings.is_causal == (name in ("GPT2Model", "LlamaModel"))
    network = hf.AutoModel.from_pretrained(folder).eval()
    found = similarities(model, ENGLISH, "word@all")
    for index, question in enumerate(ENGLISH):
        for method, layer in (("word@0", 0), ("word@1", 1), ("word", -1)):
            oracle = cosines_one_by_one(network, model.tokenizer, question, "word", layer)
            assert found[index][method] == pytest.approx(oracle, abs=1e-5), (question.question_id, method)


def test_a_model_with_a_head_may_be_asked_without_it(model_folders: dict[str, Path]) -> None:
    folder = str(model_folders["bert-cased"])
    masked, encoder = load_model(folder), load_model(ModelSpec(folder, kind="encoder"))
    assert (masked.kind, encoder.kind) == ("masked", "encoder")
    assert masked.fingerprint != encoder.fingerprint
    assert masked.comparing_methods == encoder.comparing_methods
    assert similarities(masked, ENGLISH, "word@all", "masked") == similarities(encoder, ENGLISH, "word@all", "masked")


def test_an_encoder_says_why_it_cannot_be_asked(model_folders: dict[str, Path]) -> None:
    encoder = load_model(ModelSpec(str(model_folders["bert-cased"]), kind="encoder"))
    cloze = [Question(name, "t", "It is [MASK].", ("Rome",), "Rome", ("Rome", "Paris")) for name in ("one", "two")]
    for probe, reason in (
        (rank_candidates, "an encoder has no head to score candidates with"),
        (fill_slots, "an encoder model has no mask to fill"),
        (write_answers, "a model of the kind encoder writes no answers"),
    ):
        answers = list(probe(encoder, cloze))
        assert [(answer.question_id, answer.unusable) for answer in answers] == [("one", reason), ("two", reason)]
        assert all(answer.method and not answer.ranked for answer in answers)
    (ranked, _) = rank_candidates(encoder, cloze[:1], ("sum", "mean"))
    assert ranked.method == "sum"
    assert all(answer.unusable is None for answer in compare_senses(encoder, ENGLISH))


def test_an_encoder_without_a_mask_hides_no_words(model_folders: dict[str, Path]) -> None:
    encoder = load_model(ModelSpec(str(model_folders["gpt2"]), kind="encoder"))
    with pytest.raises(InputError, match="has no method 'masked'"):
        list(compare_senses(encoder, ENGLISH, ("masked",)))


@pytest.mark.parametrize("name", ["T5Model", "BartModel"])
def test_an_encoder_with_a_decoder_is_refused(name: str, model_folders: dict[str, Path], tmp_path: Path) -> None:
    size = {"d_model": 16, "vocab_size": 400}
    if name == "T5Model":
        network = hf.T5Model(hf.T5Config(**size, d_kv=8, d_ff=16, num_layers=1, num_heads=2))
    else:
        network = hf.BartModel(hf.BartConfig(**size, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=16))
    network.save_pretrained(tmp_path)
    hf.AutoTokenizer.from_pretrained(model_folders["roberta"]).save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [name]
    with pytest.raises(InputError, match="is an encoder-decoder model") as caught:
        load_model(str(tmp_path))
    assert "\n" not in str(caught.value)
