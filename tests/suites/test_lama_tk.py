"""The suite lama-tk as a user runs it: sentences of facts with times, what is offered, groups, and what is refused."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean, stdev

import pyarrow.parquet as pq
import pytest

import merkhet
from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, read_table
from merkhet.engine.study import make_study
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.question_files import read_questions
from merkhet.suites.lama_tk.build import open_knowledge
from merkhet.suites.lama_tk.options import LamaTkOptions

HEADER = ("subject_id", "subject", "relation", "object", "start", "end")
ROWS = [
    ("E1", "Ann Lee", "position held", "Mayor of Rome", "1990", "1994"),
    ("E1", "Ann Lee", "position held", "Minister of Trade", "1996", "2001"),
    ("E2", "Bo Kim", "position held", "Mayor of Rome", "1994", "1999"),
    ("E3", "Bo Kim", "position held", "mayor of rome", "1990", "1994"),
    ("E4", "Cy Fox", "position held", "Mayor of Rome", "1990", "1994"),
    ("E5", "Di Ray", "position held", "Mayor of Rome", "1999", "2006"),
    ("E6", "Ed Orr", "position held", "Minister of Trade", "2001", "2008"),
    ("E7", "Flo Day", "position held", "Envoy", "1981", "1983"),
    ("E7", "Flo Day", "award received", "Golden Owl", "1984", ""),
    ("E1", "Ann Lee", "award received", "Golden Owl", "1985", ""),
    ("E2", "Bo Kim", "award received", "Silver Owl", "1986", ""),
]


def written(file: Path, rows=ROWS, header=HEADER) -> Path:
    file.write_text("".join("\t".join(row) + "\n" for row in (header, *rows)), encoding="utf-8")
    return file


def made(file: Path, folder: Path, *settings: str, **others):
    return merkhet.build("lama-tk", data=file, out=folder, settings=settings, **others)


def offered(found) -> dict[str, tuple[str, ...]]:
    return {question.question_id: question.candidates for question in found.as_questions()}


@pytest.fixture(scope="module")
def offices(tmp_path_factory) -> Path:
    """Questions about all offices that come with merkhet, ten names a question."""
    folder = tmp_path_factory.mktemp("offices") / "q"
    merkhet.build("lama-tk", out=folder, settings=["options.candidates=10"])
    return folder


@pytest.fixture(scope="module")
def finished(long_models, tmp_path_factory):
    """One run over a tiny model and two baselines."""
    models = [str(long_models["causal"]), "frequency", "random"]
    return merkhet.run(
        "lama-tk",
        models=models,
        limit=24,
        settings=["options.candidates=8"],
        out=tmp_path_factory.mktemp("lama") / "run",
    )


def test_a_fact_gives_a_sentence_for_each_place_it_has(tmp_path) -> None:
    found = made(written(tmp_path / "own.tsv"), tmp_path / "q", tasks=["statement"])
    rows = [row for row in found.questions.to_pylist() if row["prompt"].count("Envoy") or row["target"] == "Envoy"]
    assert {(row["prompt"], row["target"]) for row in rows} == {
        ("[MASK] held the position of Envoy from 1981 to 1983.", "Flo Day"),
        ("Flo Day held the position of [MASK] from 1981 to 1983.", "Envoy"),
        ("Flo Day held the position of Envoy from [MASK] to 1983.", "1981"),
        ("Flo Day held the position of Envoy from 1981 to [MASK].", "1983"),
    }
    assert len({row["qset"] for row in rows}) == 1
    masks = Counter(row["template"].split("/")[2] for row in found.questions.to_pylist() if "Silver" in str(row))
    assert masks == {"subject": 1, "object": 1, "time": 1}


def test_all_who_held_it_then_are_right_and_each_is_a_question(tmp_path) -> None:
    found = made(written(tmp_path / "own.tsv"), tmp_path / "q", tasks=["statement"])
    rows = [
        row
        for row in found.questions.to_pylist()
        if row["prompt"] == "[MASK] held the position of Mayor of Rome from 1990 to 1994."
    ]
    assert {row["target"] for row in rows} == {"Ann Lee", "Cy Fox"}
    assert all(row["answers"] == ["Ann Lee", "Cy Fox"] for row in rows)


def test_what_is_offered_is_right_in_few_cases_and_else_wrong(offices) -> None:
    found = read_questions(offices)
    facts = read_table(FACTS, offices / "facts.parquet").to_pylist()
    with KnowledgeBase.load(["offices"]) as knowledge:
        names = knowledge.labels()
    right, near = defaultdict(set), defaultdict(set)
    for fact in facts:
        right["subject", fact["object"], fact["start"], fact["end"]].add(names[fact["subject"]])
        right["object", fact["subject"], fact["start"], fact["end"]].add(names[fact["object"]])
        near["subject", fact["object"]].add(names[fact["subject"]])
        near["object", fact["subject"]].add(names[fact["object"]])
    by_id = {fact["fact_id"]: fact for fact in facts}
    candidates = offered(found)
    checked = 0
    for row in found.questions.to_pylist():
        mask = row["template"].split("/")[2]
        choices = set(candidates[row["question_id"]])
        assert row["target"] in choices and row["target"] in row["answers"]
        assert not row["choices"] or not any(name in row["prompt"] for name in choices - set(row["answers"]))
        if row["task"] != "statement" or mask not in ("subject", "object"):
            continue
        fact = by_id[row["facts"][0]]
        other = fact["object"] if mask == "subject" else fact["subject"]
        wanted = right[mask, other, fact["start"], fact["end"]]
        assert set(row["answers"]) == wanted and choices & wanted == {row["target"]}
        assert len(choices) == 10
        assert len(choices & near[mask, other] - wanted) >= min(4, len(near[mask, other] - wanted))
        checked += 1
    assert checked > 1000


def test_of_many_right_answers_a_tenth_of_what_is_offered_is_taken(tmp_path) -> None:
    rows = [(f"E{n}", f"Person {n}", "position held", "member", "1990", "1994") for n in range(40)]
    rows += [(f"E{n}", f"Person {n}", "position held", "member", "1995", "1999") for n in range(40, 70)]
    file = written(tmp_path / "own.tsv", rows)
    found = made(file, tmp_path / "q", "options.candidates=30", tasks=["statement"])
    candidates = offered(found)
    for row in by_mask(found, "subject"):
        assert len(candidates[row["question_id"]]) == 30 and row["target"] in candidates[row["question_id"]]
        assert len(set(candidates[row["question_id"]]) & set(row["answers"])) == 3
    for row in by_mask(made(file, tmp_path / "all", "options.candidates=null", tasks=["statement"]), "subject"):
        assert len(row["answers"]) in (30, 40) and row["choices"] is None and row["candidate_set"]


def test_years_are_asked_among_all_that_occur_with_the_relation(tmp_path) -> None:
    found = made(written(tmp_path / "own.tsv"), tmp_path / "q", "options.candidates=2")
    candidates = offered(found)
    asked = {row["template"].split("/")[0]: candidates[row["question_id"]] for row in by_mask(found, "start", "time")}
    assert asked["position held"] == ("1981", "1983", "1990", "1994", "1996", "1999", "2001", "2006", "2008")
    assert asked["award received"] == ("1984", "1985", "1986")


def by_mask(found, *masks):
    return [row for row in found.questions.to_pylist() if row["template"].split("/")[2] in masks]


def test_a_right_answer_in_other_letters_is_not_offered_as_a_wrong_one(tmp_path) -> None:
    found = made(written(tmp_path / "own.tsv"), tmp_path / "q", "options.candidates=2", tasks=["statement"])
    candidates = offered(found)
    for row in by_mask(found, "object"):
        others = set(candidates[row["question_id"]]) - set(row["answers"])
        assert not {name.casefold() for name in others} & {name.casefold() for name in row["answers"]}
        assert len(others) == 1


def test_two_people_of_one_name_are_one_answer_and_never_a_wrong_one(tmp_path) -> None:
    rows = [
        ("E1", "Bo Kim", "position held", "Envoy", "1990", "1994"),
        ("E2", "Bo Kim", "position held", "Envoy", "1990", "1994"),
        ("E3", "Cy Fox", "position held", "Envoy", "1995", "1999"),
    ]
    found = made(written(tmp_path / "own.tsv", rows), tmp_path / "q", "options.candidates=2", tasks=["statement"])
    [question] = [row for row in by_mask(found, "subject") if "1990 to 1994" in row["prompt"]]
    assert question["answers"] == ["Bo Kim"] and len(question["facts"]) == 2
    assert offered(found)[question["question_id"]] == ("Bo Kim", "Cy Fox")
    assert any("shared by several entities" in remark for remark in found.about["remarks"])


def test_the_order_of_rows_changes_nothing_and_the_seed_what_is_offered(tmp_path) -> None:
    shuffled = random.Random(5).sample(ROWS, len(ROWS))
    first = made(written(tmp_path / "own.tsv"), tmp_path / "a", "options.candidates=3")
    second = made(written(tmp_path / "other.tsv", shuffled), tmp_path / "b", "options.candidates=3")
    third = made(tmp_path / "own.tsv", tmp_path / "c", "options.candidates=3", seed=1)
    assert first.questions.equals(second.questions) and first.candidates.equals(second.candidates)
    assert first.questions["choices"] != third.questions["choices"]


def test_a_limit_draws_whole_facts_so_that_every_mask_is_asked(offices, tmp_path) -> None:
    drawn = merkhet.build("lama-tk", out=tmp_path / "q", limit=40, settings=["options.candidates=10"])
    masks = Counter(row["template"].split("/")[2] for row in drawn.questions.to_pylist() if row["task"] == "statement")
    assert masks == dict.fromkeys(("subject", "object", "start", "end"), 40)
    every = {row["question_id"]: row for row in read_questions(offices).questions.to_pylist()}
    rows = drawn.questions.to_pylist()
    assert all(row == every[row["question_id"]] for row in rows)
    items = {(row["task"], row["qset"]) for row in rows}
    assert Counter(task for task, _ in items) == dict.fromkeys(("statement", "boundary", "implicit", "order"), 40)
    assert len(rows) == sum((row["task"], row["qset"]) in items for row in every.values())


def test_scores_stand_by_mask_and_by_conflict_and_chance_beside(finished) -> None:
    questions = pq.read_table(finished.folder / "questions.parquet").to_pylist()
    asked = [row for row in questions if row["task"] == "statement"]
    rows = [
        row
        for row in finished.scores.to_pylist()
        if (row["model"], row["task"], row["metric"]) == ("random", "statement", "acc@1")
    ]
    by_mask = {row["mask"]: row for row in rows if row.get("mask")}
    assert {name: row["n"] for name, row in by_mask.items()} == Counter(row["template"].split("/")[2] for row in asked)
    by_conflict = {row["conflict"]: row["n"] for row in rows if row.get("conflict")}
    assert by_conflict == Counter("yes" if len(row["answers"]) > 1 else "no" for row in asked)
    assert by_mask["subject"]["chance"] == pytest.approx(1 / 8, rel=0.3)
    assert by_mask["start"]["chance"] < 0.05


def test_hits_grow_with_their_number_and_a_hit_is_never_above_accuracy(finished) -> None:
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in finished.scores.to_pylist():
        if not any(row.get(name) for name in ("mask", "conflict", "relation")):
            found[row["model"], row["task"]][row["metric"]] = row["value"]
    assert len(found) == 3 * 4
    for value in found.values():
        assert value["acc@1"] <= value["acc@5"] and value["hit@5"] <= value["hit@10"]
        assert value["hit@5"] <= value["acc@5"] + 1e-9


def test_the_spread_over_paraphrases_is_over_the_facts_asked_in_both_wordings(finished) -> None:
    right = {}
    for row in finished.answers.to_pylist():
        right.setdefault((row["model"], row["question_id"]), float(min(row["gold_ranks"]) == 1.0))
    worded = defaultdict(dict)
    for row in finished.questions.questions.to_pylist():
        if row["task"] == "implicit":
            worded[row["qset"], row["target"]].setdefault(row["template"], []).append(row["question_id"])
    both = [templates for templates in worded.values() if len(templates) == 2]
    scores = [row for row in finished.scores.to_pylist() if row["metric"] == "acc@1" and row["mask"] is None]
    implicit = [
        row for row in scores if row["task"] == "implicit" and row["relation"] is None and row["conflict"] is None
    ]
    assert len(both) >= 10 and len(implicit) == 3
    for score in implicit:
        if score["model"] in ("random", "frequency"):  # Their ties count in part.
            continue
        by_template = defaultdict(list)
        for templates in both:
            for template, ids in templates.items():
                by_template[template].append(mean(right[score["model"], name] for name in ids))
        assert score["wording_n"] == len(both)
        assert score["wording_sd"] == pytest.approx(stdev(map(mean, by_template.values())), abs=1e-9)
    written = json.loads((finished.folder / "scores.json").read_text())
    assert {row["task"] for row in written if "wording_sd" in row} == {"implicit"}, "other tasks have one wording"


def test_the_report_and_the_main_table_show_the_four_tasks(finished) -> None:
    findings = json.loads((finished.folder / "findings.json").read_text())
    assert findings["sentences"]
    report = (finished.folder / "report.html").read_text(encoding="utf-8")
    assert "Temporal Knowledge Bases" in report and "mask" in report and "conflict" in report


def test_too_many_questions_are_made_only_if_somebody_says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("merkhet.suites.lama_tk.build.MAX_QUESTIONS", 30)
    with pytest.raises(InputError, match=r"own.tsv makes \d+ questions, .* --limit 1000"):
        made(written(tmp_path / "own.tsv"), tmp_path / "q")
    assert made(tmp_path / "own.tsv", tmp_path / "q", limit=1000).questions.num_rows > 30


def test_months_are_drawn_as_names_are(tmp_path) -> None:
    rows = [
        (f"E{n}", f"Person {n}", "position held", "Envoy", f"19{n}-03", f"19{n}-0{1 + n % 9}-11") for n in range(30, 60)
    ]
    rows = [row for row in rows if row[4] <= row[5]]
    file = written(tmp_path / "own.tsv", rows)
    found = made(file, tmp_path / "q", "options.granularity=month", "options.candidates=5", tasks=["statement"])
    [row] = [row for row in by_mask(found, "start") if row["prompt"].startswith("Person 31 ")]
    assert row["target"] == "March 1931" and len(offered(found)[row["question_id"]]) == 5


def test_relations_and_words_can_be_chosen(tmp_path) -> None:
    file = written(tmp_path / "own.tsv")
    (tmp_path / "words.yaml").write_text(
        'relations:\n  award received:\n    points: true\n    statement: "In {time} {subject} won {object}."\n'
        '    static: "{subject} won {object}."\n',
        encoding="utf-8",
    )
    settings = ["options.relations=[award received]", f"options.wordings={tmp_path / 'words.yaml'}"]
    found = made(file, tmp_path / "q", *settings, tasks=["statement"])
    assert "In 1984 [MASK] won Golden Owl." in found.questions["prompt"].to_pylist()
    assert {row["domain"] for row in found.questions.to_pylist()} == {"award received"}


def test_what_cannot_be_meant_is_refused(tmp_path) -> None:
    file = written(tmp_path / "own.tsv")
    for setting, message in (
        ("options.granularity=yaer", "did you mean 'year'"),
        ("options.relations=[postion held]", "did you mean 'position held'"),
        ("options.relations=7", "options.relations must be a list of texts, got 7"),
        ("options.candidates=1", "options.candidates must be an integer ≥ 2 or null, got 1"),
        ("options.candidates=lots", "options.candidates must be an integer ≥ 2 or null, got 'lots'"),
        ("options.wordings=none.yaml", "there is no file or folder none.yaml"),
        ("options.sizes=[0]", "options.sizes.0 must be an integer ≥ 1 or all, got 0"),
        ("options.conflict=[maybe]", "options.conflict.0 must be one of with, without, got 'maybe'"),
        ("options.dynamic=[101]", "options.dynamic.0 must be an integer from 0 to 100, got 101"),
        ("options.entities=ids", "options.entities must be one of text, symbols, got 'ids'"),
        ("options.static=perhaps", "options.static must be true or false, got 'perhaps'"),
        ("learning=cloze", "has no training questions"),
        ("options.masks=[start]", "lama-tk has no option 'masks'"),
    ):
        with pytest.raises(InputError, match=message):
            made(file, tmp_path / "q", setting)
        assert not (tmp_path / "q").exists()


def test_options_of_memorizing_are_read_here_too(tmp_path) -> None:
    options = {"sizes": [10, "all"], "conflict": "without", "facts": 5, "dynamic": 10, "experiment": "boundary"}
    found = LamaTkOptions.of(make_study({"suite": "lama-tk", "options": options}, "here"))
    assert (found.sizes, found.conflict, found.facts) == ((10, None), ("without",), 5)
    assert (found.dynamic, found.experiment, found.candidates) == ((10,), "boundary", 100)


def test_knowledge_is_the_data_of_a_study_or_its_packs(tmp_path) -> None:
    written(tmp_path / "own.tsv")
    with open_knowledge(make_study({"suite": "lama-tk", "data": "own.tsv"}, "here"), tmp_path) as (knowledge, told):
        assert knowledge.count() == {"position held": 8, "award received": 3} and told == ()
    with open_knowledge(make_study({"suite": "lama-tk", "knowledge": ["offices"]}, "here"), tmp_path) as (knowledge, _):
        assert knowledge.count()["held-office"] == 892
