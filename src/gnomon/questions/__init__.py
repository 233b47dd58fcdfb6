"""From facts to questions: templates and one module a question kind; and questions that people bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from gnomon.questions.checking import make_checks
    from gnomon.questions.completion import answer_frequencies, make_completions
    from gnomon.questions.distinction import make_distinctions
    from gnomon.questions.files import QuestionSet, read_questions, write_questions
    from gnomon.questions.material import CachedKnowledge, MakerOptions
    from gnomon.questions.templates import Hierarchy, Relation, Schema, default_relation, read_schema

__getattr__ = lazy_names(
    __name__,
    {
        "Hierarchy": "gnomon.questions.templates",
        "CachedKnowledge": "gnomon.questions.material",
        "MakerOptions": "gnomon.questions.material",
        "QuestionSet": "gnomon.questions.files",
        "Relation": "gnomon.questions.templates",
        "Schema": "gnomon.questions.templates",
        "answer_frequencies": "gnomon.questions.completion",
        "default_relation": "gnomon.questions.templates",
        "make_checks": "gnomon.questions.checking",
        "make_completions": "gnomon.questions.completion",
        "make_distinctions": "gnomon.questions.distinction",
        "read_questions": "gnomon.questions.files",
        "read_schema": "gnomon.questions.templates",
        "write_questions": "gnomon.questions.files",
    },
)

__all__ = [
    "CachedKnowledge",
    "Hierarchy",
    "MakerOptions",
    "QuestionSet",
    "Relation",
    "Schema",
    "answer_frequencies",
    "default_relation",
    "make_checks",
    "make_completions",
    "make_distinctions",
    "read_questions",
    "read_schema",
    "write_questions",
]
