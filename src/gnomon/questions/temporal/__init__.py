"""Questions about facts with times: statements with one thing masked, and queries in words that were never stored."""

from gnomon.questions.temporal.composing import remarks_of
from gnomon.questions.temporal.facts import GRANULARITIES, TemporalFacts, subset, temporal_facts, time_name
from gnomon.questions.temporal.order import order_queries
from gnomon.questions.temporal.queries import boundary_queries, controlled, implicit_queries
from gnomon.questions.temporal.statements import MASKS, masked_statements, without_conflict
from gnomon.questions.temporal.wordings import TemporalWording, Wordings, read_wordings

__all__ = [
    "GRANULARITIES",
    "MASKS",
    "TemporalFacts",
    "TemporalWording",
    "Wordings",
    "boundary_queries",
    "controlled",
    "implicit_queries",
    "masked_statements",
    "order_queries",
    "read_wordings",
    "remarks_of",
    "subset",
    "temporal_facts",
    "time_name",
    "without_conflict",
]
