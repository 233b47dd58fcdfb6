"""Baselines that compare names: against a slow oracle that follows the definitions word by word."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import transformers
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.core.records import Question
from merkhet.models.association_baseline import AssociationBaseline
from merkhet.models.baselines import LongestBaseline
from merkhet.models.loading import load_model
from merkhet.models.model_lookup import ModelSpec, resolve_model
from merkhet.models.name_similarity import NO_PAIRS, fit_threshold, mentioned_names
from merkhet.models.protocol import NeedsPairs
from merkhet.models.word_overlap import OverlapBaseline
from merkhet.probes.rank import rank_candidates

NAMES = ("Paris", "France", "Berlin", "Germany", "New York", "United States", "Rome", "a gas", "metal", "São Paulo")
SPACED = {"bert-uncased": False, "roberta": True, "gpt2": True, "llama": True, "llama-sentencepiece": False}
"""Families, and whether a blank belongs to the word after it."""


def ask(candidates: tuple[str, ...], entities: tuple[str, ...], task: str = "completion", number: int = 0) -> Question:
    answers = candidates[:1]
    prompt = f"Of {entities[0]} it is [MASK]." if entities else "The capital of France is [MASK]."
    return Question(f"q{number}", task, prompt, answers, answers[0], candidates, template="r/1", entities=entities)


class Oracle:
    """Cosines by the whole network's embedding matrix, one name at a time."""

    def __init__(self, folder: Path, spaced: bool) -> None:
        model = load_model(str(folder))
        matrix = model.model.get_input_embeddings().weight.detach().double().numpy()
        centred = matrix - matrix.mean(axis=0)
        self.units = centred / np.linalg.norm(centred, axis=1, keepdims=True)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.blank = " " if spaced else ""

    def vector(self, name: str) -> np.ndarray:
        ids = self.tokenizer(self.blank + name, add_special_tokens=False).input_ids
        mean = np.mean([self.units[token] for token in ids], axis=0)
        return mean / np.linalg.norm(mean)

    def cosine(self, first: str, second: str) -> float:
        return float(self.vector(first) @ self.vector(second))


def scores_of(model, *questions: Question) -> list[np.ndarray]:
    results = sorted(model.score_candidates(questions, ["m"]), key=lambda result: result.index)
    return [result.by_method["m"] for result in results]


def test_association_is_the_cosine_of_centred_embeddings(model_folders) -> None:
    def check(family: str) -> None:
        baseline = AssociationBaseline(resolve_model(ModelSpec(str(model_folders[family]))), "a")
        oracle = Oracle(model_folders[family], SPACED[family])
        options = ("Paris", "Berlin", "New York", "metal")
        nearest, odd = scores_of(baseline, ask(options, ("France",)), ask(options, options[::-1]))
        assert nearest == pytest.approx([oracle.cosine("France", option) for option in options], abs=1e-6)
        sums = [-sum(oracle.cosine(one, other) for other in options if other != one) for one in options]
        assert odd == pytest.approx(sums, abs=1e-6)

    check_all(check, SPACED)


