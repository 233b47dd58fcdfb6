"""KMIR's schema and rules against the embedded packs: all has words, every axiom concludes, what follows is true."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

import merkhet
from merkhet.knowledge.pack_catalog import declared_predicates, embedded_packs
from merkhet.knowledge.rules.fixpoint import infer
from merkhet.knowledge.rules.rule_files import read_rules
from merkhet.knowledge.rules.rulebook import RULES
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import import_knowledge
from merkhet.questions.schema import read_schema

FOLDER = Path(merkhet.__file__).parent / "suites/kmir"
SCHEMA = read_schema(FOLDER / "schema.yaml")
PACKS = tuple(name for name in embedded_packs() if name not in ("names-zh", "ontology"))
WORDED = {predicate: relation for relation in SCHEMA.relations.values() for predicate in relation.predicates}
ORDERS = ("comes-before", "nearer-the-sun-than", "shorter-wavelength-than")
COMPARED = {predicate for comparison in SCHEMA.comparisons.values() for predicate in comparison.predicates}


@pytest.fixture(scope="module")
def knowledge(tmp_path_factory):
    store = tmp_path_factory.mktemp("kmir") / "knowledge.duckdb"
    import_knowledge([*PACKS], store)
    infer(store, declared=read_rules(FOLDER / "rules.yaml"))
    with KnowledgeBase.open(store) as opened:
        yield opened


@pytest.fixture(scope="module")
def concluded(knowledge):
    """(rule, predicate) -> the named pairs that follow by it."""
    labels = knowledge.labels()
    pairs = defaultdict(set)
    for row in knowledge.facts().to_pylist():
        if row["rule"]:
            pairs[row["rule"], row["predicate"]].add((labels[row["subject"]], labels[row["object"]]))
    return pairs


def test_every_predicate_belongs_to_one_relation():
    owners = Counter(predicate for relation in SCHEMA.relations.values() for predicate in relation.predicates)
    assert [predicate for predicate, count in owners.items() if count > 1] == []


def test_every_predicate_of_the_packs_has_words_or_is_compared():
    packs = embedded_packs()
    declared = {predicate for pack in PACKS for predicate in declared_predicates(packs[pack])}
    kinships = {relation.kinship for relation in SCHEMA.relations.values() if relation.kinship}
    assert declared - set(WORDED) - COMPARED - kinships == set()


def test_paraphrases_are_many_and_differ():
    assert [name for name, relation in SCHEMA.relations.items() if len(relation.templates) < 3] == []
    sentences = Counter(template for relation in SCHEMA.relations.values() for template in relation.templates)
    shared = {template for template, count in sentences.items() if count > 1}
    concluded = {template for one in SCHEMA.relations.values() if not one.completion for template in one.templates}
    assert concluded & shared == set()
    assert all(len(SCHEMA.frames[kind]) >= 3 for kind in ("checking", "choices", "distinction"))


def test_all_six_axioms_conclude_and_all_conclusions_have_words(concluded):
    counts = Counter()
    for (rule, predicate), pairs in concluded.items():
        counts[RULES[rule].alias] += len(pairs)
        assert predicate in WORDED, predicate
    assert set(counts) == {rule.alias for rule in RULES.values() if rule.alias}
    assert min(counts.values()) >= 100, counts


def test_what_follows(concluded):
    for rule, predicate, pair in (
        ("symmetric", "opposite-of", ("cold", "hot")),
        ("transitive", "nearer-the-sun-than", ("Mercury", "Neptune")),
        ("transitive", "shorter-wavelength-than", ("X-rays", "red light")),
        ("equivalent", "legal-tender", ("Japan", "Japanese yen")),
        ("inverse", "capital-of", ("Paris", "France")),
        ("inverse", "si-unit-for", ("ohm", "electrical resistance")),
        ("rdfs7", "measures-quantity", ("light-year", "length")),
        ("inverse", "director-of", ("Steven Spielberg", "Jaws")),
        ("chain", "city-continent", ("Lyon", "Europe")),
        ("chain", "parliament-continent", ("Knesset", "Asia")),
        ("inverse", "relative-major", ("A minor", "C major")),
        ("chain", "chamber-continent", ("Bundestag", "Europe")),
        ("chain", "force-continent", ("Luftwaffe", "Europe")),
        ("chain", "anthem-continent", ("Kimigayo", "Asia")),
        ("chain", "brand-kind", ("Zocor", "lipid-lowering drug")),
        ("chain", "led-country", ("Angela Merkel", "Germany")),
        ("chain", "animal-has", ("sparrow", "feathers")),
        ("chain", "battle-in-conflict", ("the Battle of Cannae", "the Punic Wars")),
    ):
        assert pair in concluded[rule, predicate]


def test_orders_are_whole_and_have_no_circles(knowledge):
    """A stated next one and transitivity give every pair of an order once, and never both ways."""
    pairs = defaultdict(set)
    for predicate in ORDERS:
        pairs[predicate] = {(row["subject"], row["object"]) for row in knowledge.facts(predicate).to_pylist()}
        members = {one for pair in pairs[predicate] for one in pair}
        assert len(pairs[predicate]) == len(members) * (len(members) - 1) / 2
        assert not any((after, before) in pairs[predicate] for before, after in pairs[predicate])
    assert len(pairs["comes-before"]) == 66


def test_no_unit_outside_of_the_si_becomes_an_si_unit(knowledge):
    units = {row["subject"] for row in knowledge.facts("si-unit-for").to_pylist()}
    others = {row["subject"] for row in knowledge.facts("unit-of").to_pylist()}
    assert units
    assert others
    assert units & others == set()
