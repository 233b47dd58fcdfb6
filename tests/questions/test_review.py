"""Review: a balanced sample on a sheet, and its verdicts read back."""

from __future__ import annotations

import csv
import io
import random
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, QUESTIONS, make_table
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.review import (
    COLUMNS,
    Sheet,
    apply_review,
    combine_verdicts,
    draw_sample,
    read_sheet,
    render_sheet,
    sheet_csv,
    write_sheet,
)


def question(number, task="completion", template="capital/1", **others):
    row = {"question_id": f"q_{number:04d}", "prompt": f"{number} is [MASK].", "answers": ["a", "b"], "target": "a"}
    return row | {"choices": ["a", "c"], "task": task, "template": template} | others


def asked(*rows):
    facts = [
        {"fact_id": "f_1", "subject": "France", "predicate": "capital", "object": "Paris", "start": "0987"},
        {"fact_id": "f_2", "subject": "iron", "predicate": "melting point", "value": 1538.0, "unit": "°C"},
    ]
    return QuestionSet(make_table(QUESTIONS, rows), facts=make_table(FACTS, facts))


def many():
    rows = [question(number, "completion", f"r{number % 3}/{number % 5}") for number in range(300)]
    rows += [question(number, "checking", f"r{number % 2}/1") for number in range(300, 340)]
    return [*rows, *[question(number, "reasoning", None) for number in range(340, 344)]]


def test_the_sample_is_balanced_seeded_and_independent_of_the_order():
    rows = many()
    sample = draw_sample(asked(*rows), 60, 5)
    assert Counter(row["task"] for row in sample) == {"completion": 28, "checking": 28, "reasoning": 4}
    relations = Counter(row["template"].partition("/")[0] for row in sample if row["task"] == "completion")
    assert sorted(relations.values()) == [9, 9, 10]
    assert sorted(Counter(row["template"] for row in sample if row["task"] == "checking").values()) == [14, 14]
    shuffled = random.Random(3).sample(rows, len(rows))
    assert draw_sample(asked(*shuffled), 60, 5) == sample
    assert {row["question_id"] for row in draw_sample(asked(*rows), 60, 6)} != {row["question_id"] for row in sample}
    assert len(draw_sample(asked(*rows), 1000, 5)) == 344


def test_hidden_characters_are_shown_and_the_sheet_is_read_back(tmp_path):
    hidden = "\x00\t\n\r\x1b\x7f\x85\x9f\xad\u061c\u200b\u200e\u200f\u2028\u202a\u202e\u2060\u2066\u2069\ufeff"
    names = [f"a{character}b" for character in hidden]
    rows = [
        question(number, question_id=f"q\u200b{number}", prompt=f"{name} is [MASK].", answers=[name], target=name)
        | {"choices": [name, "c"], "domain": name, "template": f"{name}/1"}
        for number, name in enumerate(names)
    ]
    drawn = draw_sample(asked(*rows), 100, 1)
    assert len(drawn) == len(rows) and all(cell.isprintable() for row in drawn for cell in row.values())
    (row,) = [row for row in drawn if row["question_id"] == f"q‹U+200B›{hidden.index(chr(0x202E))}"]
    assert row["prompt"] == "a‹U+202E›b is [MASK]." and row["choices"] == "a‹U+202E›b | c"
    for page in (sheet_csv(drawn), render_sheet(drawn, "Review")):
        assert not (set(hidden) - set("\n\r\ufeff")) & set(page)
    judged = [row | {"verdict": "good"} for row in drawn]
    write_sheet(judged, tmp_path / "sheet.csv", "Review")
    sheet = read_sheet(tmp_path / "sheet.csv", frozenset(row["question_id"] for row in rows))
    assert sheet.verdicts == {row["question_id"]: "good" for row in rows}
    plain = "naïve 北京 नमस्ते Ωmega €5 😀 [MASK]"
    assert draw_sample(asked(question(1, prompt=plain)), 1, 1)[0]["prompt"] == plain


def test_a_row_says_what_a_reviewer_needs():
    own = question(1, domain="geography", facts=["f_1", "f_2", "f_unknown"])
    (row,) = draw_sample(asked(own), 5, 0)
    assert row == {
        "question_id": "q_0001",
        "task": "completion",
        "domain": "geography",
        "template": "capital/1",
        "prompt": "1 is [MASK].",
        "answers": "a | b",
        "choices": "a | c",
        "facts": "France capital Paris (0987–) | iron melting point 1538 °C",
        "verdict": "",
        "remark": "",
    }
    assert tuple(row) == COLUMNS


