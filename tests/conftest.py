"""Small real models, made once a session, and the command line as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SENTENCES = [
    "The capital of France is Paris.",
    "The capital of Germany is Berlin.",
    "The capital of Italy is Rome.",
    "New York is a city in the United States.",
    "New Delhi is the capital of India.",
    "An element is a metal, a gas or a halogen.",
    "This statement is true or false.",
] * 4


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data beside the repository; tests that need it skip where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder shared/ with real data is not beside the repository")
    return folder


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny models with random weights, one of each family, in the Hugging Face layout."""
    import torch
    import transformers as hf
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    folder = tmp_path_factory.mktemp("models")
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}

    def wordpiece(lowercase: bool) -> hf.PreTrainedTokenizerFast:
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        tokenizer.train_from_iterator(SENTENCES, trainers.WordPieceTrainer(vocab_size=160, special_tokens=special))
        ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
        tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ids)
        names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
        return hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names)

    def byte_level(masked: bool) -> hf.PreTrainedTokenizerFast:
        special = ["<s>", "<pad>", "</s>", "<mask>"] if masked else ["<|endoftext|>"]
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=360, special_tokens=special, initial_alphabet=alphabet)
        tokenizer.train_from_iterator(SENTENCES, trainer)
        if masked:
            tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=False)
            names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "mask_token": "<mask>"}
        else:
            names = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
        return hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names)

    made = {
        "bert-uncased": (wordpiece(True), hf.BertForMaskedLM, hf.BertConfig, {**small, "max_position_embeddings": 64}),
        "bert-cased": (wordpiece(False), hf.BertForMaskedLM, hf.BertConfig, {**small, "max_position_embeddings": 64}),
        "roberta": (
            byte_level(True),
            hf.RobertaForMaskedLM,
            hf.RobertaConfig,
            {**small, "max_position_embeddings": 66, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
        ),
        "gpt2": (
            byte_level(False),
            hf.GPT2LMHeadModel,
            hf.GPT2Config,
            {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
        ),
        "llama": (
            byte_level(False),
            hf.LlamaForCausalLM,
            hf.LlamaConfig,
            {**small, "num_key_value_heads": 2, "max_position_embeddings": 64},
        ),
    }
    paths = {}
    for seed, (name, (tokenizer, family, configuration, settings)) in enumerate(made.items()):
        torch.manual_seed(seed)
        network = family(configuration(vocab_size=len(tokenizer), initializer_range=0.4, **settings))
        paths[name] = folder / name
        network.save_pretrained(paths[name])
        tokenizer.save_pretrained(paths[name])
    return paths


@pytest.fixture
def gnomon(tmp_path: Path):
    """The command line in its own process: returns what it printed and its exit code."""

    def call(*arguments: object, cwd: Path = tmp_path, check: int | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "gnomon", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            timeout=300,
        )
        if check is not None:
            assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return call
