"""Readers of knowledge, one module for each format; each yields chunks."""
