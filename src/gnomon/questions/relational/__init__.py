"""A benchmark made relationally: every question kind as SQL over a knowledge base's own database."""

from gnomon.questions.relational.making import TASKS, make_benchmark
from gnomon.questions.relational.workshop import MakingOptions

__all__ = ["TASKS", "MakingOptions", "make_benchmark"]
