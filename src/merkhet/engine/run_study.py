"""Execution of a user's request: resolution, planning and execution of a study in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from merkhet.core.progress import Progress, SilentProgress
from merkhet.engine.resolve_study import Request, ResolvedStudy, memorizes, resolve_study
from merkhet.engine.run_files import SHARD_FILE, TRAININGS_FILE
from merkhet.engine.run_folder import Run

if TYPE_CHECKING:
    from merkhet.core.registry import Registry
    from merkhet.engine.distribute.shards import ShardRun
    from merkhet.engine.plan import Plan


def run_study(
    request: Request,
    suites: Registry,
    *,
    out: str | Path | None,
    progress: Progress | None,
    command: str,
) -> Run:
    """Resolve a request, and run the study in a folder.

    Args:
        out: Folder of the run, ``runs/<suite>`` by default.
        command: Command line to record in run.json.

    Raises:
        InputError: A name, value or path is invalid.
    """
    resolved = resolve_study(request, suites)
    folder = Path(out) if out is not None else Path("runs") / resolved.suite.name
    _execute(resolved, _make_plan(resolved, command), folder, progress)
    return Run(folder)


def run_study_shard(
    request: Request,
    suites: Registry,
    shard: str,
    *,
    out: str | Path | None,
    progress: Progress | None,
    command: str,
) -> ShardRun:
    """Build all questions of a study, and ask those of one shard.

    Args:
        shard: Number of the shard and number of shards, such as ``3/8``.
        out: Folder of the shard; by default ``runs/<suite>-shard-3-of-8`` for the shard ``3/8``.
        command: Command line to record in shard.json.
    """
    from merkhet.engine.distribute.shard_permissions import remember_shard_permissions
    from merkhet.engine.distribute.shards import ShardRun, check_shard_folder, parse_shard, shard_plan

    share = parse_shard(shard)
    resolved = resolve_study(request, suites)
    default = Path("runs") / f"{resolved.suite.name}-shard-{share.number}-of-{share.of}"
    folder = Path(out) if out is not None else default
    check_shard_folder(folder, share)
    whole_plan = _make_plan(resolved, command)
    plan = shard_plan(whole_plan, share, resolved.study, resolved.home, command)
    remember_shard_permissions(folder / SHARD_FILE, whole_plan.steps, resolved.home.resolve())
    _execute(resolved, plan, folder, progress)
    return ShardRun(folder, share)


def _make_plan(resolved: ResolvedStudy, command: str) -> Plan:
    if memorizes(resolved.study):
        return resolved.suite.memorize_plan(resolved, command)
    from merkhet.engine.planning import make_standard_plan

    return make_standard_plan(resolved, command)


def _execute(resolved: ResolvedStudy, plan: Plan, folder: Path, progress: Progress | None) -> None:
    from merkhet.engine.executor import execute

    reporter = progress or SilentProgress()
    if resolved.ask_engine is None:
        execute(plan, folder, resolved.home, reporter)
    else:
        from merkhet.engine.distribute.ray_cluster import ray_session

        with ray_session(resolved.ask_engine, plan, resolved.home, reporter):
            execute(plan, folder, resolved.home, reporter)
    if resolved.study.report == "none":  # A report from an earlier run in this folder may show old scores.
        (folder / "report.html").unlink(missing_ok=True)
    if resolved.study.trainings == 1:
        (folder / TRAININGS_FILE).unlink(missing_ok=True)
