"""Work in processes of their own: what a mutant does to its process, nothing else notices.

Processes are forked from one in which everything is loaded, so that each begins from the same state
within milliseconds, and what one mutant left behind can never be a reason for the next one's end.
"""

from __future__ import annotations

import faulthandler
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from darwinn_testbench.confinement import Confinement, confine

Task = TypeVar("Task")
Write = Callable[[bytes], object]

WALL_FACTOR = 10
"""Seconds on the wall for one of the processor: others use it too."""


@dataclass
class Process(Generic[Task]):
    """A process, and what is known of it when it has ended: what it ``said``, the ``signal`` that
    ended it (0: none), its exit ``code``, ``seconds`` of processor time, ``peak`` bytes in memory.
    """

    task: Task
    number: int
    pipe: int
    begin: float = field(default_factory=time.monotonic)
    said: bytes = b""
    signal: int = 0
    code: int = 0
    seconds: float = 0.0
    peak: int = 0


def perform(
    tasks: Iterable[Task],
    work: Callable[[Task, Write], None],
    *,
    limits: Confinement,
    jobs: int = 1,
) -> Iterator[Process[Task]]:
    """``work`` on each task, in a process each, ``jobs`` at a time; in the order of their ends.

    ``work`` gets the task and what writes to :attr:`Process.said`. A process that takes more
    processor time than ``limits`` is ended by SIGXCPU, one that waits for ever by SIGALRM.
    """
    left = iter(tasks)
    running: dict[int, Process[Task]] = {}
    with selectors.DefaultSelector() as selector:
        while True:
            while len(running) < jobs and (task := next(left, None)) is not None:
                process = _started(task, work, limits)
                running[process.pipe] = process
                selector.register(process.pipe, selectors.EVENT_READ)
            if not running:
                return
            for key, _ in selector.select():
                process = running[key.fd]
                said = os.read(key.fd, 1 << 16)
                process.said += said
                if not said:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    del running[key.fd]
                    _await(process)
                    yield process


def _started(task: Task, work: Callable[[Task, Write], None], limits: Confinement) -> Process[Task]:
    reader, writer = os.pipe()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    number = os.fork()
    if number:
        os.close(writer)
        return Process(task, number, reader)
    try:
        os.close(reader)
        faulthandler.disable()
        confine(limits, parent=parent)
        signal.alarm(WALL_FACTOR * (limits.seconds or 1))
        work(task, lambda data: os.write(writer, data))
        os._exit(0)
    finally:
        # An exception here is the harness's own.
        os._exit(1)


def _await(process: Process[Task]) -> None:
    _, status, usage = os.wait4(process.number, 0)
    code = os.waitstatus_to_exitcode(status)
    process.signal, process.code = max(-code, 0), max(code, 0)
    process.seconds = usage.ru_utime + usage.ru_stime
    process.peak = usage.ru_maxrss * 1024
