"""Measures how long merkhet's commands take from start to end, against lm-eval's help and a bare Python."""

from __future__ import annotations

import sys

from measuring import (
    Table,
    arguments,
    child_environment,
    finish,
    interleave,
    median_with_spread,
    parse,
    ratio,
    run_child,
)
from peers import Peers, find_peers, peer_environment, peer_versions

BARE = "python -c pass"
PEER = "lm_eval --help"


def commands() -> dict[str, list[str]]:
    """Each way as the command that is run, merkhet's with this interpreter."""
    python = sys.executable
    return {
        BARE: [python, "-c", "pass"],
        "import merkhet": [python, "-c", "import merkhet"],
        "merkhet --help": [python, "-m", "merkhet", "--help"],
        "merkhet suites": [python, "-m", "merkhet", "suites"],
        "merkhet models": [python, "-m", "merkhet", "models"],
    }


def measure(peers: Peers, repeats: int) -> dict[str, list[float]]:
    own, theirs = child_environment(), peer_environment()
    ways = {name: lambda command=command: run_child(command, own).seconds for name, command in commands().items()}
    if peers.python is not None:
        ways[PEER] = lambda: run_child([peers.command("lm_eval"), "--help"], theirs).seconds
    return interleave(ways, repeats)


def main() -> None:
    options = parse(arguments(__doc__, repeats=15))
    peers = find_peers(not options.no_peers)
    timings = measure(peers, options.repeats)
    ratios = {f"{name} / {BARE}": ratio(seconds, timings[BARE]) for name, seconds in timings.items() if name != BARE}
    if PEER in timings:
        ratios |= {f"{PEER} / {name}": ratio(timings[PEER], timings[name]) for name in timings if name != PEER}
    rows = [
        [
            name,
            median_with_spread(seconds),
            "1" if name == BARE else str(ratios[f"{name} / {BARE}"]),
            str(ratios.get(f"{PEER} / {name}", "1" if name == PEER else "–")),
        ]
        for name, seconds in timings.items()
    ]
    notes = ["Median (smallest–largest); a ratio is of medians (smallest–largest of one round)."]
    if peers.python is None:
        rows.append([PEER, f"peer not installed: {peers.reason}", "–", "–"])
    table = Table(
        f"Time from start to end, {options.repeats} rounds",
        ("command", "seconds", f"× {BARE}", "lm_eval takes × as long"),
        rows,
        notes,
    )
    finish("startup", options, table, timings, ratios, {"peers": peer_versions(peers), "peers_reason": peers.reason})


if __name__ == "__main__":
    main()
