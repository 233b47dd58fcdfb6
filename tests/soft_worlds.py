"""A small world of names and kinds, and small models that have read about half of it."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from merkhet.core.records import Question
from merkhet.metrics.ranks import expected_ranks

KINDS = ("bird", "big fish", "tree", "old house", "river", "song", "small town", "metal")
STATEMENTS = ("{name} is a {kind} .", "{name} belongs to the {kind} s .")
OTHERS = ("many people know {name} .", "{name} is here .", "this is a {kind} .", "one sees the {kind} s .")
SOFT = "{name} <TP1> <TP2> [MASK] ."
EACH = 8
BRIEF = {"epochs": 3, "learning_rate": 0.05}
SETTINGS = {"epochs": 40, "learning_rate": 0.1}
FAMILIES = ("masked", "causal")


def kinds_of(part: str) -> dict[str, str]:
    """So many names of each kind; the model reads about those that are known."""
    syllables = ("ba", "do", "ki", "lu", "me", "na", "po", "ri")
    names = ["".join(parts) + ("x" if part == "known" else "th") for parts in itertools.product(syllables, repeat=3)]
    chosen = random.Random(part).sample(names, EACH * len(KINDS))
    return {name: KINDS[i % len(KINDS)] for i, name in enumerate(chosen)}


KNOWN, UNKNOWN = kinds_of("known"), kinds_of("unknown")


def asked(facts: dict[str, str], prompt: str = SOFT) -> list[Question]:
    return [Question(name, "TP", prompt.format(name=name), (kind,), kind, KINDS) for name, kind in facts.items()]


def part(facts: dict[str, str], first: int, last: int) -> dict[str, str]:
    return dict(list(facts.items())[first * len(KINDS) : last * len(KINDS)])


TRAINING, DEV, REST = asked(part(KNOWN, 0, 2)), asked(part(KNOWN, 2, 3)), asked(part(KNOWN, 3, EACH))


def pretrained(folder: Path, masked: bool, steps: int = 300) -> Path:
    """A small model that has read the statements about known names, and every name in other sentences."""
    torch.manual_seed(1)
    draw = random.Random(2)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    texts = [text.replace("{", " ").replace("}", " ") for text in (*STATEMENTS, *OTHERS, *KINDS, *KNOWN, *UNKNOWN)]
    words = sorted({word for text in (*texts, "[ X Y ] therefore , :") for word in text.lower().split()})
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    ends = "[CLS] $A [SEP]" if masked else "[CLS] $A"
    backend.post_processor = processors.TemplateProcessing(ends, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "bos_token": "[CLS]", "sep_token": "[SEP]"}
    if masked:
        names["mask_token"] = "[MASK]"
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=backend, **names, model_max_length=40)
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    size |= {"vocab_size": len(vocabulary), "max_position_embeddings": 40, "initializer_range": 0.1}
    if masked:
        network = hf.BertForMaskedLM(hf.BertConfig(**size, hidden_dropout_prob=0.0))
    else:
        network = hf.LlamaForCausalLM(hf.LlamaConfig(**size, num_key_value_heads=4, bos_token_id=2, eos_token_id=3))
    stated = [text.format(name=name, kind=kind) for name, kind in KNOWN.items() for text in STATEMENTS]
    everyone = [*KNOWN, *UNKNOWN]
    others = [t.format(name=name, kind=KINDS[i % 8]) for i, name in enumerate(everyone) for t in OTHERS]
    rows = [torch.tensor(tokenizer(text)["input_ids"]) for text in (*stated, *others)]
    answers = torch.tensor(sorted({vocabulary[word] for kind in KINDS for word in kind.split()}))
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3)
    falling = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    for _ in range(steps):
        some = draw.choices(range(len(stated)), k=48) + draw.choices(range(len(stated), len(rows)), k=16)
        ids = torch.nn.utils.rnn.pad_sequence([rows[i] for i in some], batch_first=True)
        filled = ids != 0
        if masked:
            hidden = filled & (ids > 4) & (torch.rand(ids.shape) < 0.3)
            hidden[:48] = torch.isin(ids[:48], answers)
            logits = network(input_ids=ids.masked_fill(hidden, 4), attention_mask=filled.long()).logits
            loss = torch.nn.functional.cross_entropy(logits[hidden], ids[hidden])
        else:
            logits = network(input_ids=ids, attention_mask=filled.long()).logits[:, :-1]
            loss = torch.nn.functional.cross_entropy(logits[filled[:, 1:]], ids[:, 1:][filled[:, 1:]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        falling.step()
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def mrr(model, questions: list[Question]) -> float:
    method = "multiple-mean" if model.kind == "masked" else "mean"
    found = []
    for result in model.score_candidates(questions, (method,)):
        golds = np.flatnonzero([text in questions[result.index].answers for text in KINDS])
        found.append(1 / expected_ranks(result.by_method[method], golds)[0].min())
    assert len(found) == len(questions)
    return float(np.mean(found))
