"""From facts to questions: templates and one module a question kind; and questions that people bring."""

from gnomon.questions.checking import make_checks
from gnomon.questions.completion import answer_frequencies, make_completions
from gnomon.questions.distinction import make_distinctions
from gnomon.questions.files import QuestionSet, read_questions, write_questions
from gnomon.questions.material import MakerOptions
from gnomon.questions.templates import Hierarchy, Relation, Schema, default_relation, read_schema

__all__ = [
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
