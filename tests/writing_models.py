"""Tiny models that write, one of each family that is tuned, and what they are tuned on."""

from __future__ import annotations

from dataclasses import replace

import transformers as hf
from tiny_models import CAUSAL, LONGEST, MASKED, SENTENCES, Family, byte_level, wordpiece

from merkhet.core.records import Question

FACTS = (
    ("The capital of France is [MASK].", "Paris"),
    ("The capital of Germany is [MASK].", "Berlin"),
    ("[MASK] is the capital of India.", "New Delhi"),
    ("New York is a city in [MASK].", "the United States"),
    ("An element is a [MASK], a gas or a halogen.", "metal"),
    ('They call it "[MASK]".', "Rome"),
    ("This statement is [MASK]", "true"),
    ("The president (of the [MASK]) presents a prefix.", "press"),
)
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_TEXTS = (*SENTENCES, "Fill in the blank with the missing words. Reply with the missing words alone.", "user assistant")


def _chat(sentences: tuple[str, ...]) -> hf.PreTrainedTokenizerFast:
    tokenizer = byte_level(sentences, False)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokenizer.eos_token = "<|im_end|>"
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.model_max_length = 128
    return tokenizer


_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_DISTILBERT = {"dim": 32, "n_layers": 1, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": LONGEST}
_ELECTRA = {**_SMALL, "embedding_size": 32, "max_position_embeddings": LONGEST, "hidden_dropout_prob": 0.0}
_CHAT = {**_SMALL, "num_key_value_heads": 2, "max_position_embeddings": 128}
_MASKED = {
    "bert": MASKED["bert-uncased"],
    "electra": Family(lambda texts: wordpiece(texts, True), hf.ElectraForMaskedLM, hf.ElectraConfig, _ELECTRA),
    "distilbert": Family(
        lambda texts: wordpiece(texts, False), hf.DistilBertForMaskedLM, hf.DistilBertConfig, _DISTILBERT
    ),
    "albert": MASKED["albert"],
    "roberta": MASKED["roberta"],
    "distilroberta": Family(
        MASKED["roberta"].tokenizer,
        hf.RobertaForMaskedLM,
        hf.RobertaConfig,
        {**MASKED["roberta"].settings, "num_hidden_layers": 1},
    ),
}
# Small weights: a network that begins with large ones is slow to unlearn what it said first.
MASKED_WRITERS = {
    name: replace(family, settings={**family.settings, "initializer_range": 0.1}) for name, family in _MASKED.items()
}
CAUSAL_WRITERS = {
    "gpt2": CAUSAL["gpt2"],
    "llama": CAUSAL["llama"],
    "llama-sentencepiece": CAUSAL["llama-sentencepiece"],
    "chat": Family(_chat, hf.LlamaForCausalLM, hf.LlamaConfig, _CHAT, _TEXTS),
}
WRITERS = {**MASKED_WRITERS, **CAUSAL_WRITERS}


def questions() -> list[Question]:
    """The facts as questions."""
    candidates = tuple(sorted({answer for _, answer in FACTS}))
    return [
        Question(f"q{i}", "completion", prompt, (answer,), answer, candidates)
        for i, (prompt, answer) in enumerate(FACTS)
    ]
