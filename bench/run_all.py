"""Run the headline benchmarks in their headline sizes, or all or those named in full, each in a process of its own.

The exit code is 1 if one of them failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from measuring import child_environment
from peers import FAILED, find_peers

BENCHMARKS = {
    "startup": True,
    "quickstart_rate": True,
    "ranking": True,
    "agreement": True,
    "memory": False,
    "importing": False,
    "inference": False,
    "kmir": False,
    "memorizing": False,
    "explorer": False,
    "chat": False,
    "ray_rate": False,
    "processes": False,
    "engines": False,
    "asking_scale": False,
    "questions_scale": False,
    "baselines": False,
    "build_memory": False,
    "interval_coverage": False,
}
"""The benchmarks in their order, and whether each is measured against peers."""
HEADLINE = ("ranking", "quickstart_rate", "memorizing", "kmir", "inference", "explorer")
"""What runs without a name: ranking, asking, memorizing, building, inference and the explorer."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones [{' '.join(HEADLINE)}]")
    parser.add_argument("--all", action="store_true", help="every benchmark, not only the headline ones")
    parser.add_argument("--repeats", type=int, help="rounds that are timed")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that they work")
    parser.add_argument("--no-peers", action="store_true", help="without the peers' environment")
    parser.add_argument("--results", type=Path, help="the folder for the JSON files")
    options = parser.parse_args()
    for name in options.names:
        if name not in BENCHMARKS:
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
    chosen = options.names or list(BENCHMARKS if options.all else HEADLINE)
    common = ["--quick"] * options.quick
    common += ["--headline"] * (not options.names and not options.all and not options.quick)
    common += ["--repeats", str(options.repeats)] if options.repeats is not None else []
    common += ["--results", str(options.results)] if options.results else []
    environment = child_environment()
    if any(BENCHMARKS[name] for name in chosen) and not options.no_peers:
        environment[FAILED] = find_peers().reason
    failed, seconds = [], {}
    for number, name in enumerate(chosen):
        if number:
            print(flush=True)
        own = ["--no-peers"] if options.no_peers and BENCHMARKS[name] else []
        script = Path(__file__).with_name(f"{name}.py")
        started = time.perf_counter()
        if subprocess.run([sys.executable, str(script), *common, *own], env=environment, check=False).returncode:
            failed.append(name)
        seconds[name] = time.perf_counter() - started
    spent = ", ".join(f"{name} {taken:.0f} s" for name, taken in seconds.items())
    print(f"\n{spent}; {sum(seconds.values()):.0f} s in all")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
