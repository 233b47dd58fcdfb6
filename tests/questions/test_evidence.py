"""Worlds in which facts are missing: nothing that is true in the full world is offered as wrong."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))
from test_relational import schema_of, write

from merkhet.core.schemas import FACTS, NAMES, make_table
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.engines._duckdb_engine import DuckTables
from merkhet.knowledge.store import KnowledgeBase
from merkhet.questions.makers.make_questions import make_benchmark
from merkhet.questions.makers.question_builder import MakerOptions
from merkhet.questions.question_files import QuestionSet
from merkhet.questions.schema import read_schema

RULES = {
    "transitive": ["is-a"],
    "inverse": [["born-in", "birthplace-of"]],
    "chain": [{"if": ["born-in", "lies-in"], "then": "native-of"}],
}
SCHEMA: dict[str, Any] = {
    "relations": {
        # Functional: whoever has a birthplace has no other one.
        "born-in": {"functional": True, "ask": ["object", "subject"], "templates": ["{subject} was born in {object}."]},
        "lies-in": {"functional": True, "templates": ["{subject} lies in {object}."]},
        "birthplace-of": {"complete": "subject", "templates": ["{subject} is the birthplace of {object}."]},
        "native-of": {"complete": "object", "templates": ["{subject} is a native of {object}."]},
        # Complete by subject: whoever is a sibling of a person with siblings is stated.
        "speaks": {"complete": "object", "ask": ["object", "subject"], "templates": ["{subject} speaks {object}."]},
        # Nothing is declared: what is not stated may be true.
        "likes": {"ask": ["object", "subject"], "templates": ["{subject} likes {object}."]},
        # Only disjoint classes tell what is wrong.
        "is-a": {"transitive": True, "templates": ["{subject} is a kind of {object}."]},
    },
    "hierarchies": {
        "towns": {"predicate": "born-in", "functional": True, "aspect": "birthplace"},
        "fans": {"predicate": "likes", "aspect": "taste"},
        "classes": {"predicate": "is-a", "aspect": "class"},
    },
    "disjoint": {"is-a": {"groups": [["class0", "class1"]], "below": ["top"]}},
    "frames": {
        "checking": ["{statement} True? [MASK]."],
        "choices": ["One of {choices}: {statement}"],
        "distinction": ["{members}: the outlier by {aspect} is [MASK]."],
    },
}


class IncompleteWorld:
    """A full world, and the part of it that is known: declared completeness is true, all other facts may be missing."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        persons = [f"person{n}" for n in range(40)]
        towns = [f"town{n}" for n in range(8)]
        lands = [f"land{n}" for n in range(4)]
        tongues = [f"tongue{n}" for n in range(9)]
        things = [f"thing{n}" for n in range(60)]
        classes = [f"class{n}" for n in range(6)]
        full: set[tuple[str, str, str]] = set()
        full |= {(town, "lies-in", draw.choice(lands)) for town in towns}
        full |= {(person, "born-in", draw.choice(towns)) for person in persons}
        for person in persons:
            full |= {(person, "speaks", tongue) for tongue in draw.sample(tongues, draw.randint(1, 3))}
            full |= {(person, "likes", tongue) for tongue in draw.sample(tongues, draw.randint(1, 5))}
        # class0 to class2 are below top and have no common members; class3 to class5 are classes of anything.
        full |= {(name, "is-a", "top") for name in classes[:3]}
        for number, thing in enumerate(things):
            full.add((thing, "is-a", classes[number % 3]))
            full |= {(thing, "is-a", name) for name in draw.sample(classes[3:], draw.randint(0, 2))}
        self.full = _closed(full)
        known = set(full)
        for person in persons:
            # A birthplace may be unknown, and so may be all languages of a person, but not some of them.
            if draw.random() < 0.3:
                known -= {fact for fact in known if fact[0] == person and fact[1] == "born-in"}
            if draw.random() < 0.3:
                known -= {fact for fact in known if fact[0] == person and fact[1] == "speaks"}
        known -= {fact for fact in known if fact[1] == "likes" and draw.random() < 0.4}
        known -= {fact for fact in known if fact[1] == "is-a" and fact[2] in classes[3:] and draw.random() < 0.4}
        self.known = sorted(known)

    def questions(self, folder: Path, content: dict[str, Any] = SCHEMA, **options: Any) -> QuestionSet:
        facts = [{"subject": s, "predicate": p, "object": o} for s, p, o in self.known]
        names = [{"entity": name, "label": name} for name in sorted({n for s, _, o in self.known for n in (s, o)})]
        store = write(folder / "kb", facts, names, RULES)
        with KnowledgeBase.open(store) as knowledge:
            tables = DuckTables(knowledge.connection)
            return make_benchmark(
                tables, schema_of(folder, content), MakerOptions("kmir", checks=300, rounds=3, **options)
            )


