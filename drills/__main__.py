"""``python -m drills``: disturb real runs in every way there is a drill for, and say what did not survive."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from drills.fork_server import ForkServer
from drills.jobs import References
from drills.stage import Stage, print_line

DRILLS = (
    *("kills", "interrupts", "workers", "full_disk", "read_only"),
    *("clock", "rivals", "damage", "hostile_servers"),
)
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run the drills; the exit code is 1 if anything did not survive."""
    parser = argparse.ArgumentParser(prog="python -m drills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="at how many moments commands are killed [200]")
    parser.add_argument("--only", action="append", choices=DRILLS, help="this drill alone; may be given several times")
    parser.add_argument("--seed", type=int, default=0, help="what the moments are drawn from [0]")
    parser.add_argument("--minutes", type=float, default=45.0, help="begin nothing new after so long [45]")
    parser.add_argument("--jobs", type=int, default=2, help="how many commands are disturbed at once [2]")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder for the JSON file")
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="start a new Python for each command, instead of forking one that has loaded",
    )
    options = parser.parse_args()
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="merkhet-drills-"))
    fork_server = None if options.fresh else ForkServer()
    stage = Stage(folder, options.seed, options.minutes, options.kills, options.jobs, fork_server)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        references = References(stage)
        for name in options.only or DRILLS:
            if stage.late:
                stage.skip(name, f"the {options.minutes:g} minutes are over (--minutes)")
                continue
            print_line(f"\n{name}: {(import_module(f'drills.{name}').__doc__ or '').strip()}")
            import_module(f"drills.{name}").drill(stage, references)
    except BaseException:
        stage.deadline = 0.0
        stage.end()
        raise
    finally:
        if fork_server is not None:
            fork_server.end()
    seconds = time.monotonic() - began
    failures = [failure for tally in stage.tallies.values() for failure in tally.failures]
    _print_table(stage, seconds)
    _write(stage, seconds, options)
    if failures:
        print_line(f"\n{len(failures)} moments were not survived (their folders are kept in {folder}):")
        for failure in failures:
            print_line(f"  {failure}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _print_table(stage: Stage, seconds: float) -> None:
    print_line(f"\n{'drill':<12} {'what':<18} {'moments':>8} {'survived':>9} {'failed':>7}")
    for tally in stage.tallies.values():
        print_line(
            f"{tally.drill:<12} {tally.kind:<18} {tally.moments:>8} {tally.survived:>9} {len(tally.failures):>7}"
        )
    moments = sum(tally.moments for tally in stage.tallies.values())
    failed = sum(len(tally.failures) for tally in stage.tallies.values())
    print_line(f"{'all':<31} {moments:>8} {moments - failed:>9} {failed:>7}   in {seconds / 60:.1f} minutes")
    for line in stage.skipped:
        print_line(f"skipped: {line}")


def _write(stage: Stage, seconds: float, options: argparse.Namespace) -> None:
    options.results.mkdir(parents=True, exist_ok=True)
    content = {
        "seed": options.seed,
        "seconds": round(seconds, 1),
        "drills": [
            {
                "drill": tally.drill,
                "what": tally.kind,
                "moments": tally.moments,
                "survived": tally.survived,
                "failures": tally.failures,
            }
            for tally in stage.tallies.values()
        ],
        "skipped": stage.skipped,
    }
    name = "-".join(options.only or ["all"])
    (options.results / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
