"""Small valid knowledge in every format that is read, of which the fuzzer makes odd inputs."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.targets import SEPARATOR

TRIPLES = b"""<http://a/Paris> <http://a/capitalOf> <http://a/France> .
<http://a/Paris> <http://www.w3.org/2000/01/rdf-schema#label> "Paris"@en .
<http://a/Paris> <http://a/people> "2100000"^^<http://www.w3.org/2001/XMLSchema#integer> .
_:b0 <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> <http://a/x> .
<http://a/Paris> <http://a/founded> "0250-01-01"^^<http://www.w3.org/2001/XMLSchema#date> . # a remark
"""
TERMS = (
    *(
        "<http://a/b>",
        "<>",
        "<http://a/\\u0041>",
        "<http://a/ b>",
        "_:b0",
        "_:",
        '"x"',
        '"x"@en',
        '"x"@',
        '"x"^^<http://a>',
    ),
    *(
        '"NaN"^^<http://www.w3.org/2001/XMLSchema#double>',
        '"1e999"^^<http://www.w3.org/2001/XMLSchema#double>',
        ".",
        "",
        "#",
    ),
    *(
        '"1957-13"^^<http://www.w3.org/2001/XMLSchema#gYearMonth>',
        "<<",
        ">>",
        '"\\uD800"',
        "<http://a/b",
        '"""',
        "a",
        ";",
        ",",
    ),
    *("<http://www.w3.org/1999/02/22-rdf-syntax-ns#rest>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#nil>"),
    *("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<http://www.w3.org/2002/07/owl#Ontology>"),
    *("<http://www.w3.org/2002/07/owl#propertyChainAxiom>", "<http://www.w3.org/2002/07/owl#imports>"),
    *("<http://www.w3.org/2002/07/owl#AllDisjointClasses>", "<http://www.w3.org/2002/07/owl#members>"),
)
TURTLE = b"""@prefix a: <http://a/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
a:Paris a a:City ; a:capitalOf a:France ; rdfs:label "Paris"@en , "Paname"@fr ; a:people 2100000 .
a:City rdfs:subClassOf [ owl:unionOf ( a:Town a:Village ) ] .
a:partOf owl:propertyChainAxiom ( a:in a:partOf ) .
<rel> a:p true ; a:q 1.5e3 , \"\"\"long
text\"\"\" .
"""
XML = (
    b'<?xml version="1.0" encoding="utf-8"?>\n'
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="http://a/" xmlns'
    b':rdfs="http://www.w3.org/2000/01/rdf-schema#">\n'
    b'<rdf:Description rdf:about="http://a/Paris"> <a:capitalOf rdf:resource="http://a/France"/>'
    b' <rdfs:label xml:lang="en">Paris</rdfs:label> </rdf:Description>\n'
    b'<a:City rdf:about="http://a/Rome"> <a:people rdf:datatype="http://www.w3.org/2001/XMLSchem'
    b'a#integer">7</a:people> </a:City>\n'
    b"</rdf:RDF>\n"
)
JSONLD = json.dumps(
    {
        "@context": {
            "a": "http://a/",
            "label": {"@id": "http://www.w3.org/2000/01/rdf-schema#label", "@language": "en"},
        },
        "@id": "a:Paris",
        "@type": "a:City",
        "label": "Paris",
        "a:capitalOf": {"@id": "a:France"},
        "a:list": {"@list": [1, 2.5, True, {"@value": "x", "@language": "fr"}]},
    }
).encode()
QUADS = b"<http://a/Paris> <http://a/capitalOf> <http://a/France> <http://a/g> .\n" + TRIPLES
TRIG = b"@prefix a: <http://a/> .\na:g { a:Paris a:capitalOf a:France . }\n{ a:Rome a:capitalOf a:Italy }\n"


def _snak(property_: str, kind: str, value: Any, datatype: str = "") -> dict[str, Any]:
    return {
        "snaktype": "value",
        "property": property_,
        "datavalue": {"type": kind, "value": value},
        "datatype": datatype or kind,
    }


