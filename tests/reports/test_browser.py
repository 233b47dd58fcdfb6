"""The page in a real browser: its one script runs under its policy, and sorts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from report_runs import make_run

from gnomon.reports import render_html

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), "")
pytestmark = pytest.mark.skipif(not BROWSER, reason="no Chromium here")


def opened(html: str, folder: Path) -> str:
    """The document as the browser has it after loading."""
    path = folder / "report.html"
    path.write_text(html, encoding="utf-8")
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-sync",
        "--disable-background-networking",
        "--disable-component-update",
        f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=2000",
        "--dump-dom",
        path.as_uri(),
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=50).stdout


def test_the_page_s_own_script_may_run_and_no_other(tmp_path):
    html = render_html(make_run()).replace("</body>", "<script>document.title = 'taken over'</script></body>")
    page = opened(html, tmp_path)
    assert '<button type="button">' in page
    assert "<title>What SmolLM2 knows</title>" in page


def test_a_click_sorts_and_says_so(tmp_path):
    click = """<script>
      const head = document.querySelector('#by-0 th:nth-child(4) button');
      head.click(); head.click();
    </script></body>"""
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", render_html(make_run()))
    page = opened(html.replace("</body>", click), tmp_path)
    table = page.partition('<section id="by-0">')[2].partition("</table>")[0]
    assert table.count("aria-sort=") == 1 and 'aria-sort="ascending"' in table
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", table)
    values = [float(re.findall(r'data-sort="([^"]*)"', row)[2]) for row in rows]
    assert len(values) == 5 and values == sorted(values) and values[0] < values[-1]
