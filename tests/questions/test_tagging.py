"""Function words in their sentences: jieba, CoNLL-U and word/tag."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.suites.chneval.questions.chinese_words import CHINESE_WORDS
from merkhet.suites.chneval.questions.question_rows import CLASSES
from merkhet.suites.chneval.questions.text_anomalies import RemarkCounter
from merkhet.suites.chneval.questions.word_tagging import CHINESE_TAGS, tagged_sentences

ENGLISH = """\
# sent_id = 1
# text = But she can't go to the well-known place.
1\tBut\tbut\tCCONJ\t_\t_\t_\t_\t_\t_
2\tshe\tshe\tPRON\t_\t_\t_\t_\t_\t_
3-4\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
3\tca\tcan\tAUX\t_\t_\t_\t_\t_\t_
4\tn't\tnot\tPART\t_\t_\t_\t_\t_\t_
5\tgo\tgo\tVERB\t_\t_\t_\t_\t_\t_
5.1\twent\tgo\tVERB\t_\t_\t_\t_\t_\t_
6\tto\tto\tADP\t_\t_\t_\t_\t_\t_
7\tthe\tthe\tDET\t_\t_\t_\t_\t_\t_
8\twell\twell\tADV\t_\t_\t_\t_\t_\tSpaceAfter=No
9\t-\t-\tPUNCT\t_\t_\t_\t_\t_\tSpaceAfter=No
10\tknown\tknown\tADJ\t_\t_\t_\t_\t_\t_
11\tplace\tplace\tNOUN\t_\t_\t_\t_\t_\tSpaceAfter=No
12\t.\t.\tPUNCT\t_\t_\t_\t_\t_\t_
"""


def _found(path, remarked=None, **options):
    return list(tagged_sentences(path, RemarkCounter() if remarked is None else remarked, **options))


def _kinds(one):
    return [(word.text, word.kind) for word in one.words if word.kind]


def _check_places(one):
    for word in one.words:
        assert one.sentence.text[word.start : word.start + len(word.text)] == word.text


def test_raw_chinese_is_segmented_and_its_function_words_are_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("虽然他很累，但是还在桌子上写着吗？我把书送给他了，在桌子上呢。", encoding="utf-8")
    first, second = _found(path)
    assert _kinds(first) == [
        ("虽然", "C"), ("很", "D"), ("但是", "C"), ("还", "D"), ("在", "P"), ("上", "ND"), ("着", "U"), ("吗", "U"),
    ]  # fmt: skip
    assert [kind for word, kind in _kinds(second) if word in ("把", "了", "上", "呢")] == ["P", "U", "ND", "U"]
    assert (first.language, first.sentence.where) == ("zh", "a.txt, line 1")
    _check_places(first)
    _check_places(second)


def test_a_word_in_another_use_is_no_function_word(tmp_path):
    def check(sentence, word):
        path = tmp_path / "a.txt"
        path.write_text(sentence, encoding="utf-8")
        assert word not in dict(_kinds(_found(path)[0]))

    check_all(
        check,
        [
            ("他买了一把伞。", "把"),
            ("我喜欢这只猫。", "只"),
            ("你得早点去。", "得"),
            ("我们在车站等他。", "等"),
            ("她写了一则日记。", "则"),
            ("今天下着大雨。", "下"),
            ("我只有一本书。", "只有"),
            ("首都很大。", "首都"),
            ("我可以走了。", "可以"),
        ],
    )


def test_a_word_is_in_one_class_only():
    counts = Counter(word for words in CHINESE_WORDS.values() for word in words)
    assert list(CHINESE_WORDS) == list(CLASSES)
    assert [word for word, count in counts.items() if count > 1] == []


def test_the_classes_cover_the_published_ones(shared):
    """Most of the published words of a class, by how often they are asked for, are in the class here."""
    names = {"C": "conjunction", "D": "adverb", "P": "preposition", "U": "auxiliary", "ND": "direction-noun"}
    for kind, name in names.items():
        words = Counter()
        for line in (shared / "data/chneval/syntax" / f"{name}.txt").read_text(encoding="utf-8").splitlines():
            sentence, place = line.split("\t")
            words[sentence[int(place)]] += 1
        known = sum(count for word, count in words.items() if word in CHINESE_WORDS[kind])
        assert known / words.total() > 0.75, (kind, [word for word in words if word not in CHINESE_WORDS[kind]])


def test_other_tags_may_be_given(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("我看见一只猫。", encoding="utf-8")
    assert _kinds(_found(path, tags={"N": ["n"]})[0]) == [("猫", "N")]
    with pytest.raises(InputError, match="'n' has two classes, 'A' and 'B'"):
        _found(path, tags={"A": ["n"], "B": ["n"]})
    with pytest.raises(InputError, match=r"a\.txt: raw text is tagged in Chinese only; give a \.conllu file for 'en'"):
        _found(path, language="en")


def test_without_jieba_one_is_told_what_to_install(tmp_path):
    (tmp_path / "a.txt").write_text("你好。", encoding="utf-8")
    program = (
        "import sys; sys.modules['jieba'] = None\n"
        "from pathlib import Path\n"
        "from merkhet.core.errors import InputError\n"
        "from merkhet.suites.chneval.questions.function_words import function_word_clozes\n"
        "try: function_word_clozes(Path('a.txt'), seed=0)\n"
        "except InputError as error: print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == "segmenting Chinese needs jieba: pip install 'merkhet[chinese]'\n"


def test_jieba_says_nothing_and_leaves_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("你好吗？", encoding="utf-8")
    program = (
        "from pathlib import Path\n"
        "from merkhet.suites.chneval.questions.function_words import function_word_clozes\n"
        "print([one.usage.word for one in function_word_clozes(Path('a.txt'), seed=0).clozes])\n"
    )
    before = {path.name for path in Path(tempfile.gettempdir()).glob("*jieba*")}
    result = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("['吗']\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert {path.name for path in Path(tempfile.gettempdir()).glob("*jieba*")} == before


def test_a_treebank_gives_words_where_they_stand(tmp_path):
    path = tmp_path / "en_test-ud-train.conllu"
    path.write_text(ENGLISH, encoding="utf-8")
    (one,) = _found(path)
    assert one.sentence.text == "But she can't go to the well-known place."
    assert (one.language, one.sentence.where) == ("en", "en_test-ud-train.conllu, line 3")
    assert _kinds(one) == [("But", "C"), ("to", "P"), ("well", "D")]
    _check_places(one)
    path.write_text(ENGLISH.replace("# text", "# said"), encoding="utf-8")
    (joined,) = _found(path)
    assert joined.sentence.text == one.sentence.text
    assert joined.words == one.words


def test_bad_sentences_of_a_treebank_are_named(tmp_path):
    path = tmp_path / "a.conllu"
    good = "1\t好\t_\tADV\t_\t_\t_\t_\t_\tSpaceAfter=No\n\n"
    path.write_text(
        good + "1\t好\tADV\n\n" + "# text = 坏\n" + good + "x" + good + "# only a comment\n\n" + good.rstrip(),
        encoding="utf-8",
    )
    remarked = RemarkCounter()
    found = _found(path, remarked)
    assert [one.sentence.where for one in found] == ["a.conllu, line 1", "a.conllu, line 12"]
    assert remarked.remarks() == [
        "2 lines left out: a row of a .conllu file must have a number and 10 columns "
        "(a.conllu, line 3; a.conllu, line 8).",
        "1 line left out: the words do not match the text of the sentence (a.conllu, line 6).",
    ]


def test_tagged_text_is_joined_and_split(tmp_path):
    path = tmp_path / "a.tagged"
    path.write_text(
        "[中央/n  电视台/n]nt  和/c  他/r  说/v  ：/w  “/w  好/a  吗/y  ？/w  ”/w  他/r  走/v  了/u  。/w\n"
        "坏行/n  没有标记\n１/２/m  也/d  好/a  。/w\n",
        encoding="utf-8",
    )
    remarked = RemarkCounter()
    found = _found(path, remarked)
    assert [one.sentence.text for one in found] == ["中央电视台和他说：“好吗？”", "他走了。", "１/２也好。"]
    assert [_kinds(one) for one in found] == [[("和", "C"), ("吗", "U")], [("了", "U")], [("也", "D")]]
    assert remarked.remarks() == ["1 line left out: a word has no tag (a.tagged, line 2: 没有标记)."]
    for one in found:
        _check_places(one)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["我", "不", "。", "？", "”", "好的", "，"]), st.sampled_from("rdwy")), max_size=12
    )
)
def test_no_tagged_word_is_lost(pairs):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tagged"
        path.write_text(" ".join(f"{word}/{tag}" for word, tag in pairs), encoding="utf-8")
        found = _found(path)
    assert [(word.text, word.tag) for one in found for word in one.words] == pairs
    by_tag = defaultdict(lambda: None, {tag: kind for kind, tags in CHINESE_TAGS.items() for tag in tags})
    for one in found:
        _check_places(one)
        assert all(word.kind == by_tag[word.tag] for word in one.words)
