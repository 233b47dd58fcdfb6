"""Inputs made of valid ones: by hypothesis, which knows their structure, and byte by byte, which knows nothing."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from fuzz.oddities import ODD_BYTES, ODD_NUMBERS, ODD_TEXTS
from fuzz.targets import SEPARATOR, Grammar

_LARGEST = 2_000_000


def _nested_in_turn(depth: int, leaf: Any) -> Any:
    for level in range(depth):
        leaf = [leaf] if level % 2 else {"a": leaf}
    return leaf


odd_texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=12))
odd_numbers = st.one_of(st.sampled_from(ODD_NUMBERS), st.integers(), st.floats())
odd_leaves = st.one_of(odd_texts, odd_numbers, st.booleans(), st.none())
odd_values = st.one_of(
    odd_leaves,
    st.lists(odd_leaves, max_size=3),
    st.dictionaries(
        st.one_of(odd_texts, st.sampled_from(["id", "value", "type", "name", "text"])), odd_leaves, max_size=3
    ),
    st.builds(_nested_in_turn, st.sampled_from([3, 30, 110, 300]), odd_leaves),
)


def mutated(seeds: Sequence[bytes], words: Sequence[bytes], draw: random.Random) -> bytes:
    """One of the seeds with some bytes changed; the same for the same state of ``draw``."""
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 5, 9))):
        _change(data, seeds, words, draw)
    return bytes(data[:_LARGEST])


def _change(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], draw: random.Random) -> None:
    at = draw.randrange(len(data) + 1)
    upto = min(len(data), at + draw.choice((1, 1, 2, 4, 16, 64, 1000)))
    way = draw.randrange(12)
    if way == 0 and data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif way == 1:
        data[at:upto] = bytes(draw.randrange(256) for _ in range(draw.randrange(5)))
    elif way == 2:
        del data[at:upto]
    elif way == 3:
        data[at:at] = data[at:upto] * draw.choice((1, 2, 30))
    elif way == 4:
        data[at:at] = draw.choice(ODD_BYTES)
    elif way == 5 and words:
        data[at:upto] = draw.choice(words)
    elif way == 6:
        other = draw.choice(seeds)
        start = draw.randrange(len(other) + 1)
        data[at:upto] = other[start : start + draw.choice((4, 40, 4000))]
    elif way == 7:
        lines = bytes(data).split(b"\n")
        draw.shuffle(lines)
        data[:] = b"\n".join(lines)
    elif way == 8:
        lines = bytes(data).split(b"\n")
        lines[draw.randrange(len(lines))] = draw.choice((b"", draw.choice(lines), draw.choice(ODD_BYTES)))
        data[:] = b"\n".join(lines)
    elif way == 9:
        data[at:upto] = draw.choice(ODD_TEXTS).encode("utf-8", "surrogatepass")
    elif way == 10:
        data[:] = draw.choice(
            (
                lambda d: d.replace(b"\n", b"\r\n"),
                lambda d: b"\xef\xbb\xbf" + d,
                lambda d: d[:at],
                lambda d: d.replace(b"\n", b"\r"),
            )
        )(bytes(data))
    else:
        data[at:upto] = str(draw.choice(ODD_NUMBERS[:8])).encode()


@st.composite
def odd_trees(draw: Any, seeds: Sequence[Any]) -> Any:
    """A seed with a few of its parts replaced, left out, doubled, renamed or wrapped."""
    tree = _copied(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(tree))
        if not places:
            return draw(odd_values)
        holder, key = draw(st.sampled_from(places))
        way = draw(st.sampled_from(["value", "value", "value", "leave out", "rename", "wrap", "twice", "other"]))
        if way == "leave out":
            del holder[key]
        elif way == "rename" and isinstance(holder, dict):
            holder[draw(st.one_of(odd_texts, st.just(f"{key}s"), st.just(str(key).upper())))] = holder.pop(key)
        elif way == "wrap":
            holder[key] = draw(
                st.sampled_from([lambda one: [one], lambda one: {"value": one}, lambda one: [one, one], str])
            )(holder[key])
        elif way == "twice" and isinstance(holder, list):
            holder.append(holder[key])
        elif way == "other":
            other, name = draw(st.sampled_from(places))
            if name in (other if isinstance(other, dict) else range(len(other))):
                holder[key] = _copied(other[name])
        else:
            holder[key] = draw(odd_values)
    return tree


def _places(tree: Any) -> Any:
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        items = list(one.items()) if isinstance(one, dict) else list(enumerate(one)) if isinstance(one, list) else []
        for key, value in items:
            yield one, key
            waiting.append(value)


def _copied(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _copied(value) for key, value in tree.items()}
    return [_copied(value) for value in tree] if isinstance(tree, list) else tree


def _dumped(tree: Any, ascii_only: bool = True, fault: str = "") -> bytes:
    try:
        text = json.dumps(tree, ensure_ascii=ascii_only)
    except (RecursionError, ValueError):
        return b"[" * 2000
    if fault == "key":
        text = _KEY.sub(lambda match: f"{match[1]}0, {match[1]}", text, count=1)
    elif fault:
        text = _NUMBER.sub(f": {fault}", text, count=1)
    return text.encode("utf-8", "surrogatepass")


_KEY = re.compile(r'("(?:[^"\\]|\\.)*": )')
_NUMBER = re.compile(r": -?[0-9][0-9.eE+-]*")
_JSON_FAULTS = st.sampled_from(["", "", "", "", "key", "NaN", "-Infinity", "1e999", "9" * 400 + ".5"])
"""What JSON has not, and the json module reads: a key twice, NaN, infinite numbers."""


def json_documents(seeds: Sequence[bytes]) -> Any:
    """JSON documents."""
    return st.builds(_dumped, odd_trees([json.loads(seed) for seed in seeds]), st.booleans(), _JSON_FAULTS)


def json_lines(seeds: Sequence[bytes]) -> Any:
    """Rows of JSON, one a line."""
    rows = [[json.loads(line) for line in seed.splitlines() if line.strip()] for seed in seeds]
    ends = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b" \n", b"\x00\n"])
    return st.builds(
        lambda some, plain, end, fault: (
            end.join(_dumped(row, plain, fault) for row in some) + b"\n" if isinstance(some, list) else _dumped(some)
        ),
        odd_trees(rows),
        st.booleans(),
        ends,
        _JSON_FAULTS,
    )


def wikidata_lines(seeds: Sequence[bytes]) -> Any:
    """A dump: rows of JSON within brackets."""
    rows = [[json.loads(line.rstrip(b",")) for line in seed.splitlines() if line.startswith(b"{")] for seed in seeds]
    return st.builds(
        lambda some, plain, fault: (
            b"[\n"
            + b",\n".join(_dumped(row, plain, fault) for row in (some if isinstance(some, list) else [some]))
            + b"\n]\n"
        ),
        odd_trees(rows),
        st.booleans(),
        _JSON_FAULTS,
    )


def yaml_documents(seeds: Sequence[bytes]) -> Any:
    """YAML documents."""
    import yaml

    def dumped(tree: Any, flow: bool | None, fault: str) -> bytes:
        try:
            text = yaml.safe_dump(tree, allow_unicode=True, default_flow_style=flow, sort_keys=False)
        except (RecursionError, ValueError, yaml.YAMLError):
            return b"a: [" * 500
        lines = text.splitlines(keepends=True)
        if fault == "line":
            lines += lines[:1]
        elif fault == "merge":
            lines += ["zz: &zz {a: 1}\n", "yy: {<<: *zz, a: 2}\n"]
        elif fault == "flow":
            lines += ["zz: {a: 1, b: {c: 1, c: 2}}\n"]
        return "".join(lines).encode("utf-8", "surrogatepass")

    return st.builds(
        dumped,
        odd_trees([yaml.safe_load(seed) for seed in seeds]),
        st.sampled_from([None, False, True]),
        st.sampled_from(["", "", "", "", "line", "merge", "flow"]),
    )


def tables(delimiter: str = ",") -> Grammar:
    """Tables of cells."""

    def grammar(seeds: Sequence[bytes]) -> Any:
        rows = [list(csv.reader(io.StringIO(seed.decode()), delimiter=delimiter)) for seed in seeds]
        return st.builds(
            dumped,
            odd_trees(rows),
            st.sampled_from(["\n", "\r\n", "\r"]),
            st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONE]),
            st.sampled_from(["", "\ufeff"]),
        )

    def dumped(table: Any, end: str, quoting: Any, mark: str) -> bytes:
        text = io.StringIO()
        writer = csv.writer(
            text,
            delimiter=delimiter,
            lineterminator=end,
            quoting=quoting,
            escapechar="\\" if quoting == csv.QUOTE_NONE else None,
        )
        for row in table if isinstance(table, list) else [table]:
            try:
                writer.writerow([_cell(cell) for cell in row] if isinstance(row, list) else [_cell(row)])
            except csv.Error:  # Some rows cannot be written without quotes.
                text.write(end)
        return (mark + text.getvalue()).encode("utf-8", "surrogatepass")

    return grammar


def _cell(value: Any) -> str:
    try:
        return value if isinstance(value, str) else str(value)
    except (ValueError, RecursionError):
        return "9" * 5000


def lines_of(words: Sequence[str], between: str = " ") -> Grammar:
    """Lines whose words are exchanged for others of the format, and for odd ones."""

    def grammar(seeds: Sequence[bytes]) -> Any:
        rows = [[line.split(between) for line in seed.decode().split("\n")] for seed in seeds]
        one = st.one_of(st.sampled_from(list(words)), st.sampled_from(list(words)), odd_texts)
        return _lines(rows, one, between)

    return grammar


@st.composite
def _lines(draw: Any, seeds: Sequence[list[list[str]]], word: Any, between: str) -> bytes:
    rows = [list(row) for row in draw(st.sampled_from(seeds))]
    for _ in range(draw(st.integers(1, 4))):
        row = draw(st.integers(0, len(rows) - 1))
        at = draw(st.integers(0, len(rows[row])))
        way = draw(st.sampled_from(["put", "put", "add", "leave out", "line twice", "line out"]))
        if way == "put" and at < len(rows[row]):
            rows[row][at] = draw(word)
        elif way == "leave out" and at < len(rows[row]):
            del rows[row][at]
        elif way == "line twice":
            rows.insert(row, list(rows[row]))
        elif way == "line out" and len(rows) > 1:
            del rows[row]
        else:
            rows[row].insert(at, draw(word))
    end = draw(st.sampled_from(["\n", "\n", "\n", "\r\n"]))
    return end.join(between.join(row) for row in rows).encode("utf-8", "surrogatepass")


def texts_of(words: Sequence[str]) -> Grammar:
    """Texts of a few words, known or odd."""

    def grammar(seeds: Sequence[bytes]) -> Any:
        known = [*words, *(seed.decode() for seed in seeds)]
        one = st.one_of(st.sampled_from(known), st.sampled_from(known), odd_texts)
        return st.builds(
            lambda some, gap: gap.join(some).encode("utf-8", "surrogatepass"),
            st.lists(one, max_size=6),
            st.sampled_from(["", " ", "\n", ", "]),
        )

    return grammar


def parquet_tables(seeds: Sequence[bytes]) -> Any:
    """Parquet files whose columns are of other types, with odd values, or missing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    known = [pq.read_table(io.BytesIO(seed)) for seed in seeds]
    others = [
        *(pa.string(), pa.large_string(), pa.binary(), pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.null()),
        *(
            pa.timestamp("us", "UTC"),
            pa.decimal128(38, 9),
            pa.list_(pa.string()),
            pa.list_(pa.int64()),
            pa.dictionary(pa.int32(), pa.string()),
        ),
        *(
            pa.struct([("a", pa.string())]),
            pa.map_(pa.string(), pa.string()),
            pa.list_(pa.list_(pa.string())),
            pa.uint8(),
            pa.duration("s"),
        ),
    ]

    @st.composite
    def made(draw: Any) -> bytes:
        table = draw(st.sampled_from(known))
        for _ in range(draw(st.integers(1, 3))):
            names = table.column_names
            at = draw(st.integers(0, max(0, len(names) - 1)))
            way = draw(st.sampled_from(["type", "values", "values", "nulls", "leave out", "rename", "twice", "none"]))
            if not names:
                break
            if way == "leave out":
                table = table.remove_column(at)
            elif way == "rename":
                table = table.rename_columns(
                    [draw(odd_texts.filter(_encodes)) if n == at else name for n, name in enumerate(names)]
                )
            elif way == "twice":
                table = table.append_column(names[at], table.column(at))
            elif way == "none":
                table = table.slice(0, 0)
            else:
                kind = draw(st.sampled_from(others)) if way == "type" else table.schema.field(at).type
                values = [
                    draw(odd_values) if way == "values" and draw(st.booleans()) else None if way == "nulls" else one
                    for one in table.column(at).to_pylist()
                ]
                table = table.set_column(at, names[at], _column(values, kind))
        target = io.BytesIO()
        try:
            pq.write_table(table, target, compression=draw(st.sampled_from(["zstd", "none", "snappy"])))
        except pa.ArrowException:  # Not every type can be written.
            return draw(st.sampled_from(list(seeds)))
        return target.getvalue()

    def _column(values: list[Any], kind: Any) -> Any:
        try:
            return pa.array(values, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError):
            pass
        try:
            return pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError):
            return pa.nulls(len(values), kind)

    return made()


