"""What asking costs at scale: questions a second of models of real sizes, at two numbers of questions.

Weights are random (they change no rate), the vocabulary is learned from the questions' own words. Each question has
one slot; its candidates are all answers of its relation, as in the suite kmir, or four choices. Needs torch alone, and
runs on whatever device there is: ``PYTHONPATH=src python bench/asking_scale.py``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import tempfile
import time
from pathlib import Path
from typing import Any

MODELS: dict[str, dict[str, Any]] = {
    "masked 12 x 768": {"kind": "masked", "layers": 12, "width": 768, "heads": 12, "inner": 3072},
    "causal 24 x 2048": {"kind": "causal", "layers": 24, "width": 2048, "heads": 16, "inner": 5632},
    "causal 32 x 4096": {"kind": "causal", "layers": 32, "width": 4096, "heads": 32, "inner": 11008},
}
QUICK = {
    "masked 2 x 64": {"kind": "masked", "layers": 2, "width": 64, "heads": 2, "inner": 128},
    "causal 2 x 64": {"kind": "causal", "layers": 2, "width": 64, "heads": 2, "inner": 128},
}
CANDIDATES = {"of 1,000 answers": 1000, "of four choices": 4}
SYLLABLES = [first + second for first in "bdfglmnprst" for second in "aeiou"]
TEMPLATES = ("{} was born in [MASK].", "The home town of {} is [MASK].", "It is [MASK] where {} was born.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, nargs=2, default=[2000, 8000])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    models = QUICK if given.quick else {name: MODELS[name] for name in given.models}
    sizes = [100, 400] if given.quick else given.questions
    rows = []
    for name, shape in models.items():
        with tempfile.TemporaryDirectory(prefix="merkhet-asking-") as folder:
            save_model(shape, Path(folder))
            rows += measure(name, Path(folder), sizes)
    if given.results:
        given.results.mkdir(parents=True, exist_ok=True)
        (given.results / "asking_scale.json").write_text(json.dumps(rows, indent=2) + "\n")


def words(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(rng.choices(SYLLABLES, k=rng.randint(2, 4))).capitalize()] = None
    return list(found)


def make_questions(count: int, candidates: int) -> list[Any]:
    from merkhet.core.records import Question

    rng = random.Random(count)
    places, people = words(1000, 1), words(count, 2)
    made = []
    for number, person in enumerate(people):
        offered = tuple(places) if candidates == len(places) else tuple(rng.sample(places, candidates))
        answer = rng.choice(offered)
        prompt = TEMPLATES[number % len(TEMPLATES)].format(f"{person} {people[(number * 7) % count]}")
        made.append(Question(str(number), "completion", prompt, (answer,), answer, offered))
    return sorted(made, key=lambda one: (len(one.prompt), one.question_id))


def save_model(shape: dict[str, Any], folder: Path) -> None:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    device = "cuda" if torch.cuda.is_available() else "cpu"
    texts = [
        template.format(name) for name, template in zip(words(20_000, 3), itertools.cycle(TEMPLATES), strict=False)
    ]
    masked = shape["kind"] == "masked"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] if masked else ["<s>", "</s>"]
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]") if masked else models.BPE())
    if masked:
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=8000, special_tokens=special)
    else:
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=8000, special_tokens=special, initial_alphabet=alphabet)
    backend.train_from_iterator(texts, trainer)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=False))
    if masked:
        numbers = [(one, backend.token_to_id(one)) for one in ("[CLS]", "[SEP]")]
        backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=numbers)
    else:
        names = {"bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=512, **names).save_pretrained(folder)
    common = {
        "vocab_size": 32_000,
        "hidden_size": shape["width"],
        "num_hidden_layers": shape["layers"],
        "num_attention_heads": shape["heads"],
        "intermediate_size": shape["inner"],
    }
    torch.manual_seed(0)
    with torch.device(device):
        torch.set_default_dtype(torch.bfloat16 if device == "cuda" else torch.float32)
        network = BertForMaskedLM(BertConfig(**common)) if masked else LlamaForCausalLM(LlamaConfig(**common))
        torch.set_default_dtype(torch.float32)
    network.save_pretrained(folder)


def measure(name: str, folder: Path, sizes: list[int]) -> list[dict[str, Any]]:
    import torch

    from merkhet.models.loading import load_model
    from merkhet.models.model_lookup import ModelSpec
    from merkhet.probes.rank import rank_candidates

    started = time.perf_counter()
    model: Any = load_model(ModelSpec(str(folder)))
    loading = time.perf_counter() - started
    parameters = sum(one.numel() for one in model.model.parameters())
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} threads"
    print(f"{name}: {parameters / 1e6:,.0f} M parameters, loaded in {loading:.1f} s, {where}", flush=True)
    rows = []
    for about, candidates in CANDIDATES.items():
        list(rank_candidates(model, make_questions(sizes[0] // 4, candidates)))
        seconds = []
        for size in sizes:
            questions = make_questions(size, candidates)
            started = time.perf_counter()
            answers = list(rank_candidates(model, questions))
            seconds.append(time.perf_counter() - started)
            assert len(answers) == size and not any(one.unusable for one in answers)
            rows.append({"model": name, "candidates": candidates, "questions": size, "seconds": seconds[-1]})
        exponent = math.log(seconds[1] / seconds[0]) / math.log(sizes[1] / sizes[0])
        hours = seconds[1] / sizes[1] * 1e6 / 3600
        print(
            f"  {about}: {sizes[0]:,} in {seconds[0]:.2f} s, {sizes[1]:,} in {seconds[1]:.2f} s: "
            f"{sizes[1] / seconds[1]:,.0f} questions/s, n^{exponent:.2f}, {hours:.2f} hours a million",
            flush=True,
        )
    return rows


if __name__ == "__main__":
    main()
