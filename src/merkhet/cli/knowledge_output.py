"""Output of the commands ``merkhet knowledge``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from merkhet.cli.output import print_descriptions, print_json
from merkhet.core.errors import InputError
from merkhet.core.text import counted
from merkhet.knowledge.rules.fixpoint import Inference
from merkhet.knowledge.rules.rulebook import RULES
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import ImportSummary
from merkhet.questions.starter_schema import StarterSchema

_MAX_SHOWN = 5


def print_imports(done: Sequence[ImportSummary], store: Path, *, as_json: bool) -> None:
    """Print the number of facts, bad rows and skipped rows of each import, and a command to run next."""
    if as_json:
        print_json({"store": str(store), "imports": [asdict(imported) for imported in done]})
        return
    console = _console()
    for imported in done:
        parts = [counted(imported.facts, "fact"), f"{imported.added:,} new"]
        parts += [f"{imported.repeated:,} duplicate"] if imported.repeated else []
        parts += [counted(imported.names, "new name")] if imported.names else []
        console.print(f"{imported.place} ({imported.source}): {', '.join(parts)}")
        if imported.bad:
            console.print(f"  {counted(imported.bad, 'bad row')} skipped:")
            for example in imported.examples:
                console.print(f"    {example}")
            if imported.bad > len(imported.examples):
                console.print(f"    … and {imported.bad - len(imported.examples):,} more")
        if imported.left_out:
            skipped = ", ".join(
                f"{count:,} {reason}"
                for reason, count in sorted(imported.left_out.items(), key=lambda i: (-i[1], i[0]))
            )
            console.print(f"  skipped: {skipped}")
    console.print(f"Knowledge base: {store}    Contents: merkhet knowledge info {shlex.quote(str(store))}")


def print_inference(result: Inference, store: Path, *, as_json: bool) -> None:
    """Print the number of inferred facts per rule, cycles in the hierarchy, and contradictions."""
    if as_json:
        print_json({"store": str(store), **asdict(result)})
        return
    console = _console()
    rounds = counted(result.rounds, "round")
    console.print(f"{counted(result.inferred, 'fact')} inferred from {result.stated:,} stated, in {rounds}")
    if result.by_rule:
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 2))
        table.add_column(no_wrap=True)
        table.add_column(justify="right")
        table.add_column()
        for name, count in sorted(result.by_rule.items(), key=lambda item: -item[1]):
            table.add_row(name, f"{count:,}", RULES[name].description)
        console.print(table)
    _print_cycles(console, result.cycles)
    if result.contradicted:
        console.print(f"{counted(result.contradicted, 'contradiction')}:")
        _print_contradictions(console, result, store)
    else:
        console.print("no contradictions")
    if result.inferred:
        console.print(f"Proof of a fact: merkhet knowledge explain {shlex.quote(str(store))} SUBJECT PREDICATE OBJECT")


def _print_cycles(console: Console, cycles: Sequence[Sequence[str]]) -> None:
    for cycle in cycles[:_MAX_SHOWN]:
        console.print(f"cycle in the hierarchy: {', '.join(cycle)}")
    if len(cycles) > _MAX_SHOWN:
        console.print(f"… and {len(cycles) - _MAX_SHOWN} more cycles")


def _print_contradictions(console: Console, result: Inference, store: Path) -> None:
    from merkhet.knowledge.proofs import format_fact

    with KnowledgeBase.open(store) as knowledge:
        labels = knowledge.labels()
        for contradiction in result.contradictions[: 2 * _MAX_SHOWN]:
            facts = [fact for fact in (knowledge.fact(key) for key in contradiction.facts) if fact]
            texts = "  and  ".join(
                format_fact(fact, labels) + (" [inferred]" if fact["rule"] else "") for fact in facts
            )
            console.print(f"  {labels.get(contradiction.about, contradiction.about)} ({contradiction.kind}): {texts}")
    if result.contradicted > 2 * _MAX_SHOWN:
        console.print(f"  … and {result.contradicted - 2 * _MAX_SHOWN:,} more; --json prints up to 1,000")


def print_proofs(store: Path, words: Sequence[str], language: str, *, as_json: bool) -> None:
    """Print the proof tree of each fact that matches ``words``: an id, or subject, predicate and object."""
    from merkhet.knowledge.proofs import find_facts, format_proof, proof_labels, prove

    with KnowledgeBase.open(store) as knowledge:
        proofs = [prove(knowledge, fact) for fact in find_facts(knowledge, words)]
        if as_json:
            try:
                print_json([proof.as_dict() for proof in proofs])
            except RecursionError as error:
                raise InputError("the proof is too deep for JSON; print it without --json") from error
            return
        console = _console()
        for index, proof in enumerate(proofs):
            if index:
                console.print()
            for line in format_proof(proof, proof_labels(knowledge, proof, language)):
                console.print(line, markup=False)


def print_info(store: Path, *, as_json: bool) -> None:
    """Print the counts, predicates, languages and imports of a knowledge base."""
    from merkhet.knowledge.stats import describe

    info = describe(store)
    if as_json:
        print_json(info)
        return
    console = _console()
    console.print(
        f"{store}: {counted(info['facts'], 'fact')} ({info['stated']:,} stated, {info['inferred']:,} inferred) on "
        f"{counted(info['subjects'], 'subject')} by {counted(info['predicates'], 'predicate')}; "
        f"{info['numbers']:,} with a number, {info['timed']:,} with times; {info['bytes'] / 1e6:,.1f} MB"
    )
    if info["ontology"]:
        console.print("ontology: " + ", ".join(f"{name} {count:,}" for name, count in info["ontology"].items()))
    if info["by_rule"]:
        console.print("inferred: " + ", ".join(f"{count:,} by {rule}" for rule, count in info["by_rule"].items()))
    _print_predicates(console, info)
    if info["languages"]:
        names = ", ".join(f"{row['language']} {row['names']:,}" for row in info["languages"][: _MAX_SHOWN * 2])
        rest = len(info["languages"]) - _MAX_SHOWN * 2
        more = f" and {rest} more languages" if rest > 0 else ""
        console.print(f"names: {names}{more}")
    if info["shared_labels"]:
        console.print(
            f"ambiguous: {counted(info['shared_labels'], 'label')} shared by several entities in one language"
        )
    _print_cycles(console, info["cycles"])
    for row in info["imports"]:
        console.print(f"from {row['place']} ({row['source']}), {row['done_at'][:10]}: {counted(row['facts'], 'fact')}")
    if info["inference"] and info["inference"]["stale"]:
        command = f"merkhet knowledge infer {shlex.quote(str(store))}"
        console.print(f"Facts were imported after the last inference. Infer again: {command}")


def _print_predicates(console: Console, info: Mapping[str, Any]) -> None:
    table = Table(box=None, padding=(0, 1, 0, 2), header_style="")
    table.add_column("predicate", overflow="fold")
    for column in ("facts", "inferred", "subjects", "objects"):
        table.add_column(column, justify="right")
    for row in info["top_predicates"]:
        table.add_row(row["predicate"], *[f"{row[name]:,}" for name in ("facts", "inferred", "subjects", "objects")])
    console.print(table)
    rest = info["predicates"] - len(info["top_predicates"])
    if rest > 0:
        console.print(f"  … and {counted(rest, 'predicate')} more")


def build_command(store: Path, schema: Path) -> str:
    """Return the command that builds questions about a knowledge base with a schema."""
    place, file = shlex.quote(str(store)), shlex.quote(str(schema))
    return f"merkhet build kmir --knowledge {place} --set options.schema={file} --out questions"


def print_schema(schema: StarterSchema, out: Path, command: str, *, as_json: bool) -> None:
    """Print the number of entries of a starter schema, and the command to run next."""
    if as_json:
        counts = {name: getattr(schema, name) for name in ("relations", "hierarchies", "comparisons", "reviews")}
        print_json({"out": str(out), **counts, "left_out": list(schema.left_out)})
        return
    console = _console()
    hierarchies = counted(schema.hierarchies, "hierarchy", "hierarchies")
    console.print(
        f"{out}: {counted(schema.relations, 'relation')}, {hierarchies}, {counted(schema.comparisons, 'comparison')}; "
        f"{counted(schema.reviews, 'guess', 'guesses')} to review"
    )
    if schema.left_out:
        console.print(f"not asked, because the objects have no names: {', '.join(schema.left_out)}")
    console.print(f"Edit it, then: {command}")


def print_export(written: Mapping[str, int], out: Path, *, as_json: bool) -> None:
    """Print the number of exported rows per table, and the path of the export."""
    if as_json:
        print_json({"out": str(out), **written})
        return
    console = _console()
    console.print(f"{', '.join(counted(count, table[:-1]) for table, count in written.items())}: {out}")
    if out.suffix == ".nt":
        console.print("N-Triples cannot hold times, units, proofs and details. Export to a folder to keep them.")


def print_queries(*, as_json: bool) -> None:
    """Print the names and descriptions of the bundled SPARQL queries."""
    from merkhet.knowledge.sparql_queries import bundled_queries

    print_descriptions(dict(bundled_queries()), as_json=as_json)


def print_rules(*, as_json: bool) -> None:
    """Print the names and descriptions of the inference rules."""
    descriptions = {
        name: rule.description + (f"  ({rule.alias})" if rule.alias else "") for name, rule in RULES.items()
    }
    print_descriptions(descriptions, as_json=as_json)


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
