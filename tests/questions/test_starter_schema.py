"""Starter schemas: valid for any knowledge, true to the data, and good for readable questions as they are."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

import merkhet as package
from merkhet.core.errors import InputError
from merkhet.core.schemas import FACTS, NAMES, make_table
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.pack_catalog import embedded_packs
from merkhet.knowledge.sources.conceptnet import surface_template
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import import_knowledge
from merkhet.questions.schema import read_schema
from merkhet.questions.starter_schema import make_starter_schema, write_starter_schema
from merkhet.questions.template_suggestions import category_noun, sentence_templates, superlatives

PRODUCTS = Path(__file__).parents[2] / "docs" / "examples" / "products.csv"


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("products") / "products.duckdb"
    import_knowledge([str(PRODUCTS)], store)
    return store


def test_sixty_facts_give_readable_questions_of_every_task_as_they_are(products: Path, tmp_path: Path) -> None:
    schema = write_starter_schema(products, tmp_path / "schema.yaml")
    assert (schema.relations, schema.hierarchies, schema.comparisons, schema.left_out) == (4, 3, 1, ())
    settings = [f"options.schema={tmp_path / 'schema.yaml'}", "options.splits={test: 1}"]
    built = package.build("kmir", knowledge=[str(products)], settings=settings, out=tmp_path / "questions")
    rows = built.questions.to_pylist()
    answers = {row["prompt"]: row["answers"] for row in rows}
    assert answers["Fjord 20 was launched on [MASK]."] == ["11 March 2014", "2014-03-11"]
    assert answers["Tind Pro is [MASK]."] == ["a mirrorless camera"]
    assert answers["The designer of Lykt 85 is [MASK]."] == ["Oskar Dahl"]
    assert answers["Stativ Studio is made in [MASK]."] == ["Molde"]
    assert {"completion", "distinction", "reasoning"} <= {row["task"] for row in rows}
    assert not [row["prompt"] for row in rows if re.search(r"[{}]|\d{4}-\d\d|\b(is|the|of) \1\b", row["prompt"])]


def test_guesses_are_comments_that_take_effect_when_uncommented(products: Path, tmp_path: Path) -> None:
    text = write_starter_schema(products, tmp_path / "schema.yaml").text
    guesses = re.findall(r"^    # (\w+: \w+)  # review: (.*)$", text, re.MULTILINE)
    assert ("functional: true", "each of 12 subjects has one object in this data") in guesses
    assert ("complete: subject", "each of 12 objects has one subject in this data") in guesses
    open_text = re.sub(r"^(    )# (\w+: \w+  # review: )", r"\1\2", text, flags=re.MULTILINE)
    content = yaml.safe_load(open_text)
    assert content["relations"]["launched-on"]["functional"] is True
    assert content["relations"]["launched-on"]["complete"] == "subject"
    assert yaml.safe_load(text)["relations"]["launched-on"].keys().isdisjoint({"functional", "complete"})
    assert text.count("# review:") == write_starter_schema(products, tmp_path / "again.yaml").reviews


@pytest.mark.parametrize("name", sorted(embedded_packs()))
def test_the_starter_schema_of_a_pack_is_valid(name: str, tmp_path: Path) -> None:
    knowledge = KnowledgeBase.load([name])
    if not knowledge.query("select 1 from facts where rule is null limit 1").num_rows:
        with pytest.raises(InputError, match="no stated facts"):
            make_starter_schema(knowledge)
        return
    schema = make_starter_schema(knowledge)
    (tmp_path / "schema.yaml").write_text(schema.text)
    read = read_schema(tmp_path / "schema.yaml")
    assert len(read.relations) == schema.relations and len(read.comparisons) == schema.comparisons
    named = read.predicates() | set(schema.left_out)
    stated = knowledge.query("select distinct predicate from facts where rule is null")["predicate"].to_pylist()
    few = "select predicate from facts where object is null group by predicate having count(*) < 4"
    few_numbers = set(knowledge.query(few)["predicate"].to_pylist())
    assert {p for p in stated if not p.startswith(("rdfs:", "owl:", "skos:", "schema:"))} <= named | few_numbers
    assert all(line == line.rstrip() for line in schema.text.splitlines())


def test_guesses_say_what_the_data_say(tmp_path: Path) -> None:
    for seed in range(6):
        draw = random.Random(seed)
        facts = {
            (f"s{draw.randrange(8)}", draw.choice(["owns", "lives in", "part of"]), f"o{draw.randrange(8)}")
            for _ in range(draw.choice([8, 20]))
        }
        facts |= {(f"s{n}", "part of", f"s{n + 1}") for n in range(3)} if seed % 2 else set()
        names = [{"entity": name, "label": name} for name in sorted({end for s, _, o in facts for end in (s, o)})]
        rows = [{"subject": s, "predicate": p, "object": o} for s, p, o in sorted(facts)]
        text = make_starter_schema(KnowledgeBase([Chunk(make_table(FACTS, rows), make_table(NAMES, names))])).text
        blocks = dict(
            re.findall(r"^  ([\w-]+):\n(.*?)(?=^  [\w-]+:|^\w)", text.split("hierarchies:")[0] + "end\n", re.M | re.S)
        )
        for predicate in {p for _, p, _ in facts}:
            objects, subjects = defaultdict(set), defaultdict(set)
            for s, p, o in facts:
                if p == predicate:
                    objects[s].add(o)
                    subjects[o].add(s)
            block = blocks[predicate.replace(" ", "-")]
            single = all(len(values) == 1 for values in objects.values())
            unique = all(len(values) == 1 for values in subjects.values()) and len(subjects) > 1
            assert ("functional: true" in block) == single, (seed, predicate)
            assert ("complete: subject" in block) == unique, (seed, predicate)
            assert ("complete: object" in block) == (not single and not unique), (seed, predicate)
            mirrored = [(s, o) for s, os in objects.items() for o in os if s in objects.get(o, ())]
            chained = sum(o in objects for o in subjects)
            assert ("transitive: true" in block) == (chained > 0 and not mirrored), (seed, predicate)
            members = sum(len(values) >= 3 for values in subjects.values())
            hierarchies = yaml.safe_load(text).get("hierarchies") or {}
            few = sum(len(values) == 1 for values in objects.values()) < 0.8 * len(objects)
            is_hierarchy = members > 1 and not few and not mirrored
            assert (predicate.replace(" ", "-") in hierarchies) == is_hierarchy, (seed, predicate)


def test_literals_and_few_numbers_are_left_out_and_dates_are_not(tmp_path: Path) -> None:
    rows = [{"subject": f"s{n}", "predicate": "born", "object": f'"19{n}0-01-02"'} for n in range(1, 6)]
    rows += [{"subject": f"s{n}", "predicate": "motto", "object": f'"motto {n}"@en'} for n in range(1, 6)]
    rows += [{"subject": f"s{n}", "predicate": "area", "value": float(n), "unit": "km2"} for n in range(1, 6)]
    rows += [{"subject": "s1", "predicate": "height", "value": 3.0}]
    names = [{"entity": f"s{n}", "label": f"Thing {n}"} for n in range(1, 6)]
    schema = make_starter_schema(KnowledgeBase([Chunk(make_table(FACTS, rows), make_table(NAMES, names))]))
    content = yaml.safe_load(schema.text)
    assert set(content["relations"]) == {"born"} and set(content["comparisons"]) == {"area"}
    assert content["relations"]["born"]["templates"] == ["{the subject} was born on {the object}."]
    assert "largest area" in content["comparisons"]["area"]["most"][0]
    assert schema.left_out == ("motto", "height")


def test_what_cannot_be_written_is_refused(products: Path, tmp_path: Path) -> None:
    (tmp_path / "schema.yaml").write_text("mine")
    with pytest.raises(InputError, match=r"schema\.yaml exists\. Name another file"):
        write_starter_schema(products, tmp_path / "schema.yaml")
    assert (tmp_path / "schema.yaml").read_text() == "mine"
    empty = KnowledgeBase([Chunk()])
    with pytest.raises(InputError, match="no stated facts with names or numbers"):
        make_starter_schema(empty)


def test_templates_of_labels_are_sentences() -> None:
    assert sentence_templates("capital") == [
        "The capital of {the subject} is {the object}.",
        "{the object} is the capital of {the subject}.",
    ]
    assert sentence_templates("ingredient", single=False) == [
        "One ingredient of {the subject} is {the object}.",
        "{the object} is an ingredient of {the subject}.",
    ]
    assert sentence_templates("launched on", dated=True) == ["{the subject} was launched on {the object}."]
    assert sentence_templates("released", dated=True) == ["{the subject} was released on {the object}."]
    assert sentence_templates("release date", dated=True)[0] == "The release date of {the subject} is {the object}."
    assert sentence_templates("made by") == ["{the subject} is made by {the object}."]
    assert sentence_templates("owns") == ["{the subject} owns {the object}."]
    assert sentence_templates("product type", common=True)[0] == "{the subject} is {a object}."
    assert sentence_templates("is-a", is_class=True)[0] == "{a subject} is a kind of {object}."
    assert [category_noun(label) for label in ("designer", "made in", "made by")] == ["designer", "place", "maker"]
    nouns = {"uses the currency": "currency", "has a population of": "population", "has the official language": None}
    assert [category_noun(label) for label in nouns] == ["currency", "population", "official language"]
    assert category_noun("lies in", "continent") == "continent" and category_noun("is in", "P30") == "place"
    assert sentence_templates("is a disease of the") == ["{the subject} is a disease of the {object}."]
    assert sentence_templates("is caused by a") == ["{the subject} is caused by {a object}."]
    pairs = {"area": "largest", "length": "longest", "founding year": "latest", "price": "highest"}
    assert {label: superlatives(label)[0] for label in pairs} == pairs


def assertion(start: str, end: str, text: str | None, relation: str = "IsA") -> str:
    about = {"dataset": "/d/conceptnet/4/en", "license": "cc:by/4.0", "weight": 2.0, "surfaceText": text}
    uris = (f"/r/{relation}", f"/c/en/{start}", f"/c/en/{end}")
    return "\t".join(("/a/x", *uris, json.dumps(about))) + "\n"


def test_surface_texts_of_conceptnet_become_templates(tmp_path: Path) -> None:
    lines = [assertion(f"cat_{n}", f"pet_{n % 3}", f"[[a cat {n}]] is a type of [[a pet {n % 3}]]") for n in range(8)]
    lines += [assertion(f"dog_{n}", "beast", f"[[beast]] includes [[the dog {n}]].") for n in range(3)]
    lines += [
        assertion("cow", "animal", "*Something you call [[an animal]] is [[a cow]]"),
        assertion("ox", "animal", None),
    ]
    lines += [assertion("hen", "bird", "[[hens]] are [[birds]]")]
    (tmp_path / "conceptnet-assertions-5.7.0.csv").write_text("".join(lines))
    import_knowledge([str(tmp_path / "conceptnet-assertions-5.7.0.csv")], tmp_path / "kb.duckdb")
    text = write_starter_schema(tmp_path / "kb.duckdb", tmp_path / "schema.yaml").text
    assert yaml.safe_load(text)["relations"]["is-a"]["templates"] == [
        "{a subject} is a type of {a object}.",
        "{object} includes the {subject}.",
    ]
    assert read_schema(tmp_path / "schema.yaml").relations["is-a"].predicates == ("IsA",)


def test_a_surface_text_fits_its_concepts_or_is_left() -> None:
    cases = {
        ("[[A cat]] has [[four legs]]", "cat", "four legs"): "{a subject} has {object}",
        ("You find [[the moon]] in [[the sky]]", "moon", "sky"): "You find the {subject} in the {object}",
        ("[[wine]] comes from [[grapes]]", "grapes", "wine"): "{object} comes from {subject}",
        ("[[cats]] have [[legs]]", "cat", "legs"): None,
        ("[[a cat]] sleeps", "cat", "sleep"): None,
        ("[[a]] [[cat]] is [[pet]]", "cat", "pet"): None,
        ("{[[cat]]} is [[pet]]", "cat", "pet"): None,
    }
    assert {case: surface_template(*case) for case in cases} == cases


def test_a_schema_may_name_predicates_by_label(tmp_path: Path) -> None:
    lines = ["@prefix : <http://e.org/> .", "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."]
    lines += [':bp rdfs:label "birth place" .', ':h rdfs:label "height" .']
    for number in range(6):
        lines.append(f':p{number} rdfs:label "Person {number}" ; :bp :t{number} ; :h {150 + 20 * number} .')
        lines.append(f':t{number} rdfs:label "Town {number}" .')
    (tmp_path / "people.ttl").write_text("\n".join(lines))
    content = {
        "relations": {"birth place": {"templates": ["{subject} was born in {object}."]}},
        "comparisons": {"size": {"predicate": "Height", "most": ["Tallest of {members}: [MASK]."]}},
    }
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(content))
    built = package.build(
        "kmir",
        knowledge=[str(tmp_path / "people.ttl")],
        settings=[f"options.schema={tmp_path / 'schema.yaml'}"],
        out=tmp_path / "questions",
    )
    prompts = set(built.questions["prompt"].to_pylist())
    assert {f"Person {number} was born in [MASK]." for number in range(6)} <= prompts
    assert any(prompt.startswith("Tallest of ") for prompt in prompts)
