"""ChnEval's own files: counted exactly, and what is wrong or odd in such files named by file and line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from merkhet.core import SLOT
from merkhet.core.errors import InputError
from merkhet.suites.chneval.published import read_published
from merkhet.suites.chneval.questions.question_rows import make_question_set


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def published(shared: Path):
    """The published files, read once, and their questions."""
    gathered = read_published(shared / "data" / "chneval")
    return gathered, make_question_set(gathered, seed=0)


@pytest.mark.slow
def test_the_published_files_are_counted_exactly(published) -> None:
    found = published[1].questions
    assert found.num_rows == 39_308
    assert Counter(found["task"].to_pylist()) == {
        "syntactic": 29_345,
        "semantic": 5_790,
        "commonsense": 3_111,
        "encyclopedia": 1_062,
    }
    classes = Counter(domain for domain in found["domain"].to_pylist() if domain)
    assert classes == {"C": 3_776, "D": 10_132, "P": 5_887, "U": 5_711, "ND": 3_839}


@pytest.mark.slow
def test_positions_are_respected(shared: Path, published) -> None:
    """A question with its answer in the slot is the published line, at the published position."""
    folder = shared / "data" / "chneval"
    asked = published[1]
    seen = Counter()
    for question in asked.as_questions():
        if question.words:
            for text, start, _ in question.usages:
                seen[text, start] += 1
        elif question.task == "syntactic":
            seen[question.prompt.replace(SLOT, question.target), question.prompt.index(SLOT)] += 1
    given = Counter()
    for file in [folder / "semantic.txt", *sorted((folder / "syntax").iterdir())]:
        for line in file.read_text(encoding="utf-8").splitlines():
            if line:
                sentence, position = line.split("\t")
                given[sentence, int(position)] += 1
    assert seen == given


def test_answers_of_facts_are_the_first_item_of_one_character(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        fact="甲\t色\t红\t甲的色是红。\n水\t化学式\t氧化氢\t水的化学式是氧化氢。\n铁塔\t高度\t三百米\t铁塔的高度三百米。\n",
    )
    gathered = read_published(folder)
    assert [cloze.usage.word for cloze in gathered.clozes] == ["红", "水", "三百米"]
    assert gathered.clozes[0].fact == ("甲", "色", "红")
    paper = read_published(folder, paper=True)
    assert [cloze.usage.word for cloze in paper.clozes] == ["红", "水"]
    assert any("fact.txt, line 3" in remark for remark in paper.remarks)


def test_lines_that_cannot_be_asked_are_named_and_counted(tmp_path: Path) -> None:
    good = {
        "syntax/adverb.txt": "他也来。\t1",
        "commonsense.txt": "鱼会游。\t鱼",
        "fact.txt": "乙\t色\t绿\t乙的色是绿。",
    }
    cases = (
        ("syntax/adverb.txt", "我很好。\t4", "the position is outside the sentence"),
        ("syntax/adverb.txt", "我很好。\t-1", "the position is not an integer"),
        ("syntax/adverb.txt", "我很好。\t一", "the position is not an integer"),
        ("syntax/adverb.txt", "我很好。\t3", "there is no word at the position"),
        ("syntax/adverb.txt", "我很好。", "a line must have sentence and position"),
        ("syntax/adverb.txt", "我[MASK]好。\t0", "the sentence contains the text [MASK]"),
        ("commonsense.txt", "狗会叫。\t猫", "the target is not in the sentence"),
        ("commonsense.txt", "狗咬狗。\t狗", "the target is in the sentence several times"),
        ("commonsense.txt", "狗会叫。\t", "the target is not in the sentence"),
        ("commonsense.txt", "狗会叫。", "a line must have sentence and target"),
        ("fact.txt", "甲\t色\t红", "a line must have entity, relation, attribute and text"),
        ("fact.txt", "甲\t色\t红\t这里什么都没有。", "the target is not in the sentence"),
    )
    for number, (name, line, said) in enumerate(cases):
        file = tmp_path / str(number) / name
        file.parent.mkdir(parents=True)
        file.write_text(f"{good[name]}\n{line}\n{good[name]}\n", encoding="utf-8")
        gathered = read_published(tmp_path / str(number))
        assert len(gathered.clozes) == 2, line
        assert gathered.remarks[0] == "1 line that cannot be asked is left out."
        assert said in gathered.remarks[1], line
        assert f"{file.name}, line 2" in gathered.remarks[1], line


def test_a_block_of_senses_that_is_broken_leaves_the_others_alone(tmp_path: Path) -> None:
    block = "他打电话。\t1\n我打给你。\t1\n她打我。\t1\n"
    broken = [
        "他打电话。\t1\n\n我打给你。\t1\n她打我。\t1\n",  # An empty line within it.
        "他打电话。\t1\n我打给你。\t2\n她打我。\t1\n",  # Another character.
        "他打电话。\t1\n我打给你。\t9\n她打我。\t1\n",  # Outside.
        "他打电话。\t1\n我打给你。\t1\n我打给你。\t1\n",  # Nothing to choose.
    ]
    (tmp_path / "semantic.txt").write_text("\n".join([block, *broken, block.replace("她", "它")]), encoding="utf-8")
    gathered = read_published(tmp_path)
    assert [triple.distractor.sentence for triple in gathered.triples] == ["她打我。", "它打我。"]
    text = " ".join(gathered.remarks)
    assert "5 lines that cannot be asked are left out." in text  # The first is in two parts now.
    for place in ("line 5: 1 line", "line 7: 2 lines", "line 10: 打给打", "line 14: 9 of 5", "line 18"):
        assert f"semantic.txt, {place}" in text


def test_positions_in_other_units_are_suspected(tmp_path: Path) -> None:
    text = "😀他打电话。\t3\n我打给你。\t1\n她打我。\t1\n"
    assert "UTF-16" in " ".join(read_published(written(tmp_path, semantic=text)).remarks)


def test_what_is_odd_is_kept_and_named(tmp_path: Path) -> None:
    lines = ["他也來说话。\t1", "他也会ＡＢＣ。\t1", "他也笑😀。\t1", "他也去𠮷野家。\t1", "他也好。\t1"]
    gathered = read_published(written(tmp_path, syntax__adverb="\n".join(lines)))
    assert len(gathered.clozes) == 5
    text = " ".join(gathered.remarks)
    assert "1 line: traditional and simplified characters are mixed (adverb.txt, line 1: 來 and 说话)." in text
    assert "full-width letters, digits or blanks (adverb.txt, line 2: ＡＢＣ)" in text
    assert (
        "2 lines: emoji or other characters beyond the basic plane (adverb.txt, line 3: 😀; adverb.txt, line 4: 𠮷)."
        in text
    )


def test_lines_that_are_there_twice_are_asked_twice_and_stand_together(tmp_path: Path) -> None:
    made = make_question_set(
        read_published(written(tmp_path, syntax__auxiliary="是吗？\t1\n" * 3 + "好吗？\t1\n")), seed=0
    )
    assert made.questions.num_rows == 4
    assert len(set(made.clusters().values())) == 2
    assert any("'是吗？' occurs 3 times" in remark for remark in made.about["remarks"])


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "commonsense.txt").write_bytes("狗会叫。\t狗\n".encode() + "鱼".encode("gb18030"))
    with pytest.raises(InputError, match=r"commonsense\.txt, line 2: the text is not UTF-8"):
        read_published(tmp_path)


@pytest.mark.slow
def test_the_published_files_have_their_oddities(published) -> None:
    remarks = " ".join(published[0].remarks)
    assert "left out" not in remarks
    assert "380 lines repeat others" in remarks
    assert "5 blocks have the same base and answer" in remarks
    assert "traditional and simplified characters are mixed" in remarks
