"""What accounts of losses must satisfy, for tests of every suite."""

from __future__ import annotations

from merkhet.questions.losses import Account, read_losses
from merkhet.questions.question_files import QuestionSet


def accounts_of(made: QuestionSet) -> dict[str, Account]:
    """Return the accounts of a question set that was made without a limit, by task, after checking that they add up."""
    accounts = {account.task: account for account in read_losses(made.about)}
    for account in accounts.values():
        assert account.total == account.askable + sum(loss.count for loss in account.losses), account
        assert all(loss.count > 0 and loss.reason and loss.task == account.task for loss in account.losses), account
        assert all(example and not example.startswith("f_") for loss in account.losses for example in loss.examples)
    return accounts


def asked_facts(made: QuestionSet, task: str) -> set[str]:
    """Return the facts that the questions of a task ask about, without the premises of a conclusion."""
    facts: set[str] = set()
    for row in made.questions.to_pylist():
        if row["task"] == task:
            whole = task == "distinction" or row["rule"] in (None, "comparison")
            facts.update(row["facts"] if whole else row["facts"][:1])
    return facts


def reasons(account: Account) -> dict[str, int]:
    """Return the number of lost items by reason."""
    counts: dict[str, int] = {}
    for loss in account.losses:
        counts[loss.reason] = counts.get(loss.reason, 0) + loss.count
    return counts
