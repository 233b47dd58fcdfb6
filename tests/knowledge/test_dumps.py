"""Wikidata's dump: what comes out of it, what is left out, what is refused."""

from __future__ import annotations

import gzip
import json
import sys
from itertools import product
from pathlib import Path

from all_cases import check_all

sys.path.insert(0, str(Path(__file__).parent))
from packed_files import gathered, pack, refusal

from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources import wikidata
from merkhet.knowledge.sources.wikidata import read_dump

GREGORIAN, JULIAN = "http://www.wikidata.org/entity/Q1985727", "http://www.wikidata.org/entity/Q1985786"


def snak(prop, kind, value, datatype=None):
    datatype = datatype or {"wikibase-entityid": "wikibase-item"}.get(kind, kind)
    datavalue = {"value": value, "type": kind}
    return {"snaktype": "value", "property": prop, "hash": "a1b2", "datavalue": datavalue, "datatype": datatype}


def item(prop, name):
    kind = {"Q": "item", "P": "property", "L": "lexeme"}[name[0]]
    value = {"entity-type": kind, "numeric-id": int(name[1:]), "id": name}
    return snak(prop, "wikibase-entityid", value, f"wikibase-{kind}")


def time(prop, text, precision, calendar=GREGORIAN):
    value = {"time": text, "timezone": 0, "before": 0, "after": 0, "precision": precision, "calendarmodel": calendar}
    return snak(prop, "time", value)


def quantity(prop, amount, unit="1"):
    return snak(prop, "quantity", {"amount": amount, "unit": unit, "upperBound": amount, "lowerBound": amount})


def nothing(prop, kind):
    return {"snaktype": kind, "property": prop, "hash": "a1b2", "datatype": "wikibase-item"}


def statement(main, *qualifiers, rank="normal", references=0):
    made = {"mainsnak": main, "type": "statement", "id": "Q1$8a3c", "rank": rank}
    if qualifiers:
        made["qualifiers"] = {}
        for one in qualifiers:
            made["qualifiers"].setdefault(one["property"], []).append(one)
        made["qualifiers-order"] = list(made["qualifiers"])
    if references:
        made["references"] = [
            {"hash": "ff", "snaks": {"P248": [item("P248", "Q36578")]}, "snaks-order": ["P248"]}
        ] * references
    return made


def entity(name, labels=None, statements=(), aliases=None):
    claims = {}
    for one in statements:
        claims.setdefault(one["mainsnak"]["property"], []).append(one)
    return {
        "type": "property" if name[0] == "P" else "item",
        "id": name,
        "labels": {language: {"language": language, "value": text} for language, text in (labels or {}).items()} or [],
        "descriptions": {"en": {"language": "en", "value": "not read"}},
        "aliases": {
            language: [{"language": language, "value": text} for text in texts]
            for language, texts in (aliases or {}).items()
        }
        or [],
        "claims": claims or [],
        "sitelinks": [],
        "lastrevid": 1,
    }


def dump(path, *entities, brackets=True):
    lines = [one if isinstance(one, bytes) else json.dumps(one, separators=(",", ":")).encode() for one in entities]
    return pack(path, b"[\n" + b",\n".join(lines) + b"\n]\n" if brackets else b"\n".join(lines))


