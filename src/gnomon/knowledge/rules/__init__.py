"""What follows: rules declared in YAML or read from the ontology, run to a fixpoint in SQL, with proofs."""

from gnomon.knowledge.rules.declared import Declared, read_rules
from gnomon.knowledge.rules.fixpoint import Inference, infer
from gnomon.knowledge.rules.rulebook import RULES, chosen_rules

__all__ = ["RULES", "Declared", "Inference", "chosen_rules", "infer", "read_rules"]
