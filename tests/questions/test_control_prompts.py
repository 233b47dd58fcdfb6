"""Control prompts hide the name that a question is about, in every form, and nothing else."""

from __future__ import annotations

import json
import re
from itertools import permutations, product
from pathlib import Path

import pyarrow as pa
import pytest
from all_cases import check_all

import merkhet.suites
from merkhet.core import SLOT
from merkhet.core.errors import InputError
from merkhet.core.schemas import ENTITIES, QUESTIONS, make_table
from merkhet.questions.english import FORMS, capitalize
from merkhet.questions.makers.control_prompts import SUBJECT_BLIND, hide_name, make_control_prompts
from merkhet.questions.question_files import read_questions
from merkhet.questions.schema import Relation, Schema, Scope, read_schema
from merkhet.questions.templates import PLACEHOLDER

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
    # Determiners and adjectives stay, and the kind is named instead.
    ("Every otter has [MASK].", "otter", "animal"): "Every animal of this kind has [MASK].",
    ("A grown otter has [MASK].", "otter", "animal"): "A grown animal of this kind has [MASK].",
    ("[MASK] is a young deer.", "deer", "animal"): "[MASK] is a young animal of this kind.",
    ("The young otter eats [MASK].", "otter", "animal"): "The young animal of this kind eats [MASK].",
    ("Many otters eat [MASK].", "otter", "animal"): "Many animals of this kind eat [MASK].",
    ("Most iron is [MASK].", "iron", "metal"): "Most of this metal is [MASK].",
    ("It lies in present-day France: [MASK].", "France", "country"): "It lies in this present-day country: [MASK].",
    ("A wattmeter measures power [MASK].", "power", "quantity"): "A wattmeter measures this quantity [MASK].",
    ("A hungry fierce otter eats [MASK].", "otter", "animal"): None,
    ("[MASK] is its otter.", "otter", "animal"): None,
    ("[MASK] is Chad's capital Paris.", "capital Paris", "city"): None,
    ("[MASK] is a Paris-based firm.", "Paris", "city"): None,
    ("It is ruled by King Offa of [MASK].", "Offa", "person"): None,
    # A noun in apposition takes the place of the noun of the relation.
    ("The term otter names a kind of [MASK].", "otter", "thing"): "This term names a kind of [MASK].",
    ("The sign of the SI prefix kilo is [MASK].", "kilo", "prefix"): "The sign of this SI prefix is [MASK].",
    ("[MASK] has the exponent 3.", "3", "number"): "[MASK] has this exponent.",
    ("[MASK] has the atomic number 6.", "6", "number"): "[MASK] has this atomic number.",
    ("Find a bone called the ulna in the [MASK].", "ulna", "bone"): "Find this bone in the [MASK].",
    ("The things called tools are [MASK].", "tools", "class"): "These things are [MASK].",
    # Titles lose their quotation marks.
    ("The film “The Rock” is by [MASK].", "The Rock", "film"): "This film is by [MASK].",
    ("“Advance” is sung in [MASK].", "Advance", "anthem"): "This anthem is sung in [MASK].",
    # Mentioned names are not used.
    ("In law, this is called arson: [MASK].", "arson", "term"): "In law, this is called by this name: [MASK].",
    ("[MASK]'s parliament is called the Diet.", "Diet", "parliament"): "[MASK]'s parliament is called by this name.",
    ("Luftwaffe is the name of a force of [MASK].", "Luftwaffe", "force"): "This is the name of a force of [MASK].",
    ("[MASK] is abbreviated F.", "F", "symbol"): "[MASK] is abbreviated as this symbol.",
    # Numbers, units and compounds.
    ("[MASK] is planet number 7.", "7", "number"): "[MASK] is the planet with this number.",
    ("Planet number 7 is [MASK].", "7", "number"): "The planet with this number is [MASK].",
    ("The place of [MASK] is number 7.", "7", "number"): "The place of [MASK] is this number.",
    ("[MASK] stands in group 7 of it.", "7", "number"): "[MASK] stands in the group with this number of it.",
    ("[MASK] is 40 metres high.", "40", "number"): "[MASK] is this number of metres high.",
    ("Every iron atom has [MASK].", "iron", "element"): "Every atom of this element has [MASK].",
    ("[MASK] starts from the liquid state.", "liquid", "state"): "[MASK] starts from this state.",
    ("[MASK] is a vector quantity.", "vector", "kind"): "[MASK] is a quantity of this kind.",
    ("[MASK] is a lepton.", "lepton", "kind"): "[MASK] is one of this kind.",
    # Deeds and offices.
    ("[MASK] was the first to fly alone.", "fly alone", "deed"): "[MASK] was the first to do this deed.",
    ("[MASK] became Pope in 1978.", "Pope", "office"): "[MASK] became the holder of this office in 1978.",
    ("In 1978, the office of Pope went to [MASK].", "Pope", "office"): "In 1978, this office went to [MASK].",
    # Sentences begin with a capital letter, and end without what only the name explained.
    (".fr is the domain of [MASK].", ".fr", "domain"): "This domain is the domain of [MASK].",
    ("In law, this is called [MASK]: a lie.", "a lie", "definition"): "In law, this is called [MASK].",
}


