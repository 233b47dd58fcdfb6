"""Readers of questions: schemas, templates, words, review sheets, question folders, and the suites' published files."""

from __future__ import annotations

import functools
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz import mutations
from fuzz.oddities import json_bombs, yaml_bombs
from fuzz.targets import SEPARATOR, Place, Target, parts
from merkhet.questions.quality import sensitive_words
from merkhet.questions.question_files import read_card, read_questions
from merkhet.questions.review import combine_verdicts, read_sheet
from merkhet.questions.schema import read_schema
from merkhet.suites.chneval.published import read_published as read_chneval
from merkhet.suites.chneval.questions.commonsense import read_wordings
from merkhet.suites.chneval.questions.word_senses import word_sense_triples
from merkhet.suites.chneval.questions.worded_triples import read_pairs, read_texts, read_triples
from merkhet.suites.kmir.published import read_published as read_kmir
from merkhet.suites.lama_tk.published import published_facts
from merkhet.suites.ontoprobe.published import read_published_statements

_SCHEMA = (
    b"domains: {chemistry: domain-specific, geography: general}\n"
    b"relations:\n"
    b"  symbol:\n"
    b"    about: chemical symbols\n"
    b"    domain: chemistry\n"
    b"    predicate: [symbol, P246]\n"
    b"    subject: element\n"
    b"    object: symbol\n"
    b"    ask: [object, subject]\n"
    b"    shorten: object\n"
    b"    complete: object\n"
    b"    transitive: false\n"
    b'    scopes: [{kind: city, templates: ["{subject} is in {object}."]}]\n'
    b'    templates: ["The symbol of {the subject} is {object}.", "{object} stands for {a subjec'
    b't} since {start}."]\n'
    b"hierarchies:\n"
    b"  kinds: {domain: chemistry, predicate: is-a, aspect: chemical category, form: a, template"
    b's: ["Of {members}, [MASK] is another {aspect}."]}\n'
    b"comparisons:\n"
    b'  heavy: {domain: chemistry, predicate: mass, apart: 0.1, most: ["Of {members}, the heavie'
    b'st is [MASK]."], least: ["Of {members}, the lightest is [MASK]."]}\n'
    b"frames:\n"
    b'  checking: ["{statement} That is [MASK]."]\n'
    b'  choices: ["Choose from {choices}. {statement}"]\n'
    b'  distinction: ["Of {members}, [MASK] differs in {aspect}."]\n'
)
_TEMPLATES = (
    b"relations:\n"
    b"  capital: {about: capitals, predicate: capital, ask: object, functional: true, templates:"
    b' ["The capital of {the subject} is {object}."]}\n'
    b'  held: {ask: start, shorten: subject, checking: false, templates: ["{subject} held {objec'
    b't} in {start}."]}\n'
    b"hierarchies:\n"
    b'  kinds: {predicate: is-a, form: a, about: kinds, templates: ["{members}: all but [MASK] a'
    b're {category}."]}\n'
)
_WORDS = b"words:\n  slurs: [bad word, worse]\n  violence: [kill]\nreplace: false\n"
_SHEET = (
    b"question_id,task,domain,template,prompt,answers,choices,facts,verdict,remark\r\n"
    b"q1,completion,x,t/0,A [MASK].,a,,,good,\r\n"
    b"q2,completion,x,t/0,B [MASK].,b,,,bad,'=1\r\n"
)
_QUESTION = {
    "question_id": "q1",
    "task": "completion",
    "prompt": "Paris is in [MASK].",
    "answers": ["France"],
    "target": "France",
    "choices": ["France", "Italy"],
    "language": "en",
}
_QUESTIONS = (
    json.dumps(_QUESTION)
    + "\n"
    + json.dumps({"task": "other", "prompt": "Rome is in [MASK].", "answers": "Italy"})
    + "\n"
).encode()
_CARD = b'{"suite": "mine", "questions": 2, "filters": [], "sources": ["x"]}'
_ABOUT = b'{"remarks": ["x"], "filters": [{"filter": "a", "task": "b", "before": 2, "after": 1}]}'
_CANDIDATES = b'{"candidate_set": "c1", "candidates": ["France", "Italy"]}\n'
_FOLDER = SEPARATOR.join(
    [
        (json.dumps({**{k: v for k, v in _QUESTION.items() if k != "choices"}, "candidate_set": "c1"}) + "\n").encode(),
        _CARD,
        _ABOUT,
        _CANDIDATES,
    ]
)
_CHNEVAL = SEPARATOR.join(
    text.encode()
    for text in [
        "虽然下雨，但是他来了。\t5\n他很高兴。\t1\n",
        "他在打球。\t2\n我在打球。\t2\n他打电话。\t1\n\n",
        "猫是一种动物。\t动物\n",
        "巴黎\t首都\t法国\t巴黎是法国的首都。\n",
    ]
)
_KMIR = (
    b'{"qid": "q1", "query": "Paris is in [MASK].", "answer": ["France"], "relType": "completion"}\n'
    b'{"qid": 2, "query": "It is [MASK].", "answer": "yes", "relType": "fact checking"}\n'
)
_ONTOPROBE = SEPARATOR.join(
    [
        b'{"uuu": "Paris", "xxx": ["city", "place"]}\n',
        b'{"uuu": {"capital": "[X] is the capital of [Y] ."}, "xxx": {"part": "[X] is part of [Y] ."}}\n',
        b'{"uuu": {"capital": "[X] is the capital of [Y] ."}, "xxx": ["city"]}\n',
        b'[{"rdfs:label": "city"}, {"rdfs:label": "place"}]',
        b'[{"rdfs:label": "capital", "pattern": "[X] is the capital of [Y] .", '
        b'"rdfs:subPropertyOf": {"part": "[X] is part of [Y] ."}}]',
    ]
)
_POSITIONS = (
    b"subject\tposition\tstart\tend\tsubject_id\n"
    b"Angela Merkel\tchancellor of Germany\t2005-11-22\t2021\tQ567\n"
    b"X\tY\t1990\t1980\tQ1\n"
)
_SENSES = (
    "word\tsense\tsentence\tposition\n打\tplay\t他在打球。\t2\n打\tcall\t他打电话。\t1\n打\tplay\t我打球。\t\n".encode()
)
_PAIRS = "start\trelation\tend\n猫\tIsA\t动物\n".encode()
_TRIPLES = "subject\trelation\tobject\ttext\n巴黎\t首都\t法国\t巴黎是法国的首都。\n".encode()

