"""Question makers, which create each kind of question by SQL queries over a knowledge base."""
