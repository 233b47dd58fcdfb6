"""Measures inference: merkhet's rules with proofs, written to the file, against pyoxigraph's SPARQL updates."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from measuring import Table, arguments, finish, fitted_exponent, interleave, median_with_spread, parse, ratio
from ontology_world import World, iri_macro, make_world
from sparql_rules import FORMS, load, run_updates

FACTS, HEADLINE_FACTS, QUICK_FACTS = 1_000_000, 100_000, 5_000
NEEDED = 20
MERKHET, BARE, PEER = "merkhet infer", "  without ids and writing", "pyoxigraph updates"


class Compared:
    """A world on which both infer; what each came to is kept for the comparison."""

    def __init__(self, world: World, place: Path, form: str) -> None:
        from merkhet.knowledge.store_import import import_knowledge

        self.world, self.place, self.form = world, place, form
        self.store, self.given = place / "inferred.duckdb", place / "given.duckdb"
        import_knowledge([str(world.parquet)], self.given)
        self.told: dict[str, Any] = {}
        self.written: list[float] = []

    def merkhet(self) -> float:
        """The whole call on a fresh copy of the file: numbering, rounds, ids, proofs, contradictions, writing."""
        from merkhet.knowledge.rules.fixpoint import infer

        shutil.copy(self.given, self.store)
        with _stopwatch("store_conclusions") as written:
            started = time.perf_counter()
            result = infer(self.store)
            seconds = time.perf_counter() - started
        self.written.append(sum(written))
        self.told |= {"stated": result.stated, "inferred": result.inferred, "rounds": result.rounds}
        self.told["by rule"] = result.by_rule
        return seconds

    def peer(self) -> float:
        """The updates alone; the triples are loaded before and written for the comparison after."""
        store = load(self.world.ntriples)
        seconds, rounds = run_updates(store, self.form)
        self.told["peer's rounds"] = rounds
        self._write(store)
        return seconds

    def _write(self, store: Any) -> None:
        import pyoxigraph

        store.dump(str(self.place / "peer.nt"), pyoxigraph.RdfFormat.N_TRIPLES, from_graph=pyoxigraph.DefaultGraph())

    def differences(self) -> tuple[int, int]:
        """How many triples merkhet alone has, and how many the peer alone; chains and their lists are left out."""
        import duckdb

        connection = duckdb.connect()
        connection.execute(iri_macro())
        connection.execute(f"attach '{self.store}' as kb (read_only)")
        connection.execute(
            "create table ours as select iri(subject) || ' ' || iri(predicate) || ' ' || iri(object) || ' .' as line "
            "from kb.facts where predicate != 'owl:propertyChainAxiom'"
        )
        connection.execute(
            "create table theirs as select distinct line from read_csv(?, columns = {'line': 'varchar'}, "
            "header = false, delim = '', quote = '', escape = '', auto_detect = false) "
            "where not starts_with(line, '_:') and not contains(line, 'propertyChainAxiom')",
            [str(self.place / "peer.nt")],
        )
        counts = [
            connection.execute(f"select count(*) from {one} anti join {other} using (line)").fetchall()[0][0]
            for one, other in (("ours", "theirs"), ("theirs", "ours"))
        ]
        connection.close()
        return int(counts[0]), int(counts[1])


@contextmanager
def _stopwatch(name: str) -> Iterator[list[float]]:
    """The seconds of each call of a function of the rules, while it is watched."""
    from merkhet.knowledge.rules import fixpoint

    watched, seconds = getattr(fixpoint, name), []

    def timed(*given: Any, **named: Any) -> None:
        started = time.perf_counter()
        watched(*given, **named)
        seconds.append(time.perf_counter() - started)

    setattr(fixpoint, name, timed)
    try:
        yield seconds
    finally:
        setattr(fixpoint, name, watched)


def faster_form(facts: int, place: Path) -> tuple[str, dict[str, float]]:
    """The peer's form that is the faster one on a smaller world, and the seconds of each."""
    world = make_world(facts, place)
    seconds = {form: run_updates(load(world.ntriples), form)[0] for form in FORMS}
    return min(seconds, key=lambda form: seconds[form]), seconds


def growth(sizes: list[int], place: Path, repeats: int) -> tuple[dict[int, float], float]:
    """The median seconds of merkhet's inference for worlds of each size, and the exponent fitted to them."""
    seconds: dict[int, float] = {}
    for size in sizes:
        folder = place / str(size)
        compared = Compared(make_world(size, folder, ntriples=False), folder, "")
        seconds[compared.world.facts] = statistics.median(compared.merkhet() for _ in range(repeats))
        shutil.rmtree(folder)
    return seconds, fitted_exponent(seconds)


def main() -> None:
    options = parse(arguments(__doc__, repeats=2, peers=False))
    facts = QUICK_FACTS if options.quick else HEADLINE_FACTS if options.headline else FACTS
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        form, tried = faster_form(max(facts // 10, 2000), place / "trial")
        grown, exponent = growth([facts // 10, facts // 3, facts], place / "growth", options.repeats)
        compared = Compared(make_world(facts, place / "world"), place, form)
        ways: dict[str, Callable[[], float]] = {MERKHET: compared.merkhet, PEER: compared.peer}
        timings = interleave(ways, options.repeats, warmups=0)
        ours, theirs = compared.differences()
    told = compared.told
    timings[BARE] = [whole - own for whole, own in zip(timings[MERKHET], compared.written, strict=True)]
    ratios = {f"{PEER} / {name}": ratio(timings[PEER], timings[name]) for name in (MERKHET, BARE)}
    rounds = {MERKHET: told["rounds"], BARE: told["rounds"], PEER: told["peer's rounds"]}
    rows = [
        [
            name,
            median_with_spread(seconds),
            f"{told['inferred'] / statistics.median(seconds):,.0f}",
            str(rounds[name]),
            "1" if name == PEER else str(ratios[f"{PEER} / {name}"]),
        ]
        for name, seconds in timings.items()
    ]
    notes = [
        f"{told['stated']:,} facts stated, {told['inferred']:,} inferred. Results equal: "
        f"{'yes' if ours == theirs == 0 else f'NO ({ours} facts of merkhet alone, {theirs} of the peer alone)'}.",
        f"merkhet's time holds ids, proofs, contradictions and writing to disk; the peer, in memory, {FORMS[form]} "
        f"(the faster of two forms on a tenth: {', '.join(f'{name} {value:.2f} s' for name, value in tried.items())}).",
        (f"Needed: {NEEDED} times as fast. " if facts == FACTS else "")
        + "merkhet's seconds: "
        + ", ".join(f"{size:,} facts {value:.2f}" for size, value in grown.items())
        + f"; they grow with the facts to the power of {exponent:.2f}.",
    ]
    title = f"Inference over {told['stated']:,} facts, {options.repeats} rounds"
    table = Table(title, ("way", "seconds", "conclusions/s", "rounds", "times as fast as the peer"), rows, notes)
    details = {**told, "equal": ours == theirs == 0, "form": form, "forms tried": tried, "exponent": exponent}
    finish("inference", options, table, timings, ratios, {**details, "growth": grown})


if __name__ == "__main__":
    main()