_WORDINGS = "zh:\n  IsA: ['{start}是一种{end}。']\n".encode()


def _one(name: str, read: Any) -> Any:
    """A reader of one file."""
    return lambda data, place: read(place.file(name, data))


def _table_of(rows: list[dict[str, Any]]) -> bytes:
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), target)
    return target.getvalue()


@functools.cache
def _known() -> Any:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "questions.jsonl"
        rows = [
            {**_QUESTION, "question_id": f"q{n}", "prompt": f"{n} is [MASK].", "template": "t/0"} for n in (1, 2, 3)
        ]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return read_questions(file)


def _sheet(data: bytes, place: Place) -> None:
    found = _known()
    sheet = read_sheet(place.file("sheet.csv", data), frozenset(found.questions["question_id"].to_pylist()))
    combine_verdicts(found, [sheet, sheet], 1)


def _review(data: bytes, place: Place) -> list[str]:
    rows = [{**_QUESTION, "question_id": f"q{n}", "prompt": f"{n} is [MASK]."} for n in (1, 2, 3)]
    questions = place.file("questions.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    return [
        "review",
        str(questions),
        "--verdicts",
        str(place.file("sheet.csv", data)),
        "--out",
        str(place.out / "reviewed"),
    ]


def _read_folder(*names: str) -> Any:
    def put(data: bytes, place: Place) -> Any:
        files = parts(data, len(names))
        paths = [place.file(name, part) for name, part in zip(names, files, strict=True) if part is not None]
        return paths[0].parent

    def read(data: bytes, place: Place) -> None:
        folder = put(data, place)
        found = read_questions(folder)
        read_card(folder)
        found.as_questions()
        found.clusters()

    def command(data: bytes, place: Place) -> list[str]:
        return ["review", str(put(data, place)), "--out", str(place.out / "sheet.csv")]

    return {"read": read, "command": command}


def _published(reader: Any, *names: str) -> Any:
    def read(data: bytes, place: Place) -> None:
        for name, part in zip(names, parts(data, len(names)), strict=True):
            if part is not None:
                place.file(name, part)
        reader(place.folder / "in")

    return read


