"""Readers of what a user asks for: studies, ``--set``, engines, queries and schemas for endpoints, others' scores."""

from __future__ import annotations

from typing import Any

from fuzz import mutations
from fuzz.oddities import yaml_bombs
from fuzz.targets import Place, Target
from merkhet.analysis._downstream_scores import read_downstream
from merkhet.core.compute_engines import choose_engines
from merkhet.engine.resolve_study import Request, resolve_study
from merkhet.engine.study import apply_setting, make_study, read_study, study_yaml
from merkhet.knowledge.sparql_queries import fill_template, find_query, schema_queries
from merkhet.models.prediction_file import read_predictions
from merkhet.suites import SUITES

_STUDY = b"""suite: quickstart
title: Mine
knowledge: [elements]
tasks: [completion]
limit: 20
seed: 3
models: [random, {model: frequency, label: often}]
probes: [rank, {probe: choose, options: {shots: 0}}]
metrics: [accuracy, mrr]
groups: [domain, relation]
options: {}
chat: {temperature: 0.0, system: Be brief.}
"""
_OTHER = b"""suite: quickstart
knowledge: [elements]
tasks: [completion]
models:
  - {model: frequency, label: often, kind: masked, dtype: float32, device: cpu, longest: 128}
  - {model: "chat:x@http://127.0.0.1:1/v1", chat: {concurrency: 2, rate: 10, extra: {top_p: 1}}}
learning: {learner: cloze, settings: {epochs: 1}, limit: 3}
"""
_MEMORIZE = (
    b"suite: lama-tk\n"
    b"learning: {learner: memorize, settings: {epochs: 2}}\n"
    b"models: ['random:2x16']\n"
    b"options: {relations: [position held]}\n"
)
_QUERY = (
    b"# Capitals\n"
    b"PREFIX a: <http://a/>\n"
    b"SELECT DISTINCT ?subject ?predicate ?object WHERE {\n"
    b"  BIND(<http://a/p> AS ?predicate)\n"
    b"  ?subject <http://a/p> ?object .\n"
    b"  VALUES ?x { {{predicates}} }\n"
    b"} ORDER BY ?subject LIMIT 5\n"
)
_PROPERTIES = b"properties: [P36, dbo:capital]\nclasses: [Q515]\nlanguages: [en, zh-hans]\nlimit: 100\n"
_LONG = b"model,task,score\nbert,glue,81.2\ngpt,glue,0.7\n"
_WIDE = b"model;glue;squad\nbert;81.2;\ngpt;;3\n"
_PREDICTIONS = b'id,ret\nq1,"[""Paris""]"\nq2,"[]"\n'


def _study(data: bytes, place: Place) -> None:
    content = read_study(place.file("study.yaml", data))
    study_yaml(make_study(content, "study.yaml"))


def _resolved(data: bytes, place: Place) -> None:
    resolve_study(Request(str(place.file("study.yaml", data))), SUITES)


def _setting(data: bytes, _place: Place) -> None:
    text = data.decode("utf-8", "surrogateescape")
    content: dict[str, Any] = {"suite": "quickstart", "options": {}, "models": ["random"]}
    for one in text.split("\x1f"):
        apply_setting(content, one)
    study_yaml(make_study(content, "study"))


def _set(data: bytes, place: Place) -> list[str]:
    text = data.decode("utf-8", "surrogateescape").replace("\x00", "")
    return [
        "build",
        "quickstart",
        "--knowledge",
        "elements",
        "--task",
        "completion",
        "--limit",
        "5",
        "--out",
        str(place.out / "questions"),
        "--set",
        text,
    ]


def _engines(data: bytes, _place: Place) -> None:
    choose_engines(data.decode("utf-8", "surrogateescape").split())


def _query(data: bytes, place: Place) -> None:
    for query in fill_template(
        *find_query(str(place.file("own.rq", data))), {"languages": '"en"', "class": ""}, ["P36"]
    ):
        assert query.parts.page(10, 0)
        assert query.parts.page(10, 0, nested=True)
        assert query.parts.count()


def _properties(data: bytes, place: Place) -> None:
    for query in schema_queries(place.file("schema.yaml", data), (), ()):
        assert query.parts.page(10, 0)


def targets() -> list[Target]:
    """The readers of what a user asks for."""
    keys = (
        "suite=kmir",
        "seed=3",
        "options.x=1",
        "models=[a, b]",
        "a.b.c=d",
        "=",
        ".",
        "..",
        "limit=",
        "chat.temperature=",
        "groups=domain",
        "probes=",
        "[",
        "]",
        "{",
        "}",
        "&a",
        "*a",
        ":",
    )
    engines = (
        "spark",
        "ray",
        "duckdb",
        "here",
        "spark://host:7077",
        "ray://host:10001",
        "spark:local[4]",
        "ray:",
        ":",
        "//",
        "ray:auto",
    )
    words = (
        b"SELECT",
        b"WHERE",
        b"{",
        b"}",
        b"ORDER BY",
        b"LIMIT",
        b"OFFSET",
        b"{{property!}}",
        b"{{class}}",
        b"?subject",
        b"#",
        b"'",
        b'"""',
        b"GROUP BY",
        b"UNION",
    )
    study = (
        b"suite: ",
        b"models: ",
        b"learning: ",
        b"&a ",
        b"*a",
        b"!!",
        b"null",
        b"probes: ",
        b"options: ",
        b"- ",
        b": ",
        b"{}",
    )
    return [
        Target("study", _study, (_STUDY, _OTHER, _MEMORIZE), mutations.yaml_documents, yaml_bombs, study, share=1.5),
        Target(
            "study, resolved",
            _resolved,
            (_STUDY, _OTHER, _MEMORIZE),
            mutations.yaml_documents,
            yaml_bombs,
            study,
            command=_build,
            share=0.8,
        ),
        Target(
            "--set",
            _setting,
            (b"seed=3", b"options.choices=4", b"models=[random]"),
            mutations.texts_of(keys),
            lambda: [b"options.a=" + bomb for bomb in yaml_bombs()],
            tuple(key.encode() for key in keys),
            command=_set,
        ),
        Target(
            "--engine",
            _engines,
            (b"spark", b"ray://host:10001 duckdb"),
            mutations.texts_of(engines),
            words=tuple(one.encode() for one in engines),
            share=0.5,
        ),
        Target(
            "SPARQL query file", _query, (_QUERY,), mutations.lines_of([word.decode() for word in words]), words=words
        ),
        Target("schema of properties", _properties, (_PROPERTIES,), mutations.yaml_documents, yaml_bombs),
        Target(
            "downstream scores",
            lambda data, place: read_downstream(place.file("scores.csv", data)),
            (_LONG, _WIDE),
            mutations.tables(","),
        ),
        Target(
            "predictions",
            lambda data, place: read_predictions(place.file("predictions.csv", data)),
            (_PREDICTIONS,),
            mutations.tables(","),
        ),
    ]


def _build(data: bytes, place: Place) -> list[str]:
    return ["build", str(place.file("study.yaml", data)), "--limit", "5", "--out", str(place.out / "questions")]
