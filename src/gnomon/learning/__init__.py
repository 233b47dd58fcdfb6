"""What changes a model: fine-tuning on cloze questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names
from gnomon.foundation.registry import Registry

if TYPE_CHECKING:
    from gnomon.learning.cloze import ClozeSettings, tune_cloze
    from gnomon.learning.learned import Learned, Learner, read_learned

LEARNERS = Registry(
    "learner",
    {"cloze": ("gnomon.learning.cloze:tune_cloze", "fine-tune a model to write the answers of cloze questions")},
)

__getattr__ = lazy_names(
    __name__,
    {
        "ClozeSettings": "gnomon.learning.cloze",
        "tune_cloze": "gnomon.learning.cloze",
        "Learned": "gnomon.learning.learned",
        "Learner": "gnomon.learning.learned",
        "read_learned": "gnomon.learning.learned",
    },
)

__all__ = ["LEARNERS", "ClozeSettings", "Learned", "Learner", "read_learned", "tune_cloze"]