def test_names_are_hidden_in_every_form() -> None:
    def check(*case: str) -> None:
        assert hide_name(*case) == HIDDEN[case]

    check_all(check, list(HIDDEN))


_FAULTS = (
    r"\b(the|a|an|every|each|no|any|its|some|many) (this|these)\b",
    r"\b(a|an|every|each) [a-z-]+ this\b(?<!part of this)(?<!case of this)",
    r"\b[Tt]he ([A-Z]+ |[a-z]+(al|ic) )?[a-z]+(?<!\bof)(?<!\bby)(?<!\bin) this\b|\b[Cc]alled (the )?this\b",
    r"“[Tt]h(is|ese) [a-z ]+”|\bnumber this\b|\b(called|written|abbreviated) (this|these)\b",
    r"\bthis number (?!is\b|of\b)[a-z]|\bthese? things? are this|\bthis \w+s are\b|\b(became|as) this office\b",
    r"(^|[.?!] )[a-z]|[^ ] [,.]|  |\b(\w+) \2\b",
)
_SCHEMAS = sorted(Path(merkhet.suites.__file__).parent.glob("*/schema.yaml"))


@pytest.mark.parametrize("path", _SCHEMAS, ids=lambda path: path.parent.name)
def test_every_template_has_a_neutral_wording_without_faults(path: Path) -> None:
    names = {"subject": "zorb", "object": "quax"}
    faults = []
    for relation in read_schema(path).relations.values():
        templates = [*relation.templates, *(text for scope in relation.scopes for text in scope.templates)]
        for template, (side, other) in product(templates, permutations(names)):

            def say(match: re.Match[str], other: str = other) -> str:
                return SLOT if match[2] == other else FORMS[match[1] or ""](names[match[2]])

            prompt = capitalize(PLACEHOLDER.sub(say, re.sub(r"\{(?:date )?(?:start|end)\}", "1999", template)))
            blind = hide_name(prompt, names[side], getattr(relation, side))
            if blind is None or any(re.search(fault, blind) for fault in _FAULTS):
                faults.append((relation.name, prompt, blind))
    assert faults == []


def test_a_symbol_that_is_also_a_word_is_hidden_only_in_its_place() -> None:
    text = "Before the symbol of a unit, the prefix {subject} is written {object}."
    relation = Relation("prefix", ("prefix",), (text,), asks=("subject",), subject="prefix", object="symbol")
    prompt = "Before the symbol of a unit, the prefix [MASK] is written a."
    question = {"prompt": prompt, "answers": ["atto"], "target": "atto", "template": "prefix/1", "qset": "q"}
    questions = make_table(QUESTIONS, [{**question, "choices": ["atto", "kilo"], "question_id": "q"}])
    names = make_table(ENTITIES, [{"question_id": "q", "entities": ["a"]}])
    made, _ = make_control_prompts(questions, names, Schema({}, {"prefix": relation}))
    assert made["prompt"].to_pylist() == ["Before the symbol of a unit, the prefix [MASK] is written as this symbol."]


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
    ("capital/1", "The capital of its Chad is [MASK].", ["Chad"], None),
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
    made, counts = make_control_prompts(questions, make_table(ENTITIES, names), SCHEMA)
    assert set(made["control"].to_pylist()) == {SUBJECT_BLIND}
    prompts = dict(zip(made["question_id"].to_pylist(), made["prompt"].to_pylist(), strict=True))
    expected = {f"q{n}": prompt for n, (_, _, _, prompt) in enumerate(QUESTIONS_AND_PROMPTS) if prompt is not None}
    assert prompts == expected
    missing = {
        "about no relation with a noun for the name": 5,
        "no neutral wording is grammatical": 1,
    }
    assert counts == [{"control": SUBJECT_BLIND, "task": "completion", "questions": 12, "made": 6, "missing": missing}]
    none, _ = make_control_prompts(questions.slice(0, 0), pa.table(ENTITIES.schema.empty_table()), SCHEMA)
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