ENTITY = {
    "id": "Q90",
    "type": "item",
    "labels": {"en": {"language": "en", "value": "Paris"}, "fr": {"language": "fr", "value": "Paris"}},
    "aliases": {"en": [{"language": "en", "value": "City of Light"}]},
    "claims": {
        "P17": [
            {
                "mainsnak": _snak(
                    "P17",
                    "wikibase-entityid",
                    {"entity-type": "item", "numeric-id": 142, "id": "Q142"},
                    "wikibase-item",
                ),
                "rank": "preferred",
                "qualifiers": {
                    "P580": [
                        _snak(
                            "P580",
                            "time",
                            {"time": "+0987-00-00T00:00:00Z", "precision": 9, "calendarmodel": "x/Q1985786"},
                        )
                    ]
                },
                "references": [{}],
            }
        ],
        "P1082": [{"mainsnak": _snak("P1082", "quantity", {"amount": "+2100000", "unit": "1"}), "rank": "normal"}],
        "P571": [
            {
                "mainsnak": _snak(
                    "P571", "time", {"time": "+0250-01-01T00:00:00Z", "precision": 11, "calendarmodel": "x/Q1985727"}
                ),
                "rank": "normal",
            }
        ],
        "P1448": [
            {"mainsnak": _snak("P1448", "monolingualtext", {"text": "Paris", "language": "fr"}), "rank": "normal"}
        ],
        "P1709": [{"mainsnak": _snak("P1709", "string", "http://schema.org/City", "url"), "rank": "normal"}],
        "P36": [{"mainsnak": {"snaktype": "somevalue", "property": "P36"}, "rank": "deprecated"}],
    },
}
OTHER = {
    "id": "P17",
    "type": "property",
    "labels": {"en": {"language": "en", "value": "country"}},
    "aliases": [],
    "claims": [],
}
DUMP = b"[\n" + json.dumps(ENTITY).encode() + b",\n" + json.dumps(OTHER).encode() + b"\n]\n"
CONCEPTS = b"".join(
    b"/a/[/r/IsA/,/c/en/cat/,/c/en/animal/]\t/r/IsA\t/c/en/cat/n\t/c/en/animal\t"
    + json.dumps({"dataset": "/d/x", "license": "cc:by/4.0", "weight": weight}).encode()
    + b"\n"
    for weight in (1.0, 2)
)
CSV = (
    b"subject,predicate,object,value,unit,start,end,subject_label,language\n"
    b"Q90,capital of,France,,,1957,1960-02,Paris,en\n"
    b'Q90,people,,2100000,m,,,"Pa,ris",fr\n'
)
QUOTED_CSV = (
    b"subject;predicate;object;value;start;end;subject_label\n"
    b'"""Weird Al"" Yankovic";performed;"""Heroes"" (album)";;44 BC;13 BC;a\xe2\x80\xaeb\n'
    b'"Heroes; or not";length;;2.5;2020-02-29;;"""so"" called"\n'
)
ROWS = (
    b'{"subject": "Paris", "predicate": "capital of", "object": "France", "start": "1957", "premises": ["a"]}\n'
    b'{"subject": "Paris", "predicate": "people", "value": 2100000.5, "unit": "m", "domain": "geography"}\n'
)


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), target)
    return target.getvalue()


FACTS_PARQUET = _parquet(
    [
        {
            "subject": "Paris",
            "predicate": "capital of",
            "object": "France",
            "value": None,
            "start": "1957",
            "source": "x",
        },
        {"subject": "Paris", "predicate": "people", "object": None, "value": 2.5, "start": None, "source": "x"},
    ]
)
NAMES_PARQUET = _parquet([{"entity": "Paris", "language": "en", "label": "Paris", "aliases": ["City"], "kind": "city"}])
DETAILS_PARQUET = _parquet(
    [
        {
            "subject": "Paris",
            "predicate": "capital of",
            "object": "France",
            "value": None,
            "unit": None,
            "start": "1957",
            "end": None,
            "name": "x",
            "text": "y",
        }
    ]
)
PREDICATES_PARQUET = _parquet([{"name": "capital of", "label": "capital of", "functional": True, "symmetric": False}])
TABLES = SEPARATOR.join([FACTS_PARQUET, NAMES_PARQUET, DETAILS_PARQUET, PREDICATES_PARQUET])
QUADRUPLES = SEPARATOR.join(
    [
        b"<Paris>\t0\n<France>\t1\n<Caf\\u00e9_%22x%22>\t2\n",
        b"<isCapitalOf>\t0\n",
        b"0\t0\t1\t1986-##-##\t####-##-##\n2\t0\t1\t-044-03-15\t19##-##-##\n",
    ]
)
WORDNET = (
    b"  1 This is a licence\n00001740 03 n 01 entity 0 001 ~ 00001930 n 0000 | that which is\n"
    b'00001930 05 n 02 big_cat 0 lion(a) 1 002 @ 00001740 n 0000 ! 00001740 n 0101 | a cat; "it roars"\n'
)
PACK = SEPARATOR.join(
    [
        b"name: mine\ntitle: Mine\ndescription: Some facts\nlicence: CC0\ndomain: geography\n"
        b"predicates:\n  capital: {label: capital of, functional: true}\n",
        b"subject,predicate,object,value,start,premises\nQ90,capital,France,,1957,a|b\nQ90,people,,12,,\n",
        b"entity,language,label,aliases,kind\nQ90,en,Paris,City of Light|Paname,city\n",
    ]
)
RULES = (
    b"symmetric: [opposite of]\n"
    b"transitive: [is a]\n"
    b"inverse: [[capital, capital of]]\n"
    b"subproperty: [[father of, parent of]]\n"
    b"chain:\n"
    b"  - {if: [country, continent], then: continent}\n"
    b"functional: [capital]\n"
    b"disjoint classes: [[a, b]]\n"
    b"vocabulary: {subclass: [is a], type: [instance of]}\n"
)
