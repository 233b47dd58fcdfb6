"""Tables and figures as files, from the command line: pictures with something on them, pages that need nothing else."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import struct
import sys
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from report_runs import HOSTILE, make_run
from svg_readers import ALLOWED
from table_readers import HtmlTable, LatexTable, markdown_rows

from merkhet.core.errors import InputError
from merkhet.reports._svg_marks import Bar
from merkhet.reports.figure_files import FORMATS, can_convert, report_charts, save_charts

needs_converter = pytest.mark.skipif(not can_convert(), reason="vl-convert is not installed")
SVG = "{http://www.w3.org/2000/svg}"


def pixels(path: Path) -> tuple[int, int, int, set[bytes]]:
    """Width, height, dots a metre and the colours of a PNG of 8 bits a channel, read by the book (RFC 2083)."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    place, data, parts = 8, b"", {}
    while place < len(content):
        size, kind = struct.unpack(">I4s", content[place : place + 8])
        body = content[place + 8 : place + 8 + size]
        data += body if kind == b"IDAT" else b""
        parts[kind] = body
        place += 12 + size
    width, height, depth, colours = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    channels = {2: 3, 6: 4}[colours]
    assert depth == 8
    raw = zlib.decompress(data)
    line = 1 + width * channels
    before, seen = bytes(line - 1), set()
    for row in range(height):
        filtered = raw[row * line : (row + 1) * line]
        before = _unfiltered(filtered[0], filtered[1:], before, channels)
        seen.update(before[place : place + 3] for place in range(0, len(before), channels * 3))
    return width, height, struct.unpack(">I", parts[b"pHYs"][:4])[0], seen


