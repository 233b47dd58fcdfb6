"""Small ontologies for tests, from triples or Turtle, and what is said of them."""

from __future__ import annotations

import pytest

from merkhet.core.schemas import FACTS, NAMES, make_table
from merkhet.knowledge._iris import PREFIXES
from merkhet.knowledge.chunk import Chunk
from merkhet.knowledge.store import KnowledgeBase

HEAD = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in PREFIXES.items()) + "@prefix : <http://e.org/> .\n"
LOW = "rdfs:subClassOf"


def knowledge_of(triples, names=()):
    rows = [{"subject": low, "predicate": predicate, "object": high} for low, predicate, high in triples]
    called = [{"entity": entity, "label": label, "language": "en"} for entity, label in dict(names).items()]
    return KnowledgeBase([Chunk(make_table(FACTS, rows), make_table(NAMES, called))])


def turtle(tmp_path, text):
    pytest.importorskip("pyoxigraph", reason="reading RDF needs pyoxigraph")
    path = tmp_path / "o.ttl"
    path.write_text(HEAD + text, encoding="utf-8")
    return KnowledgeBase.load([str(path)])


def told(ontology, words):
    """The one remark that has these words."""
    found = [remark for remark in ontology.remarks if words in remark]
    assert len(found) == 1, ontology.remarks
    return found[0]


def names(terms, ids):
    return [terms[one] for one in ids]