EISENHOWER = entity(
    "Q9916",
    {"en": "Dwight D. Eisenhower", "fr": "Dwight David Eisenhower"},
    [
        statement(
            item("P39", "Q11696"),
            time("P580", "+1953-01-20T00:00:00Z", 11),
            time("P582", "+1961-01-00T00:00:00Z", 10),
            snak("P1545", "string", "34"),
            item("P1365", "Q11613"),
            item("P1365", "Q35171"),
            rank="preferred",
            references=3,
        ),
        statement(item("P39", "Q1162163"), time("P580", "+1945-00-00T00:00:00Z", 9), nothing("P582", "somevalue")),
        statement(item("P39", "Q1"), rank="deprecated"),
        statement(item("P166", "Q14420"), time("P585", "+1943-00-00T00:00:00Z", 9)),
        statement(time("P569", "+1890-10-14T00:00:00Z", 11)),
        statement(quantity("P2048", "+1.79", "http://www.wikidata.org/entity/Q11573")),
        statement(quantity("P1971", "+2")),
        statement(snak("P1559", "monolingualtext", {"text": "Ike", "language": "en"})),
        statement(snak("P1705", "string", "Eisenhower")),
        statement(snak("P214", "string", "32123", "external-id")),
        statement(snak("P856", "string", "https://example.org/", "url")),
        statement(snak("P18", "string", "Ike.jpg", "commonsMedia")),
        statement(snak("P625", "globecoordinate", {"latitude": 1, "longitude": 2}, "globe-coordinate")),
        statement(nothing("P1038", "somevalue")),
        statement(nothing("P40", "novalue")),
    ],
    {"en": ["Ike", "General Eisenhower"], "de": ["Ike"]},
)
CAESAR = entity(
    "Q1048",
    {"mul": "Gaius Iulius Caesar", "zh": "凯撒"},
    [
        statement(time("P570", "-0044-03-15T00:00:00Z", 11, JULIAN)),
        statement(time("P569", "-0100-00-00T00:00:00Z", 9, JULIAN)),
        statement(time("P571", "-0100-00-00T00:00:00Z", 7)),
        statement(
            item("P39", "Q40779"), time("P580", "-0059-00-00T00:00:00Z", 9), time("P582", "-0058-00-00T00:00:00Z", 9)
        ),
    ],
)
PROPERTY = entity(
    "P22",
    {"en": "father"},
    [
        statement(item("P1647", "P8810")),
        statement(snak("P1628", "string", "http://schema.org/parent", "url")),
        statement(item("P2302", "Q21503250"), item("P2308", "Q5"), item("P2308", "Q729"), item("P2309", "Q21503252")),
    ],
)
WHOLE = (EISENHOWER, CAESAR, PROPERTY)


def test_a_dump_is_read_however_it_is_packed(tmp_path):
    def check(name):
        path = dump(tmp_path / name, *WHOLE)
        facts, names, details = gathered(read_dump(path, ReadContext()))
        plain = gathered(read_dump(dump(tmp_path / "lines.json", *WHOLE, brackets=False), ReadContext()))
        assert (facts, names, details) == plain
        said = {
            (row["subject"], row["predicate"], row["object"] or row["value"], row["start"], row["end"]) for row in facts
        }
        assert said == {
            ("Q9916", "P39", "Q11696", "1953-01-20", "1961-01"),
            ("Q9916", "P39", "Q1162163", "1945", None),
            ("Q9916", "P166", "Q14420", "1943", "1943"),
            ("Q9916", "P569", '"1890-10-14"', None, None),
            ("Q9916", "P2048", 1.79, None, None),
            ("Q9916", "P1971", 2.0, None, None),
            ("Q9916", "P1559", '"Ike"@en', None, None),
            ("Q9916", "P1705", '"Eisenhower"', None, None),
            ("Q1048", "P570", '"-0044-03-15"', None, None),
            ("Q1048", "P569", '"-0100"', None, None),
            ("Q1048", "P39", "Q40779", "-0059", "-0058"),
            ("P22", "P1647", "P8810", None, None),
            ("P22", "P1628", "schema:parent", None, None),
            ("P22", "P2302", "Q21503250", None, None),
        }
        assert {(row["predicate"], row["unit"]) for row in facts if row["value"]} == {
            ("P2048", "Q11573"),
            ("P1971", None),
        }

    check_all(check, ["d.json", "d.json.gz", "d.json.bz2", "d.json.xz", "d.json.zst"])


