"""Analyses of KMIR: models by question types, as in the paper's Table 4."""
