"""The command ``merkhet explore``."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from merkhet.engine.run_folder import Run
    from merkhet.models.model_lookup import ModelSpec
    from merkhet.models.protocol import Model
    from merkhet.reports.explorer.explorer_server import ExplorerServer
    from merkhet.reports.explorer.explorer_views import Views
    from merkhet.reports.explorer.playground import Playable, Player


def explore(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.", show_default=False)],
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, metavar="N", help="Port [default: 8765, or the next free port]."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME_OR_FOLDER", help="Another model for the playground. Repeatable."),
    ] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Allow the models of the playground to run their own code.")
    ] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Explore a run in a browser.

    Filter and search its questions, compare two models, and try sentences in the playground. The page is served on this
    machine only (127.0.0.1) and shows this run only. Ctrl-C stops it.
    """
    from merkhet.engine.run_folder import open_run
    from merkhet.reports.explorer.explorer_views import Views
    from merkhet.reports.explorer.playground import Player
    from merkhet.reports.explorer.run_tables import load_tables

    opened = open_run(run)
    for name in ("questions.parquet", "answers.parquet", "candidates.parquet", "facts.parquet"):
        opened.verified_file(name)
    players = [*_run_models(opened, trust_remote_code), *_named_models(model or (), trust_remote_code)]
    card = opened.record.get("card") or {}
    title = str((opened.study.title if _has_study(opened) else None) or card.get("title") or opened.folder.name)
    # If two models have the same name, the one from the command line replaces the one from the run.
    views = Views(load_tables(opened.folder), opened.folder, title, opened.record)
    serve(views, Player(list({playable.name: playable for playable in players}.values())), port, open_page=open_page)
    # Exit without joining threads, which may still serve a page or load a model; nothing needs saving.
    os._exit(0)


def serve(views: Views, player: Player, port: int | None, *, open_page: bool = False) -> None:
    """Print the address of the explorer page, and serve the page until a signal ends it."""
    from merkhet.core.text import counted
    from merkhet.reports.explorer.explorer_server import open_server

    server = open_server(views, player, port)
    about = views.run()
    counts = (about["questions"], "question"), (about["answers"], "answer")
    models = counted(len({way["model"] for way in about["ways"]}), "model")
    with _shut_down_by_signals(server):
        typer.echo(f"{', '.join(counted(*pair) for pair in counts)} by {models}: {views.folder}")
        typer.echo(f"{server.url}    Ctrl-C stops it")
        sys.stdout.flush()
        if open_page:
            import webbrowser

            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        server.serve_forever(poll_interval=0.1)


