"""Candidates tokenised in place: the slot holds the candidate, and the fast way equals whole tokenisation."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import transformers as hf
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import FAMILIES, LONGEST, SENTENCES
from tokenised_families import LINES, OVER_BLANKS, PLAIN, Tokenised, load_tokenizers
from tokenizers import decoders, normalizers

from merkhet.models import tokenize_candidates as placing
from merkhet.models.tokenize_candidates import CandidateTokenizer, TokenizedCandidate, UnusableError

WITH_UNKNOWN = ("bert-uncased", "bert-cased", "albert", "xlm-roberta", "bert-chinese", "t5-like")
WORDS = tuple(sorted({word for sentence in SENTENCES for word in sentence.split()}))
CHINESE = ("北京", "巴黎", "中国的首都", "东京", "罗马", "一座城市", "纽约", "是")
SURROUNDINGS = (
    ("", ""),
    ("", " is a city."),
    ("The capital is ", ""),
    ("The capital is ", "."),
    ('They call it "', '", and it is old.'),
    ('"', '" is a city.'),
    ("An element (", ") is old."),
    ("(", ")"),
    ("pre", "fix"),
    ("The pre", "fix of the press"),
    ("It is", ", a city"),
    ("法国的首都是", "。"),
    ("", "是中国的首都。"),
    ("北京 is ", "的首都"),
    ("The city北", "京is old"),
    ("The  capital is  ", "  or so"),
    (" The capital is ", " "),
    ("Zü", "ri is São"),
    ("It is a", "fix"),
    ("The capital is ", "\nThe press"),
    ("The capital\nis ", "\n\n"),
)
GLUE = (" ", "  ", ".", ",", '"', "(", ")", "-", "'s", "pre", "ess", "r", "Zü", "ã", "首都", "是", "国的", "1990", "☃")
PIECES = ("T", "h", "e", "s", "l", "Th", "he", "res", "ix", "pre", "esen", '"', "e.", "),", "国", "的首", "Zü", "ão")
ODD = ("\u0301", "\u3000", "\n", "\t", "\u200b", "⼀", "½", "a\u0308", "\U0002f81a", "\U0002ceb5")
# How byte-level tokenizers write bytes: those that can be printed as themselves, the others from 256 on.
_PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTED]
BYTES = {**{chr(byte): byte for byte in _PRINTED}, **{chr(256 + i): byte for i, byte in enumerate(_OTHERS)}}


@pytest.fixture(scope="module")
def families(model_folders: dict[str, Path]) -> dict[str, Tokenised]:
    return load_tokenizers(model_folders)


@pytest.fixture(scope="module", params=[*FAMILIES, OVER_BLANKS, LINES])
def family(request: pytest.FixtureRequest, families: dict[str, Tokenised]) -> Tokenised:
    return families[request.param]


@st.composite
def pieces_of(draw: st.DrawFn, sentences: tuple[str, ...]) -> str:
    """Some characters in a row out of a sentence."""
    sentence = draw(st.sampled_from(sentences))
    start = draw(st.integers(0, len(sentence) - 1))
    return sentence[start : start + draw(st.integers(1, 9))]


@st.composite
def surroundings(draw: st.DrawFn, sentences: tuple[str, ...], odd: bool) -> tuple[str, str]:
    """What stands before and after a slot: as people write it, cut out of a sentence, or put together at random."""
    way = draw(st.sampled_from(("written", "cut", "random", "random")))
    if way == "written":
        return draw(st.sampled_from(SURROUNDINGS))
    if way == "cut":
        sentence = draw(st.sampled_from(sentences))
        first, last = sorted(draw(st.tuples(*[st.integers(0, len(sentence))] * 2)))
        return sentence[:first], sentence[last:]
    glue = st.sampled_from((*GLUE, *ODD) if odd else GLUE)
    side = st.lists(st.one_of(glue, st.sampled_from(WORDS), pieces_of(sentences)), max_size=5).map("".join)
    return draw(side), draw(side)


def candidates_of(sentences: tuple[str, ...], odd: bool, fewest: int, most: int) -> st.SearchStrategy[list[str]]:
    texts = st.one_of(pieces_of(sentences), st.sampled_from((*PLAIN, *CHINESE)), st.sampled_from(GLUE))
    if odd:
        texts = st.one_of(texts, st.tuples(st.sampled_from(ODD), texts, st.sampled_from(("", *ODD))).map("".join))
    return st.lists(texts, min_size=fewest, max_size=most, unique=True)


def whole(family: Tokenised, before: str, candidate: str, after: str) -> TokenizedCandidate:
    """The obvious way: the sentence tokenised from end to end, and the tokens that touch the candidate's characters."""
    encoded = family.tokenizer(before + candidate + after, return_offsets_mapping=True)
    first, last, words = len(before), len(before) + len(candidate), encoded.word_ids()
    own = [
        number
        for number, (start, stop) in enumerate(encoded["offset_mapping"])
        if start < stop and start < last and stop > first
    ]
    joined = [number > 0 and word is not None and word == words[number - 1] for number, word in enumerate(words)]
    return TokenizedCandidate(
        tuple(encoded["input_ids"]), own[0] if own else 0, own[-1] + 1 if own else 0, tuple(joined)
    )


