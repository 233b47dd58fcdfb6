"""Inference of facts by rules: axioms from YAML files or ontologies, applied in SQL to a fixpoint, with proofs."""
