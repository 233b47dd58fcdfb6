"""Requests of a page that a test holds back, and lets go in an order of its own."""

from __future__ import annotations

import re
import time
from typing import Any
from urllib.parse import parse_qs

from playwright.sync_api import Page, Request, Route, expect

DEADLINE = 60.0
"""Seconds after which a test gives up on what should come at once."""


class HeldRequests:
    """Holds the requests of some views, such as ``questions`` or ``play``, until the test lets each go.

    Those made before this object are not held.
    """

    def __init__(self, page: Page, *views: str, method: str = "GET") -> None:
        self.page, self.method = page, method
        self.routes: list[Route] = []
        self.ended: list[Request] = []
        page.on("requestfinished", self._end)
        page.on("requestfailed", self._end)
        page.route(re.compile(rf"/api/(?:{'|'.join(views)})(?:\?|$)"), self._hold)

    def _hold(self, route: Route) -> None:
        if route.request.method == self.method:
            self.routes.append(route)
        else:
            route.continue_()

    def _end(self, request: Request) -> None:
        self.ended.append(request)

    def wait(self, count: int, *parts: str) -> list[Route]:
        """Wait until so many requests are held whose address or content has these parts; return them in order."""
        return self._until(lambda: found if len(found := self._matching(*parts)) >= count else None)

    def _matching(self, *parts: str) -> list[Route]:
        return [route for route in self.routes if all(part in _sent(route.request) for part in parts)]

    def release(self, *routes: Route) -> None:
        """Let requests go, and wait until the page has had the response to each, or has given it up."""
        for route in routes:
            route.continue_()
            self._until(lambda: route.request in self.ended or None)  # noqa: B023
            self.page.evaluate("() => new Promise((done) => setTimeout(done))")

    def _until(self, find: Any) -> Any:
        """Poll by round trips to the browser, in which events are handled."""
        until = time.monotonic() + DEADLINE
        while (found := find()) is None:
            assert time.monotonic() < until, [_sent(route.request) for route in self.routes]
            self.page.evaluate("1")
        return found


def _sent(request: Request) -> str:
    return f"{request.url} {request.post_data or ''}"


def settle(page: Page) -> None:
    """Wait until the page has drawn all that its address says."""
    expect(page.locator("main h1, main form")).not_to_have_count(0)
    expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")


def chosen(page: Page) -> dict[str, list[str]]:
    """What the address says."""
    return parse_qs(page.url.partition("#")[2].partition("?")[2], keep_blank_values=True)