def problem_with(family: Tokenised, candidate: str, one: TokenizedCandidate) -> str | None:
    unknown = family.tokenizer.unk_token_id
    if one.start == one.stop:
        return f"the candidate {candidate!r} has no token in this model's vocabulary"
    if unknown is not None and unknown in one.ids[one.start : one.stop]:
        return f"the candidate {candidate!r} holds a token that this model does not know"
    return None


def check_equals_whole(
    family: Tokenised, candidate_tokenizer: CandidateTokenizer, before: str, after: str, candidates: list[str]
) -> None:
    """The whole list gives the placed sentences or the first problem; then again without those that have problems."""
    prompt = f"{before}[MASK]{after}"
    wanted = {text: whole(family, before, text, after) for text in candidates}
    problems = {text: problem_with(family, text, one) for text, one in wanted.items()}
    known = [text for text in candidates if problems[text] is None]
    if len(known) < len(candidates):
        with pytest.raises(UnusableError) as refused:
            candidate_tokenizer.tokenize_candidates(prompt, candidates)
        assert str(refused.value) == next(problem for problem in problems.values() if problem)
    if known:
        placed = candidate_tokenizer.tokenize_candidates(prompt, known)
        for text, one in zip(known, placed, strict=True):
            assert one == wanted[text], (prompt, text)


def test_pieces_of_words_in_every_place(families: dict[str, Tokenised]) -> None:
    def check(family: Tokenised, before: str, after: str) -> None:
        check_equals_whole(family, family.candidate_tokenizer(), before, after, [*PIECES, *PLAIN, *CHINESE])

    check_all(check, [(family, *sides) for family in families.values() for sides in SURROUNDINGS])


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_windows_equal_whole_tokenisation(family: Tokenised, data: st.DataObject) -> None:
    before, after = data.draw(surroundings(family.sentences, odd=True))
    candidates = data.draw(candidates_of(family.sentences, odd=True, fewest=6, most=14))
    candidate_tokenizer = family.candidate_tokenizer()
    check_equals_whole(family, candidate_tokenizer, before, after, candidates)
    # A prompt that ends and goes on with the same words uses the same windows.
    check_equals_whole(family, candidate_tokenizer, f"It is said. {before}", f"{after} and so on", candidates)


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_short_list_equals_whole_tokenisation(family: Tokenised, data: st.DataObject) -> None:
    before, after = data.draw(surroundings(family.sentences, odd=True))
    candidates = data.draw(candidates_of(family.sentences, odd=True, fewest=1, most=3))
    check_equals_whole(family, family.candidate_tokenizer(), before, after, candidates)


def bare(family: Tokenised, text: str) -> bytes:
    """A text as the family sees it, without its blanks."""
    normalizer = family.tokenizer.backend_tokenizer.normalizer
    seen = normalizer.normalize_str(text) if normalizer else text
    return seen.replace(" ", "").replace("▁", "").encode()


def spelled(family: Tokenised, ids: tuple[int, ...]) -> list[bytes]:
    """What each token stands for, without blanks."""
    pieces = family.tokenizer.convert_ids_to_tokens(list(ids))
    if isinstance(family.tokenizer.backend_tokenizer.decoder, decoders.ByteLevel):
        return [bytes(BYTES[letter] for letter in piece).replace(b" ", b"") for piece in pieces]
    bytes_of = {f"<0x{byte:02X}>": bytes([byte]) for byte in range(256)}
    return [bytes_of.get(piece, piece.removeprefix("##").replace("▁", "").encode()) for piece in pieces]


