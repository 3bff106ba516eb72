"""A command that has the chip: signals are for it, and it ends after a fault that stays.

It ends with this process, too, even if that is killed.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from darwinn_testbench.confinement import die_with
from darwinn_testbench.errors import InputError

GRACE_SECONDS = 5.0
"""How long a command may go on after a fault of the chip: many drivers wait for ever then."""

_LOOK_SECONDS = 0.2
_KEYS = (signal.SIGINT, signal.SIGQUIT)
_WITNESS_SECONDS = 0.5
"""How long a signal may take to all processes of a group."""


def found_first(**paths: Path) -> dict[str, str]:
    """The environment with each path in front of the others that its variable lists."""
    first = {
        variable: os.pathsep.join(filter(None, [str(path), os.environ.get(variable, "")]))
        for variable, path in paths.items()
    }
    return {**os.environ, **first}


async def status_of(
    command: Sequence[str],
    environment: Mapping[str, str],
    has_failed: Callable[[], bool] = lambda: False,
) -> int:
    """Run ``command``: its exit status, as a shell tells it.

    Args:
        command: its words.
        environment: its variables.
        has_failed: whether the chip can do no more; the command is ended if that stays so.

    Raises:
        InputError: there is no such command.
    """
    if not command[0]:
        raise InputError("the command is empty: its first word is ''")
    started: list[Process] = []
    async with _signals_for(started):
        try:
            process = await asyncio.create_subprocess_exec(
                *command, env=environment, preexec_fn=partial(die_with, os.getpid())
            )
        except OSError as error:
            raise InputError(f"{command[0]}: {error.strerror}") from None
        started.append(process)
        status = await _end_of(process, has_failed)
    return 128 - status if status < 0 else status


async def _end_of(process: Process, has_failed: Callable[[], bool]) -> int:
    """The end of the command, which comes soon after a fault that stays."""
    ending = asyncio.ensure_future(process.wait())
    deadlines = {process.terminate: GRACE_SECONDS, process.kill: 2 * GRACE_SECONDS}
    since = 0.0
    while not (await asyncio.wait([ending], timeout=_LOOK_SECONDS))[0]:
        since = since + _LOOK_SECONDS if has_failed() else 0.0
        for end, deadline in deadlines.items():
            if deadline <= since < deadline + _LOOK_SECONDS:
                end()
    return ending.result()


@asynccontextmanager
async def _signals_for(started: Sequence[Process]) -> AsyncIterator[None]:
    """Signals are for what is started; those of the terminal's keys reach it by themselves.

    A signal that is ignored (``nohup``) stays so, here and in what is started.
    """
    loop = asyncio.get_running_loop()
    witness = await _Witness.begin() if _has_terminal() else None
    underway: set[asyncio.Task[None]] = set()

    async def hand_on(number: signal.Signals) -> None:
        if number in _KEYS and witness is not None and await witness.has_got_it_too():
            return
        for process in started:
            process.send_signal(number)

    def take(number: signal.Signals) -> None:
        task = loop.create_task(hand_on(number))
        underway.add(task)
        task.add_done_callback(underway.discard)

    signals = (*_KEYS, signal.SIGTERM, signal.SIGHUP)
    handled = [each for each in signals if signal.getsignal(each) is not signal.SIG_IGN]
    for number in handled:
        loop.add_signal_handler(number, take, number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
        for task in underway:
            task.cancel()
        if witness is not None:
            await witness.end()


class _Witness:
    """A process of this group that any signal ends, so that it shows for whom a signal was.

    A key of the terminal is a signal to the whole group, and so to the command; one that is sent
    to this process alone looks the same here.
    """

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def begin(cls) -> _Witness:
        """Start it."""
        return cls(await cls._start())

    @staticmethod
    async def _start() -> Process:
        parent = os.getpid()

        def prepare() -> None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            die_with(parent)

        return await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", "read _"),
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            preexec_fn=prepare,
        )

    async def has_got_it_too(self) -> bool:
        """Whether a signal that has come just now came to the group."""
        process = self._process
        try:
            await asyncio.wait_for(process.wait(), _WITNESS_SECONDS)
        except TimeoutError:
            return False
        if process is self._process:
            self._process = await self._start()
        return True

    async def end(self) -> None:
        """It is needed no more."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


def _has_terminal() -> bool:
    """Whether this process has a terminal, whose keys may be signals to it."""
    try:
        Path("/dev/tty").open("rb").close()
    except OSError:
        return False
    return True
