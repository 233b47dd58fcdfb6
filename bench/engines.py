"""Building on DuckDB and on Spark: the same facts inferred and the same questions made, their times and memory.

``python bench/engines.py --facts 1000000 10000000`` makes a knowledge base of each size, lets each engine infer and
make questions in a process of its own, in turn, and compares hashes of the sorted tables.
``--engines duckdb --memory 3GB`` shows what DuckDB does where memory is short.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from kmir_world import TRIPLES, make_world

HERE = Path(__file__).parent
QUESTIONS = ("questions", "candidates", "facts", "frequencies", "entities")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--engines", nargs="+", default=["duckdb", "spark"])
    parser.add_argument("--asked", type=int, default=100_000, help="facts that questions are made of")
    parser.add_argument("--memory", help="memory that an engine may use")
    parser.add_argument("--folder", type=Path, help="where the knowledge bases are kept [a temporary folder]")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--repeats", type=int, help="has no meaning here: each size is measured once")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="the folder for the JSON file")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.quick:
        given.facts, given.asked = [2000, 8000], 1000
    if given.one:
        print(json.dumps(measure(given.one, given.folder, given.asked, given.memory)))
        return
    with tempfile.TemporaryDirectory(prefix="merkhet-engines-") as temporary:
        results = []
        for size in given.facts:
            folder = (given.folder or Path(temporary)) / str(size)
            prepare(folder, size)
            for engine in given.engines:
                results.append({"facts": size, "engine": engine, **in_own_process(engine, folder, given)})
                print(described(results[-1]), flush=True)
        conclude(results)
        given.results.mkdir(parents=True, exist_ok=True)
        (given.results / "engines.json").write_text(json.dumps(results, indent=2) + "\n")


def prepare(folder: Path, size: int) -> None:
    """A knowledge base of so many facts, if it is not there yet."""
    from merkhet.knowledge.store_import import import_knowledge

    if (folder / "given.duckdb").is_file():
        return
    started = time.perf_counter()
    make_world(folder / "world", size / TRIPLES)
    made = time.perf_counter()
    import_knowledge([str(folder / "world")], folder / "given.duckdb")
    print(f"{size:,} facts: generated in {made - started:.0f} s, imported in {time.perf_counter() - made:.0f} s")
    shutil.rmtree(folder / "world")


def in_own_process(engine: str, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", engine, "--folder", str(folder), "--asked", str(given.asked)]
    command += ["--memory", given.memory] if given.memory else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{engine} has failed at {folder}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(engine: str, folder: Path, asked: int, memory: str | None) -> dict[str, Any]:
    """What one engine takes to infer and to make questions, and hashes of what it made."""
    from merkhet.core.compute_engines import choose_build_engine
    from merkhet.knowledge.engines.open_engine import open_tables
    from merkhet.knowledge.rules.fixpoint import infer
    from merkhet.knowledge.rules.rule_files import read_rules
    from merkhet.knowledge.store import KnowledgeBase
    from merkhet.questions.makers.make_questions import make_benchmark
    from merkhet.questions.makers.question_builder import MakerOptions
    from merkhet.questions.schema import read_schema
    from merkhet.suites import kmir

    own = Path(kmir.__file__).parent
    where = choose_build_engine(engine, memory)
    store = folder / f"{engine}.duckdb"
    shutil.copy(folder / "given.duckdb", store)
    with Watch() as watch:
        started = time.perf_counter()
        inferred = infer(store, declared=read_rules(own / "rules.yaml"), engine=where)
        between = time.perf_counter()
        options = MakerOptions("kmir", seed=1, paraphrases=1, checks=10_000, asked=asked)
        with (
            KnowledgeBase.open(store) as knowledge,
            open_tables(knowledge.connection, where, ("facts", "names")) as tables,
        ):
            made = make_benchmark(tables, read_schema(own / "schema.yaml"), options)
        ended = time.perf_counter()
    hashes = {name: digest(getattr(made, name)) for name in QUESTIONS}
    with KnowledgeBase.open(store) as knowledge:
        # Of all rows together, whatever their order: sums of hashes.
        [(hashes["inferred"],)] = knowledge.connection.execute(
            "select sum(md5_number_lower(concat_ws('|', fact_id, rule, array_to_string(premises, ','))) // 2)::varchar "
            "from facts where rule is not null"
        ).fetchall()
    store.unlink()
    return {
        "infer": between - started,
        "make": ended - between,
        "inferred": inferred.inferred,
        "questions": made.questions.num_rows,
        "peak": max(watch.peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024),
        "hashes": hashes,
    }


def digest(table: Any) -> str:
    """A hash of a table's rows, which are in the order of their ids."""
    found = hashlib.sha256()
    for batch in table.combine_chunks().to_batches(max_chunksize=10_000):
        found.update(json.dumps(batch.to_pylist(), ensure_ascii=False).encode())
    return found.hexdigest()[:16]


class Watch:
    """The most memory that this process and those it started had together."""

    def __enter__(self) -> Watch:
        self.peak, self._stop = 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        import psutil

        while not self._stop.wait(0.2):
            me = psutil.Process(os.getpid())
            total = 0
            for one in (me, *me.children(recursive=True)):
                try:
                    total += one.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            self.peak = max(self.peak, total)


def described(row: dict[str, Any]) -> str:
    return (
        f"{row['facts']:>12,} facts  {row['engine']:<7} inferred {row['inferred']:>11,} in {row['infer']:7.1f} s, "
        f"made {row['questions']:>9,} questions in {row['make']:7.1f} s, {row['peak'] / 2**30:5.2f} GiB"
    )


def conclude(results: list[dict[str, Any]]) -> None:
    """Whether engines agree, and how times grow with facts."""
    from math import log

    for size in sorted({row["facts"] for row in results}):
        rows = [row for row in results if row["facts"] == size]
        same = all(row["hashes"] == rows[0]["hashes"] for row in rows)
        text = "equal tables" if same else "DIFFERENT TABLES"
        if len(rows) > 1:
            ratio = rows[1]["infer"] / rows[0]["infer"], rows[1]["make"] / rows[0]["make"]
            took = f"; {rows[1]['engine']} takes {ratio[0]:.2f} × and {ratio[1]:.2f} × the time of {rows[0]['engine']}"
            print(f"{size:>12,} facts: {text}{took}")
        print(f"{'':>20} {json.dumps(rows[0]['hashes'])}")
        if not same:
            print(f"{'':>20} {json.dumps(rows[1]['hashes'])}")
    for engine in dict.fromkeys(row["engine"] for row in results):
        rows = sorted((row for row in results if row["engine"] == engine), key=lambda row: row["facts"])
        for less, more in pairwise(rows):
            grown = log(more["facts"] / less["facts"])
            exponents = [log(more[part] / less[part]) / grown for part in ("infer", "make")]
            print(
                f"{engine}: from {less['facts']:,} to {more['facts']:,} facts inference grows as n^{exponents[0]:.2f}, "
                f"making as n^{exponents[1]:.2f}"
            )


if __name__ == "__main__":
    main()
