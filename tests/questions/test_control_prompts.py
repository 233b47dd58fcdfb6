"""Control prompts hide the name that a question is about, in every form, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.core.schemas import ENTITIES, QUESTIONS, make_table
from merkhet.questions.makers.control_prompts import SUBJECT_BLIND, hide_name, make_control_prompts
from merkhet.questions.question_files import read_questions
from merkhet.questions.schema import Relation, Schema, Scope

HIDDEN = {
    ("The capital of France is [MASK].", "France", "country"): "The capital of this country is [MASK].",
    ("France borders [MASK].", "France", "country"): "This country borders [MASK].",
    ("The United States borders [MASK].", "United States", "country"): "This country borders [MASK].",
    ("[MASK] borders the United States.", "United States", "country"): "[MASK] borders this country.",
    ("An otter eats [MASK].", "otter", "animal"): "This animal eats [MASK].",
    ("The otter is [MASK].", "otter", "animal"): "This animal is [MASK].",
    ("Otters eat [MASK].", "otter", "animal"): "These animals eat [MASK].",
    ("The element iron melts at [MASK].", "iron", "element"): "This element melts at [MASK].",
    ("The country of the city of Bonn is [MASK].", "Bonn", "city"): "The country of this city is [MASK].",
    ('Is this true? "Iron is [MASK]."', "Iron", "element"): 'Is this true? "This element is [MASK]."',
    ("France's capital is [MASK].", "France", "country"): "This country's capital is [MASK].",
    ("Francesca is from [MASK].", "France", "country"): None,
    ("Mali is not Malibu: [MASK].", "Mali", "country"): "This country is not Malibu: [MASK].",
}


def test_names_are_hidden_in_every_form() -> None:
    def check(*case: str) -> None:
        assert hide_name(*case) == HIDDEN[case]

    check_all(check, list(HIDDEN))


def test_options_that_hold_the_name_are_kept() -> None:
    prompt = "Choose one of Mexico City, Rome, or Oslo: Mexico is governed from [MASK]."
    hidden = hide_name(prompt, "Mexico", "country", ("Mexico City", "Rome", "Oslo"))
    assert hidden == "Choose one of Mexico City, Rome, or Oslo: This country is governed from [MASK]."


SCHEMA = Schema(
    {},
    {
        "capital": Relation(
            "capital",
            ("capital",),
            ("The capital of {the subject} is {object}.", "{object} governs {the subject}."),
            asks=("object", "subject"),
            subject="country",
            object="city",
            scopes=(Scope("port", ("The port of {the subject} is {object}.",)),),
        ),
        "bare": Relation("bare", ("bare",), ("{subject} is {object}.",)),
    },
)
QUESTIONS_AND_PROMPTS = [
    ("capital/1", "The capital of Chad is [MASK].", ["Chad"], "The capital of this country is [MASK]."),
    ("capital/1", "The capital of [MASK] is Oslo.", ["Oslo"], "The capital of [MASK] is this city."),
    ("capital/2", "[MASK] governs Chad.", ["Chad"], "[MASK] governs this country."),
    ("capital/2", "Oslo governs [MASK].", ["Oslo"], "This city governs [MASK]."),
    ("capital/1-port", "The port of Chad is [MASK].", ["Chad"], "The port of this country is [MASK]."),
    (
        "capital/1",
        "True? The capital of Chad is Oslo. [MASK]",
        ["Chad", "Oslo"],
        "True? The capital of this country is Oslo. [MASK]",
    ),
    ("bare/1", "Chad is [MASK].", ["Chad"], None),
    ("other/1", "Chad is [MASK].", ["Chad"], None),
    ("capital/1", "Chad, Oslo, or Mali? Highest: [MASK].", ["Chad", "Oslo", "Mali"], None),
    ("capital/1", "The capital of Chad is [MASK], they say.", [], None),
    (None, "Chad is [MASK].", ["Chad"], None),
]


def test_the_noun_is_that_of_the_hidden_entity() -> None:
    rows = [
        {
            "prompt": prompt,
            "answers": ["x"],
            "target": "x",
            "choices": ["x", "y"],
            "template": label,
            "qset": str(number),
        }
        for number, (label, prompt, _, _) in enumerate(QUESTIONS_AND_PROMPTS)
    ]
    questions = make_table(QUESTIONS, [{**row, "question_id": f"q{number}"} for number, row in enumerate(rows)])
    names = [
        {"question_id": f"q{number}", "entities": names}
        for number, (_, _, names, _) in enumerate(QUESTIONS_AND_PROMPTS)
        if names
    ]
    made = make_control_prompts(questions, make_table(ENTITIES, names), SCHEMA)
    assert set(made["control"].to_pylist()) == {SUBJECT_BLIND}
    prompts = dict(zip(made["question_id"].to_pylist(), made["prompt"].to_pylist(), strict=True))
    expected = {f"q{n}": prompt for n, (_, _, _, prompt) in enumerate(QUESTIONS_AND_PROMPTS) if prompt is not None}
    assert prompts == expected
    none = make_control_prompts(questions.slice(0, 0), pa.table(ENTITIES.schema.empty_table()), SCHEMA)
    assert none.num_rows == 0 and none.schema == made.schema


def test_control_prompts_need_one_slot(tmp_path: Path) -> None:
    question = {"prompt": "The capital of Chad is [MASK].", "answers": ["x"], "choices": ["x", "y"], "question_id": "q"}
    (tmp_path / "questions.jsonl").write_text(json.dumps(question) + "\n")
    control = {"question_id": "q", "control": SUBJECT_BLIND, "prompt": "The capital of this country is [MASK]."}
    (tmp_path / "controls.jsonl").write_text(json.dumps(control) + "\n")
    assert read_questions(tmp_path).controls.to_pylist() == [control]
    (tmp_path / "controls.jsonl").write_text(json.dumps({**control, "prompt": "It is N'Djamena."}) + "\n")
    with pytest.raises(InputError, match=r"controls.jsonl, row 1: the prompt .* has no slot"):
        read_questions(tmp_path)
