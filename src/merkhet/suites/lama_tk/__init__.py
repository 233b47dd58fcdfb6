"""LAMA-TK: facts with times, asked zero-shot or stored in a model."""
