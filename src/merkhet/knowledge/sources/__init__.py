"""Readers of knowledge sources, one module per format; each reader yields chunks."""
