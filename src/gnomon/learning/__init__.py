"""What changes a model: soft prompts, cloze tuning, memorizing facts (none is here yet)."""

from gnomon.foundation.registry import Registry

LEARNERS = Registry("learner", {})

__all__ = ["LEARNERS"]
