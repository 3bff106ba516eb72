"""A limit of time for what a thread does, in a process that is somebody else's and goes on."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Late(BaseException):
    """The time is over. No ``Exception``: what goes wrong in a task is handled there."""


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise ``Late`` in this thread when what is done within has taken so long.

    It comes between two steps of Python: a library that is at work goes on to its end.
    """
    thread = threading.get_ident()
    lock = threading.Lock()
    is_over = False

    def interrupt() -> None:
        with lock:
            if not is_over:
                _raise_in(thread, Late)

    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            is_over = True
        timer.cancel()
        # What was asked for in the last moment, and has not come yet.
        _raise_in(thread, None)


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Have a thread raise an exception, or not have it."""
    asked = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), asked)
