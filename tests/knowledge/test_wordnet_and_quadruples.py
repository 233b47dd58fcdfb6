"""WordNet's database files and numeric temporal facts: what comes out of them, and what is refused."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from all_cases import check_all

from merkhet.core.errors import InputError
from merkhet.knowledge.source_reader import ReadContext
from merkhet.knowledge.sources import quadruples, wordnet
from merkhet.knowledge.sources.quadruples import read_quadruples, starts_after
from merkhet.knowledge.sources.wordnet import LEXICOGRAPHER_FILES, read_wordnet


def gathered(chunks):
    chunks = list(chunks)
    facts = [row for chunk in chunks for row in chunk.facts.to_pylist()]
    return facts, [row for chunk in chunks for row in chunk.names.to_pylist()]


def triples(facts):
    return [(row["subject"], row["predicate"], row["object"]) for row in facts]


def refusal(read, place, **asked):
    with pytest.raises(InputError) as refused:
        list(read(place, ReadContext(**asked)))
    assert "\n" not in str(refused.value)
    return str(refused.value)


# WordNet: lines as the database has them, some shortened; the licence is at the head of every file.
LICENCE = "  1 This software and database is being provided to you, the LICENSEE, by  \n"
EXCERPT = {
    "noun": (
        "00001740 03 n 01 entity 0 001 ~ 00001930 n 0000 | that which is perceived to have its own existence  \n"
        "00001930 03 n 01 physical_entity 0 001 @ 00001740 n 0000 | an entity that has physical existence  \n"
        "02124272 05 n 02 cat 0 true_cat 0 003 @ 02123649 n 0000 #m 02123649 n 0000 %p 02152275 n 0000 | a feline  \n"
        "02123649 05 n 02 feline 0 felid 0 002 ~ 02124272 n 0000 %m 02124272 n 0000 | any of various lithe mammals  \n"
        "02152275 05 n 01 paw 0 002 #p 02124272 n 0000 + 01213391 v 0101 | a clawed foot  \n"
        "11268826 18 n 03 Lincoln 0 Abraham_Lincoln 0 President_Lincoln 0 001 @i 10487537 n 0000 | 16th President  \n"
        "04684019 07 n 01 ability 1 002 = 00001740 a 0000 ! 05639556 n 0101 | the quality of being able  \n"
    ),
    "verb": (
        "00001740 29 v 02 breathe 0 respire 0 003 * 00005041 v 0000 + 03121972 a 0201 $ 00002325 v 0000 02 + 02 00 + "
        "08 00 | draw air into the lungs  \n"
        "00110396 30 v 01 redden 4 002 > 00110611 v 0000 ^ 00001740 v 0101 01 + 01 00 | turn red  \n"
    ),
    "adj": (
        "00001740 00 a 01 able 0 003 = 05207437 n 0000 ! 00002098 a 0101 ! 00002098 a 0101 | having the means  \n"
        "00004413 00 s 0a abounding(p) 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 galore(ip) 0 002 & 00013887 a 0000 "
        ";u 07085585 n 0000 | existing in abundance  \n"
        "00013887 00 a 01 abundant 0 002 & 00004413 a 0000 ;c 06047178 n 0000 | present in great quantity  \n"
    ),
    "adv": "00001740 02 r 02 a_cappella 0 a_capella 0 001 \\ 02260096 a 0202 | without musical accompaniment  \n",
}


def excerpt(folder, **more):
    folder.mkdir(exist_ok=True)
    for name, lines in {**EXCERPT, **more}.items():
        (folder / f"data.{name}").write_text(LICENCE + lines, encoding="utf-8")
    return folder


def test_synsets_and_pointers_become_names_and_facts(tmp_path):
    reading = ReadContext()
    facts, names = gathered(read_wordnet(excerpt(tmp_path / "dict"), reading))
    assert triples(facts) == [
        ("wordnet:00001930-n", "is-a", "wordnet:00001740-n"),
        ("wordnet:02124272-n", "is-a", "wordnet:02123649-n"),
        ("wordnet:02124272-n", "member-of", "wordnet:02123649-n"),
        ("wordnet:02152275-n", "part-of", "wordnet:02124272-n"),
        ("wordnet:11268826-n", "instance-of", "wordnet:10487537-n"),
        ("wordnet:04684019-n", "antonym", "wordnet:05639556-n"),
        ("wordnet:00001740-v", "entails", "wordnet:00005041-v"),
        ("wordnet:00110396-v", "causes", "wordnet:00110611-v"),
        ("wordnet:00001740-a", "antonym", "wordnet:00002098-a"),
        ("wordnet:00004413-a", "similar-to", "wordnet:00013887-a"),
        ("wordnet:00004413-a", "usage", "wordnet:07085585-n"),
        ("wordnet:00013887-a", "similar-to", "wordnet:00004413-a"),
        ("wordnet:00013887-a", "topic", "wordnet:06047178-n"),
    ]
    called = {row["entity"]: (row["label"], row["aliases"], row["kind"]) for row in names}
    assert called["wordnet:02124272-n"] == ("cat", ["true cat"], "noun.animal")
    assert called["wordnet:11268826-n"] == ("Lincoln", ["Abraham Lincoln", "President Lincoln"], "noun.person")
    assert called["wordnet:00001740-v"] == ("breathe", ["respire"], "verb.body")
    assert called["wordnet:00004413-a"] == ("abounding", [*"bcdefghi", "galore"], "adj.all")
    assert called["wordnet:00001740-r"] == ("a cappella", ["a capella"], "adv.all")
    assert len(called) == len(names) == 13
    assert reading.left_out == {
        "inverse pointers": 4,
        "derivationally related forms": 2,
        "attributes": 2,
        "verb groups": 1,
        "see also": 1,
        "repeated pointers between two synsets": 1,
        "pertainyms and adverbs' adjectives": 1,
    }


def test_wordnet_predicates_are_declared_and_filtered(tmp_path):
    folder = excerpt(tmp_path / "dict")
    first, *rest = read_wordnet(folder, ReadContext(predicates=("part-of", "antonym"), languages=("fr",)))
    assert {name: one.symmetric for name, one in first.predicates.items()} == {"part-of": False, "antonym": True}
    facts, names = gathered(rest)
    assert {row["predicate"] for row in facts} == {"part-of", "antonym"} and not names


def test_a_bad_line_of_wordnet_is_refused_or_counted(tmp_path_factory):
    def check(line, reason):
        tmp_path = tmp_path_factory.mktemp("case")
        folder = excerpt(tmp_path / "dict", noun=EXCERPT["noun"] + line)
        told = refusal(read_wordnet, folder)
        assert told.startswith(f"{folder / 'data.noun'}:9: ") and reason in told
        reading = ReadContext(skip_bad=True)
        _, names = gathered(read_wordnet(folder, reading))
        assert reading.bad == 1 and len(names) == 13

    check_all(
        check,
        [
            (
                "00002137 03 n 02 abstraction 0 001 @ 00001740 n 0000 | too few words  \n",
                "not a line of the WordNet database",
            ),
            (
                "00002137 03 n 01 abstraction 0 009 @ 00001740 n 0000 | too few pointers  \n",
                "has wrong counts or a wrong synset type",
            ),
            ("00002137 03 n 01 abstraction 0 001 ? 00001740 n 0000 | odd pointer  \n", "unknown pointer '?'"),
            ("00002137 03 n 01 abstraction 0 001 @ 1740 n 0000 | odd offset  \n", "'1740' is not a synset offset"),
            ("00002137 99 n 01 abstraction 0 000 | odd lexicographer file  \n", "not a line of the WordNet database"),
            ("00002137 03 v 01 abstraction 0 000 | a verb among nouns  \n", "has wrong counts or a wrong synset type"),
            ("00002137 03 n 01 abstraction 0 001 @ 0000", "ends early"),
            ("subject,predicate,object\n", "not a line of the WordNet database"),
        ],
    )


def test_a_folder_without_wordnet_is_refused(tmp_path):
    assert "data.noun" in refusal(read_wordnet, tmp_path)
    assert "no option 'pos'" in refusal(read_wordnet, excerpt(tmp_path), options={"pos": "n"})


def test_the_largest_chunk_does_not_grow_with_wordnet(tmp_path, monkeypatch):
    monkeypatch.setattr(wordnet, "ROWS_IN_CHUNK", 50)
    largest = []
    for count in (500, 1000):
        lines = "".join(f"{n:08d} 05 n 01 cat_{n} 0 001 @ {n + 1:08d} n 0000 | a cat  \n" for n in range(count))
        folder = excerpt(tmp_path / "dict", noun=lines)
        sizes = [chunk.facts.num_rows + chunk.names.num_rows for chunk in read_wordnet(folder, ReadContext())]
        assert sum(sizes) > 2 * count
        largest.append(max(sizes))
    assert largest[0] == largest[1] < 60


def test_the_real_wordnet_is_read_whole():
    folder = os.environ.get("MERKHET_WORDNET")
    if not folder:
        pytest.skip("MERKHET_WORDNET does not name a folder with the database files of WordNet")
    pointers: Counter[str] = Counter()
    synsets, both_sides, parts = 0, set(), set()
    for part, letter in (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r")):
        for line in (Path(folder) / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if not line.startswith("  "):
                synsets += 1
                cells = line.split(" | ")[0].split()[4:]
                # Words and their numbers go in pairs until the three-figure count of pointers.
                cells = cells[2 * int(line.split()[3], 16) :]
                for at in range(1, 1 + 4 * int(cells[0]), 4):
                    symbol, offset, target, _ = cells[at : at + 4]
                    pointers[symbol] += 1
                    one, other = f"wordnet:{line[:8]}-{letter}", f"wordnet:{offset}-{target.replace('s', 'a')}"
                    if symbol in ("@", "~"):
                        both_sides.add((one, other) if symbol == "@" else (other, one))
                    if symbol in ("%p", "#p"):
                        parts.add((one, other) if symbol == "#p" else (other, one))
    reading = ReadContext()
    facts, names = gathered(read_wordnet(Path(folder), reading))
    assert len(names) == synsets and {row["kind"] for row in names} == set(LEXICOGRAPHER_FILES)
    assert len(facts) + sum(reading.left_out.values()) == sum(pointers.values())
    said = set(triples(facts))
    assert len(said) == len(facts)
    # Both sides of a pointer say the same: nothing is lost by reading one of them.
    assert {(one, other) for one, predicate, other in said if predicate == "is-a"} == both_sides
    assert {(one, other) for one, predicate, other in said if predicate == "part-of"} == parts
    counts = Counter(predicate for _, predicate, _ in said)
    assert counts["is-a"] == pointers["@"] and counts["similar-to"] == pointers["&"]
    known = {row["entity"] for row in names}
    assert all(one in known and other in known for one, _, other in said)
    if synsets == 117_791:
        assert sum(pointers.values()) == 378_203


# Quadruples

ENTITIES = (
    "<Ada_Lovelace>\t0\t1815-12-10\t1852-11-27\n<London>\t1\n<Take_the_\\u0022A\\u0022_Train>\t2\n"
    "<Caf%C3%A9_Müller>\t3\n<100%_Wolf>\t4\n"
)
RELATIONS = "<wasBornIn>\t0\n<worksAt>\t7\n"
TRAIN = "0\t0\t1\t1815-12-10\t1815-12-10\n2\t7\t3\t360-##-##\t####-##-##\n0\t7\t3\t-0044-03-##\t19##-##-##\n"


def folder_of(folder, entities=ENTITIES, relations=RELATIONS, **splits):
    folder.mkdir(exist_ok=True)
    (folder / "entity2id.txt").write_text(entities, encoding="utf-8")
    (folder / "relation2id.txt").write_text(relations, encoding="utf-8")
    for split, lines in (splits or {"train": TRAIN, "test": "1\t7\t4\t1986-##-07\t1988-02-29\r\n\n"}).items():
        (folder / f"{split}.txt").write_bytes(lines.encode() if isinstance(lines, str) else lines)
    return folder


def test_numbers_become_named_facts_with_their_times(tmp_path):
    reading = ReadContext()
    declared, chunk = read_quadruples(folder_of(tmp_path / "own"), reading)
    assert {name: one.label for name, one in declared.predicates.items()} == {
        "wasBornIn": "was born in",
        "worksAt": "works at",
    }
    facts, names = gathered([chunk])
    assert [(*triple, row["start"], row["end"]) for triple, row in zip(triples(facts), facts, strict=True)] == [
        ("Ada_Lovelace", "wasBornIn", "London", "1815-12-10", "1815-12-10"),
        ("Take_the_\\u0022A\\u0022_Train", "worksAt", "Caf%C3%A9_Müller", "0360", None),
        ("Ada_Lovelace", "worksAt", "Caf%C3%A9_Müller", "-0044-03", None),
        ("London", "worksAt", "100%_Wolf", "1986", "1988-02-29"),
    ]
    assert [row["label"] for row in names] == [
        "Ada Lovelace",
        "London",
        'Take the "A" Train',
        "Café Müller",
        "100% Wolf",
    ]
    assert [(row["name"], row["text"]) for row in chunk.details.to_pylist()] == [("split", "train")] * 3 + [
        ("split", "test")
    ]
    assert {row["source"] for row in facts} == {"own"}
    assert reading.left_out == {"dates coarser than a year": 1}
    assert chunk.where(3) == f"{tmp_path / 'own' / 'test.txt'}:1"


def test_quadruples_are_filtered(tmp_path):
    reading = ReadContext(predicates=("wasBornIn",), languages=("de",))
    facts, names = gathered(read_quadruples(folder_of(tmp_path), reading))
    assert triples(facts) == [("Ada_Lovelace", "wasBornIn", "London")] and not names


def test_a_bad_quadruple_is_refused_or_counted(tmp_path_factory):
    def check(line, reason):
        tmp_path = tmp_path_factory.mktemp("case")
        line = line.encode() if isinstance(line, str) else line
        folder = folder_of(tmp_path, train=TRAIN.encode() + line + b"1\t0\t1\t####-##-##\t####-##-##")
        told = refusal(read_quadruples, folder)
        assert told.startswith(f"{folder / 'train.txt'}:4: ") and reason in told
        reading = ReadContext(skip_bad=True)
        assert len(gathered(read_quadruples(folder, reading))[0]) == 4
        assert reading.bad == 1

    check_all(
        check,
        [
            ("0\t0\t9\t1986-##-##\t####-##-##\n", "no entity '9' in entity2id.txt"),
            ("x\t0\t1\t1986-##-##\t####-##-##\n", "no entity 'x'"),
            ("0\t5\t1\t1986-##-##\t####-##-##\n", "no relation '5' in relation2id.txt"),
            ("0\t0\t1\t1986\n", "4 cells"),
            ("0\t0\t1\t1986\t1987\n", "'1986' is not a date"),
            ("0\t0\t1\t307-13047-09\t978-##-##\n", "'307-13047-09' is not a date"),
            ("0\t0\t1\t1963-64-65\t####-##-##\n", "'1963-64-65' is not a valid date"),
            ("0\t0\t1\t1963-04-31\t####-##-##\n", "'1963-04-31' is not a valid date"),
            ("0\t0\t1\t1986-02-29\t####-##-##\n", "'1986-02-29' is not a valid date: February 1986 has 28 days"),
            ("0\t0\t1\t2014-##-##\t2007-##-##\n", 'end 2007 is before start 2014 for "Ada_Lovelace wasBornIn London"'),
            ("0\t0\t1\t-0043-##-##\t-0044-##-##\n", "end -0044 is before start -0043"),
            (b"0\t0\t1\t1986-##-##\t\xe9\n", "not UTF-8"),
        ],
    )


def test_a_bad_dictionary_is_refused(tmp_path_factory):
    def check(given, told):
        tmp_path = tmp_path_factory.mktemp("case")
        assert told in refusal(read_quadruples, folder_of(tmp_path, **given))

    check_all(
        check,
        [
            ({"entities": "10623\n<London>\t1\n"}, "entity2id.txt:1: expected a name, a tab and a number"),
            (
                {"entities": "<London>\t1\n<Paris>\t1\n"},
                "entity2id.txt:2: 1 is the number of both 'London' and 'Paris'",
            ),
            ({"relations": "<>\t1\n"}, "relation2id.txt:1: expected a name, a tab and a number"),
        ],
    )


def test_a_folder_without_quadruples_is_refused(tmp_path):
    assert "holds no facts" in refusal(read_quadruples, tmp_path)
    folder = folder_of(tmp_path)
    (folder / "relation2id.txt").unlink()
    assert "relation2id.txt" in refusal(read_quadruples, folder)
    assert "no option 'split'" in refusal(read_quadruples, folder, options={"split": "train"})


def test_times_are_compared_at_the_coarser_precision():
    later = [
        ("1957-03", "1957-02-28"),
        ("1958", "1957-12-31"),
        ("-0043", "-0044-03"),
        ("10000", "9999"),
        ("0001", "-0001"),
    ]
    for after, before in later:
        assert starts_after(after, before) and not starts_after(before, after)
    for one, other in (("1957", "1957-03"), ("1957-03-15", "1957"), ("-0044", "-0044-03-15"), ("1957", "1957")):
        assert not starts_after(one, other) and not starts_after(other, one)


def test_the_largest_chunk_does_not_grow_with_the_quadruples(tmp_path, monkeypatch):
    monkeypatch.setattr(quadruples, "ROWS_IN_CHUNK", 50)
    largest = []
    for count in (500, 1000):
        folder = folder_of(tmp_path, train="0\t0\t1\t1986-##-##\t####-##-##\n" * count)
        chunks = list(read_quadruples(folder, ReadContext()))
        assert sum(chunk.facts.num_rows + chunk.names.num_rows for chunk in chunks) == count + 5
        largest.append(max(len(chunk.facts) + len(chunk.names) + len(chunk.details) for chunk in chunks))
    assert largest[0] == largest[1] <= 52


def test_all_of_yago11k_is_read(shared):
    folder = shared / "data/temporal/yago11k"
    names = dict(
        reversed(line.split("\t")[:2]) for line in (folder / "entity2id.txt").read_text(encoding="utf-8").splitlines()
    )
    relations = dict(
        reversed(line.split("\t")) for line in (folder / "relation2id.txt").read_text(encoding="utf-8").splitlines()
    )
    lines = [
        line for split in ("train", "valid", "test") for line in (folder / f"{split}.txt").read_text().splitlines()
    ]
    assert "train.txt:168: end 2007 is before start 2014" in refusal(read_quadruples, folder)
    reading = ReadContext(skip_bad=True)
    facts, labels = gathered(read_quadruples(folder, reading))
    assert len(lines) == 20_509 == len(facts) + reading.bad
    assert reading.bad == 72 and len(labels) == 10_623
    assert '"' in "".join(row["label"] for row in labels) and not any(
        set("\\_<>") & set(row["label"]) for row in labels
    )
    expected = Counter()
    for line in lines:
        subject, relation, object_, start, end = line.split("\t")
        years = [int(date[: date.index("-", 1)]) if "#" not in date[:4] else None for date in (start, end)]
        expected[
            tuple(name[1:-1] for name in (names[subject], relations[relation], names[object_])), years[0], years[1]
        ] += 1
    found = Counter(
        (
            triple,
            *(
                int(row[side][: row[side].find("-", 1)] if "-" in row[side][1:] else row[side]) if row[side] else None
                for side in ("start", "end")
            ),
        )
        for triple, row in zip(triples(facts), facts, strict=True)
    )
    missing = expected - found
    # What is missing are the years that run backwards and the two dates that are none; nothing was added.
    assert not found - expected and missing.total() == 72
    assert sum(bool(start and end and start > end) for _, start, end in missing) == 70
