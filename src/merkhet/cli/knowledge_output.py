"""What the commands on knowledge bases print."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from merkhet.core.errors import InputError
from merkhet.knowledge.rules.fixpoint import Inference
from merkhet.knowledge.rules.rulebook import RULES
from merkhet.knowledge.store import KnowledgeBase
from merkhet.knowledge.store_import import ImportSummary

_SHOWN = 5


def print_imports(done: Sequence[ImportSummary], store: Path, *, as_json: bool) -> None:
    """What each place gave, what was left out and why, and what to do next."""
    if as_json:
        _print_json({"store": str(store), "imports": [one.as_dict() for one in done]})
        return
    console = _console()
    for one in done:
        parts = [_many(one.facts, "fact"), f"{one.added:,} new"]
        parts += [f"{one.repeated:,} repeated"] if one.repeated else []
        parts += [_many(one.names, "new name")] if one.names else []
        console.print(f"{one.place} ({one.source}): {', '.join(parts)}")
        if one.bad:
            console.print(f"  {_many(one.bad, 'bad row')} left out:")
            for example in one.examples:
                console.print(f"    {example}")
            if one.bad > len(one.examples):
                console.print(f"    … and {one.bad - len(one.examples):,} more")
        if one.left_out:
            told = ", ".join(
                f"{count:,} {what}" for what, count in sorted(one.left_out.items(), key=lambda i: (-i[1], i[0]))
            )
            console.print(f"  not taken: {told}")
    console.print(f"Store: {store}    What is in it: merkhet knowledge info {_typed(store)}")


def print_inference(result: Inference, store: Path, *, as_json: bool) -> None:
    """What followed by which rule, and what does not fit together."""
    if as_json:
        _print_json({"store": str(store), **result.as_dict()})
        return
    console = _console()
    rounds = _many(result.rounds, "round")
    console.print(f"{_many(result.inferred, 'fact')} inferred from {result.stated:,} stated, in {rounds}")
    if result.by_rule:
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 2))
        table.add_column(no_wrap=True)
        table.add_column(justify="right")
        table.add_column()
        for name, count in sorted(result.by_rule.items(), key=lambda item: -item[1]):
            table.add_row(name, f"{count:,}", RULES[name].description)
        console.print(table)
    for cycle in result.cycles[:_SHOWN]:
        console.print(f"circle in the hierarchy: {', '.join(cycle)} are each below the others")
    if len(result.cycles) > _SHOWN:
        console.print(f"… and {len(result.cycles) - _SHOWN} more circles")
    if result.contradicted:
        console.print(f"{_many(result.contradicted, 'contradiction')}:")
        _print_contradictions(console, result, store)
    else:
        console.print("no contradictions")
    if result.inferred:
        console.print(f"Why a fact holds: merkhet knowledge explain {_typed(store)} SUBJECT PREDICATE OBJECT")


def _print_contradictions(console: Console, result: Inference, store: Path) -> None:
    from merkhet.knowledge.proofs import format_fact

    with KnowledgeBase.open(store) as knowledge:
        labels = knowledge.labels()
        for one in result.contradictions[: 2 * _SHOWN]:
            facts = [fact for fact in (knowledge.fact(key) for key in one.facts) if fact]
            texts = "  and  ".join(
                format_fact(fact, labels) + (" [inferred]" if fact["rule"] else "") for fact in facts
            )
            console.print(f"  {labels.get(one.about, one.about)} ({one.kind}): {texts}")
    if result.contradicted > 2 * _SHOWN:
        console.print(f"  … and {result.contradicted - 2 * _SHOWN:,} more; --json prints up to 1,000")


def print_proofs(store: Path, words: Sequence[str], language: str, *, as_json: bool) -> None:
    """The proof tree of each fact that is meant."""
    from merkhet.knowledge.proofs import find_facts, format_proof, proof_labels, prove

    with KnowledgeBase.open(store) as knowledge:
        proofs = [prove(knowledge, fact) for fact in find_facts(knowledge, words)]
        if as_json:
            try:
                _print_json([proof.as_dict() for proof in proofs])
            except RecursionError as error:
                raise InputError("the proof is too deep for JSON; print it without --json") from error
            return
        console = _console()
        for place, proof in enumerate(proofs):
            if place:
                console.print()
            for line in format_proof(proof, proof_labels(knowledge, proof, language)):
                console.print(line, markup=False)


def print_info(store: Path, *, as_json: bool) -> None:
    """Counts, predicates, languages and imports."""
    from merkhet.knowledge.stats import describe

    found = describe(store)
    if as_json:
        _print_json(found)
        return
    console = _console()
    console.print(
        f"{store}: {_many(found['facts'], 'fact')} ({found['stated']:,} stated, {found['inferred']:,} inferred) on "
        f"{_many(found['subjects'], 'subject')} by {_many(found['predicates'], 'predicate')}; "
        f"{found['numbers']:,} with a number, {found['timed']:,} with times; {found['bytes'] / 1e6:,.1f} MB"
    )
    if found["ontology"]:
        console.print("ontology: " + ", ".join(f"{name} {count:,}" for name, count in found["ontology"].items()))
    if found["by_rule"]:
        console.print("inferred: " + ", ".join(f"{count:,} by {rule}" for rule, count in found["by_rule"].items()))
    _print_predicates(console, found)
    if found["languages"]:
        spoken = ", ".join(f"{row['language']} {row['names']:,}" for row in found["languages"][: _SHOWN * 2])
        more = (
            f" and {len(found['languages']) - _SHOWN * 2} more languages"
            if len(found["languages"]) > _SHOWN * 2
            else ""
        )
        console.print(f"names: {spoken}{more}")
    if found["shared_labels"]:
        console.print(f"ambiguous: {_many(found['shared_labels'], 'label')} shared by several entities of one language")
    for cycle in found["cycles"][:_SHOWN]:
        console.print(f"circle in the hierarchy: {', '.join(cycle)} are each below the others")
    for row in found["imports"]:
        console.print(f"from {row['place']} ({row['source']}), {row['done_at'][:10]}: {_many(row['facts'], 'fact')}")
    if found["inference"] and found["inference"]["stale"]:
        console.print(f"Facts came in after the last inference. Infer anew: merkhet knowledge infer {_typed(store)}")


def _print_predicates(console: Console, found: Mapping[str, Any]) -> None:
    table = Table(box=None, padding=(0, 1, 0, 2), header_style="")
    table.add_column("predicate", overflow="fold")
    for column in ("facts", "inferred", "subjects", "objects"):
        table.add_column(column, justify="right")
    for row in found["top_predicates"]:
        table.add_row(row["predicate"], *[f"{row[name]:,}" for name in ("facts", "inferred", "subjects", "objects")])
    console.print(table)
    rest = found["predicates"] - len(found["top_predicates"])
    if rest > 0:
        console.print(f"  … and {_many(rest, 'predicate')} more")


def print_export(written: Mapping[str, int], out: Path, *, as_json: bool) -> None:
    """How much was written, and where."""
    if as_json:
        _print_json({"out": str(out), **written})
        return
    console = _console()
    console.print(f"{', '.join(_many(count, what[:-1]) for what, count in written.items())}: {out}")
    if out.suffix == ".nt":
        console.print("Times, units, proofs and details have no place in N-Triples; a folder of tables keeps them.")


def print_queries(*, as_json: bool) -> None:
    """The ready queries, with what each gives."""
    from merkhet.knowledge.sparql_queries import bundled_queries

    _print_pairs(dict(bundled_queries()), as_json=as_json)


def print_rules(*, as_json: bool) -> None:
    """The rules, with what each says."""
    says = {name: rule.description + (f"  ({rule.alias})" if rule.alias else "") for name, rule in RULES.items()}
    _print_pairs(says, as_json=as_json)


def _print_pairs(pairs: Mapping[str, str], *, as_json: bool) -> None:
    if as_json:
        _print_json([{"name": name, "about": about} for name, about in pairs.items()])
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, about in pairs.items():
        table.add_row(name, about)
    _console().print(table)


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True, markup=False, emoji=False)


def _typed(path: Path) -> str:
    """A path as it is typed in a shell."""
    return shlex.quote(str(path))


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _print_json(content: Any) -> None:
    Console(soft_wrap=True).out(json.dumps(content, ensure_ascii=False, indent=2), highlight=False)
