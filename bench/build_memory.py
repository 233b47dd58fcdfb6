"""Measures the peak memory of ``merkhet build --memory`` on generated facts, at and around two million.

``--against FOLDER`` names the ``src`` of another checkout, which is measured in turn with this one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import (
    ROOT,
    Ratio,
    Table,
    arguments,
    child_environment,
    finish,
    median_with_spread,
    parse,
    ratio,
    run_child,
)

MANY, QUICK = 2_000_000, 4_000
CASES = (("quickstart", -1), ("quickstart", 0), ("quickstart", 1), ("kmir", 0))
MOST_MB = 1400


def write_facts(folder: Path, count: int) -> None:
    """Write exactly ``count`` facts in twenty relations without templates, and the names of their entities."""
    import duckdb

    folder.mkdir(parents=True)
    entities = count // 4
    syllables = "['ba','ke','li','mo','nu','ra','se','ti','vo','zu','da','fe','gi','ho','ju','la','pe','ri','so','tu']"
    word = " || ".join(f"{syllables}[(n // {20**place}) % 20 + 1]" for place in range(5))
    connection = duckdb.connect()
    connection.execute(
        f"""copy (
            select distinct on (subject, predicate, object) subject, predicate, object from (
                select 'e' || (hash(n, 1) % {entities}) as subject, 'relation' || (n % 20) as predicate,
                    'e' || (pow((hash(n, 2) % 1000003) / 1000003.0, 3) * {entities - 1})::bigint as object
                from range({count + count // 4}) as r(n)
            ) where subject != object order by hash(subject, predicate, object) limit {count}
        ) to '{folder / "facts.parquet"}' (format parquet)"""
    )
    connection.execute(
        f"""copy (select 'e' || n as entity, 'en' as language, upper(left({word}, 1)) || substr({word}, 2) as label
        from range({entities}) as r(n)) to '{folder / "names.parquet"}' (format parquet)"""
    )


def prepare(suite: str, facts: int, place: Path) -> Path:
    """The knowledge base of a case, made by a child so that this process stays smaller than the measured ones."""
    world, store = place / f"{suite}-{facts}", place / f"{suite}-{facts}.duckdb"
    if suite == "kmir":
        from kmir_world import TRIPLES

        make = [str(ROOT / "bench" / "kmir_world.py"), "--folder", str(world), "--scale", str(facts / TRIPLES)]
    else:
        make = [__file__, "--make", str(world), "--facts", str(facts)]
    run_child([sys.executable, *make], child_environment())
    importing = ["-m", "merkhet", "knowledge", "import", str(world), "--into", str(store)]
    run_child([sys.executable, *importing], child_environment())
    return store


def main() -> None:
    parser = arguments(__doc__, repeats=1, peers=False)
    parser.add_argument("--memory", default="1GB", help="the limit [1GB]")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="the src folder of another merkhet")
    parser.add_argument("--make", type=Path, help="write generated facts into this folder, and measure nothing")
    parser.add_argument("--facts", type=int, help="how many facts --make writes")
    options = parse(parser)
    if options.make:
        write_facts(options.make, options.facts)
        return
    sources = {"": ROOT / "src"} | ({"before": options.against.resolve()} if options.against else {})
    timings: dict[str, list[float]] = {}
    peaks: dict[str, list[float]] = {}
    rows: list[list[str]] = []
    ratios: dict[str, Ratio] = {}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        for suite, more in CASES:
            facts = (QUICK if options.quick else MANY) + more
            store = prepare(suite, facts, place)
            build = [sys.executable, "-m", "merkhet", "build", suite, "--knowledge", str(store)]
            build += ["--memory", options.memory]
            name = f"{suite}, {facts:,} facts"
            for _ in range(options.repeats):
                for which, source in sources.items():
                    out = Path(tempfile.mkdtemp(dir=place)) / "questions"
                    environment = {**child_environment(), "PYTHONPATH": str(source)}
                    child = run_child([*build, "--out", str(out)], environment, measures_memory=not options.quick)
                    timings.setdefault(f"{name} {which}".strip(), []).append(child.seconds)
                    peaks.setdefault(f"{name} {which}".strip(), []).append(child.peak_mb)
            row: list[Any] = [name, median_with_spread(peaks[name], 0), median_with_spread(timings[name], 1)]
            if options.against:
                ratios[f"memory of {name} / before"] = ratio(peaks[name], peaks[f"{name} before"])
                row += [
                    median_with_spread(peaks[f"{name} before"], 0),
                    median_with_spread(timings[f"{name} before"], 1),
                ]
            rows.append(row)
    columns = ["what", "peak MB", "seconds", *(["before: peak MB", "before: seconds"] if options.against else [])]
    limit = [f"`merkhet build --memory {options.memory}` in a fresh process. Needed with 1GB: {MOST_MB:,} MB."]
    ratios = ratios or {
        f"memory of {name} / {next(iter(peaks))}": ratio(values, next(iter(peaks.values())))
        for name, values in peaks.items()
    }
    table = Table("Building with little memory", columns, rows, limit)
    finish("build_memory", options, table, timings, ratios, {"peak_mb": peaks})


if __name__ == "__main__":
    main()
