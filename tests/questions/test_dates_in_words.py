"""Dates are said in words: 1969-07-20 as 20 July 1969; years stay years."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))
from test_relational import write

from merkhet.core.dates import MONTHS, say_date
from merkhet.core.errors import InputError
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.makers.make_questions import make_benchmark
from merkhet.questions.makers.question_builder import MakerOptions
from merkhet.questions.schema import read_schema

SCHEMA: dict[str, Any] = {
    "relations": {
        "landed": {"templates": ["{subject} landed on {object}."], "ask": ["object", "subject"]},
        "led": {
            "templates": [
                "{subject} led {object} from {date start} to {date end}.",
                "{subject} led {object} in {start}.",
                "{subject} was with {object}.",
            ]
        },
    },
    "frames": {"checking": ['Is it true that "{statement}"? [MASK].']},
}
TIMES = [("1969-07-20", "1970-02"), ("1969", "1971"), ("-0044-03-15", "-0043"), ("0476-09-04", "0480")]
SAID = ["from 20 July 1969 to February 1970", "from 1969 to 1971", "from 15 March 44 BC to 43 BC"]
SAID += ["from 4 September AD 476 to 480"]


def plain(iso: str) -> str | None:
    """A date in words by cutting the text, for dates of the years 1000 to 9999."""
    year, month, *day = iso.split("-")
    return " ".join([*(str(int(text)) for text in day), MONTHS[int(month) - 1], year])


def test_dates_are_said_and_other_texts_are_left() -> None:
    for month in range(1, 13):
        for iso in (f"1969-{month:02d}", f"2024-{month:02d}-09", f"1000-{month:02d}-28"):
            assert say_date(iso) == plain(iso)
            assert say_date(f"{iso}T00:00:00Z") == plain(iso)
    assert say_date("-0044") == "44 BC" and say_date("-0044-03-15") == "15 March 44 BC"
    assert say_date("0476-09-04") == "4 September AD 476"
    for text in ("1969", "0476", "1969-13", "1969-02-30", "1969-7-2", "12-34", "A-12", "", "-", "1969-07-20x"):
        assert say_date(text) is None, text


def test_questions_say_dates_in_words(tmp_path: Path) -> None:
    days = [f"19{60 + number}-0{number + 1}-1{number}" for number in range(6)]
    facts = [{"subject": f"Probe {n}", "predicate": "landed", "object": day} for n, day in enumerate(days)]
    facts += [{"subject": f"Lander {n}", "predicate": "landed", "object": f'"{day}"'} for n, day in enumerate(days[:3])]
    facts += [{"subject": "Rover", "predicate": "landed", "object": "1997"}]
    facts += [{"subject": "Mole", "predicate": "landed", "object": "-0044"}]
    facts += [
        {"subject": f"Leader {n}", "predicate": "led", "object": f"Party {n}", "start": start, "end": end}
        for n, (start, end) in enumerate(TIMES)
    ]
    entities = {row[end] for row in facts for end in ("subject", "object")}
    names = [{"entity": name, "label": name} for name in sorted(entities) if not name.startswith('"')]
    store = write(tmp_path / "kb", facts, names, {})
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(SCHEMA))
    with KnowledgeBase.open(store) as knowledge:
        made = make_benchmark(
            DuckTables(knowledge.connection),
            read_schema(tmp_path / "schema.yaml"),
            MakerOptions("kmir", checks=40),
            ("completion", "checking"),
        )
    rows = made.questions.to_pylist()
    answers = {row["prompt"]: row["target"] for row in rows if row["task"] == "completion"}
    for number, day in enumerate(days):
        assert answers[f"Probe {number} landed on [MASK]."] == plain(day)
    for number, day in enumerate(days[:3]):
        assert answers[f"Lander {number} landed on [MASK]."] == plain(day)
        assert f"[MASK] landed on {plain(day)}." not in answers, "two probes landed on this day"
    assert answers[f"[MASK] landed on {plain(days[5])}."] == "Probe 5"
    assert answers["Rover landed on [MASK]."] == "1997" and answers["Mole landed on [MASK]."] == "44 BC"
    for number, said in enumerate(SAID):
        assert answers[f"Leader {number} led [MASK] {said}."] == f"Party {number}"
    assert answers["Leader 0 led [MASK] in 1969."] == "Party 0"
    checks = " ".join(row["prompt"] for row in rows if row["task"] == "checking")
    assert "landed on 1" in checks and not any(day in checks for day in (*days, "1969-07-20"))


def test_the_day_of_a_fact_cannot_be_asked_for(tmp_path: Path) -> None:
    relation = {"templates": ["{subject} led {object} from {date start}."], "ask": ["start"]}
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump({"relations": {"led": relation}}))
    with pytest.raises(InputError, match=r"\{date start\} cannot be asked for; write \{start\}, which is the year"):
        read_schema(tmp_path / "schema.yaml")
    (tmp_path / "schema.yaml").write_text(
        yaml.safe_dump({"relations": {"led": {"templates": ["{date subject} led {object}."]}}})
    )
    with pytest.raises(InputError, match=r"'date' in \{date subject\} is not a form"):
        read_schema(tmp_path / "schema.yaml")
