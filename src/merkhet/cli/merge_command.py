"""The command ``merkhet merge``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from merkhet.cli.arguments import Json, Quiet, Trust

if TYPE_CHECKING:
    from merkhet.engine.distribute.shards import ShardRun


def merge(
    shards: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders written by 'merkhet run --shard'.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="Folder for the merged run.", show_default=False)],
    trust: Trust = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Merge the shards of a run, score them and write a report.

    The result is that of a single process. Missing, repeated or unfinished shards and shards of different studies are
    refused.
    """
    from merkhet.cli.run_output import print_run
    from merkhet.core.progress_bars import make_progress
    from merkhet.engine.distribute.merge_shards import merge_runs

    with make_progress(plain=quiet or json) as progress:
        finished = merge_runs(shards, out, progress, trust=trust)
    print_run(finished, as_json=json)


def print_shard(asked: ShardRun, *, as_json: bool) -> None:
    """Print the folder of a shard, and the command that merges all shards."""
    from merkhet.cli.output import print_lines

    shard = asked.shard
    content = {"folder": str(asked.folder), "shard": shard.number, "of": shard.of, "asked": asked.asked}
    together = f"merkhet merge {_all_shards(asked)} --out RUN"
    lines = [
        f"Shard {shard} is finished: {asked.folder}. To compute scores, merge all {shard.of} shards:",
        f"  {together}",
    ]
    print_lines(lines, {**content, "merge": together}, as_json=as_json)


def _all_shards(asked: ShardRun) -> str:
    """Guess a glob pattern for the folders of all shards from the folder of one shard.

    Return ``RUN…`` if the folder name gives no pattern.
    """
    name, number = asked.folder.name, str(asked.shard.number)
    usual = f"shard-{number}-of-"
    if usual in name:
        name = name.replace(usual, "shard-*-of-")
    elif name.endswith(number):
        name = f"{name.removesuffix(number)}*"
    else:
        return "RUN…"
    return shlex.quote(str(asked.folder.parent / name)).replace("'", "") if " " not in str(asked.folder) else "RUN…"
