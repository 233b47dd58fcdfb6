"""Accounts of the entities and statements of an ontology that give no question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from merkhet.questions.losses import Account, LossCounter
from merkhet.suites.ontoprobe.options import RULES
from merkhet.suites.ontoprobe.questions.memorizing import Row, candidate_sets, nearest_candidate
from merkhet.suites.ontoprobe.questions.multiple_choice import LIMIT
from merkhet.suites.ontoprobe.questions.ontology_prompts import OntologyOptions
from merkhet.suites.ontoprobe.questions.ontology_statements import Statement, Statements
from merkhet.suites.ontoprobe.questions.rule_reasoning import RuleQuestionMaker

_WHAT = "statements"
_NO_CANDIDATE = "no right answer is a candidate"
_REPEATED = "another statement gives the same question"
_IN_TEST = "the test split has the same subject or question"


def account_for_statements(
    statements: Statements, made: Sequence[Row], rows: Sequence[Row], options: OntologyOptions
) -> list[Account]:
    """Account for the statements of each memorizing task, each rule and each task with choices.

    Entities that state something but are no subject of a statement count, too.

    Args:
        made: Rows of memorizing questions, including duplicates.
        rows: Rows of all questions.
    """
    accountant = _Accountant(statements, made, rows, options)
    accounts = [accountant.memorizing(task) for task in options.memorizing]
    accounts += [accountant.rule(rule) for rule in options.rules]
    if options.choice:
        accounts += [accountant.choice(task) for task in options.memorizing]
    return accounts


class _Accountant:
    def __init__(
        self, statements: Statements, made: Sequence[Row], rows: Sequence[Row], options: OntologyOptions
    ) -> None:
        self._statements = statements
        self._options = options
        self._made = {row["qset"] for row in made}
        self._asked: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            self._asked[row["task"]].add(row["qset"])
        self._candidates = {name: frozenset(texts) for name, (_, texts) in candidate_sets(statements).items()}
        self._maker = RuleQuestionMaker(statements, options)

    def memorizing(self, task: str) -> Account:
        """Account for the entities and statements of a memorizing task."""
        counter = LossCounter(task, _WHAT)
        counter.add_losses(loss for loss in self._statements.left_out if loss.task == task)
        statements = self._statements.for_task(task)

        def reason(statement: Statement) -> tuple[str, bool]:
            if not self._has_candidate(task, statement):
                return _NO_CANDIDATE, False
            return (_REPEATED if statement.fact_id in self._made else _IN_TEST), False

        return self._account(counter, statements, reason)

    def rule(self, rule: str) -> Account:
        """Account for the statements that may be the first premise of a rule."""
        maker, paper = self._maker, self._options.compat == "paper"
        drawn = {statement.fact_id for statement in maker.test_statements(rule)}

        def reason(statement: Statement) -> tuple[str, bool]:
            if maker.target(rule, statement) is None:
                return "no conclusion is a candidate", False
            if not maker.has_pattern(rule, statement):
                return "the second premise cannot be written, or states the conclusion", False
            if statement.split == "test" and statement.fact_id not in drawn:
                return "not among the premises that are drawn (options.premises)", True
            if paper or not (self._options.templates and self._options.conjunctions):
                return "the study combines no premises of this split", True
            return _IN_TEST, False

        return self._account(LossCounter(rule, _WHAT), self._statements.for_task(RULES[rule]), reason)

    def choice(self, task: str) -> Account:
        """Account for the test statements of a memorizing task that may be asked with choices."""

        def reason(statement: Statement) -> tuple[str, bool]:
            if not self._has_candidate(task, statement):
                return _NO_CANDIDATE, False
            if task in ("TP", "SCO") and len(statements) > LIMIT:
                return f"not among the {LIMIT} statements that are drawn", True
            return _REPEATED, False

        statements = self._statements.for_task(task, "test")
        return self._account(LossCounter(f"{task}-choice", _WHAT), statements, reason)

    def _has_candidate(self, task: str, statement: Statement) -> bool:
        return nearest_candidate(statement.golds, self._candidates[task]) is not None

    def _account(
        self,
        counter: LossCounter,
        statements: Iterable[Statement],
        reason: Callable[[Statement], tuple[str, bool]],
    ) -> Account:
        distinct = {statement.fact_id: statement for statement in statements}
        total, asked = len(counter) + len(distinct), self._asked[counter.task]
        for fact_id, statement in distinct.items():
            if fact_id not in asked:
                text, is_intended = reason(statement)
                counter.add(text, None, f"{statement.subject} – {statement.golds[0]}", intended=is_intended)
        return counter.account(total, len(asked & distinct.keys()))
