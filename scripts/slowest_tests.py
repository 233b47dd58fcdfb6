"""Print the slowest tests of JUnit reports: seconds, then the test."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

SHOWN = 20


def main(paths: list[str]) -> None:
    """Print the slowest tests of all reports together."""
    cases = [case for path in paths for case in ElementTree.parse(path).iter("testcase")]
    cases.sort(key=lambda case: -float(case.get("time", 0)))
    print(f"The slowest {min(SHOWN, len(cases))} of {len(cases)} tests, in seconds:")
    for case in cases[:SHOWN]:
        print(f"{float(case.get('time', 0)):7.1f}  {case.get('classname')}::{case.get('name')}")


if __name__ == "__main__":
    main(sys.argv[1:])
