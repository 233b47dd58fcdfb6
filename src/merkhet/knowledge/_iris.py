"""Short names for IRIs: ``rdf:type``, ``dbo:Person``, ``Q42``."""

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
# Ids from the query service have no prefix, so they equal those of the dump (Q42, P31).
_UNPREFIXED_NAMESPACES = ("http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/")
LOCAL_NAMESPACE = "urn:merkhet:"
"""Namespace for names that are not IRIs (``capital``), which lets them survive an RDF export and import."""
_ALTERNATIVE_NAMESPACES = {"http://schema.org/": "schema"}
_NAMESPACES = {
    **{iri: prefix for prefix, iri in PREFIXES.items()},
    **_ALTERNATIVE_NAMESPACES,
    **dict.fromkeys(_UNPREFIXED_NAMESPACES, ""),
}
_WIKIDATA_ID = re.compile(r"[QPL][1-9]\d*")
_CURIE = re.compile(r"([a-z]+):(\S+)")


def short_name(iri: str) -> str:
    """Shorten an IRI by a well-known prefix; an IRI without such a prefix is returned unchanged."""
    cut = max(iri.rfind("/"), iri.rfind("#")) + 1
    prefix = _NAMESPACES.get(iri[:cut])
    local = iri[cut:]
    if prefix is None or not local:
        return _local_name(iri) if not cut and iri.startswith(LOCAL_NAMESPACE) else iri
    if prefix:
        return f"{prefix}:{local}"
    return local if _WIKIDATA_ID.fullmatch(local) else iri


def _local_name(iri: str) -> str:
    """Decode a name in ``LOCAL_NAMESPACE``; return the IRI unchanged if the name would look like a blank node."""
    name = unquote(iri[len(LOCAL_NAMESPACE) :])
    return iri if not name or name.startswith("_") else name


def full_iri(name: str) -> str | None:
    """Expand a short name to its IRI; return None for a name without an IRI (``capital``)."""
    if _WIKIDATA_ID.fullmatch(name):
        return _UNPREFIXED_NAMESPACES[0] + name
    match = _CURIE.fullmatch(name)
    if match and match[1] in PREFIXES:
        return PREFIXES[match[1]] + match[2]
    return name if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://\S+$|urn:\S+$", name) else None


def predicate_name(text: str) -> str:
    """Return the short name of a predicate that a user wrote as a short name or as an IRI."""
    return short_name(full_iri(text) or text)


def predicate_spellings(text: str) -> set[str]:
    """Return the names under which tables may hold a predicate that a user wrote as a short name or as an IRI."""
    name = predicate_name(text)
    prefix, _, local = name.rpartition(":")
    in_namespaces = {iri + local for iri, known in _NAMESPACES.items() if known == prefix}
    return {text, name} | {iri for iri in in_namespaces if short_name(iri) == name}


# Vocabulary of the rules and the ontology readers.
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
