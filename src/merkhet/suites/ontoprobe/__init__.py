"""OntoProbe: knowledge of an ontology, and reasoning with RDFS rules."""
