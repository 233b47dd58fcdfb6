"""Questions for the models of ontoprobe_controls: what they were taught, and what they were not.

``statements`` are subclass questions whose domain says which half they are of (``seen`` or ``unseen``), with the
frequencies of the seen half, which is all that a model could know of the other one. ``rule`` are rdfs9 questions about
classes of the unseen half alone.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from merkhet.core.schemas import FREQUENCIES, make_table
from merkhet.questions.question_files import QuestionSet, write_questions
from merkhet.suites.ontoprobe.published import read_published_statements
from merkhet.suites.ontoprobe.questions import OntologyOptions, make_ontology_questions
from merkhet.suites.ontoprobe.questions.ontology_statements import Statement, Statements

sys.path.insert(0, str(Path(__file__).parent))

from ontoprobe_controls import is_first_half, opaque

FEW = 10


def halves(given: Statements, names_say_nothing: bool) -> QuestionSet:
    """Subclass questions of both halves; the training rows of soft prompts are of the seen half."""
    seen, unseen = [], []
    for one in given.for_task("SCO"):
        own = replace(one, subject=opaque(one.subject) if names_say_nothing else one.subject)
        (seen if is_first_half(one.subject) else unseen).append(own)
    splits = ["train"] * FEW + ["dev"] * FEW + ["test"] * len(seen)
    seen = [replace(one, split=split) for one, split in zip(seen, splits, strict=False)]
    unseen = [replace(one, split="test") for one in unseen]
    made = make_ontology_questions(
        replace(given, statements=(*seen, *unseen)), OntologyOptions(tasks=["SCO"], rules=[], choice=False)
    )
    of_seen = {one.fact_id for one in seen}
    domain = pa.array(["seen" if qset in of_seen else "unseen" for qset in made.questions["qset"].to_pylist()])
    place = made.questions.schema.get_field_index("domain")
    counts = Counter(gold for one in seen for gold in one.golds)
    rows = [{"task": "SCO", "relation": "SCO", "answer": name, "count": count} for name, count in counts.items()]
    return replace(
        made,
        questions=made.questions.set_column(place, "domain", domain),
        frequencies=make_table(FREQUENCIES, rows),
    )


def rule(given: Statements) -> QuestionSet:
    """rdfs9 where neither the class nor what stands above it was in the half that the rule was taught with."""

    def is_unseen(one: Statement) -> bool:
        return not any(is_first_half(name) for name in (one.subject, one.golds[0]))

    kept = [replace(one, split="test") for one in given.for_task("SCO") if is_unseen(one)]
    return make_ontology_questions(
        replace(given, statements=tuple(kept)),
        OntologyOptions(
            tasks=["SCO"], rules=["rdfs9"], templates=["manual"], conjunctions=["manual"], choice=False, premises=None
        ),
    )


def main() -> None:
    """Write the questions into folders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the published files of OntoProbe")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    given = read_published_statements(options.data)
    for name, questions in {
        "statements": halves(given, False),
        "opaque": halves(given, True),
        "rule": rule(given),
    }.items():
        write_questions(questions, options.out / name)
        print(f"{options.out / name}: {questions.questions.num_rows:,} questions")


if __name__ == "__main__":
    main()
