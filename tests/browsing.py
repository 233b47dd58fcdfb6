"""A real browser, driven as a reader would use it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

PATIENCE = 60_000
"""Milliseconds to wait for what should come at once: a page on a busy machine is slow, not wrong."""
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def open_browser() -> Iterator:
    """Chromium without a window, from wherever it is installed."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium here")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, timeout=PATIENCE, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched_page(browser) -> Iterator:
    """A page of its own. What goes wrong in it (errors, refused scripts, requests to anywhere but loopback) is gathered
    in ``page.problems``, and fails the test at its end unless the test has emptied the list."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    fresh = context.new_page()
    fresh.problems = []
    fresh.on("pageerror", lambda error: fresh.problems.append(f"error: {error}"))
    fresh.on("console", lambda said: fresh.problems.append(f"console: {said.text}") if said.type == "error" else None)
    fresh.on("request", lambda request: fresh.problems.append(request.url) if _is_away(request.url) else None)
    try:
        yield fresh
        assert fresh.problems == []
    finally:
        context.close()


def _is_away(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:", "about:", "http://127.0.0.1:"))
