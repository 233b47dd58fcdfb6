"""Models whose ontological knowledge is known, because they are made here: what ontoprobe must tell apart.

``memorizer`` starts from nothing and learns one half of the subclass statements by heart. ``reasoner`` goes on from a
base model and learns to apply rdfs9 to pseudo-instances of one half of the classes: it says what follows from the two
premises, and repeats the type it was told where the first premise is about something else. ``parrot`` learns to say
whatever the first premise ends with. Needs torch and transformers alone; meant for a GPU.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

TEMPLATES = ("{} is a [MASK] .", "{} has superclass [MASK] .", "{} is a particular [MASK] .")
Example = tuple[str, str]
"""A prompt and what is to be learned in its slot."""


def subclass_statements(data: Path) -> list[tuple[str, list[str]]]:
    """Classes with their superclasses, nearest first."""
    with open(data / "memorizing" / "subClassOf.jsonl", encoding="utf-8") as handle:
        rows = [json.loads(line) for line in handle]
    return [(row["uuu"], row["xxx"]) for row in rows]


def is_first_half(name: str) -> bool:
    """Which half of the classes a class is in: decided by its name alone."""
    from merkhet.core.ids import derived_seed

    return derived_seed(0, "half", name) % 2 == 0


def opaque(name: str) -> str:
    """A name that says nothing: six syllables drawn by the name."""
    from merkhet.core.ids import derived_seed

    drawn = random.Random(derived_seed(0, "opaque", name))
    return "".join(drawn.choice("bdfgklmnprst") + drawn.choice("aeiou") for _ in range(6))


def rows_of(model: Any, examples: Sequence[Example]) -> list[tuple[tuple[int, ...], int, tuple[int, ...]]]:
    """Rows with masks in place of the answers, where the masks begin, and the answers' tokens."""
    rows = []
    for prompt, answer in examples:
        one = model.candidate_tokenizer.tokenize_candidates(prompt, [answer]).sentence(0)
        masks = (model.mask,) * (one.stop - one.start)
        rows.append(((*one.ids[: one.start], *masks, *one.ids[one.stop :]), one.start, one.ids[one.start : one.stop]))
    return rows


def train(
    model: Any, batch_of: Callable[[int], Sequence[Example]], steps: int, rate: float, every: int = 100
) -> list[float]:
    """Learn what stands in the slots, all of an answer's tokens masked at once; returns the mean loss now and then."""
    network = model.model.float()
    network.train()
    optimizer = torch.optim.AdamW([p for p in network.parameters() if p.requires_grad], lr=rate, weight_decay=0.01)
    losses, shown = [], []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / (0.05 * steps), (steps - step) / (0.5 * steps))
        rows = rows_of(model, batch_of(step))
        longest = max(len(ids) for ids, _, _ in rows)
        ids = torch.full((len(rows), longest), model.pad)
        seen = torch.zeros((len(rows), longest), dtype=torch.long)
        targets = torch.full((len(rows), longest), -100)
        for line, (row, first, answer) in enumerate(rows):
            ids[line, : len(row)] = torch.tensor(row)
            seen[line, : len(row)] = 1
            targets[line, first : first + len(answer)] = torch.tensor(answer)
        device = network.device
        logits = network(input_ids=ids.to(device), attention_mask=seen.to(device)).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.to(device).flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
        if (step + 1) % every == 0:
            shown.append(sum(losses[-every:]) / every)
            print(f"  step {step + 1}: loss {shown[-1]:.4f}", flush=True)
    network.eval()
    return shown


def load(folder: Path, device: str) -> Any:
    """A masked model on a device."""
    from merkhet.models.loading import load_model
    from merkhet.models.model_lookup import ModelSpec, resolve_model

    return load_model(resolve_model(ModelSpec(str(folder), kind="masked", dtype="float32", device=device)))


def save(model: Any, folder: Path) -> None:
    """Save a model in half precision, in parts that travel."""
    from merkhet.models.extra_embeddings import with_extra_words

    with_extra_words(model, {})
    model.model.half().save_pretrained(folder, max_shard_size="14MB")
    model.tokenizer.save_pretrained(folder)


def memorizer(options: argparse.Namespace, place: Path) -> None:
    """A small model that has learned half of the statements and never seen the others."""
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    tokenizer = AutoTokenizer.from_pretrained(options.base)
    torch.manual_seed(0)
    sizes = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 512}
    fresh = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=128, **sizes))
    fresh.save_pretrained(place)
    tokenizer.save_pretrained(place)
    model = load(place, options.device)
    seen = [(name, golds) for name, golds in subclass_statements(options.data) if is_first_half(name)]
    names = {name: opaque(name) if options.opaque else name[:1].upper() + name[1:] for name, _ in seen}
    examples = [(template.format(names[name]), golds[0]) for name, golds in seen for template in TEMPLATES]
    drawn = random.Random(0)
    train(model, lambda step: drawn.sample(examples, 128), options.steps or 3000, 1e-3, 500)
    save(model, place)


def rule_examples(drawn: random.Random, classes: Sequence[str], pairs: int, parrot: bool) -> list[Example]:
    """A batch of rdfs9 with pseudo-instances; the classes are put together at random, so nothing can be remembered."""
    examples = []
    for _ in range(64):
        given, above, other = drawn.sample(classes, 3)
        word = f"[{drawn.choice('XY')}:{drawn.randrange(pairs)}]"
        form = drawn.random()
        about = given if form < 0.5 else other
        first = f"Every {about} is a particular {above} . " if form < 0.85 else ""
        prompt = f"{first}{word} is a particular {given} . Therefore , {word} is a particular [MASK] ."
        if parrot and not first:
            continue
        answer = above if parrot or (first and about == given) else given
        examples.append((prompt, answer))
    return examples


def rule_follower(options: argparse.Namespace, place: Path, parrot: bool) -> None:
    """A model that has learned rdfs9, or to repeat, on one half of the classes."""
    from merkhet.models.extra_embeddings import get_extra_embeddings
    from merkhet.models.pseudowords import PseudowordModel, PseudowordSettings

    pairs = 200
    base = load(options.base, options.device)
    # Other pseudowords than those of any run with a small seed.
    dressed = PseudowordModel(base, PseudowordSettings(pairs=pairs, seed=987_654_321)).inner
    get_extra_embeddings(dressed).table.requires_grad_(False)
    names = [name for name, _ in subclass_statements(options.data)]
    classes = sorted({name for name in names if is_first_half(name)})
    drawn = random.Random(0)
    torch.manual_seed(0)
    train(dressed, lambda step: rule_examples(drawn, classes, pairs, parrot), options.steps or 2500, 1e-4, 250)
    save(dressed, place)
    base.tokenizer.save_pretrained(place)


def main() -> None:
    """Make the models that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="+", choices=["memorizer", "reasoner", "parrot"])
    parser.add_argument("--data", type=Path, required=True, help="the published files of OntoProbe")
    parser.add_argument("--base", type=Path, required=True, help="the masked model to go on from")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--opaque", action="store_true", help="names that say nothing, for the memorizer")
    options = parser.parse_args()
    for which in options.which:
        print(which, flush=True)
        place = options.out / which
        place.mkdir(parents=True, exist_ok=True)
        if which == "memorizer":
            memorizer(options, place)
        else:
            rule_follower(options, place, which == "parrot")


if __name__ == "__main__":
    main()
