"""A command that has the chip: signals are for it, and it ends after a fault that stays."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from darwinn_testbench.errors import InputError

GRACE_SECONDS = 5.0
"""How long a command may go on after a fault of the chip: many drivers wait for ever then."""

_LOOK_SECONDS = 0.2


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
    """Keys at the terminal are for what is started, which gets them too; the rest is handed on.

    A signal that is ignored (``nohup``) stays so, here and in what is started.
    """
    loop = asyncio.get_running_loop()

    def hand_on(number: signal.Signals) -> None:
        for process in started:
            process.send_signal(number)

    handlers = {
        signal.SIGINT: _ignore,
        signal.SIGQUIT: _ignore,
        signal.SIGTERM: hand_on,
        signal.SIGHUP: hand_on,
    }
    handled = [each for each in handlers if signal.getsignal(each) is not signal.SIG_IGN]
    for number in handled:
        loop.add_signal_handler(number, handlers[number], number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def _ignore(number: signal.Signals) -> None:
    pass
