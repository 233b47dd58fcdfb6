"""Rules from YAML or the ontology, applied to a fixpoint in SQL, with proofs."""