def test_what_is_said_beside_a_statement_is_kept(tmp_path):
    *_, details = gathered(read_dump(dump(tmp_path / "d.json", *WHOLE), ReadContext()))
    assert details == {
        ("Q9916", "P39", "Q11696", "1953-01-20"): {
            "rank": "preferred",
            "references": "3",
            "P1545": "34",
            "P1365": "Q11613|Q35171",
        },
        ("Q9916", "P39", "Q1162163", "1945"): {"P582": "unknown"},
        ("Q1048", "P570", '"-0044-03-15"', None): {"calendar": "julian"},
        ("Q1048", "P569", '"-0100"', None): {"calendar": "julian"},
        ("P22", "P2302", "Q21503250", None): {"P2308": "Q5|Q729", "P2309": "Q21503252"},
    }


def test_what_is_of_no_use_is_counted(tmp_path):
    reading = ReadContext()
    path = dump(tmp_path / "d.json", *WHOLE)
    [chunk] = read_dump(path, reading)
    assert [chunk.where(row) for row in (0, 8, 13)] == [f"{path}:{line}" for line in (2, 3, 4)]
    assert reading.left_out == {
        "deprecated statements": 1,
        "unknown or missing values": 2,
        "dates coarser than a year": 1,
        "values of kind external-id": 1,
        "values of kind url": 1,
        "values of kind commonsMedia": 1,
        "values of kind globe-coordinate": 1,
    }
    reading = ReadContext(options={"literals": "yes"})
    facts, *_ = gathered(read_dump(path, reading))
    assert {'"32123"', '"https://example.org/"'} <= {row["object"] for row in facts}
    assert reading.left_out["values of kind commonsMedia"] == 1 and "values of kind url" not in reading.left_out
    reading = ReadContext(languages=("fr",), predicates=("P1559",))
    assert not gathered(read_dump(path, reading))[0]
    assert reading.left_out == {"texts in other languages": 1}


def test_the_best_rank_is_kept_where_there_is_one(tmp_path):
    reading = ReadContext(predicates=("P39",), options={"rank": "best"})
    facts, *_ = gathered(read_dump(dump(tmp_path / "d.json", *WHOLE), reading))
    assert [row["object"] for row in facts] == ["Q11696", "Q40779"]
    assert reading.left_out["statements below the best rank"] == 1


def test_names_are_those_of_the_languages_asked_for(tmp_path):
    path = dump(tmp_path / "d.json", *WHOLE)

    def names(**asked):
        return {
            (row["entity"], row["language"]): (row["label"], row["aliases"])
            for row in gathered(read_dump(path, ReadContext(**asked)))[1]
        }

    assert names() == {
        ("Q9916", "en"): ("Dwight D. Eisenhower", ["Ike", "General Eisenhower"]),
        ("Q9916", "fr"): ("Dwight David Eisenhower", []),
        ("Q9916", "de"): (None, ["Ike"]),
        ("Q1048", "mul"): ("Gaius Iulius Caesar", []),
        ("Q1048", "zh"): ("凯撒", []),
        ("P22", "en"): ("father", []),
    }
    assert names(languages=("fr", "zh")) == {
        ("Q9916", "fr"): ("Dwight David Eisenhower", []),
        ("Q1048", "fr"): ("Gaius Iulius Caesar", []),
        ("Q1048", "zh"): ("凯撒", []),
    }


def test_names_of_what_is_used_or_of_all(tmp_path):
    def check(spaced):
        entities = [
            entity("Q11696", {"en": "President of the United States"}),
            EISENHOWER,
            entity("Q5", {"en": "human"}),
            entity("P39", {"en": "position held"}),
            entity("Q40779", {"en": "consul"}, [statement(item("P279", "Q5"))]),
        ]
        if spaced:
            # As a tool may write them: spaces, and the keys in alphabetical order.
            entities = [json.dumps(one, sort_keys=True).encode() for one in entities]
        path = dump(tmp_path / "d.json", *entities)
        facts, names, _ = gathered(
            read_dump(path, ReadContext(languages=("en",), predicates=("P39",), options={"names": "used"}))
        )
        assert len(facts) == 2
        assert [row["entity"] for row in names] == ["Q11696", "Q9916", "P39"]
        facts, names, _ = gathered(read_dump(path, ReadContext(languages=("en",), predicates=("P39",))))
        assert len(facts) == 2
        assert [row["entity"] for row in names] == ["Q11696", "Q9916", "Q5", "P39", "Q40779"]

    check_all(check, [False, True])


