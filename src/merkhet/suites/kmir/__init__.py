"""KMIR suite: questions on memorization, identification and reasoning, built from any knowledge base."""
