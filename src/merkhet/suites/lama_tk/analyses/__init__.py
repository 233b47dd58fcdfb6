"""Analyses of LAMA-TK's memorizing experiments."""
