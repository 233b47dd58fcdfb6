"""Word-sense questions: what is compared with what, and what a bad row does."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.suites.chneval.questions.question_rows import make_question_set
from merkhet.suites.chneval.questions.sentences import embedded_file
from merkhet.suites.chneval.questions.word_senses import word_sense_triples

ROWS = st.lists(
    st.tuples(st.sampled_from("花口"), st.sampled_from("abc"), st.integers(0, 8)), max_size=30, unique=True
).map(lambda rows: [(word, sense, f"{'这' * place}{word}好{sense}") for word, sense, place in rows])


def _made(rows, seed=0, header="word\tsense\tsentence", name="a.tsv", **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        text = "\n".join([header, *("\t".join(map(str, row)) for row in rows)])
        path.write_text(text + "\n", encoding="utf-8")
        return word_sense_triples(path, seed=seed, **options)


def _possible(rows):
    """Every (base, answer, distractor) that could be asked."""
    return {
        (base, answer, other)
        for word, sense, base in rows
        for word1, sense1, answer in rows
        for word2, sense2, other in rows
        if word == word1 == word2 and sense == sense1 != sense2 and len({base, answer, other}) == 3
    }


@settings(deadline=None)
@given(ROWS, st.integers(0, 2), st.integers(1, 3), st.integers(1, 7))
def test_every_question_is_possible_and_none_is_missing(rows, seed, per_sense, per_word):
    triples = _made(rows, seed, per_sense=per_sense, per_word=per_word).triples
    asked = [tuple(usage.sentence for usage in (one.base, one.answer, one.distractor)) for one in triples]
    possible = _possible(rows)
    assert set(asked) <= possible
    bases = [base for base, _, _ in asked]
    assert len(set(bases)) == len(bases)
    # A sense has as many questions as it has bases, up to the caps.
    expected = defaultdict(dict)
    for word, sense, _ in rows:
        found = len({base for base, _, _ in possible if (word, sense, base) in rows})
        expected[word][sense] = min(per_sense, found)
    made = Counter((one.base.word, one.sense) for one in triples)
    for word, senses in expected.items():
        total = sum(made[word, sense] for sense in senses)
        assert total == min(per_word, sum(senses.values()))
        assert all(made[word, sense] <= most for sense, most in senses.items())
        # Even: a sense is behind another only where it has nothing more, or the word is at its cap.
        behind = [made[word, sense] for sense, most in senses.items() if made[word, sense] < most]
        assert not behind or max(made[word, sense] for sense in senses) - min(behind) <= 1


@settings(deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(rows, chance):
    first, second = (
        [(one.base.prompt, one.answer.prompt, one.distractor.prompt, one.sense) for one in _made(some).triples]
        for some in (rows, chance.sample(rows, len(rows)))
    )
    assert first == second


def test_answers_and_distractors_are_drawn_evenly():
    rows = [("花", sense, f"{'这' * place}花好{sense}") for sense in "abc" for place in range(6)]
    triples = _made(rows, seed=1).triples
    assert len(triples) == 18
    assert max(Counter(one.answer.sentence for one in triples).values()) <= 2
    assert max(Counter(one.distractor.sentence for one in triples).values()) <= 2
    assert {one.sense for one in triples} == set("abc")
    other = _made(rows, seed=2).triples
    assert [one.answer.sentence for one in triples] != [one.answer.sentence for one in other]


def test_a_sense_with_one_sentence_is_a_distractor_only():
    triples = _made([("花", "a", "这花好。"), ("花", "a", "那花香。"), ("花", "b", "他花钱。")]).triples
    assert {(one.sense, one.distractor.sentence) for one in triples} == {("a", "他花钱。")}
    assert len(triples) == 2


def test_bad_rows_are_named_and_the_rest_is_asked():
    header = "Word\tsense\tsentence\tposition\tform\tlanguage"
    rows = [
        ("bank", "river", "The banks are green.", "", "banks", "en"),
        ("bank", "river", "Bank by bank they came.", "0", "", "en"),
        ("bank", "money", "He robbed a bank.", "12", "", "en"),
        ("bank", "money", "He robbed a bank.", "99", "", "en"),
        ("bank", "money", "He robbed a bank.", "-1", "", "en"),
        ("bank", "money", "He robbed a bank.", "3", "", "en"),
        ("bank", "money", "A bank is a bank.", "", "", "en"),
        ("bank", "money", "A savings house.", "", "", "en"),
        ("bank", "", "A bank.", "", "", "en"),
        ("bank",),
        ("bank", "money", "A [MASK] bank.", "", "", "en"),
        ("", "", "", "", "", ""),
        ("bank", "money", "He robbed a bank.", "", "", "en"),
        ("花", "a", "花好。", "", "", ""),
        ("bank", "money", "See the bank.", "", "", "en"),
        ("bank", "river", "See the bank.", "", "", "en"),
    ]
    gathered = _made(rows, header=header)
    asked = {(one.base.prompt, one.base.word, one.answer.word, one.distractor.word) for one in gathered.triples}
    assert asked == {
        ("The [MASK] are green.", "banks", "Bank", "bank"),
        ("[MASK] by bank they came.", "Bank", "banks", "bank"),
    }
    assert {one.language for one in gathered.triples} == {"en"}
    expected = {
        "the position is outside the sentence": [5],
        "the position is not a number": [6],
        "the word is not at the position": [7],
        "the word is in the sentence several times; add its position": [8],
        "the word is not in the sentence": [9],
        "a cell is empty": [10, 11],
        "the sentence contains the text [MASK]": [12],
        "the usage is a duplicate": [14],
        "the usage has several senses": [16, 17],
    }
    for kind, lines in expected.items():
        places = "; ".join(f"a.tsv, line {line}" for line in lines)
        noun = "line" if len(lines) == 1 else "lines"
        assert f"{len(lines)} {noun} left out: {kind} ({places})." in gathered.remarks
    assert "1 word has one sense only (花)." in gathered.remarks
    assert len(gathered.remarks) == len(expected) + 1
    assert [tuple(row.values()) for row in gathered.filters] == [
        ("readable usages", "semantic", 15, 4),
        ("words of several senses", "semantic", 4, 3),
        ("one question a base, capped by sense and word", "semantic", 3, 2),
    ]


def test_a_position_tells_which_of_several_is_meant():
    header = "word\tsense\tsentence\tposition"
    rows = [("花", "spend", " 她花钱买花。", 2), ("花", "flower", " 她花钱买花。", 5), ("花", "flower", "花开了。", ""),
            ("花", "spend", "他花了钱。", "")]  # fmt: skip
    triples = _made(rows, header=header).triples
    assert {(one.base.prompt, one.answer.prompt, one.distractor.prompt) for one in triples} == {
        ("她[MASK]钱买花。", "他[MASK]了钱。", "[MASK]开了。"),
        ("他[MASK]了钱。", "她[MASK]钱买花。", "[MASK]开了。"),
        ("她花钱买[MASK]。", "[MASK]开了。", "他[MASK]了钱。"),
        ("[MASK]开了。", "她花钱买[MASK]。", "他[MASK]了钱。"),
    }


def test_tables_with_commas_have_quotes(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('sentence,word,sense\n"花，好。",花,a\n"他说""花""。",花,a\n他花钱。,花,b\n', encoding="utf-8-sig")
    triples = word_sense_triples(path, seed=0).triples
    assert {one.base.sentence for one in triples} == {"花，好。", '他说"花"。'}


def test_a_table_without_its_columns_is_refused(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("word\tmeaning\n花\ta\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"a\.tsv, line 1: there is no column sense, sentence\..*word, sense, sentence"
    ):
        word_sense_triples(path, seed=0)
    with pytest.raises(InputError, match="there is no file"):
        word_sense_triples(tmp_path / "b.tsv", seed=0)
    path.write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="there is no column word, sense, sentence"):
        word_sense_triples(path, seed=0)


def test_own_senses_give_a_question_for_every_sentence():
    gathered = word_sense_triples(embedded_file("senses.tsv"), seed=0)
    assert gathered.remarks == []
    assert len(gathered.triples) >= 200
    made = make_question_set(gathered, seed=0).questions
    assert made.num_rows == len(gathered.triples)
    right = [
        choices.index(target)
        for choices, target in zip(made["choices"].to_pylist(), made["target"].to_pylist(), strict=True)
    ]
    assert 0.35 < sum(right) / len(right) < 0.65
