"""Analyses of OntoProbe: scores by task, effects of premises, and effects of prompts."""
