"""Connection to a Ray cluster, planning of its workers, and checks before a run begins."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from merkhet.core import interrupts
from merkhet.core.child_python import hidden_folders, python_code
from merkhet.core.compute_engines import AskEngine
from merkhet.core.errors import InputError, MerkhetError, first_line
from merkhet.core.progress import Progress
from merkhet.core.text import counted
from merkhet.core.version import __version__
from merkhet.engine.asker import AskParams
from merkhet.engine.plan import Plan
from merkhet.engine.record_step import installed_versions
from merkhet.models.model_lookup import resolve_model

logger = logging.getLogger("merkhet.engine")

DEFAULT_CORES = 4
"""Default number of CPU cores of a worker without a GPU."""
OBJECT_STORE_BYTES = 128 * 2**20
"""Size in bytes of the object store of a local Ray cluster, which holds blocks of questions and their answers."""
SOCKET_SECONDS = 5
CONNECT_SECONDS = 30
INHERITED_VARIABLES = ("HF_HUB_OFFLINE", "HF_HOME", "MERKHET_CACHE", "GOMP_SPINCOUNT", "TOKENIZERS_PARALLELISM")
"""Environment variables that workers inherit from this process.

A worker ignores a variable that it has already set, or that names a folder missing on its machine.
"""

_RAY_SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS": "0"}
_CONNECT_SCRIPT = "import ray; ray.init(sys.argv[1], logging_level='ERROR', log_to_driver=False); ray.nodes()"
_joined: list[str] = []
"""Address of the cluster that :func:`connect` has joined or started; empty if this process is not connected."""


@dataclass(frozen=True)
class WorkerResources:
    """Number of workers, and the CPU cores and GPUs of each worker."""

    workers: int
    cores: int
    """CPU cores of each worker."""
    gpus: int
    """GPUs of each worker."""


def connect(address: str | None) -> Any:
    """Connect to a Ray cluster, unless this process is connected already.

    Args:
        address: Address of the cluster; if None, a local cluster is started.

    Returns:
        The module ``ray``.

    Raises:
        InputError: The cluster cannot be reached, or Ray cannot be started.
    """
    for name, value in _RAY_SETTINGS.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():
        return ray
    if address is not None:
        _check_address(address)
    options: dict[str, Any] = {"address": address or "local", "logging_level": logging.ERROR, "log_to_driver": False}
    if address is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        options |= {"num_cpus": cores, "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    # Ray blocks Ctrl-C for the processes that it starts. If a closing terminal ended them, Ray would end this process.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP}) if hasattr(signal, "SIGHUP") else None
    try:
        ray.init(**options)
    except Exception as error:
        where = "here" if address is None else f"at {address}"
        verb = "started" if address is None else "joined"
        raise InputError(f"Ray cannot be {verb} {where}: {_reason(error)}") from error
    finally:
        if blocked is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    interrupts.install_again()  # Ray prints a stack trace for SIGTERM.
    _joined.append(address or "local")
    return ray


def disconnect() -> None:
    """Disconnect from the cluster that :func:`connect` joined, or stop the cluster that it started."""
    if _joined:
        import ray

        ray.shutdown()
        _joined.clear()


def _check_address(address: str) -> None:
    """Check that a Ray cluster answers at ``address``.

    Without this check, Ray would try to connect for minutes and then end this process.

    Raises:
        InputError: The address is invalid, the cluster does not answer, or it needs a token.
    """
    if address != "auto":
        host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
        if not host or not port.isdigit():
            raise InputError(f"{address!r} is not an address of a Ray cluster; write ray://HOST:10001 or ray:HOST:6379")
        try:
            socket.create_connection((host.strip("[]"), int(port)), SOCKET_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise _no_cluster(address, getattr(error, "strerror", None) or first_line(error)) from error
    try:
        done = subprocess.run(
            [*python_code(_CONNECT_SCRIPT), address],
            check=False,
            capture_output=True,
            text=True,
            timeout=CONNECT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        if b"InvalidAuthToken" in (error.stderr or b""):
            raise _no_token(address) from error
        reason = f"no answer within {CONNECT_SECONDS} seconds; if it needs a token, set RAY_AUTH_MODE=token"
        raise _no_cluster(address, reason) from error
    if "InvalidAuthToken" in done.stderr or "AuthenticationError" in done.stderr:
        raise _no_token(address)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "Error: " in line] or done.stderr.splitlines()
        reason = lines[-1].strip() if lines else f"exit code {done.returncode}"
        raise _no_cluster(address, reason.partition(". ")[0])


def _no_cluster(address: str, reason: str) -> InputError:
    where = "on this machine" if address == "auto" else f"at {address}"
    return InputError(
        f"there is no Ray cluster {where} ({reason.rstrip('.')}); start one there (ray start --head), or ask on "
        "this machine with --engine ray"
    )


def _no_token(address: str) -> InputError:
    return InputError(
        f"the Ray cluster at {address} needs a token; set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH to the file "
        "that holds it"
    )


def _reason(error: BaseException) -> str:
    return first_line(error).rstrip(".")


def plan_workers(ray: Any, engine: AskEngine) -> WorkerResources:
    """Choose the number of workers of a cluster, and the resources of each worker.

    By default there is one worker per GPU or, without GPUs, one worker per group of cores. ``engine.workers`` and
    ``engine.cores`` override these defaults.

    Raises:
        InputError: No machine of the cluster has as many cores as a worker needs.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = int(sum(node.get("GPU", 0) for node in nodes))
    usable = [int(node.get("CPU", 0)) for node in nodes if not gpus or node.get("GPU", 0)]
    largest, all_cores = max(usable, default=0), sum(usable)
    workers, cores = engine.workers, engine.cores
    if largest < (cores or 1):
        raise InputError(
            f"no machine of the Ray cluster has {cores or 1} cores for a worker; the largest has {largest}. Set fewer "
            "with --cores-per-worker"
        )
    if cores is None:
        cores = 1 if gpus else min(DEFAULT_CORES, largest)
        if workers is not None and not gpus:
            cores = max(1, min(cores, all_cores // workers))
    room = gpus if gpus else sum(node_cores // cores for node_cores in usable)
    return WorkerResources(workers or max(1, room), cores, 1 if gpus else 0)


def worker_environment() -> dict[str, str]:
    """Return the environment variables that workers inherit from this process."""
    return {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}


def worker_class() -> type:
    """Return the Ray actor class of workers.

    The class is local, so that it is pickled by value and runs even where merkhet is missing or has another version.
    """

    class Worker:
        def __init__(self, environment: dict[str, str], cores: int, hidden: list[str]) -> None:
            import sys

            # Ray lets workers import modules from the folder in which the command was started.
            sys.path[:] = [folder for folder in sys.path if folder not in hidden]
            import os
            from pathlib import Path

            for name, value in environment.items():
                if not Path(value).is_absolute() or Path(value).is_dir():
                    os.environ.setdefault(name, value)
            os.environ["OMP_NUM_THREADS"] = str(cores)
            self.cores = cores
            self.state: dict[str, object] = {}

        def greet(self) -> dict[str, object]:
            import os
            import platform

            about: dict[str, object] = {"node": platform.node(), "process": os.getpid()}
            try:
                from merkhet.core.version import __version__

                return {**about, "merkhet": __version__}
            except Exception as error:
                return {**about, "merkhet": None, "problem": f"{type(error).__name__}: {error}"}

        def call(self, name: str, *arguments: object) -> object:
            from merkhet.engine.distribute import _ray_worker as ray_worker

            return getattr(ray_worker, name)(self.state, self.cores, *arguments)

    return Worker


def check_worker_version(greeting: Mapping[str, Any]) -> None:
    """Check that a worker has the same version of merkhet as this process.

    Raises:
        InputError: The worker has another version, or merkhet is not installed there.
    """
    version = greeting["merkhet"]
    if version == __version__:
        return
    has = f"merkhet {version}" if version else f"no merkhet ({first_line(Exception(str(greeting.get('problem'))))})"
    raise InputError(
        f"the worker on {greeting['node']} has {has}, and this is merkhet {__version__}; install the same version "
        f"there: pip install merkhet=={__version__}"
    )


def check_worker_model(report: Mapping[str, Any]) -> None:
    """Check that a worker has the same model as this process.

    Raises:
        InputError: The worker does not have the model, or its model has another fingerprint.
    """
    problem = report.get("problem")
    if problem:
        raise InputError(
            f"the worker on {report['node']} cannot ask {report['name']}: {str(problem).rstrip('.')}. Workers look "
            "for a model at the same path as this process: copy it there, or to a disk that both share"
        )
    fingerprint, expected = str(report["fingerprint"]), str(report["expected"])
    if fingerprint != expected:
        raise InputError(
            f"the worker on {report['node']} has a different {report['name']}: its fingerprint is {fingerprint[:12]} "
            f"there and {expected[:12]} here; copy the model there again"
        )


def report_versions(report: Mapping[str, Any], say: Any) -> None:
    """Print which numerical packages have other versions on a worker; the last digits of scores may then differ."""
    local_versions = installed_versions()
    differing = [
        f"{name} {version} (here {local_versions[name]})"
        for name, version in report["versions"].items()
        if name in ("torch", "transformers", "tokenizers", "numpy") and local_versions.get(name, version) != version
    ]
    if differing:
        say(f"  the worker on {report['node']} has {', '.join(differing)}: last digits of scores may differ")


def check_cluster(engine: AskEngine, plan: Plan, home: Path, progress: Progress) -> None:
    """Check the connection, version of merkhet and models of all machines of a cluster before a plan is executed.

    Raises:
        InputError: The cluster does not answer, or a machine has another version of merkhet or other models.
    """
    ray = connect(engine.address)
    resources = plan_workers(ray, engine)
    models = _worker_models(plan, home)
    nodes = [
        node for node in ray.nodes() if node["Alive"] and node["Resources"].get("GPU" if resources.gpus else "CPU")
    ]
    progress.say(f"Ray at {engine.address}: {counted(len(nodes), 'machine')}, {counted(resources.workers, 'worker')}")
    with _workers_on(ray, nodes) as workers:
        for greeting in ray.get([worker.greet.remote() for worker in workers]):
            check_worker_version(greeting)
        for reports in ray.get(
            [worker.call.remote("report_models", models, str(home.resolve())) for worker in workers]
        ):
            for report in reports:
                check_worker_model(report)


@contextmanager
def _workers_on(ray: Any, nodes: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """Start a worker without reserved cores on each node, and stop these workers when the context ends."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    actor = ray.remote(worker_class())
    workers = [
        actor.options(
            num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
        ).remote(worker_environment(), 1, hidden_folders())
        for node in nodes
    ]
    try:
        yield workers
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise MerkhetError(f"a machine of the Ray cluster does not answer: {_reason(error)}") from error
    finally:
        for worker in workers:
            ray.kill(worker)


def _worker_models(plan: Plan, home: Path) -> list[dict[str, Any]]:
    """List the untrained models of a plan that workers can load, with their fingerprints on this machine."""
    from merkhet.engine._ask_step import reason_to_stay_local

    models: dict[str, dict[str, Any]] = {}
    for step in plan.steps:
        if not isinstance(step.params, AskParams) or step.params.learned:
            continue
        resolved = resolve_model(step.runtime.model, home)
        if reason_to_stay_local(resolved) is None:
            models[resolved.name] = {
                "name": resolved.name,
                "spec": asdict(resolved.spec),
                "fingerprint": resolved.fingerprint,
            }
    return list(models.values())


@contextmanager
def ray_session(engine: AskEngine, plan: Plan, home: Path, progress: Progress) -> Iterator[None]:
    """Check the cluster that asks the models of a plan, and disconnect from it when the context ends.

    A local cluster is not checked; it is started when the first model is asked.
    """
    try:
        if engine.address is not None:
            check_cluster(engine, plan, home, progress)
        yield
    finally:
        disconnect()
