from __future__ import annotations

import random

from linguistic_runs import HEADLINE, make_answers, make_questions
from report_pages import Page

from merkhet.core.schemas import ANSWERS, PREMISES, QUESTIONS, SCORES, make_table
from merkhet.questions.question_files import QuestionSet
from merkhet.reports.html_report import render_html
from merkhet.reports.report_data import ReportData


def shown(questions, answers, **tables):
    """What a reader sees of the questions as they were asked."""
    headline = [{"task": task, "metric": metric.name} for task, metric in HEADLINE]
    data = ReportData(
        title="Senses",
        study={},
        record={},
        suite={"headline": headline},
        scores=make_table(SCORES, []),
        questions=questions.questions,
        candidates=questions.candidate_sets(),
        answers=make_table(ANSWERS, answers),
        findings={},
        **tables,
    )
    html = render_html(data)
    part = html[html.index('<section id="questions">') : html.index('<section id="unusable">')]
    return Page(part).text.replace(" ", "")


def test_senses_are_shown_with_their_word_in_brackets():
    questions = make_questions(4)
    text = shown(questions, make_answers(questions, {"bert": 0.5}))
    assert "[MASK]" not in text
    asked = [question for question in questions.as_questions() if question.words]
    for kind in ("进出的【口】", "还有上网【口】", "张开【口】"):
        assert kind in text
    assert any(f"Right:{one.target.replace('[MASK]', '【口】')}" in text for one in asked)
    assert "第" in text and "?" in text


def test_each_usage_has_its_own_word():
    row = {"task": "semantic", "prompt": "a [MASK] b", "answers": ["c [MASK]"], "target": "c [MASK]"}
    row |= {"choices": ["[MASK] d", "c [MASK]"], "words": ["run", "<b>Ran</b>", "runs"], "question_id": "q"}
    answer = {"question_id": "q", "model": "m", "probe": "compare", "method": "word", "gold_ranks": [1.0]}
    ranked = [{"candidate": "c [MASK]", "score": 0.9}, {"candidate": "[MASK] d", "score": 0.1}]
    text = shown(QuestionSet(make_table(QUESTIONS, [row])), [{**answer, "ranked": ranked}])
    assert "a【run】b" in text and "Right:c【runs】" in text and "【<b>Ran</b>】d" in text and "[MASK]" not in text


def test_a_long_usage_is_cut_around_its_word():
    draw = random.Random(0)
    long = ["".join(draw.choice("天地玄黄") for _ in range(2000)) + f"[MASK]{end}" + "宇" * 2000 for end in "甲乙丙"]
    row = {"task": "semantic", "prompt": long[0], "answers": [long[1]], "target": long[1], "choices": long[1:]}
    answer = {"question_id": "q", "model": "m", "probe": "compare", "method": "word", "gold_ranks": [2.0]}
    ranked = [{"candidate": text, "score": 0.5} for text in long[:0:-1]]
    questions = QuestionSet(make_table(QUESTIONS, [{**row, "words": ["口"], "question_id": "q"}]))
    text = shown(questions, [{**answer, "ranked": ranked}])
    assert all(f"【口】{end}宇" in text for end in "甲乙丙") and len(text) < 4000


def test_a_tag_is_there_once():
    questions = make_questions(4)
    text = shown(questions, make_answers(questions, {"bert": 0.5}))
    assert "candidatesC" in text.replace("D", "C").replace("P", "C").replace("U", "C")
    assert not any(f"candidates{name}{name}" in text for name in ("C", "D", "P", "U", "ND"))


def test_the_premises_of_a_conclusion_stand_under_its_question():
    row = {"task": "reasoning", "prompt": "Lille pays with the [MASK].", "answers": ["euro"], "target": "euro"}
    row |= {"choices": ["euro", "yen"], "rule": "SubOP(OPChain)", "question_id": "q", "facts": ["f_3", "f_1", "f_2"]}
    answer = {
        "question_id": "q",
        "model": "m",
        "probe": "rank",
        "method": "mean",
        "gold_ranks": [1.0],
        "golds": ["euro"],
    }
    answer |= {"ranked": [{"candidate": "euro", "score": 0.9}]}
    sentences = {"f_1": "Lille is a city in <b>France</b>.", "f_2": "France pays with the euro."}
    premises = [
        {"question_id": "q", "fact_id": "f_1", "step": 1, "axiom": "SubOP(OPChain)", "sentence": sentences["f_1"]},
        {"question_id": "q", "fact_id": "f_2", "step": 2, "axiom": "EquivalentOP", "sentence": sentences["f_2"]},
        {"question_id": "other", "fact_id": "f_9", "step": 1, "axiom": "InverseOP", "sentence": "Nothing."},
    ]
    questions = QuestionSet(make_table(QUESTIONS, [row]))
    text = shown(questions, [answer], premises=make_table(PREMISES, premises))
    told = "Followsfrom:Lilleisacityin<b>France</b>.Francepayswiththeeuro.EquivalentOP"
    assert told in text and "Nothing" not in text and "Followsfrom" not in shown(questions, [answer])
