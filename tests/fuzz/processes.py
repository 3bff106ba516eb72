"""Work in processes of their own: what a mutant does to its process, only that process notices.

Processes are forked from one in which everything is loaded, and each takes a batch of tasks: to
fork for every task would cost more than most tasks do. A process that is ended by a task takes the
others of its batch along; they are done in the next one.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import selectors
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Generic, TypeVar

from darwinn_testbench.confinement import Confinement, confine

Task = TypeVar("Task")
Write = Callable[[bytes], object]
Work = Callable[[Task, Write], bool]
"""What is done with a task, and what it says with ``Write``, in lines: JSON, or words. It returns
whether its process is as good as before."""

WALL_FACTOR = 10
"""Seconds on the wall for one of the processor: others use it too."""

_END = b"ended "
_PEAK_BEGINS_AGAIN = b"5"
_CLEAR = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")
_PEAK = b"VmHWM:"


@dataclass
class Process(Generic[Task]):
    """What is known of a task that has ended: what it ``said``, the ``signal`` that ended its
    process (0: none), its exit ``code``, ``seconds`` of processor time, ``peak`` bytes in memory,
    how many tasks the process ``number`` did ``before``.
    """

    task: Task
    number: int
    before: int
    said: bytes = b""
    signal: int = 0
    code: int = 0
    seconds: float = 0.0
    peak: int = 0


@dataclass
class _Batch(Generic[Task]):
    """A process with its tasks, and what it has said that belongs to none that has ended."""

    tasks: deque[Task]
    number: int
    pipe: int
    done: int = 0
    seconds: float = 0.0
    said: bytes = b""

    def ended(self) -> Iterator[Process[Task]]:
        """The tasks of which the end has been said."""
        *lines, self.said = self.said.split(b"\n")
        said: list[bytes] = []
        for line in lines:
            if not line.startswith(_END):
                said.append(line)
                continue
            seconds, peak = map(int, line.removeprefix(_END).split())
            process = replace(self._next(), said=b"\n".join(said))
            process.seconds, process.peak = seconds / 1e6, peak
            said.clear()
            self.seconds += process.seconds
            self.done += 1
            yield process
        self.said = b"".join(line + b"\n" for line in said) + self.said

    def last(self) -> Process[Task] | None:
        """The task that has ended the process; None if none was under way."""
        _, status, usage = os.wait4(self.number, 0)
        code = os.waitstatus_to_exitcode(status)
        if not code:
            return None
        process = replace(self._next(), said=self.said)
        process.signal, process.code = max(-code, 0), max(code, 0)
        process.seconds = usage.ru_utime + usage.ru_stime - self.seconds
        process.peak = usage.ru_maxrss * 1024
        return process

    def _next(self) -> Process[Task]:
        return Process(self.tasks.popleft(), self.number, self.done)


def perform(
    tasks: Iterable[Task],
    work: Work[Task],
    *,
    limits: Confinement,
    jobs: int = 1,
    batch: int = 1,
) -> Iterator[Process[Task]]:
    """``work`` on each task, ``batch`` in a process, ``jobs`` processes at a time; in the order of
    their ends.

    A task that takes more processor time than ``limits`` is ended by SIGPROF, one that waits for
    ever by SIGALRM.
    """
    waiting: deque[Task] = deque()
    left = iter(tasks)
    running: dict[int, _Batch[Task]] = {}
    with selectors.DefaultSelector() as selector:
        while True:
            while len(running) < jobs:
                again = [waiting.popleft() for _ in range(min(batch, len(waiting)))]
                taken = list(islice(chain(again, left), batch))
                if not taken:
                    break
                started = _started(taken, work, limits)
                running[started.pipe] = started
                selector.register(started.pipe, selectors.EVENT_READ)
            if not running:
                return
            for key, _ in selector.select():
                process = running[key.fd]
                said = os.read(key.fd, 1 << 16)
                process.said += said
                yield from process.ended()
                if not said:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    del running[key.fd]
                    if last := process.last():
                        yield last
                    waiting.extend(process.tasks)


def _started(tasks: Sequence[Task], work: Work[Task], limits: Confinement) -> _Batch[Task]:
    reader, writer = os.pipe()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    number = os.fork()
    if number:
        os.close(writer)
        return _Batch(deque(tasks), number, reader)
    try:
        os.close(reader)
        faulthandler.disable()
        # The limit of processor time is of all tasks together; each has a timer of its own.
        confine(replace(limits, seconds=None), parent=parent)
        for task in tasks:
            if not _timed(task, work, limits.seconds or 0, lambda data: os.write(writer, data)):
                break
        os._exit(0)
    finally:
        # An exception here is the harness's own.
        os._exit(1)


def _timed(task: Task, work: Work[Task], seconds: int, write: Write) -> bool:
    _CLEAR.write_bytes(_PEAK_BEGINS_AGAIN)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(WALL_FACTOR * seconds)
    begin = time.process_time()
    is_good = work(task, write)
    taken = time.process_time() - begin
    write(_END + b"%d %d\n" % (taken * 1e6, _peak()))
    return is_good


def _peak() -> int:
    for line in _STATUS.read_bytes().splitlines():
        if line.startswith(_PEAK):
            return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