def test_filtered_facts_are_those_of_a_plain_loop(tmp_path):
    entities = [
        entity(
            f"Q{n}", {"en": f"thing {n}"}, [statement(item(f"P{p}", f"Q{n * p}")) for p in (3, 31, 310) if n % p < 2]
        )
        for n in range(1, 700)
    ]
    path = dump(tmp_path / "d.json.gz", *entities)
    expected = []
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        if len(line) > 3:
            read = json.loads(line.rstrip(","))
            for one in (read["claims"] or {}).get("P31", []):
                expected.append((read["id"], "P31", one["mainsnak"]["datavalue"]["value"]["id"]))
    facts, *_ = gathered(read_dump(path, ReadContext(predicates=("P31",))))
    assert [(row["subject"], row["predicate"], row["object"]) for row in facts] == expected
    assert len(expected) > 40


def test_old_and_odd_entities(tmp_path):
    old = entity(
        "Q7", {"en": "seven"}, [statement(snak("P31", "wikibase-entityid", {"entity-type": "item", "numeric-id": 5}))]
    )
    del old["claims"]["P31"][0]["mainsnak"]["datatype"]
    lexeme = {
        "type": "lexeme",
        "id": "L7",
        "lemmas": {"en": {"language": "en", "value": "dog"}},
        "claims": {"P5185": [statement(item("P5185", "Q499327"))]},
        "forms": [{"id": "L7-F1", "representations": {}, "claims": []}],
    }
    several = statement(
        item("P39", "Q1"),
        *(time("P580", f"+000000{year}-00-00T00:00:00Z", 11) for year in (1950, 1952)),
        time("P585", "+1951-05-02T00:00:00Z", 11),
        time("P582", "+1900-00-00T00:00:00Z", 7),
    )
    reading = ReadContext()
    path = dump(tmp_path / "d.json", old, lexeme, entity("Q8", statements=[several]))
    facts, names, details = gathered(read_dump(path, reading))
    assert [(row["subject"], row["object"], row["start"], row["end"]) for row in facts] == [
        ("Q7", "Q5", None, None),
        ("L7", "Q499327", None, None),
        ("Q8", "Q1", "1950", None),
    ]
    assert details == {("Q8", "P39", "Q1", "1950"): {"P580": "1950|1952", "P585": "1951-05-02"}}
    assert [(row["entity"], row["label"]) for row in names] == [("Q7", "seven"), ("L7", "dog")]
    assert reading.left_out == {"dates of qualifiers coarser than a year": 1}