def _built(suite: str, *names: str) -> Any:
    def command(data: bytes, place: Place) -> list[str]:
        for name, part in zip(names, parts(data, len(names)), strict=True):
            if part is not None:
                place.file(name, part)
        return ["build", suite, "--data", str(place.folder / "in"), "--out", str(place.out / "questions")]

    return command


def _lama_tk(folder: Any) -> None:
    with published_facts(folder) as (knowledge, _):
        len(knowledge.query("select * from facts"))


def _yaml(name: str, read: Any, seed: bytes, **more: Any) -> Target:
    return Target(name, _one("given.yaml", read), (seed,), mutations.yaml_documents, yaml_bombs, **more)


def targets() -> list[Target]:
    """The readers of questions."""
    cells = ("[MASK]", "2", "-1", "٣", "99999999999999999999", "", "他", "𠮷", "a")
    texts = mutations.lines_of(cells, "\t")
    syntax = ("syntax/conjunction.txt", "semantic.txt", "commonsense.txt", "fact.txt")
    onto = (
        "memorizing/type.jsonl",
        "memorizing/subPropertyOf.jsonl",
        "memorizing/domain.jsonl",
        "ontology/class.json",
        "ontology/property.json",
    )
    bombs = lambda: json_bombs(_QUESTION)  # noqa: E731
    return [
        _yaml("benchmark schema", read_schema, _SCHEMA, share=1.5),
        _yaml("templates", read_schema, _TEMPLATES, share=1.2),
        _yaml("sensitive words", sensitive_words, _WORDS),
        _yaml("wordings of pairs", read_wordings, _WORDINGS, share=0.6),
        Target("review sheet", _sheet, (_SHEET, _SHEET.replace(b",", b";")), mutations.tables(","), command=_review),
        Target(
            "questions (JSON lines)",
            seeds=(_QUESTIONS,),
            grammar=mutations.json_lines,
            bombs=bombs,
            share=1.5,
            **_read_folder("questions.jsonl"),
        ),
        Target(
            "question folder",
            seeds=(_FOLDER,),
            grammar=mutations.folder_of(
                mutations.json_lines, mutations.json_documents, mutations.json_documents, mutations.json_lines
            ),
            **_read_folder("questions.jsonl", "card.json", "about.json", "candidates.jsonl"),
        ),
        Target(
            "questions (Parquet)",
            seeds=(_table_of([{**_QUESTION, "suite": "s", "facts": ["f"], "template": "t"}]),),
            grammar=mutations.parquet_tables,
            guided=False,
            **_read_folder("questions.parquet"),
        ),
        Target(
            "ChnEval's files",
            _published(read_chneval, *syntax),
            (_CHNEVAL,),
            mutations.folder_of(*[texts] * 4),
            command=_built("chneval", *syntax),
        ),
        Target(
            "KMIR's files",
            _published(read_kmir, "kmir_test_cloze.jsonl"),
            (_KMIR,),
            mutations.json_lines,
            bombs=lambda: json_bombs({"qid": "q1", "query": "a [MASK]", "answer": ["b"], "relType": "c"}),
            command=_built("kmir", "kmir_test_cloze.jsonl"),
        ),
        Target(
            "OntoProbe's files",
            _published(read_published_statements, *onto),
            (_ONTOPROBE,),
            mutations.folder_of(*[mutations.json_lines] * 3, mutations.json_documents, mutations.json_documents),
            command=_built("ontoprobe", *onto),
        ),
        Target(
            "LAMA-TK's tables",
            _published(_lama_tk, "positions.tsv"),
            (_POSITIONS,),
            mutations.tables("\t"),
            share=0.15,
            guided=False,
        ),
        Target(
            "senses",
            _one("senses.tsv", lambda path: word_sense_triples(path, language="zh", seed=0)),
            (_SENSES,),
            texts,
            share=0.6,
        ),
        Target("pairs", _one("pairs.tsv", read_pairs), (_PAIRS,), mutations.tables("\t"), share=0.5),
        Target("triples", _one("triples.tsv", read_triples), (_TRIPLES,), mutations.tables("\t"), share=0.5),
        Target(
            "texts (JSON lines)",
            _one("texts.jsonl", read_texts),
            ('{"title": "巴黎", "text": "巴黎是首都。"}\n'.encode(),),
            mutations.json_lines,
            share=0.5,
        ),
    ]
