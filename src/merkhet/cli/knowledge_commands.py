"""Commands on knowledge bases: import, infer, explain, info and export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merkhet.cli.arguments import BuildEngine, Json, Memory, Quiet

knowledge_app = typer.Typer(
    name="knowledge",
    help="Import knowledge, and infer what follows by rules, with proofs.",
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
            help="The store, a .duckdb file; created if it does not exist.",
            show_default=False,
        ),
    ],
    language: Annotated[Pairs, typer.Option(metavar="CODE", help="Only names in this language. Repeatable.")] = None,
    predicate: Annotated[Pairs, typer.Option(metavar="NAME", help="Only facts of this predicate. Repeatable.")] = None,
    columns: Annotated[
        Pairs,
        typer.Option(
            "--map", metavar="COLUMN=HEADER", help="For tables: the header of this column in the file (subject=person)."
        ),
    ] = None,
    constant: Annotated[
        Pairs,
        typer.Option(metavar="COLUMN=TEXT", help="For tables: the same text in every row (predicate='held office')."),
    ] = None,
    query: Annotated[
        str | None, typer.Option(metavar="NAME_OR_FILE", help="For endpoints: name of a bundled query, or a .rq file.")
    ] = None,
    settings: Annotated[
        Pairs, typer.Option("--set", metavar="KEY=VALUE", help="An option of the source. Repeatable.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip and count bad rows instead of refusing the import.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Import facts, names and ontologies into a knowledge base. The import is atomic and idempotent."""
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
        Path | None, typer.Option(metavar="FILE", help="A YAML file of rules, in addition to those of the ontology.")
    ] = None,
    rule: Annotated[Pairs, typer.Option(metavar="NAME", help="Only this rule. Repeatable.")] = None,
    engine: BuildEngine = None,
    memory: Memory = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Infer all facts that follow by the rules, with proofs.

    Contradictions are reported.
    """
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
            metavar="FACT", help="Id of a fact, or subject, predicate and object as ids or names.", show_default=False
        ),
    ],
    language: Annotated[str, typer.Option(metavar="CODE", help="Language of the names.")] = "en",
    json: Json = False,
) -> None:
    """Print the proof of a fact, down to stated facts."""
    from merkhet.cli.knowledge_output import print_proofs

    print_proofs(store, fact, language, as_json=json)


@knowledge_app.command()
def info(store: Store, json: Json = False) -> None:
    """Print the content of a knowledge base and its sources."""
    from merkhet.cli.knowledge_output import print_info

    print_info(store, as_json=json)


@knowledge_app.command()
def export(
    store: Store,
    out: Annotated[
        Path,
        typer.Option(
            metavar="PLACE", help="A folder, or a .parquet, .csv, .tsv, .jsonl or .nt file.", show_default=False
        ),
    ],
    predicate: Annotated[Pairs, typer.Option(metavar="NAME", help="Only facts of this predicate. Repeatable.")] = None,
    stated: Annotated[bool, typer.Option("--stated", help="Only stated facts.")] = False,
    json: Json = False,
) -> None:
    """Export the facts as tables or N-Triples."""
    from merkhet.cli.knowledge_output import print_export
    from merkhet.knowledge.store_export import export_knowledge

    written = export_knowledge(store, out, inferred=not stated, predicates=tuple(predicate or ()))
    print_export(written, out, as_json=json)


@knowledge_app.command()
def sources(json: Json = False) -> None:
    """List the sources that can be imported."""
    from merkhet.cli.list_commands import list_parts
    from merkhet.knowledge import SOURCES

    list_parts(SOURCES, "The source follows from the name of the file; SOURCE=PLACE sets it.", as_json=json)


@knowledge_app.command()
def queries(json: Json = False) -> None:
    """List the bundled queries for SPARQL endpoints."""
    from merkhet.cli.knowledge_output import print_queries

    print_queries(as_json=json)


@knowledge_app.command()
def rules(json: Json = False) -> None:
    """List the rules that infer facts."""
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