def _unfiltered(kind: int, line: bytes, before: bytes, step: int) -> bytes:
    if kind == 0:
        return line
    out = bytearray(line)
    for place in range(len(out)):
        left = out[place - step] if place >= step else 0
        above = before[place]
        corner = before[place - step] if place >= step else 0
        guess = left + above - corner
        paeth = min((left, above, corner), key=lambda one: abs(guess - one))
        out[place] = (out[place] + (0, left, above, (left + above) // 2, paeth)[kind]) & 255
    return bytes(out)


@needs_converter
def test_a_png_has_300_dots_an_inch_on_white_and_all_the_colours(tmp_path):
    data = make_run()
    chart = next(one for one in report_charts(data) if one.name == "scores-completion-r1")
    png, svg = save_charts([chart], tmp_path, ["png", "svg"])[:2]
    width, height, dots, colours = pixels(png)
    root = ElementTree.parse(svg).getroot()
    size = [float(root.get(name)) for name in ("width", "height")]
    assert [width, height] == pytest.approx([300 / 96 * side for side in size], abs=2)
    assert dots == round(300 / 0.0254)
    wanted = {bytes.fromhex(colour) for colour in ("ffffff", "0072b2", "e69f00", "9a9a9a", "d55e00")}
    assert wanted <= colours


def test_an_svg_stands_alone_and_has_every_bar(tmp_path):
    data = make_run(models=(HOSTILE, "m", "frequency"))
    chart = next(one for one in report_charts(data) if one.name == "scores")
    (path,) = save_charts([chart], tmp_path, ["svg"])
    root = ElementTree.parse(path).getroot()
    assert root.tag == f"{SVG}svg" and root.find(f"{SVG}title").text == chart.caption
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= ALLOWED and root.find(
        f"{SVG}desc"
    ).text == chart.description
    tips = [one.text for one in root.iter(f"{SVG}title")][1:]
    assert sum("n = 100" in (tip or "") for tip in tips) == 6, "three models by two tasks"
    assert not re.search(r"\bon\w+=|href=|<script", path.read_text(encoding="utf-8"))


@pytest.mark.browser
def test_a_page_shows_its_figure_without_a_script_and_fetches_nothing(tmp_path, page):
    closing = "</script><script>document.title='taken over'</script>"
    data = make_run(models=(closing, "中文", "frequency"))
    chart = next(one for one in report_charts(data) if one.name == "scores")
    (path,) = save_charts([chart], tmp_path, ["html"])
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    bars = page.locator("#figure svg rect:has(title)")
    assert bars.count() == 6 and page.locator("script").count() == 0
    assert "taken over" not in page.title() and asked == [path.as_uri()]
    assert chart.caption in page.locator("figcaption").inner_text()
    assert page.locator("#figure svg").get_attribute("aria-label") == chart.description
    assert closing in bars.first.locator("title").text_content()
    box = bars.nth(1).bounding_box()
    found = page.evaluate(
        "([x, y]) => document.elementFromPoint(x, y).querySelector('title').textContent",
        [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2],
    )
    assert found == bars.nth(1).locator("title").text_content(), "an interval lets the pointer through to its bar"
    assert page.evaluate("getComputedStyle(document.body).maxWidth") == "960px", "the policy allows the page's style"
    assert not page.problems


def test_a_page_is_small_and_its_policy_allows_its_own_style_only(tmp_path):
    chart = report_charts(make_run())[0]
    (path,) = save_charts([chart], tmp_path, ["html"])
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < 20_000 and "<script" not in text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy


@needs_converter
def test_every_chart_of_a_run_can_be_a_pdf_and_is_included_with_its_caption(tmp_path):
    charts = report_charts(make_run())[:2]
    written = save_charts(charts, tmp_path / "new" / "folder", ["pdf"])
    assert [path.name for path in written] == [*(f"{chart.name}.pdf" for chart in charts), "figures.tex"]
    box = re.search(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", written[1].read_bytes())
    assert float(box.group(1)) == pytest.approx(270, abs=1), "360 pixels are 270 points"
    tex = written[-1].read_text(encoding="utf-8")
    assert tex.count("\\includegraphics") == 2 and "95\\% bootstrap" in tex and "\\label{fig:scores}" in tex


@pytest.mark.parametrize("form", ["png", "pdf"])
def test_without_the_converter_one_is_told_what_to_install(monkeypatch, tmp_path, form):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    charts = report_charts(make_run())
    with pytest.raises(InputError, match=re.escape("pip install 'merkhet[report]'")) as refused:
        save_charts(charts, tmp_path / "f", ["svg", form])
    assert "\n" not in str(refused.value) and not (tmp_path / "f").exists()
    assert len(save_charts(charts[:2], tmp_path / "f", ["svg", "html"])) == 4


def test_without_the_converter_figures_are_written_as_svg_and_html(monkeypatch, tmp_path, run, capsys):
    from merkhet.cli.app import app

    monkeypatch.setitem(sys.modules, "vl_convert", None)
    app(["figures", str(run), "--out", str(tmp_path / "f")], standalone_mode=False)
    assert {path.suffix for path in (tmp_path / "f").iterdir()} == {".svg", ".html"}
    assert "PNG and PDF need vl-convert: pip install 'merkhet[report]'" in capsys.readouterr().out.replace("\n", " ")


def test_a_chart_is_drawn_once_whatever_the_number_of_formats(monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr(Bar, "svg", lambda mark: drawn.append(mark) or "")
    (chart,) = [chart for chart in report_charts(make_run()) if chart.name == "scores"]
    save_charts([chart], tmp_path, [form for form in FORMATS if can_convert() or form in ("svg", "html")])
    assert len(drawn) == sum(isinstance(mark, Bar) for mark in chart.drawing.marks) > 6


def test_no_chart_names_anything_to_be_fetched():
    for chart in report_charts(make_run()):
        svg = chart.drawing.document(chart.caption, chart.description).replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in svg and "href" not in svg and "url(" not in svg


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small real run."""
    from merkhet.api import run as run_suite

    folder = tmp_path_factory.mktemp("runs") / "run"
    run_suite("quickstart", models=["frequency", "random"], limit=12, out=folder)
    return folder


def test_all_tables_are_written_in_all_forms(merkhet, run, tmp_path):
    listed = json.loads(merkhet("tables", run, "--list", "--json", check=0).stdout)
    done = merkhet("tables", run, "--out", "tables", check=0)
    names = [one["name"] for one in listed]
    assert {"scores", "all-scores", "by-domain-completion-r1"} <= set(names)
    written = sorted(path.name for path in (tmp_path / "tables").iterdir())
    assert written == sorted(f"{name}.{form}" for name in names for form in ("csv", "md", "tex", "html", "txt"))
    assert f"{len(names)} tables, {5 * len(names)} files" in done.stdout
    with open(tmp_path / "tables" / "all-scores.csv", encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    scores = pq.read_table(run / "scores.parquet").to_pylist()
    overall = [row for row in scores if row["domain"] is None and row["relation"] is None]
    assert [float(row["value"]) for row in rows] == [row["value"] for row in overall]
    assert [int(row["n"]) for row in rows] == [row["n"] for row in overall]
    for name in names:
        table = {
            form: (tmp_path / "tables" / f"{name}.{form}").read_text(encoding="utf-8") for form in ("tex", "md", "html")
        }
        size = len(markdown_rows(table["md"]))
        assert len(LatexTable(table["tex"]).rows) + 1 == len(HtmlTable(table["html"]).rows) == size


def test_only_the_table_is_printed(merkhet, run):
    printed = merkhet("tables", run, "--as", "csv", check=0)
    assert [row[0] for row in csv.reader(io.StringIO(printed.stdout))] == ["model", "frequency", "random"]
    assert printed.stderr == ""
    latex = merkhet("tables", run, "--as", "latex", "--table", "by-domain-completion-r1", check=0).stdout
    assert LatexTable(latex).caption.startswith("completion R@1 by domain.")
    assert "chance" in merkhet("tables", run, check=0).stdout
    content = json.loads(merkhet("tables", run, "--json", check=0).stdout)
    assert content[0]["rows"][0][0]["text"] == "frequency" and content[0]["rows"][0][1]["n"] == 12


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tables", "--table", "score"), "scores"),
        (("tables", "--as", "latx"), "latex"),
        (("tables", "--as", "csv", "--table", "scores", "--table", "all-scores"), "--out"),
        (("tables", "--as", "csv", "--as", "html"), "--out"),
        (("figures",), "--out"),
        (("figures", "--out", "f", "--as", "gif"), "png"),
        (("figures", "--out", "f", "--figure", "score"), "scores"),
        (("figures", "--out", "file"), "not a folder"),
        (("tables", "--out", "file"), "not a folder"),
    ],
)
def test_what_cannot_be_done_is_told(run, tmp_path, monkeypatch, capsys, arguments, said):
    from merkhet.cli.app import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError) as refused:
        app([arguments[0], str(run), *arguments[1:]], standalone_mode=False)
    assert said in str(refused.value) and "\n" not in str(refused.value) and capsys.readouterr().out == ""
    assert (tmp_path / "file").read_text() == "mine" and not (tmp_path / "f").exists()


def test_figures_are_listed_and_written(merkhet, run, tmp_path):
    listed = json.loads(merkhet("figures", run, "--list", "--json", check=0).stdout)
    names = [one["name"] for one in listed]
    assert names[0] == "scores" and "ranks-checking" in names
    merkhet(
        "figures", run, "--out", "figures", "--as", "svg", "--figure", "scores", "--figure", "ranks-checking", check=0
    )
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["ranks-checking.svg", "scores.svg"]
    shutil.copytree(run, tmp_path / "other")
    two = merkhet("tables", run, "other", "--as", "csv", check=0).stdout
    models = [row[0] for row in csv.reader(io.StringIO(two))][1:]
    assert models == ["frequency (run)", "random (run)", "frequency (other)", "random (other)"]