def _closed(facts: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """Everything that follows, by plain loops until nothing is new."""
    closed = set(facts)
    while True:
        more = {(a, "is-a", d) for a, p, b in closed if p == "is-a" for c, q, d in closed if q == p and b == c}
        more |= {(o, "birthplace-of", s) for s, p, o in closed if p == "born-in"}
        more |= {
            (a, "native-of", d)
            for a, p, b in closed
            if p == "born-in"
            for c, q, d in closed
            if (q, c) == ("lies-in", b)
        }
        if more <= closed:
            return closed
        closed |= more


def wrong_claims(row: dict[str, Any], candidates: dict[str, list[str]]) -> list[tuple[str, str, str]]:
    """The facts that a question claims to be false."""
    relation = row["template"].partition("/")[0]
    if row["task"] == "checking":
        words = row["prompt"].removesuffix(" True? [MASK].").rstrip(".").split()
        return [(words[0].lower(), relation, words[-1])] if row["target"].lower() == "no" else []
    if row["task"] == "distinction":
        [predicate] = [SCHEMA["hierarchies"][relation]["predicate"]]
        members = [name for name in row["choices"] if name != row["target"]]
        return [(row["target"], predicate, "common category of " + " ".join(members))]
    options = row["choices"] or candidates[row["candidate_set"]]
    sentence = row["prompt"].rpartition(": ")[2].rstrip(".")
    claims = []
    for option in options:
        if option.lower() not in {answer.lower() for answer in row["answers"]}:
            words = sentence.replace("[MASK]", option).split()
            claims.append((words[0].lower(), relation, words[-1]))
    return claims


@pytest.mark.parametrize("seed", range(6))
def test_nothing_true_in_the_full_world_is_offered_as_wrong(seed: int, tmp_path: Path) -> None:
    world = IncompleteWorld(seed)
    made = world.questions(tmp_path, seed=seed)
    candidates = {row["candidate_set"]: row["candidates"] for row in made.candidates.to_pylist()}
    rows = made.questions.to_pylist()
    assert {row["task"] for row in rows} == {"completion", "checking", "distinction", "reasoning"}
    assert {row["evidence"] for row in rows} == {"declared"}
    relations = {row["template"].partition("/")[0] for row in rows}
    assert relations == {"born-in", "lies-in", "birthplace-of", "native-of", "speaks", "is-a", "towns", "classes"}
    wrong = 0
    for row in rows:
        for subject, predicate, obj in wrong_claims(row, candidates):
            wrong += 1
            if row["task"] == "distinction":
                shared = [
                    {o for s, p, o in world.full if (s, p) == (name, predicate)}
                    for name in row["choices"]
                    if name != row["target"]
                ]
                category = set.intersection(*shared) - {"top"}
                own = {o for s, p, o in world.full if (s, p) == (subject, predicate)}
                assert category - own, row
            else:
                assert (subject, predicate, obj) not in world.full, row
    assert wrong > 300


def test_relations_without_evidence_are_asked_apart(tmp_path: Path) -> None:
    world = IncompleteWorld(1)
    made = world.questions(tmp_path, seed=1, evidence="assumed")
    rows = made.questions.to_pylist()
    assert {row["evidence"] for row in rows} == {"assumed"}
    # Open questions about classes need more than disjoint classes.
    assert {row["template"].partition("/")[0] for row in rows} == {"likes", "fans", "is-a"}
    assert {row["task"] for row in rows if row["template"].startswith("is-a")} == {"completion"}
    claims = [claim for row in rows if row["task"] == "checking" for claim in wrong_claims(row, {})]
    assert any(claim in world.full for claim in claims), "assumed wrong names are sometimes right: the test can fail"


def test_without_declarations_everything_is_assumed_and_said(tmp_path: Path) -> None:
    content = {**SCHEMA, "disjoint": {}}
    for section in ("relations", "hierarchies"):
        content[section] = {
            name: {key: value for key, value in body.items() if key not in ("complete", "functional")}
            for name, body in SCHEMA[section].items()
        }
    made = IncompleteWorld(2).questions(tmp_path, content)
    assert set(made.questions["evidence"].to_pylist()) == {"assumed"}
    assert any("assumed" in remark for remark in made.about["remarks"])


def test_what_the_knowledge_declares_counts_as_evidence(tmp_path: Path) -> None:
    relation = {"relations": {"likes": {"templates": ["{subject} likes {object}."]}}, "frames": SCHEMA["frames"]}
    made = IncompleteWorld(3).questions(tmp_path, relation, complete={"likes": "object"})
    assert set(made.questions["evidence"].to_pylist()) == {"declared"}


def test_classes_with_a_stated_common_member_are_not_disjoint(tmp_path: Path) -> None:
    triples = [
        ("bat", "mammal"),
        ("dog", "mammal"),
        ("cow", "mammal"),
        ("bat", "flier"),
        ("gull", "flier"),
        ("kite", "flier"),
    ]
    triples += [
        ("carp", "fish"),
        ("pike", "fish"),
        ("tuna", "fish"),
        ("mammal", "animal"),
        ("flier", "animal"),
        ("fish", "animal"),
    ]
    facts = [{"subject": s, "predicate": "is-a", "object": o} for s, o in triples]
    names = [{"entity": name, "label": name} for name in sorted({n for pair in triples for n in pair})]
    store = write(tmp_path / "kb", facts, names, {})
    content = {
        "relations": {"is-a": {"ask": ["object", "subject"], "templates": ["{subject} is a kind of {object}."]}},
        "disjoint": {"is-a": {"below": ["animal"]}},
        "frames": SCHEMA["frames"],
    }
    with KnowledgeBase.open(store) as knowledge:
        made = make_benchmark(
            DuckTables(knowledge.connection), schema_of(tmp_path, content), MakerOptions("kmir"), ["checking"]
        )
    sides = {
        "mammal": {"bat", "dog", "cow", "mammal"},
        "flier": {"bat", "gull", "kite", "flier"},
        "fish": {"carp", "pike", "tuna", "fish"},
    }
    claims = [claim for row in made.questions.to_pylist() for claim in wrong_claims(row, {})]
    assert claims
    for subject, _, obj in claims:
        one, other = ({side for side, members in sides.items() if name in members} for name in (subject, obj))
        assert ("fish" in one) != ("fish" in other), (subject, obj)


def make_world(*triples: tuple[str, str, str], kinds: dict[str, str] | None = None) -> KnowledgeBase:
    rows = [{"subject": s, "predicate": p, "object": o} for s, p, o in triples]
    entities = sorted({name for s, _, o in triples for name in (s, o)})
    names = [{"entity": name, "label": name, "kind": (kinds or {}).get(name)} for name in entities]
    return KnowledgeBase([Chunk(make_table(FACTS, rows), make_table(NAMES, names))])


def test_siblings_come_before_cousins_and_cousins_before_others(tmp_path: Path) -> None:
    """Cities by country, countries by continent."""
    continent = {f"land{n}": f"continent{n // 3}" for n in range(9)}
    country = {f"city{n}": f"land{n % 9}" for n in range(36)}
    mayor = {f"mayor{n}": f"city{n}" for n in range(36)}
    triples = [(land, "in-continent", name) for land, name in continent.items()]
    triples += [(city, "in-country", land) for city, land in country.items()]
    triples += [(person, "governs", city) for person, city in mayor.items()]
    content = {
        "relations": {"governs": {"functional": True, "templates": ["{subject} governs {object}."]}},
        "frames": SCHEMA["frames"],
    }
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(content))
    with make_world(*triples) as knowledge:
        made = make_benchmark(
            DuckTables(knowledge.connection), read_schema(tmp_path / "schema.yaml"), MakerOptions("kmir"), ["checking"]
        )
    levels = []
    for row in made.questions.to_pylist():
        if row["target"].lower() == "no":
            words = row["prompt"].removesuffix(" True? [MASK].").rstrip(".").split()
            right, wrong = mayor[words[0].lower()], words[-1]
            assert right != wrong
            levels.append(row["nearness"])
            if row["nearness"] == "sibling":
                assert country[right] == country[wrong]
            if row["nearness"] == "cousin":
                assert continent[country[right]] == continent[country[wrong]]
    assert len(levels) >= 15
    assert set(levels) == {"sibling", "cousin"}, "all have siblings and cousins"


