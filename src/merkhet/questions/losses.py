"""Accounts of the material that questions are made of: how much of it gave no question, and why."""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from merkhet.core.text import join_some

_REASONS_OF_ONE_TASK = 3
"""Maximum number of reasons in a summary of one task; a summary of several tasks has one reason for each."""
_EXAMPLES = 2


@dataclass(frozen=True)
class Loss:
    """Facts, or other items, of one relation that gave no question for one reason."""

    task: str
    what: str
    """Noun of the items in the plural: ``facts``, ``usages``, ``statements``."""
    reason: str
    relation: str
    """Relation, hierarchy, comparison or word class of the items; empty if they have none."""
    count: int
    examples: tuple[str, ...] = ()
    """The first items by name, at most two."""
    intended: bool = False
    """Whether the study asked for it, such as by a limit or a sample."""


@dataclass(frozen=True)
class Account:
    """Account of one task: ``total`` items are ``askable`` or lost.

    .. math:: \\mathit{total} = \\mathit{askable} + \\sum_{\\mathit{loss}} \\mathit{count}
    """

    task: str
    what: str
    total: int
    """Number of items that the task has templates for."""
    askable: int
    """Number of items with at least one question, before questions are drawn up to a limit."""
    losses: tuple[Loss, ...] = ()


class LossCounter:
    """Counter of the items of one task that give no question, by reason and relation."""

    def __init__(self, task: str, what: str) -> None:
        self.task, self.what = task, what
        self._counts: Counter[tuple[str, str, bool]] = Counter()
        self._examples: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
        self._others: list[Loss] = []

    def add(self, reason: str, relation: str | None, example: str, *, intended: bool = False) -> None:
        """Count an item that gives no question."""
        key = reason, relation or "", intended
        self._counts[key] += 1
        examples = self._examples[key]
        # The least examples are kept, so that the order of items has no effect.
        if example not in examples and (len(examples) < _EXAMPLES or example < examples[-1]):
            insort(examples, example)
            del examples[_EXAMPLES:]

    def add_many(self, reason: str, count: int, *, intended: bool = False) -> None:
        """Count items without examples."""
        if count:
            self._counts[reason, "", intended] += count

    def add_losses(self, losses: Iterable[Loss]) -> None:
        """Add losses that were counted elsewhere."""
        self._others += losses

    def __len__(self) -> int:
        return self._counts.total() + sum(loss.count for loss in self._others)

    def losses(self) -> tuple[Loss, ...]:
        """Return the losses, the most frequent first."""
        losses = [
            Loss(self.task, self.what, *key[:2], count, tuple(self._examples[key]), key[2])
            for key, count in self._counts.items()
        ]
        return tuple(sort_losses([*losses, *self._others]))

    def account(self, total: int, askable: int) -> Account:
        """Return the account of the task."""
        return Account(self.task, self.what, total, askable, self.losses())


def sort_losses(losses: Iterable[Loss]) -> list[Loss]:
    """Sort losses: unintended ones first, and more frequent ones first."""
    return sorted(losses, key=lambda loss: (loss.intended, -loss.count, loss.reason, loss.relation))


def losses_for_card(accounts: Sequence[Account]) -> dict[str, Any]:
    """Return the entries ``accounts`` and ``losses`` of a data card; accounts without items are left out."""
    filled = [account for account in accounts if account.total]
    return {
        "accounts": [
            {"task": account.task, "what": account.what, "total": account.total, "askable": account.askable}
            for account in filled
        ],
        "losses": [{**asdict(loss), "examples": list(loss.examples)} for account in filled for loss in account.losses],
    }


def read_losses(card: Mapping[str, Any]) -> list[Account]:
    """Return the accounts in the entries of a data card; entries that are malformed or missing give none."""
    by_task: dict[tuple[str, str], list[Loss]] = defaultdict(list)
    try:
        for entry in card.get("losses") or ():
            loss = Loss(**{**entry, "examples": tuple(entry["examples"])})
            by_task[loss.task, loss.what].append(loss)
        return [
            Account(**entry, losses=tuple(by_task[entry["task"], entry["what"]]))
            for entry in card.get("accounts") or ()
        ]
    except (TypeError, KeyError):
        return []


def by_reason(losses: Iterable[Loss]) -> list[Loss]:
    """Merge the losses of all relations that have the same task and reason; ``relation`` names the relations."""
    merged: dict[tuple[str, str, str, bool], list[Loss]] = defaultdict(list)
    for loss in losses:
        merged[loss.task, loss.what, loss.reason, loss.intended].append(loss)
    return sort_losses(
        Loss(
            task,
            what,
            reason,
            join_some([loss.relation for loss in sort_losses(parts) if loss.relation], 3),
            sum(loss.count for loss in parts),
            sort_losses(parts)[0].examples,
            intended,
        )
        for (task, what, reason, intended), parts in merged.items()
    )


def summarize_losses(card: Mapping[str, Any], details: str = "") -> str | None:
    """Summarize the unintended losses of all tasks in one line; None if there are none.

    Args:
        details: File with the complete list, if there is one.
    """
    lost = {}
    for account in read_losses(card):
        losses = [loss for loss in by_reason(account.losses) if not loss.intended]
        if losses:
            lost[account.task] = account, losses
    shown = 1 if len(lost) > 1 else _REASONS_OF_ONE_TASK
    parts = []
    for task, (account, losses) in lost.items():
        reasons = [f"{loss.count:,}: {loss.reason}" for loss in losses[:shown]]
        reasons += ["…"] if len(losses) > shown else []
        count = sum(loss.count for loss in losses)
        parts.append(f"{count:,} of {account.total:,} {account.what} in {task} ({'; '.join(reasons)})")
    if not parts:
        return None
    return f"No question from {', '.join(parts)}" + (f"; see {details}" if details else "")
