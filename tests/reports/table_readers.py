"""Small independent readers of what tables are written as: LaTeX, Markdown and HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

LETTERS = {
    r"\textbackslash{}": "\\",
    r"\{": "{",
    r"\}": "}",
    r"\$": "$",
    r"\&": "&",
    r"\#": "#",
    r"\%": "%",
    r"\_\allowbreak{}": "_",
    r"\textasciicircum{}": "^",
    r"\textasciitilde{}": "~",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\char34{}": '"',
    r"\textasciigrave{}": "`",
    "'{}": "'",
    "{[}": "[",
    "{*}": "*",
    "{}-": "-",
    "{},": ",",
    r"\allowbreak{}": "",
    "$-$": "-",
    "--": "–",
    r"\ldots{}": "…",
    r"$\times$": "×",
    r"$\pm$": "±",
    r"$\le$": "≤",
    r"$\ge$": "≥",
    r"$\to$": "→",
    "`{}": "‘",
}


def balanced(text: str) -> bool:
    """Whether every brace that is not escaped is closed, in order."""
    depth = 0
    for brace in re.findall(r"(?<!\\)(?:\\\\)*([{}])", text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def environments(text: str) -> list[str]:
    """The environments in order; fails where one is closed that is not open."""
    open_, seen = [], []
    for what, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", text):
        if what == "begin":
            open_.append(name)
            seen.append(name)
        else:
            assert open_.pop() == name
    assert not open_
    return seen


def read(text: str) -> str:
    """A cell's text as it is printed."""
    found, place = [], 0
    names = sorted(LETTERS, key=len, reverse=True)
    while place < len(text):
        name = next((name for name in names if text.startswith(name, place)), None)
        assert name is not None or text[place] not in "\\{}$&#^_~%", f"{text[place:][:30]!r} is not escaped"
        found.append(LETTERS[name] if name else text[place])
        place += len(name) if name else 1
    return "".join(found)


class LatexTable:
    """The rows of a tabular or a longtable: plain texts, which cells are bold, the caption and how many columns."""

    def __init__(self, text: str) -> None:
        self.comments = [line for line in text.splitlines() if line.startswith("%")]
        body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
        assert balanced(body)
        self.environments = environments(body)
        assert "\t" not in body and not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", body)
        caption = body[body.index("\\caption{") + 9 :]
        depth, end = 1, 0
        for end, letter in enumerate(caption):
            escaped = end > 0 and caption[end - 1] == "\\"
            depth += 0 if escaped else {"{": 1, "}": -1}.get(letter, 0)
            if not depth:
                break
        self.caption = read(caption[:end])
        columns = re.search(r"\\begin\{(?:tabular|longtable)\}\{(.*)\}$", body, re.M).group(1)
        columns = re.sub(r"@\{[^}]*\}", "", columns)
        self.width = len(re.sub(r"p\{[^}]*\}", "p", columns))
        rows = body.partition("\\midrule")[2].partition("\\midrule\n\\endhead")
        rows = (rows[2] if rows[1] else body.partition("\\midrule")[2]).partition("\\end{")[0]
        rows = re.sub(r"\\(bottomrule|endfoot|midrule)\n?", "", rows)
        self.rows, self.bold = [], []
        for line in rows.strip().splitlines():
            assert line.endswith(r" \\"), line
            cells = re.split(r"(?<!\\) ?& ?", line[:-3].rstrip(" "))
            assert len(cells) == self.width, (self.width, cells)
            self.bold.append([cell.startswith("\\textbf{") for cell in cells])
            self.rows.append([read(self._plain(cell)) for cell in cells])

    @staticmethod
    def _plain(cell: str) -> str:
        found = re.fullmatch(r"\\textbf\{(.*)\}|\{\\scriptsize (.*)\}", cell)
        return next(part for part in found.groups() if part is not None) if found else cell


def markdown_rows(text: str) -> list[list[str]]:
    """Cells of a table as a reader sees them; a bar that is escaped does not end a cell."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    assert len({len(row) for row in rows}) == 1
    assert all(re.fullmatch(r"-+:?", cell) for cell in rows[1])
    return [[_from_markdown(cell.strip()) for cell in row] for row in [rows[0], *rows[2:]]]


def _from_markdown(cell: str) -> str:
    # Emphasis goes first: what is escaped is text.
    cell = re.sub(r"^\*\*(.*?)\*\*", r"\1", cell)
    cell = re.sub(r"\\([\\`*_\[\]|~$])", r"\1", cell)
    return cell.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


class HtmlTable(HTMLParser):
    """The cells of an HTML table with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[tuple[str, dict[str, str]]]] = []
        self.tags: list[str] = []
        self.caption = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append(("", dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "caption" in self.open:
            self.caption += data
        elif self.open and ("td" in self.open or "th" in self.open):
            text, attributes = self.rows[-1][-1]
            self.rows[-1][-1] = (text + data, attributes)