@contextmanager
def _shut_down_by_signals(server: ExplorerServer) -> Iterator[None]:
    """Shut the server down on SIGINT, SIGTERM or SIGHUP; close its socket at the end of the ``with`` block."""
    from merkhet.core import interrupts

    def end(*_: Any) -> None:
        # shutdown() waits for the serving loop. The loop runs in this thread, so the call needs another thread.
        threading.Thread(target=server.shutdown, daemon=True).start()

    interrupts.hand_over()
    previous = {number: signal.signal(number, end) for number in interrupts.SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        server.server_close()


def _has_study(run: Run) -> bool:
    return (run.folder / "study.yaml").is_file()


def _run_models(run: Run, trusted: bool) -> list[Playable]:
    """List the models of a run for the playground; each is loaded when it is first used."""
    from merkhet.reports.explorer.playground import Playable

    specs = _study_specs(run) if _has_study(run) else {}
    entries: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in run.record.get("models") or ():
        entries.setdefault((str(entry.get("name")), str(entry.get("fingerprint"))), entry)
    all_names = [name for name, _ in entries]
    players = []
    for (name, fingerprint), entry in entries.items():
        kind, learned = str(entry.get("kind") or ""), entry.get("learned")
        label = name if all_names.count(name) == 1 else f"{name} ({fingerprint[:8]})"
        if reason := _unplayable_reason(name, kind, entry, specs):
            players.append(Playable(label, kind, None, reason))
        elif isinstance(learned, dict):
            players.append(Playable(label, kind, _learned_loader(run.folder, label, kind, fingerprint)))
        else:
            spec = _at_source(_set_trust(specs[name], trusted), str(entry.get("source") or ""))
            players.append(Playable(label, kind, _loader(spec, fingerprint)))
    return players


def _unplayable_reason(name: str, kind: str, entry: dict[str, Any], specs: dict[str, ModelSpec]) -> str:
    """Return why a model cannot be used in the playground; an empty string if it can be used.

    The run may come from somebody else, so that neither code is imported nor a key sent because it says so.
    """
    from merkhet.models import MODELS
    from merkhet.models.model_lookup import has_endpoint, is_registered_model

    learned = entry.get("learned")
    if kind == "baseline":
        return "a baseline counts or guesses; it does not read sentences"
    if kind == "predictions":
        return "answers from a file, not a model"
    if isinstance(learned, dict):
        return "it recalls stored symbols, not words" if learned.get("learner") == "memorize" else ""
    if name not in specs:
        base = name.rpartition(",")[0]
        return (
            f"the run asked it with learned parameters; use {base} here"
            if base in specs
            else "the study does not name it"
        )
    spec = specs[name]
    if has_endpoint(spec):
        return "it is behind an endpoint, and asking it would send your key there"
    if is_registered_model(spec.model) and not MODELS.is_available(spec.model):
        return f"it is created by code; to run that code, start with --model {spec.model}"
    return ""


def _study_specs(run: Run) -> dict[str, ModelSpec]:
    """Return the spec of each model in a run's study, by every name that the run may use for the model.

    The suite's model settings are applied to each spec.
    """
    from merkhet.suites import SUITES

    study = run.study
    settings = SUITES.get(study.suite).model_settings(study) if SUITES.is_available(study.suite) else {}
    specs = {}
    for choice in study.models:
        spec = dataclasses.replace(choice.spec(), **settings)
        names = (spec.label, spec.model, Path(spec.model).name.removesuffix(".gguf").removesuffix(".csv"))
        specs.update({name: spec for name in names if name})
    return specs


def _named_models(names: Sequence[str], trusted: bool) -> list[Playable]:
    """List the models named on the command line for the playground; each is loaded when it is first used.

    Raises:
        InputError: A model is not found.
    """
    from merkhet.models.model_lookup import ModelSpec, resolve_model
    from merkhet.reports.explorer.playground import Playable

    players = []
    for name in names:
        spec = ModelSpec(name, trust_remote_code=trusted)
        resolved = resolve_model(spec)
        players.append(Playable(resolved.name, resolved.kind, _loader(spec, resolved.fingerprint)))
    return players


def _set_trust(spec: ModelSpec, trusted: bool) -> ModelSpec:
    """Set whether a model may run its own code.

    The value in the run's study is ignored, because the run may come from somebody else.
    """
    return dataclasses.replace(spec, trust_remote_code=trusted)


def _at_source(spec: ModelSpec, source: str) -> ModelSpec:
    """Point a spec to the recorded path of its model if the path in the study does not exist.

    The paths in a study may be relative to a folder that the run does not record.
    """
    is_moved = bool(source) and not Path(spec.model).exists() and Path(source).exists()
    return dataclasses.replace(spec, model=source) if is_moved else spec


def _loader(spec: ModelSpec, fingerprint: str) -> Callable[[], Model]:
    def load() -> Model:
        from merkhet.core.errors import MerkhetError
        from merkhet.models.loading import load_model
        from merkhet.models.model_lookup import resolve_model

        resolved = resolve_model(spec)
        if resolved.fingerprint != fingerprint:
            raise MerkhetError(
                f"{spec.model} has changed since this run (its files have another hash); to use it as it is now, "
                "start with --model"
            )
        return load_model(resolved)

    return load


def _learned_loader(folder: Path, name: str, kind: str, fingerprint: str) -> Callable[[], Model]:
    def load() -> Model:
        from merkhet.core.errors import MerkhetError
        from merkhet.models.loading import load_model
        from merkhet.models.model_lookup import ModelSpec
        from merkhet.training.artifact import read_artifact

        for file in sorted((folder / ".merkhet" / "learned").glob("*/learned.json")):
            learned = read_artifact(file)
            if learned.fingerprint == fingerprint:
                return load_model(ModelSpec(str(learned.folder), label=name, kind=kind))
        raise MerkhetError(f"the trained parameters of {name} are no longer in the run's folder; start the run again")

    return load
