"""What changes a model, or how it is asked: tuning on cloze questions, soft prompts, further pre-training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names
from gnomon.foundation.registry import Registry

if TYPE_CHECKING:
    from gnomon.learning.cloze import ClozeSettings, tune_cloze
    from gnomon.learning.learned import Learned, Learner, read_learned
    from gnomon.learning.pretrain_settings import PretrainSettings
    from gnomon.learning.pretraining import pretrain
    from gnomon.learning.soft import learn_soft_prompts, read_soft, soft_words_for
    from gnomon.learning.soft_training import SoftSettings

PRETRAIN = "pretrain"
MEMORIZE = "memorize"
LEARNERS = Registry(
    "learner",
    {
        "cloze": ("gnomon.learning.cloze:tune_cloze", "fine-tune a model to write the answers of cloze questions"),
        "soft": ("gnomon.learning.soft:learn_soft_prompts", "learn soft prompts for a model that stays as it is"),
        PRETRAIN: (
            "gnomon.learning.pretraining:pretrain",
            "go on with pre-training on a text corpus: MLM alone, with next or swapped sentences, or with span "
            "boundaries (masked models)",
        ),
        MEMORIZE: (
            "gnomon.learning.memorizing:memorize",
            "store facts: one output for each entity and time, trained until statements are known by heart",
        ),
    },
)

__getattr__ = lazy_names(
    __name__,
    {
        "ClozeSettings": "gnomon.learning.cloze",
        "tune_cloze": "gnomon.learning.cloze",
        "Learned": "gnomon.learning.learned",
        "Learner": "gnomon.learning.learned",
        "read_learned": "gnomon.learning.learned",
        "PretrainSettings": "gnomon.learning.pretrain_settings",
        "pretrain": "gnomon.learning.pretraining",
        "SoftSettings": "gnomon.learning.soft_training",
        "learn_soft_prompts": "gnomon.learning.soft",
        "read_soft": "gnomon.learning.soft",
        "soft_words_for": "gnomon.learning.soft",
    },
)

__all__ = [
    "LEARNERS",
    "MEMORIZE",
    "PRETRAIN",
    "ClozeSettings",
    "Learned",
    "Learner",
    "PretrainSettings",
    "SoftSettings",
    "learn_soft_prompts",
    "pretrain",
    "read_learned",
    "read_soft",
    "soft_words_for",
    "tune_cloze",
]
