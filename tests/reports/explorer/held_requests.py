"""Requests of a page that a test holds back, and lets go in an order of its own."""

from __future__ import annotations

import re
import time
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

from playwright.sync_api import Page, Request, Route

DEADLINE = 60.0
"""Seconds after which a test gives up on what should come at once."""


NOTE_RESPONSES = """() => {
  if (window.readResponses) return;
  window.readResponses = [];
  const plain = window.fetch;
  window.fetch = async (...given) => {
    const response = await plain(...given);
    const read = response.json.bind(response);
    response.json = async () => {
      const content = await read();
      setTimeout(() => window.readResponses.push(response.url));
      return content;
    };
    return response;
  };
}"""
SETTLED = "() => document.querySelector('main').dataset.drawn === location.hash"
READ = "(url) => window.readResponses.filter((one) => one === url).length"


class HeldRequests:
    """Holds the requests of some views, such as ``questions`` or ``play``, until the test lets each go.

    Those made before this object, or while it is not holding, are not held.
    """

    def __init__(self, page: Page, *views: str, method: str = "GET") -> None:
        self.page, self.method, self.is_holding = page, method, True
        self.routes: list[Route] = []
        self.given_up: list[Request] = []
        page.on("requestfailed", self._give_up)
        page.evaluate(NOTE_RESPONSES)
        page.route(re.compile(rf"/api/(?:{'|'.join(views)})(?:\?|$)"), self._hold)

    def _hold(self, route: Route) -> None:
        if self.is_holding and route.request.method == self.method:
            self.routes.append(route)
        else:
            route.continue_()

    def _give_up(self, request: Request) -> None:
        self.given_up.append(request)

    def wait(self, count: int, *parts: str) -> list[Route]:
        """Wait until so many requests are held whose address or content has these parts; return them in order."""
        return self._until(lambda: found if len(found := self._matching(*parts)) >= count else None)

    def _matching(self, *parts: str) -> list[Route]:
        return [route for route in self.routes if all(part in _sent(route.request) for part in parts)]

    def release(self, *routes: Route) -> None:
        """Let requests go, and wait until the page has made what it will of each response, or has given it up."""
        for route in routes:
            url = route.request.url
            before = self.page.evaluate(READ, url)
            route.continue_()
            self._until(lambda: self._is_over(route.request, before) or None)  # noqa: B023

    def _is_over(self, request: Request, before: int) -> bool:
        return request in self.given_up or self.page.evaluate(READ, request.url) > before

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
    page.wait_for_function(SETTLED)


def chosen(page: Page) -> dict[str, list[str]]:
    """What the address says."""
    return parse_qs(page.url.partition("#")[2].partition("?")[2], keep_blank_values=True)


def stop_clock(page: Page) -> None:
    """Let no time pass in a page whose clock is installed, until the test says so."""
    page.clock.pause_at(datetime(2031, 1, 1))
