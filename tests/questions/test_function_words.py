"""Clozes of function words: which word of which sentence is asked for."""

from __future__ import annotations

import random
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.core.ids import derived_seed
from merkhet.suites.chneval.questions.function_words import function_word_clozes
from merkhet.suites.chneval.questions.question_rows import CLASSES, make_question_set
from merkhet.suites.chneval.questions.sentences import embedded_file
from merkhet.suites.chneval.questions.text_anomalies import find_anomalies

TAGS = {"和": "c", "但": "c", "不": "d", "也": "d", "在": "p", "把": "p", "的": "u", "上": "f", "人": "n", "山": "n"}
KINDS = {"c": "C", "d": "D", "p": "P", "u": "U", "f": "ND"}
SENTENCES = st.lists(st.lists(st.sampled_from(sorted(TAGS)), min_size=3, max_size=7).map("".join), max_size=14)


def _made(sentences, seed=0, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tagged"
        lines = [" ".join(f"{word}/{TAGS[word]}" for word in sentence) + " 。/w" for sentence in sentences]
        path.write_text("\n".join(lines), encoding="utf-8")
        return function_word_clozes(path, seed=seed, **options)


def _plainly_drawn(sentences, seed, per_word):
    """Turn by turn, each time looking at all that is left."""
    left = defaultdict(list)
    for sentence in {f"{sentence}。" for sentence in sentences}:
        for word in sentence:
            if TAGS.get(word) in KINDS and sentence.count(word) == 1:
                left[KINDS[TAGS[word]], word].append(sentence)
    size = {name: len(found) for name, found in left.items()}
    of_class = Counter()
    for (kind, _), count in size.items():
        of_class[kind] += count
    drawn, by_class, by_word, used = set(), Counter(), Counter(), set()
    while True:
        open_words = [
            name for name, found in left.items() if by_word[name] < per_word and any(one not in used for one in found)
        ]
        if not open_words:
            return drawn
        kind = min({kind for kind, _ in open_words}, key=lambda kind: (by_class[kind], of_class[kind], kind))
        name = min((n for n in open_words if n[0] == kind), key=lambda n: (by_word[n], size[n], n[1]))
        free = [one for one in left[name] if one not in used]
        sentence = min(free, key=lambda one: (derived_seed(seed, *name, one), one))
        drawn.add((*name, sentence))
        by_class[kind] += 1
        by_word[name] += 1
        used.add(sentence)


def _as_set(gathered):
    return {(one.domain, one.usage.word, one.usage.sentence) for one in gathered.clozes}


@settings(deadline=None)
@given(SENTENCES, st.integers(0, 3), st.integers(1, 3))
def test_what_is_drawn_is_what_plain_turns_draw(sentences, seed, per_word):
    gathered = _made(sentences, seed, per_word=per_word)
    assert _as_set(gathered) == _plainly_drawn(sentences, seed, per_word)
    assert len(gathered.clozes) == len(_as_set(gathered))


@settings(deadline=None)
@given(SENTENCES, st.randoms(use_true_random=False))
def test_the_order_of_the_sentences_does_not_matter(sentences, chance):
    shuffled = chance.sample(sentences, len(sentences))
    ids = [
        make_question_set(_made(some), seed=0).questions["question_id"].to_pylist()
        for some in (sentences, shuffled)
        if some
    ]
    assert not ids or ids[0] == ids[1]


@settings(deadline=None)
@given(SENTENCES, st.integers(1, 3))
def test_no_sentence_twice_and_no_word_too_often(sentences, per_word):
    clozes = _made(sentences, per_word=per_word).clozes
    assert len({one.usage.sentence for one in clozes}) == len(clozes)
    assert all(count <= per_word for count in Counter((one.domain, one.usage.word) for one in clozes).values())
    for one in clozes:
        assert one.usage.sentence.count(one.usage.word) == 1
        assert one.usage.prompt.replace("[MASK]", one.usage.word) == one.usage.sentence


def test_small_classes_have_their_sentences(tmp_path):
    """One sentence in ten has a direction noun, all have 的; the direction nouns are asked for."""
    sentences = [f"{'人' * (place + 1)}的山{'上' if place % 10 == 0 else ''}" for place in range(60)]
    counts = Counter(one.domain for one in _made(sentences).clozes)
    assert counts == {"U": 54, "ND": 6}


def test_another_seed_draws_others():
    sentences = [f"{'人' * place}和山不在的上" for place in range(1, 30)]
    assert _as_set(_made(sentences, 0)) != _as_set(_made(sentences, 1))


def test_filters_count_what_they_leave_out(tmp_path):
    path = tmp_path / "a.tagged"
    path.write_text(
        "人/n 和/c 山/n 和/c 人/n 因为/c 山/n 。/w\n也/d 。/w\n人/n 和/c 山/n\n"
        "人/n 和/c 山/n 。/w\n人/n 和/c 山/n 。/w\n",
        encoding="utf-8",
    )
    gathered = function_word_clozes(path, seed=0, shortest=4, longest=20)
    assert [tuple(row.values()) for row in gathered.filters] == [
        ("sentence length", "syntactic", 7, 5),
        ("end mark", "syntactic", 5, 5),
        ("a word in small letters", "syntactic", 5, 5),
        ("once in its sentence", "syntactic", 5, 3),
        ("same sentence again", "syntactic", 3, 2),
        ("one question a sentence, capped by word", "syntactic", 2, 2),
    ]
    assert {one.usage.word for one in gathered.clozes} == {"和", "因为"}
    assert len(function_word_clozes(path, seed=0, shortest=3).clozes) == 2
    short = function_word_clozes(path, seed=0, max_characters=1)
    assert [one.usage.word for one in short.clozes] == ["和"]
    with pytest.raises(InputError, match="at least 1"):
        function_word_clozes(path, seed=0, per_word=0)


def test_odd_sentences_are_asked_and_remarked(tmp_path):
    path = tmp_path / "a.tagged"
    path.write_text("山/n １/m 和/c 人/n 。/w\n[MASK]/n 和/c 人/n 。/w\n", encoding="utf-8")
    gathered = function_word_clozes(path, seed=0)
    assert [(one.usage.sentence, one.usage.where) for one in gathered.clozes] == [("山１和人。", "a.tagged, line 1")]
    assert gathered.remarks == [
        "1 line left out: it contains the text [MASK] (a.tagged, line 2).",
        "1 line: full-width letters, digits or blanks (a.tagged, line 1: １).",
    ]


def test_a_treebank_of_another_language_is_asked_in_its_language(tmp_path):
    rows = [("But", "CCONJ"), ("she", "PRON"), ("sat", "VERB"), ("in", "ADP"), ("rain", "NOUN"), ("again", "ADV")]
    rows.append((".", "PUNCT"))
    lines = [f"{n}\t{form}\t_\t{tag}\t_\t_\t_\t_\t_\t_" for n, (form, tag) in enumerate(rows, 1)]
    path = tmp_path / "en_x.conllu"
    path.write_text("# text = But she sat in rain again.\n" + "\n".join(lines) + "\n", encoding="utf-8")
    for tag, prompt in (("ADP", "But she sat [MASK] rain again."), ("ADV", "But she sat in rain [MASK].")):
        (one,) = function_word_clozes(path, seed=0, tags={"C": ["CCONJ"], "X": [tag]}).clozes
        assert (one.usage.prompt, one.language) == (prompt, "en")


def test_own_sentences_give_questions_of_all_classes():
    gathered = function_word_clozes(embedded_file("sentences.txt"), seed=0)
    counts = Counter(one.domain for one in gathered.clozes)
    assert set(counts) == set(CLASSES)
    assert min(counts.values()) >= 30
    assert len(gathered.clozes) >= 200
    assert gathered.remarks == []
    assert not any(find_anomalies(one.usage.sentence) for one in gathered.clozes)
    table = make_question_set(gathered, seed=0)
    assert table.questions.num_rows == len(gathered.clozes)
    assert set(table.candidates["candidate_set"].to_pylist()) == set(table.questions["candidate_set"].to_pylist())


def test_raw_text_in_another_order_gives_the_same_questions(tmp_path):
    lines = embedded_file("sentences.txt").read_text(encoding="utf-8").splitlines()
    given_order = _as_set(function_word_clozes(embedded_file("sentences.txt"), seed=3))
    random.Random(1).shuffle(lines)
    (tmp_path / "texts").mkdir()
    for number in range(2):
        text = "".join(lines[number::2])
        (tmp_path / "texts" / f"{number}.txt").write_text(text, encoding="utf-8")
    assert _as_set(function_word_clozes(tmp_path / "texts", seed=3)) == given_order