def holds(tokens: list[bytes], before: bytes, candidate: bytes, after: bytes) -> bool:
    """Whether the tokens are the candidate; only the first and the last may go on into what is before and after."""
    ends = [before[len(before) - size :] for size in range(min(len(before) + 1, max(1, len(tokens[0]))))]
    starts = [after[:size] for size in range(max(1, len(tokens[-1])))]
    return any(b"".join(tokens) == end + candidate + start for end in ends for start in starts)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_slot_holds_the_candidate(family: Tokenised, data: st.DataObject) -> None:
    before, after = data.draw(surroundings(family.sentences, odd=False))
    candidates = data.draw(candidates_of(family.sentences, odd=False, fewest=1, most=10))
    texts = [text for text in dict.fromkeys(map(str.strip, candidates)) if text]
    known = [text for text in texts if not problem_with(family, text, whole(family, before, text, after))]
    placed = family.candidate_tokenizer().tokenize_candidates(f"{before}[MASK]{after}", known) if known else ()
    for text, one in zip(known, placed, strict=True):
        tokens = spelled(family, one.ids[one.start : one.stop])
        assert holds(tokens, bare(family, before), bare(family, text), bare(family, after)), (text, tokens)


def test_the_slot_read_by_the_tokenizer_is_the_candidate(families: dict[str, Tokenised]) -> None:
    def check(family: Tokenised, prompt: str) -> None:
        for text, one in zip(PLAIN, family.candidate_tokenizer().tokenize_candidates(prompt, PLAIN), strict=True):
            read = family.tokenizer.decode(one.ids[one.start : one.stop]).strip()
            if family.name == OVER_BLANKS:
                assert text in read
            else:
                assert bare(family, read) == bare(family, text)

    prompts = ("The capital of Germany is [MASK] or so.", "[MASK] is old", "Is [MASK]")
    check_all(check, [(family, prompt) for family in families.values() for prompt in prompts])


def test_what_cannot_be_placed_is_refused(families: dict[str, Tokenised]) -> None:
    check_all(check_refusals, [(family, others) for family in families.values() for others in (PLAIN[:2], PLAIN)])


def check_refusals(family: Tokenised, others: tuple[str, ...]) -> None:
    candidate_tokenizer = family.candidate_tokenizer()

    def reason(prompt: str, *candidates: str) -> str:
        with pytest.raises(UnusableError) as refused:
            candidate_tokenizer.tokenize_candidates(prompt, candidates)
        return str(refused.value)

    assert reason("The capital is [MASK].") == "the list of candidates is empty"
    first, *rest = others
    found = reason("[MASK]The capital is old.", first, "", *rest)
    assert found == "the candidate '' has no token in this model's vocabulary"
    if family.name in WITH_UNKNOWN:
        found = reason("The capital is [MASK].", first, "a ☃", *rest)
        assert found == "the candidate 'a ☃' holds a token that this model does not know"
        assert "'☃'" in reason("The ☃ is [MASK].", first, "☃", *rest)
    else:
        assert (
            len(candidate_tokenizer.tokenize_candidates("The capital is [MASK].", (first, "a ☃", *rest)))
            == len(others) + 1
        )
    # What the model does not know may stand around the slot.
    assert len(candidate_tokenizer.tokenize_candidates("The ☃ is [MASK].", others)) == len(others)


def test_a_sentence_is_as_long_as_the_model_takes(families: dict[str, Tokenised]) -> None:
    before, after, longest = "The capital of Germany is ", ", a city.", "the United States of metal"

    def check(family: Tokenised, *others: str) -> None:
        tokens = len(family.tokenizer(before + longest + after)["input_ids"])
        candidates = (others[0], longest, *others[1:])
        assert len(family.candidate_tokenizer(tokens).tokenize_candidates(f"{before}[MASK]{after}", candidates)) == len(
            candidates
        )
        with pytest.raises(UnusableError, match=f"^too long: {tokens} tokens, and the model takes {tokens - 1}$"):
            family.candidate_tokenizer(tokens - 1).tokenize_candidates(f"{before}[MASK]{after}", candidates)

    lists = (("Rome",), ("Rome", "Paris", "a metal", "Berlin"))
    check_all(check, [(family, *others) for family in families.values() for others in lists])


