"""Checkpoint schedules, checks and records of the learners that train on questions: cloze tuning and soft prompts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from merkhet.core.errors import InputError
from merkhet.core.ids import digest
from merkhet.core.records import Question
from merkhet.models.causal import CausalModel
from merkhet.models.masked import MaskedModel
from merkhet.training._trainer import CheckpointSchedule
from merkhet.training._training_task import TrainingState


@dataclass(frozen=True)
class QuestionTraining:
    """One training of a model on questions: its learner, data, settings and seed."""

    learner: str
    model: MaskedModel | CausalModel
    training: Sequence[Question]
    dev: Sequence[Question]
    settings: Any
    seed: int

    def make_schedule(self, folder: Path | None, *identity: Any) -> CheckpointSchedule | None:
        """Return a schedule of checkpoints in ``folder``, or None without a folder.

        ``identity`` holds further values that distinguish this training from others.
        """
        if folder is None:
            return None
        questions = [questions_digest(self.training), questions_digest(self.dev)]
        content = [self.learner, self.model.fingerprint, questions, *identity, asdict(self.settings), self.seed]
        return CheckpointSchedule(folder, digest(content))

    def require_examples(self, examples: Sequence[Any], skipped: Mapping[str, int]) -> None:
        """Raise an ``InputError`` with the reasons for skipped questions if there are no examples."""
        if not examples:
            reasons = "; ".join(f"{reason} ({count})" for reason, count in skipped.items()) or "there is none"
            raise InputError(
                f"{self.model.name} can learn from none of the {len(self.training)} training questions: {reasons}"
            )

    def make_record(
        self, state: TrainingState, examples: Sequence[Any], skipped: Mapping[str, int], **further: Any
    ) -> dict[str, Any]:
        """Return the record of a finished training, for learned.json."""
        return {
            "learner": self.learner,
            "model": self.model.name,
            "kind": self.model.kind,
            "base": self.model.fingerprint,
            "settings": asdict(self.settings),
            "seed": self.seed,
            **further,
            "questions": len(self.training),
            "learned": len(examples),
            "skipped": dict(sorted(skipped.items())),
            "dev_questions": len(self.dev),
            "epochs": state.curve,
            "kept_epoch": state.best_epoch or state.epoch,
        }


def questions_digest(questions: Iterable[Question]) -> str:
    """Return a hash of questions that does not depend on their order."""
    by_candidates: dict[int, str] = {}  # Many questions share one tuple of candidates.
    rows = []
    for question in questions:
        key = id(question.candidates)
        if key not in by_candidates:
            by_candidates[key] = digest(list(question.candidates))
        rows.append([question.question_id, question.prompt, question.target, *question.answers, by_candidates[key]])
    return digest(sorted(rows))
