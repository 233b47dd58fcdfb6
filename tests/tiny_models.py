"""Tiny models, one of each family: tokenizers built as the family builds them, and networks, all trained here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SENTENCES = (
    "The capital of France is Paris.",
    "The capital of Germany is Berlin.",
    "The capital of Italy is Rome.",
    "New York is a city in the United States.",
    "New Delhi is the capital of India.",
    "An element is a metal, a gas or a halogen.",
    "This statement is true or false.",
    "Zürich and São Paulo are cities.",
    "The president (of the press) presents a prefix.",
    'They call it "Rome", and it is said to be old.',
)
CHINESE_SENTENCES = (
    "法国的首都是巴黎。",
    "德国的首都是柏林。",
    "意大利的首都是罗马。",
    "北京是中国的首都，也是一座城市。",
    "东京是日本的首都，也是一座城市。",
    "纽约是美国的一座城市。",
    "金属和气体是元素。",
    "这句话是真的还是假的？",
)
LONGEST = 64
_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_BERT_NAMES = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), _BERT, strict=True))
_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_LLAMA = {**_SMALL, "num_key_value_heads": 2, "max_position_embeddings": LONGEST}
_ROBERTA = {**_SMALL, "max_position_embeddings": LONGEST + 2, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}


@dataclass(frozen=True)
class Family:
    """How a family is built: its tokenizer, its network, the network's settings and what both are trained on."""

    tokenizer: Callable[[tuple[str, ...]], hf.PreTrainedTokenizerFast]
    network: Any
    configuration: Any
    settings: dict[str, int | float | None]
    sentences: tuple[str, ...] = SENTENCES


