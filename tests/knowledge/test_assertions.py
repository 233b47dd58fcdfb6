"""ConceptNet's assertions: what comes out of them, what is left out, what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from all_cases import check_all

sys.path.insert(0, str(Path(__file__).parent))
from packed_files import gathered, pack, refusal

from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources import conceptnet
from merkhet.knowledge.sources.conceptnet import read_assertions


def assertion(relation, start, end, weight=1.0, **more):
    about = {"dataset": "/d/conceptnet/4/en", "license": "cc:by/4.0", "weight": weight, "surfaceText": "[[a]] in [[b]]"}
    return "\t".join((f"/a/[{relation}/,{start}/,{end}/]", relation, start, end, json.dumps({**about, **more})))


ASSERTIONS = [
    assertion("/r/AtLocation", "/c/en/cat", "/c/en/window_sill", 2.828),
    assertion("/r/IsA", "/c/en/cat/n/wn/animal", "/c/en/feline/n", 2.0, dataset="/d/wordnet/3.1"),
    assertion("/r/IsA", "/c/zh/貓", "/c/zh/動物", 0.5),
    assertion("/r/Synonym", "/c/en/cat", "/c/fr/chat/n", 1),
    assertion("/r/ExternalURL", "/c/en/cat", "http://dbpedia.org/resource/Cat"),
    assertion("/r/dbpedia/genre", "/c/en/blues", "/c/en/music"),
]


def test_assertions_become_facts_with_their_weight(tmp_path):
    def check(name):
        path = pack(tmp_path / name, "\n".join(ASSERTIONS).encode())
        reading = ReadContext()
        facts, names, details = gathered(read_assertions(path, reading))
        assert [(row["subject"], row["predicate"], row["object"]) for row in facts] == [
            ("en/cat", "AtLocation", "en/window_sill"),
            ("en/cat/n/wn/animal", "IsA", "en/feline/n"),
            ("zh/貓", "IsA", "zh/動物"),
            ("en/cat", "Synonym", "fr/chat/n"),
            ("en/blues", "dbpedia/genre", "en/music"),
        ]
        assert [(row["entity"], row["language"], row["label"]) for row in names] == [
            ("en/cat", "en", "cat"),
            ("en/window_sill", "en", "window sill"),
            ("en/cat/n/wn/animal", "en", "cat"),
            ("en/feline/n", "en", "feline"),
            ("zh/貓", "zh", "貓"),
            ("zh/動物", "zh", "動物"),
            ("fr/chat/n", "fr", "chat"),
            ("en/blues", "en", "blues"),
            ("en/music", "en", "music"),
        ]
        told = {"weight": "2.828", "dataset": "/d/conceptnet/4/en", "license": "cc:by/4.0"}
        assert details["en/cat", "AtLocation", "en/window_sill", None] == told
        assert sum(reading.left_out.values()) == 1

    check_all(check, ["conceptnet-assertions-5.7.0.csv", "c.csv.gz", "c.csv.bz2", "c.csv.xz", "c.csv.zst"])


def test_assertions_are_filtered(tmp_path):
    def check(asked, expected, left_out):
        path = pack(tmp_path / "c.csv", "\n".join(ASSERTIONS).encode())
        reading = ReadContext(**asked)
        assert [row["predicate"] for row in gathered(read_assertions(path, reading))[0]] == expected
        assert sum(reading.left_out.values()) == left_out

    check_all(
        check,
        [
            ({"languages": ("en",)}, ["AtLocation", "IsA", "dbpedia/genre"], 2),
            ({"languages": ("en", "zh")}, ["AtLocation", "IsA", "IsA", "dbpedia/genre"], 2),
            ({"languages": ("fr",), "options": {"across": "yes"}}, ["Synonym"], 1),
            ({"predicates": ("AtLocation",)}, ["AtLocation"], 0),
            ({"predicates": ("/r/IsA", "/r/ExternalURL")}, ["IsA", "IsA"], 1),
            ({"options": {"weight": "1.5"}}, ["AtLocation", "IsA"], 4),
        ],
    )


def test_a_bad_assertion_is_refused_by_its_number_or_counted(tmp_path):
    def check(line, reason):
        path = pack(tmp_path / "c.csv", b"\n".join((ASSERTIONS[0].encode(), line, ASSERTIONS[1].encode())))
        told = refusal(read_assertions, path)
        assert told.startswith(f"{path}:2: ") and reason in told
        reading = ReadContext(skip_bad=True)
        assert len(gathered(read_assertions(path, reading))[0]) == 2
        assert reading.bad == 1

    check_all(
        check,
        [
            (b"/a/x\t/r/IsA\t/c/en/a\t/c/en/b", "five cells"),
            (b"/a/x\tIsA\t/c/en/a\t/c/en/b\t{}", "five cells"),
            (ASSERTIONS[0].encode()[:-9], "not valid JSON"),
            (assertion("/r/IsA", "/c/en/a", "/c/en/b", -1).encode(), "the weight -1 is negative"),
            (assertion("/r/IsA", "/c/en/a", "/c/en/b", None).encode(), "no 'weight'"),
            (assertion("/r/IsA", "/c/en/a", "/c/en").encode(), "'/c/en' is not a concept"),
            (b"/a/x\t/r/IsA\t/c/en/caf\xe9\t/c/en/b\t{}", "not UTF-8"),
            (b"/a/x\t/r/IsA\t/c/en/a\t/c/en/b\t" + b"[" * 100_000, "not valid JSON"),
        ],
    )


def test_assertions_cut_off_are_refused(tmp_path):
    path = pack(tmp_path / "c.csv.gz", "\n".join(ASSERTIONS * 500).encode())
    path.write_bytes(path.read_bytes()[:-20])
    assert "ends early" in refusal(read_assertions, path, skip_bad=True)


def test_what_assertions_cannot_be_asked_for(tmp_path):
    def check(options):
        [name] = options
        assert f"{name!r}" in refusal(read_assertions, pack(tmp_path / "c.csv", b""), options=options)

    check_all(check, [{"across": "maybe"}, {"weight": "heavy"}, {"weight": "nan"}, {"language": "en"}])


def test_the_largest_chunk_does_not_grow_with_the_assertions(tmp_path, monkeypatch):
    monkeypatch.setattr(conceptnet, "ROWS_IN_CHUNK", 100)
    largest = []
    for count in (2000, 4000):
        lines = [assertion("/r/IsA", f"/c/en/word_{n}", f"/c/en/kind_{n % 7}") for n in range(count)]
        path = pack(tmp_path / "c.csv.gz", "\n".join(lines).encode())
        chunks = list(read_assertions(path, ReadContext()))
        assert sum(chunk.facts.num_rows for chunk in chunks) == count
        largest.append(max(chunk.facts.num_rows + chunk.names.num_rows for chunk in chunks))
    assert largest[0] == largest[1] < 110
