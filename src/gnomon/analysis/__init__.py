"""What one asks of scores: which model is ahead, what it knows and what it does not."""

from gnomon.analysis.comparison import Comparison, compare_models
from gnomon.analysis.findings import find_out

__all__ = ["Comparison", "compare_models", "find_out"]