def wordpiece(sentences: tuple[str, ...], lowercase: bool) -> hf.PreTrainedTokenizerFast:
    """As BERT has it; Chinese characters are words of their own."""
    normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    # The trainer numbers pieces within words in no fixed order, unless they are named before.
    inner = sorted(
        {f"##{letter}" for text in sentences for letter in normalizer.normalize_str(text) if letter.isalpha()}
    )
    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learner.normalizer, learner.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=240, special_tokens=[*_BERT, *inner], show_progress=False)
    learner.train_from_iterator(sentences * 4, trainer)
    tokenizer = Tokenizer(models.WordPiece(learner.get_vocab(), unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(list(_BERT))
    return _finished(tokenizer, "[CLS] $A [SEP]", **_BERT_NAMES)


def byte_level(sentences: tuple[str, ...], masked: bool) -> hf.PreTrainedTokenizerFast:
    """As GPT-2 and RoBERTa have it: bytes, a blank belongs to the word after it, and no token is unknown."""
    mask = AddedToken("<mask>", lstrip=True, special=True)
    special = ["<s>", "<pad>", "</s>", mask] if masked else ["<|endoftext|>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(sentences * 4, trainer)
    if not masked:
        return _finished(tokenizer, None, bos_token="<|endoftext|>", eos_token="<|endoftext|>")
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return _finished(tokenizer, None, **_ends(pad_token="<pad>", mask_token=mask))


def byte_level_lines(sentences: tuple[str, ...]) -> hf.PreTrainedTokenizerFast:
    """As Llama 3 has it: a mark and the end of its line may be one token."""
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, as_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    special, alphabet = ["<|begin_of_text|>", "<|end_of_text|>"], pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(["\n".join(sentences), "\n\n".join(sentences)] * 4, trainer)
    return _finished(tokenizer, "<|begin_of_text|> $A", bos_token=special[0], eos_token=special[1])


def unigram_albert(sentences: tuple[str, ...]) -> hf.PreTrainedTokenizerFast:
    """As ALBERT has it: quotes made plain, accents and case taken off."""
    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD()]
    normalizer = normalizers.Sequence([*steps, normalizers.StripAccents(), normalizers.Lowercase()])
    mask = AddedToken("[MASK]", lstrip=True, special=True)
    tokenizer = _unigram(sentences, normalizer, ["<pad>", "<unk>", "[CLS]", "[SEP]", mask])
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return _finished(tokenizer, "[CLS] $A [SEP]", **names, mask_token=mask)


def unigram_roberta(sentences: tuple[str, ...]) -> hf.PreTrainedTokenizerFast:
    """As XLM-RoBERTa has it: a Chinese sentence is one word."""
    mask = AddedToken("<mask>", lstrip=True, special=True)
    tokenizer = _unigram(sentences, normalizers.NFKC(), ["<s>", "<pad>", "</s>", "<unk>", mask])
    return _finished(tokenizer, "<s> $A </s>", **_ends(pad_token="<pad>", unk_token="<unk>", mask_token=mask))


def unigram_t5(sentences: tuple[str, ...]) -> hf.PreTrainedTokenizerFast:
    """As T5 has it: no token before a text, and one after it."""
    tokenizer = _unigram(sentences, None, ["<pad>", "</s>", "<unk>"])
    return _finished(tokenizer, "$A </s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def sentencepiece_bpe(sentences: tuple[str, ...], over_blanks: bool = False) -> hf.PreTrainedTokenizerFast:
    """As Llama 2 has it: merges over the whole text as one word, and bytes for what is in no piece.

    With ``over_blanks`` some of its pieces hold several words.
    """
    learner = Tokenizer(models.BPE())
    if over_blanks:
        learner.normalizer = normalizers.Replace(" ", "▁")
    else:
        learner.pre_tokenizer = pre_tokenizers.Metaspace()
    learner.train_from_iterator(sentences * 4, trainers.BpeTrainer(vocab_size=200, show_progress=False))
    learnt = json.loads(learner.to_str())["model"]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *learnt["vocab"]]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    merges = [tuple(merge) for merge in learnt["merges"]]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    return _finished(tokenizer, "<s> $A", bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def _unigram(sentences: tuple[str, ...], normalizer: Any, special: list[str | AddedToken]) -> Tokenizer:
    """Unigram over words that begin with ▁."""
    learner = Tokenizer(models.Unigram())
    if normalizer is not None:
        learner.normalizer = normalizer
    learner.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    learner.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    # Beginnings and ends of words too: only what stands in several texts becomes a piece.
    words = sorted({word for sentence in sentences for word in sentence.split()})
    ends = [end for word in words for cut in range(1, len(word)) for end in (word[:cut], word[cut:])]
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=special, unk_token="<unk>", max_piece_length=8, show_progress=False
    )
    learner.train_from_iterator([*sentences * 4, *words, *ends], trainer)
    # Last digits, and the order of letters that only complete the alphabet, are not the same every time.
    learnt = [tuple(one) for one in json.loads(learner.to_str())["model"]["vocab"]]
    least = min(score for _, score in learnt)
    scores = {piece: round(least if score < least + 0.1 else score, 6) for piece, score in learnt[len(special) :]}
    pieces = sorted(scores.items(), key=lambda one: (-one[1], one[0]))
    learner.model = models.Unigram([*learnt[: len(special)], *pieces], special.index("<unk>"), False)
    return learner


def _ends(**others: Any) -> dict[str, Any]:
    return {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", **others}


def _finished(tokenizer: Tokenizer, template: str | None, **names: Any) -> hf.PreTrainedTokenizerFast:
    if template is not None:
        special = [(name, tokenizer.token_to_id(name)) for name in template.split() if name != "$A"]
        tokenizer.post_processor = processors.TemplateProcessing(template, special_tokens=special)
    return hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LONGEST, **names)


_BERT_NETWORK = (hf.BertForMaskedLM, hf.BertConfig, {**_SMALL, "max_position_embeddings": LONGEST})
_LLAMA_NETWORK = (hf.LlamaForCausalLM, hf.LlamaConfig, _LLAMA)
_BOTH = (*CHINESE_SENTENCES, *SENTENCES)
MASKED = {
    "bert-uncased": Family(lambda texts: wordpiece(texts, True), *_BERT_NETWORK),
    "bert-cased": Family(lambda texts: wordpiece(texts, False), *_BERT_NETWORK),
    "roberta": Family(lambda texts: byte_level(texts, True), hf.RobertaForMaskedLM, hf.RobertaConfig, _ROBERTA),
    "albert": Family(
        unigram_albert,
        hf.AlbertForMaskedLM,
        hf.AlbertConfig,
        {**_SMALL, "embedding_size": 16, "max_position_embeddings": LONGEST},
    ),
    "xlm-roberta": Family(unigram_roberta, hf.XLMRobertaForMaskedLM, hf.XLMRobertaConfig, _ROBERTA, _BOTH),
    "bert-chinese": Family(lambda texts: wordpiece(texts, True), *_BERT_NETWORK, _BOTH),
}
CAUSAL = {
    "gpt2": Family(
        lambda texts: byte_level(texts, False),
        hf.GPT2LMHeadModel,
        hf.GPT2Config,
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": LONGEST},
    ),
    "llama": Family(lambda texts: byte_level(texts, False), *_LLAMA_NETWORK),
    "llama-sentencepiece": Family(sentencepiece_bpe, *_LLAMA_NETWORK, _BOTH),
    "t5-like": Family(unigram_t5, *_LLAMA_NETWORK),
}
FAMILIES = {**MASKED, **CAUSAL}


def build_models(folder: Path, families: Mapping[str, Family] = FAMILIES) -> dict[str, Path]:
    """Every family in the Hugging Face layout, by its name: the same weights every time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # Threads only wait for each other where so little is to be done.
    try:
        for seed, (name, family) in enumerate(families.items()):
            torch.manual_seed(seed)
            tokenizer = family.tokenizer(family.sentences)
            ids = {f"{part}_token_id": getattr(tokenizer, f"{part}_token_id") for part in ("bos", "eos", "pad")}
            settings = {**ids, "initializer_range": 0.4, **family.settings, "vocab_size": len(tokenizer)}
            network = family.network(family.configuration(**settings))
            _train(network, tokenizer, family.sentences)
            network.save_pretrained(folder / name)
            tokenizer.save_pretrained(folder / name)
    finally:
        torch.set_num_threads(threads)
    return {name: folder / name for name in families}


def _train(network: Any, tokenizer: hf.PreTrainedTokenizerFast, sentences: tuple[str, ...], steps: int = 30) -> None:
    """Some steps on all sentences: the hidden tokens of a masked model, the next token of a causal one."""
    rows = [torch.tensor(tokenizer(text)["input_ids"]) for text in sentences]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    filled = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    network.train()
    losses = []
    for _ in range(steps):
        if tokenizer.mask_token_id is None:
            logits = network(input_ids=ids, attention_mask=filled).logits[:, :-1]
            learnt, wanted = filled[:, 1:].bool(), ids[:, 1:]
        else:
            learnt, wanted = filled.bool() & (torch.rand(ids.shape) < 0.3), ids
            hidden = ids.masked_fill(learnt, tokenizer.mask_token_id)
            logits = network(input_ids=hidden, attention_mask=filled).logits
        loss = torch.nn.functional.cross_entropy(logits[learnt], wanted[learnt])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    network.eval()
    assert losses[-1] < losses[0], f"the network learnt nothing: {losses[0]:.2f} to {losses[-1]:.2f}"
