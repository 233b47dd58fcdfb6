"""Values that have brought down readers: what texts, numbers and whole documents may hold besides the usual."""

from __future__ import annotations

import json
from typing import Any

LONG = 70_000
ODD_TEXTS: tuple[str, ...] = (
    *(
        "",
        " ",
        "\t",
        "\n",
        "\r\n",
        "\x00",
        "a\x00b",
        "\x1b[31m",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\u202eabc",
        "\u200d",
    ),
    *("\u202dabc\u202c", "\u2066x\u2069", "\u200bx", "a\x9fb", "\u061c", "\u2060", "\U000e0041"),
    *("2020-02-30", "2021-02-29", "1900-02-29", "2020-13-01", "2020-00-10", "0000", "10000-01-01", "-0044-03-15"),
    *("44 BC", "13 BC", "15 March 44 BC", "AD 476", "0 BC", "31 April 2009", "2020-02-30T10:00:00Z", "1,5", "1.234,5"),
    *('"Weird Al" Yankovic', '"Heroes"', '"Heroes" (album)', '"a"@en', '"a"^^xsd:gYear', '"', '"a" "b"'),
    *("\ud800", "\udfff", "a\udc80", "\U0001f600", "e\u0301", "İ", "ß", "٣", "²", "½", "零", "北京", "𠮷"),
    *(
        "[MASK]",
        "[MASK] [MASK]",
        "{subject}",
        "{object}",
        "{}",
        "{a}",
        "{{",
        "%s",
        "$1",
        "\\",
        "\\u0000",
        "'",
        '"',
        '""',
        "`",
    ),
    *(
        "null",
        "None",
        "NaN",
        "Infinity",
        "true",
        "yes",
        "~",
        "-",
        "--",
        "=",
        "#",
        "/",
        "|",
        ";",
        ",",
        "*",
        "&a",
        "*a",
        "!!x",
    ),
    *("0", "-0", "00", "1_000", "1e999", "-1", "1.5", "0x10", "9" * 30, "9" * 5000, "1e-400"),
    *("1957", "1957-13", "1957-02-31", "-0001", "+1957", "0000-00-00", "99999999999-01-01", "1957-03-15T00:00:00Z"),
    *(
        "Q0",
        "Q42",
        "P31",
        "_:b0",
        "http://a/b",
        "http://[",
        "urn:x",
        "a:b",
        "file:///etc/hosts",
        "x" * LONG,
        "x " * 3000,
    ),
    *(
        "' or 1=1 --",
        "); drop table facts; --",
        "<script>",
        "&amp;",
        "&bomb;",
        "../x",
        "con",
        "a/b",
        "en",
        "EN-us",
        "mul",
    ),
)
ODD_NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**30, 10**400, -0.0, 0.1, 1e308, 5e-324),
    *(float("nan"), float("inf"), float("-inf")),
)
ODD_BYTES: tuple[bytes, ...] = (
    *(
        b"\x00",
        b"\xff",
        b"\xfe\xff",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x80\xa8",
    ),
    *(
        b"\r",
        b"\r\n",
        b"\n",
        b"\n\n\n",
        b"\t",
        b'"',
        b"'",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b"<",
        b">",
        b",",
        b":",
        b"&a",
        b"*a",
        b"#",
    ),
    *(
        b"\\ud800",
        b"\\u0000",
        b"NaN",
        b"1e999",
        b"9" * 400,
        b"9" * 5000,
        b"-",
        b"null",
        b"[" * 2000,
        b'{"a":' * 2000,
        b"x" * 5000,
    ),
    *(b'"a": 1, "a": 2', b"Infinity", b"-Infinity", b"44 BC", b"\xe2\x80\xae", b"<<: *a", b'""'),
    *(b"1957", b"-0001", b"2001-02-30", b"[MASK]", b"{subject}", b"!!python/object:os.system", b"%", b"|", b";"),
)


def common_bombs() -> list[bytes]:
    """Inputs for every reader of text: none, enormous, nested, half encoded."""
    return [
        b"",
        b"\n",
        b"\x00" * 1000,
        b"\xef\xbb\xbf",
        b"\xff\xfea\x00",
        "ü".encode("latin-1"),
        b"x" * 10_000_000,
        b"\n" * 1_000_000,
        b"[" * 200_000,
        b"{" * 200_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"9" * 1_000_000,
        b'"' + b"x" * 1_000_000,
        b"a,b\n" * 100_000,
        b"- " * 20_000 + b"a",
        b"<a>" * 50_000,
        b"\\" * 200_000,
        b" " * 2_000_000 + b"x",
        b"\xed\xa0\x80" * 1000,
    ]


