"""Filters leave out what they say, whatever the order of the questions, and count it."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict

import pytest
from all_cases import check_all
from hypothesis import given, settings
from hypothesis import strategies as st

from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, NAMES, QUESTIONS, make_table
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.quality import apply_filters, facts_about_classes, quality_filters, sensitive_words


def question(number, prompt="A [MASK].", answers=("b",), **others):
    choices = {} if "candidate_set" in others else {"choices": [*answers, "other"]}
    row = {
        "question_id": f"q_{number:04d}",
        "prompt": prompt,
        "answers": list(answers),
        "target": answers[0],
        **choices,
    }
    return row | others


def opened(number, prompt, *answers):
    return question(number, prompt, answers, candidate_set="all")


def kept(name, rows, **options):
    table = make_table(QUESTIONS, rows)
    (one,) = [found for found in quality_filters(**options) if found.name == name]
    return table.filter(one.keep(table))["question_id"].to_pylist()


def asks(name, prompt, *answers, **options):
    return bool(kept(name, [opened(0, prompt, *answers)], **options))


def test_plain_facts_are_not_sensitive():
    plain = [
        ("The opposite of war is [MASK].", "peace"),
        ("Aspirin is a kind of [MASK].", "drug"),
        ("A knife is used for [MASK].", "cutting"),
        ("You are likely to find a gun in [MASK].", "an army"),
        ("The Battle of Hastings was in the year [MASK].", "1066"),
        ("The capital of Ireland is [MASK].", "Dublin"),
        ("Oil is pressed from [MASK].", "rapeseed"),
        ("The Crimean War began in [MASK].", "1853"),
        ("The sex of a drone is [MASK].", "male"),
        ("Morphine is made from [MASK].", "opium"),
        ("Essex is in [MASK].", "England"),
        ("The vice president of Clinton was [MASK].", "Al Gore"),
        ("Insulation is removed with a [MASK].", "wire stripper"),
        ("The author of Murder on the Orient Express is [MASK].", "Agatha Christie"),
    ]
    rows = [opened(number, *case) for number, case in enumerate(plain)]
    assert kept("sensitive", rows) == [row["question_id"] for row in rows]


def test_sensitive_words_are_found_as_whole_words_in_any_case():
    sensitive = [
        ("A magazine may be about [MASK].", "Pornography"),
        ("TORTURE causes [MASK].", "pain"),
        ("His occupation was [MASK].", "serial killer"),
        ("His occupation was [MASK].", "serial-killer"),
        ("A man who is a racist is [MASK].", "wrong"),
        ("(Taiwan) is a part of [MASK].", "Asia"),
        ("The capital of Kosovo is [MASK].", "Pristina"),
    ]
    rows = [opened(number, *case) for number, case in enumerate(sensitive)]
    assert kept("sensitive", rows) == []


def test_a_sensitive_choice_or_second_answer_is_enough():
    assert not kept("sensitive", [question(0, answers=["a"], choices=["a", "porn star"])])
    assert not asks("sensitive", "A [MASK].", "a", "rape")


def test_classes_are_left_out_by_names_and_by_facts():
    rows = [
        opened(0, "The capital of Northland is [MASK].", "Bergen"),
        opened(1, "The capital of Northlands is [MASK].", "Oslo"),
        opened(2, "C++ (or not) is [MASK].", "a.b"),
        opened(3, "A [MASK].", "New  Northland") | {"facts": ["f_1"]},
        opened(4, "B [MASK].", "x") | {"facts": ["f_2", "f_3"]},
    ]
    words: dict[str, list[str]] = {}
    assert kept("sensitive", rows, words=words, names=["northland"]) == ["q_0001", "q_0002", "q_0004"]
    assert kept("sensitive", rows, words=words, names=["new-northland", "a.b"]) == ["q_0000", "q_0001", "q_0004"]
    assert kept("sensitive", rows, words=words, names=["C++"]) == ["q_0000", "q_0001", "q_0003", "q_0004"]
    assert kept("sensitive", rows, words=words, facts=["f_3", "f_9"]) == ["q_0000", "q_0001", "q_0002", "q_0003"]


texts = st.text(alphabet="abé -.B中", max_size=12)


@settings(deadline=None, max_examples=50)
@given(st.lists(texts, min_size=1, max_size=6), st.sets(st.text(alphabet="abé中", min_size=1, max_size=2), max_size=4))
def test_words_are_found_where_splitting_the_text_finds_them(prompts, words):
    rows = [opened(number, f"{prompt}[MASK]", "answer") for number, prompt in enumerate(prompts)]
    found = kept("sensitive", rows, words={"any": sorted(words)})
    lower = {word.lower() for word in words}
    expected = [row["question_id"] for row in rows if not lower & set(re.split(r"[^\w]+", row["prompt"].lower()))]
    assert found == expected


def test_an_own_list_adds_or_replaces(tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text("words: {violence: [sword], hobbies: ['model trains']}\n")
    words = sensitive_words(own)
    assert {"torture", "sword"} <= set(words["violence"]) and words["hobbies"] == ("model trains",)
    assert "taiwan" in words["sovereignty disputes"]
    assert not asks("sensitive", "He collects [MASK].", "Model Trains", words=words)
    own.write_text("replace: true\nwords: {hobbies: [trains]}\n")
    assert sensitive_words(own) == {"hobbies": ("trains",)}


def test_a_wrong_list_is_refused_by_name(tmp_path):
    def check(text, said):
        own = tmp_path / "own.yaml"
        own.write_text(text)
        with pytest.raises(InputError, match=r"own\.yaml") as refused:
            sensitive_words(own)
        assert said in str(refused.value) and "\n" not in str(refused.value)
        with pytest.raises(InputError, match="there is no file"):
            sensitive_words(tmp_path / "absent.yaml")

    check_all(
        check,
        [
            ("[a, b]", "'words' must map each reason to a list of sensitive words"),
            ("words: [a]", "'words' must map each reason to a list of sensitive words"),
            ("words: {a: b}", "'a' must be a list of words, got 'b'"),
            ("words: {a: [no]}", "False under 'a' is not a word"),
            ("words: {a: ['  ']}", "is not a word or phrase"),
            ("words: {}\nreplac: true", "did you mean 'replace'?"),
            ("words: {}\nreplace: maybe", "replace must be true or false, got 'maybe'"),
            ("words: {a: [", "not valid YAML"),
        ],
    )


def test_long_targets_go_and_other_long_answers_stay():
    eight = "one two three four five six seven eight"
    rows = [
        opened(0, "A [MASK].", eight),
        opened(1, "A [MASK].", f"{eight} nine"),
        opened(2, "A [MASK].", f"{eight}."),
        opened(3, "A [MASK].", "short", f"{eight} nine"),
        opened(4, "A [MASK].", "a-b-c-d-e"),
        opened(5, "A [MASK].", "中文中文中文中文"),
        opened(6, "A [MASK].", "中文中文中文中文中"),
    ]
    assert kept("length", rows) == ["q_0000", "q_0003", "q_0005"]
    assert kept("length", rows, longest=9) == [f"q_{number:04d}" for number in range(7)]


def test_an_answer_must_not_stand_in_its_prompt():
    cases = [
        ("A rocking chair is a kind of [MASK].", ["chair"], False),
        ("A chair is a kind of [MASK].", ["rocking chair"], True),
        ("A wheelchair is a kind of [MASK].", ["chair"], True),
        ("The Alkali Metal sodium is [MASK].", ["an alkali metal"], False),
        ("The United [MASK] States.", ["United States"], True),
        ("It is a [MASK].", ["mask"], True),
        ("New-York City is [MASK].", ["other", "new york"], False),
        ("A café is a [MASK].", ["CAFÉ"], False),
        ("The prefix of a unit is [MASK].", ["a"], True),
        ("The element 7 has the number [MASK].", ["7"], False),
        ("The element 74 has the number [MASK].", ["7"], True),
        ("Is it so? [MASK]", ["+"], True),
    ]
    rows = [opened(number, prompt, *answers) for number, (prompt, answers, _) in enumerate(cases)]
    stays = [row["prompt"] for row, (_, _, stays) in zip(rows, cases, strict=True) if stays]
    found = set(kept("self-answering", rows))
    assert [row["prompt"] for row in rows if row["question_id"] in found] == stays
    offered = [question(number, prompt, answers) for number, (prompt, answers, _) in enumerate(cases)]
    assert len(kept("self-answering", offered)) == len(cases), "among choices the answer may stand in the prompt"


def test_a_prompt_is_asked_once_in_the_first_task():
    rows = [
        question(4, "The Sun is [MASK].", ["hot"], task="completion"),
        question(3, "the  sun is [MASK].", ["HOT"], task="completion"),
        question(1, "The sun is  [MASK].", ["hot"], task="reasoning"),
        question(2, "The moon is [MASK].", ["cold"], task="reasoning"),
    ]
    assert kept("duplicates", rows, tasks=["completion", "reasoning"]) == ["q_0003", "q_0002"]
    assert kept("duplicates", rows, tasks=["reasoning", "completion"]) == ["q_0001", "q_0002"]
    rows.append(question(5, "The sun is [MASK].", ["cold"], task="reasoning"))
    assert kept("duplicates", rows, tasks=["completion", "reasoning"]) == ["q_0002"]


prompts = st.sampled_from(["A [MASK]", "a  [MASK]", "B [MASK]", "[MASK] b", "[MASK]  B"])
answers = st.sampled_from([("x",), ("X",), ("y",), ("x", "y"), ("y", "x")])


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(prompts, answers, st.sampled_from("tuv")), min_size=1, max_size=12), st.randoms())
def test_duplicates_as_a_loop_finds_them_in_any_order(drawn, shuffler):
    rows = [question(number, prompt, right, task=task) for number, (prompt, right, task) in enumerate(drawn)]
    order = {"u": 0, "t": 1, "v": 2}
    groups = defaultdict(list)
    for row in rows:
        groups[" ".join(row["prompt"].lower().split())].append(row)
    expected = set()
    for group in groups.values():
        if len({frozenset(text.lower() for text in row["answers"]) for row in group}) == 1:
            expected.add(min(group, key=lambda row: (order[row["task"]], row["question_id"]))["question_id"])
    shuffler.shuffle(rows)
    found = kept("duplicates", rows, tasks=["u", "t"])
    assert found == [row["question_id"] for row in rows if row["question_id"] in expected]


def test_counts_say_what_each_filter_left_of_each_task():
    rows = [
        opened(0, "A rape [MASK].", "x") | {"task": "completion"},
        opened(1, "B is [MASK].", "one two three four five six seven eight nine") | {"task": "completion"},
        opened(2, "A cat is a [MASK].", "cat") | {"task": "completion"},
        opened(3, "D is [MASK].", "x") | {"task": "completion"},
        question(4, "d is [MASK].", ["x"], task="reasoning"),
        question(5, "E is [MASK].", ["e"], task="reasoning"),
    ]
    random.Random(1).shuffle(rows)
    table, counts = apply_filters(make_table(QUESTIONS, rows), quality_filters(tasks=["completion", "reasoning"]))
    assert set(table["question_id"].to_pylist()) == {"q_0003", "q_0005"}
    assert [tuple(count.values()) for count in counts] == [
        ("sensitive", "completion", 4, 3),
        ("sensitive", "reasoning", 2, 2),
        ("length", "completion", 3, 2),
        ("length", "reasoning", 2, 2),
        ("self-answering", "completion", 2, 1),
        ("self-answering", "reasoning", 2, 2),
        ("duplicates", "completion", 1, 1),
        ("duplicates", "reasoning", 2, 1),
    ]
    assert list(counts[0]) == ["filter", "task", "before", "after"]
    nothing, none = apply_filters(table.slice(0, 0), quality_filters())
    assert nothing.num_rows == 0 and none == []


def test_no_word_is_listed_twice():
    twice = [
        word for word, count in Counter(w for group in sensitive_words().values() for w in group).items() if count > 1
    ]
    assert twice == []


def test_members_of_a_class_are_found_however_far_below():
    rows = [
        {"subject": "Q1", "predicate": "P31", "object": "Q10"},
        {"subject": "Q10", "predicate": "P279", "object": "Q11"},
        {"subject": "Q2", "predicate": "P36", "object": "Q1"},
        {"subject": "Q2", "predicate": "P36", "object": "Q3"},
        {"subject": "Q4", "predicate": "P36", "object": "Q3"},
    ]
    named = [
        {"entity": "Q11", "label": "Disputed Territory"},
        {"entity": "Q4", "label": "x", "kind": "disputed territory"},
    ]
    names = make_table(NAMES, named + [{"entity": f"Q{n}", "label": f"name {n}"} for n in (1, 2, 3, 10)])
    facts = make_table(FACTS, rows)
    knowledge = KnowledgeBase([Chunk(facts, names)])
    found = set(facts_about_classes(knowledge, ["disputed territory"]))
    assert found == {
        fact for fact, row in zip(facts["fact_id"].to_pylist(), rows, strict=True) if row["object"] != "Q3"
    } | {facts["fact_id"][4].as_py()}
    assert facts_about_classes(knowledge, ["q3"]) == sorted(facts["fact_id"].to_pylist()[3:])
