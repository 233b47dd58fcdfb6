"""Asking on Ray. Workers load the model once and answer blocks of questions; this process writes the answers."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from merkhet.core.child_python import hidden_folders
from merkhet.core.compute_engines import AskEngine
from merkhet.core.errors import InputError, MerkhetError, first_line
from merkhet.core.schemas import ANSWERS, write_table
from merkhet.engine._ask_step import QuestionBlocks
from merkhet.engine.asker import AskJob, AskParams, AskRuntime, AskStatistics, merge_statistics
from merkhet.engine.distribute import _ray_worker as ray_worker
from merkhet.engine.distribute.ray_cluster import (
    check_worker_model,
    check_worker_version,
    connect,
    plan_workers,
    report_versions,
    worker_class,
    worker_environment,
)
from merkhet.engine.plan import StepContext

logger = logging.getLogger("merkhet.engine")

MAX_ATTEMPTS = 3
"""Maximum number of attempts per block, and of consecutive workers that die before the model is loaded."""
WAIT_SECONDS = 15.0


def ask_on_ray(
    context: StepContext[AskParams, AskRuntime],
    engine: AskEngine,
    job: AskJob,
    selection: QuestionBlocks,
    missing: Sequence[int],
    on_start: Callable[[], None],
) -> AskStatistics:
    """Ask blocks of questions on the workers of a Ray cluster, and write the answers as they arrive.

    A worker gets questions only after its version of merkhet and its model are checked. If a worker is lost, another
    worker asks its block again.

    Args:
        missing: Indices of the blocks without answers.
        on_start: Called when the first worker has loaded the model.
    """
    ray = connect(engine.address)
    resources = plan_workers(ray, engine)
    # A worker has another working folder, where relative paths would be wrong.
    job = replace(job, folder=job.folder.resolve(), home=job.home.resolve())
    actor = ray.remote(worker_class()).options(num_cpus=resources.cores, num_gpus=resources.gpus, max_restarts=0)
    dispatcher = _Dispatcher(
        ray,
        context,
        job,
        selection,
        deque(missing),
        on_start,
        lambda: actor.remote(worker_environment(), resources.cores, hidden_folders()),
    )
    worker_count = min(resources.workers, len(missing))
    threads = f"{resources.cores} cores" if resources.cores > 1 else "one core"
    with_gpu = ", each with a GPU" if resources.gpus else f" of {threads}"
    context.progress.say(f"  {context.params.label}: on Ray, {worker_count} worker{'s' * (worker_count > 1)}{with_gpu}")
    try:
        return dispatcher.ask(worker_count)
    except (ConnectionError, ray.exceptions.RaySystemError) as error:
        raise MerkhetError(
            f"the connection to the Ray cluster is lost ({first_line(error)}); start the same command again when it is "
            "back. Answers so far are kept"
        ) from error
    finally:
        dispatcher.stop()


@dataclass
class _Worker:
    """State of one worker."""

    handle: Any
    """Actor handle in Ray."""
    stage: str
    """Call whose reply is pending: greet, files, load or ask. ``_Dispatcher._after_<stage>`` handles the reply."""
    node: str = "an unknown machine"
    block: int | None = None
    """Index of the block that the worker is asking; None if it is not asking."""
    statistics: dict[str, Any] = field(default_factory=dict)
    """Asking statistics that the worker last reported."""


class _Dispatcher:
    """Queue of blocks to ask, and the workers that ask them."""

    def __init__(
        self,
        ray: Any,
        context: StepContext[AskParams, AskRuntime],
        job: AskJob,
        selection: QuestionBlocks,
        queue: deque[int],
        on_start: Callable[[], None],
        make_worker: Callable[[], Any],
    ) -> None:
        self.ray, self.context, self.job, self.selection, self.queue = ray, context, job, selection, queue
        self.on_start, self.make_worker = on_start, make_worker
        self.name = context.params.label
        self.parts: list[Path] = selection.parts(context.work)
        self.files = ray_worker.needed_files(job)
        self.pending: dict[Any, _Worker] = {}
        self.statistics: list[dict[str, Any]] = []
        self.deaths: Counter[int | None] = Counter()
        self.started: float | None = None
        self.reported_nodes: set[str] = set()

    def ask(self, worker_count: int) -> AskStatistics:
        """Ask all queued blocks with at most ``worker_count`` workers, and return the merged statistics."""
        hired, reported = time.perf_counter(), False
        for _ in range(worker_count):
            self._start_worker()
        while self.pending:
            ready, _ = self.ray.wait(list(self.pending), num_returns=1, timeout=WAIT_SECONDS)
            for reference in ready:
                self._handle_reply(reference)
            if not ready and not any(node["Alive"] for node in self.ray.nodes()):
                raise MerkhetError(
                    "all machines of the Ray cluster are down; restart it, then start the same command again. "
                    "Answers so far are kept"
                )
            if not ready and not reported and all(worker.stage == "greet" for worker in self.pending.values()):
                reported = True
                self.context.progress.say(f"  {self.name}: waiting for free resources in the cluster")
            while self.queue and len(self.pending) < min(worker_count, len(self.queue) + self._count_asking()):
                self._start_worker()
        merged = merge_statistics(
            [AskStatistics(**statistics) for statistics in self.statistics if statistics], workers=len(self.statistics)
        )
        # The recorded rate is per second of wall-clock time, not per second of summed worker time.
        started = self.started or hired
        merged.loading_seconds, merged.asking_seconds = started - hired, time.perf_counter() - started
        return merged

    def stop(self) -> None:
        """Stop the remaining workers."""
        for worker in self.pending.values():
            self._stop_worker(worker)
        self.pending.clear()

    def _count_asking(self) -> int:
        return sum(worker.block is not None for worker in self.pending.values())

    def _start_worker(self) -> None:
        worker = _Worker(self.make_worker(), "greet")
        self.pending[worker.handle.greet.remote()] = worker

    def _stop_worker(self, worker: _Worker) -> None:
        self.statistics.append(worker.statistics)
        try:
            self.ray.kill(worker.handle)
        except Exception as error:  # The worker or its cluster is already gone.
            logger.info("a worker could not be stopped: %s", first_line(error))

    def _handle_reply(self, reference: Any) -> None:
        """Handle the reply of a worker, and send the worker its next call."""
        worker = self.pending.pop(reference)
        errors = self.ray.exceptions
        try:
            reply = self.ray.get(reference)
        except (
            errors.RayActorError,
            errors.WorkerCrashedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
        ) as error:
            self._handle_lost_worker(worker, error)
            return
        except errors.RayTaskError as error:
            logger.error("%s on %s: %s", self.name, worker.node, error)
            cause = getattr(error, "cause", None) or error
            if isinstance(cause, MerkhetError):
                raise type(cause)(f"the worker on {worker.node}: {cause}") from error
            reason = f"{type(cause).__name__}: {first_line(cause)}"
            raise MerkhetError(
                f"the worker on {worker.node} cannot ask {self.name} ({reason}); see {self.context.folder / 'log.txt'}"
            ) from error
        try:
            getattr(self, f"_after_{worker.stage}")(worker, reply)
        except BaseException:
            self._stop_worker(worker)
            raise

    def _call(self, worker: _Worker, stage: str, *arguments: Any) -> None:
        worker.stage = stage
        self.pending[worker.handle.call.remote(*arguments)] = worker

    def _after_greet(self, worker: _Worker, reply: Any) -> None:
        worker.node = str(reply["node"])
        check_worker_version(reply)
        logger.info("%s: a worker on %s, process %s", self.name, worker.node, reply["process"])
        if self.files:
            self._call(worker, "files", "has_files", str(self.job.folder), self.files)
        else:
            self._call(worker, "load", "load", self.job)

    def _after_files(self, worker: _Worker, reply: Any) -> None:
        if not reply:
            logger.info("%s: sending the trained model to the worker on %s", self.name, worker.node)
            for name in self.files:
                self.ray.get(worker.handle.call.remote("receive_file", name, (self.job.folder / name).read_bytes()))
        self._call(worker, "load", "load", self.job)

    def _after_load(self, worker: _Worker, reply: Any) -> None:
        check_worker_model(reply)
        self.deaths[None] = 0
        if worker.node not in self.reported_nodes:
            self.reported_nodes.add(worker.node)
            report_versions(reply, self.context.progress.say)
        if self.started is None:
            self.started = time.perf_counter()
            self.on_start()
        self._assign_block(worker)

    def _after_ask(self, worker: _Worker, reply: Any) -> None:
        if "problem" in reply:
            raise (InputError if reply["input"] else MerkhetError)(reply["problem"])
        assert worker.block is not None
        write_table(ANSWERS, reply["answers"], self.parts[worker.block])
        self.context.progress.advance(self.name, len(self.selection.blocks[worker.block]))
        worker.statistics, worker.block = reply["statistics"], None
        self._assign_block(worker)

    def _assign_block(self, worker: _Worker) -> None:
        """Send the next block of the queue to a worker; stop the worker if the queue is empty."""
        if not self.queue:
            self._stop_worker(worker)
            return
        worker.block = self.queue.popleft()
        self._call(worker, "ask", "ask", self.selection.blocks[worker.block])

    def _handle_lost_worker(self, worker: _Worker, error: Exception) -> None:
        """Return the block of a dead worker to the queue.

        Raises:
            MerkhetError: Too many workers have died with the same block, or before they could ask a block.
        """
        retry = "" if worker.block is None else f"; block {worker.block} is asked again"
        logger.warning("%s: the worker on %s was lost%s", self.name, worker.node, retry)
        logger.info("%s: %s", self.name, " ".join(str(error).split()))
        self.statistics.append(worker.statistics)
        self.deaths[worker.block] += 1
        if self.deaths[worker.block] >= MAX_ATTEMPTS:
            raise MerkhetError(self._death_message(worker.block, worker.node))
        if worker.block is not None:
            self.queue.appendleft(worker.block)

    def _death_message(self, block: int | None, node: str) -> str:
        if block is None:
            return (
                f"{MAX_ATTEMPTS} workers died before they could ask {self.name}, the last on {node}; it may need more "
                f"memory than they have. See {self.context.folder / 'log.txt'}"
            )
        questions = self.selection.blocks[block]
        return (
            f"{MAX_ATTEMPTS} workers died while asking block {block} of {self.name} ({len(questions)} questions, "
            f"{questions[0].question_id} to {questions[-1].question_id}), the last on {node}; it may need more memory "
            "than they have. Answers to other blocks are kept; the same command resumes there"
        )
