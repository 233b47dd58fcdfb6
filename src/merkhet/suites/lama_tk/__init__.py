"""LAMA-TK suite: temporal facts, asked of models zero-shot or after the models memorized them."""
