"""OntoProbe: knowledge of an ontology, and reasoning by RDFS rules."""
