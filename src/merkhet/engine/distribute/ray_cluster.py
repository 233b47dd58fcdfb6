"""A Ray cluster: started here or found at an address, looked at before work begins, and left when the run ends."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from merkhet.core.compute_engines import AskEngine
from merkhet.core.errors import InputError, MerkhetError, first_line
from merkhet.core.progress import Progress
from merkhet.core.version import __version__
from merkhet.engine.asker import AskParams
from merkhet.engine.plan import Plan
from merkhet.engine.record_step import installed_versions
from merkhet.models.model_lookup import resolve_model

logger = logging.getLogger("merkhet.engine")

CORES = 4
"""How many cores a worker without a GPU has, where nobody says so and as many are there."""
STORE = 128 * 2**20
"""Bytes of memory that a Ray of this machine gets for what travels: blocks of questions, and their answers."""
SECONDS_TO_KNOCK = 5
SECONDS_TO_CONNECT = 30
PASSED_ON = ("HF_HUB_OFFLINE", "HF_HOME", "MERKHET_CACHE", "GOMP_SPINCOUNT", "TOKENIZERS_PARALLELISM")
"""Variables of this process that hold on workers too, unless their machine has its own, or no such folder."""

_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DEDUP_LOGS": "0"}
_KNOCK = "import ray, sys; ray.init(sys.argv[1], logging_level='ERROR', log_to_driver=False); ray.nodes()"
_joined: list[str] = []
"""The cluster that this process has joined or started for a run."""


@dataclass(frozen=True)
class Crowd:
    """How many workers ask, with how many cores and GPUs each."""

    workers: int
    cores: int
    gpus: int


def connect(address: str | None) -> Any:
    """Ray, connected: to the cluster at an address, or to one of this machine that ends with the run.

    A Ray that this process is connected to already is used as it is. Refuses a cluster that does not answer.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():
        return ray
    if address is not None:
        _knock(address)
    options: dict[str, Any] = {"address": address or "local", "logging_level": logging.ERROR, "log_to_driver": False}
    if address is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        options |= {"num_cpus": cores, "include_dashboard": False, "object_store_memory": STORE}
    try:
        ray.init(**options)
    except Exception as error:
        where = "here" if address is None else f"at {address}"
        raise InputError(
            f"Ray cannot be {'started' if address is None else 'joined'} {where}: {_reason(error)}"
        ) from error
    _joined.append(address or "local")
    return ray


def disconnect() -> None:
    """Leave the cluster that :func:`connect` joined, or end the one that it started."""
    if _joined:
        import ray

        ray.shutdown()
        _joined.clear()


def _knock(address: str) -> None:
    """Refuse an address where nobody answers; Ray itself would try for minutes, and end this process."""
    if address != "auto":
        host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
        if not host or not port.isdigit():
            raise InputError(f"{address!r} is no address of a Ray cluster; write ray://HOST:10001, or ray:HOST:6379")
        try:
            socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_KNOCK).close()
        except (OSError, OverflowError) as error:
            raise _not_there(address, getattr(error, "strerror", None) or first_line(error)) from error
    try:
        done = subprocess.run(
            [sys.executable, "-c", _KNOCK, address],
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS_TO_CONNECT,
        )
    except subprocess.TimeoutExpired as error:
        if b"InvalidAuthToken" in (error.stderr or b""):
            raise _no_token(address) from error
        reason = f"no answer within {SECONDS_TO_CONNECT} seconds; if it wants a token, set RAY_AUTH_MODE=token"
        raise _not_there(address, reason) from error
    if "InvalidAuthToken" in done.stderr or "AuthenticationError" in done.stderr:
        raise _no_token(address)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "Error: " in line] or done.stderr.splitlines()
        reason = lines[-1].strip() if lines else f"exit code {done.returncode}"
        raise _not_there(address, reason.partition(". ")[0])


def _not_there(address: str, reason: str) -> InputError:
    where = "on this machine" if address == "auto" else f"at {address}"
    return InputError(
        f"there is no Ray cluster {where} ({reason.rstrip('.')}). Start one there (ray start --head), or ask on "
        "this machine with --engine ray"
    )


def _no_token(address: str) -> InputError:
    return InputError(
        f"the Ray cluster at {address} wants a token that this process has not got: set RAY_AUTH_MODE=token, and "
        "RAY_AUTH_TOKEN_PATH to the file that holds it"
    )


def _reason(error: BaseException) -> str:
    return first_line(error).rstrip(".")


