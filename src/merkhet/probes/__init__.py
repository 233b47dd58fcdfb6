"""Probes: functions that ask a model questions in a certain way, and return its answers."""

from __future__ import annotations

from merkhet.core.registry import PartType, Registry

PROBES = Registry(
    "probe",
    {
        "rank": ("merkhet.probes.rank:rank_candidates", "rank a closed list of candidates in the question's sentence"),
        "fill": ("merkhet.probes.fill:fill_slots", "rank the model's whole vocabulary in the slot (masked models)"),
        "write": ("merkhet.probes.write:write_answers", "let the model write text into the slot"),
        "compare": (
            "merkhet.probes.compare:compare_senses",
            "rank usages of a word by the similarity of its sense, by cosine (masked, causal, encoder models)",
        ),
        "choose": (
            "merkhet.probes.chat.choose:choose",
            "let a chat or causal model choose a letter; options orders, mixed_letters, most, shots",
        ),
        "answer": (
            "merkhet.probes.chat.answer:answer",
            "let a chat or causal model fill the blank in its own words; option shots",
        ),
        "judge": (
            "merkhet.probes.chat.judge:judge",
            "let a chat or causal model say whether a statement is true; option shots",
        ),
    },
    part_type=PartType("a function that asks a model", (3,)),
)