def test_senses_are_reviewed_with_their_word_in_place():
    pair = {"choices": ["还有上网[MASK]。", "张开[MASK]。"], "answers": ["还有上网[MASK]。"], "template": None}
    one = question(1, "semantic", prompt="进出的[MASK]。", words=["口"], **pair)
    two = question(2, "semantic", prompt="进出的[MASK]。", words=["门", "口", "嘴"], **pair)
    rows = {row["question_id"]: row for row in draw_sample(asked(one, two), 5, 0)}
    first, second = rows["q_0001"], rows["q_0002"]
    assert (first["prompt"], first["answers"]) == ("进出的【口】。", "还有上网【口】。")
    assert first["choices"] == "还有上网【口】。 | 张开【口】。"
    assert (second["prompt"], second["choices"]) == ("进出的【门】。", "还有上网【口】。 | 张开【嘴】。")
    page, sheet = render_sheet([first, second], "senses"), sheet_csv([first, second])
    assert all("还有上网【口】。" in text and "[MASK]" not in text for text in (page, sheet))


def test_csv_opens_as_text_in_a_spreadsheet_and_is_read_again(tmp_path):
    formulas = ["=1+1", "+1", "-1 [MASK]", "@SUM(A1)", "\tx", 'say "hi", é\n[MASK]']
    rows = [dict.fromkeys(COLUMNS, "") | {"question_id": f"q_{n}", "prompt": text} for n, text in enumerate(formulas)]
    text = sheet_csv(rows)
    assert text.startswith("\ufeffquestion_id,")
    read = list(csv.DictReader(io.StringIO(text[1:], newline="")))
    assert [row["prompt"] for row in read] == [*(f"'{formula}" for formula in formulas[:5]), formulas[5]]
    assert not any(cell.startswith(("=", "+", "-", "@", "\t")) for row in read for cell in row.values())
    with pytest.raises(InputError, match=r"sheet.txt: a review sheet must be a .csv or .html file"):
        write_sheet(rows, tmp_path / "sheet.txt", "t")


def filled(folder, text, name="sheet.csv", **options):
    (folder / name).write_text(text, **options)
    return folder / name


KNOWN = frozenset({"q_1", "q_2", "-q", "q_3"})


@pytest.mark.parametrize(
    "text",
    [
        "question_id,verdict\nq_1,good\nq_2,BAD \nq_3,\n'-q,unsure\n",
        "\ufeffquestion_id;prompt;verdict;remark\r\nq_1;a, b;good;\r\n;;;\r\nq_2;;bad;why\r\n'-q;;unsure\r\n",
        "Verdict\tQuestion_ID\ngood\tq_1\nbad\tq_2\n\nunsure\t'-q\n",
    ],
)
def test_sheets_are_read_however_a_spreadsheet_saved_them(tmp_path, text):
    found = read_sheet(filled(tmp_path, text, encoding="utf-8"), KNOWN)
    assert found == Sheet("sheet.csv", {"q_1": "good", "q_2": "bad", "-q": "unsure"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("question_id,verdict\nq_1,good\nq_9,bad\n", ", row 3: there is no question 'q_9' in the folder"),
        ("question_id,verdict\nq_1,goood\n", ", row 2: the verdict is 'goood'; did you mean 'good'?"),
        ("question_id,verdict\nq_1,good\nq_1,bad\n", ", row 3: the question q_1 occurs twice"),
        ("question_id,remark\nq_1,good\n", "there is no column 'verdict'"),
        ("", "there is no column 'question_id'"),
        ('question_id,verdict\n"a\nb",x\n', ", row 3: there is no question"),
    ],
)
def test_a_wrong_sheet_is_refused_by_row(tmp_path, text, said):
    path = filled(tmp_path, text)
    with pytest.raises(InputError) as refused:
        read_sheet(path, KNOWN)
    assert str(path) in str(refused.value) and said in str(refused.value)
    with pytest.raises(InputError, match="not UTF-8"):
        read_sheet(filled(tmp_path, "question_id,verdict\nq_1,good,é\n", encoding="latin-1"), KNOWN)
    with pytest.raises(InputError, match="there is no file"):
        read_sheet(tmp_path / "absent.csv", KNOWN)


def test_bad_questions_go_and_poor_templates_are_named():
    found = asked(*(question(number, template=f"r/{number // 4}") for number in range(12)))
    marks = {"q_0000": "bad", "q_0001": "bad", "q_0002": "good", "q_0003": "unsure"}
    marks |= {"q_0004": "bad", "q_0005": "bad", "q_0008": "good", "q_0009": "good", "q_0010": "bad"}
    review = combine_verdicts(found, [Sheet("one", marks)])
    assert review.judged == {"good": 3, "bad": 5, "unsure": 1}
    assert review.left_out == ("q_0000", "q_0001", "q_0004", "q_0005", "q_0010")
    assert review.poor_templates == ("r/0",)
    assert combine_verdicts(found, [Sheet("one", marks)], min_judged=2).poor_templates == ("r/0", "r/1")
    kept = apply_review(found, review)
    assert kept.questions.num_rows == 7 and not set(review.left_out) & set(kept.questions["question_id"].to_pylist())
    assert kept.about["filters"] == [{"filter": "review", "task": "completion", "before": 12, "after": 7}]
    assert kept.about["review"]["poor_templates"] == ["r/0"]
    with pytest.raises(InputError, match="leaves no question"):
        apply_review(found, combine_verdicts(found, [Sheet("all", {f"q_{n:04d}": "bad" for n in range(12)})]))


