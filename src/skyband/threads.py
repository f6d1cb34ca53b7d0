"""The cores that one push may use: kernels release the interpreter's lock, so that several run side by side.

As many threads as the process has cores, or as the environment variable SKYBAND_THREADS says; on a Spark worker one, because
Spark runs a task a core by itself. Threads are started when they are first needed and wait without cost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from skyband.errors import SkybandError

SETTING = "SKYBAND_THREADS"
_SPARK = "PYTHON_WORKER_FACTORY_SECRET"  # in the environment of Spark's Python workers

_limit: int | None = None  # what `use_at_most` said
_pool: ThreadPoolExecutor | None = None


def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget)


def cores() -> int:
    """How many threads may work at once. SkybandError where SKYBAND_THREADS is not a number of threads."""
    if _limit is not None:
        return _limit
    said = os.environ.get(SETTING)
    if not said and _SPARK in os.environ:
        return 1
    if not said:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not said.isdecimal() or int(said) < 1:
        raise SkybandError(f"{SETTING} must be a whole number of threads, at least 1, got {said!r}; unset it to use all cores")
    return int(said)


def use_at_most(threads: int | None) -> None:
    """From now on, in this process; None: what the environment says."""
    global _limit
    _limit = threads


class Begun:
    """Tasks that were begun. Calling it waits for all of them, and raises what one of them raised."""

    def __init__(self, tasks: Sequence[Callable[[], None]], started: Sequence[Future[None]]) -> None:
        self._tasks, self.started = tasks, started  # `started`: those on other threads; the others run when they are waited for

    def __call__(self) -> None:
        for task in self.started:
            task.exception()  # all have ended before one of them is reported
        for task in self.started:
            task.result()
        _run(self._tasks)

    def abandon(self) -> None:
        """Wait for those that run; nobody wants to know what comes of them."""
        for task in self.started:
            task.exception()


def begin(tasks: Sequence[Callable[[], None]], after: Begun | None = None) -> Begun:
    """Start the tasks. `after`: each of them when the one in its place there has ended, which is waited for before.

    On a single core they run when they are waited for, one after the other.
    """
    global _pool
    workers = cores()
    if workers == 1 or len(tasks) == 1:
        return Begun(tasks, [])
    if _pool is None or _pool._max_workers != workers:
        _pool = ThreadPoolExecutor(workers, "skyband")
    if after is None or not after.started:
        return Begun([], [_pool.submit(task) for task in tasks])
    # tasks are taken up in the order they come: the earlier one runs by then, or has ended
    pairs = zip(tasks, after.started, strict=True)
    return Begun([], [_pool.submit(_run_after, earlier, task) for task, earlier in pairs])


def _run_after(earlier: Future[None], task: Callable[[], None]) -> None:
    earlier.result()
    task()


def _run(tasks: Sequence[Callable[[], None]]) -> None:
    for task in tasks:
        task()
