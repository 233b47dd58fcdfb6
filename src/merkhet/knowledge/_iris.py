"""Short names for IRIs, the same on every machine: ``rdf:type``, ``dbo:Person``, ``Q42``."""

from __future__ import annotations

import re
from urllib.parse import unquote

PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "schema": "https://schema.org/",
    "dbo": "http://dbpedia.org/ontology/",
    "dbr": "http://dbpedia.org/resource/",
    "dbp": "http://dbpedia.org/property/",
    "dbt": "http://dbpedia.org/datatype/",
    "yago": "http://yago-knowledge.org/resource/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "obo": "http://purl.obolibrary.org/obo/",
    "wikibase": "http://wikiba.se/ontology#",
}
# Wikidata's dump says Q42 and P31: the same thing has the same name when it comes from the query service.
_BARE = ("http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/")
OWN_NAMES = "urn:merkhet:"
"""The beginning of an IRI for what is no IRI itself (``capital``), so that it can be written as RDF and read again."""
_ALSO = {"http://schema.org/": "schema"}
_NAMESPACES = {**{iri: prefix for prefix, iri in PREFIXES.items()}, **_ALSO, **dict.fromkeys(_BARE, "")}
_WIKIDATA = re.compile(r"[QPL][1-9]\d*")
_CURIE = re.compile(r"([a-z]+):(\S+)")


def short_name(iri: str) -> str:
    """The name by which merkhet knows an IRI: with a well-known prefix if there is one, else the IRI itself."""
    cut = max(iri.rfind("/"), iri.rfind("#")) + 1
    prefix = _NAMESPACES.get(iri[:cut])
    local = iri[cut:]
    if prefix is None or not local:
        return _own_name(iri) if not cut and iri.startswith(OWN_NAMES) else iri
    if prefix:
        return f"{prefix}:{local}"
    return local if _WIKIDATA.fullmatch(local) else iri


def _own_name(iri: str) -> str:
    """What was written as an IRI with all its signs encoded; but for what would be taken for a blank node."""
    name = unquote(iri[len(OWN_NAMES) :])
    return iri if not name or name.startswith("_") else name


def full_iri(name: str) -> str | None:
    """The IRI that a short name stands for; None for a name that is no IRI (``capital``)."""
    if _WIKIDATA.fullmatch(name):
        return _BARE[0] + name
    found = _CURIE.fullmatch(name)
    if found and found[1] in PREFIXES:
        return PREFIXES[found[1]] + found[2]
    return name if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://\S+$|urn:\S+$", name) else None


# What the rules and the ontology readers speak of.
TYPE = "rdf:type"
SUBCLASS = "rdfs:subClassOf"
SUBPROPERTY = "rdfs:subPropertyOf"
DOMAIN = "rdfs:domain"
RANGE = "rdfs:range"
INVERSE = "owl:inverseOf"
EQUIVALENT_PROPERTY = "owl:equivalentProperty"
EQUIVALENT_CLASS = "owl:equivalentClass"
CHAIN = "owl:propertyChainAxiom"
DISJOINT_PROPERTIES = "owl:propertyDisjointWith"
DISJOINT_CLASSES = "owl:disjointWith"
SYMMETRIC = "owl:SymmetricProperty"
TRANSITIVE = "owl:TransitiveProperty"
FUNCTIONAL = "owl:FunctionalProperty"
INVERSE_FUNCTIONAL = "owl:InverseFunctionalProperty"
