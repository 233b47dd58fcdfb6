"""Loops over the cases of one property that name every case that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def check_all(check: Callable[..., object], cases: Iterable[Any]) -> None:
    """Call ``check`` with every case and fail with all failing cases, each with its error.

    A tuple is passed as several arguments, anything else as one.
    """
    failures: list[str] = []
    first: BaseException | None = None
    count = 0
    for case in cases:
        count += 1
        try:
            check(*case) if isinstance(case, tuple) else check(case)
        except (Exception, pytest.fail.Exception) as error:
            failures.append(f"{case!r}: {type(error).__name__}: {error}")
            first = first or error
    assert count, "there are no cases"
    if failures:
        raise AssertionError(f"{len(failures)} of {count} cases fail:\n" + "\n".join(failures)) from first
