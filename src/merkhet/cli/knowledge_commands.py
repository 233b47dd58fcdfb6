"""The commands ``merkhet knowledge``: import, infer, explain, info, export and lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merkhet.cli.arguments import BuildEngine, Json, Memory, Quiet

knowledge_app = typer.Typer(
    name="knowledge",
    help="Import knowledge, infer facts with proofs, and export.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Store = Annotated[Path, typer.Argument(metavar="KB", help="A knowledge base, a .duckdb file.", show_default=False)]
Pairs = list[str] | None


@knowledge_app.command("import")
def import_(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="PLACE...",
            help="Files, folders, packs, addresses of SPARQL endpoints, other knowledge bases, or SOURCE=PLACE.",
            show_default=False,
        ),
    ],
    into: Annotated[
        Path,
        typer.Option(
            "--into",
            "--out",
            metavar="KB",
            help="The knowledge base, a .duckdb file; created if missing.",
            show_default=False,
        ),
    ],
    language: Annotated[
        Pairs, typer.Option(metavar="CODE", help="Import only names in this language. Repeatable.")
    ] = None,
    predicate: Annotated[
        Pairs, typer.Option(metavar="NAME", help="Import only facts of this predicate. Repeatable.")
    ] = None,
    columns: Annotated[
        Pairs,
        typer.Option(
            "--map", metavar="COLUMN=NAME", help="Tables: the name of the column in the file (subject=person)."
        ),
    ] = None,
    constant: Annotated[
        Pairs,
        typer.Option(metavar="COLUMN=TEXT", help="Tables: a constant text for all rows (predicate='held office')."),
    ] = None,
    query: Annotated[
        str | None, typer.Option(metavar="NAME_OR_FILE", help="SPARQL endpoints: a bundled query or a .rq file.")
    ] = None,
    settings: Annotated[
        Pairs, typer.Option("--set", metavar="KEY=VALUE", help="An option of the source. Repeatable.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip and count bad rows instead of rejecting the import.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Import facts, names and ontologies into a knowledge base, atomically and idempotently."""
    from merkhet.cli.knowledge_output import print_imports
    from merkhet.core.progress_bars import make_progress
    from merkhet.knowledge.store_import import import_knowledge

    options = _parse_pairs(settings, "--set")
    options |= {f"map.{name}": column for name, column in _parse_pairs(columns, "--map").items()}
    options |= {f"constant.{name}": text for name, text in _parse_pairs(constant, "--constant").items()}
    options |= {"query": query} if query else {}
    with make_progress(plain=quiet or json) as progress:
        done = import_knowledge(
            places,
            into,
            languages=language or (),
            predicates=predicate or (),
            options=options,
            skip_bad=skip_bad,
            progress=progress,
        )
    print_imports(done, into, as_json=json)


@knowledge_app.command()
def infer(
    store: Store,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A YAML file with axioms beyond those of the knowledge base.")
    ] = None,
    rule: Annotated[Pairs, typer.Option(metavar="NAME", help="Apply only this rule. Repeatable.")] = None,
    engine: BuildEngine = None,
    memory: Memory = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add all facts that follow by the rules, with their proofs; report contradictions."""
    from merkhet.cli.knowledge_output import print_inference
    from merkhet.core.compute_engines import choose_build_engine
    from merkhet.core.progress_bars import make_progress
    from merkhet.knowledge.rules.fixpoint import infer as infer_facts
    from merkhet.knowledge.rules.rule_files import read_rules

    build_engine = choose_build_engine(engine, memory)
    declared = read_rules(rules) if rules else None
    with make_progress(plain=quiet or json) as progress:
        result = infer_facts(store, rules=rule or (), declared=declared, engine=build_engine, progress=progress)
    print_inference(result, store, as_json=json)


@knowledge_app.command()
def explain(
    store: Store,
    fact: Annotated[
        list[str],
        typer.Argument(
            metavar="FACT", help="An id, or subject, predicate and object as ids or names.", show_default=False
        ),
    ],
    language: Annotated[str, typer.Option(metavar="CODE", help="The language of names.")] = "en",
    json: Json = False,
) -> None:
    """Print the proof of a fact, down to stated facts."""
    from merkhet.cli.knowledge_output import print_proofs

    print_proofs(store, fact, language, as_json=json)


@knowledge_app.command()
def info(store: Store, json: Json = False) -> None:
    """Print the contents of a knowledge base and its imports."""
    from merkhet.cli.knowledge_output import print_info

    print_info(store, as_json=json)


@knowledge_app.command()
def schema(
    store: Store,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The YAML file to write.", show_default=False)],
    language: Annotated[str, typer.Option(metavar="CODE", help="The language of names.")] = "en",
    json: Json = False,
) -> None:
    """Write a starter schema: templates and guesses for questions about a knowledge base, to be edited."""
    from merkhet.cli.knowledge_output import build_command, print_schema
    from merkhet.questions.starter_schema import write_starter_schema

    command = build_command(store, out)
    print_schema(write_starter_schema(store, out, language, command=command), out, command, as_json=json)


@knowledge_app.command()
def export(
    store: Store,
    out: Annotated[
        Path,
        typer.Option(
            metavar="PLACE", help="A folder, or a .parquet, .csv, .tsv, .jsonl or .nt file.", show_default=False
        ),
    ],
    predicate: Annotated[
        Pairs, typer.Option(metavar="NAME", help="Export only facts of this predicate. Repeatable.")
    ] = None,
    stated: Annotated[bool, typer.Option("--stated", help="Export only stated facts.")] = False,
    json: Json = False,
) -> None:
    """Export facts as tables or N-Triples."""
    from merkhet.cli.knowledge_output import print_export
    from merkhet.knowledge.store_export import export_knowledge

    written = export_knowledge(store, out, inferred=not stated, predicates=tuple(predicate or ()))
    print_export(written, out, as_json=json)


@knowledge_app.command()
def sources(json: Json = False) -> None:
    """List the sources of imports."""
    from merkhet.cli.list_commands import list_parts
    from merkhet.knowledge import SOURCES

    list_parts(SOURCES, "The file name selects the source; SOURCE=PLACE sets it.", as_json=json)


@knowledge_app.command()
def queries(json: Json = False) -> None:
    """List the bundled queries for SPARQL endpoints."""
    from merkhet.cli.knowledge_output import print_queries

    print_queries(as_json=json)


@knowledge_app.command()
def rules(json: Json = False) -> None:
    """List the inference rules."""
    from merkhet.cli.knowledge_output import print_rules

    print_rules(as_json=json)


def _parse_pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    from merkhet.core.errors import InputError

    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{option} must have the form NAME=VALUE, got {text!r}")
        pairs[name.strip()] = value
    return pairs
