"""Question makers of the quickstart suite."""
