"""Questions that people bring: JSON lines by hand, folders that merkhet wrote."""

from __future__ import annotations

import json

import pytest
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.core.schemas import CANDIDATES, FACTS, FREQUENCIES, QUESTIONS, make_table
from merkhet.questions.question_files import QuestionSet, read_questions, write_questions


def written(folder, *rows, name="questions.jsonl"):
    path = folder / name
    path.write_text("\n\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    return path


def refusal(place) -> str:
    with pytest.raises(InputError) as refused:
        read_questions(place)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_questions_by_hand_are_asked_among_all_answers_of_their_task(tmp_path):
    path = written(
        tmp_path,
        {"prompt": "The capital of France is [MASK].", "answers": ["Paris"]},
        {"prompt": "The capital of Italy is [MASK].", "answers": "Rome"},
        {"prompt": "A big city is [MASK].", "answers": ["Paris", "London"], "target": "London"},
        {"prompt": "Snow is [MASK].", "answers": ["white"], "task": "colours"},
        {"prompt": "Coal is [MASK].", "answers": ["black"], "task": "colours"},
        {"prompt": "Is it so? [MASK]", "answers": ["yes"], "choices": ["yes", "no"]},
    )
    for place in (path, tmp_path):
        found = read_questions(place)
        questions = found.as_questions()
        towns = ("London", "Paris", "Rome", "yes")
        assert [one.candidates for one in questions[:3]] == [towns] * 3
        assert [one.candidates for one in questions[3:]] == [("black", "white"), ("black", "white"), ("yes", "no")]
        assert [one.target for one in questions] == ["Paris", "Rome", "London", "white", "black", "yes"]
        assert questions[1].answers == ("Rome",)
        assert len({one.question_id for one in questions}) == 6


def test_candidates_may_stand_beside_the_questions(tmp_path):
    written(tmp_path, {"prompt": "[MASK]", "answers": ["b"], "candidate_set": "letters"})
    written(tmp_path, {"candidate_set": "letters", "candidates": ["a", "b"]}, name="candidates.jsonl")
    assert read_questions(tmp_path).as_questions()[0].candidates == ("a", "b")


def test_what_was_written_is_read_again(tmp_path):
    row = {"prompt": "[MASK]", "answers": ["b"], "target": "b", "candidate_set": "letters", "facts": ["f_1"]}
    made = QuestionSet(
        make_table(QUESTIONS, [row]),
        make_table(CANDIDATES, [{"candidate_set": "letters", "candidates": ["a", "b"]}]),
        make_table(FACTS, [{"subject": "s", "predicate": "p", "object": "o"}]),
        make_table(FREQUENCIES, [{"task": "completion", "relation": "p", "answer": "b", "count": 2}]),
    )
    write_questions(made, tmp_path / "data")
    found = read_questions(tmp_path / "data")
    for name in ("questions", "candidates", "facts", "frequencies"):
        assert getattr(found, name).equals(getattr(made, name))


GOOD = {"prompt": "[MASK] is first.", "answers": ["a"]}


def test_a_wrong_question_is_named_by_file_and_row(tmp_path):
    def check(row, said):
        path = written(tmp_path, GOOD, row)
        found = refusal(path)
        assert found.startswith(f"{path}, row 3: ")
        assert said in found

    check_all(
        check,
        [
            (
                {"prompt": "x [MASK]", "answers": ["a"], "choices": ["b", "c"]},
                "the target 'a' is not among the candidates",
            ),
            (
                {"prompt": "x [MASK]", "answers": ["a"], "target": "b", "choices": ["a", "b"]},
                "the target 'b' is not among the answers",
            ),
            ({"prompt": "x [MASK]", "answers": ["a"], "choices": ["a", "b", "b"]}, "the candidate 'b' occurs twice"),
            ({"prompt": "x [MASK]", "answers": ["a"], "choices": "a"}, "'choices' must be list<item: string>, got 'a'"),
            ({"prompt": "x [MASK]", "answers": []}, "'answers' is empty; name every right answer"),
            ({"prompt": "x [MASK]"}, "'answers' is empty; every row of questions needs it"),
            ({"answers": ["a"]}, "'prompt' is empty"),
            ({"prompt": "x", "answers": ["a"]}, "has no slot"),
            ({"prompt": "x [MASK]", "answers": ["a"], "task": ["t"]}, "'task' must be string, got ['t']"),
            (
                {"prompt": "x [MASK]", "answer": ["a"]},
                "there is no column 'answer' in a table of questions; did you mean 'answers'?",
            ),
            (GOOD, "repeats"),
        ],
    )


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        (["a", "c"], ", row 3: the target 'b' is not among the candidates"),
        (["a", "b", "c", "c"], ", row 1: the candidate 'c' occurs twice"),
    ],
)
def test_a_wrong_candidate_set_is_named_by_the_first_question_that_shares_it(tmp_path, candidates, said):
    rows = [{"prompt": f"{text} [MASK]", "answers": [text], "candidate_set": "letters"} for text in "ab"]
    written(tmp_path, *rows)
    unused = {"candidate_set": "unused", "candidates": ["x", "x"]}
    written(tmp_path, {"candidate_set": "letters", "candidates": candidates}, unused, name="candidates.jsonl")
    assert said in refusal(tmp_path)


def test_json_that_is_none_is_refused_by_row_in_questions_and_by_place_in_other_files(tmp_path):
    good = '{"prompt": "The capital of France is [MASK].", "answers": ["Paris"], "choices": ["Paris", "Rome"]}'
    (tmp_path / "questions.jsonl").write_text(f'{good}\n{good[:-1]}, "answers": ["Rome"]}}\n')
    assert "row 2: not valid JSON (the key 'answers' is repeated at column 100)" in refusal(tmp_path)
    (tmp_path / "questions.jsonl").write_text(f"{good}\n")
    (tmp_path / "about.json").write_text('{"remarks": [],\n "filters": [NaN]}')
    assert "about.json: not valid JSON (NaN is not a number in JSON at line 2, column 14)" in refusal(tmp_path)
    (tmp_path / "about.json").unlink()
    fact = {"subject": "a", "predicate": "p", "object": "o", "start": "2020-02-30"}
    written(tmp_path, fact, name="facts.jsonl")
    assert "facts.jsonl, row 1: start '2020-02-30' is not a date: February 2020 has 29 days" in refusal(tmp_path)


def test_a_place_without_questions_is_refused(tmp_path):
    assert "holds no questions.parquet or questions.jsonl" in refusal(tmp_path)
    assert "there is no folder or file" in refusal(tmp_path / "absent")
    (tmp_path / "questions.jsonl").write_text("\n")
    assert refusal(tmp_path) == f"{tmp_path}/questions.jsonl holds no questions"
    written(tmp_path, {"prompt": "[MASK]", "answers": ["b"], "candidate_set": "letters"})
    assert "candidate set 'letters', which is not in the table of candidates" in refusal(tmp_path)
