"""Question makers: each question kind as SQL over a knowledge base's database."""
