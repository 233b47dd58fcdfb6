"""Whether a probe can be trusted: what it finds in small models of which it is known what they know."""

from gnomon.analysis.calibration.cards import find_cards

__all__ = ["find_cards"]
