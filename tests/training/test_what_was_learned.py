"""What tuning brings to light is what a model knew before: not what it was tuned on, and nothing else.

Two models are trained from scratch, one on statements of the facts A, the other on those of B; the names of both stand
in the texts of both. Then both are tuned on questions about a part of A. The first must answer the questions about the
rest of A, which it knows and was never asked, and be at chance on B; the second must be at chance on the rest of A.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from merkhet.core.records import Question
from merkhet.metrics.text_overlap import word_f1
from merkhet.models.loading import load_model
from merkhet.probes.write import write_answers
from merkhet.training.cloze import tune_cloze

SUBJECTS = 160
CITIES = ("lima", "port oran", "bern", "new tunis", "riga", "old delhi", "oslo", "san miguel", "kiev", "cape verde")
STATEMENTS = (
    "the capital of {subject} is {city} .",
    "the government of {subject} meets in {city} .",
    "from {subject} one travels to its capital {city} .",
)
OTHERS = (
    "many people live in {subject} .",
    "{subject} is a country with mountains .",
    "the rivers of {subject} are long .",
    "{city} is a city with a harbour .",
    "one travels to {city} by train .",
)
ASKED = STATEMENTS[:2]
pytestmark = pytest.mark.train
TUNING = {"epochs": 30, "learning_rate": 1e-3, "batch_size": 16}


@dataclass(frozen=True)
class World:
    """Countries with their capitals, in two sets."""

    known: dict[str, str]
    unknown: dict[str, str]

    @property
    def subjects(self) -> list[str]:
        return [*self.known, *self.unknown]

    def words(self) -> list[str]:
        texts = [*STATEMENTS, *OTHERS, *CITIES, *self.subjects]
        return sorted({word for text in texts for word in text.split() if not word.startswith("{")})


@dataclass(frozen=True)
class Outcome:
    """Mean F1 of written answers, and where that of uniform guesses lies in all but one of a thousand tries."""

    f1: float
    low: float
    chance: float
    high: float

    @property
    def at_chance(self) -> bool:
        return self.low <= self.f1 <= self.high


def make_world(seed: int = 5) -> World:
    draw = random.Random(seed)
    parts = ("ba", "do", "ki", "lu", "me", "na", "po", "ri", "su", "ta", "vo", "ze")
    names = sorted({"".join(draw.choice(parts) for _ in range(3)) + "land" for _ in range(4 * SUBJECTS)})
    chosen = draw.sample(names, SUBJECTS)
    cities = [draw.sample(CITIES * (SUBJECTS // 2 // len(CITIES)), SUBJECTS // 2) for _ in range(2)]
    half = SUBJECTS // 2
    return World(dict(zip(chosen[:half], cities[0], strict=True)), dict(zip(chosen[half:], cities[1], strict=True)))


def parted(facts: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Five of each city's eight countries to be tuned on, and the rest."""
    seen: Counter[str] = Counter()
    tuned = {}
    for name, city in facts.items():
        seen[city] += 1
        if seen[city] <= 5:
            tuned[name] = city
    return tuned, {name: city for name, city in facts.items() if name not in tuned}


def pretrained(world: World, facts: dict[str, str], folder: Path, steps: int = 320) -> Path:
    """A small BERT that has read the statements of some facts, and every name in other sentences."""
    torch.manual_seed(1)
    draw = random.Random(2)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: number for number, word in enumerate([*special, *world.words()])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer = hf.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        **dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True)),
        model_max_length=40,
    )
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    config = hf.BertConfig(
        **size, vocab_size=len(vocabulary), max_position_embeddings=40, hidden_dropout_prob=0.0, initializer_range=0.1
    )
    network = hf.BertForMaskedLM(config)
    stated = [text.format(subject=name, city=city) for name, city in facts.items() for text in STATEMENTS]
    others = [
        text.format(subject=name, city=city)
        for name, city in zip(world.subjects, CITIES * SUBJECTS, strict=False)
        for text in OTHERS
    ]
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    named = torch.tensor([vocabulary[word] for word in sorted({word for city in CITIES for word in city.split()})])
    rows = [torch.tensor(tokenizer(text)["input_ids"]) for text in (*stated, *others)]
    for _ in range(steps):
        some = draw.choices(range(len(stated)), k=48) + draw.choices(range(len(stated), len(rows)), k=16)
        ids = torch.nn.utils.rnn.pad_sequence([rows[i] for i in some], batch_first=True)
        filled = ids != 0
        # A statement hides its city, any other sentence some of its words.
        hidden = filled & (ids > 4) & (torch.rand(ids.shape) < 0.3)
        hidden[:48] = torch.isin(ids[:48], named)
        logits = network(input_ids=ids.masked_fill(hidden, 4), attention_mask=filled.long()).logits
        loss = torch.nn.functional.cross_entropy(logits[hidden], ids[hidden])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def asked(facts: dict[str, str]) -> list[Question]:
    return [
        Question(f"{name}/{i}", "completion", text.format(subject=name, city="[MASK]"), (city,), city, CITIES)
        for name, city in facts.items()
        for i, text in enumerate(ASKED)
    ]


def outcome(model, questions: Sequence[Question]) -> Outcome:
    answers = list(write_answers(model, questions))
    assert all(answer.unusable is None for answer in answers)
    found = np.mean([word_f1(one.prediction, q.answers) for one, q in zip(answers, questions, strict=True)])
    # Both wordings of a fact stand and fall together, so a guess is drawn for the fact.
    facts = [q for q in questions if q.question_id.endswith("/0")]
    table = np.array([[word_f1(city, q.answers) for city in CITIES] for q in facts])
    draw = np.random.default_rng(0).integers(0, len(CITIES), (20_000, len(facts)))
    guesses = table[np.arange(len(facts)), draw].mean(axis=1)
    low, high = np.quantile(guesses, [0.0005, 0.9995])
    return Outcome(float(found), float(low), float(table.mean()), float(high))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        world, folder = make_world(), tmp_path_factory.mktemp("worlds")
        tuned, rest = parted(world.known)
        found = {}
        for name, facts in (("A", world.known), ("B", world.unknown)):
            model = load_model(str(pretrained(world, facts, folder / name)))
            found[f"trained on {name}, untuned, asked of the rest of A"] = outcome(model, asked(rest))
            tune_cloze(model, asked(tuned), folder / f"{name} tuned", settings=TUNING)
            model = load_model(str(folder / f"{name} tuned"))
            found[f"trained on {name}, asked what it was tuned on"] = outcome(model, asked(tuned))
            found[f"trained on {name}, asked of the rest of A"] = outcome(model, asked(rest))
            found[f"trained on {name}, asked of B"] = outcome(model, asked(world.unknown))
        return found
    finally:
        torch.set_num_threads(threads)


def test_what_a_model_knew_comes_to_light(results: dict[str, Outcome]) -> None:
    assert results["trained on A, asked of the rest of A"].f1 > 0.9


def test_untuned_it_could_not_say_it(results: dict[str, Outcome]) -> None:
    assert results["trained on A, untuned, asked of the rest of A"].f1 < 0.6


def test_what_it_never_read_stays_at_chance(results: dict[str, Outcome]) -> None:
    found = results["trained on A, asked of B"]
    assert found.chance < 0.2 and found.high < 0.4
    assert found.at_chance, found


def test_tuning_teaches_no_other_facts_of_the_kind(results: dict[str, Outcome]) -> None:
    found = results["trained on B, asked of the rest of A"]
    assert found.at_chance, found