def _encodes(text: str) -> bool:
    try:
        return bool(text.encode()) and "\x00" not in text
    except UnicodeEncodeError:
        return False


def folder_of(*grammars: Grammar | None) -> Grammar:
    """Inputs that are several files: one or more of them odd, the others as in a seed."""

    def grammar(seeds: Sequence[bytes]) -> Any:
        given = [seed.split(SEPARATOR, len(grammars) - 1) for seed in seeds]
        odd = [made([seed[place] for seed in given]) if made else None for place, made in enumerate(grammars)]

        @st.composite
        def folders(draw: Any) -> bytes:
            files = list(draw(st.sampled_from(given)))
            places = [place for place, one in enumerate(odd) if one is not None]
            for place in draw(st.lists(st.sampled_from(places), min_size=1, max_size=2)):
                files[place] = draw(odd[place])
            return SEPARATOR.join(files)

        return folders()

    return grammar


def packed(inner: Grammar, how: str) -> Grammar:
    """A compressed file of odd content; now and then the packing itself is broken."""
    unpack, pack = {
        "gz": (gzip.decompress, lambda d: gzip.compress(d, 1, mtime=0)),
        "bz2": (bz2.decompress, lambda d: bz2.compress(d, 1)),
        "xz": (lzma.decompress, lambda d: lzma.compress(d, preset=0)),
    }[how]

    def broken(data: bytes, cut: int, way: int) -> bytes:
        whole = pack(data)
        at = cut % len(whole)
        return (whole, whole, whole[:at], whole[:at] + b"\x00\xff" + whole[at + 2 :], whole + whole, whole + b"x")[way]

    def grammar(seeds: Sequence[bytes]) -> Any:
        return st.builds(broken, inner([unpack(seed) for seed in seeds]), st.integers(0, 1 << 20), st.integers(0, 5))

    return grammar
