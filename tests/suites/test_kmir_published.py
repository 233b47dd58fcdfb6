"""KMIR's own files: read from where a user put them, asked, and predictions on them scored."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import merkhet
from merkhet.core.errors import InputError
from merkhet.engine.build_step import data_files
from merkhet.engine.predictions import write_predictions
from merkhet.metrics.text_overlap import word_f1
from merkhet.questions.question_files import read_questions
from merkhet.suites.kmir.published import read_published
from merkhet.suites.kmir.suite import SUITE


def row(qid, query, answer, kind="Triple Completion", **others):
    return {"qid": qid, "query": query, "answer": answer, "relType": kind, **others}


TRAIN = [row("a1", "The capital of France is [MASK].", ["Paris"])]
DEV = [
    row("a1", "The capital of Italy is [MASK] [MASK] [MASK].", ["Rome", "Roma"]),
    row("a2", "Among A, B, C, and D, [MASK] is the outlier in terms of the kind.", ["D"], "Entity Distinction"),
    row("a3", 'Is the statement "Iron is a gas." true? [MASK].', ["no"], "Statement Checking"),
]
TEST = [
    row(7, "The capital of Spain is [mask].", ["Madrid"], "triple completion"),
    row(8, "A cat is a [MASK].", "vertebrate", "Predicate_Reasoning", question="What is a cat?"),
    row(9, "[MASK] was born in [MASK].", ["Dante", "Florence"]),
    row(10, "No slot is here.", ["Dante"]),
    row(11, "The poet is [MASK].", [" ", None]),
    row(12, "The odd one is [MASK].", ["Odd"], "Fact Recall!"),
]


def written(folder: Path, **files: list[object]) -> Path:
    folder.mkdir(exist_ok=True)
    for split, rows in files.items():
        lines = [line if isinstance(line, str) else json.dumps(line) for line in rows]
        (folder / f"kmir_{split}_cloze.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def official(tmp_path: Path) -> Path:
    return written(tmp_path / "official", train=TRAIN, dev=DEV, test=TEST)


def test_rows_become_questions_of_their_task_and_split(official: Path) -> None:
    found = read_published(official)
    rows = {one["question_id"]: one for one in found.questions.to_pylist()}
    assert list(rows) == ["train/a1", "dev/a1", "dev/a2", "dev/a3", "test/7", "test/8", "test/12"]
    assert [one["task"] for one in rows.values()] == [
        "completion",
        "completion",
        "distinction",
        "checking",
        "completion",
        "reasoning",
        "fact-recall",
    ]
    assert [one["split"] for one in rows.values()] == ["train", "dev", "dev", "dev", "test", "test", "test"]
    assert rows["dev/a1"]["prompt"] == "The capital of Italy is [MASK]."
    assert rows["test/7"]["prompt"] == "The capital of Spain is [MASK]."
    assert rows["dev/a1"]["answers"] == ["Rome", "Roma"] and rows["test/8"]["answers"] == ["vertebrate"]
    questions = found.by_id()
    assert questions["test/7"].candidates == ("Madrid", "Paris", "Rome")
    assert questions["dev/a3"].candidates == ("no", "yes")


def test_what_is_odd_is_said(official: Path) -> None:
    about = read_published(official).about
    remarks = "\n".join(about["remarks"])
    assert "the file called dev holds 3 questions and the one called train 1" in remarks
    assert "Rows left out ([MASK] in several places): 1; the first is kmir_test_cloze.jsonl, row 3." in remarks
    assert "Rows left out (no [MASK]): 1; the first is kmir_test_cloze.jsonl, row 4." in remarks
    assert "Rows left out (no answer): 1; the first is kmir_test_cloze.jsonl, row 5." in remarks
    assert (
        "1 question has the relType 'Fact Recall!', which is none of KMIR's four; in the suite it is the task"
        in remarks
    )
    assert about["sources"] == ["KMIR, the published questions, CC BY-NC-SA 4.0: 1 from train, 3 from dev, 3 from test"]


def test_any_of_the_files_will_do(tmp_path: Path) -> None:
    test = written(tmp_path / "test", test=TEST[:2])
    assert read_published(test).about["remarks"] == []
    assert read_published(test / "kmir_test_cloze.jsonl").questions.equals(read_published(test).questions)
    assert "dev is the large one" in read_published(written(tmp_path / "dev", dev=DEV)).about["remarks"][0]


def test_candidates_are_the_target_and_other_answers_of_the_task(tmp_path: Path) -> None:
    rows = [row(number, f"Thing {number} is [MASK].", [f"name {number % 250}"]) for number in range(600)]
    rows += [
        row(f"r{number}", f"So {number} is [MASK].", [f"other {number}"], "Predicate Reasoning") for number in range(5)
    ]
    found = read_published(written(tmp_path / "one", dev=rows))
    again = read_published(written(tmp_path / "two", dev=rows[::-1]))
    assert {q: one.candidates for q, one in found.by_id().items()} == {
        q: o.candidates for q, o in again.by_id().items()
    }
    assert found.candidates.num_rows == 4
    for one in found.as_questions():
        size = len(one.candidates)
        assert one.target in one.candidates and len(set(one.candidates)) == size
        if one.task == "completion":
            assert size in (83, 84) and all(text.startswith("name ") for text in one.candidates)
        else:
            assert set(one.candidates) == {f"other {number}" for number in range(5)}


SHOWN = [
    ("{0}, {1}, {2}, and {3}, which is a outlier, in terms of the occupation? [MASK].", "Entity Distinction"),
    ("Which is different with others in terms of the kind, {0}, {1}, {2}, and {3}? [MASK].", "Entity Distinction"),
    (
        "Which is different with others among the following entities in terms of the kind, {0}, {1}, {2}, and {3}? "
        "[MASK].",
        "Entity Distinction",
    ),
    ("Among {0}, {1}, {2}, and {3}, [MASK] is the outlier in terms of the kind.", "Entity Distinction"),
    ("Which of the following has a higher boiling point? {0}, {1}, {2}, {3}, [MASK].", "Predicate Reasoning"),
    ("Which of the following can be an alloy? {0}, {1}, {2}, {3} [MASK].", "Predicate Reasoning"),
    ("Which person is most likely to hold a concert, {0}, {1}, {2}, or {3}? [MASK].", "Predicate Reasoning"),
    ("which of the following is the grandfather of Isaac Newton? A. {0} B. {1} C. {2} D. {3} [MASK]", "Reasoning"),
    ("Choose one of {0}, {1}, {2}, or {3}: the answer is [MASK].", "Predicate Reasoning"),
    ("Which of the following is rare: {0}; {1}; {2}; {3}? [MASK]", "Predicate Reasoning"),
]
"""Forms of the paper (tables 2, 8 and 10) and variants; the choices stand in the text in any order."""


def test_choices_in_the_text_are_the_candidates(tmp_path: Path) -> None:
    names = ["water", "methyl formate", "1,2-dichloroethane", "Sammy Davis, Jr."]
    rows = [
        row(f"{form}-{place}", text.format(*names), [names[place].upper() if place == 1 else names[place]], kind)
        for form, (text, kind) in enumerate(SHOWN)
        for place in range(4)
    ]
    found = read_published(written(tmp_path / "shown", test=rows))
    for question in found.as_questions():
        place = int(question.question_id.rpartition("-")[2])
        expected = [*names[:place], question.target, *names[place + 1 :]]
        assert list(question.candidates) == expected, question.prompt
    assert found.questions["candidate_set"].null_count == len(rows)


def test_a_guess_is_right_as_often_as_the_paper_says(tmp_path: Path) -> None:
    """Three of four reasoning questions show four choices: a guess is right in 0.75 * 0.25 = 18.75%."""
    rows = [
        row(number, text.format("Ann", "Ben", "Cid", "Dan"), ["Cid"], kind)
        for number, (text, kind) in enumerate(SHOWN[:7])
    ]
    rows.append(row("open", "A cat is a [MASK].", ["vertebrate"], "Predicate Reasoning"))
    rows += [row(f"m{number}", f"Thing {number} is [MASK].", [f"name {number}"]) for number in range(30)]
    data = written(tmp_path / "data", test=rows)
    remarks = read_published(data).about["remarks"]
    assert (
        "Choices in the text: 4 of 4 distinction questions. A guess among them is right in 25.00% of all, if no open "
        "question is guessed." in remarks
    )
    assert (
        "Choices in the text: 3 of 4 reasoning questions. A guess among them is right in 18.75% of all, if no open "
        "question is guessed." in remarks
    )
    assert not any(remark.startswith("Choices that could not") for remark in remarks)
    run = merkhet.run("kmir", data=data, models=["random"], settings=["report=none"], out=tmp_path / "run")
    chance = {
        score["task"]: score["chance"]
        for score in run.scores.to_pylist()
        if score["metric"] == "accuracy"
        and not any(score.get(group) for group in ("domain", "relation", "rule", "form"))
    }
    assert chance["distinction"] == pytest.approx(0.25)
    assert chance["reasoning"] == pytest.approx(0.1875 + 0.25)  # The only open question has one candidate.
    assert chance["completion"] == pytest.approx(1 / 30)


def test_choices_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    rows = [
        row("a", "Among Tyler, the Creator, Abba, Queen, and Kiss, [MASK] is the outlier.", ["Kiss"], "Distinction"),
        row("b", "The singer of Igor is [MASK].", ["Tyler, the Creator"]),
        row("c", "Among Earth, Wind and Fire, Abba, Queen, and Kiss, [MASK] is the outlier.", ["Kiss"], "Distinction"),
        row("d", "Among Abba, Queen, and Kiss, [MASK] is the outlier.", ["Muse"], "Distinction"),
        row("e", "Which of the following is a band? [MASK].", ["Abba"], "Predicate Reasoning"),
        row("f", "[MASK] gives milk, cheese, and meat.", ["cow"], "Predicate Reasoning"),
    ]
    found = read_published(written(tmp_path / "odd", test=rows))
    shown = {one["question_id"]: one["choices"] for one in found.questions.to_pylist()}
    assert shown["test/a"] == ["Tyler, the Creator", "Abba", "Queen", "Kiss"]  # The name is an answer elsewhere.
    assert [shown[f"test/{name}"] for name in "bcdef"] == [None] * 5
    remarks = found.about["remarks"]
    assert (
        "Choices that could not be read: 2 distinction questions, ranked like open ones; the first is "
        "kmir_test_cloze.jsonl, row 3." in remarks
    )
    assert any("1 reasoning question" in remark for remark in remarks if remark.startswith("Choices that could not"))
    assert not any(remark.startswith("Choices in the text: ") and "reasoning" in remark for remark in remarks)


def test_checking_takes_the_answers_as_they_are_written(tmp_path: Path) -> None:
    def candidates(*answers: str) -> tuple[str, ...]:
        rows = [row(place, f"{place} [MASK]", [text], "Statement Checking") for place, text in enumerate(answers)]
        return read_published(written(tmp_path / "-".join(answers), test=rows)).as_questions()[0].candidates

    assert candidates("yes") == ("no", "yes")
    assert candidates("No") == ("No", "Yes")
    assert candidates("true", "false") == ("false", "true")


def test_a_wrong_row_is_named_by_file_and_row(tmp_path: Path) -> None:
    for line, said in (
        ('{"qid": 1', "not valid JSON"),
        ("[1]", "a row must be a JSON object, got list"),
        (row("a1", "x [MASK]", ["a"]), "duplicate qid a1, first in row 1"),
        (row(None, "x [MASK]", ["a"]), "'qid' must be a non-empty text in every row of KMIR, got None"),
        (row("b", None, ["a"]), "'query' must be a non-empty text in every row of KMIR, got None"),
        (row("b", "x [MASK]", ["a"], " "), "'relType' must be a non-empty text in every row of KMIR, got ' '"),
        (row("b", "x [MASK]", [["a"]]), "'answer' must be a list of texts, got [['a']]"),
    ):
        folder = written(tmp_path / "wrong", dev=[DEV[0], "", line])
        with pytest.raises(InputError) as refused:
            read_published(folder)
        assert str(refused.value).startswith(f"{folder / 'kmir_dev_cloze.jsonl'}, row 3: ")
        assert said in str(refused.value) and "\n" not in str(refused.value)


def test_a_place_without_its_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains none of kmir_train_cloze"):
        read_published(tmp_path)
    (tmp_path / "mine.jsonl").write_text(json.dumps(DEV[0]))
    with pytest.raises(InputError, match="not one of KMIR's files"):
        read_published(tmp_path / "mine.jsonl")
    with pytest.raises(InputError, match="contain no question with one"):
        read_published(written(tmp_path / "empty", dev=[row(1, "none", ["a"])]))
    with pytest.raises(InputError, match=r"holds no questions\.parquet or"):
        data_files(SUITE, tmp_path)


def test_built_questions_stand_before_published_files(official: Path) -> None:
    assert [path.name for path in data_files(SUITE, official)] == list(SUITE.published)
    assert data_files(SUITE, official / SUITE.published[1]) == [official / SUITE.published[1]]
    merkhet.build("kmir", data=official, out=official.parent / "built")
    for name in SUITE.published:
        (official.parent / "built" / name).write_text("broken")
    assert next(path.name for path in data_files(SUITE, official.parent / "built")) == "questions.parquet"
    found = read_questions(official.parent / "built")
    origin = {"kind": "published", "source": ", ".join(SUITE.published)}
    assert origin.items() <= found.about["origin"].items()
    assert found.about == {**read_published(official).about, "origin": found.about["origin"]}
    card = json.loads((official.parent / "built" / "card.json").read_text())
    assert card["by_split"] == {"dev": 3, "test": 3, "train": 1} and card["remarks"] == found.about["remarks"]


def predictions(path: Path, *rows: tuple[str, object]) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["id", "ret"])
        writer.writerows([identity, ret if isinstance(ret, str) else json.dumps(ret)] for identity, ret in rows)
    return path


def test_predictions_are_scored_like_the_evaluator_does(official: Path, tmp_path: Path) -> None:
    given = {
        "test/7": ["Barcelona", "the Madrid city"],
        "8": ["vertebrate!"],
        "a3": ["yes"],
        "train/a1": [],
        "a2": ["d"],
    }
    file = predictions(tmp_path / "mine.csv", *given.items(), ("unheard-of", ["x"]))
    settings = ["probes=[write]", "metrics=[f1, exact]", "options.split=null", "report=none"]
    run = merkhet.run("kmir", data=official, models=[str(file)], settings=settings, out=tmp_path / "run")
    texts = {"test/8": ["vertebrate!"], "dev/a3": ["yes"], "dev/a2": ["d"], "test/7": given["test/7"]}
    expected: dict[str, list[float]] = {}
    for identity, question in run.questions.by_id().items():
        tried = [word_f1(text, question.answers) for text in texts.get(identity, [""])]
        expected.setdefault(question.task, []).append(max(tried))
    whole = [score for score in run.scores.to_pylist() if score["metric"] == "f1" and not score.get("domain")]
    found = {
        score["task"]: (score["value"], score["n"], score["model"]) for score in whole if not score.get("relation")
    }
    assert found == {task: (pytest.approx(sum(own) / len(own)), len(own), "mine") for task, own in expected.items()}
    assert found["reasoning"][0] == 1 and 0 < found["completion"][0] < 1 and found["checking"][0] == 0
    record = run.record["models"][0]
    assert record["kind"] == "predictions" and record["predictions"] == 6
    assert record["questions_without_prediction"] == 2


def test_answers_are_written_as_predictions_and_read_again(official: Path, tmp_path: Path) -> None:
    settings = ["probes=[write]", "metrics=[f1]", "options.split=null", "report=none"]
    run = merkhet.run("kmir", data=official, models=["random"], settings=settings, out=tmp_path / "run")
    assert write_predictions(run, "random", tmp_path / "out.csv") == 7
    with open(tmp_path / "out.csv", encoding="utf-8") as handle:
        rows = {line["id"]: json.loads(line["ret"]) for line in csv.DictReader(handle)}
    assert set(rows) == {"train/a1", "dev/a1", "a2", "a3", "7", "8", "12"}
    answers = {answer["question_id"]: answer["prediction"] for answer in run.answers.to_pylist()}
    assert rows["7"] == [answers["test/7"]] and rows["dev/a1"] == [answers["dev/a1"]]
    again = merkhet.run(
        "kmir", data=official, models=[str(tmp_path / "out.csv")], settings=settings, out=tmp_path / "again"
    )
    assert [score["value"] for score in again.scores.to_pylist()] == [
        score["value"] for score in run.scores.to_pylist()
    ]
    with pytest.raises(InputError, match="no answers of 'rando'; did you mean 'random'"):
        write_predictions(run, "rando", tmp_path / "other.csv")


def test_wrong_predictions_are_refused_by_row(official: Path, tmp_path: Path) -> None:
    settings = ["probes=[write]", "options.split=null", "report=none"]
    for number, (text, said) in enumerate(
        (
            ("id,answer\n1,[]\n", "the first row must be 'id,ret', got 'id,answer'"),
            ("id,ret\n", "holds no predictions"),
            ("id,ret\n7,Madrid\n", "row 2: ret must be a JSON list of texts such as [\"Paris\"], got 'Madrid'"),
            ('id,ret\n7,"{""a"": 1}"\n', "row 2: ret must be a JSON list of texts"),
            ("id,ret\n7,[1]\n", "row 2: ret must be a JSON list of texts such as [\"Paris\"], got '[1]'"),
            (
                'id,ret\n7,["a", "b"]\n',
                "row 2: a row must have two cells, an id and a JSON list in quotes, got 3 cells",
            ),
            ("id,ret\n7,[]\n\n7,[]\n", "row 4: the id '7' is a duplicate"),
            ("id,ret\n,[]\n", "row 2: the id '' is empty"),
            ("id,ret\nnobody,[]\n", "no id matches a question; its first id is 'nobody'"),
            ("id,ret\na1,[]\n", "the id 'a1' matches"),
        )
    ):
        file = tmp_path / "mine.csv"
        file.write_text(text)
        with pytest.raises(InputError) as refused:
            merkhet.run("kmir", data=official, models=[str(file)], settings=settings, out=tmp_path / f"run-{number}")
        assert said in str(refused.value) and "\n" not in str(refused.value)