def json_bombs(row: dict[str, Any]) -> list[bytes]:
    """A valid object with one value made enormous, or nested, or half a character."""
    found = []
    for key in row:
        for value in ("x" * 2_000_000, "\ud800", None, [], {}, True):
            found.append(json.dumps({**row, key: value}).encode() + b"\n")
        found.append(json.dumps({**row, key: "@@"}).replace('"@@"', "9" * 6000).encode() + b"\n")
        found.append(json.dumps({**row, key: "@@"}).replace('"@@"', "[" * 3000 + "]" * 3000).encode() + b"\n")
        found.append(json.dumps({**row, key: "@@"}).replace('"@@"', "[" * 60_000 + "]" * 60_000).encode() + b"\n")
        found.append(json.dumps({**row, key: "@@"}).replace('"@@"', "NaN").encode() + b"\n")
        found.append(json.dumps({**row, key: "@@"}).replace('"@@"', "1e999").encode() + b"\n")
        found.append(json.dumps({**row, key: "@@"}).replace('"@@"', "-Infinity").encode() + b"\n")
        found.append(json.dumps({**row, key: "@@"}).replace('"@@"', f"1, {json.dumps(key)}: 2").encode() + b"\n")
    return found


def yaml_bombs() -> list[bytes]:
    """Aliases that multiply, nesting, numbers and dates that are none, tags of other languages."""
    doubled = b"a0: &a0 [x, x]\n" + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 32))
    merged = b"m0: &m0 {k0: 1}\n" + b"".join(
        b"m%d: &m%d {<<: [*m%d, *m%d]}\n" % (n, n, n - 1, n - 1) for n in range(1, 24)
    )
    keys = b"".join(
        b"%s: &b%d [*b%d, *b%d]\n" % (key, n + 1, n, n)
        for n, key in enumerate((b"relations", b"words", b"suite", b"tasks", b"models", b"symmetric"))
    )
    return [
        doubled,
        merged,
        b"x: &b0 [y]\n" + keys,
        b"a: &a [*a]\n",
        b"&a suite: *a\n",
        b"suite: &a [*a]\nwords: &b {x: *b}\nrelations: &c {x: *c}\nsymmetric: &d [*d]\n",
        b"[" * 5000 + b"]" * 5000,
        b"a: " * 3000,
        b"{a: " * 3000,
        b"- " * 3000,
        b"? " * 3000,
        b"a: !!python/object/apply:os.system [true]\n",
        b"a: !!binary ====\n",
        b"a: !!timestamp x\n",
        b"a: 2001-99-99\n",
        b"a: 2001-02-30 25:61:61\n",
        b"a: " + b"9" * 6000 + b"\n",
        b"a: 0x" + b"f" * 6000 + b"\n",
        b"a: 1:" + b"59:" * 3000 + b"1\n",
        b"a: -\n",
        b"? [a, b]\n: c\n",
        b"? {a: b}\n: c\n",
        b"a: b\na: c\n",
        b"a: {b: [{c: 1, c: 2}]}\n",
        b"suite: quickstart\n'suite': kmir\n",
        b"a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: {<<: [*a, *a], x: 3, x: 4}\n",
        b"c: {<<: {a: 1}, <<: {b: 2}}\n",
        b"? &k a\n: 1\n? *k\n: 2\n",
        b"yes: 1\ntrue: 2\n1: 3\n0x1: 4\n1.0: 5\n~: 6\nnull: 7\n",
        b"{" + b"a: 1, " * 50_000 + b"}\n",
        b"--- a\n--- b\n",
        b"%YAML 9.9\n---\na: b\n",
        b"a: \x07\n",
        b"a: |\n" + b" x\n" * 10_000,
        b"a: 'x\n",
        b"<<: 3\n",
        b"a: =\n",
        b"a: !!int x\n",
        b"a: !!int ''\n",
        b"a: !!float ''\n",
        b"a: !!bool x\n",
        b"a: !!set [x]\n",
        b"a: !!omap [x]\n",
        b"a: !!pairs 3\n",
        b"a: !!merge x\n",
        b"1: 2\nnull: 3\ntrue: 4\n1.5: 5\n2001-01-01: 6\n",
    ]
