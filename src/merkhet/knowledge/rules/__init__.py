"""What follows: rules declared in YAML or read from the ontology, run to a fixpoint in SQL, with proofs."""
