"""A command that has the chip: signals are for it, and it ends after a fault that stays."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from darwinn_testbench.errors import InputError

GRACE_SECONDS = 5.0
"""How long a command may go on after a fault of the chip: many drivers wait for ever then."""

_LOOK_SECONDS = 0.2
_KEYS = (signal.SIGINT, signal.SIGQUIT)


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
    started: list[asyncio.subprocess.Process] = []
    with _signals_for(started):
        try:
            process = await asyncio.create_subprocess_exec(*command, env=environment)
        except OSError as error:
            raise InputError(f"{command[0]}: {error.strerror}") from None
        started.append(process)
        status = await _end_of(process, has_failed)
    return 128 - status if status < 0 else status


async def _end_of(process: asyncio.subprocess.Process, has_failed: Callable[[], bool]) -> int:
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


@contextmanager
def _signals_for(started: Sequence[asyncio.subprocess.Process]) -> Iterator[None]:
    """Signals are for what is started; those of the terminal's keys reach it by themselves.

    A signal that is ignored (``nohup``) stays so, here and in what is started.
    """
    loop = asyncio.get_running_loop()

    def hand_on(number: signal.Signals) -> None:
        if number in _KEYS and _has_terminal():
            return
        for process in started:
            process.send_signal(number)

    signals = (*_KEYS, signal.SIGTERM, signal.SIGHUP)
    handled = [each for each in signals if signal.getsignal(each) is not signal.SIG_IGN]
    for number in handled:
        loop.add_signal_handler(number, hand_on, number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def _has_terminal() -> bool:
    """Whether keys of the terminal are signals to this process, and so to what it has started."""
    try:
        with Path("/dev/tty").open("rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
