"""Learners that train models: cloze tuning, soft prompts, further pre-training and memorizing."""

from __future__ import annotations

from merkhet.core.registry import PartType, Registry

PRETRAIN = "pretrain"
MEMORIZE = "memorize"
LEARNERS = Registry(
    "learner",
    {
        "cloze": ("merkhet.training.cloze:tune_cloze", "fine-tune a model to write the answers of cloze questions"),
        "soft": (
            "merkhet.training.soft_prompts:learn_soft_prompts",
            "learn soft prompts for a frozen model",
        ),
        PRETRAIN: (
            "merkhet.training.pretraining:pretrain",
            "continue pre-training on a text corpus: MLM alone, with next or swapped sentences, or with span "
            "boundaries (masked models)",
        ),
        MEMORIZE: (
            "merkhet.training.memorizing.memorize:store_statements",
            "store facts: one output for each entity and time, trained until statements are known by heart",
        ),
    },
    part_type=PartType("a function of a model, training questions and a folder", (3,)),
)
