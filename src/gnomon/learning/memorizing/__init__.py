"""Storing facts in a model: one output for each entity and time, trained to fill masks, asked in any words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from gnomon.learning.memorizing.recalling import Memorized, load_memorized
    from gnomon.learning.memorizing.settings import MemorizeSettings, make_memorize_settings
    from gnomon.learning.memorizing.storing import memorize

__getattr__ = lazy_names(
    __name__,
    {
        "Memorized": "gnomon.learning.memorizing.recalling",
        "load_memorized": "gnomon.learning.memorizing.recalling",
        "MemorizeSettings": "gnomon.learning.memorizing.settings",
        "make_memorize_settings": "gnomon.learning.memorizing.settings",
        "memorize": "gnomon.learning.memorizing.storing",
    },
)

__all__ = ["MemorizeSettings", "Memorized", "load_memorized", "make_memorize_settings", "memorize"]