def crowd_of(ray: Any, engine: AskEngine) -> Crowd:
    """How many workers a cluster has room for: one for each GPU, else one for each group of cores, unless it is said.

    Refuses workers with more cores than any machine of the cluster has.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = int(sum(node.get("GPU", 0) for node in nodes))
    usable = [int(node.get("CPU", 0)) for node in nodes if not gpus or node.get("GPU", 0)]
    most, all_cores = max(usable, default=0), sum(usable)
    workers, cores = engine.workers, engine.cores
    if most < (cores or 1):
        raise InputError(
            f"no machine of the Ray cluster has {cores or 1} cores for a worker; the largest has {most}. Give fewer "
            "with --cores-per-worker"
        )
    if cores is None:
        cores = 1 if gpus else min(CORES, most)
        if workers is not None and not gpus:
            cores = max(1, min(cores, all_cores // workers))
    room = gpus if gpus else sum(own // cores for own in usable)
    return Crowd(workers or max(1, room), cores, 1 if gpus else 0)


def environment() -> dict[str, str]:
    """The variables of this process that workers get."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def worker_class() -> type:
    """What runs in a worker's process. It travels whole, so that it can say that merkhet is not what it should be."""

    class Worker:
        def __init__(self, environment: dict[str, str], cores: int) -> None:
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

        def call(self, name: str, *given: object) -> object:
            from merkhet.engine.distribute import _ray_worker as ray_worker

            return getattr(ray_worker, name)(self.state, self.cores, *given)

    return Worker


def refuse_stranger(greeting: Mapping[str, Any]) -> None:
    """Refuse a worker that has another merkhet than this process, or none."""
    found = greeting["merkhet"]
    if found == __version__:
        return
    has = f"merkhet {found}" if found else f"no merkhet ({first_line(Exception(str(greeting.get('problem'))))})"
    raise InputError(
        f"the worker on {greeting['node']} has {has}, and this is merkhet {__version__}. Install the same there: "
        f"pip install merkhet=={__version__}"
    )


def refuse_other_model(report: Mapping[str, Any]) -> None:
    """Refuse a worker that has not got a model, or another of that name."""
    problem = report.get("problem")
    if problem:
        raise InputError(
            f"the worker on {report['node']} cannot ask {report['name']}: {str(problem).rstrip('.')}. A model is "
            "looked for in the same place there as here: put it there, or on a disk that both share"
        )
    found, wanted = str(report["fingerprint"]), str(report["wanted"])
    if found != wanted:
        raise InputError(
            f"the worker on {report['node']} has another {report['name']}: its fingerprint is {found[:12]} there and "
            f"{wanted[:12]} here. Copy the model there anew"
        )


def tell_versions(report: Mapping[str, Any], say: Any) -> None:
    """Say where a worker has other versions of what computes: last digits may then differ."""
    here = installed_versions()
    differing = [
        f"{name} {version} (here {here[name]})"
        for name, version in report["versions"].items()
        if name in ("torch", "transformers", "tokenizers", "numpy") and here.get(name, version) != version
    ]
    if differing:
        say(f"  the worker on {report['node']} has {', '.join(differing)}: last digits of scores may differ")


def check_cluster(engine: AskEngine, plan: Plan, home: Path, progress: Progress) -> None:
    """Refuse a cluster that is not there, or a machine of it with another merkhet or other models, before any work."""
    ray = connect(engine.address)
    crowd = crowd_of(ray, engine)
    wanted = _models_of(plan, home)
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("GPU" if crowd.gpus else "CPU")]
    progress.say(f"Ray at {engine.address}: {_counted(len(nodes), 'machine')}, {_counted(crowd.workers, 'worker')}")
    with _workers_on(ray, nodes) as workers:
        for greeting in ray.get([worker.greet.remote() for worker in workers]):
            refuse_stranger(greeting)
        for reports in ray.get([worker.call.remote("look", wanted, str(home.resolve())) for worker in workers]):
            for report in reports:
                refuse_other_model(report)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


@contextmanager
def _workers_on(ray: Any, nodes: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """A worker without any share of the machine on each node, for a look at what is there."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    made = ray.remote(worker_class())
    workers = [
        made.options(
            num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False)
        ).remote(environment(), 1)
        for node in nodes
    ]
    try:
        yield workers
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise MerkhetError(f"a machine of the Ray cluster does not answer: {_reason(error)}") from error
    finally:
        for worker in workers:
            ray.kill(worker)


def _models_of(plan: Plan, home: Path) -> list[dict[str, Any]]:
    """The models of a plan that workers have to find by themselves, with the fingerprints that they have here."""
    from merkhet.engine._ask_step import reason_to_stay_local

    found: dict[str, dict[str, Any]] = {}
    for step in plan.steps:
        if not isinstance(step.params, AskParams) or step.params.learned:
            continue
        resolved = resolve_model(step.runtime.model, home)
        if reason_to_stay_local(resolved) is None:
            found[resolved.name] = {
                "name": resolved.name,
                "spec": asdict(resolved.spec),
                "fingerprint": resolved.fingerprint,
            }
    return list(found.values())


@contextmanager
def ray_session(engine: AskEngine, plan: Plan, home: Path, progress: Progress) -> Iterator[None]:
    """Have the engine of a plan's asking steps there, and end with the run what was begun for it.

    A cluster is looked at before any work is done; a local one is started when it is first needed.
    """
    try:
        if engine.address is not None:
            check_cluster(engine, plan, home, progress)
        yield
    finally:
        disconnect()