REVERSED = entity(
    "Q3",
    {},
    [statement(item("P39", "Q1"), time("P580", "+1961-00-00T00:00:00Z", 9), time("P582", "+1957-00-00T00:00:00Z", 9))],
)
BAD_LINES = [
    (b'{"type":"item","id":"Q2","labels":{', "not valid JSON"),
    (b'{"type":"item","id":"Q2","labels":{"en":{"language":"en","value":"caf\xe9"}},"claims":[]}', "not UTF-8"),
    (b'{"type":"item","id":"Q2","labels":{"en":{"language":"en","value":"\\ud83d"}}}', "a lone surrogate"),
    (b'{"type":"item","labels":{}}', "not an entity with an id"),
    (b'["Q2"]', "not an entity with an id"),
    (b'{"type":"mediainfo","id":"M2"}', "'M2' is not the id"),
    (b'{"type":"item","id":"Q2","claims":{"P31":[{"rank":"normal"}]}}', "does not have the structure of a dump"),
    (json.dumps(entity("Q2", {}, [statement(quantity("P1", "many"))])).encode(), "could not convert"),
    (json.dumps(entity("Q2", {}, [statement(time("P1", "+0000-00-00T00:00:00Z", 9))])).encode(), "is not a date"),
    *(
        (
            json.dumps(entity("Q2", {}, [statement(time("P1", f"+{day}T00:00:00Z", 11))])).encode(),
            f"'{day}' is not a date",
        )
        for day in ("2020-02-30", "1900-02-29", "1957-13-01", "1957-04-31")
    ),
    (
        json.dumps(
            entity("Q2", {}, [statement(item("P39", "Q1"), time("P580", "+2021-02-29T00:00:00Z", 11))])
        ).encode(),
        "'2021-02-29' is not a date: February 2021 has 28 days",
    ),
    (json.dumps(entity("Q2", {}, [])).encode()[:-1] + b', "id": "Q4"}', "not valid JSON (the key 'id' is repeated at"),
    (json.dumps(REVERSED).encode(), 'end 1957 is before start 1961 for "Q3 P39"'),
]


def test_a_day_of_the_julian_calendar_is_kept(tmp_path):
    path = dump(tmp_path / "d.json", entity("Q1", {}, [statement(time("P1", "+1900-02-29T00:00:00Z", 11, JULIAN))]))
    facts, _, _ = gathered(read_dump(path, ReadContext()))
    assert [row["object"] for row in facts] == ['"1900-02-29"']


def test_a_bad_line_is_refused_by_its_number_or_counted(tmp_path):
    def check(line, reason):
        path = dump(tmp_path / "d.json", entity("Q1", {"en": "one"}), line, CAESAR)
        told = refusal(read_dump, path)
        assert told.startswith(f"{path}:3: ") and reason in told
        reading = ReadContext(skip_bad=True)
        facts, names, _ = gathered(read_dump(path, reading))
        assert reading.bad == 1 and reason in reading.examples[0]
        assert {row["subject"] for row in facts} == {"Q1048"} and {row["entity"] for row in names} >= {"Q1", "Q1048"}

    check_all(check, BAD_LINES)


def test_a_dump_that_ends_early_is_refused_even_if_bad_lines_are_not(tmp_path):
    def check(name, names):
        path = dump(tmp_path / name, *WHOLE * 30)
        data = path.read_bytes()
        for cut in (len(data) // 2, len(data) - 3):
            path.write_bytes(data[:cut])
            for skip_bad in (False, True):
                assert "ends early" in refusal(read_dump, path, skip_bad=skip_bad, options={"names": names})

    check_all(check, product(["d.json", "d.json.gz", "d.json.bz2", "d.json.xz", "d.json.zst"], ["all", "used"]))


def test_what_a_dump_cannot_be_asked_for(tmp_path):
    def check(asked, told):
        assert told in refusal(read_dump, dump(tmp_path / "d.json", EISENHOWER), **asked)

    check_all(
        check,
        [
            ({"options": {"ranks": "best"}}, "did you mean 'rank'?"),
            ({"options": {"rank": "good"}}, "'rank' must be all or best, got 'good'"),
            ({"options": {"literals": "true"}}, "'literals' must be no or yes, got 'true'"),
            ({"predicates": ("position held",)}, "'position held' is not a Wikidata property; use an id such as P39"),
        ],
    )


def test_the_largest_chunk_does_not_grow_with_the_dump(tmp_path, monkeypatch):
    monkeypatch.setattr(wikidata, "ROWS_IN_CHUNK", 100)
    largest = []
    for times in (100, 200):
        path = dump(tmp_path / "d.json.gz", *WHOLE * times)
        sizes = [chunk.facts.num_rows + chunk.names.num_rows for chunk in read_dump(path, ReadContext())]
        assert sum(sizes) == 20 * times
        largest.append(max(sizes))
    assert largest[0] == largest[1] < 120