def test_sheets_are_weighed_against_each_other():
    found = asked(*(question(number) for number in range(4)))
    one = Sheet("one", {"q_0000": "bad", "q_0001": "bad", "q_0002": "unsure", "q_0003": "good"})
    two = Sheet("two", {"q_0000": "good", "q_0001": "good", "q_0002": "bad"})
    three = Sheet("three", {"q_0001": "good", "q_0002": "unsure"})
    assert combine_verdicts(found, [one, two]).left_out == ("q_0000", "q_0001", "q_0002")
    assert combine_verdicts(found, [one, two, three]).left_out == ("q_0000", "q_0002")
    agreements = combine_verdicts(found, [one, two, three, Sheet("none", {"q_0003": "bad"})]).agreements
    assert [(found.first, found.second, found.questions) for found in agreements] == [
        ("one", "two", 3),
        ("one", "three", 2),
        ("one", "none", 1),
        ("two", "three", 2),
        ("two", "none", 0),
        ("three", "none", 0),
    ]
    assert agreements[-1].kappa is None


marks = st.sampled_from(["good", "bad", "unsure"])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(marks, marks), min_size=1, max_size=30))
def test_kappa_is_agreement_beyond_what_shuffling_one_sheet_would_give(pairs):
    found = asked(*(question(number) for number in range(len(pairs))))
    sheets = [Sheet(str(side), {f"q_{n:04d}": pair[side] for n, pair in enumerate(pairs)}) for side in (0, 1)]
    (agreement,) = combine_verdicts(found, sheets).agreements
    observed = sum(one == other for one, other in pairs) / len(pairs)
    shuffled = sum(one == other for one, _ in pairs for _, other in pairs) / len(pairs) ** 2
    expected = 1.0 if shuffled == 1 else (observed - shuffled) / (1 - shuffled)
    assert agreement.questions == len(pairs) and agreement.kappa == pytest.approx(expected)


def page_of(*rows):
    return render_sheet(draw_sample(asked(*rows), 10, 0), "Sheet <b>")


def test_the_page_escapes_what_came_from_data_and_needs_no_network():
    page = page_of(question(1, prompt="</script><img src=x onerror=alert(1)> [MASK]", domain='"><b>'))
    assert "<img" not in page and "<b>" not in page.replace("<b>good</b>, <b>bad</b> or <b>unsure</b>", "").replace(
        "<noscript><p><b>", ""
    )
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", page.partition("<style>")[0] + page.partition("</style>")[2])


@pytest.mark.browser
def test_the_page_in_a_browser_saves_what_read_sheet_reads(page, tmp_path):
    """Keys, a click and a remark fill the sheet; what the button saves is read back."""
    rows = [question(1, prompt='A "quoted", [MASK]'), question(2, prompt="=1+[MASK]"), question(3)]
    open_sheet(page, page_of(*rows), tmp_path)
    for key in "bjku":
        page.keyboard.press(key)
    third = page.locator("article").nth(2)
    third.locator("input[value=good]").click()
    third.locator(".remark input").focus()
    page.keyboard.press("b")
    third.locator(".remark input").fill('so, "fine"')
    with page.expect_download() as download:
        page.locator("#save").click()
    download.value.save_as(tmp_path / "verdicts.csv")
    ids = page.locator("article code").all_inner_texts()
    found = read_sheet(tmp_path / "verdicts.csv", frozenset(ids))
    assert found.verdicts == dict(zip(ids, ("bad", "unsure", "good"), strict=True))
    saved = (tmp_path / "verdicts.csv").read_text(encoding="utf-8-sig")
    lines = list(csv.DictReader(io.StringIO(saved, newline="")))
    assert lines[2]["remark"] == 'so, "fine"'
    prompts = {line["question_id"]: line["prompt"] for line in lines}
    assert prompts["q_0001"] == 'A "quoted", [MASK]' and prompts["q_0002"] == "'=1+[MASK]"
    assert "3 of 3 judged" in page.locator("body").inner_text()


@pytest.mark.browser
def test_only_the_page_s_own_script_runs(page, tmp_path):
    html = page_of(question(1)).replace("</body>", "<script>document.title = 'taken over'</script></body>")
    open_sheet(page, html, tmp_path)
    assert page.title() == "Sheet <b>"
    assert page.locator("article.current").count() == 1 and "0 of 1 judged" in page.locator("body").inner_text()
    assert len(page.problems) == 1 and "Content Security Policy" in page.problems[0]
    page.problems.clear()


def open_sheet(page, html, folder):
    (folder / "page.html").write_text(html, encoding="utf-8")
    page.goto((folder / "page.html").as_uri())