def test_the_longest_input_is_what_the_network_has_positions_for(model_folders: dict[str, Path]) -> None:
    for name, folder in model_folders.items():
        config, tokenizer = hf.AutoConfig.from_pretrained(folder), hf.AutoTokenizer.from_pretrained(folder)
        tokenizer.model_max_length = 10**30
        assert CandidateTokenizer(name, tokenizer, config).max_tokens == LONGEST, name


def test_candidates_that_end_in_a_blank(families: dict[str, Tokenised]) -> None:
    candidates = [*PLAIN[:4], " ", "The ", "is  ", "  ", *PLAIN[4:]]

    def check(family: Tokenised, before: str, after: str) -> None:
        check_equals_whole(family, family.candidate_tokenizer(), before, after, candidates)

    sides = [(before, after) for after in ("", " ", " is old.", ".", "  or so") for before in ("The capital is ", "")]
    check_all(check, [(family, *around) for family in families.values() for around in sides])


def test_windows_are_used_and_shared(families: dict[str, Tokenised], monkeypatch: pytest.MonkeyPatch) -> None:
    original, whole_sentences = CandidateTokenizer._tokenize_whole, []

    def counted(self, before, after, candidates):
        whole_sentences.append(len(candidates))
        return original(self, before, after, candidates)

    monkeypatch.setattr(CandidateTokenizer, "_tokenize_whole", counted)
    prompts = (
        "The capital of Germany is [MASK].",
        "Berlin in Germany is [MASK].",
        "The capital of Germany is [MASK] or so.",
        "The capital of Germany is [MASK]; it is old.",
        'They call it "[MASK]", and it is old.',
        "The is [MASK].",
        " is [MASK].",
        "is [MASK].",
    )

    def check(family: Tokenised) -> None:
        whole_sentences.clear()
        candidate_tokenizer = family.candidate_tokenizer()
        placed = [candidate_tokenizer.tokenize_candidates(prompt, PLAIN) for prompt in prompts]
        if family.name == OVER_BLANKS:
            assert whole_sentences == [len(PLAIN)] * len(prompts)
        else:
            assert whole_sentences == [3] * len(prompts)
            assert placed[0].windows is placed[1].windows
        for prompt, found in zip(prompts, placed, strict=True):
            before, after = prompt.split("[MASK]")
            assert list(found) == [whole(family, before, text, after) for text in PLAIN]

    check_all(check, families.values())


def test_windows_that_are_found_wrong_are_not_used(
    families: dict[str, Tokenised], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = placing._cut_window

    def wrong(encoding, context_end, first, text, head):
        one = original(encoding, context_end, first, text, head)
        return replace(one, start=one.start + 1, stop=one.stop + 1) if text == PLAIN[-1] else one

    monkeypatch.setattr(placing, "_cut_window", wrong)

    def check(family: Tokenised) -> None:
        check_equals_whole(family, family.candidate_tokenizer(), "The capital of Germany is ", ", a city.", list(PLAIN))

    check_all(check, families.values())


def test_windows_are_forgotten_when_there_are_many(
    families: dict[str, Tokenised], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "_MAX_CACHED_LISTS", 2)

    def check(family: Tokenised) -> None:
        candidate_tokenizer = family.candidate_tokenizer()
        for before, after in SURROUNDINGS * 2:
            check_equals_whole(family, candidate_tokenizer, before, after, list(PLAIN))
            assert len(candidate_tokenizer._lists) <= 2

    check_all(check, families.values())


def test_the_kind_of_word(families: dict[str, Tokenised]) -> None:
    def check(family: Tokenised) -> None:
        vocabulary = family.tokenizer.get_vocab()
        reaching = [piece for piece in vocabulary if "▁" in piece.lstrip("▁")]
        assert bool(reaching) == (family.name == OVER_BLANKS)
        kind = "characters" if family.name.startswith("bert") else "blanks"
        assert family.candidate_tokenizer().word_kind == (None if reaching else kind)

    check_all(check, families.values())


def test_a_word_of_its_own_is_one_to_the_normalizer_too() -> None:
    letters = [chr(code) for code in range(0x2E80, 0x30000) if not 0xD800 <= code < 0xE000]
    chinese = [letter for letter in letters if re.fullmatch(f"[{placing.CHINESE}]", letter)]
    assert {"中", "京", "\U00020000"} <= set(chinese)
    seen = normalizers.BertNormalizer(strip_accents=False, lowercase=False).normalize_str("x".join(chinese))
    assert seen.split() == "x".join(chinese).replace("x", " x ").split()