def test_the_embeddings_are_read_without_the_network(model_folders, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was loaded")

    monkeypatch.setattr("merkhet.models.loading.load_model", refuse)

    def check(family: str) -> None:
        baseline = AssociationBaseline(resolve_model(ModelSpec(str(model_folders[family]))), "a")
        assert baseline.embeddings.weights.shape[0] > 0

    check_all(check, list(model_folders))


def test_a_threshold_is_the_best_of_all(model_folders) -> None:
    """Tried one by one: below all, between every two neighbours, above all; the lowest of the best."""

    def check(seed: int) -> None:
        draw = random.Random(seed)
        pairs = [(draw.choice([0.1, 0.2, 0.3, 0.4, 0.5]), draw.random() < 0.5) for _ in range(draw.randint(1, 12))]
        pairs = list({similarity: (similarity, truth) for similarity, truth in pairs}.values())
        known = sorted(similarity for similarity, _ in pairs)
        tried = [-2.0, *((low + high) / 2 for low, high in itertools.pairwise(known)), 2.0]
        right = [sum((similarity > limit) == truth for similarity, truth in pairs) for limit in tried]
        assert fit_threshold(pairs) == tried[right.index(max(right))]

    check_all(check, range(50))


def test_verdicts_follow_the_threshold_of_their_relation() -> None:
    baseline = OverlapBaseline()
    assert isinstance(baseline, NeedsPairs) and not isinstance(LongestBaseline(), NeedsPairs)
    rows = [("Parisian", "Paris", True), ("Berlin", "Rome", False), ("New York", "York", True), ("a", "b", False)]
    pairs = [dict(zip(("first", "second", "holds"), row, strict=True), task="checking", relation="r") for row in rows]
    questions = [
        ask(choices, names, "checking", number)
        for number, (choices, names) in enumerate(
            itertools.product([("yes", "no"), ("No", "Yes")], [("Romans", "Roman"), ("Oslo", "Rome")])
        )
    ]
    assert {result.unusable for result in baseline.score_candidates(questions, ["m"])} == {NO_PAIRS}
    baseline.prepare_pairs(pairs)
    chosen = [
        question.candidates[int(np.argmax(scores))].lower()
        for question, scores in zip(questions, scores_of(baseline, *questions), strict=True)
    ]
    assert chosen == ["yes", "no", "yes", "no"]
    # A relation without training questions has the threshold of its task.
    (scores,) = scores_of(
        baseline,
        Question(
            "q", "checking", "[MASK]", ("yes",), "yes", ("yes", "no"), template="x/1", entities=("Romans", "Roman")
        ),
    )
    assert scores[0] > scores[1]
    # The names of a statement may be verdicts, too.
    (scores,) = scores_of(baseline, ask(("Yes", "No"), ("nobelium", "No"), "checking"))
    assert scores[0] == -scores[1] != 0.0


def test_overlap_is_the_cosine_of_bags_of_three_characters() -> None:
    def bag(text: str) -> Counter[str]:
        words = [f" {word} " for word in text.lower().replace("(", " ").split()]
        return Counter(word[start : start + 3] for word in words for start in range(len(word) - 2))

    def cosine(first: str, second: str) -> float:
        one, other = bag(first), bag(second)
        product = sum(one[key] * other[key] for key in one)
        return product / math.sqrt(sum(n * n for n in one.values()) * sum(n * n for n in other.values()))

    names = (*NAMES, "Parisian", "York", "Franc")
    expected = [[cosine(first, second) for second in names] for first in names]
    assert OverlapBaseline().similarity_matrix(names, names) == pytest.approx(np.array(expected))
    assert OverlapBaseline().similarity_matrix(["Paris"], ["metal"])[0, 0] == 0.0


def test_equal_names_are_tied_and_chance_is_exact(model_folders) -> None:
    """What a tokenizer cannot tell apart is one tied block, whatever the order of the words."""
    baseline = AssociationBaseline(resolve_model(ModelSpec(str(model_folders["bert-uncased"]))), "a")
    (nearest,) = scores_of(baseline, ask(("New York", "york new", "Rome", "NEW YORK"), ("Paris",)))
    assert nearest[0] == nearest[1] == nearest[3] != nearest[2]
    options = ("Rome", "rome", "ROME", "rOME")
    (answer,) = rank_candidates(baseline, [ask(options, options)])
    assert answer.gold_ranks == (2.5,) and answer.gold_ties == (4,)
    (answer,) = rank_candidates(LongestBaseline(), [ask(("abc", "xyz", "ab", "uvw"), ())])
    assert answer.gold_ranks == (2.0,) and answer.gold_ties == (3,)


def test_without_names_the_prompt_takes_their_place() -> None:
    question = ask(("Paris", "Rome"), ())
    assert [text.split() for text in mentioned_names(question)] == [["The", "capital", "of", "France", "is", "."]]
    listed = Question("q", "t", "Rome or Paris: [MASK] is in France.", ("Paris",), "Paris", ("Paris", "Rome"))
    assert "Paris" not in mentioned_names(listed)[0] and "France" in mentioned_names(listed)[0]


def test_a_named_model_gives_its_embeddings(model_folders, tmp_path: Path) -> None:
    folder = model_folders["bert-uncased"]
    resolved = resolve_model(ModelSpec(f"association:{folder}"))
    direct = AssociationBaseline(resolve_model(ModelSpec(str(folder))))
    assert (resolved.kind, resolved.fingerprint) == ("baseline", direct.fingerprint)
    assert resolve_model(ModelSpec(f"association:{folder}", label="x")).name == "x"
    assert resolve_model(ModelSpec(f"association:{folder.name}"), folder.parent).fingerprint == direct.fingerprint
    with pytest.raises(InputError, match="no input embeddings"):
        resolve_model(ModelSpec("association:random"))
