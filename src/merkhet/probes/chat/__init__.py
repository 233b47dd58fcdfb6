"""Probes that talk to a model: it chooses by letter, answers in its own words, or judges a statement."""
