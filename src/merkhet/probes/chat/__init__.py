"""Chat probes: the model chooses by letter, answers in its own words, or judges a statement."""
