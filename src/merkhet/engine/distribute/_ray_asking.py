"""Asks on Ray: workers that load the model once take blocks one after the other; this process keeps their answers."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from merkhet.core.compute_engines import AskEngine
from merkhet.core.errors import InputError, MerkhetError, first_line
from merkhet.core.schemas import ANSWERS, write_table
from merkhet.engine._ask_step import Asked
from merkhet.engine.asker import AskJob, AskParams, AskRuntime, Effort, put_together
from merkhet.engine.distribute import _ray_worker as ray_worker
from merkhet.engine.distribute.ray_cluster import (
    connect,
    crowd_of,
    environment,
    refuse_other_model,
    refuse_stranger,
    tell_versions,
    worker_class,
)
from merkhet.engine.plan import StepContext

logger = logging.getLogger("merkhet.engine")

TRIES = 3
"""How often a block is asked when workers die of it, and how many may die in a row before they have the model."""
SECONDS_TO_TELL = 15.0


def ask_on_ray(
    context: StepContext[AskParams, AskRuntime],
    engine: AskEngine,
    job: AskJob,
    asked: Asked,
    left: Sequence[int],
    begin: Callable[[], None],
) -> Effort:
    """Ask blocks on the workers of a Ray cluster, and write the answers to each as they come.

    A worker is asked for its merkhet and its model before it gets a question. A block whose worker is lost is asked
    again by another; its answers are written once, by this process.
    """
    ray = connect(engine.address)
    crowd = crowd_of(ray, engine)
    # Folders as a process elsewhere can find them.
    job = replace(job, folder=job.folder.resolve(), home=job.home.resolve())
    made = ray.remote(worker_class()).options(num_cpus=crowd.cores, num_gpus=crowd.gpus, max_restarts=0)
    asking = _Asking(ray, context, job, asked, deque(left), begin, lambda: made.remote(environment(), crowd.cores))
    wanted = min(crowd.workers, len(left))
    threads = f"{crowd.cores} cores" if crowd.cores > 1 else "one core"
    with_gpu = ", each with a GPU" if crowd.gpus else f" of {threads}"
    context.progress.say(f"  {context.params.name}: on Ray, {wanted} worker{'s' * (wanted > 1)}{with_gpu}")
    try:
        return asking.ask(wanted)
    except (ConnectionError, ray.exceptions.RaySystemError) as error:
        raise MerkhetError(
            f"the Ray cluster has gone ({first_line(error)}). Start the same command again when it is back; what was "
            "asked is kept"
        ) from error
    finally:
        asking.dismiss()


@dataclass
class _Member:
    """A worker: its handle in Ray, its machine, the block that it has, and what asking took it so far."""

    handle: Any
    stage: str
    node: str = "a machine that is not known yet"
    block: int | None = None
    effort: dict[str, Any] = field(default_factory=dict)


class _Asking:
    """Blocks that are to be asked, and the workers that do it."""

    def __init__(
        self,
        ray: Any,
        context: StepContext[AskParams, AskRuntime],
        job: AskJob,
        asked: Asked,
        todo: deque[int],
        begin: Callable[[], None],
        hire: Callable[[], Any],
    ) -> None:
        self.ray, self.context, self.job, self.asked, self.todo = ray, context, job, asked, todo
        self.begin, self.hire = begin, hire
        self.name = context.params.name
        self.parts: list[Path] = asked.parts(context.work)
        self.files = ray_worker.needed_files(job)
        self.busy: dict[Any, _Member] = {}
        self.efforts: list[dict[str, Any]] = []
        self.lost: Counter[int | None] = Counter()
        self.started: float | None = None
        self.told_of: set[str] = set()

    def ask(self, wanted: int) -> Effort:
        """Ask all blocks by so many workers, as they find room."""
        begun, told = time.perf_counter(), False
        for _ in range(wanted):
            self._hire()
        while self.busy:
            ready, _ = self.ray.wait(list(self.busy), num_returns=1, timeout=SECONDS_TO_TELL)
            for reference in ready:
                self._hear(reference)
            if not ready and not any(node["Alive"] for node in self.ray.nodes()):
                raise MerkhetError(
                    "no machine of the Ray cluster is left. Start the same command again; what was asked is kept"
                )
            if not ready and not told and all(member.stage == "greet" for member in self.busy.values()):
                told = True
                self.context.progress.say(f"  {self.name}: waiting for room in the cluster")
            while self.todo and len(self.busy) < min(wanted, len(self.todo) + self._at_work()):
                self._hire()
        whole = put_together([Effort(**effort) for effort in self.efforts if effort], workers=len(self.efforts))
        # The rate that a user sees: by the clock, and not by the hours of all workers.
        started = self.started or begun
        whole.loading, whole.asking = started - begun, time.perf_counter() - started
        return whole

    def dismiss(self) -> None:
        """End the workers that are left."""
        for member in self.busy.values():
            self._end(member)
        self.busy.clear()

    def _at_work(self) -> int:
        return sum(member.block is not None for member in self.busy.values())

    def _hire(self) -> None:
        member = _Member(self.hire(), "greet")
        self.busy[member.handle.greet.remote()] = member

    def _end(self, member: _Member) -> None:
        self.efforts.append(member.effort)
        try:
            self.ray.kill(member.handle)
        except Exception as error:  # Gone already, or its cluster is.
            logger.info("a worker could not be ended: %s", first_line(error))

    def _hear(self, reference: Any) -> None:
        """Take what a worker has to say, and give it something to do."""
        member = self.busy.pop(reference)
        errors = self.ray.exceptions
        try:
            said = self.ray.get(reference)
        except (
            errors.RayActorError,
            errors.WorkerCrashedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
        ) as error:
            self._lose(member, error)
            return
        except errors.RayTaskError as error:
            logger.error("%s on %s: %s", self.name, member.node, error)
            cause = getattr(error, "cause", None) or error
            if isinstance(cause, MerkhetError):
                raise type(cause)(f"the worker on {member.node}: {cause}") from error
            reason = f"{type(cause).__name__}: {first_line(cause)}"
            raise MerkhetError(
                f"the worker on {member.node} cannot ask {self.name} ({reason}); more is in "
                f"{self.context.folder / 'log.txt'}"
            ) from error
        try:
            getattr(self, f"_after_{member.stage}")(member, said)
        except BaseException:
            self._end(member)
            raise

    def _call(self, member: _Member, stage: str, *given: Any) -> None:
        member.stage = stage
        self.busy[member.handle.call.remote(*given)] = member

    def _after_greet(self, member: _Member, said: Any) -> None:
        member.node = str(said["node"])
        refuse_stranger(said)
        logger.info("%s: a worker on %s, process %s", self.name, member.node, said["process"])
        if self.files:
            self._call(member, "files", "has_files", str(self.job.folder), self.files)
        else:
            self._call(member, "load", "load", self.job)

    def _after_files(self, member: _Member, said: Any) -> None:
        if not said:
            logger.info("%s: what was learned is sent to the worker on %s", self.name, member.node)
            for name in self.files:
                self.ray.get(member.handle.call.remote("take_file", name, (self.job.folder / name).read_bytes()))
        self._call(member, "load", "load", self.job)

    def _after_load(self, member: _Member, said: Any) -> None:
        refuse_other_model(said)
        self.lost[None] = 0
        if member.node not in self.told_of:
            self.told_of.add(member.node)
            tell_versions(said, self.context.progress.say)
        if self.started is None:
            self.started = time.perf_counter()
            self.begin()
        self._give(member)

    def _after_ask(self, member: _Member, said: Any) -> None:
        if "problem" in said:
            raise (InputError if said["input"] else MerkhetError)(said["problem"])
        assert member.block is not None
        write_table(ANSWERS, said["answers"], self.parts[member.block])
        self.context.progress.advance(self.name, len(self.asked.blocks[member.block]))
        member.effort, member.block = said["effort"], None
        self._give(member)

    def _give(self, member: _Member) -> None:
        """The next block to a worker; one for whom there is none is not needed any more."""
        if not self.todo:
            self._end(member)
            return
        member.block = self.todo.popleft()
        self._call(member, "ask", "ask", self.asked.blocks[member.block])

    def _lose(self, member: _Member, error: Exception) -> None:
        """A worker has died: what it had is asked again, by another."""
        again = "" if member.block is None else f"; block {member.block} is asked again"
        logger.warning("%s: the worker on %s was lost%s", self.name, member.node, again)
        logger.info("%s: %s", self.name, " ".join(str(error).split()))
        self.efforts.append(member.effort)
        self.lost[member.block] += 1
        if self.lost[member.block] >= TRIES:
            raise MerkhetError(self._fate(member.block, member.node))
        if member.block is not None:
            self.todo.appendleft(member.block)

    def _fate(self, block: int | None, node: str) -> str:
        if block is None:
            return (
                f"{TRIES} workers have died before they could ask {self.name}, the last on {node}; it may need more "
                f"memory than they have. More is in {self.context.folder / 'log.txt'}"
            )
        questions = self.asked.blocks[block]
        return (
            f"{TRIES} workers have died of block {block} of {self.name} ({len(questions)} questions, "
            f"{questions[0].question_id} to {questions[-1].question_id}), the last on {node}; it may need more memory "
            "than they have. The answers to other blocks are kept: the same command goes on there"
        )
