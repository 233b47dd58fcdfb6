"""Analyses of the memorizing experiments of LAMA-TK."""
