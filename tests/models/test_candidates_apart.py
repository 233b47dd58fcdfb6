"""Candidates tokenised apart: their tokens are those that they have alone, set into the tokens of the prompt."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
import transformers as hf
from all_cases import check_all
from tokenised_families import PLAIN, Tokenised, load_tokenizers

from merkhet.models.tokenize_candidates import CandidateTokenizer, UnusableError


@pytest.fixture(scope="module")
def families(model_folders: dict[str, Path]) -> dict[str, Tokenised]:
    return load_tokenizers(model_folders)


def test_candidates_apart_have_the_tokens_that_they_have_alone(families: dict[str, Tokenised]) -> None:
    sides = (("The capital of Germany is ", " ."), ("", " is old"), ("It is", ", a city"))
    cases = product(families.values(), sides, (PLAIN[:2], PLAIN))
    check_all(check_apart, [(family, *around, candidates) for family, around, candidates in cases])


def check_apart(family: Tokenised, before: str, after: str, candidates: tuple[str, ...]) -> None:
    tokenizer = family.tokenizer
    candidate_tokenizer = CandidateTokenizer(family.name, tokenizer, SimpleNamespace(), candidates="apart")
    placed = list(candidate_tokenizer.tokenize_candidates(f"{before}[MASK]{after}", candidates))
    for text, one in zip(candidates, placed, strict=True):
        assert list(one.ids[one.start : one.stop]) == tokenizer(text, add_special_tokens=False)["input_ids"]
        assert len(one.continues_word) == len(one.ids) and not one.continues_word[one.start]
    sides = {(one.ids[: one.start], one.ids[one.stop :]) for one in placed}
    assert len(sides) == 1
    if tokenizer.mask_token is not None:
        ids = tokenizer(before + tokenizer.mask_token + after)["input_ids"]
        place = ids.index(tokenizer.mask_token_id)
        assert sides == {(tuple(ids[:place]), tuple(ids[place + 1 :]))}
    else:
        # Nothing stands in for a mask in what the model reads.
        assert all(token < len(tokenizer) for one in placed for token in one.ids)
        assert "[MASK]" not in tokenizer.get_vocab()


def test_a_blank_belongs_to_the_word_in_place_and_not_to_the_word_apart(model_folders: dict[str, Path]) -> None:
    for name in ("roberta", "gpt2"):
        tokenizer = hf.AutoTokenizer.from_pretrained(model_folders[name])
        found = {}
        for way in ("in place", "apart"):
            candidate_tokenizer = CandidateTokenizer(name, tokenizer, SimpleNamespace(), candidates=way)
            placed = candidate_tokenizer.tokenize_candidates("The capital of Germany is [MASK].", PLAIN)
            found[way] = [tokenizer.convert_ids_to_tokens(one.ids[one.start : one.stop]) for one in placed]
        for text, inside, apart in zip(PLAIN, found["in place"], found["apart"], strict=True):
            blank = tokenizer.tokenize(" " + text)
            # Where no piece begins with both, the blank is a token before the candidate's.
            assert inside == blank[blank[0] == "Ġ" :]
            assert apart == tokenizer.tokenize(text) and not apart[0].startswith("Ġ")
        assert sum(tokens[0].startswith("Ġ") for tokens in found["in place"]) > 1


def test_where_no_token_holds_a_blank_apart_is_in_place(model_folders: dict[str, Path]) -> None:
    tokenizer = hf.AutoTokenizer.from_pretrained(model_folders["bert-cased"])
    one, other = (
        CandidateTokenizer("bert", tokenizer, SimpleNamespace(), candidates=way) for way in ("in place", "apart")
    )
    for prompt in ("The capital of Germany is [MASK] .", "[MASK] is old"):
        assert list(one.tokenize_candidates(prompt, PLAIN)) == list(other.tokenize_candidates(prompt, PLAIN))


def test_candidates_apart_are_refused_as_others_are(model_folders: dict[str, Path]) -> None:
    tokenizer = hf.AutoTokenizer.from_pretrained(model_folders["bert-cased"])
    candidate_tokenizer = CandidateTokenizer("bert", tokenizer, SimpleNamespace(), candidates="apart")
    candidate_tokenizer.max_tokens = 12
    with pytest.raises(UnusableError, match="holds a token that this model does not know"):
        candidate_tokenizer.tokenize_candidates("It is [MASK] .", ("Rome", "☃"))
    with pytest.raises(UnusableError, match="'' has no token"):
        candidate_tokenizer.tokenize_candidates("It is [MASK] .", ("Rome", ""))
    with pytest.raises(UnusableError, match="too long"):
        candidate_tokenizer.tokenize_candidates(
            "The capital of the United States is [MASK] .", ("Rome", "the United States of metal")
        )
