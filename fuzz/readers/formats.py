"""Readers whose results are compared with slow and obvious ones: JSON, YAML, dates, review sheets and exports."""

from __future__ import annotations

import functools
import json
import math
import re
from datetime import date
from typing import Any

import yaml

from fuzz import examples, mutations
from fuzz.oddities import json_bombs, yaml_bombs
from fuzz.targets import Place, Target
from merkhet.core.dates import format_date, read_date
from merkhet.core.text_formats import parse_json, parse_yaml
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_export import export_knowledge
from merkhet.knowledge.store_import import import_knowledge
from merkhet.questions.question_files import QuestionSet, read_questions
from merkhet.questions.review import draw_sample, read_sheet, render_sheet, sheet_csv

_DATES = (b"1957", b"1957-03-15", b"-0044-03-15", b"44 BC", b"15 March 44 BC", b"AD 476", b"29 February 2000")
_WORDS = (
    *("1957", "2020", "1900", "0000", "-0044", "10000", "44", "0", "-", "-02", "-13", "-00", "-29", "-30", "-31", " "),
    *("BC", "BCE", "B.C.", "AD", "A.D.", "CE", "February", "March", "april", "T00:00:00Z", "+", "٣", "29", "31"),
)
_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_MISSING_DAYS = ((2, 30), (2, 31), (4, 31), (6, 31), (9, 31), (11, 31))
_ROW = {"task": "completion", "prompt": "Paris is in [MASK].", "answers": ["France"], "choices": ["France", "Italy"]}


def _refuse_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len({key for key, _ in pairs}) == len(pairs), "a key was taken twice"
    return dict(pairs)


def _refuse_constant(name: str) -> Any:
    raise AssertionError(f"{name} was taken for a number")


def _finite(text: str) -> float:
    assert math.isfinite(float(text)), "an infinite number was taken"
    return float(text)


def _json(data: bytes, _place: Place) -> None:
    content = parse_json(data, "given.json", "Correct it.")
    decoded = data.decode(json.detect_encoding(data), "surrogatepass")
    slow = json.loads(decoded, object_pairs_hook=_refuse_pairs, parse_constant=_refuse_constant, parse_float=_finite)
    assert slow == content


def _yaml(data: bytes, _place: Place) -> None:
    text = data.decode("utf-8", "replace")
    content = parse_yaml(text, "given.yaml")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:  # The loader in C takes tabs within {} and [].
        return
    pending, seen = [root], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in seen or node is None:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            assert len(set(keys)) == len(keys), "a key was taken twice"
            pending += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            pending += node.value
    # Only NaN differs from itself.
    assert repr(content) == repr(yaml.safe_load(text))


def refuse_impossible(time: str) -> None:
    """Compare a date that was taken with the calendar, as far as Python's goes."""
    match = re.fullmatch(r"\+?0*(\d+)(?:-(\d\d)(?:-(\d\d))?)?", time)
    if match and 1583 <= int(match[1]) <= 9999:
        date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    assert re.fullmatch(r"[+-]?\d{1,9}(-\d\d(-\d\d)?)?", time), f"{time!r} was taken for a date"
    parts = re.fullmatch(r"[+-]?\d+-(\d\d)(?:-(\d\d))?", time)
    if parts:
        month, day = int(parts[1]), int(parts[2] or 1)
        assert 1 <= month <= 12 and 1 <= day <= 31 and (month, day) not in _MISSING_DAYS, f"{time!r} was taken"


def _date(data: bytes, _place: Place) -> None:
    from merkhet.core.errors import InputError

    try:
        time = read_date(data.decode("utf-8", "replace"))
    except ValueError as error:
        assert "is not a date" in str(error) and len(str(error)) < 300
        raise InputError(str(error)) from error
    refuse_impossible(time)
    if re.fullmatch(r"-?\d{4,}(-\d\d(-\d\d)?)?", time) and re.search("[1-9]", time.lstrip("-")[:4]):
        year = re.match(r"-?(\d+)", time)
        if year and (len(year[1]) == 4 or not year[1].startswith("0")):
            assert read_date(format_date(time)) == time


