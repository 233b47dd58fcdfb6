"""Pictures of reports, figures and the explorer for the docs, from runs made for the purpose.

Run it by ``make pictures``: it needs Chromium and takes some minutes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RUNS = ROOT / "runs" / "pictures"
STUDIES = {
    "quickstart": ["quickstart"],
    "kmir": [
        *("kmir", "--model", "minilm-mlm", "--model", "frequency", "--model", "random", "--limit", "40"),
        *("--set", "probes=[rank, write]"),
    ],
    "forms": [
        *("quickstart", "--model", "smollm2-135m", "--limit", "60"),
        *("--set", "probes=[rank, {probe: choose, options: {orders: 4, mixed_letters: true}}, answer]"),
    ],
    "premises": [
        *("ontoprobe", "--task", "rdfs9", "--model", "minilm-mlm", "--limit", "40", "--set", "options.pairs=2"),
        *("--set", "learning.settings.epochs=2"),
    ],
}
FIGURES = {
    "scores": ("quickstart", "scores"),
    "tasks-by-domain": ("quickstart", "tasks-by-domain-smollm2-135m"),
    "ranks": ("quickstart", "ranks-completion"),
    "premises": ("premises", "premises-1"),
}


def merkhet(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "merkhet", *map(str, arguments)], check=True, cwd=ROOT)


@contextmanager
def explorer(run: Path) -> Iterator[str]:
    """Serve a run and yield its address."""
    command = [sys.executable, "-u", "-m", "merkhet", "explore", str(run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        try:
            assert server.stdout is not None
            yield next(line.split()[0] for line in server.stdout if line.startswith("http"))
        finally:
            server.terminate()


def screenshot(page: Page, name: str, *, height: int = 760, whole: bool = False) -> None:
    page.set_viewport_size({"width": 1200, "height": height})
    page.wait_for_load_state("networkidle")
    page.screenshot(path=DOCS / name, full_page=whole)
    print(DOCS.name, name)


def section_screenshot(page: Page, heading: str, name: str, height: int) -> None:
    """Picture the top of a section."""
    section = page.locator(f"section:has(h2:text('{heading}'))")
    section.scroll_into_view_if_needed()
    box = section.bounding_box()
    assert box is not None
    top = box["y"] + page.evaluate("window.scrollY")
    area = {"x": box["x"], "y": top, "width": box["width"], "height": min(height, box["height"])}
    page.screenshot(path=DOCS / name, full_page=True, clip=area)
    print(DOCS.name, name)


def report_pictures(browser: Browser) -> None:
    page = browser.new_page()
    page.goto((RUNS / "quickstart" / "report.html").as_uri())
    screenshot(page, "report.png", height=1560)
    section_screenshot(page, "Can the probes be trusted?", "report-calibration.png", 1061)
    page.goto((RUNS / "forms" / "report.html").as_uri())
    section_screenshot(page, "Answer formats", "chat-forms.png", 880)
    page.goto((RUNS / "comparison.html").as_uri())
    screenshot(page, "comparing.png", height=1542)
    page.close()


def explorer_pictures(browser: Browser) -> None:
    page = browser.new_page()

    def visit(address: str, view: str, **params: Any) -> None:
        page.goto("about:blank")
        page.goto(f"{address}#/{view}?{urlencode(params, doseq=True)}")

    with explorer(RUNS / "quickstart") as address:
        models = ["smollm2-135m", "minilm-mlm"]
        visit(address, "questions", search="capital", model=models, result="wrong", sort="hardest")
        page.locator("table.questions a.asked").first.wait_for(timeout=120_000)
        screenshot(page, "explorer.png")
        visit(address, "compare")
        page.locator("table.questions a.asked").first.wait_for(timeout=120_000)
        screenshot(page, "explorer-compare.png")
        candidates = "lev, euro, leu, dinar, forint, dollar"
        visit(address, "play", text="The currency of Bulgaria is the ___.", candidates=candidates, model=models)
        page.locator("text=/ s$/").nth(1).wait_for(timeout=120_000)
        screenshot(page, "explorer-play.png")
    with explorer(RUNS / "kmir") as address:
        visit(address, "questions", task="reasoning", search="chambers")
        page.locator("table.questions a.asked").first.click()
        page.locator("text=The fact behind it").wait_for()
        screenshot(page, "explorer-question.png", whole=True)
    page.close()


def main() -> None:
    for name, arguments in STUDIES.items():
        merkhet("run", *arguments, "--out", RUNS / name)
    merkhet("compare", RUNS / "quickstart", "--out", RUNS / "comparison.html")
    for name, (run, figure) in FIGURES.items():
        merkhet("figures", RUNS / run, "--figure", figure, "--as", "png", "--out", RUNS / "figures")
        shutil.copy(RUNS / "figures" / f"{figure}.png", DOCS / "figures" / f"{name}.png")
    chromium = next(path for name in ("chromium", "chromium-browser") if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        report_pictures(browser)
        explorer_pictures(browser)
        browser.close()


if __name__ == "__main__":
    main()
