"""KMIR: memorization, identification and reasoning, built from any knowledge base."""