@functools.cache
def _other_questions() -> str:
    return json.dumps({**_ROW, "prompt": "Rome is in [MASK].", "answers": ["Italy"]})


def _sheet(data: bytes, place: Place) -> None:
    name = data.decode("utf-8", "replace")[:5000]
    row = {**_ROW, "question_id": f"q{name[:20]}", "prompt": f"{name.replace('[MASK]', '')} [MASK].", "template": name}
    row |= {"answers": [name or "x"], "choices": [name or "x", f"{name}y"], "domain": name}
    file = place.file("questions.jsonl", f"{json.dumps(row)}\n{_other_questions()}\n".encode())
    questions: QuestionSet = read_questions(file)
    sample = draw_sample(questions, 5, 0)
    for drawn in sample:
        hidden = [cell for cell in drawn.values() if _HIDDEN.search(cell)]
        assert not hidden, f"hidden characters are in the sheet: {hidden!a}"
    render_sheet(sample, "Review")
    sheet = place.file("sheet.csv", sheet_csv([drawn | {"verdict": "good"} for drawn in sample]).encode())
    known = frozenset(questions.questions["question_id"].to_pylist())
    if all(identity == identity.strip() for identity in known):
        assert read_sheet(sheet, known).verdicts.keys() == known


def _exported(data: bytes, place: Place) -> None:
    first = place.out / "first.duckdb"
    import_knowledge([str(place.file("facts.csv", data))], first, memory="400MB", skip_bad=True)
    taken = _facts(first)
    for time in {row[name] for row in taken for name in ("start", "end") if row[name]}:
        refuse_impossible(time)
    for suffix in (".csv", ".tsv", ".jsonl"):
        export_knowledge(first, place.out / f"again{suffix}")
        again = place.out / f"again-{suffix[1:]}.duckdb"
        import_knowledge([str(place.out / f"again{suffix}")], again, memory="400MB")
        assert _facts(again) == taken, f"{suffix} does not come back as it was"
    export_knowledge(first, place.out / "again.nt")


def _facts(store: Any) -> list[dict[str, Any]]:
    with KnowledgeBase.open(store) as knowledge:
        return [{**row, "premises": row["premises"] or []} for row in knowledge.facts().to_pylist()]


def targets() -> list[Target]:
    """The readers that have an oracle."""
    row = {"subject": "a", "predicate": {"b": [1, 2.5]}, "object": "c", "start": 1957}
    seeds = (json.dumps(row).encode(), b'[{"a": [{"a": 1}, {"a": "\\u00e9"}], "b": "NaN"}, -1.5e-3, true, null]')
    keys = (b'"a": ', b'"\\u0061": ', b"NaN", b"-Infinity", b"1e999", b"{", b"}", b"[", b"]", b",", b'"', b"\\")
    names = (b"Paris", b'"Weird Al" Yankovic', "a\u202eb".encode(), b"=1+1", b"-x", b"a | b")
    return [
        Target("JSON, strict", _json, seeds, mutations.json_documents, lambda: json_bombs(row), keys),
        Target(
            "YAML, strict",
            _yaml,
            (b"a: &a {b: [1, {c: 2}]}\nd: {<<: *a, b: 3}\n'1': x\n1: y\n", b"? a\n: - b: 1\n    c: 2\n  - {b: 1}\n"),
            mutations.yaml_documents,
            yaml_bombs,
            (b"a: 1\n", b"<<: *a\n", b"{a: 1, a: 2}", b"'a': ", b"? a\n: 1\n"),
        ),
        Target("dates", _date, _DATES, mutations.texts_of(_WORDS), words=tuple(word.encode() for word in _WORDS)),
        Target(
            "review sheet, written",
            _sheet,
            names,
            mutations.texts_of(("Paris", '"', "'", "=", "@", "\t", "[MASK]", "|", "‹U+202E›", "\u202e", "\x00")),
            share=0.3,
            guided=False,
        ),
        Target(
            "facts, exported",
            _exported,
            (examples.QUOTED_CSV, examples.CSV),
            mutations.tables(";"),
            share=0.03,
            guided=False,
        ),
    ]
