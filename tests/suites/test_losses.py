"""Every suite accounts for its material: what has a template is asked, or counted with the reason why not."""

from __future__ import annotations

import pytest
from ontology_files import knowledge_of
from small_packs import small_pack
from stated_losses import accounts_of, asked_facts, reasons

import merkhet
from merkhet.knowledge.ontology import read_ontology
from merkhet.suites.ontoprobe.questions import make_ontology_questions
from merkhet.suites.ontoprobe.questions.ontology_prompts import OntologyOptions
from merkhet.suites.ontoprobe.questions.ontology_statements import gather_statements


def test_quickstart_accounts_for_all_facts_of_a_pack(made_once, tmp_path):
    made = merkhet.build("quickstart", knowledge=[str(small_pack(made_once))], out=tmp_path / "made")
    accounts = accounts_of(made)
    assert accounts["completion"].total == made.facts.num_rows
    for task, account in accounts.items():
        assert account.askable == len(asked_facts(made, task)), task


def test_chneval_accounts_for_every_row_and_usage(tmp_path):
    made = merkhet.build("chneval", out=tmp_path / "made")
    accounts = accounts_of(made)
    assert set(accounts) == {"syntactic", "semantic", "commonsense", "encyclopedia"}
    counts = made.questions["task"].value_counts().to_pylist()
    asked = {row["values"]: row["counts"] for row in counts}
    for task in ("syntactic", "commonsense", "encyclopedia"):
        assert accounts[task].askable == asked[task], task


def test_pairs_that_share_a_character_are_counted_as_such(tmp_path):
    pairs = ["start\trel\tend", "医生\tAtLocation\t医院", "书\tAtLocation\t图书馆", "老师\tAtLocation\t学校"]
    pairs += ["老师\tAtLocation\t学校", "猫\tHates\t狗", "鱼\tAtLocation\t"]
    (tmp_path / "pairs.tsv").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    (tmp_path / "own.yaml").write_text("zh:\n  AtLocation: {templates: ['{start}在{end}里。'], apart: true}\n")
    made = merkhet.build(
        "chneval",
        tasks=["commonsense"],
        settings=[f"options.pairs={tmp_path / 'pairs.tsv'}", f"options.templates={tmp_path / 'own.yaml'}"],
        out=tmp_path / "made",
    )
    account = accounts_of(made)["commonsense"]
    assert (account.total, account.askable) == (6, 1)
    assert reasons(account) == {
        "the words share a character (apart)": 1,
        "one word contains the other": 1,
        "the row repeats another one": 1,
        "the relation has no sentence": 1,
        "the row is no triple of names (see Remarks)": 1,
    }


def test_ontoprobe_accounts_for_entities_and_statements():
    triples = [("dog", "rdfs:subClassOf", "animal"), ("cat", "rdfs:subClassOf", "animal")]
    triples += [("odd", "rdfs:subClassOf", "animal"), ("rex", "rdf:type", "dog"), ("tom", "rdf:type", "cat")]
    triples += [(f"pet{n}", "rdf:type", "dog") for n in range(4)]
    for name, domain in (("eats", "dog"), ("owner", "dog")):
        triples += [(name, "rdf:type", "owl:ObjectProperty"), (name, "rdfs:domain", domain)]
    entities = ["dog", "cat", "animal", "rex", "tom", "eats", "owner", *(f"pet{n}" for n in range(4))]
    names = [(entity, entity) for entity in entities] + [("odd", "an odd [MASK]")]
    ontology = read_ontology(knowledge_of(triples, names))
    statements = gather_statements(ontology, seed=0, instances_per_class=2)
    made = make_ontology_questions(statements, OntologyOptions())
    accounts = accounts_of(made)
    for task, account in accounts.items():
        asked = {row["qset"] for row in made.questions.to_pylist() if row["task"] == task}
        assert account.askable == len(asked), task
    assert accounts["SCO"].total == 3
    assert reasons(accounts["SCO"]) == {"the name is empty or contains a placeholder of prompts": 1}
    assert accounts["TP"].total == 6
    assert reasons(accounts["TP"]) == {"not among the instances of a class that are drawn (options.instances)": 3}


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"compat": "paper"}, {"premises": 1}])
def test_the_embedded_ontology_adds_up(options, tmp_path):
    settings = [f"options.{key}={value}" for key, value in options.items()]
    made = merkhet.build("ontoprobe", out=tmp_path / "made", settings=settings)
    rows = made.questions.select(["task", "qset"]).to_pylist()
    for task, account in accounts_of(made).items():
        assert account.askable == len({row["qset"] for row in rows if row["task"] == task}), task
