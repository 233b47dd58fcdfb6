"""``python -m fuzz``: so many inputs through every reader, a live line meanwhile, and a table at the end."""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
import time
from pathlib import Path

from fuzz.campaign import Campaign
from fuzz.targets import targets_of

FINDINGS = Path(__file__).parent / "findings"


def main() -> int:
    """Fuzz as asked; 0 where nothing was found, 1 where something was, 2 for a wrong word."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="inputs in all (%(default)s)")
    parser.add_argument("--minutes", type=float, default=60.0, help="end after so many minutes (%(default)s)")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this reader; may be given several times")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other inputs (%(default)s)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (%(default)s)")
    parser.add_argument("--findings", type=Path, default=FINDINGS, help="where inputs that were found are kept")
    parser.add_argument("--without-atheris", action="store_true", help="no coverage-guided inputs")
    given = parser.parse_args()
    targets = targets_of()
    unknown = [name for name in given.only or () if name not in targets]
    if unknown:
        print(f"there is no reader {unknown[0]!r}; there are: {', '.join(sorted(targets))}", file=sys.stderr)
        return 2
    guided = not given.without_atheris and importlib.util.find_spec("atheris") is not None
    if not guided:
        print("atheris is not used or not installed: no inputs are led by coverage")
    chosen = {name: target for name, target in targets.items() if not given.only or name in given.only}
    campaign = Campaign(chosen, given.inputs, given.seed, given.findings, guided=guided, workers=given.workers)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = time.time()
    campaign.run(given.minutes * 60)
    print(campaign.table())
    print(
        f"{campaign.tried:,} inputs in {time.time() - began:,.0f} s with {given.workers} processes, seed {given.seed}: "
        f"{len(campaign.findings)} findings" + (f", kept in {given.findings}" if campaign.findings else "")
    )
    if campaign.tried < given.inputs:
        late = time.time() - began >= given.minutes * 60
        reason = "the time was over (--minutes)" if late else "processes have died"
        print(f"not all of {given.inputs:,} inputs were tried: {reason}")
    return 1 if campaign.findings else 0


if __name__ == "__main__":
    sys.exit(main())
