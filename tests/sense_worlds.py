"""A small world of Chinese characters in which some words have several senses, told apart by what stands beside them.

A topic has characters of its own; each sense of a word belongs to a topic, and stands among its characters. The topics
share only the words themselves and a few characters that stand everywhere.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers as hf
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from merkhet.questions.question_files import QuestionSet
from merkhet.suites.chneval.questions.question_rows import make_question_set
from merkhet.suites.chneval.questions.word_senses import word_sense_triples

TOPICS = 10
OWN = 40
"""Characters of a topic."""
HELD_OUT = (6, 6, 6, 7, 7, 8)
"""Characters of the topic in each sentence that is asked about: all of the topic's, once each."""
SENSES = (2, 3) * 6
"""How many senses each word has."""
EVERYWHERE = "的了是在和也不就"
COMMON = tuple(
    character
    for row, cell in itertools.product(range(0xB0, 0xD7), range(0xA1, 0xFF))
    if (character := bytes((row, cell)).decode("gb2312")) not in EVERYWHERE
)
"""The characters that the national standard GB 2312 counts as common."""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

Sentence = tuple[str, ...]


@dataclass(frozen=True)
class World:
    """Topics with their characters, and words with the topics of their senses."""

    seed: int
    topics: tuple[tuple[str, ...], ...]
    senses: dict[str, tuple[int, ...]]

    @property
    def characters(self) -> list[str]:
        """All that sentences are made of, each once."""
        return [*EVERYWHERE, *itertools.chain.from_iterable(self.topics), *"".join(self.senses)]

    def asked(self, apart: bool = True) -> Iterator[tuple[str, int, Sentence]]:
        """Words with the topic of their sense, in sentences to be asked about.

        Those of a sense have no character of the topic in common, so that which is like which cannot be seen from
        what they share. If not ``apart`` they draw freely, as the corpus does.
        """
        draw = random.Random(f"asked {self.seed} {apart}")
        for word, topics in self.senses.items():
            for topic in topics:
                left = draw.sample(self.topics[topic], OWN)
                for size in HELD_OUT:
                    own, left = (left[:size], left[size:]) if apart else (draw.sample(left, size), left)
                    yield word, topic, written(draw, own, word)

    def corpus(self, each: int) -> list[Sentence]:
        """Sentences of every topic, so many with each of its words and as many without one; none that are asked."""
        draw = random.Random(f"corpus {self.seed}")
        asked = {sentence for apart in (True, False) for _, _, sentence in self.asked(apart)}
        found = []
        for number, characters in enumerate(self.topics):
            words = [word for word, topics in self.senses.items() if number in topics]
            for word in [*words, *[""] * len(words)] * each:
                found.append(written(draw, draw.sample(characters, draw.choice(HELD_OUT)), word))
        return [sentence for sentence in found if sentence not in asked]


def make_world(seed: int) -> World:
    """Half of the words have one character and half have two; every topic has as many senses as the others."""
    draw = random.Random(seed)
    drawn = iter(draw.sample(COMMON, TOPICS * OWN + len(SENSES) * 3 // 2))
    topics = tuple(tuple(itertools.islice(drawn, OWN)) for _ in range(TOPICS))
    words = ["".join(itertools.islice(drawn, size)) for size in (1, 1, 2, 2) * (len(SENSES) // 4)]
    turns = itertools.cycle(range(TOPICS))
    return World(seed, topics, {word: tuple(itertools.islice(turns, n)) for word, n in zip(words, SENSES, strict=True)})


def written(draw: random.Random, own: list[str], word: str) -> Sentence:
    """A sentence of a topic's characters and some that stand everywhere, with the word anywhere among them."""
    others = [*own, *draw.sample(EVERYWHERE, 2)]
    draw.shuffle(others)
    if word:
        others.insert(draw.randint(0, len(others)), word)
    return tuple(others)


def mixed(world: World, sentences: list[Sentence]) -> list[Sentence]:
    """The same sentences with the characters of all topics dealt out anew: nothing is left that tells senses apart."""
    draw = random.Random(f"mixed {world.seed}")
    own = set(itertools.chain.from_iterable(world.topics))
    dealt = [piece for sentence in sentences for piece in sentence if piece in own]
    draw.shuffle(dealt)
    turns = iter(dealt)
    return [tuple(next(turns) if piece in own else piece for piece in sentence) for sentence in sentences]


def questions_of(world: World, file: Path, apart: bool = True) -> QuestionSet:
    """Word-sense questions as a user makes them, from a table of senses."""
    rows = [f"{word}\t{topic}\t{''.join(sentence)}" for word, topic, sentence in world.asked(apart)]
    file.write_text("\n".join(["word\tsense\tsentence", *rows]), encoding="utf-8")
    return make_question_set(word_sense_triples(file, seed=world.seed), seed=world.seed)


def untrained(world: World, folder: Path, seed: int = 1) -> Path:
    """A small BERT with random weights that has a token for each character of the world."""
    torch.manual_seed(seed)
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL, *world.characters])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    config = hf.BertConfig(
        **size,
        vocab_size=len(vocabulary),
        max_position_embeddings=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )
    hf.BertForMaskedLM(config).save_pretrained(folder)
    hf.PreTrainedTokenizerFast(tokenizer_object=backend, **names, model_max_length=16).save_pretrained(folder)
    return folder
