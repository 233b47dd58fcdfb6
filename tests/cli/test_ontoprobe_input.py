"""What ontoprobe says to ontologies and options that are odd or of no use."""

from __future__ import annotations

import json
import shutil

import pyarrow.parquet as pq
import pytest

PREFIXES = """@prefix : <http://e.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
"""
ODD = (
    PREFIXES
    + """
:animal a owl:Class ; rdfs:label "animal"@en ; rdfs:subClassOf :being .
:being a owl:Class ; rdfs:label "being"@en ; rdfs:subClassOf :animal .
:WildDog a owl:Class ; rdfs:subClassOf :animal .
:cat a owl:Class ; rdfs:label "cat"@en ; rdfs:subClassOf :animal .
:ship a owl:Class ; rdfs:label "ship"@en ; rdfs:subClassOf :vehicle .
:vehicle a owl:Class ; rdfs:label "vehicle"@en .
:owner a owl:ObjectProperty ; rdfs:label "owner"@en ; rdfs:range :animal .
:rex a :WildDog, :ship ; rdfs:label "Rex"@en .
"""
)


@pytest.fixture
def odd(tmp_path):
    """Circles, a class without a label, a property without a domain, an instance with two unrelated types."""
    file = tmp_path / "odd.ttl"
    file.write_text(ODD, encoding="utf-8")
    return file


def test_an_odd_ontology_is_asked_about_and_what_is_odd_is_said(merkhet, odd, tmp_path):
    done = merkhet("build", "ontoprobe", "--knowledge", odd, "--out", "made", check=0)
    said = " ".join(done.stdout.split())
    assert "circle" in said or "means the same" in said or "equivalent" in said
    assert "wild dog" in said
    assert "1 property has no domain" in said
    rows = pq.read_table(tmp_path / "made" / "questions.parquet").to_pylist()
    rex = next(row for row in rows if row["task"] == "TP" and row["prompt"].startswith("Rex"))
    assert {"wild dog", "ship", "vehicle", "animal"} <= set(rex["answers"])
    for row in rows:
        if row["task"] == "SCO":
            subject = row["prompt"].split(" is ")[0].split(" has ")[0].lower()
            assert subject not in {answer.lower() for answer in row["answers"]}


OF_NO_USE = (
    (("--knowledge", "elements"), "no class"),
    (("--knowledge", "ontology", "--set", "options.pattern=x.yaml"), "did you mean 'patterns'"),
    (("--knowledge", "ontology", "--set", "options.patterns=missing.yaml"), "missing.yaml"),
    (("--knowledge", "ontology", "--set", "options.predicates=[a]"), "must be a mapping"),
    (("--knowledge", "ontology", "--set", "options.predicates={kind: [x]}"), "kind"),
    (("--knowledge", "ontology", "--task", "TPP"), "did you mean 'TP'"),
    (("--data", "nowhere"), "nowhere"),
)


def test_what_is_of_no_use_is_refused_in_a_line(merkhet):
    wrong = []
    for arguments, said in OF_NO_USE:
        line = merkhet("build", "ontoprobe", *arguments, "--out", "made", check=2).stderr
        wrong += [(arguments, line)] if said not in line or len(line.strip().splitlines()) != 1 else []
    assert wrong == []


def test_a_pattern_for_an_unknown_property_or_of_another_form_is_refused(merkhet, tmp_path):
    for content, said in (
        ("parnt: '[X] is the child of [Y] .'", "parnt"),
        ("parent: 'the child of [Y] .'", "[X]"),
        ("parent: {patern: '[X] is the child of [Y] .'}", "patern"),
    ):
        (tmp_path / "patterns.yaml").write_text(content, encoding="utf-8")
        done = merkhet("build", "ontoprobe", "--set", "options.patterns=patterns.yaml", "--out", "made", check=2)
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_a_users_pattern_is_in_the_questions(merkhet, tmp_path):
    (tmp_path / "patterns.yaml").write_text("spouse: '[X] is married to [Y] .'", encoding="utf-8")
    merkhet("build", "ontoprobe", "--set", "options.patterns=patterns.yaml", "--out", "made", check=0)
    prompts = pq.read_table(tmp_path / "made" / "questions.parquet")["prompt"].to_pylist()
    assert any("to be married to something" in prompt for prompt in prompts)
    assert any("[X] is married to [Y] ." in prompt for prompt in prompts)


def test_a_broken_published_file_is_named_with_its_row(merkhet, tmp_path):
    folder = tmp_path / "memorizing"
    folder.mkdir()
    (folder / "subClassOf.jsonl").write_text('{"uuu": "card game", "xxx": ["game"]}\n{"uuu": 3}\n', encoding="utf-8")
    done = merkhet("build", "ontoprobe", "--data", tmp_path, "--out", "made", check=2)
    assert "subClassOf.jsonl, row 2" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_masked_model_without_a_mask_token_is_refused(merkhet, model_folders, tmp_path):
    folder = shutil.copytree(model_folders["bert-uncased"], tmp_path / "maskless")
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    config["mask_token"] = None
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    done = merkhet("run", "ontoprobe", "--model", folder, "--task", "RG", "--limit", 5, "--out", "run", check=2)
    assert "has no mask token" in done.stderr.strip().splitlines()[-1]
