"""The thread that computes while transfers come and go."""

from __future__ import annotations

import threading

from darwinn_sim.usb.function import UsbFunction


class Worker:
    """Lets a function's chip compute whenever there is something to do.

    A context manager: the thread ends with it.
    """

    def __init__(self, function: UsbFunction) -> None:
        self.function = function
        self._condition = threading.Condition()
        self._wanted = self._stopping = False
        self._thread = threading.Thread(target=self._run, name="darwinn-chip", daemon=True)
        function.wake = self._wake

    def __enter__(self) -> Worker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        self._thread.join()

    def _wake(self) -> None:
        with self._condition:
            self._wanted = True
            self._condition.notify_all()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._wanted or self._stopping)
                if self._stopping:
                    return
                self._wanted = False
            while self.function.work() and not self._stopping:
                pass
