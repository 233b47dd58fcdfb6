"""Chat probes, in which a model chooses a letter, answers in its own words, or judges a statement."""
