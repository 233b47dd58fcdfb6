"""Measures imports: how time and memory grow with the facts of a Parquet file, and N-Triples against rdflib."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measuring import (
    ROOT,
    Child,
    Ratio,
    Table,
    arguments,
    child_environment,
    finish,
    fitted_exponent,
    interleave,
    parse,
    ratio,
    run_child,
)

SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 5_000_000)
QUICK_SIZES = (2_000, 5_000, 10_000)
TRIPLES, QUICK_TRIPLES = 300_000, 2_000
MOST_SECONDS, MOST_MB = 20, 2 * 1024**3 / 1e6
NEEDED = 10
MERKHET, RDFLIB, OXIGRAPH = "N-Triples: merkhet", "N-Triples: rdflib", "N-Triples: pyoxigraph"


def make(facts: int, folder: Path, *options: str) -> None:
    """A world on disk, made by a child so that this process stays smaller than those it measures."""
    script = str(ROOT / "bench" / "ontology_world.py")
    command = [sys.executable, script, "--facts", str(facts), "--folder", str(folder), *options]
    run_child(command, child_environment())


def import_parquet(facts: int, place: Path, repeats: int, *, quick: bool) -> list[Child]:
    """Imports of a world of this size into new stores, each by the command in a fresh process.

    A small import may need less memory than whoever started the benchmark, which matters only where it is measured.
    """
    children = []
    with tempfile.TemporaryDirectory(dir=place) as folder:
        make(facts, Path(folder))
        for number in range(repeats):
            store = Path(folder) / f"{number}.duckdb"
            file = str(Path(folder) / "facts.parquet")
            command = [sys.executable, "-m", "merkhet", "knowledge", "import", file, "--into", str(store)]
            children.append(run_child(command, child_environment(), measures_memory=not quick))
            store.unlink()
    return children


def readers(file: Path, place: Path) -> dict[str, Callable[[], float]]:
    """Ways to read the file: merkhet into a store on disk, rdflib and pyoxigraph into memory."""

    def merkhet() -> float:
        from merkhet.knowledge.store_import import import_knowledge

        store = place / "kb.duckdb"
        started = time.perf_counter()
        import_knowledge([str(file)], store)
        seconds = time.perf_counter() - started
        store.unlink()
        return seconds

    def rdflib() -> float:
        from rdflib import Graph

        graph = Graph()
        started = time.perf_counter()
        graph.parse(file, format="nt")
        return time.perf_counter() - started

    def oxigraph() -> float:
        import pyoxigraph

        store = pyoxigraph.Store()
        started = time.perf_counter()
        store.bulk_load(path=str(file), format=pyoxigraph.RdfFormat.N_TRIPLES)
        return time.perf_counter() - started

    return {MERKHET: merkhet, RDFLIB: rdflib, OXIGRAPH: oxigraph}


def main() -> None:
    options = parse(arguments(__doc__, repeats=3, peers=False))
    sizes = QUICK_SIZES if options.quick else SIZES
    triples = QUICK_TRIPLES if options.quick else TRIPLES
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        children = {size: import_parquet(size, place, options.repeats, quick=options.quick) for size in sizes}
        make(triples, place, "--ntriples")
        # Only now, since from here on this process is no longer small.
        read = interleave(readers(place / "facts.nt", place), options.repeats)
        with open(place / "facts.nt", "rb") as handle:
            lines = sum(1 for _ in handle)
    timings = {f"Parquet: {size:,} facts": [child.seconds for child in found] for size, found in children.items()}
    seconds = {size: statistics.median(child.seconds for child in found) for size, found in children.items()}
    peaks = {size: max(child.peak_mb for child in found) for size, found in children.items()}
    exponent = fitted_exponent(seconds)
    ratios: dict[str, Ratio] = {f"{other} / merkhet": ratio(read[other], read[MERKHET]) for other in (RDFLIB, OXIGRAPH)}
    rows = [
        [f"Parquet: {size:,} facts", f"{seconds[size]:.2f}", f"{size / seconds[size]:,.0f}", f"{peaks[size]:.0f}", "–"]
        for size in sizes
    ]
    for name, taken in read.items():
        median = statistics.median(taken)
        compared = str(ratios[f"{name} / merkhet"]) if name != MERKHET else "1"
        rows.append([name, f"{median:.2f}", f"{lines / median:,.0f}", "–", compared])
    largest = max(sizes)
    notes = [
        f"Parquet by `merkhet knowledge import` in fresh processes: medians of {options.repeats}, the largest peak. "
        f"Time grows with the facts to the power of {exponent:.2f}.",
        f"Needed: 5,000,000 facts within {MOST_SECONDS} s and 2 GiB ({MOST_MB:.0f} MB); here {largest:,} in "
        f"{seconds[largest]:.1f} s and {peaks[largest]:.0f} MB.",
        f"N-Triples ({lines:,} triples): merkhet parses, gives ids and stores on disk; the others only read into "
        f"memory. Needed: {NEEDED} times rdflib's rate.",
    ]
    table = Table("Imports", ("what", "seconds", "facts/s", "peak MB", "× merkhet's time"), rows, notes)
    details = {"peak_mb": peaks, "exponent": exponent, "triples": lines}
    finish("importing", options, table, {**timings, **read}, ratios, details)


if __name__ == "__main__":
    main()
