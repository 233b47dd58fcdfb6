"""A benchmark made relationally: every question kind as SQL over a knowledge base's own database."""