def test_frequency_does_not_tell_the_right_choice(tmp_path: Path) -> None:
    """Answers of very different frequency: the most frequent of four choices is right about as often as any other."""
    draw = random.Random(5)
    tongues = [f"tongue{n}" for n in range(24)]
    weights = [1 / (n + 1) for n in range(24)]
    triples = []
    for number in range(900):
        person = f"person{number}"
        triples += [(person, "speaks", tongue) for tongue in set(draw.choices(tongues, weights, k=2))]
    content = {
        "relations": {"speaks": {"complete": "object", "templates": ["{subject} speaks {object}."]}},
        "frames": SCHEMA["frames"],
    }
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(content))
    with make_world(*triples) as knowledge:
        made = make_benchmark(
            DuckTables(knowledge.connection),
            read_schema(tmp_path / "schema.yaml"),
            MakerOptions("s", choices=4, limit=800),
            ["completion"],
        )
    counts = {tongue: sum(o == tongue for _, _, o in triples) for tongue in tongues}
    rows = made.questions.to_pylist()
    best = [max(row["choices"], key=lambda name: counts[name]) in row["answers"] for row in rows]
    assert len(rows) > 500
    # Names drawn without regard to frequency: the most frequent choice would be right in some 60% of questions.
    unmatched = []
    for row in rows:
        others = [name for name in tongues if name not in row["answers"]]
        unmatched.append(counts[row["target"]] > max(counts[name] for name in draw.sample(others, 3)))
    assert sum(best) / len(best) < sum(unmatched) / len(unmatched) - 0.1
